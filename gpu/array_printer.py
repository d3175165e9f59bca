"""Array graphs as CuPy modules: statements as for NumPy, with fused kernels and explicit types."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from symad.core.graph import Graph, Node
from symad.derivatives.implicit import Root
from symad.errors import LoweringError
from symad.fused.attention_ops import AttentionOp
from symad.fused.pair_sum import PairOp, PairSum, PairSumCotangent
from symad.gpu.attention_kernels.printer import inputs_as_given
from symad.gpu.cupy_library import HALVES, type_text
from symad.gpu.pairs.printer import has_kernels, pair_lines
from symad.gpu.passes.fusion import Sums, fuse
from symad.gpu.passes.integers import index_arguments
from symad.gpu.printers import (  # noqa: F401  (register their answers)
    arrays,
    indices,
    products,
    random,
    recurrences,
)
from symad.gpu.printers.indices import report_helpers
from symad.gpu.printers.kernels import Kernels
from symad.gpu.printers.printing import CuPyWriter
from symad.gpu.printers.row_kernels import row_lines
from symad.gpu.settings import current
from symad.numeric.fusion.c_expressions import has_c_form
from symad.numeric.fusion.nest import Nest, total_of
from symad.numeric.modules.module_text import returned
from symad.numeric.numpy_arrays import kernels
from symad.numeric.numpy_arrays.loop_statements import loop_lines
from symad.numeric.numpy_arrays.statements import (
    KernelLines,
    Made,
    assign_lines,
    computed,
    kernel_lines,
    results_by_number,
)
from symad.numeric.numpy_arrays.writer import ArrayWriter
from symad.numeric.passes.bodies import body_of
from symad.numeric.program.expressions import Compute, Expression, Read, Value, with_parts
from symad.numeric.program.loops import Fixed, Loop
from symad.numeric.program.statements import Assign, Together
from symad.numeric.scheduling.roles import Roles
from symad.numeric.targets.module import Arguments, Body, owned, written_module
from symad.numeric.targets.module import arrays as checked_arrays
from symad.numeric.targets.sizes import doubtful, needed_sizes
from symad.numeric.targets.statements import Lines, indented, lines, lines_of
from symad.numeric.targets.target import Level
from symad.ops.arrays.stacking import Concatenate, Stack
from symad.ops.basic.arithmetic import ElementwiseOp
from symad.ops.basic.contraction import Einsum
from symad.ops.basic.shaping import Reshape, Slice
from symad.ops.linalg.solve_det import MatrixOp

# ---- results: arrays with memory of their own, in the requested type -----------------------------


INTEGERS = {True: ("int64",), False: ()}
"""Integer types that results keep, in half precisions and in others."""


def result_text(result: Expression, copied: bool, writer: CuPyWriter) -> str:
    """An output as an array with memory of its own; in half precisions integers stay integers."""
    kind, kept = writer.kind(result), [writer.dtype, "bool", *INTEGERS[writer.dtype in HALVES]]
    kept += [writer.accumulator] * current().wide
    if writer.on_host(result):
        return writer.array_text(result)
    if kind not in kept:  # for example log-sum-exps
        return f"{writer.operand(result)}.astype({writer.type_text})"
    return f"{writer.operand(result)}{'.copy()' * copied}"


# ---- statements ----------------------------------------------------------------------------------


@lines.dispatch
def one_on_device(statement: Assign, writer: CuPyWriter) -> Lines:
    """A value of a node; other names and views of arrays as for NumPy."""
    if statement.value in writer.plans.nodes and isinstance(statement.expression, Compute):
        return on_device((statement,), writer)
    return assign_lines(statement, writer)


@lines.dispatch
def together_on_device(statement: Together, writer: CuPyWriter) -> Lines:
    return on_device(statement.assignments, writer)


def on_device(made: Made, writer: CuPyWriter) -> list[str]:
    """The lines of all results of an op, by its kernel if it has one; arguments have the program's type."""
    op, first = computed(made).op, made[0]
    for one in made:
        writer.note(one.value, one.expression)
    writer.at, writer.over = first.value, first.over
    given = made if isinstance(op, ANY_TYPE) else converted(made, writer)
    found: KernelLines = kernel_lines(op, writer, made if isinstance(op, ElementwiseOp) else given)
    if found is None and len(made) > 1:
        return [line for one in made for line in on_device((one,), writer)]
    if found is None:
        return one_line(given[0], writer)
    placed = [one for one in made if one.over in writer.rooms]
    return [*found, *(writer.copied(one.value, one.over, writer.named[one.value]) for one in placed)]


ANY_TYPE = (Nest, AttentionOp, PairOp, Sums)
"""Ops whose kernels read arguments of all types."""


def foreign(made: Made, writer: CuPyWriter) -> set[int]:
    """The arguments whose type differs from the result's, and which must be converted explicitly."""
    node, args, kind = writer.plans.nodes[made[0].value], computed(made).args, writer.kinds[made[0].value]
    others = [k for k in range(len(args)) if k not in index_arguments(node)]
    return {k for k in others if writer.is_foreign(args[k]) and writer.kind(args[k]) != kind}


def converted(made: Made, writer: CuPyWriter, kind: str = "") -> Made:
    """The results over arguments of the program's type, or all of another one."""
    found = computed(made)
    some = {k for k, a in enumerate(found.args) if not writer.on_host(a)} if kind else foreign(made, writer)
    if not some:
        return made
    read = [writer.read_as(a, kind or writer.dtype) if k in some else a for k, a in enumerate(found.args)]
    return tuple(replace(one, expression=with_parts(one.expression, tuple(read))) for one in made)


