"""CUDA texts of elementwise kernels and sums for given shapes: the loops that CuPy writes around bodies."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from symad.gpu.printers.kernels import ElementwiseKernel, SumKernel

Value = Any
"""What a call of CuPy's interface takes or returns."""

NEWLINE = "\n"
C_TYPES = {
    "float64": "double", "float32": "float", "float16": "float16", "bfloat16": "bfloat16",
    "int64": "long long", "int32": "int", "uint64": "unsigned long long", "uint32": "unsigned int",
    "uint16": "unsigned short", "bool": "bool",
}  # fmt: skip


_HALF = """#include <cuda_{header}.h>
struct {name} {{  // a number that is stored in 16 bits and computed in float
  __{kind} bits;
  {name}() = default;
  __device__ {name}(float x) : bits(__float2{short}(x)) {{}}
  __device__ operator float() const {{ return __{long}2float(bits); }}
}};
"""
HALVES = {
    "float16": _HALF.format(name="float16", header="fp16", kind="half", short="half", long="half"),
    "bfloat16": _HALF.format(
        name="bfloat16", header="bf16", kind="nv_bfloat16", short="bfloat16", long="bfloat16"
    ),
}
"""The C++ types of half precisions, by name."""


def place(array: Value, shape: Sequence[int], index: str, first: int = 0) -> str:
    """The number of the element of a strided array at a row-major index of the axes from ``first`` on."""
    terms = []
    for k, length in enumerate(shape):
        stride = array.strides[first + k] // array.itemsize
        if length > 1 and stride:
            rest = math.prod(shape[k + 1 :])
            at = index if rest == 1 else f"{index} / {rest}"
            at = at if k == 0 or math.prod(shape[:k]) == 1 else f"{at} % {length}"
            terms.append(at if stride == 1 else f"({at}) * {stride}" if " " in at else f"{at} * {stride}")
    if len(array.shape) == len(shape) and array.flags.c_contiguous:
        return index if array.size > 1 else "0"
    return " + ".join(f"({t})" if "%" in t else t for t in terms) or "0"


def elementwise_text(kernel: ElementwiseKernel, values: Sequence[Value], shape: Sequence[int]) -> str:
    """A kernel ``elements`` that runs a body for every element of a shape."""
    declared, before, after = [], [], []
    inputs = len(kernel.inputs)
    for k, (p, value) in enumerate(zip((*kernel.inputs, *kernel.outputs), values, strict=True)):
        kind = C_TYPES[p.dtype]
        if not hasattr(value, "strides") or isinstance(value, np.generic):
            before.append(f"const {kind} {p.name} = {number(value, p.dtype)};")
        elif p.raw:
            declared.append(f"{'const ' * (k < inputs)}{kind} *{p.name}")
        else:
            at = f"{p.name}_all[{place(value, shape, 'i')}]"
            declared.append(f"{'const ' * (k < inputs)}{kind} *{p.name}_all")
            before.append(f"const {kind} {p.name} = {at};" if k < inputs else f"{kind} {p.name};")
            after += [] if k < inputs else [f"{at} = {p.name};"]
    lines = "\n    ".join(kernel.body)
    return f"""{NEWLINE.join(kernel.preamble)}
extern "C" __global__ void elements({", ".join(declared)}) {{
  const long long n = {math.prod(shape)};
  const long long step = (long long)gridDim.x * blockDim.x;
  for (long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x; i < n; i += step) {{
    {" ".join(before)}
    {{{lines}}}
    {" ".join(after)}
  }}
}}
"""


def sum_text(kernel: SumKernel, arrays: Sequence[Value], kept: int) -> str:
    """A kernel ``sums``: a block of 256 threads adds the axes from ``kept`` on, in a fixed order."""
    shape = arrays[0].shape
    real, out = kernel.real, kernel.output.name
    declared = [f"const {C_TYPES[p.dtype]} *{p.name}_all" for p in kernel.inputs]
    read = " ".join(
        f"const {C_TYPES[p.dtype]} {p.name} = {p.name}_all[{place(a, shape[:kept], 'block')}"
        f" + {place(a, shape[kept:], 'j', kept)}];"
        for a, p in zip(arrays, kernel.inputs, strict=True)
    )
    kind = C_TYPES[kernel.output.dtype]
    return f"""{NEWLINE.join(kernel.preamble)}
extern "C" __global__ void sums({", ".join(declared)}, {kind} *{out}_all) {{
  __shared__ {real} parts[256];
  const long long block = blockIdx.x;
  {real} a = 0;
  for (long long j = threadIdx.x; j < {math.prod(shape[kept:])}; j += 256) {{
    {read}
    a += {kernel.mapped};
  }}
  parts[threadIdx.x] = a;
  for (int half = 128; half > 0; half /= 2) {{
    __syncthreads();
    if (threadIdx.x < half) parts[threadIdx.x] += parts[threadIdx.x + half];
  }}
  if (threadIdx.x == 0) {{
    a = parts[0];
    {out}_all[block] = {kernel.after};
  }}
}}
"""


def number(value: Value, dtype: str) -> str:
    """A number as CUDA text."""
    if np.dtype(bool if dtype == "bool" else "float64" if dtype in HALVES else dtype).kind in "biu":
        return f"{int(value)}"
    plain = float(value)
    if math.isfinite(plain):
        return float(np.float32(plain)).hex() + "f" if dtype == "float32" else plain.hex()
    return "NAN" if plain != plain else "INFINITY" if plain > 0 else "-INFINITY"
