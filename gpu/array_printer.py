"""Array graphs as CuPy modules: the statements of the NumPy printer, with fused kernels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from symad.core.graph import Graph, Node
from symad.derivatives.implicit import Root
from symad.errors import LoweringError
from symad.fused.pair_sum import PairOp, PairSum, PairSumCotangent
from symad.gpu.attention_kernels.printer import attention_lines, inputs_as_given
from symad.gpu.cupy_library import HALVES
from symad.gpu.pairs.printer import has_kernels, pair_lines
from symad.gpu.passes.fusion import fuse
from symad.gpu.printers import (  # noqa: F401  (register their answers)
    arrays,
    indices,
    products,
    random,
    row_kernels,
)
from symad.gpu.printers.array_inputs import input_helpers, inputs_line, shape_checks
from symad.gpu.printers.indices import report_helpers
from symad.gpu.printers.kernels import Kernels
from symad.gpu.printers.printing import CuPyWriter, Piece, own_lines
from symad.gpu.printers.recurrences import recurrence_lines, row_program_lines
from symad.gpu.printers.row_kernels import row_lines, sums_lines
from symad.gpu.settings import current
from symad.numeric.fusion.nest import Nest, total_of
from symad.numeric.modules.module_text import returned
from symad.numeric.numpy_arrays import expressions, kernels  # noqa: F401  (register their answers)
from symad.numeric.numpy_arrays.loop_statements import loop_lines
from symad.numeric.numpy_arrays.statements import assign_lines
from symad.numeric.numpy_arrays.writer import ArrayWriter
from symad.numeric.program.expressions import Compute, Expression, Read, Value
from symad.numeric.program.loops import Fixed, Loop
from symad.numeric.program.statements import Assign, Together
from symad.numeric.program_passes.memory.allocation import is_view
from symad.numeric.scheduling.roles import Roles
from symad.numeric.targets.module import Arguments, Body, written_module
from symad.numeric.targets.sizes import doubtful, needed_sizes
from symad.numeric.targets.statements import Lines, indented, lines, lines_of
from symad.ops.basic.shaping import Broadcast, Slice
from symad.ops.basic.sources import ArrayConstant, Input
from symad.ops.linalg.solve_det import MatrixOp

# ---- results: arrays with memory of their own, in the requested type -----------------------------


INTEGERS = {True: ("int64",), False: ()}
"""Integer types that results keep, in half precisions and in others."""


def result_text(node: Node, printer: CuPyWriter) -> str:
    """An output as an array with memory of its own; in half precisions integers stay integers."""
    kind, kept = printer.kernels.type_of(node), [printer.dtype, "bool", *INTEGERS[printer.dtype in HALVES]]
    kept += [printer.accumulator] * current().wide
    if kind not in kept and node not in printer.host:  # for example log-sum-exps
        return f"{printer.texts[node]}.astype({printer.type_text})"
    made, piece = _memory(node), _piece(node)
    others = printer.pieces.setdefault(made, [])
    shared = isinstance(made.op, (Input, ArrayConstant)) or (
        node.shape and any(not _apart(piece, other) for other in others)
    )
    others.append(piece)
    if node not in printer.host and (shared or _repeats(node)):
        return f"{printer.texts[node]}.copy()"
    return printer.array_text(node)


def _memory(node: Node) -> Node:
    """The node whose memory an array shows."""
    while is_view(node):
        node = node.args[0]
    return node


def _repeats(node: Node) -> bool:
    """Whether a view repeats elements."""
    while is_view(node):
        if isinstance(node.op, Broadcast):
            return True
        node = node.args[0]
    return False


def _piece(node: Node) -> Piece:
    """The part of its memory that a view shows; see `Piece`."""
    found: Piece = None
    while is_view(node):
        if isinstance(node.op, Slice):
            single = tuple(k for k, count in enumerate(node.op.count) if count == 1)
            found = single, tuple(node.op.start[k] for k in single)
        (node,) = node.args
    return found


def _apart(first: Piece, second: Piece) -> bool:
    """Whether two parts of an array have no common element."""
    if first is None or second is None or first[0] != second[0]:
        return False
    numbers = all(isinstance(k, int) for k in (*first[1], *second[1]))
    return numbers and first[1] != second[1]


@own_lines.dispatch
def nest_lines(op: Nest, node: Node, writer: CuPyWriter) -> Lines:
    """The call of a kernel of elements, of one sum, or of rows."""
    if op.axes:
        return row_lines(op, node, writer) if total_of(op) is None else writer.assigned(node)
    call = writer.expression(node)
    for value in writer.computed.values():
        writer.texts[value] = writer.name_of(value)
    names = {k: writer.texts[value] for k, value in writer.computed.items()}
    return [f"{', '.join(names.get(k, '_') for k in range(len(op.body.output_nodes)))} = {call}"]


own_lines.dispatch(sums_lines)
own_lines.dispatch(row_program_lines)
own_lines.dispatch(recurrence_lines)
own_lines.dispatch(attention_lines)


@own_lines.dispatch
def sums_over_pairs(op: PairOp, node: Node, writer: CuPyWriter) -> Lines:
    """The kernels of a sum over pairs; blocks of pairs, as for NumPy, where there are none."""
    if isinstance(op, (PairSum, PairSumCotangent)) and has_kernels(op, node, writer.dtype):
        return pair_lines(op, node, writer)
    return writer.by_function(node)


@own_lines.dispatch
def solution_lines(op: Root, node: Node, writer: CuPyWriter) -> Lines:
    if writer.dtype in HALVES:
        raise LoweringError(f"implicit needs float32 or float64: {writer.dtype} cannot converge")
    return writer.by_function(node)


@own_lines.dispatch
def matrix_lines(op: MatrixOp, node: Node, writer: CuPyWriter) -> Lines:
    """Linear algebra; for half precisions in float32, as the device libraries have no LAPACK for them."""
    if writer.dtype not in HALVES:
        return writer.assigned(node)
    before = dict(writer.texts)
    for arg in node.args:
        if arg not in writer.host:
            writer.texts[arg] = f"{before[arg]}.astype(cp.float32)"
    made = writer.assigned(node)
    made[-1] += f".astype({writer.type_text})"
    before[node] = writer.texts[node]
    writer.texts = before
    return made


@lines.dispatch
def one_on_device(statement: Assign, writer: CuPyWriter) -> Lines:
    """A value from its node; other names and views of arrays as for NumPy."""
    node = writer.plans.nodes.get(statement.value)
    if node is not None and isinstance(statement.expression, Compute):
        return writer.written((statement,))
    made = assign_lines(statement, writer)
    if node is not None:
        writer.texts[node] = writer.named[statement.value]
    return made


@lines.dispatch
def together_on_device(statement: Together, writer: CuPyWriter) -> Lines:
    return writer.written(statement.assignments)


@lines.dispatch
def loop_on_device(statement: Loop, writer: CuPyWriter) -> Lines:
    """A loop over the numbers of steps. What it is given are arrays; its states have the program's type."""
    made: list[str] = []

    def given(expression: Expression, carried: bool = False) -> Expression:
        node = writer.node_of(expression)
        if node is None or not (node in writer.host or (carried and writer.is_foreign(node))):
            return expression
        value = Value("", node.shape)
        writer.plans.nodes[value] = node
        if node in writer.host:
            name = writer.named[value] = writer.value_name()
            made.append(f"{name} = cp.asarray({writer.operand(expression)}, dtype={writer.type_of(node)})")
        else:
            writer.named[value] = f"{writer.operand(expression)}.astype({writer.type_text})"
        return Read(value)

    opened = replace(
        statement,
        carried=tuple(replace(c, initial=given(c.initial, True)) for c in statement.carried),
        rows=tuple(replace(r, array=given(r.array)) for r in statement.rows),
        fixed=tuple(Fixed(f.value, given(f.expression)) for f in statement.fixed),
    )
    loop = loop_lines(opened, writer, _counted)
    return [*made, *loop]


