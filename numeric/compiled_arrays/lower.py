"""Backend "c" for array graphs: NumPy modules with compiled kernels, and how each kernel is called."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from symad.core.dims import Shape, same_shape, size
from symad.core.graph import Graph
from symad.fused.pair_sum import PairOp
from symad.numeric.box import box_in_words
from symad.numeric.compiled_arrays.c.c_body import LETTER, NAME
from symad.numeric.compiled_arrays.c.loop_text import loop_source
from symad.numeric.compiled_arrays.c.nest_text import Operand, kernel_source, result_type
from symad.numeric.compiled_arrays.choose_kernels import fuse
from symad.numeric.compiled_arrays.pair_sums import pair_sum_lines
from symad.numeric.compiled_arrays.writer import NativeWriter
from symad.numeric.compiler.c_compiler import NotCompiled, compiler
from symad.numeric.fusion.nest import Nest, softmax_nest
from symad.numeric.kernel import Kernel, compile_source
from symad.numeric.modules.module_text import one_line
from symad.numeric.numpy_arrays import lower as lower_numpy
from symad.numeric.numpy_arrays.elementwise_statements import operand
from symad.numeric.numpy_arrays.kernels import pair_lines
from symad.numeric.numpy_arrays.loop_statements import loop_comment, loop_of_rows
from symad.numeric.numpy_arrays.statements import KernelLines, Made, computed, kernel_lines
from symad.numeric.passes.ranges import in_range, norms
from symad.numeric.pipelines import BLOCK_GRAPH, COMPILED_GRAPH, KERNEL_GRAPH
from symad.numeric.program.expressions import Compute, Expression, Read, op_in
from symad.numeric.program.loops import Loop
from symad.numeric.program.statements import Assign
from symad.numeric.program_passes.lines.by_twos import is_repeated
from symad.numeric.program_passes.memory.allocation import is_view
from symad.numeric.scheduling.plans import number_of
from symad.numeric.scheduling.roles import roles_of
from symad.numeric.stages import PassReport, in_order, run_graph_passes
from symad.numeric.targets.sizes import needed_sizes
from symad.numeric.targets.statements import Lines, lines
from symad.ops.arrays.softmax import ExponentialOp
from symad.ops.basic.shaping import Slice

LOOPS_ALONE = """\
/* The loops of {name}, printed by symad{box}. Its Python file calls them, and NumPy between them.
   Functions of scalars are printed as C that stands alone. */
"""


def lower(graph: Graph, dtype: str, report: list[PassReport] | None = None) -> Kernel:
    """Print and compile a graph; if no compiler works, its NumPy form is used.

    The passes for NumPy that compute whole arrays are left out where a compiled loop or chain reads its
    operands piece by piece: gates as contiguous memory, biases as weights, functions before slices.
    """
    if compiler() is None:
        return lower_numpy.lower(graph, dtype, False, report)
    passes = in_order((*COMPILED_GRAPH, *norms(dtype), *BLOCK_GRAPH, *KERNEL_GRAPH, *in_range(dtype)))
    with roles_of(graph, inner=False).followed() as roles:
        fused = fuse(run_graph_passes(graph, passes, report), dtype)
    writer = NativeWriter(fused, dtype, roles)
    name, source = lower_numpy.print_array_module(fused, writer, needed_sizes(graph), report)
    loops = LOOPS_ALONE.format(name=name, box=one_line(box_in_words())) + writer.c_source
    try:
        return replace(compile_source(name, source), c_source=loops)
    except NotCompiled:
        return replace(lower_numpy.lower(graph, dtype, False, report), c_source=loops)


# ---- calls of compiled loops ---------------------------------------------------------------------


def loop_call(loop: Loop, writer: NativeWriter) -> list[str]:
    """The statement that runs a compiled loop, after its comment."""
    source, text = loop_source(NAME, loop, writer.dtype)
    name = writer.loop(text, source)
    fixed = [writer.operand(each.expression) for each in loop.fixed]
    given, made = ([writer.operand(row.array) for row in loop.rows if row.filled is k] for k in (False, True))
    (state,) = (writer.operand(carried.initial) for carried in loop.carried)
    lists = ", ".join(f"[{', '.join(side)}]" for side in (given, fixed, made))
    call = f'run_loop({name}, "{writer.dtype}", {writer.atom(loop.count)}, {state}, {lists})'
    return [*loop_comment(loop, writer), call]


MIN_CHEAP_ROW = 2048
"""Elements of a row from which NumPy's overhead per row does not matter.

