"""Ops with bodies become statements: loops over blocks of rows, and the functions that ops call.

Each step of a loop over blocks reads views of the rows of its block, and writes its results into the rows of
the result arrays, or adds them to a sum over the blocks.

`Remat` is one call. A loop with a memory policy calls the function of one step, and its pullback the function
that pulls back through a segment of some steps. An implicit function calls the residual and its derivative.
The values of functions are freed when the call returns.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import count
from math import prod

import sympy

from symad.core.dims import dim_symbols
from symad.core.graph import Graph, Node, topological
from symad.core.questions import Nodes
from symad.derivatives.implicit import Root, residual_at, slope_at, sparse_slope
from symad.higher_order.checkpointed_chain import ChainOp, Kept
from symad.higher_order.checkpointed_chain_pullback import ChainPullback, stretch_pullback
from symad.higher_order.remat import Fallback, Remat
from symad.higher_order.scan import Local
from symad.numeric.fusion.nest import is_chain
from symad.numeric.passes.blocking.row_blocks import BLOCK
from symad.numeric.passes.bodies import COLUMNS, ROWS, RowBlocks
from symad.numeric.passes.memory_layout.memory_spans import Cleared, Spread
from symad.numeric.program.expressions import Compute, Expression, Read, Value, op_in
from symad.numeric.program.loops import Added, Blocks, DefineFunction, Fixed, PartOfBlock
from symad.numeric.program.program import Program
from symad.numeric.program.statements import Allocate, Assign, Statement, assignments
from symad.numeric.program.uses import lifetimes
from symad.numeric.program_passes.loops.open_loops import MakesBody
from symad.numeric.program_passes.memory.allocation import is_fresh, shown
from symad.numeric.scheduling.plans import number_of
from symad.ops.arrays.stacking import Concatenate, Stack
from symad.ops.basic.arithmetic import ElementwiseOp
from symad.ops.basic.shaping import Broadcast, Pad, Reshape, Slice
from symad.ops.basic.sources import Source, constant

# ---- blocks of rows ------------------------------------------------------------------------------

# Each step reads views of the rows of its block, and writes its results into the rows of the result arrays,
# or adds them to a sum over the blocks.


CHAIN_BLOCK_ELEMENTS = 2**15
"""Elements of each array in a block of elementwise operations: several arrays of this size fit the cache.