def one_line(statement: Assign, writer: CuPyWriter) -> list[str]:
    """The assignment of an expression; numbers and constants are read as they are."""
    value, over, found = statement.value, statement.over, computed([statement])
    text = writer.text(found)
    needed, writer.before = writer.before, []
    if found.op.stored or found.op.literal:
        writer.named[value] = text.inside(Level.ATOM)
        return needed
    if over in writer.rooms:
        if isinstance(found.op, (Concatenate, Stack)):  # it is assembled there
            writer.keep_name(value, over)
            return [*needed, text.text]
        return [*needed, writer.copied(value, over, text.text)]
    return [*needed, f"{writer.name_for(value)} = {text}"]


@kernel_lines.dispatch
def kernel_of_one(op: ElementwiseOp, writer: CuPyWriter, made: Made) -> KernelLines:
    """A kernel for arguments of any type, or where CuPy would keep the memory order of an argument."""
    node, args = writer.plans.nodes[made[0].value], tuple(dict.fromkeys(computed(made).args))
    kinds = [*map(writer.kind, args)]
    laid_out = "int64" not in (*kinds, writer.kinds[made[0].value]) and any(map(_is_permuted, node.args))
    if not has_c_form(node) or not (laid_out or foreign(made, writer)):
        return None
    kernel = writer.kernels.elementwise(body_of(node), kinds)
    return [f"{writer.name_for(made[0].value)} = {kernel}({', '.join(map(writer.array_text, args))})"]


def _is_permuted(node: Node) -> bool:
    """Whether an array may have its elements in another order in memory."""
    return isinstance(node.op, (Einsum, Slice, Reshape)) and len(node.shape) > 2


@kernel_lines.dispatch
def nest_lines(op: Nest, writer: CuPyWriter, made: Made) -> KernelLines:
    """The call of a kernel of elements or of rows; that of one sum is an expression."""
    if op.axes:
        return row_lines(op, writer, made) if total_of(op) is None else None
    call = writer.text(computed(made))
    names = writer.result_names(range(len(op.body.output_nodes)), results_by_number(made))
    return [f"{', '.join(names)} = {call}"]


@kernel_lines.dispatch
def sums_over_pairs(op: PairOp, writer: CuPyWriter, made: Made) -> Lines:
    """The kernels of a sum over pairs; blocks of pairs, as for NumPy, where there are none."""
    known = isinstance(op, (PairSum, PairSumCotangent)) and has_kernels(op, computed(made), writer.dtype)
    return pair_lines(op, writer, made) if known else kernels.pair_lines(op, writer, made)


@kernel_lines.dispatch
def solution_lines(op: Root, writer: CuPyWriter, made: Made) -> Lines:
    if writer.dtype in HALVES:
        raise LoweringError(f"implicit needs float32 or float64: {writer.dtype} cannot converge")
    return kernels.root_lines(op, writer, made)


@kernel_lines.dispatch
def matrix_lines(op: MatrixOp, writer: CuPyWriter, made: Made) -> KernelLines:
    """Linear algebra; for half precisions in float32, as the device libraries have no LAPACK for them."""
    if writer.dtype not in HALVES:
        return None
    lines = one_line(converted(made, writer, "float32")[0], writer)
    return [*lines[:-1], f"{lines[-1]}.astype({writer.type_text})"]


@lines.dispatch
def loop_on_device(statement: Loop, writer: CuPyWriter) -> Lines:
    """A loop over the numbers of steps. What it is given are arrays; its states have the program's type."""
    made: list[str] = []

    def given(expression: Expression, carried: bool = False) -> Expression:
        if writer.on_host(expression):
            value = Value("", expression.shape)
            writer.kinds[value] = writer.kind(expression)
            name = writer.named[value] = writer.value_name()
            made.append(f"{name} = {writer.array_text(expression)}")
            return Read(value)
        return (
            writer.read_as(expression, writer.dtype)
            if carried and writer.is_foreign(expression)
            else expression
        )

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
    pairs = zip(fused.input_nodes, program.inputs, strict=True)
    printer.kinds |= {value: printer.types.get(node, dtype) for node, value in pairs}

    def body() -> list[str]:
        printer.begin(fused.output_nodes, fused.input_nodes)
        lines = lines_of(program.statements, printer)
        results = zip(program.results, owned(program, boxed=True), strict=True)
        values = [result_text(result, copied, printer) for result, (_, copied) in results]
        return [*lines, f"return {returned(fused.structure, values)}"]

    sizes = (*needed_sizes(graph), *doubtful(node.shape for node in fused.nodes))
    printer.input_types = [_kind(node, printer) for node in fused.input_nodes]
    made = written_module(replace(program, needed=sizes), printer, fused.inputs, _taken, body)
    return *made, printer.kernels


def _kind(node: Node, printer: CuPyWriter) -> str:
    """The type that an input is converted to, as text."""
    return "None" if node in printer.as_given else type_text(printer.types.get(node, printer.dtype))


def _taken(call: Arguments, writer: CuPyWriter, body: Body) -> tuple[list[str], list[str]]:
    """The arguments as for NumPy; the constants of the device, and a look at the indices of earlier calls."""
    checked, lines = checked_arrays(call, writer, body)
    if writer.sites:
        report_helpers(writer)
        seen = writer.names.unique("seen")
        lines[:0] = [f"{seen}, {writer.flag} = _flag(cp.cuda.Device().id)", f"_report({seen})"]
        lines.insert(-1, "_check_indices()" if current().wait else f"_report({seen})")
    return checked, [*writer.constants_lines(), *lines]
