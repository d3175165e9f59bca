"""Sums of tensor networks: two terms become one where they share factors and the rest stays small."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from symad.dims import Shape, same_dim
from symad.graph import Node
from symad.numeric.passes.contracting import Factor, Name, Names, absorbed, contracted, elements, spread
from symad.numeric.passes.networks import Joining, Misfit, Term
from symad.ops.arithmetic import mul, signed_sum
from symad.ops.shaping import broadcast_axes, reshape
from symad.ops.sources import constant, eye

SMALL = 8
"""A sum of two terms is written out if it has at most one element for so many of the whole value."""

Signed = tuple[int, Term]


@dataclass(frozen=True)
class Merging:
    """Two terms as common factors times a rest: rests are arrays over ``names``."""

    common: tuple[Factor, ...]
    rests: tuple[tuple[Factor, ...], tuple[Factor, ...]]
    names: Names
    axes: tuple[Names, ...]

    @property
    def pays(self) -> bool:
        """Whether the sum of the rests is no larger than one of their factors, or small for the value."""
        largest = max((elements(names) for rest in self.rests for _, names in rest), default=1)
        return elements(self.names) <= max(largest, elements(set(self.value_names)) // SMALL)

    @property
    def value_names(self) -> Names:
        """All names of the value."""
        return tuple(n for axis in self.axes for n in axis)

    def merged(self, signs: tuple[int, int]) -> Term:
        """The one term."""
        parts = [(s, _over(rest, self.names)) for s, rest in zip(signs, self.rests, strict=True)]
        whole = (signed_sum(parts), self.names)
        return Term(tuple(absorbed([*self.common, whole])), self.axes)


def merging(one: Term, other: Term) -> Merging:
    """How two terms of one shape can be added.

    Raises:
        Misfit: their axes cut the positions differently.
    """
    one, other = _aligned(one, other)
    joint: dict[tuple[Name, Name], Name] = {}
    for a, b in zip(one.names, other.names, strict=True):
        joint.setdefault((a, b), Name(a.size))
    names = iter(zip(one.names, other.names, strict=True))
    axes = tuple(tuple(joint[next(names)] for _ in axis) for axis in one.axes)
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


def _aligned(one: Term, other: Term) -> tuple[Term, Term]:
    """Both terms with their names cut at the same places."""
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
    """Factors under joint names; names that became several are held together by identity matrices."""
    made = [(node, tuple(joint[n][0] for n in names)) for node, names in factors]
    for several in joint.values():
        made += [(eye(other.size), (several[0], other)) for other in several[1:]]
    return tuple(made)


def _over(factors: Sequence[Factor], names: Names) -> Node:
    """A product of factors as an array over some names."""
    if not factors:
        return broadcast_axes(constant(1), tuple(n.size for n in names), ())
    node, own = contracted(factors, set(names), names)
    return spread(node, own, names)


def total(terms: Sequence[Signed], most: int) -> list[Term]:
    """A sum of terms as few terms: those that merge without growing, and the others until few are left."""
    rest = list(terms)
    while len(rest) > 1:
        best: tuple[int, int, int, Merging] | None = None
        for j in range(1, len(rest)):
            for i in range(j):
                found = merging(rest[i][1], rest[j][1])
                cost = elements(found.names)
                if (len(rest) > most or found.pays) and (best is None or cost < best[0]):
                    best = (cost, i, j, found)
        if best is None:
            break
        _, i, j, found = best
        whole = found.merged((rest[i][0], rest[j][0]))
        rest = [t for k, t in enumerate(rest) if k not in (i, j)] + [(1, whole)]
    return [_signed(sign, term) for sign, term in rest]


def _signed(sign: int, term: Term) -> Term:
    return term if sign == 1 else Term(tuple(absorbed([(constant(sign), ()), *term.factors])), term.axes)


def written_out(terms: Sequence[Term], shape: Shape) -> Node:
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
