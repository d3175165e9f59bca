"""Unit seeds that are never written out: Jacobians and Hessians from the factors of their tangents.

A dense Hessian is a graph pushed along all unit seeds at once, arrays with an axis for the seeds. The
identity matrix is where they come from; from there on this pass keeps every array as a sum of products
(see `networks`), as long as the ops allow it, and writes arrays out where they do not, and at the end.

Of a layer z = x W the tangents for the seeds of W are x_bi δ_jq: only the factors travel through the
network, an entry of H is Σ_b x_bi x_bp R_bjq, one matrix product, and seeds of the bias of the layer share
R. So H is the sum over the nonlinear nodes of Jᵀ (their curvature) J with J kept in factors, as in edge
pushing (Gower and Mello 2012, equation 11), without a rule for it.

The value changes by rounding only. The result is used if it costs fewer operations.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import product as combinations
from typing import Any

from symad.cost import add_up
from symad.dims import bind, dim_symbols
from symad.graph import Graph, Node, topological
from symad.numeric.passes.contracting import TYPICAL, Name
from symad.numeric.passes.loop import Loop
from symad.numeric.passes.merging import Signed, total, written_out
from symad.numeric.passes.mosaic import in_mosaics
from symad.numeric.passes.networks import Misfit, Term, atom, identity, product, regrouped
from symad.ops.arithmetic import Add, Mul, div
from symad.ops.contraction import Einsum
from symad.ops.shaping import Broadcast, Reshape
from symad.ops.softmax import SoftmaxTangent
from symad.ops.sources import Eye, constant
from symad.questions import definition, flops

MOST = 4
"""A sum of more terms than this is written with fewer, though they grow."""

WRITTEN = (SoftmaxTangent,)
"""Ops that are taken apart when their arguments are networks."""


def factor_seeds(graph: Graph) -> Graph:
    """The graph with the tangents of unit seeds in factors."""
    if not any(isinstance(node.op, Eye) for node in graph.nodes):
        return graph
    factoring = _Factoring()
    for node in graph.nodes:
        factoring.add(node)
    outputs = tuple(factoring.whole(node) for node in graph.output_nodes)
    made = Graph(graph.input_nodes, outputs, graph.structure, graph.name, graph.report)
    old, new = set(graph.nodes), set(made.nodes)
    return in_mosaics(made) if _operations(new - old) < _operations(old - new) else graph


def _operations(nodes: set[Node]) -> float:
    """The operations of some nodes, at typical sizes; the values of one loop count once."""
    loops = {(node.op.body, node.args) for node in nodes if isinstance(node.op, Loop)}
    terms = [flops(node.op, node) for node in nodes if not isinstance(node.op, Loop)]
    for body, args in loops:
        terms.append(args[1].shape[0] * add_up(flops(inner.op, inner) for inner in body.nodes))
    whole = add_up(terms)
    return float(bind(whole, {symbol: TYPICAL for symbol in dim_symbols([whole])}))


class _Factoring:
    """One run over a graph: for each node an array, or a sum of terms that come from identities."""

    def __init__(self) -> None:
        self.terms: dict[Node, list[Term]] = {}
        self.made: dict[Node, Node] = {}
        self.sums: set[Node] = set()

    def add(self, node: Node) -> None:
        """Rewrite a node whose arguments are done."""
        if node in self.terms or node in self.made:
            return
        if isinstance(node.op, Eye):
            self.terms[node] = [identity(node.op.size)]
        elif not any(a in self.terms for a in node.args):
            args = tuple(self.made[a] for a in node.args)
            self.made[node] = node if args == node.args else Node.of(node.op, args)
        elif isinstance(node.op, WRITTEN):
            plain: Node = definition(node.op, node)
            for inner in topological([plain]):
                self.add(inner)
            table: Any = self.terms if plain in self.terms else self.made
            table[node] = table[plain]
        else:
            self._network(node)

    def _network(self, node: Node) -> None:
        rule = RULES.get(type(node.op))
        try:
            found = rule(self, node) if rule else None
        except Misfit:
            found = None
        if found is None:
            self.made[node] = Node.of(node.op, tuple(self.whole(a) for a in node.args))
        else:
            self.terms[node] = found

    def whole(self, node: Node) -> Node:
        """The array of a node, written out."""
        if node not in self.made:
            self.made[node] = written_out(self.terms[node], node.shape)
        return self.made[node]

    def operand(self, node: Node) -> list[Term]:
        """The terms of a node; of an array that only repeats another one that of the smaller."""
        if node in self.terms:
            return self.terms[node]
        if isinstance(node.op, Broadcast):
            return [_broadcast(node, term) for term in self.operand(node.args[0])]
        return [atom(self.made[node])]


# ---- rules ---------------------------------------------------------------------------------------


def add_terms(run: _Factoring, node: Node) -> list[Term]:
    """All terms of all arguments."""
    op: Any = node.op
    signed: list[Signed] = []
    for sign, arg in zip(op.signs, node.args, strict=True):
        terms = run.operand(arg)
        signed += [(sign, t if arg.shape else _number(t, node)) for t in terms]
    return total(signed, MOST, run.sums)


def mul_terms(run: _Factoring, node: Node) -> list[Term] | None:
    """Products of terms, position by position; of denominators the reciprocal."""
    op: Any = node.op
    labels = tuple(range(len(node.shape)))
    operands = []
    for power, arg in zip(op.powers, node.args, strict=True):
        terms = run.operand(arg)
        if power == -1:
            if arg in run.terms or len(terms) > 1:
                return None
            terms = [_reciprocal(terms[0])]
        operands.append(terms)
    parts = [labels if arg.shape else () for arg in node.args]
    return total([(1, product(c, parts, labels)) for c in combinations(*operands)], MOST, run.sums)


def einsum_terms(run: _Factoring, node: Node) -> list[Term]:
    """Contractions of terms."""
    op: Any = node.op
    operands = [run.operand(arg) for arg in node.args]
    return total([(1, product(c, op.inputs, op.output)) for c in combinations(*operands)], MOST, run.sums)


def broadcast_terms(run: _Factoring, node: Node) -> list[Term]:
    """The same terms with more axes."""
    return [_broadcast(node, term) for term in run.terms[node.args[0]]]


def reshape_terms(run: _Factoring, node: Node) -> list[Term]:
    """The same terms with their names in other groups."""
    return [regrouped(term, node.shape) for term in run.terms[node.args[0]]]


def _broadcast(node: Node, term: Term) -> Term:
    op: Any = node.op
    given = dict(zip(op.axes, term.axes, strict=True))
    axes = (given.get(k, () if d == 1 else (Name(d),)) for k, d in enumerate(node.shape))
    return Term(term.factors, tuple(axes))


def _number(term: Term, like: Node) -> Term:
    """A number in the shape of an array."""
    return Term(term.factors, tuple(() if d == 1 else (Name(d),) for d in like.shape))


def _reciprocal(term: Term) -> Term:
    """One over a product of arrays."""
    return Term(tuple((div(constant(1), node), names) for node, names in term.factors), term.axes)


RULES: dict[type, Callable[[_Factoring, Node], list[Term] | None]] = {
    Add: add_terms,
    Mul: mul_terms,
    Einsum: einsum_terms,
    Broadcast: broadcast_terms,
    Reshape: reshape_terms,
}
