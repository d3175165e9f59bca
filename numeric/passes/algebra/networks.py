"""Tensor networks: arrays as products of smaller ones, with the axes of each named.

A unit seed is a product of identity matrices. Through many ops, a tangent that starts from it remains a
product, of rows x_bi of the data, an identity δ_jq, and a matrix M_bjk. As an array it has an element for
each combination of the names, while its factors are small. A `NetworkTerm` keeps the factors. Identities need
no factor: an axis name that appears twice says that the value is zero off the diagonal.

    value[axes] = Π factors[names], where equal names mean equal positions, and 0 elsewhere.

Multiplying networks joins names, and summing over a name contracts the factors that have it. Two terms of a
sum become one if they share factors and the sum of the remaining factors stays small.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Hashable, Iterable, Sequence
from dataclasses import dataclass
from math import prod

import sympy

from symad.core.dims import Dim, Shape, as_dim, same_dim, size
from symad.core.graph import Node
from symad.ops.basic.arithmetic import mul
from symad.ops.basic.contraction import contract, permute
from symad.ops.basic.shaping import broadcast_axes, reshape
from symad.ops.basic.sources import dimension

# ---- products of named arrays --------------------------------------------------------------------


TYPICAL = 100
"""The size assumed for a symbolic dimension when costs are compared."""

MAX_EXHAUSTIVE = 8
"""Products of at most this many factors are planned by trying every order.

