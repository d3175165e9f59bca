"""Softmax and related functions over rows: C text of generalized ufuncs.

As in `symad.numeric.targets.helpers`, the largest element is subtracted first, unless it is infinite or NaN;
then nothing is subtracted, and the result shows the infinity or NaN.
"""

from __future__ import annotations

from symad.numeric.compiled_arrays.c.c_body import NativeBody
from symad.numeric.compiled_arrays.c.row_entry import Operand, row_function

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

CENTERED = """  $real shift = 0, rest = 0, total = 0;
#pragma omp simd reduction(+:shift,rest,total)
  for (ptrdiff_t j = 0; j < columns; j++) {
    const $real p = x0[j] > ($real)0.9 ? 0 : x0[j];
    shift += x0[j] > ($real)0.9 ? x1[j] : 0;
    rest += p;
    total += p * x1[j];
  }
  total -= rest * shift;
"""
"""The t of a p of almost 1, else 0, and the mean of t less that: 1 - p would lose digits."""

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
    "softmax_tangent": CENTERED + """#pragma omp simd
  for (ptrdiff_t j = 0; j < columns; j++) y0[j] = x0[j] * (x1[j] - shift - total);
""",
    "log_softmax_tangent": CENTERED + """#pragma omp simd
  for (ptrdiff_t j = 0; j < columns; j++) y0[j] = x1[j] - shift - total;
""",
    "log_softmax_cotangent": """  $real total = 0;
#pragma omp simd reduction(+:total)
  for (ptrdiff_t j = 0; j < columns; j++) total += x1[j];
  $real rest = 0, likely = 0;
#pragma omp simd reduction(+:rest,likely)
  for (ptrdiff_t j = 0; j < columns; j++) {
    y0[j] = x1[j] - x0[j] * total;
    rest += x0[j] > ($real)0.9 ? 0 : y0[j];
    likely += x0[j] > ($real)0.9 ? 1 : 0;
  }
  if (likely > 0) {  // the sum of all is 0, and 1 - p would lose digits
    for (ptrdiff_t j = 0; j < columns; j++) if (x0[j] > ($real)0.9) y0[j] = -rest;
  }
""",
}  # fmt: skip

ONE_ARRAY = ("softmax", "log_softmax", "log_sum_exp")
"""The functions of one array; the others have two, p and t."""


def softmax_signature(kind: str) -> str:
    """The axes of the arguments and of the result of a function of `ROWS`."""
    given = "(n)" if kind in ONE_ARRAY else "(n),(n)"
    return f"{given}->{'()' if kind == 'log_sum_exp' else '(n)'}"


def softmax_source(kind: str, name: str, real: str) -> tuple[str, NativeBody]:
    """The text of one function of `ROWS`, and its body."""
    body = NativeBody(real)
    inputs = [Operand(f"x{k}", True, k, real) for k in range(1 if kind in ONE_ARRAY else 2)]
    outputs = [Operand("y0", kind != "log_sum_exp", 0, real)]
    text = body.expand(ROWS[kind])
    return "\n".join(row_function(name, inputs, outputs, [text])) + "\n", body
