"""How tensor networks pass through the ops that move, multiply and add elements."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from itertools import product as combinations
from typing import Protocol

from symad.core.graph import Node, op_of
from symad.numeric.passes.algebra.merging import Signed
from symad.numeric.passes.algebra.networks import Name, NetworkTerm, atom, regrouped
from symad.ops.basic.arithmetic import Add, Mul, div
from symad.ops.basic.contraction import Einsum
from symad.ops.basic.shaping import Broadcast, Reshape
from symad.ops.basic.sources import constant


class TermPass(Protocol):
    """A pass over a graph that represents some nodes as sums of terms."""

    @property
    def terms(self) -> Mapping[Node, list[NetworkTerm]]:
        """The terms of the nodes that have some."""

    def array(self, node: Node) -> Node:
        """The array of a node without terms."""

    def product(
        self, terms: Sequence[NetworkTerm], labels: Sequence[Sequence[Hashable]], output: Sequence[Hashable]
    ) -> NetworkTerm:
        """The contraction of some terms."""

    def total(self, terms: Sequence[Signed]) -> list[NetworkTerm]:
        """The sum of some terms."""


def operand(run: TermPass, node: Node) -> list[NetworkTerm]:
    """The terms of a node; for a broadcast array the terms of the smaller array."""
    if node in run.terms:
        return run.terms[node]
    if isinstance(node.op, Broadcast):
        return [_broadcast(node, term) for term in operand(run, node.args[0])]
    return [atom(run.array(node))]


def add_terms(run: TermPass, node: Node) -> list[NetworkTerm]:
    """The terms of all arguments together."""
    op = op_of(node, Add)
    signed: list[Signed] = []
    for sign, arg in zip(op.signs, node.args, strict=True):
        terms = operand(run, arg)
        signed += [(sign, t if arg.shape else _number(t, node)) for t in terms]
    return run.total(signed)


def mul_terms(run: TermPass, node: Node) -> list[NetworkTerm] | None:
    """Elementwise products of terms; denominators enter by their reciprocals."""
    op = op_of(node, Mul)
    labels = tuple(range(len(node.shape)))
    operands = []
    for power, arg in zip(op.powers, node.args, strict=True):
        terms = operand(run, arg)
        if power == -1:
            if arg in run.terms or len(terms) > 1:
                return None
            terms = [_reciprocal(terms[0])]
        operands.append(terms)
    parts = [labels if arg.shape else () for arg in node.args]
    return run.total([(1, run.product(c, parts, labels)) for c in combinations(*operands)])


def einsum_terms(run: TermPass, node: Node) -> list[NetworkTerm]:
    """The contractions of terms."""
    op = op_of(node, Einsum)
    operands = [operand(run, arg) for arg in node.args]
    return run.total([(1, run.product(c, op.inputs, op.output)) for c in combinations(*operands)])


def broadcast_terms(run: TermPass, node: Node) -> list[NetworkTerm]:
    """The same terms with more axes."""
    return [_broadcast(node, term) for term in operand(run, node.args[0])]


def reshape_terms(run: TermPass, node: Node) -> list[NetworkTerm]:
    """The same terms with their axis names regrouped."""
    return [regrouped(term, node.shape) for term in operand(run, node.args[0])]


def _broadcast(node: Node, term: NetworkTerm) -> NetworkTerm:
    op = op_of(node, Broadcast)
    given = dict(zip(op.axes, term.axes, strict=True))
    axes = (given.get(k, () if d == 1 else (Name(d),)) for k, d in enumerate(node.shape))
    return NetworkTerm(term.factors, tuple(axes))


def _number(term: NetworkTerm, like: Node) -> NetworkTerm:
    """A number, broadcast to the shape of an array."""
    return NetworkTerm(term.factors, tuple(() if d == 1 else (Name(d),) for d in like.shape))


def _reciprocal(term: NetworkTerm) -> NetworkTerm:
    """One over a product of arrays."""
    return NetworkTerm(tuple((div(constant(1), node), names) for node, names in term.factors), term.axes)


RULES: dict[type, Callable[[TermPass, Node], list[NetworkTerm] | None]] = {
    Add: add_terms,
    Mul: mul_terms,
    Einsum: einsum_terms,
    Broadcast: broadcast_terms,
    Reshape: reshape_terms,
}