def _counted(
    loop: Loop, writer: ArrayWriter, columns: Sequence[str], names: Sequence[str], index: str
) -> tuple[list[str], list[str]]:
    """The names of rows, and the lines of the ``for`` over the numbers of the steps."""
    each = zip(names, loop.rows, columns, strict=True)
    named = [f"{name} = {array}[{index}{' % 2' * row.alternates}]" for name, row, array in each]
    return [*names], [f"for {index} in range({writer.dim(loop.count)}):", *indented(named)]


def print_cupy_module(graph: Graph, dtype: str, roles: Roles) -> tuple[str, tuple[str, ...], Kernels]:
    """The entry point's name, the source of the module and its kernels."""
    fused = fuse(graph)
    printer = CuPyWriter(fused, dtype, roles)
    if dtype in HALVES and current().wide:
        printer.as_given = inputs_as_given(fused)
    program = printer.begun(fused)
    for node, value in zip(fused.input_nodes, program.inputs, strict=True):
        printer.texts[node] = printer.named[value]

    def body() -> list[str]:
        printer.begin(fused.output_nodes)
        lines = lines_of(program.statements, printer)
        values = [result_text(o, printer) for o in fused.output_nodes]
        return [*lines, f"return {returned(fused.structure, values)}"]

    sizes = (*needed_sizes(graph), *doubtful(node.shape for node in fused.nodes))
    taking = partial(_taken, kinds=[_kind(node, printer) for node in fused.input_nodes])
    made = written_module(replace(program, needed=sizes), printer, fused.inputs, taking, body)
    return *made, printer.kernels


def _kind(node: Node, printer: CuPyWriter) -> str:
    """The type that an input is converted to, as text."""
    return "None" if node in printer.as_given else printer.type_of(node)


def _taken(
    call: Arguments, printer: CuPyWriter, body: Body, kinds: Sequence[str]
) -> tuple[list[str], list[str]]:
    """The lines that convert the inputs, bind the dimensions and check the shapes; then the body."""
    whole = any(printer.kernels.type_of(node) == "int64" for node in printer.graph.input_nodes)
    for name, text in input_helpers(whole).items() if call.names else ():
        printer.helper(name, text)
    made, lines = [*inputs_line(call, kinds), *shape_checks(call, printer)], body()
    if printer.sites:
        report_helpers(printer)
        seen = printer.names.unique("seen")
        made[:0] = [f"{seen}, {printer.flag} = _flag(cp.cuda.Device().id)", f"_report({seen})"]
        lines.insert(-1, "_check_indices()" if current().wait else f"_report({seen})")
    return [], [*printer.constants_lines(), *made, *lines]
