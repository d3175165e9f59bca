"""Softmax and related functions on the device: one warp per row, one kernel instead of seven.

A row is read twice (three times for softmax) and stays in the cache in between. Rows that are known to be
long, and axes that are not the last ones, use CuPy's reductions. Half precisions are computed in float32.
"""

from __future__ import annotations

from collections.abc import Callable
from string import Template

from symad.core.arrays import Array
from symad.core.graph import Node, op_of
from symad.gpu.cupy_library import real_type
from symad.gpu.printers.printing import CuPyWriter, Text, Texts, emit
from symad.numeric.targets.arrays import ALONG_AXES
from symad.ops.arrays.softmax import (
    ExponentialOp,
    LogSoftmax,
    LogSoftmaxCotangent,
    LogSoftmaxTangent,
    LogSumExp,
    Softmax,
    SoftmaxTangent,
)

START = """extern "C" __global__ void $name(
    const $real *x, const $real *t, $real *result, long long rows, long long columns) {
  const long long row = blockIdx.x * 4LL + threadIdx.x / 32;
  const int lane = threadIdx.x % 32;
  if (row >= rows) return;
  x += row * columns;
"""

EXPONENTIALS = """  $real highest = x[0];
  for (long long j = lane; j < columns; j += 32) highest = x[j] > highest ? x[j] : highest;
  for (int step = 16; step > 0; step /= 2) {
    const $real other = __shfl_xor_sync(0xffffffffu, highest, step);
    highest = other > highest ? other : highest;
  }
  if (highest - highest != 0) highest = 0;  // infinite or NaN
  $real total = 0;
  for (long long j = lane; j < columns; j += 32) total += $exp(x[j] - highest);
  for (int step = 16; step > 0; step /= 2) total += __shfl_xor_sync(0xffffffffu, total, step);
"""

ENDS = {
    "softmax": """  result += row * columns;
  for (long long j = lane; j < columns; j += 32) result[j] = $exp(x[j] - highest) / total;
}""",
    "log_softmax": """  result += row * columns;
  const $real shift = $log(total);
  for (long long j = lane; j < columns; j += 32) result[j] = x[j] - highest - shift;
}""",
    "log_sum_exp": """  if (lane == 0) result[row] = highest + $log(total);
}""",
}

CENTERED = """  t += row * columns;
  result += row * columns;
  $real shift = 0, rest = 0, total = 0;  // the t of a p of almost 1: 1 - p would lose digits
  for (long long j = lane; j < columns; j += 32) {
    const bool likely = x[j] > ($real)0.9;
    shift += likely ? t[j] : 0;
    rest += likely ? 0 : x[j];
    total += likely ? 0 : x[j] * t[j];
  }
  for (int step = 16; step > 0; step /= 2) {
    shift += __shfl_xor_sync(0xffffffffu, shift, step);
    rest += __shfl_xor_sync(0xffffffffu, rest, step);
    total += __shfl_xor_sync(0xffffffffu, total, step);
  }
  total -= rest * shift;
"""

TANGENTS = {
    "softmax_tangent": CENTERED + """  for (long long j = lane; j < columns; j += 32)
    result[j] = x[j] * (t[j] - shift - total);
}""",
    "log_softmax_tangent": CENTERED + """  for (long long j = lane; j < columns; j += 32)
    result[j] = t[j] - shift - total;
}""",
    "log_softmax_cotangent": """  t += row * columns;
  result += row * columns;
  $real total = 0, rest = 0;  // the sum of all is 0, which gives the element of a p of almost 1
  for (long long j = lane; j < columns; j += 32) total += t[j];
  for (int step = 16; step > 0; step /= 2) total += __shfl_xor_sync(0xffffffffu, total, step);
  for (long long j = lane; j < columns; j += 32) rest += x[j] > ($real)0.9 ? 0 : t[j] - x[j] * total;
  for (int step = 16; step > 0; step /= 2) rest += __shfl_xor_sync(0xffffffffu, rest, step);
  for (long long j = lane; j < columns; j += 32)
    result[j] = x[j] > ($real)0.9 ? -rest : t[j] - x[j] * total;
}""",
}  # fmt: skip

# Calls: `axes` are the last ones, so that the rows of a contiguous array are adjacent.
ROWS = '''def _rows(kernel, x, t, axes, keep, dtype):
    x, t = (cp.ascontiguousarray(a.astype(dtype, copy=False)) for a in (x, t))
    lead = x.shape[:x.ndim - len(axes)]
    result = cp.empty(x.shape if keep else lead, dtype=dtype)
    rows, columns = math.prod(lead), math.prod(x.shape[x.ndim - len(axes):])
    if rows*columns:
        kernel(((rows + 3)//4,), (128,), (x, t, result, cp.int64(rows), cp.int64(columns)))
    return result
'''

MAX_ROW = 16384
"""Rows longer than this use CuPy's reductions, which assign many warps to one row.

Origin: not measured on a device.
"""


def row_source(kind: str, dtype: str) -> str:
    """The CUDA text of one row kernel."""
    real = real_type(dtype)
    text = START + (TANGENTS[kind] if kind in TANGENTS else EXPONENTIALS + ENDS[kind])
    suffix = "f" if real == "float" else ""
    exp, log = f"exp{suffix}", f"log{suffix}"
    return Template(text).substitute(name=f"{kind}_rows", real=real, exp=exp, log=log)


def row_call(kind: str, node: Node, args: Texts, printer: CuPyWriter) -> str | None:
    """The call of a row kernel; None if the axes are not the last ones."""
    axes = op_of(node, ExponentialOp).axes
    shape = node.args[0].shape
    rank = len(shape)
    if axes != tuple(range(rank - len(axes), rank)):
        return None
    if any(isinstance(shape[k], int) and (shape[k] > MAX_ROW or not shape[k]) for k in axes):
        return None
    printer.imports.add("import math")
    name = printer.kernels.raw(f"{kind}_rows", row_source(kind, printer.dtype))
    helper = printer.helper("_rows", ROWS)
    keep = kind != "log_sum_exp"
    call = f"{helper}({name}, {args[0]}, {args[-1]}, {axes}, {keep}, cp.{printer.accumulator})"
    back = "" if printer.accumulator == printer.dtype else f".astype({printer.type_text})"
    return call + back


def by_library(
    function: Callable[..., Array], args: Texts, axes: tuple[int, ...], printer: CuPyWriter
) -> str:
    """The call of a helper that uses CuPy's reductions, in float32 for the half precisions."""
    half = printer.accumulator != printer.dtype
    wide = [f"{a}.astype(cp.float32)" for a in args] if half else args
    call = f"{printer.helper(function)}({', '.join(wide)}, {axes})"
    return f"{call}.astype({printer.type_text})" if half else call


ROW_KERNELS: dict[type, str] = {
    Softmax: "softmax",
    LogSoftmax: "log_softmax",
    LogSumExp: "log_sum_exp",
    SoftmaxTangent: "softmax_tangent",
    LogSoftmaxTangent: "log_softmax_tangent",
    LogSoftmaxCotangent: "log_softmax_cotangent",
}


@emit.dispatch
def exponential_cupy(
    op: ExponentialOp, node: Node, args: Texts, printer: CuPyWriter
) -> Text:
    by_row = row_call(ROW_KERNELS[type(op)], node, args, printer)
    return by_row or by_library(ALONG_AXES[type(op)], args, op.axes, printer)
