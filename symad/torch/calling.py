"""`as_function`: a graph, or an argument of `symad.trace`, as a differentiable function of tensors."""

from __future__ import annotations

from functools import reduce
from typing import Any

import torch

from symad.core.arguments import SignatureOf, bind, flat_values
from symad.core.graph import Graph, pack
from symad.core.signatures import Inputs, Traceable, Tree
from symad.errors import EvaluationError
from symad.numeric.lowering import DTYPES
from symad.torch.bridge import Bridge
from symad.tracing import trace


def as_function(f: Traceable, inputs: Inputs | None = None, backend: str = "numpy") -> TorchFunction:
    """``f`` as a function of tensors that PyTorch differentiates, any number of times and in every mode.

    Forward is the lowered graph; backward is the lowered pullback, which is again such a function, so that
    Hessians, gradient penalties and ``torch.func`` work. Tensors share their memory with the kernels
    (DLPack): on the CPU with NumPy or compiled code, on a CUDA device with CuPy and its kernels.

    Args:
        f: an argument of `symad.trace`: a graph, a SymPy object, or a Python function with ``inputs``.
        inputs: order and grouping of the arguments, as in `symad.trace`; a dict of tensors is one argument.
        backend: "numpy" or "c", for tensors on the CPU, in float64 or float32. On a CUDA device it is "cupy".

    Raises:
        TraceError: ``f`` cannot be traced.
        EvaluationError: when called with tensors on several devices, or of a dtype without kernels.
    """
    return TorchFunction(trace(f, inputs), backend)


class TorchFunction:
    """A graph as a function of tensors; results have the structure of the graph's.

    Tensors of several floating-point dtypes are promoted as PyTorch does. Numbers may be given for tensors.
    If all inputs of the graph are scalars, they may be tensors of points, which broadcast together.
    """

    __signature__ = SignatureOf()

    def __init__(self, graph: Graph, backend: str = "numpy") -> None:
        """Kernels are lowered on the first call, for each device and dtype."""
        self.graph = graph
        self.arguments = graph.arguments
        self.__name__ = graph.name
        self.bridge = Bridge(graph, backend)
        self.bridge.key  # noqa: B018  (torch.compile reads it, and cannot trace its computation)

    def __call__(self, *values: Tree, **named: Tree) -> Any:
        """The outputs at these tensors, by position or by name."""
        given = bind(self.graph.name, self.arguments, values, named)
        tensors = self._tensors(flat_values(self.arguments, given))
        if self.bridge.pointwise and any(t.ndim for t in tensors):
            tensors = list(torch.broadcast_tensors(*tensors))
        return pack(self.graph.structure, self.bridge(*tensors))

    def _tensors(self, values: list[torch.Tensor]) -> list[torch.Tensor]:
        """Tensors of one floating-point dtype and of integers, all on one device."""
        tensors = [v for v in values if isinstance(v, torch.Tensor)]
        for name, value in zip(self.graph.inputs, values, strict=True):
            if isinstance(value, torch.Tensor) and (value.is_complex() or value.layout != torch.strided):
                raise EvaluationError(
                    f"{name} was given a tensor of {value.dtype}, {value.layout}; give a dense real tensor"
                )
        floats = [t.dtype for t in tensors if t.is_floating_point()]
        dtype = reduce(torch.promote_types, floats) if floats else torch.get_default_dtype()
        device = tensors[0].device if tensors else torch.device("cpu")
        if device.type == "cpu" and str(dtype).removeprefix("torch.") not in DTYPES:
            raise EvaluationError(
                f"{self.graph.name} was given tensors of {dtype} on the CPU, where kernels compute in "
                f"{' or '.join(DTYPES)}; convert them, for example by .double()"
            )
        made = []
        for value in values:
            if not isinstance(value, torch.Tensor):
                value = torch.as_tensor(value, dtype=dtype, device=device)
            made.append(value.to(dtype) if value.is_floating_point() else value)
        return made

    def __reduce__(self) -> tuple[type[TorchFunction], tuple[Graph, str]]:
        return TorchFunction, (self.graph, self.bridge.backend)

    def __repr__(self) -> str:
        names = ", ".join(argument.name for argument in self.arguments)
        return f"<TorchFunction {self.graph.name}({names})>"
