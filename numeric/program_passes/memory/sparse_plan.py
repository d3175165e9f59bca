"""The layout of the parts of a sparse matrix, side by side in one array, from which the entries are gathered.

Parts are often views, such as slices of the arrays of a stencil. These arrays are then computed side by side,
and the gather reads their elements directly, so that no part is copied.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from symad.core.nodes import Moved
from symad.core.questions import evaluate
from symad.numeric.program.expressions import Compute, Expression, Read, Value
from symad.ops.arrays.gathering import Gather
from symad.ops.basic.sources import ArrayConstant
from symad.ops.sparse.csr import CompressedRows, IntArray, as_slice

MAX_ARRAYS = 48
"""Arrays side by side up to which entries are gathered.

In C a Jacobian of 4 parts takes 0.92 of the time, of 8 0.79, of 48 0.65, of 96 1.02
(bench_layout_thresholds.py, "arrays side by side").
"""


@dataclass(frozen=True, eq=False)
class EntrySum:
    """Entries to which several parts contribute, added up at ``start`` + 0, 1, ..., ``size`` − 1.

    Part ``terms[k]`` is added at the positions ``where[k]`` among these. Number i of the sum is the entry
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
    """The starts of arrays side by side, and the position among them of every entry of a matrix.

    If ``index`` is None, the arrays are only sums, and every part is assigned to evenly spaced entries.
    """

    starts: dict[Expression, int]
    sums: tuple[EntrySum, ...]
    total: int
    index: IntArray | None
    single: tuple[int, ...]
    """The parts that share entries with no other part, as positions among the arguments."""
    direct: dict[Expression, int]
    """Of these, the arrays that are computed among the entries, and their positions among the arguments."""


class Planner:
    """Plans the layout of sparse matrices, from the values of a program."""

    def __init__(
        self,
        made: Mapping[Value, Expression],
        count: Callable[[Expression], int],
        fits: Callable[[Expression], bool],
    ) -> None:
        """A planner for one program.

        Args:
            made: the expression of each value.
            count: the number of reads of a value, by results too.
            fits: whether an array can be computed in another array.
        """
        self.made = made
        self.count = count
        self.fits = fits

    def side_by_side(self, matrix: Compute, always: bool) -> SideBySide | None:
        """The layout of the parts of a sparse matrix; None if each part is best assigned to its entries.

        Args:
            matrix: a `CompressedRows` of its parts.
            always: gather entries even where strided assignments could write them.
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
        there = len(args) == 1 and not self.fits(args[0])  # all entries are in one array that exists already
        if not gathers and (even < len(op.columns) or there):
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
                sums.append(self._sum(matrix, group, places, total, starts))
                total += len(places)
        if len(starts) + len(sums) > MAX_ARRAYS:
            return None
        if not gathers:
            direct = self._direct(args, single, starts)
            return SideBySide(starts, tuple(sums), total, None, tuple(single), direct)
        index = self._index(matrix, single, sums, starts)
        return SideBySide(starts, tuple(sums), total, index, tuple(single), {})

    def _index(
        self, matrix: Compute, single: Sequence[int], sums: Sequence[EntrySum], starts: dict[Expression, int]
    ) -> IntArray:
        """For each entry of the matrix its place among the arrays side by side."""
        op = matrix.op
        assert isinstance(op, CompressedRows)
        index = np.zeros(len(op.columns), np.int64)
        for k in single:
            index[op.places_of[k]] = np.ravel(self._positions(matrix.args[k], starts))
        for found in sums:
            index[found.places] = found.start + np.arange(found.size)
        return index

    def _direct(
        self, args: Sequence[Expression], single: Sequence[int], starts: Container[Expression]
    ) -> dict[Expression, int]:
        """The parts that only the matrix reads, and that are computed at their entries."""
        own = {args[k]: k for k in reversed(single) if self.count(args[k]) == args.count(args[k])}
        return {arg: k for arg, k in own.items() if self.fits(arg) and arg not in starts}

    def _sum(
        self,
        matrix: Compute,
        group: Sequence[int],
        places: IntArray,
        start: int,
        starts: dict[Expression, int],
    ) -> EntrySum:
        """The sum of the parts of a group; the first part gets a place if it can be computed there."""
        op, args = matrix.op, matrix.args
        assert isinstance(op, CompressedRows)
        where = tuple(np.searchsorted(places, op.places_of[k]) for k in group)
        first = args[group[0]]
        if self.fits(first) and self.count(first) == 1 and _is_range(where[0]):
            starts[first] = start + int(where[0][0])
        return EntrySum(start, tuple(args[k] for k in group), where, places)

    def views_only(self, args: Sequence[Expression], found: SideBySide) -> Iterator[Value]:
        """The views between the arguments of a matrix and the arrays side by side, with repetitions."""
        summed = {term for each in found.sums for term in each.terms}
        for arg in args if found.index is not None else ():
            here = self._moved(arg)
            if here is not None and arg not in found.starts and arg not in summed:
                if isinstance(arg, Read):
                    yield arg.value
                yield from self.views_only(here.args, found)

    def _moved(self, expression: Expression) -> Compute | None:
        """The op that only moves the elements of its arguments, by which an array is computed; else None."""
        made = self.made.get(expression.value) if isinstance(expression, Read) else expression
        return made if isinstance(made, Compute) and _is_moved(made) else None

    def _sources(self, expression: Expression) -> list[Expression]:
        """The arrays from which a part is read: those of its views, if they can be computed side by side."""
        moved = None if self.fits(expression) else self._moved(expression)
        if moved is None:
            return [expression]
        behind = [source for arg in _given(moved) for source in self._sources(arg)]
        # an array that is not computed side by side is copied, so that all of it should be read
        whole = prod(expression.shape) >= sum(prod(source.shape) for source in behind)
        return behind if whole or all(map(self.fits, behind)) else [expression]

    def _positions(self, expression: Expression, starts: Mapping[Expression, int]) -> Any:
        """The positions of the elements of an array among the arrays side by side."""
        if expression in starts:
            places = starts[expression] + np.arange(prod(expression.shape))
            return places.reshape(expression.shape)
        moved = self._moved(expression)
        assert moved is not None
        given = tuple(self._positions(arg, starts) for arg in _given(moved))
        return evaluate(moved.op, (*given, *(_constant(arg) for arg in moved.args[len(given) :])))


def _constant(expression: Expression) -> np.ndarray:
    """The array of a constant."""
    assert isinstance(expression, Compute)
    assert isinstance(expression.op, ArrayConstant)
    return expression.op.array


def _groups(op: CompressedRows) -> list[list[int]]:
    """The parts of a matrix, grouped so that parts with common entries are in one group."""
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
    """Whether an op only moves the elements of its arguments, each of them perhaps several times."""
    op = array.op
    if isinstance(op, Gather):
        index = array.args[1]
        constant = isinstance(index, Compute) and isinstance(index.op, ArrayConstant)
        return constant and _constant(index).dtype.kind in "iu"
    return op.moves <= Moved.JOINED


def _given(array: Compute) -> tuple[Expression, ...]:
    """The arguments whose elements the op moves."""
    return array.args[:1] if isinstance(array.op, Gather) else array.args