Kernels that go over the rows themselves take 0.7 of the time up to 2048 elements, 0.93 to 0.99 at 8192
(bench_thresholds.py, "rows in C").
"""


def _is_part(array: Expression, writer: NativeWriter) -> bool:
    """Whether an array is a view whose rows do not follow each other in memory."""
    while isinstance(array, Read) and isinstance(made := writer.made.get(array.value), Compute):
        if isinstance(made.op, Slice):
            return not same_shape(made.shape[1:], made.args[0].shape[1:])
        if not is_view(made):
            return False
        array = made.args[0]
    return False


def by_number(made: Sequence[Assign], count: int) -> list[Assign | None]:
    """The assignments of the results of a kernel in the order of their numbers; None for those not read."""
    found = {number_of(op_in(one.expression)): one for one in made}
    return [found.get(k) for k in range(count)]


# ---- nests ---------------------------------------------------------------------------------------


@kernel_lines.dispatch
def nest_lines(op: Nest, writer: NativeWriter, made: Made) -> KernelLines:
    """The call of the kernel of a nest; a chain over parts of arrays with short rows goes over the rows."""
    found = computed(made)
    if not op.axes:
        texts = [operand(a, writer) for a in found.args]
        rows = _is_by_rows(found, writer)
        nest = Nest(op.body, op.index, op.full, (len(op.full) - 1,)) if rows else op
        return _called(nest, texts, writer, made, not rows)
    several = len(op.axes) > 1
    rank = len(op.full) - len(op.axes)
    lead = ", ".join(map(writer.dim, [*op.full[:rank], size(op.full[rank:])]))  # −1 fails in an empty batch
    texts = [writer.operand(a) for a in found.args]
    if several:
        texts = [f"{t}.reshape({lead})" if a.shape else t for t, a in zip(texts, found.args, strict=True)]
    return _called(op, texts, writer, made)


@kernel_lines.dispatch
def softmax_lines(op: ExponentialOp, writer: NativeWriter, made: Made) -> KernelLines:
    """The call of the kernel of a softmax, or of a derivative, over rows; None for other axes."""
    args = computed(made).args
    if op.axes != (len(args[0].shape) - 1,):
        return None
    return _called(softmax_nest(type(op), args[0].shape, op.axes), map(writer.operand, args), writer, made)


def _called(
    nest: Nest, texts: Iterable[str], writer: NativeWriter, made: Made, ends: bool = False
) -> list[str]:
    """The statements that compute the results of a nest, whose rows are its last axes.

    ``ends``: whether results may overwrite operands that are not read again.
    """
    given, full, outputs = [*zip(texts, computed(made).args, strict=True)], nest.full, nest.body.output_nodes
    types, kinds = writer.types([a for _, a in given]), [result_type(r, writer.dtype) for r in outputs]
    kernel = kernel_source(NAME, nest, types, kinds, writer.real)
    inputs = "".join(LETTER[types[o.position]] for o in kernel.inputs)
    letters = f"{inputs}->{''.join(LETTER[kind] for kind in kinds)}"
    name = writer.kernel(kernel.text, kernel.body, letters, kernel.signature)
    args = []
    for each in kernel.inputs:
        text, arg = given[each.position]
        per_row = not each.is_row and len(arg.shape) == len(full)
        args.append(f"{text}[..., 0]" if per_row else text)
    lines: list[str] = []
    places: list[str | None] = []
    values = by_number(made, len(outputs))
    late = [
        o for o, r in zip(values, kernel.results, strict=True) if o is not None and _lacks_axis(o, r, full)
    ]
    for one, kind in zip(values, kinds, strict=True):
        free = one is not None and one not in late and _has_room(one, kind, nest, writer)
        places.append(writer.room(one, lines, ends) if one is not None and free else None)
    lines.append(writer.call(name, args, values, places))
    for one in late:
        name = writer.named[one.value]
        lines.append(f"{name} = {name}[..., None]")
        lines += [writer.copied(one.value, one.over, name)] if one.over in writer.rooms else []
    return lines


def _lacks_axis(made: Assign, result: Operand, full: Shape) -> bool:
    """Whether a kernel gives a number for each row, and the value has an axis of length 1 for the rows."""
    return not result.is_row and len(made.value.shape) == len(full)


def _has_room(made: Assign, kind: str, nest: Nest, writer: NativeWriter) -> bool:
    """Whether a kernel can write a result of this type to a given array: it is no number."""
    settled = kind == writer.dtype or made.over in writer.rooms
    return settled and not (nest.axes and not made.value.shape)


def _is_by_rows(found: Compute, writer: NativeWriter) -> bool:
    """Whether operands are parts of arrays with short rows, and none is broadcast along an axis."""
    last = found.shape[-1] if len(found.shape) > 1 else None
    if not isinstance(last, int) or last > MIN_CHEAP_ROW:
        return False
    arrays = [a for a in found.args if a.shape]
    whole = all(same_shape(a.shape, found.shape) and not is_repeated(a) for a in arrays)
    return whole and any(_is_part(a, writer) for a in arrays)


@kernel_lines.dispatch
def compiled_pair_lines(op: PairOp, writer: NativeWriter, made: Made) -> KernelLines:
    """The kernels of a sum over pairs where they are better than NumPy's blocks."""
    return pair_sum_lines(op, made, writer) or pair_lines(op, writer, made)


@lines.dispatch
def compiled_loop_lines(statement: Loop, writer: NativeWriter) -> Lines:
    """A compiled loop is one call."""
    return loop_call(statement, writer) if statement.compiled else loop_of_rows(statement, writer)