Origin: it bounds the time of planning: the number of orders grows faster than exponentially.
"""

MATRIX_SPEEDUP = 10
"""The assumed ratio of the time of a multiplication in other products to that in a matrix product."""

FREE_SHARE = 1e-6
"""The share of its work that counts for a product of free arrays, which is not computed in every call."""


@dataclass(frozen=True, eq=False)
class Name:
    """The name of an axis, with its length; two names are the same only if they are one object."""

    size: Dim


Names = tuple[Name, ...]
Factor = tuple[Node, Names]


def elements(names: Iterable[Name]) -> int:
    """The number of combinations of positions along some named axes."""
    return prod(n.size if isinstance(n.size, int) else TYPICAL for n in names)


def summed(factors: Sequence[Factor], kept: set[Name]) -> list[Factor]:
    """The factors, with each factor that has a name not kept contracted with all others that have it."""
    rest = list(factors)
    while True:
        gone = next((n for _, names in rest for n in names if n not in kept), None)
        if gone is None:
            return rest
        group = [f for f in rest if gone in f[1]]
        while True:
            inside = {n for _, names in group for n in names} - kept
            larger = [f for f in rest if inside & set(f[1])]
            if len(larger) == len(group):
                break
            group = larger
        rest = [f for f in rest if f not in group]
        rest.append(contracted(group, kept))


def absorbed(factors: Sequence[Factor]) -> list[Factor]:
    """The factors, each multiplied into the smallest other one that has all its names; numbers stay apart."""
    numbers = [f for f in factors if not f[1]]
    arrays = sorted((f for f in factors if f[1]), key=lambda f: elements(f[1]))
    done: list[Factor] = []
    for k, (node, names) in enumerate(arrays):
        for j in range(k + 1, len(arrays)):
            other, wide = arrays[j]
            if set(names) <= set(wide):
                arrays[j] = (mul(other, spread(node, names, wide)), wide)
                break
        else:
            done.append((node, names))
    if len(numbers) > 1:
        numbers = [(mul(*(node for node, _ in numbers)), ())]
    return [*numbers, *done]


def spread(node: Node, names: Names, wide: Names) -> Node:
    """An array broadcast along the names that it lacks."""
    order = [n for n in wide if n in names]
    turned = permute(node, [names.index(n) for n in order])
    return broadcast_axes(turned, tuple(n.size for n in wide), tuple(wide.index(n) for n in order))


def contracted(
    factors: Sequence[Factor], kept: set[Name], order: Names = (), free: Container[Node] = ()
) -> Factor:
    """The product of factors summed over all names that are not kept, two at a time.

    The result has its names in the given order if the last product is an outer product, and in any order
    otherwise. Products of ``free`` arrays alone count as no work.
    """
    if len(factors) == 1:
        node, names = factors[0]
        out = tuple(n for n in names if n in kept)
        return contract([names], out, node), out
    made: dict[int, Factor] = {1 << k: factor for k, factor in enumerate(factors)}
    costless = sum(1 << k for k, (node, _) in enumerate(factors) if node in free)
    for one, other in plan([names for _, names in factors], kept, costless):
        outside = {n for k, (_, own) in enumerate(factors) if not (one | other) >> k & 1 for n in own}
        last = one + other == (1 << len(factors)) - 1
        made[one | other] = pairwise([made[one], made[other]], kept | outside, order if last else ())
    return made[(1 << len(factors)) - 1]


def pairwise(pair: Sequence[Factor], kept: set[Name], order: Names = ()) -> Factor:
    """The product of two factors: common names first, then those of the factor with the longest own axis."""
    (a, left), (b, right) = pair
    every = {*left, *right}
    if every <= kept and every == set(order):
        return contract([left, right], order, a, b), order
    rows = [n for n in left if n in kept and n not in right]
    columns = [n for n in right if n in kept and n not in left]
    if max((elements((n,)) for n in columns), default=0) > max((elements((n,)) for n in rows), default=0):
        a, left, rows, b, right, columns = b, right, columns, a, left, rows
    out = (*(n for n in left if n in kept and n in right), *rows, *columns)
    return contract([left, right], out, a, b), out


def plan(factors: Sequence[Names], kept: set[Name], costless: int = 0) -> list[tuple[int, int]]:
    """The pairs of factor sets (bit masks) to multiply, step by step, with the least total work.

    A product whose factors are all in ``costless`` counts almost nothing.

    Up to `MAX_EXHAUSTIVE` factors every order is compared, by dynamic programming over their subsets;
    for more factors each step takes the cheapest pair.
    """
    count = len(factors)
    whole = (1 << count) - 1
    sets = [frozenset(names) for names in factors]

    def left_of(mask: int) -> frozenset[Name]:
        """The names that remain in the product of some factors."""
        inside = frozenset().union(*(s for k, s in enumerate(sets) if mask >> k & 1))
        outside = kept.union(*(s for k, s in enumerate(sets) if not mask >> k & 1))
        return inside & outside

    if count > MAX_EXHAUSTIVE:
        return _greedy_plan(count, left_of)
    names = {1 << k: sets[k] for k in range(count)}
    best: dict[int, tuple[float, tuple[int, int]]] = {1 << k: (0.0, (0, 0)) for k in range(count)}
    for mask in range(1, whole + 1):
        if mask in best:
            continue
        names[mask] = left_of(mask)
        part = (mask - 1) & mask
        while part > mask ^ part:
            rest = mask ^ part
            step = work(names[part], names[rest], names[mask])
            cost = best[part][0] + best[rest][0] + step * (FREE_SHARE if mask | costless == costless else 1)
            if mask not in best or cost < best[mask][0]:
                best[mask] = (cost, (part, rest))
            part = (part - 1) & mask
    steps, todo = [], [whole]
    while todo:
        mask = todo.pop()
        if mask & (mask - 1):
            steps.append(best[mask][1])
            todo += best[mask][1]
    return steps[::-1]


def _greedy_plan(count: int, left_of: Callable[[int], frozenset[Name]]) -> list[tuple[int, int]]:
    masks = [1 << k for k in range(count)]
    steps = []
    while len(masks) > 1:
        pairs = [(a, b) for j, a in enumerate(masks) for b in masks[:j]]
        a, b = min(pairs, key=lambda p: work(left_of(p[0]), left_of(p[1]), left_of(p[0] | p[1])))
        masks = [m for m in masks if m not in (a, b)] + [a | b]
        steps.append((a, b))
    return steps


def work(one: frozenset[Name], other: frozenset[Name], out: frozenset[Name]) -> float:
    """The cost of a product of two arrays, in elements written; matrix products count less per element."""
    every = one | other
    matrices = every - out and out & one - other and out & other - one
    return elements(out) + elements(every) / (MATRIX_SPEEDUP if matrices else 1)


class Misfit(Exception):
    """Two axes are split into names of incompatible lengths."""


@dataclass(frozen=True)
class NetworkTerm:
    """A product of arrays; an axis with several names runs over their positions in row-major order."""

    factors: tuple[Factor, ...]
    axes: tuple[Names, ...]

    @property
    def names(self) -> Names:
        """The names of all axes in order."""
        return tuple(name for axis in self.axes for name in axis)


def atom(node: Node) -> NetworkTerm:
    """An array as a term with one factor; axes of length 1 have no name."""
    axes = tuple(() if d == 1 else (Name(d),) for d in node.shape)
    names = tuple(name for axis in axes for name in axis)
    return NetworkTerm(((reshape(node, tuple(n.size for n in names)), names),), axes)


def identity(count: Dim) -> NetworkTerm:
    """The identity matrix: no factors, and one name for both axes."""
    name = Name(count)
    return NetworkTerm((), ((name,), (name,)))


# ---- names ---------------------------------------------------------------------------------------


class Joining:
    """A record of the names that were joined with others or split into two."""

    def __init__(self) -> None:
        """Starts without joined or split names."""
        self.parts: dict[Name, Names] = {}

    def resolved(self, names: Names) -> Names:
        """The current names that some names stand for."""
        done: list[Name] = []
        todo = list(reversed(names))
        while todo:
            name = todo.pop()
            if name in self.parts:
                todo.extend(reversed(self.parts[name]))
            else:
                done.append(name)
        return tuple(done)

    def join(self, one: Names, other: Names) -> None:
        """Identify two axes: they have equal positions from now on.

        Raises:
            Misfit: the names of one have no common refinement with those of the other.
        """
        position = 0
        while True:
            a, b = self.resolved(one), self.resolved(other)
            if len(a) <= position or len(b) <= position:
                if len(a) != len(b):
                    raise Misfit
                return
            x, y = a[position], b[position]
            if x is y or same_dim(x.size, y.size):
                if x is not y:
                    self.parts[y] = (x,)
                position += 1
            elif elements((x,)) > elements((y,)):
                self.cut(x, y)
            else:
                self.cut(y, x)

    def cut(self, name: Name, first: Name) -> None:
        """Split a name in two, the first of which has the length of another name."""
        rest = quotient(name.size, first.size)
        if rest is None:
            raise Misfit
        self.parts[name] = (Name(first.size), Name(rest))

    def term(self, term: NetworkTerm) -> NetworkTerm:
        """The term under its current names."""
        return NetworkTerm(tuple(map(self.factor, term.factors)), tuple(map(self.resolved, term.axes)))

    def factor(self, factor: Factor) -> Factor:
        """A factor under its current names; if a name appears twice, its diagonal is taken."""
        node, names = factor
        new = self.resolved(names)
        if new != names:
            node = reshape(node, tuple(n.size for n in new))
        distinct = tuple(dict.fromkeys(new))
        return (node, new) if distinct == new else (contract([new], distinct, node), distinct)


def quotient(whole: Dim, part: Dim) -> Dim | None:
    """The dimension whole/part; None if it is not an integer."""
    if isinstance(whole, int) and isinstance(part, int):
        return whole // part if part and whole % part == 0 else None
    ratio = sympy.cancel(sympy.S.One * whole / part)
    return as_dim(ratio) if sympy.denom(ratio) == 1 else None


def renamed(term: NetworkTerm) -> NetworkTerm:
    """The term with new names, which no other term has."""
    joining = Joining()
    for name in dict.fromkeys((*term.names, *(n for _, names in term.factors for n in names))):
        joining.parts[name] = (Name(name.size),)
    return NetworkTerm(
        tuple((node, joining.resolved(names)) for node, names in term.factors),
        tuple(map(joining.resolved, term.axes)),
    )


def regrouped(term: NetworkTerm, shape: Shape) -> NetworkTerm:
    """The same elements in row-major order under another shape.

    Raises:
        Misfit: the shape would split a name whose length it does not divide.
    """
    joining = Joining()
    axes: list[Names] = []
    for d in shape:
        axis: list[Name] = []
        while not same_dim(size(n.size for n in axis), d):
            used = sum(map(len, axes)) + len(axis)
            left = joining.resolved(term.names)[used:]
            missing = quotient(d, size(n.size for n in axis))
            if not left or missing is None:
                raise Misfit
            if quotient(missing, left[0].size) is None:
                joining.cut(left[0], Name(missing))
                # another use of the same name has to be split as well: start again with the split names
                return regrouped(joining.term(term), shape)
            axis.append(left[0])
        axes.append(tuple(axis))
    if sum(map(len, axes)) != len(term.names):
        raise Misfit
    return NetworkTerm(term.factors, tuple(axes))


# ---- products ------------------------------------------------------------------------------------


def contracted_now(factors: Sequence[Factor], kept: set[Name]) -> list[Factor]:
    """The factors after all possible sums, and with no factor whose names another factor has."""
    return absorbed(summed(factors, kept))


def product(
    terms: Sequence[NetworkTerm],
    labels: Sequence[Sequence[Hashable]],
    output: Sequence[Hashable],
    reduced: Callable[[Sequence[Factor], set[Name]], list[Factor]] = contracted_now,
) -> NetworkTerm:
    """The contraction of networks: axes with one label are identified, labels not in ``output`` are summed.

    ``reduced`` combines the factors, given the names of the result.

    Raises:
        Misfit: axes with one label are split differently.
    """
    operands = [renamed(term) for term in terms]
    joining, place = Joining(), dict[Hashable, Names]()
    for term, part in zip(operands, labels, strict=True):
        for label, axis in zip(part, term.axes, strict=True):
            joining.join(place.setdefault(label, axis), axis)
    everything = {n for axis in place.values() for n in joining.resolved(axis)}
    axes = tuple(joining.resolved(place[label]) for label in output)
    factors = [joining.factor(f) for term in operands for f in term.factors]
    kept = {n for axis in axes for n in axis}
    repeated = everything - kept - {n for _, names in factors for n in names}
    factors += [(dimension(name.size), ()) for name in repeated]
    return NetworkTerm(tuple(reduced(factors, kept)), axes)
