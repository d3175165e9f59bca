"""Loops over blocks of rows become `Blocks` statements.

Each step reads views of the rows of its block, and writes its results into the rows of the result arrays, or
adds them to a sum over the blocks.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from symad.core.graph import Node, topological
from symad.numeric.fusion.nest import is_chain
from symad.numeric.passes.block_loop import COLUMNS, ROWS, RowBlocks
from symad.numeric.passes.blocking.row_blocks import BLOCK
from symad.numeric.passes.memory_layout.memory_spans import Cleared, Spread
from symad.numeric.program.expressions import Compute, Expression, Read, Value, op_in
from symad.numeric.program.loops import Added, Blocks, Fixed, PartOfBlock
from symad.numeric.program.program import Program
from symad.numeric.program.statements import Allocate, Assign, Statement, assignments
from symad.numeric.program_passes.loops.open_loops import MakesBody
from symad.numeric.program_passes.memory.allocation import is_fresh
from symad.numeric.scheduling.plans import number_of
from symad.ops.arrays.stacking import Concatenate, Stack
from symad.ops.basic.arithmetic import ElementwiseOp
from symad.ops.basic.shaping import Broadcast, Pad, Reshape, Slice
from symad.ops.basic.sources import Source, constant

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
