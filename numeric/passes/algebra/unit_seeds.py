"""Unit seeds that are not written out: Jacobians and Hessians from the factors of their tangents.

A dense Hessian is a graph pushed forward along all unit seeds at once: every array has an axis for the seeds.
The seeds are an identity matrix. From there on this pass keeps every array as a sum of products (see
`networks`), and writes it out as an array only where an op does not allow that, and at the end.

For a layer z = x W, the tangents along the seeds of W are x_bi δ_jq, and only their factors pass through the
network. An entry of H is Σ_b x_bi x_bp R_bjq, one matrix product, and the seeds of the layer's bias share R.
So H is the sum over the nonlinear nodes of Jᵀ (their curvature) J with J in factors, as in edge pushing
(Gower and Mello 2012, equation 11), but without a rule for it.

The value changes by rounding only. The result is used if it takes fewer operations.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from symad.core.contents import holds
from symad.core.dims import bind, dim_symbols
from symad.core.graph import Graph, Node, topological
from symad.core.questions import definition, flops
from symad.cost import add_up
from symad.numeric.passes.algebra.block_matrices import in_mosaics
from symad.numeric.passes.algebra.merging import RULES, Signed, TermPass, total
from symad.numeric.passes.algebra.networks import TYPICAL, NetworkTerm, identity
from symad.numeric.passes.bodies import LoopValue
from symad.numeric.passes.rewriting import with_results
from symad.ops.arrays.softmax import SoftmaxTangent
from symad.ops.basic.sources import Eye

MAX_TERMS = 4
"""A sum of more terms than this is merged into fewer terms, even if these are larger.

The Hessian of a layer with a layer norm takes 6.9 times as long with 1, 2.9 with 2 and 3, as long with 5 and
more; that of attention 0.86 with 1, 0.96 with 2 and 3 (bench_layout_thresholds.py, "terms of seeds").
"""

WRITTEN = (SoftmaxTangent,)
"""Ops that are replaced by their definitions when an argument is a network with factors.

Of an identity matrix alone they are arrays, whose own rules keep the digits of 1 − p.
"""


def factor_seeds(graph: Graph) -> Graph:
    """The graph with the tangents of unit seeds in factors."""
    if not holds(graph, Eye):
        return graph
    factoring = _Factoring()
    for node in graph.nodes:
        factoring.add(node)
    made = with_results(graph, map(factoring.whole, graph.output_nodes))
    old, new = set(graph.nodes), set(made.nodes)
    return in_mosaics(made) if _operations(new - old) < _operations(old - new) else graph


def _operations(nodes: set[Node]) -> float:
    """The operations of some nodes, at typical sizes; the values of one loop count once."""
    loops = {(node.op.body, node.args) for node in nodes if isinstance(node.op, LoopValue)}
    terms = [flops(node.op, node) for node in nodes if not isinstance(node.op, LoopValue)]
    for body, args in loops:
        terms.append(args[1].shape[0] * add_up(flops(inner.op, inner) for inner in body.nodes))
    whole = add_up(terms)
    return float(bind(whole, {symbol: TYPICAL for symbol in dim_symbols([whole])}))


class _Factoring(TermPass):
    """One run over a graph: each node becomes an array, or a sum of terms that come from identities."""

    def __init__(self) -> None:
        super().__init__(RULES)
        self.sums: set[Node] = set()

    def add(self, node: Node) -> None:
        """Rewrite a node whose arguments have been rewritten."""
        if node in self.terms or node in self.made:
            return
        if isinstance(node.op, Eye):
            self.terms[node] = [identity(node.op.size)]
        elif not any(a in self.terms for a in node.args):
            args = tuple(self.made[a] for a in node.args)
            self.made[node] = node.over(args)
        elif isinstance(node.op, WRITTEN) and any(map(self._has_factors, node.args)):
            plain: Node = definition(node.op, node)
            for inner in topological([plain]):
                self.add(inner)
            table: Any = self.terms if plain in self.terms else self.made
            table[node] = table[plain]
        elif (found := self.by_rule(node)) is not None:
            self.terms[node] = found
        else:
            self.made[node] = Node.of(node.op, tuple(self.whole(a) for a in node.args))

    def _has_factors(self, node: Node) -> bool:
        """Whether a network has factors that are arrays, beside identities and numbers."""
        return any(names for term in self.terms.get(node, ()) for _, names in term.factors)

    def total(self, terms: Sequence[Signed]) -> list[NetworkTerm]:
        """A sum of terms; those with common factors become one."""
        return total(terms, MAX_TERMS, self.sums)
