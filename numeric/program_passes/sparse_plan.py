"""The parts of a sparse matrix side by side in one array, from where the entries are gathered.

Parts are often views: slices of arrays that stencils were evaluated on. The arrays themselves are computed
where they go, and the gather looks through the views, so that no part is copied.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from symad.core.questions import evaluate
from symad.numeric.program.expressions import Compute, Expression, Read, Value
from symad.ops.arrays.contraction import Einsum
from symad.ops.arrays.gathering import Gather
from symad.ops.arrays.shaping import Broadcast, Reshape, Slice
from symad.ops.arrays.sources import ArrayConstant, Constant
from symad.ops.arrays.stacking import Concatenate, Stack
from symad.ops.sparse.csr import CompressedRows, IntArray, as_slice

LEAST = 0.5
"""The part of an array that a view must show, to be looked through."""

MANY = 4
"""If one of so many entries is a number, all entries are copied before the others are computed."""

MOST = 24
"""With more arrays than this, entries are not gathered."""


@dataclass(frozen=True, eq=False)
class Sum:
    """Entries to which several parts contribute: they are added up at ``start`` + 0, 1, ..., ``size`` − 1.

    Part ``terms[k]`` goes to the positions ``where[k]`` among them; entry number i of the sum stands at
    ``places[i]`` of the matrix.
    """

    start: int
    terms: tuple[Expression, ...]
    where: tuple[IntArray, ...]
    places: IntArray

    @property
    def size(self) -> int:
        """The number of entries."""
        return len(self.places)


@dataclass(frozen=True, eq=False)
class SideBySide:
    """Where arrays stand side by side, and the position among them of every entry of a matrix.

    Without an index the arrays are only sums, and all parts go to places that are evenly spaced.
    """

    starts: dict[Expression, int]
    sums: tuple[Sum, ...]
    total: int
    index: IntArray | None
    single: tuple[int, ...]
    """The parts that meet no others, as positions among the arguments."""
    direct: dict[Expression, int]
    """Of these, arrays that are computed where they go first."""


class Planner:
    """What is known of the values of a program when matrices are planned."""

    def __init__(
        self,
        made: Mapping[Value, Expression],
        count: Callable[[Expression], int],
        fits: Callable[[Expression], bool],
    ) -> None:
        """Plan with what there is.

        Args:
            made: the expression of each value.
            count: how often a value is read, by results, too.
            fits: whether an array can be computed where it is told to be.
        """
        self.made = made
        self.count = count
        self.fits = fits

    def side_by_side(self, matrix: Compute, always: bool) -> SideBySide | None:
        """Where the parts of a sparse matrix stand; None where each is best assigned to its places.

        Args:
            matrix: a `CompressedRows` of its parts.
            always: gather entries even if they could be assigned with even steps.
        """
        op, args = matrix.op, matrix.args
        assert isinstance(op, CompressedRows)
        if not args:
            return None
        groups = _groups(op)
        single = [group[0] for group in groups if len(group) == 1]
        joined = [np.unique(np.concatenate([op.places_of[k] for k in group])) for group in groups]
        even = sum(len(places) for places in joined if isinstance(as_slice(places), slice))
        gathers = always or 2 * even < len(op.columns)
        if not gathers and (even < len(op.columns) or self._is_mostly_there(matrix, single)):
            return None
        behind = [s for k in single for s in self._sources(args[k])] if gathers else []
        starts: dict[Expression, int] = {}
        total = 0
        for source in dict.fromkeys(behind):
            starts[source] = total
            total += prod(source.shape)
        sums = []
        for group, places in zip(groups, joined, strict=True):
            if len(group) > 1:
                where = tuple(np.searchsorted(places, op.places_of[k]) for k in group)
                sums.append(Sum(total, tuple(args[k] for k in group), where, places))
                first = args[group[0]]
                if self.fits(first) and self.count(first) == 1 and _is_range(where[0]):
                    starts[first] = total + int(where[0][0])
                total += len(places)
        if len(starts) + len(sums) > MOST:
            return None
        if not gathers:
            own = {args[k]: k for k in reversed(single) if self.count(args[k]) == args.count(args[k])}
            direct = {arg: k for arg, k in own.items() if self.fits(arg) and arg not in starts}
            return SideBySide(starts, tuple(sums), total, None, tuple(single), direct)
        index = np.zeros(len(op.columns), np.int64)
        for k in single:
            index[op.places_of[k]] = np.ravel(self._positions(args[k], starts))
        for found in sums:
            index[found.places] = found.start + np.arange(found.size)
        return SideBySide(starts, tuple(sums), total, index, tuple(single), {})

    def views_only(self, args: Sequence[Expression], found: SideBySide) -> Iterator[Value]:
        """The views between a matrix of ``args`` and the arrays side by side; some several times."""
        summed = {term for each in found.sums for term in each.terms}
        for arg in args if found.index is not None else ():
            here = self._moved(arg)
            if here is not None and arg not in found.starts and arg not in summed:
                if isinstance(arg, Read):
                    yield arg.value
                yield from self.views_only(here.args, found)

    def _is_mostly_there(self, matrix: Compute, single: Sequence[int]) -> bool:
        """Whether many entries are numbers, or all are in one array that was made before."""
        op, args = matrix.op, matrix.args
        assert isinstance(op, CompressedRows)
        numbers = sum(len(op.places_of[k]) for k in single if is_number(args[k]))
        return numbers * MANY >= len(op.columns) or (len(args) == 1 and not self.fits(args[0]))

    def _moved(self, expression: Expression) -> Compute | None:
        """What makes an array whose elements are those of its arguments in another order; else None."""
        made = self.made.get(expression.value) if isinstance(expression, Read) else expression
        return made if isinstance(made, Compute) and _is_moved(made) else None

    def _sources(self, expression: Expression) -> list[Expression]:
        """The arrays that a part is read from: those behind its views, if they can be computed in place."""
        moved = None if self.fits(expression) else self._moved(expression)
        if moved is None:
            return [expression]
        behind = [source for arg in _given(moved) for source in self._sources(arg)]
        least = LEAST if all(map(self.fits, behind)) else 1  # what is not shown is copied in vain
        enough = prod(expression.shape) >= least * sum(prod(source.shape) for source in behind)
        return behind if enough else [expression]

    def _positions(self, expression: Expression, starts: Mapping[Expression, int]) -> Any:
        """For each element of an array where it stands among the arrays side by side."""
        if expression in starts:
            places = starts[expression] + np.arange(prod(expression.shape))
            return places.reshape(expression.shape)
        moved = self._moved(expression)
        assert moved is not None
        given = tuple(self._positions(arg, starts) for arg in _given(moved))
        return evaluate(moved.op, (*given, *(_constant(arg) for arg in moved.args[len(given) :])))


def is_number(expression: Expression) -> bool:
    """Whether an expression is one number."""
    return isinstance(expression, Compute) and isinstance(expression.op, Constant)


def _constant(expression: Expression) -> np.ndarray:
    """A constant array."""
    assert isinstance(expression, Compute)
    assert isinstance(expression.op, ArrayConstant)
    return expression.op.array


def _groups(op: CompressedRows) -> list[list[int]]:
    """The parts of a matrix; those that meet somewhere are together."""
    owner = np.full(len(op.columns), -1)
    groups: dict[int, list[int]] = {}
    for k, places in enumerate(op.places_of):
        met = [g for g in np.unique(owner[places]).tolist() if g >= 0]
        groups[k] = [*(j for g in met for j in groups.pop(g)), k]
        owner[np.isin(owner, met)] = k
        owner[places] = k
    return [sorted(group) for group in groups.values()]


def _is_range(where: IntArray) -> bool:
    return bool(len(where)) and np.array_equal(where, np.arange(where[0], where[0] + len(where)))


def _is_moved(array: Compute) -> bool:
    """Whether the elements of an array are those of its arguments, in another order."""
    op = array.op
    if isinstance(op, Einsum):
        return len(op.inputs) == 1 and set(op.inputs[0]) == set(op.output)
    if isinstance(op, Gather):
        index = array.args[1]
        constant = isinstance(index, Compute) and isinstance(index.op, ArrayConstant)
        return constant and _constant(index).dtype.kind in "iu"
    return isinstance(op, (Slice, Reshape, Broadcast, Stack, Concatenate))


def _given(array: Compute) -> tuple[Expression, ...]:
    """The arguments whose elements a moved array has."""
    return array.args[:1] if isinstance(array.op, Gather) else array.args
