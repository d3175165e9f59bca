"""The CuPy backend: scalar graphs as one kernel, array graphs as statements with fused kernels.

Lowering prints text and needs neither CuPy nor a device; the first call needs both.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any
from weakref import WeakValueDictionary

import sympy

from symad.core.graph import Graph, Node, rebuild
from symad.core.identifiers import not_one_of
from symad.core.questions import definition
from symad.cost import memory
from symad.errors import LoweringError
from symad.fused.attention_ops import AttentionOp
from symad.fused.pair_sum import PairOp
from symad.gpu.array_printer import print_cupy_module
from symad.gpu.attention_kernels import printer as attention
from symad.gpu.compile import MEMORY, GpuError, advice, cupy, explained, raise_explained
from symad.gpu.cupy_library import DTYPES
from symad.gpu.pairs import printer as pair_sum
from symad.gpu.passes.recognize_attention import recognized
from symad.gpu.passes.recurrences import recurrent
from symad.gpu.scalar_program import is_kernel, print_scalar_kernel
from symad.numeric.kernel import Kernel, compile_source
from symad.numeric.passes import prepare
from symad.numeric.passes.ranges import in_range
from symad.numeric.pipelines import run_graph_passes
from symad.numeric.scheduling.roles import roles_of

if TYPE_CHECKING:
    from symad.core.arrays import Array


# ---- fused ops without a kernel ------------------------------------------------------------------

# The definitions are then fused and scheduled like all other nodes.


def with_kernels(graph: Graph, dtype: str) -> Graph:
    """The graph in which every attention and every sum over pairs has kernels."""

    def make(node: Node, args: tuple[Node, ...]) -> Node:
        made = Node.of(node.op, args)
        if isinstance(node.op, AttentionOp):
            known = attention.has_kernels(node.op, made, dtype)
        elif isinstance(node.op, PairOp):
            known = pair_sum.has_kernels(node.op, made, dtype)
        else:
            return made
        written: Node = made if known else definition(made.op, made)
        return written

    outputs = rebuild(graph.output_nodes, {n: n for n in graph.input_nodes}, make)
    return Graph(graph.input_nodes, outputs, graph.structure, graph.name, graph.report)


def lower(graph: Graph, dtype: str, packed: bool) -> Kernel:
    """Print a graph for CuPy; the text is compiled at the first call of the kernel.

    Args:
        graph: the function to compute.
        dtype: "float64", "float32", or a storage type "float16" or "bfloat16" with arithmetic and
            sums in float32.
        packed: has no effect: `symad.numeric.lower` prints the function that takes a vector apart.

    Raises:
        LoweringError: the dtype is unknown, or CuPy has no form of an op.
    """
    if dtype not in DTYPES:
        raise LoweringError(not_one_of("dtype", dtype, DTYPES))
    with roles_of(graph, inner=False).followed() as roles:
        prepared = prepare(recurrent(with_kernels(recognized(graph), dtype)), dtype)
        prepared = run_graph_passes(prepared, in_range(dtype))
        if is_kernel(prepared):
            name, source, kernels = print_scalar_kernel(prepared, dtype)
        else:
            name, source, kernels = print_cupy_module(prepared, dtype, roles)

    @lru_cache(maxsize=1)
    def compiled() -> Kernel:
        cupy()  # raises one clear error if there is no CuPy, no driver or no device
        kernel = compile_source(name, source)
        if "_check_indices" in kernel.namespace:
            _WITH_INDICES[id(kernel)] = kernel
        return kernel

    def run(*values: Any) -> Any:
        try:
            return compiled().function(*values)
        except Exception as error:
            if isinstance(error, MemoryError) or advice(error) == MEMORY:
                raise GpuError(_out_of_memory(prepared, dtype, values, error)) from error
            raise_explained(error, graph.name)
            raise

    return Kernel(name, "".join(source), run, dict(kernels.by_name()))


def standalone(kernel: Kernel) -> tuple[str, str]:
    """A kernel as a CUDA file and its header."""
    from symad.gpu.standalone_cuda import standalone as written  # loaded on use

    return written(kernel)


_WITH_INDICES: WeakValueDictionary[int, Kernel] = WeakValueDictionary()
"""The kernels in use that check indices, by their ids."""


def check_indices() -> None:
    """Wait for the current device, and raise the error of a wrong index in an earlier call, if there was one.

    Calls do not wait until all indices are known to be in range. Without this function, a wrong index raises
    an error in a later call of the same kernel, or at the end of the program.

    Raises:
        IndexError: an index was out of range; the message gives the axis and its length.
        GpuError: there is no usable GPU.

    Example:
        >>> import cupy as cp, symad, symad.gpu
        >>> rows = symad.trace(lambda t, i: t[i], [(4,), (2,)])
        >>> kernel = symad.numeric.lower(rows, backend="cupy")
        >>> found = kernel(cp.arange(4.0), cp.asarray([0, 7]))
        >>> symad.gpu.check_indices()
        Traceback (most recent call last):
        IndexError: ...axis 0 of t has length 4...
    """
    with explained("waiting for the device"):
        cupy().cuda.runtime.deviceSynchronize()
    look_at_indices()


def look_at_indices() -> None:
    """Raise the error of a wrong index that the current device has found so far, without waiting."""
    device = cupy().cuda.Device().id
    for kernel in list(_WITH_INDICES.values()):
        kernel.namespace["_report"](kernel.namespace["_flag"](device)[0])


BYTES = {"float64": 8, "float32": 4, "float16": 2, "bfloat16": 2}


def _out_of_memory(graph: Graph, dtype: str, values: Sequence[Array], error: Exception) -> str:
    """The message: the function, the memory it needs at these shapes, and ways to need less."""
    sizes = {
        dim: size
        for node, value in zip(graph.input_nodes, values, strict=False)
        for dim, size in zip(node.shape, getattr(value, "shape", ()), strict=False)
    }
    peak = sympy.sympify(memory(graph), strict=True).subs(sizes) * BYTES[dtype] / BYTES["float64"]
    planned = f"{float(peak) / 2**30:.3g} GiB" if peak.is_number else f"{peak} bytes"
    return (
        f"{graph.name} ran out of device memory; its values take about {planned} at the peak in "
        f"{dtype}. A shorter dtype, a smaller batch, or fewer derivatives at once (products with a "
        f"vector in place of whole matrices) take less. CuPy said: {error}"
    )
