"""Softmax and related functions over rows: C text of generalized ufuncs.

As in `symad.numeric.targets.helpers`, the largest element is subtracted first, unless it is infinite or NaN;
then nothing is subtracted, and the result shows the infinity or NaN.
"""

from __future__ import annotations

from symad.numeric.compiled_arrays.c.c_body import NativeBody
from symad.numeric.compiled_arrays.c.row_entry import Operand, entry, row_head

HIGHEST = """  $real highest = columns ? x0[0] : 0;
#pragma omp simd reduction(max:highest)
  for (ptrdiff_t j = 0; j < columns; j++) highest = x0[j] > highest ? x0[j] : highest;
  bool odd = false;
#pragma omp simd reduction(|:odd)
  for (ptrdiff_t j = 0; j < columns; j++) odd = odd | (x0[j] != x0[j]);
  if (odd || highest - highest != 0) highest = 0;
"""

TOTAL = """  $real total = 0;
#pragma omp simd reduction(+:total)
  for (ptrdiff_t j = 0; j < columns; j++) total += $exp(x0[j] - highest);
"""

KEPT = """  $real total = 0;
#pragma omp simd reduction(+:total)
  for (ptrdiff_t j = 0; j < columns; j++) {
    const $real e = $exp(x0[j] - highest);
    y0[j] = e;
    total += e;
  }
"""

ROWS: dict[str, str] = {
    "softmax": HIGHEST + KEPT + """  const $real scale = 1 / total;
#pragma omp simd
  for (ptrdiff_t j = 0; j < columns; j++) y0[j] *= scale;
""",
    "log_softmax": HIGHEST + TOTAL + """  const $real shift = highest + $log(total);
#pragma omp simd
  for (ptrdiff_t j = 0; j < columns; j++) y0[j] = x0[j] - shift;
""",
    "log_sum_exp": HIGHEST + TOTAL + "  *y0 = highest + $log(total);\n",
    "softmax_tangent": """  $real total = 0;
#pragma omp simd reduction(+:total)
  for (ptrdiff_t j = 0; j < columns; j++) total += x0[j] * x1[j];
#pragma omp simd
  for (ptrdiff_t j = 0; j < columns; j++) y0[j] = x0[j] * (x1[j] - total);
""",
}  # fmt: skip

SIGNATURES = {
    "softmax": "(n)->(n)", "log_softmax": "(n)->(n)", "log_sum_exp": "(n)->()",
    "softmax_tangent": "(n),(n)->(n)",
}  # fmt: skip


def softmax_source(kind: str, name: str, real: str) -> tuple[str, NativeBody]:
    """The text of one function of `ROWS`, and its body."""
    body = NativeBody(real)
    inputs = [Operand(f"x{k}", True, k, real) for k in range(2 if kind == "softmax_tangent" else 1)]
    outputs = [Operand("y0", kind != "log_sum_exp", 0, real)]
    text = body.expand(ROWS[kind])
    head = row_head(name, inputs, outputs)
    return "\n".join([head, text + "}", *entry(name, inputs, outputs)]) + "\n", body
