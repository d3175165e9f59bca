"""Products of a few arrays with named axes, two at a time, in the order of least work."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Sequence
from dataclasses import dataclass
from math import prod

from symad.core.dims import Dim
from symad.core.graph import Node
from symad.ops.basic.arithmetic import mul
from symad.ops.basic.contraction import contract, permute
from symad.ops.basic.shaping import broadcast_axes

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
