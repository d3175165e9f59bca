"""The CUDA text of the kernels of a lowered graph."""

from __future__ import annotations

from tests.gpu.cupy_agreement import module_of
from tests.gpu.cupy_standin import kernels as standin

C_TYPES = {"float64": "double", "float32": "float", "bool": "bool", "int64": "long long", "int32": "int"}


def kernels_of(graph, dtype):
    """The kernel objects that the module of a graph makes."""
    return [v for k, v in module_of(graph, dtype).items() if k.startswith(("_kernel", "_source"))]


def loop(kernel, name):
    """An elementwise kernel as CUDA text: arrays by pointers, elements by references."""
    everything = kernel.inputs + kernel.outputs
    constant = {p.name: "const " if p in kernel.inputs else "" for p in everything}
    signature = ", ".join(f"{constant[p.name]}{C_TYPES[p.dtype]} *_raw_{p.name}" for p in everything)
    lines = [
        f"{constant[p.name]}{C_TYPES[p.dtype]} {'*' if p.raw else '&'}{p.name} = _raw_{p.name}"
        + ("" if p.raw else "[i]")
        + ";"
        for p in everything
    ]
    body = "\n".join([*lines, kernel.body])
    head = f'extern "C" __global__ void {name}({signature}, long long n)'
    start = "blockIdx.x * (long long)blockDim.x + threadIdx.x"
    step = "gridDim.x * (long long)blockDim.x"
    whole = f"for (long long i = {start}; i < n; i += {step}) {{\n{body}\n}}"
    return f"{kernel.preamble}\n{head} {{\n{whole}\n}}\n"


def cuda_text(kernel):
    if isinstance(kernel, str):
        return kernel
    if isinstance(kernel, standin.RawKernel):
        return kernel.code
    return loop(kernel if isinstance(kernel, standin.ElementwiseKernel) else kernel.map, "generated")
