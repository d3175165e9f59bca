"""A graph as a ``torch.autograd.Function``: forward is the lowered graph, backward the lowered pullback.

The backward pass calls the pullback as such a function again, so derivatives of every order exist. The
same holds for forward mode (pushforward) and for batches (vmap): ``torch.func`` composes as with PyTorch's
own operations.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from symad.core.graph import Graph, TupleOf
from symad.derivatives.sweeps import pullback, pushforward
from symad.derivatives.vmap import vmap
from symad.errors import EvaluationError
from symad.gpu.compile import cupy as library
from symad.numeric import Kernel, lower
from symad.torch.compiling import key_of

if TYPE_CHECKING:
    from torch.autograd.function import FunctionCtx


class Bridge:
    """A graph of flat inputs and flat outputs, with its kernels and the bridges of its derivatives.

    ``pointwise``: all inputs are numbers; they may then be tensors of points, which broadcast together.
    """

    def __init__(self, graph: Graph, backend: str) -> None:
        """``backend`` computes on the CPU; "cupy" computes on a CUDA device."""
        count = len(graph.output_nodes)
        self.graph = graph.ungrouped().with_outputs(graph.output_nodes, TupleOf((None,) * count), graph.name)
        self.backend = backend
        self._key: str | None = None  # torch.compile reads both, and no cached property
        self.pointwise = bool(graph.input_nodes) and not any(node.shape for node in graph.input_nodes)
        self.kernel = lru_cache(maxsize=None)(self._kernel)
        self.pullback = lru_cache(maxsize=64)(self._pullback)
        self.pushforward = lru_cache(maxsize=64)(self._pushforward)
        self.batched = lru_cache(maxsize=64)(self._batched)

    def __call__(self, *tensors: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """The outputs, recorded by PyTorch; torch.compile sees one operator."""
        if torch.compiler.is_compiling():
            return tuple(torch.ops.symad.call(self.key, list(tensors)))
        return tuple(Call.apply(self, *tensors))

    @property
    def key(self) -> str:
        """The name by which the operator of torch.compile finds this function."""
        if self._key is None:
            self._key = key_of(self)
        return self._key

    def _kernel(self, backend: str, dtype: str) -> Kernel:
        return lower(self.graph, backend=backend, dtype=dtype)

    def _pullback(self, wrt: tuple[int, ...]) -> Bridge:
        """(x..., ȳ...) -> x̄ of the inputs at these positions."""
        return self._without_values(pullback(self.graph, list(wrt)))

    def _pushforward(self, wrt: tuple[int, ...]) -> Bridge:
        """(x..., ẋ of the inputs at these positions...) -> ẏ..."""
        return self._without_values(pushforward(self.graph, list(wrt)))

    def _without_values(self, full: Graph) -> Bridge:
        made = full.output_nodes[len(self.graph.output_nodes) :]
        return Bridge(full.with_outputs(made, TupleOf((None,) * len(made)), full.name), self.backend)

    def _batched(self, axes: tuple[int | None, ...]) -> Bridge:
        """The function over a batch."""
        return Bridge(vmap(self.graph, axes), self.backend)

    def run(self, tensors: Sequence[torch.Tensor]) -> tuple[torch.Tensor, ...]:
        """The lowered graph on the memory of the tensors."""
        device, dtype = _common(self.graph, tensors)
        if device.type == "cuda":
            return _on_cuda(self.kernel("cupy", dtype), tensors, device)
        values = self.kernel(self.backend, dtype)(*(np.from_dlpack(t.detach()) for t in tensors))
        return tuple(torch.from_dlpack(np.asarray(value)) for value in values)


def _common(graph: Graph, tensors: Sequence[torch.Tensor]) -> tuple[torch.device, str]:
    """The device of all tensors, and the name of their dtype.

    Raises:
        EvaluationError: the tensors are on several devices, or on one without a backend.
    """
    devices = list(dict.fromkeys(t.device for t in tensors))
    if len(devices) != 1 or devices[0].type not in ("cpu", "cuda"):
        places = ", ".join(f"{name} on {t.device}" for name, t in zip(graph.inputs, tensors, strict=True))
        raise EvaluationError(f"{graph.name} computes on one CPU or CUDA device; given: {places}")
    floats = [t.dtype for t in tensors if t.is_floating_point()]
    return devices[0], str(floats[0] if floats else torch.get_default_dtype()).removeprefix("torch.")


def _on_cuda(
    kernel: Kernel, tensors: Sequence[torch.Tensor], device: torch.device
) -> tuple[torch.Tensor, ...]:
    """Run on a CUDA device: after the work that PyTorch has queued on its stream, before later work."""
    cupy = library()
    stream = torch.cuda.current_stream(device).cuda_stream
    with cupy.cuda.Device(device.index), cupy.cuda.ExternalStream(stream):
        values = kernel(*(cupy.from_dlpack(t.detach()) for t in tensors))
        return tuple(torch.from_dlpack(cupy.asarray(value)) for value in values)


class Call(torch.autograd.Function):
    """The bridge as a function of PyTorch's autograd."""

    @staticmethod
    def forward(bridge: Bridge, *tensors: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """The outputs."""
        return bridge.run(tensors)

    @staticmethod
    def setup_context(ctx: FunctionCtx, inputs: tuple[Any, ...], output: tuple[torch.Tensor, ...]) -> None:
        """Save the inputs: the pullback recomputes residuals, in one kernel with the rest."""
        ctx.bridge = inputs[0]
        ctx.save_for_backward(*inputs[1:])
        ctx.save_for_forward(*inputs[1:])

    @staticmethod
    def backward(ctx: FunctionCtx, *bars: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        """x̄ of the inputs that need it."""
        wrt = tuple(k for k, needed in enumerate(ctx.needs_input_grad[1:]) if needed)
        found = iter(ctx.bridge.pullback(wrt)(*ctx.saved_tensors, *bars))
        return None, *(next(found) if needed else None for needed in ctx.needs_input_grad[1:])

    @staticmethod
    def jvp(ctx: FunctionCtx, *tangents: torch.Tensor | None) -> tuple[torch.Tensor, ...]:
        """ẏ from the tangents that are given."""
        wrt = tuple(k for k, tangent in enumerate(tangents[1:]) if tangent is not None)
        given = [tangent for tangent in tangents[1:] if tangent is not None]
        return tuple(ctx.bridge.pushforward(wrt)(*ctx.saved_tensors, *given))

    @staticmethod
    def vmap(
        info: Any, axes: tuple[int | None, ...], bridge: Bridge, *tensors: torch.Tensor
    ) -> tuple[tuple[torch.Tensor, ...], tuple[int, ...]]:
        """A batch along axis 0 of the outputs."""
        moved = [t if a is None else torch.movedim(t, a, 0) for t, a in zip(tensors, axes[1:], strict=True)]
        if bridge.pointwise:
            rank = max(t.ndim + (a is None) for t, a in zip(moved, axes[1:], strict=True))
            aligned = [_aligned(t, a is not None, rank) for t, a in zip(moved, axes[1:], strict=True)]
            results = bridge(*torch.broadcast_tensors(*aligned))
        else:
            results = bridge.batched(tuple(None if a is None else 0 for a in axes[1:]))(*moved)
        return results, (0,) * len(results)


def _aligned(tensor: torch.Tensor, batched: bool, rank: int) -> torch.Tensor:
    """A tensor of points with axes of length 1 after the batch axis, up to a rank."""
    if not batched:
        return tensor
    return tensor.reshape(tensor.shape[:1] + (1,) * (rank - tensor.ndim) + tensor.shape[1:])