For arrays of 2**21 elements, 2**11 take 1.1 times as long, 2**14 1.0, 2**16 1.04, 2**18 1.2 times
(bench_thresholds.py, "block of a chain").
"""

CHEAP = (ElementwiseOp, Broadcast, Source, Slice, Pad, Reshape, Stack, Concatenate, Spread, Cleared)


def open_blocks(program: Program, body: MakesBody) -> Program:
    """The program with `Blocks` statements in place of `RowBlocks` ops.

    Args:
        program: a program after `write_over` and `put_results`.
        body: makes the program of a step.
    """
    ordered: list[Statement] = []
    for statement in program.statements:
        found = _blocks_in(statement)
        ordered += [statement] if found is None else _opened(statement, found, body)
    return program.with_statements(tuple(ordered))


def _blocks_in(statement: Statement) -> Compute | None:
    """The first expression of a statement that is a loop over blocks; None for other statements."""
    made = assignments(statement)
    first = made[0].expression if made else None
    return first if isinstance(first, Compute) and isinstance(first.op, RowBlocks) else None


def _opened(statement: Statement, first: Compute, body: MakesBody) -> list[Statement]:
    """The statements that replace one loop."""
    op = first.op
    assert isinstance(op, RowBlocks)
    local, results = op.body.input_nodes, op.body.output_nodes
    wanted = {number_of(op_in(made.expression)): made for made in assignments(statement)}
    before: list[Statement] = []
    after: list[Statement] = []
    ends = op.ends or [None] * len(results)
    given = {node: Value("", node.shape) for node in local}
    parts, fixed = _inputs(op, first.args, [*given.values()])
    places: list[Value | None] = [None] * len(results)
    nodes = list(results)
    arrays: dict[int, Value] = {}
    for k, made in wanted.items():
        axis, end, result = op.joined[k], ends[k], results[k]
        array = arrays[k] = made.value if made.over is None else Value("", made.value.shape)
        if made.over is not None:
            after.append(Assign(made.value, Read(array), made.over))
        if axis is None:
            zero = Assign(array, Compute(constant(0).op, (), ()))
            before.append(Allocate(array, zeros=True) if array.shape else zero)
            continue
        kept = end is None and not isinstance(op.length, int)
        before.append(Allocate(array, zeros=end is not None, kept=kept))
        flat = axis == 0 and end is None and _is_laid_flat(result)  # computed without the reshape
        nodes[k] = result.args[0] if flat else result
        place = places[k] = Value("", nodes[k].shape)
        parts.append(PartOfBlock(place, Read(array), axis, end, flat))
    bounds = {ROWS: block_height(op)} | ({COLUMNS: op.length} if isinstance(op.length, int) else {})
    step = body(nodes, given, places, bounds)
    added = tuple(
        Added(array, step.results[k], ends[k]) for k, array in arrays.items() if op.joined[k] is None
    )
    height = block_height(op)
    loop = Blocks(op.length, height, ROWS, COLUMNS, tuple(parts), tuple(fixed), step.statements, added)
    return [*before, loop, *after]


def _inputs(
    op: RowBlocks, args: Sequence[Expression], given: Sequence[Value]
) -> tuple[list[PartOfBlock], list[Fixed]]:
    """The inputs of the body: views of arguments that are cut into blocks, and arguments used whole."""
    axes = [*op.axes, *[None] * (len(args) - len(op.axes))]
    columns = op.columns or [None] * len(args)
    parts: list[PartOfBlock] = []
    fixed: list[Fixed] = []
    for value, array, axis, column in zip(given, args, axes, columns, strict=True):
        if axis is None and column is None:
            fixed.append(Fixed(value, array))
        else:
            parts.append(PartOfBlock(value, array, axis, column))
    return parts, fixed


def _is_laid_flat(node: Node) -> bool:
    """Whether a result is a new array with one axis, reshaped."""
    return isinstance(node.op, Reshape) and len(node.args[0].shape) == 1 and is_fresh(node.args[0])


def block_height(op: RowBlocks) -> int:
    """The number of rows of a block, chosen so that the largest array of the body stays in the cache.

    It is a multiple of 8 if ``op.length`` is not smaller.
    """
    order = topological(op.body.output_nodes)
    sizes = [
        prod(op.length if d == COLUMNS else d for d in n.shape if d != ROWS) for n in order if ROWS in n.shape
    ]
    widest = max(size for size in sizes if isinstance(size, int))
    # the arrays of a chain have equal sizes, and several of them are in the cache at a time
    chain = all(isinstance(n.op, CHEAP) or is_chain(n.op) or len(n.shape) < 2 for n in order)
    rows = max((CHAIN_BLOCK_ELEMENTS if chain else BLOCK) // widest, 8)
    return min(rows // 8 * 8, op.length) if isinstance(op.length, int) else rows // 8 * 8


CALLING = (Remat, Fallback, Kept, Root, ChainPullback)
"""The ops that call functions."""


@dataclass(frozen=True)
class Inner:
    """A function that an op calls: a graph some of whose inputs are parameters, the others fixed.

    ``prepared``: whether the graph passes run on it. ``stems``: the name stems of parameters.
    """

    stem: str
    graph: Graph
    parameters: Nodes
    fixed: Mapping[Node, Expression]
    steps: sympy.Symbol | None = None
    repeated: bool = True
    prepared: bool = True
    stems: Mapping[Node, str] = field(default_factory=dict)


def open_functions(
    program: Program, body: MakesBody, prepared: Callable[[Graph], Graph], sparse: bool
) -> Program:
    """The program with the functions that its ops call, each before the statement that calls it.

    Args:
        program: a program.
        body: makes the program of a function.
        prepared: the graph of a function after the graph passes of the program's own graph.
        sparse: whether the derivatives of implicit functions may be sparse matrices.
    """
    ordered: list[Statement] = []
    for statement in program.statements:
        found = statement.expression if isinstance(statement, Assign) else None
        inner = inner_functions(found, sparse) if isinstance(found, Compute) else ()
        made = [_function(one, body, prepared) for one in inner]
        ordered += made
        if made and isinstance(statement, Assign) and isinstance(found, Compute):
            called = replace(found, functions=tuple(function.value for function in made))
            statement = replace(statement, expression=called)
        ordered.append(statement)
    return program.with_statements(tuple(ordered))


def inner_functions(found: Compute, sparse: bool) -> tuple[Inner, ...]:
    """The functions that an op calls; none for most ops."""
    op = found.op
    if isinstance(op, (Remat, Fallback)):
        return (Inner("part", op.body, op.body.input_nodes, {}, repeated=False),)
    if isinstance(op, Kept):
        return (_step(op, found),)
    if isinstance(op, Root):
        return (_equations(op, found, sparse),) if op.solver is None else ()
    return (_step(op, found), _pull(op, found)) if isinstance(op, ChainPullback) else ()


def _equations(op: Root, found: Compute, sparse: bool) -> Inner:
    """The residual and its derivative, from the unknowns and the parameters of one problem of a batch."""
    local = op.residual.input_nodes
    slope = sparse_slope(op.residual) if sparse else None
    slope = slope_at(op, local[0], local[1:]) if slope is None else slope
    graph = Graph(local, (residual_at(op, local[0], local[1:]), slope))
    moving = {local[k]: f"p{k}" for k, batched in enumerate(op.batched) if batched and k}
    fixed = {x: arg for x, arg in zip(local[1:], found.args[1:], strict=True) if x not in moving}
    stems = {local[0]: "x", **moving}
    return Inner("equations", graph, (local[0], *moving), fixed, prepared=False, stems=stems)


def _step(op: ChainOp, found: Compute) -> Inner:
    """One step: a state from the state before it and one element of each input."""
    local, moving = op.body.input_nodes, 1 + op.slices
    constants = found.args[moving : len(local)]
    return Inner("step", op.body, local[:moving], dict(zip(local[moving:], constants, strict=True)))


def _pull(op: ChainPullback, found: Compute) -> Inner:
    """The cotangents of a segment of some steps, from its first state, its inputs, and a cotangent."""
    moving = 1 + op.slices
    constants = found.args[moving : len(op.body.input_nodes)]
    taken = op.body.dims | dim_symbols([d for arg in found.args for d in arg.shape])
    steps = next(s for s in map(steps_of, count()) if s not in taken)
    graph = stretch_pullback(op, steps, tuple(c.shape for c in constants))
    local = graph.input_nodes
    fixed = dict(zip(local[moving:-1], constants, strict=True))
    return Inner("pull", graph, (*local[:moving], local[-1]), fixed, steps)


@cache
def steps_of(depth: int) -> sympy.Dummy:
    """The number of steps of the segment that is pulled back, inside of ``depth`` other segments."""
    return sympy.Dummy("steps", integer=True, positive=True)


def _function(one: Inner, body: MakesBody, prepared: Callable[[Graph], Graph]) -> DefineFunction:
    value = Value(one.stem, ())
    parameters = [Value(one.stems.get(node, "a"), node.shape) for node in one.parameters]
    given = dict(zip(one.parameters, parameters, strict=True))
    given |= {node: Value("", node.shape) for node in one.fixed}
    results = (prepared(one.graph) if one.prepared else one.graph).output_nodes
    inputs = given or {Node.of(Local(0, ())): value}  # without inputs, the body has the function's value
    made = body(results, inputs, [None] * len(results), repeated=one.repeated)
    lives = lifetimes(made, shown)

    def is_given(result: Expression) -> bool:
        owner = lives.memory.get(result.value, result.value) if isinstance(result, Read) else None
        return owner in parameters and bool(result.shape)

    return DefineFunction(
        value,
        tuple(parameters),
        tuple(Fixed(given[node], outer) for node, outer in one.fixed.items()),
        made.statements,
        made.results,
        tuple(map(is_given, made.results)),
        one.steps,
        one.repeated,
    )
