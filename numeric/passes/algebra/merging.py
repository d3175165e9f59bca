"""Graphs as sums of tensor networks: how ops act on them, and how two terms of a sum become one.

Two terms are added where they share factors and the rest stays small.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product as combinations
from typing import TypeAlias

from symad.core.dims import Shape, same_dim
from symad.core.graph import Node, op_of
from symad.numeric.passes.algebra.block_matrices import on_diagonal
from symad.numeric.passes.algebra.networks import (
    Factor,
    Joining,
    Misfit,
    Name,
    Names,
    NetworkTerm,
    absorbed,
    atom,
    contracted,
    contracted_now,
    elements,
    product,
    regrouped,
    spread,
)
from symad.ops.basic.arithmetic import Add, Mul, div, mul, signed_sum
from symad.ops.basic.contraction import Einsum
from symad.ops.basic.shaping import Broadcast, Reshape, broadcast_axes, reshape
from symad.ops.basic.sources import Eye, constant, eye

SMALL_RATIO = 8
"""A sum of rests is cheap if the whole value has at least this many times as many elements."""

Signed = tuple[int, NetworkTerm]


@dataclass(frozen=True)
class Merging:
    """Two terms as common factors times a rest each; the rests are arrays over ``names``."""

    common: tuple[Factor, ...]
    rests: tuple[tuple[Factor, ...], tuple[Factor, ...]]
    names: Names
    axes: tuple[Names, ...]

    @property
    def pays(self) -> bool:
        """Whether the rests' sum is no larger than their largest factor, or much smaller than the value."""
        largest = max((elements(names) for rest in self.rests for _, names in rest), default=1)
        return elements(self.names) <= max(largest, elements(set(self.value_names)) // SMALL_RATIO)

    @property
    def value_names(self) -> Names:
        """All names of the value."""
        return tuple(n for axis in self.axes for n in axis)

    def rest(self, signs: tuple[int, int]) -> Node:
        """The sum of the rests; a rest on a diagonal of the other is added to that diagonal only."""
        sums = [(s, r) for s, r in zip(signs, self.rests, strict=True) if not _identities(r)]
        on_diagonals = [(s, r) for s, r in zip(signs, self.rests, strict=True) if _identities(r)]
        if not sums:
            sums.append(on_diagonals.pop(0))
        whole = signed_sum([(s, _over(rest, self.names)) for s, rest in sums])
        for sign, rest in on_diagonals:
            whole = _plus_diagonal(whole, self.names, sign, rest)
        return whole

    def merged(self, rest: Node) -> NetworkTerm:
        """The two terms as one, given the sum of their rests."""
        return NetworkTerm(tuple(absorbed([*self.common, (rest, self.names)])), self.axes)


def _identities(factors: Sequence[Factor]) -> list[Names]:
    """The axis names of the identity matrices among some factors."""
    return [names for node, names in factors if isinstance(node.op, Eye)]


def _plus_diagonal(whole: Node, names: Names, sign: int, factors: Sequence[Factor]) -> Node:
    first = {other: one for one, other in _identities(factors)}
    arrays = [(node, own) for node, own in factors if not isinstance(node.op, Eye)]
    needed = tuple(dict.fromkeys(first.get(n, n) for n in names))
    labels = tuple(needed.index(first.get(n, n)) for n in names)
    return on_diagonal(whole, _over(arrays, needed), labels, tuple(range(len(needed))), sign)


def _common(
    one: NetworkTerm, other: NetworkTerm, joint: Mapping[tuple[Name, Name], Name]
) -> tuple[list[Factor], list[list[Factor]]]:
    """The factors that two terms have in common, and the other factors of each."""
    common: list[Factor] = []
    rest = [list(one.factors), list(other.factors)]
    for node, own in one.factors:
        for candidate in rest[1]:
            pairs = list(zip(own, candidate[1], strict=True)) if candidate[0] is node else [None]
            if all(pair in joint for pair in pairs):
                common.append((node, tuple(joint[pair] for pair in pairs if pair is not None)))
                rest[0].remove((node, own))
                rest[1].remove(candidate)
                break
    return common, rest


def merging(one: NetworkTerm, other: NetworkTerm) -> Merging:
    """How two terms of one shape can be added: their common factors and their rests.

    Raises:
        Misfit: the axes of the two terms are split differently.
    """
    one, other = _aligned(one, other)
    joint: dict[tuple[Name, Name], Name] = {}
    for a, b in zip(one.names, other.names, strict=True):
        joint.setdefault((a, b), Name(a.size))
    names = iter(zip(one.names, other.names, strict=True))
    axes = tuple(tuple(joint[next(names)] for _ in axis) for axis in one.axes)
    common, rest = _common(one, other, joint)
    rests = tuple(
        _with_identities(
            rest[k], {pair[k]: [j for p, j in joint.items() if p[k] is pair[k]] for pair in joint}
        )
        for k in (0, 1)
    )
    used = [n for part in rests for _, own in sorted(part, key=lambda f: -elements(f[1])) for n in own]
    largest = max((own for part in rests for _, own in part), key=elements, default=())
    order = (*largest, *(n for axis in axes for n in axis))
    return Merging(
        tuple(common), (rests[0], rests[1]), tuple(n for n in dict.fromkeys(order) if n in set(used)), axes
    )


def _aligned(one: NetworkTerm, other: NetworkTerm) -> tuple[NetworkTerm, NetworkTerm]:
    """Both terms with their axes split at the same places."""
    while True:
        joining = Joining()
        for left, right in zip(one.axes, other.axes, strict=True):
            for x, y in zip(left, right, strict=False):
                if not same_dim(x.size, y.size):
                    long, short = (x, y) if elements((x,)) > elements((y,)) else (y, x)
                    joining.cut(long, short)
                    break
            else:
                if len(left) != len(right):
                    raise Misfit
                continue
            break
        if not joining.parts:
            return one, other
        one, other = joining.term(one), joining.term(other)


def _with_identities(factors: Sequence[Factor], joint: Mapping[Name, Sequence[Name]]) -> tuple[Factor, ...]:
    """Factors under joint names; a name that became several is expressed by identity matrices."""
    made = [(node, tuple(joint[n][0] for n in names)) for node, names in factors]
    for several in joint.values():
        made += [(eye(other.size), (several[0], other)) for other in several[1:]]
    return tuple(made)


def _over(factors: Sequence[Factor], names: Names) -> Node:
    """A product of factors as an array over the given names."""
    if not factors:
        return broadcast_axes(constant(1), tuple(n.size for n in names), ())
    node, own = contracted(factors, set(names), names)
    return spread(node, own, names)


def total(terms: Sequence[Signed], most: int, known: set[Node] | None = None) -> list[NetworkTerm]:
    """A sum of terms with fewer terms: cheap merges first, then others until at most ``most`` are left.

    Args:
        terms: the terms with their signs.
        most: the number of terms that may be left.
        known: sums that have been computed before and therefore cost nothing; new sums are added to it.
    """
    rest, made = list(terms), set[Node]() if known is None else known
    while len(rest) > 1:
        best: tuple[int, int, int, Merging, Node] | None = None
        for j in range(1, len(rest)):
            for i in range(j):
                found = merging(rest[i][1], rest[j][1])
                cost = elements(found.names)
                if best is not None and cost >= best[0]:
                    continue
                whole = found.rest((rest[i][0], rest[j][0]))
                if len(rest) > most or found.pays or whole in made:
                    best = (cost, i, j, found, whole)
        if best is None:
            break
        _, i, j, found, whole = best
        made.add(whole)
        rest = [t for k, t in enumerate(rest) if k not in (i, j)] + [(1, found.merged(whole))]
    return [_signed(sign, term) for sign, term in rest]


def _signed(sign: int, term: NetworkTerm) -> NetworkTerm:
    return (
        term if sign == 1 else NetworkTerm(tuple(absorbed([(constant(sign), ()), *term.factors])), term.axes)
    )


def written_out(terms: Sequence[NetworkTerm], shape: Shape) -> Node:
    """The array of a sum of terms."""
    (term,) = total([(1, t) for t in terms], 1)
    names: list[Name] = []
    factors = list(term.factors)
    for name in term.names:
        if name in names:
            names.append(Name(name.size))
            factors.append((eye(name.size), (name, names[-1])))
        else:
            names.append(name)
    numbers = [node for node, own in factors if not own]
    arrays = [f for f in factors if f[1]]
    if numbers and arrays:
        small = min(range(len(arrays)), key=lambda k: elements(arrays[k][1]))
        arrays[small] = (mul(*numbers, arrays[small][0]), arrays[small][1])
    elif numbers:
        return reshape(broadcast_axes(mul(*numbers), tuple(n.size for n in names), ()), shape)
    return reshape(_over(arrays, tuple(names)), shape)


# ---- networks through ops ------------------------------------------------------------------------


Rules: TypeAlias = "dict[type, Callable[[TermPass, Node], list[NetworkTerm] | None]]"


class TermPass(ABC):
    """A pass over a graph that represents some nodes as sums of terms, and others as arrays."""

    def __init__(self, rules: Rules) -> None:
        """Begin with the rules for the ops whose values may have terms."""
        self.rules = rules
        self.terms: dict[Node, list[NetworkTerm]] = {}
        self.made: dict[Node, Node] = {}

    def by_rule(self, node: Node) -> list[NetworkTerm] | None:
        """The terms of a node whose arguments have been rewritten; None if no rule gives them."""
        rule = self.rules.get(type(node.op))
        try:
            return rule(self, node) if rule and node.args else None
        except Misfit:
            return None

    def whole(self, node: Node) -> Node:
        """The node as one array."""
        if node not in self.made:
            self.made[node] = written_out([self.closed(t) for t in self.terms[node]], node.shape)
        return self.made[node]

    def product(
        self, terms: Sequence[NetworkTerm], labels: Sequence[Sequence[Hashable]], output: Sequence[Hashable]
    ) -> NetworkTerm:
        """The contraction of some terms."""
        return product(terms, labels, output, self.reduced)

    def closed(self, term: NetworkTerm) -> NetworkTerm:
        """The term as it is written out."""
        return term

    def reduced(self, factors: Sequence[Factor], kept: set[Name]) -> list[Factor]:
        """The factors of a product, combined; by default all sums are computed."""
        return contracted_now(factors, kept)

    @abstractmethod
    def add(self, node: Node) -> None:
        """Rewrite a node whose arguments have been rewritten."""

    @abstractmethod
    def total(self, terms: Sequence[Signed]) -> list[NetworkTerm]:
        """The sum of some terms."""


def operand(run: TermPass, node: Node) -> list[NetworkTerm]:
    """The terms of a node; for a broadcast array the terms of the smaller array."""
    if node in run.terms:
        return run.terms[node]
    if isinstance(node.op, Broadcast):
        return [_broadcast(node, term) for term in operand(run, node.args[0])]
    return [atom(run.made[node])]


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


RULES: Rules = {
    Add: add_terms,
    Mul: mul_terms,
    Einsum: einsum_terms,
    Broadcast: broadcast_terms,
    Reshape: reshape_terms,
}
