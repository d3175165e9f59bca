"""Parts of sparse matrices, computed in the array from which the matrix takes its entries.

The parts are side by side in one array, from which the entries are gathered. If all parts go to evenly spaced
entries, they are computed among the entries instead. Values that a part overwrites are computed there, too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import prod

import numpy as np

from symad.core.graph import Node
from symad.core.questions import Array
from symad.numeric.fusion.nest import is_chain
from symad.numeric.passes.memory_layout.pads import boxes_of
from symad.numeric.program.expressions import (
    ZERO,
    Compute,
    Expression,
    Index,
    Read,
    Span,
    Value,
    values_read,
)
from symad.numeric.program.program import Program
from symad.numeric.program.statements import Allocate, Assign, Scatter, Statement, Together, assignments
from symad.numeric.program_passes.memory.allocation import is_fresh, operands, shown
from symad.numeric.program_passes.memory.result_places import IN_PLACE
from symad.numeric.program_passes.memory.sparse_plan import EntrySum, Planner, SideBySide
from symad.ops.arrays.gathering import Gather
from symad.ops.arrays.softmax import LogSoftmaxCotangent, LogSoftmaxTangent, Softmax, SoftmaxTangent
from symad.ops.basic.shaping import Reshape
from symad.ops.basic.sources import array_constant
from symad.ops.elementwise.selection import Select
from symad.ops.sparse.csr import INDEX, CompressedRows, IntArray, as_slice

STEPS = (*IN_PLACE, Select, Softmax, SoftmaxTangent, LogSoftmaxTangent, LogSoftmaxCotangent)
"""Ops whose result may overwrite an operand or be written to any array."""


def put_sparse(program: Program, dtype: str, always: bool) -> Program:
    """The program whose sparse matrices have their parts side by side, or among the entries.

    Args:
        program: a program with one statement for each op.
        dtype: the dtype of the module.
        always: gather entries even where strided assignments could write them.
    """
    matrices = [made for made in program.assigned if is_matrix(made.expression)]
    if not matrices:
        return program
    work = _PlaceChanges(program, program.assigned, dtype)
    for made in matrices:
        work.matrix(made, always)
    return work.program()


class _PlaceChanges:
    """The changes of the statements of a program."""

    def __init__(self, program: Program, every: Sequence[Assign], dtype: str) -> None:
        self.given = program
        self.dtype = dtype
        self.made: dict[Value, Expression] = {made.value: made.expression for made in every}
        self.position = {made.value: k for k, made in enumerate(every)}
        self.kept = {self.owner(value) for result in program.results for value in values_read(result)}
        self.placed: list[Value] = []
        """The values that are computed in an array of parts or of entries."""
        self.before: dict[Value, list[Statement]] = {}
        self.over: dict[Value, Value] = {}
        self.instead: dict[Value, Assign] = {}
        self.unread: set[Value] = set()
        """Views that are not read any more: matrices read their arrays instead."""
        self.readers: dict[Value, list[Value | None]] = {}
        """The values that read each value; None for a result."""
        for made in every:
            for value in values_read(made.expression):
                self.readers.setdefault(value, []).append(made.value)
        for result in program.results:
            for value in values_read(result):
                self.readers.setdefault(value, []).append(None)
        self.planner = Planner(self.made, self.count, self.fits)

    def program(self) -> Program:
        """The program with these changes, without views that are not read any more."""
        ordered: list[Statement] = []
        for statement in self.given.statements:
            made = assignments(statement)
            if len(made) == 1 and made[0].value in self.unread:
                continue
            for each in made:
                ordered += self.before.get(each.value, ())
            written = tuple([self._written(each) for each in made])
            ordered.append(Together(written) if isinstance(statement, Together) else written[0])
        shared = (*self.given.shared, *((value,) for value in self.placed))
        return replace(self.given, statements=tuple(ordered), shared=shared)

    def _written(self, made: Assign) -> Assign:
        return self.instead.get(made.value) or replace(made, over=self.over.get(made.value, made.over))

    def owner(self, value: Value) -> Value:
        """The value that allocated the memory."""
        while (made := self.made.get(value)) is not None and not is_matrix(made):
            base = shown(made)
            if base is None:
                break
            value = base
        return value

    def count(self, expression: Expression) -> int:
        """The number of reads of a value."""
        return len(self.readers.get(expression.value, ())) if isinstance(expression, Read) else 0

    def fits(self, expression: Expression) -> bool:
        """Whether an expression is an array of floats that can be computed in another array."""
        made = self.made.get(expression.value) if isinstance(expression, Read) else None
        if not isinstance(made, Compute) or not made.shape:
            return False
        if not isinstance(made.op, STEPS) and not is_chain(made.op):
            return False
        assert isinstance(expression, Read)
        settled = expression.value in self.over or self.owner(expression.value) in self.kept
        return is_fresh(made) and not settled and not self._is_sum_of_boxes(made)

    def _is_sum_of_boxes(self, made: Compute) -> bool:
        """Whether `put_together` will compute a sum of padded arrays in an array of its own."""
        found = [self.made.get(arg.value) for arg in made.args if isinstance(arg, Read)]
        pads = [pad for pad in found if isinstance(pad, Compute)]
        return len(pads) == len(made.args) and boxes_of(made.op, pads) is not None

    # ---- matrices --------------------------------------------------------------------------------

    def matrix(self, made: Assign, always: bool) -> None:
        """Compute the parts of a matrix in their places, and its entries in an array of their own."""
        matrix = made.expression
        assert isinstance(matrix, Compute)
        assert isinstance(matrix.op, CompressedRows)
        found = self.planner.side_by_side(matrix, always)
        if found is None:
            return
        here: list[Statement] = []
        table = self._side_by_side(found, here)
        entries = Value("entries", (len(matrix.op.columns),))
        if found.index is None:
            self._assigned(entries, matrix, found, table, here)
        else:
            places = _constant(found.index)
            here.append(Assign(entries, Compute(Gather(), (table, places), entries.shape)))
        self.before[made.value] = here
        self.instead[made.value] = Assign(made.value, _in_order(matrix.op, entries))
        views = {*self.planner.views_only(matrix.args, found)}
        for view in sorted(views, key=self.position.__getitem__, reverse=True):
            if all(u is made.value or u in self.unread for u in self.readers[view]):
                self.unread.add(view)

    def _side_by_side(self, found: SideBySide, here: list[Statement]) -> Expression:
        """The array of parts side by side; statements ``here`` copy the parts that are computed elsewhere."""
        alone = next(iter(found.starts)) if len(found.starts) == 1 and not found.sums else None
        if alone is not None and alone.shape and not self.fits(alone):
            return Compute(Reshape((found.total,)), (alone,), (found.total,))
        values = Value("values", (found.total,))
        first: list[Value] = []
        for source, start in found.starts.items():
            size = prod(source.shape)
            view = _view(values, slice(start, start + size, 1), source)
            if self.fits(source):
                assert isinstance(source, Read)
                first.append(self._compute(source.value, view))
            elif source.shape:
                place = Value("", source.shape)
                here += [Assign(place, view), Assign(Value("", source.shape), source, place)]
            else:
                here.append(Scatter(values, _constant(np.array([start])), source))
        if found.total or first or found.index is not None:  # empty parts, too, are views of it
            self._allocate(values, first, here)
        for each in found.sums:
            here += _added(each, found, values)
        return Read(values)

    def _assigned(
        self, entries: Value, matrix: Compute, found: SideBySide, table: Expression, here: list[Statement]
    ) -> None:
        """Add the statements that assign parts to evenly spaced entries, or compute them there."""
        op = matrix.op
        assert isinstance(op, CompressedRows)
        first: list[Value] = []
        for part, k in found.direct.items():
            where = as_slice(op.places_of[k])
            assert isinstance(part, Read)
            assert isinstance(where, slice)
            first.append(self._compute(part.value, _view(entries, where, part)))
        self._allocate(entries, first, here)
        for each in found.sums:
            block = Index(table, (Span(each.start, each.size),))
            here.append(Scatter(entries, _constant(each.places), block))
        for k in found.single:
            if found.direct.get(matrix.args[k]) != k:
                here.append(Scatter(entries, _constant(op.places_of[k]), matrix.args[k]))

    def _allocate(self, array: Value, first: Sequence[Value], here: list[Statement]) -> None:
        """Allocate an array before the earliest of the values ``first``, or at the beginning of ``here``."""
        begun = min(first, key=self.position.__getitem__) if first else None
        (here if begun is None else self.before[begun]).insert(0, Allocate(array))

    # ---- parts -----------------------------------------------------------------------------------

    def _compute(self, value: Value, view: Expression) -> Value:
        """Compute a value in a view, and the operands that it can overwrite. Returns the first of these."""
        place = Value("", value.shape)
        while (earlier := self._earlier(value)) is not None:
            self.over[value] = earlier
            self.placed.append(value)
            value = earlier
        self.over[value] = place
        self.placed.append(value)
        self.before[value] = [Assign(place, view)]
        return value

    def _earlier(self, value: Value) -> Value | None:
        """The operand that a value can overwrite, if nothing else reads it and it fits; else None."""
        made = self.made[value]
        assert isinstance(made, Compute)
        if is_chain(made.op):
            return None
        operand = (made.args[k] for k in operands(made.op, made, self.dtype))
        near = (a for a in operand if a.shape == made.shape and self.count(a) == 1 and self.fits(a))
        found = next(near, None)
        return found.value if isinstance(found, Read) else None


def is_matrix(expression: Expression) -> bool:
    """Whether an expression is a sparse matrix."""
    return isinstance(expression, Compute) and isinstance(expression.op, CompressedRows)


def _in_order(op: CompressedRows, entries: Value) -> Compute:
    """The matrix of an array with all entries in order."""
    every = np.arange(len(op.columns)).astype(INDEX).tobytes()
    whole = CompressedRows(op.shape, op.indptr, op.indices, (every,))
    return Compute(whole, (Read(entries),), op.shape)


def _constant(places: Array) -> Compute:
    """The constant of an array of positions."""
    node: Node = array_constant(places)
    return Compute(node.op, (), node.shape)


def _view(array: Value, where: slice, part: Expression) -> Expression:
    """A view of evenly spaced elements of an array, in the shape of a part."""
    size = prod(part.shape)
    flat = Index(Read(array), (Span(where.start, size, where.step),))
    return flat if len(part.shape) == 1 else Compute(Reshape(part.shape), (flat,), part.shape)


def _added(each: EntrySum, found: SideBySide, values: Value) -> list[Statement]:
    """The statements that add up the parts of a sum; the first part may be computed there already."""
    made: list[Statement] = []
    filled = np.zeros(each.size, bool)
    for term, where in zip(each.terms, each.where, strict=True):
        places = _constant(each.start + where)
        if filled.any():
            made.append(Scatter(values, places, term, adds=True))
            continue
        filled[where] = True
        gaps: IntArray = each.start + np.flatnonzero(~filled)
        if found.starts.get(term) != each.start + where[0]:  # a number may stand elsewhere, too
            made.append(Scatter(values, places, term))
        if len(gaps):
            made.append(Scatter(values, _constant(gaps), ZERO))
    return made
