"""Kernels of compiled array code: how each op that is a kernel is called."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from symad.core.dims import Shape, same_shape
from symad.fused.pair_sum import PairOp
from symad.numeric.compiled_arrays.c.c_body import LETTER, NAME
from symad.numeric.compiled_arrays.c.chain_text import (
    by_rows_source,
    chain_source,
    result_type,
    sum_source,
)
from symad.numeric.compiled_arrays.c.row_text import region_source
from symad.numeric.compiled_arrays.c.softmax_text import softmax_signature, softmax_source
from symad.numeric.compiled_arrays.pair_sums import pair_sum_lines
from symad.numeric.compiled_arrays.run.loop_calls import loop_call
from symad.numeric.compiled_arrays.writer import NativeWriter
from symad.numeric.fusion.chains import Fused, FusedSum
from symad.numeric.fusion.rows import RowGroup
from symad.numeric.numpy_arrays.elementwise_statements import operand
from symad.numeric.numpy_arrays.kernels import pair_lines
from symad.numeric.numpy_arrays.loop_statements import loop_of_rows
from symad.numeric.numpy_arrays.statements import KernelLines, Made, computed, kernel_lines
from symad.numeric.program.expressions import Compute, Expression, Read, Value, op_in
from symad.numeric.program.loops import Loop
from symad.numeric.program.statements import Assign
from symad.numeric.program_passes.lines.repeats import is_repeated
from symad.numeric.program_passes.memory.allocation import is_view
from symad.numeric.scheduling.blocks import number_of
from symad.numeric.targets.statements import Lines, lines
from symad.ops.arrays.softmax import (
    ExponentialOp,
    LogSoftmax,
    LogSoftmaxCotangent,
    LogSoftmaxTangent,
    LogSumExp,
    Softmax,
    SoftmaxTangent,
)
from symad.ops.basic.shaping import Slice

if TYPE_CHECKING:
    pass

SOFTMAX: dict[type, str] = {
    Softmax: "softmax",
    LogSoftmax: "log_softmax",
    LogSumExp: "log_sum_exp",
    SoftmaxTangent: "softmax_tangent",
    LogSoftmaxTangent: "log_softmax_tangent",
    LogSoftmaxCotangent: "log_softmax_cotangent",
}


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


def _ends_in_one(value: Value, full: Shape) -> bool:
    """Whether a result of a region has one number for each row, on an axis of length 1."""
    return len(value.shape) == len(full) and not same_shape(value.shape, full)


def by_number(made: Sequence[Assign], count: int) -> list[Assign | None]:
    """The assignments of the results of a kernel in the order of their numbers; None for those not read."""
    found = {number_of(op_in(one.expression)): one for one in made}
    return [found.get(k) for k in range(count)]


# ---- chains --------------------------------------------------------------------------------------


@kernel_lines.dispatch
def chain_lines(op: Fused, writer: NativeWriter, made: Made) -> KernelLines:
    """The call of an elementwise kernel."""
    args, results = computed(made).args, op.body.output_nodes
    types, kinds = writer.types(args), [result_type(r, writer.dtype) for r in results]
    text, body = chain_source(NAME, op.body, types, kinds, writer.real)
    letters = f"{''.join(LETTER[t] for t in types)}->{''.join(LETTER[k] for k in kinds)}"
    by_rows = _is_by_rows(computed(made), writer)
    if by_rows:
        shapes = [*(a.shape for a in args), *(r.shape for r in results)]
        ranks = [2 if shape else 0 for shape in shapes]
        text += by_rows_source(NAME, ranks)
        cores = ["(m,n)" if rank else "()" for rank in ranks]
        signature = f"{','.join(cores[: len(types)])}->{','.join(cores[len(types) :])}"
        name = writer.kernel(text, body, letters, signature, "_rows")
    else:
        name = writer.kernel(text, body, letters)
    texts = [operand(a, writer) for a in args]
    lines: list[str] = []
    values = by_number(made, len(results))
    places = [
        None if one is None or (kind != writer.dtype and one.over not in writer.rooms)
        else writer.room(one, lines, not by_rows)
        for one, kind in zip(values, kinds, strict=True)
    ]  # fmt: skip
    return [*lines, writer.call(name, texts, values, places)]


def _is_by_rows(found: Compute, writer: NativeWriter) -> bool:
    """Whether operands are parts of arrays with short rows, and none is broadcast along an axis."""
    last = found.shape[-1] if len(found.shape) > 1 else None
    if not isinstance(last, int) or last > MIN_CHEAP_ROW:
        return False
    arrays = [a for a in found.args if a.shape]
    whole = all(same_shape(a.shape, found.shape) and not is_repeated(a) for a in arrays)
    return whole and any(_is_part(a, writer) for a in arrays)


# ---- sums ----------------------------------------------------------------------------------------


@kernel_lines.dispatch
def sum_lines(op: FusedSum, writer: NativeWriter, made: Made) -> KernelLines:
    """The call of a kernel that sums over the last axes."""
    (one,) = made
    given = computed(made).args
    types = writer.types(given)
    text, body = sum_source(NAME, op.body, types, writer.real)
    cores = ["(n)" if a.shape else "()" for a in given]
    letters = f"{''.join(LETTER[t] for t in types)}->{LETTER[writer.dtype]}"
    name = writer.kernel(text, body, letters, f"{','.join(cores)}->()")
    full = op.body.output_nodes[0].shape
    lead = ", ".join([*map(writer.dim, full[: len(full) - len(op.axes)]), "-1"])
    several = len(op.axes) > 1
    texts = ((a, writer.operand(a)) for a in given)
    args = [f"{text}.reshape({lead})" if several and a.shape else text for a, text in texts]
    place = writer.keep_name(one.value, one.over) if one.over in writer.rooms and one.value.shape else None
    return [writer.call(name, args, [one], [place])]


# ---- rows ----------------------------------------------------------------------------------------


@kernel_lines.dispatch
def region_lines(op: RowGroup, writer: NativeWriter, made: Made) -> KernelLines:
    """The call of a kernel of a region of rows."""
    given, results, letter = computed(made).args, op.body.output_nodes, LETTER[writer.dtype]
    text, signature, operands, body = region_source(NAME, op.body, op.full, writer.real)
    name = writer.kernel(text, body, f"{letter * len(operands)}->{letter * len(results)}", signature)
    args = []
    for each in operands:
        arg = given[each.position]
        per_row = not each.is_row and len(arg.shape) == len(op.full)
        args.append(f"{writer.operand(arg)}[..., 0]" if per_row else writer.operand(arg))
    lines: list[str] = []
    places: list[str | None] = []
    values = by_number(made, len(results))
    ends = [one for one in values if one is not None and _ends_in_one(one.value, op.full)]
    for one in values:
        flat = one is not None and (len(one.value.shape) == len(op.full) or one.value.shape == op.full[:-1])
        places.append(writer.room(one, lines) if one is not None and flat and one not in ends else None)
    lines.append(writer.call(name, args, values, places))
    for last in ends:
        name = writer.named[last.value]
        lines.append(f"{name} = {name}[..., None]")
        lines += [writer.copied(last.value, last.over, name)] if last.over in writer.rooms else []
    return lines


@kernel_lines.dispatch
def softmax_lines(op: ExponentialOp, writer: NativeWriter, made: Made) -> KernelLines:
    """The call of the kernel of a softmax, or of a derivative, over rows; None for other axes."""
    (one,) = made
    given = computed(made).args
    if type(op) not in SOFTMAX or op.axes != (len(given[0].shape) - 1,):
        return None
    kind, letter = SOFTMAX[type(op)], LETTER[writer.dtype]
    text, body = softmax_source(kind, NAME, writer.real)
    name = writer.kernel(text, body, f"{letter * len(given)}->{letter}", softmax_signature(kind))
    lines: list[str] = []
    args = [writer.operand(a) for a in given]
    place = writer.room(one, lines) if one.value.shape else None
    return [*lines, writer.call(name, args, [one], [place])]


@kernel_lines.dispatch
def compiled_pair_lines(op: PairOp, writer: NativeWriter, made: Made) -> KernelLines:
    """The kernels of a sum over pairs where they are better than NumPy's blocks."""
    return pair_sum_lines(op, made, writer) or pair_lines(op, writer, made)


@lines.dispatch
def compiled_loop_lines(statement: Loop, writer: NativeWriter) -> Lines:
    """A compiled loop is one call."""
    return loop_call(statement, writer) if statement.compiled else loop_of_rows(statement, writer)
