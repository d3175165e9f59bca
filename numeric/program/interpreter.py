"""A reference interpreter, slow and literal: it runs programs in NumPy by the `evaluate` of each op."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np
import sympy

from symad.core.arrays import ArrayLike, Number
from symad.core.dims import Dim, bind, solve_dims
from symad.core.graph import Op, bind_op, pack
from symad.core.questions import Array, Values, evaluate, question
from symad.derivatives.implicit import Root, newton
from symad.higher_order.checkpointed_chain import Kept, kept_by
from symad.higher_order.checkpointed_chain_pullback import ChainPullback, pulled_back
from symad.higher_order.remat import Fallback, Remat, in_range
from symad.numbers.number_domains import as_float
from symad.numeric.program.expressions import (
    Compute,
    Expression,
    Index,
    Place,
    Position,
    Read,
    Span,
    StepNumber,
    Value,
)
from symad.numeric.program.loops import Blocks, DefineFunction, FindRoot, Loop
from symad.numeric.program.program import Program
from symad.numeric.program.statements import (
    Allocate,
    Assign,
    Block,
    Free,
    Scatter,
    Section,
    Statement,
    Store,
    Together,
)
from symad.ops.basic.shaping import slices

Called: TypeAlias = Callable[..., list[Array]]
"""A function of a program: from its arguments to its results."""


def run_program(program: Program, values: Sequence[ArrayLike]) -> Any:
    """The results of a program for some inputs, packed by its structure."""
    arrays = [np.asarray(v, float)[()] for v in values]
    declared = [(v.stem, v.shape, np.shape(a)) for v, a in zip(program.inputs, arrays, strict=True)]
    state = ProgramState(solve_dims(declared), dict(zip(program.inputs, arrays, strict=True)))
    with np.errstate(all="ignore"):
        state.run(program.statements)
        return pack(program.structure, [state.value(result) for result in program.results])


class ProgramState:
    """The values and dimensions that are known so far."""

    def __init__(self, dims: dict[sympy.Symbol, int], known: dict[Value, Any]) -> None:
        self.dims = dims
        self.known = known

    def run(self, block: Block) -> None:
        """Execute statements in order."""
        for statement in block:
            execute(statement, self)

    def assign(self, statement: Assign, made: Number) -> None:
        """Bind a value, or write it into the memory of the value that it overwrites.

        All views of this memory then show the new value, so that tests find wrong overwrites.
        """
        if statement.over is not None:
            place = self.known.pop(statement.over)
            place[...] = made
            made = place
        self.known[statement.value] = made

    def size(self, dim: Dim) -> int:
        """A dimension as a number."""
        return int(bind(dim, self.dims))

    def place(self, position: Position) -> int:
        """A position as a number."""
        moving = 0 if position.index is None else position.sign * int(self.known[position.index])
        return self.size(position.offset) + moving

    def places(self, place: Place) -> int | slice | None:
        """One place of an index, as NumPy takes it."""
        if isinstance(place, Position):
            return self.place(place)
        if isinstance(place, Span):
            return slices((self.size(place.start),), (self.size(place.count),), (place.step,))[0]
        return None

    def value(self, expression: Expression) -> Any:
        """The value of an expression."""
        if isinstance(expression, Read):
            return self.known[expression.value]
        if isinstance(expression, Index):
            return self.value(expression.array)[tuple(map(self.places, expression.places))]
        if isinstance(expression, StepNumber):
            return float(self.place(expression.position))
        assert isinstance(expression, Compute)
        op, values = bind_op(expression.op, self.dims), tuple(self.value(a) for a in expression.args)
        if not expression.functions:
            return as_floats(evaluate(op, values))
        return as_floats(called(op, values, [self.known[value] for value in expression.functions]))

    def function(self, statement: DefineFunction) -> Called:
        """A function of the program as one of Python."""
        fixed = {each.value: self.value(each.expression) for each in statement.fixed}

        def call(*values: Array) -> list[Array]:
            given = dict(zip(statement.parameters, values, strict=True))
            inner = ProgramState(dict(self.dims), fixed | given)
            if statement.steps is not None:
                lengths = (len(v) for p, v in given.items() if p.shape[:1] == (statement.steps,))
                inner.dims[statement.steps] = next(lengths)
            inner.run(statement.body)
            made = zip(statement.results, statement.copied, strict=True)
            return [np.copy(inner.value(r)) if copied else inner.value(r) for r, copied in made]

        return call


@question
def called(op: Op, values: Values, functions: Sequence[Called]) -> Array:
    """The value of an op, some of whose graphs are functions of the program."""


@called.dispatch
def call_remat(op: Remat, values: Values, functions: Sequence[Called]) -> Array:
    return functions[0](*values)[0]


@called.dispatch
def call_fallback(op: Fallback, values: Values, functions: Sequence[Called]) -> Array:
    return values[1] if in_range(values[0], op.low, op.high) else functions[0](*values)[0]


@called.dispatch
def call_kept(op: Kept, values: Values, functions: Sequence[Called]) -> Array:
    return kept_by(lambda *moving: functions[0](*moving)[0], op, values)


@called.dispatch
def call_pullback(op: ChainPullback, values: Values, functions: Sequence[Called]) -> Array:
    return pulled_back(lambda *moving: functions[0](*moving)[0], functions[1], op, values)


@called.dispatch
def call_root(op: Root, values: Values, functions: Sequence[Called]) -> Array:
    """One problem after the other."""
    (equations,) = functions
    moving = [k for k, batched in enumerate(op.batched) if batched and k]

    def solved(guess: Any, given: list[Any]) -> Any:
        def at(x: Any) -> tuple[Any, Any]:
            residual, slope = equations(x, *given)
            return residual, slope

        return newton(at, np.ravel(guess))

    if not any(op.batched):
        return solved(values[0], [])
    count = next(len(v) for v, batched in zip(values, op.batched, strict=True) if batched)
    guesses = values[0] if op.batched[0] else [values[0]] * count
    return np.stack([solved(guesses[row], [values[k][row] for k in moving]) for row in range(count)])


def as_floats(value: Any) -> Any:
    """Numbers as floats, as the evaluation of graphs has them; booleans and sparse matrices unchanged."""
    if isinstance(value, np.ndarray):
        return value.astype(np.float64) if value.dtype.kind in "iu" else value
    if isinstance(value, (bool, np.generic)) or hasattr(value, "shape"):
        return value
    return as_float(value)


@question
def execute(statement: Statement, state: ProgramState) -> None:
    """Execute one statement."""


@execute.dispatch
def execute_nothing(statement: Statement, state: ProgramState) -> None:
    """Comments do nothing."""


@execute.dispatch
def execute_assign(statement: Assign, state: ProgramState) -> None:
    state.assign(statement, state.value(statement.expression))


@execute.dispatch
def execute_free(statement: Free, state: ProgramState) -> None:
    for value in statement.values:
        del state.known[value]


@execute.dispatch
def execute_together(statement: Together, state: ProgramState) -> None:
    made = [state.value(each.expression) for each in statement.assignments]
    for each, value in zip(statement.assignments, made, strict=True):
        state.assign(each, value)


@execute.dispatch
def execute_part(statement: Section, state: ProgramState) -> None:
    state.run(statement.body)


@execute.dispatch
def execute_allocate(statement: Allocate, state: ProgramState) -> None:
    """An array without zeros is filled with NaN, so that tests find reads of rows that are not stored."""
    shape = [state.size(d) for d in statement.value.shape]
    shape[:2] = shape[:2][::-1] if statement.swapped else shape[:2]
    array = np.full(shape, 0.0 if statement.zeros else np.nan)
    state.known[statement.value] = array.swapaxes(0, 1) if statement.swapped else array


@execute.dispatch
def execute_store(statement: Store, state: ProgramState) -> None:
    state.known[statement.array][state.place(statement.position)] = state.value(statement.expression)


@execute.dispatch
def execute_scatter(statement: Scatter, state: ProgramState) -> None:
    places, made = state.value(statement.places).astype(int), state.value(statement.expression)
    made = np.ravel(made) if np.ndim(made) else made
    array = state.known[statement.array]
    array[places] = array[places] + made if statement.adds else made


@execute.dispatch
def execute_loop(statement: Loop, state: ProgramState) -> None:
    for carried in statement.carried:
        state.known[carried.value] = state.value(carried.initial)
    state.known.update((fixed.value, state.value(fixed.expression)) for fixed in statement.fixed)
    arrays = [state.value(each.array) for each in statement.rows]
    steps = range(state.size(statement.count))
    for step in reversed(steps) if statement.backwards else steps:
        state.known[statement.index] = step
        for each, array in zip(statement.rows, arrays, strict=True):
            view = state.known[each.value] = array[step % 2 if each.alternates else step, ...]
            assert each.strides is None or view.strides == tuple(view.itemsize * s for s in each.strides)
        state.run(statement.body)
        new = [state.value(carried.next) for carried in statement.carried]
        state.known.update(zip(statement.writes, new, strict=True))


@execute.dispatch
def execute_blocks(statement: Blocks, state: ProgramState) -> None:
    """For each block, make the views, run the body, and add to the sums."""
    state.known.update((fixed.value, state.value(fixed.expression)) for fixed in statement.fixed)
    arrays = [np.asarray(state.value(part.array)) for part in statement.parts]
    length = state.size(statement.length)
    for start in range(0, length, statement.height):
        stop = min(start + statement.height, length)
        state.dims |= {statement.rows: stop - start, statement.stop: stop}
        for part, array in zip(statement.parts, arrays, strict=True):
            here = {part.column: slice(stop), part.axis: slice(start, stop)}
            view = array[tuple(here.get(axis, slice(None)) for axis in range(array.ndim))]
            state.known[part.value] = view.reshape(-1) if part.flat else view
        state.run(statement.body)
        for added in statement.added:
            total, made = state.known[added.value], state.value(added.expression)
            here = {added.column: slice(stop)}
            if np.ndim(total):
                total[tuple(here.get(axis, slice(None)) for axis in range(np.ndim(total)))] += made
            else:
                state.known[added.value] = total + made


@execute.dispatch
def execute_function(statement: DefineFunction, state: ProgramState) -> None:
    state.known[statement.value] = state.function(statement)


@execute.dispatch
def execute_root(statement: FindRoot, state: ProgramState) -> None:
    def at(x: Any) -> tuple[Any, Any]:
        state.known[statement.unknown] = x
        state.run(statement.body)
        return state.value(statement.residual), state.value(statement.slope)

    state.known[statement.value] = newton(at, np.ravel(state.value(statement.guess)))
