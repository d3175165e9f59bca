"""The CuPy backend: scalar graphs as one kernel, array graphs as statements with fused kernels.

Lowering prints text and needs neither CuPy nor a device; the first call does.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from symad.errors import LoweringError
from symad.gpu.compile import cupy
from symad.gpu.printers.library import DTYPES
from symad.gpu.program import print_cupy_module
from symad.gpu.scalar_program import is_kernel, print_scalar_kernel
from symad.graph import Graph
from symad.numeric.kernel import Kernel, compile_source
from symad.numeric.passes import prepare


def lower(graph: Graph, dtype: str, packed: bool) -> Kernel:
    """Print a graph for CuPy; the text is compiled when the kernel is called first.

    Args:
        graph: what to compute.
        dtype: "float64", "float32", or a storage type "float16" or "bfloat16" with arithmetic and
            sums in float32.
        packed: take and return flat vectors.

    Raises:
        LoweringError: an unknown dtype, or an op without a form for CuPy.
    """
    if dtype not in DTYPES:
        raise LoweringError(f"dtype={dtype!r} is not one of {', '.join(map(repr, DTYPES))}")
    prepared = prepare(graph)
    print_module = print_scalar_kernel if is_kernel(prepared) else print_cupy_module
    name, source = print_module(prepared, dtype, packed)

    @lru_cache(maxsize=1)
    def compiled() -> Kernel:
        cupy()  # one clear error where there is no CuPy, no driver or no device
        return compile_source(name, source)

    def run(*values: Any) -> Any:
        return compiled().function(*values)

    return Kernel(name, source, run)
