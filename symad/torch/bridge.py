"""`as_function`: a graph as a ``torch.autograd.Function``: forward lowered, backward the lowered pullback.

The backward pass calls the pullback as such a function again, so derivatives of every order exist. The
same holds for forward mode (pushforward) and for batches (vmap): ``torch.func`` composes as with PyTorch's
own operations. By the operator ``symad::call`` torch.compile keeps graphs whole; eager code does not use it.
Its arguments are the key of a function and its tensors. The shapes of its outputs follow from the graph, and
its derivative is the operator with the key of the pullback. A key is a digest of the graph, because compiled
code is kept on disk and may be read by another process.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from functools import lru_cache, reduce
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import torch

from symad.core.arguments import SignatureOf, bind, flat_values
from symad.core.dims import solve_dims
from symad.core.graph import Graph, TupleOf, pack
from symad.core.signatures import Inputs, Traceable, Tree
from symad.derivatives.sweeps import pullback, pushforward
from symad.derivatives.vmap import vmap
from symad.errors import EvaluationError, SymadError
from symad.gpu.compile import cupy as library
from symad.numeric import Kernel, lower
from symad.numeric.lowering import DTYPES
from symad.saving.save_load import dumps
from symad.tracing import trace

if TYPE_CHECKING:
    from torch.autograd.function import FunctionCtx


# ---- the operator symad --------------------------------------------------------------------------


class CompiledBridge(Protocol):
    """What the operator uses of `symad.torch.bridge.Bridge`."""

    graph: Graph
    backend: str
    pointwise: bool

    @property
    def key(self) -> str:
        """The key."""

    def run(self, tensors: Sequence[torch.Tensor]) -> tuple[torch.Tensor, ...]:
        """The outputs."""

    def pullback(self, wrt: tuple[int, ...]) -> CompiledBridge:
        """The pullback by some inputs."""


BRIDGES: dict[str, CompiledBridge] = {}
"""The functions that were made, by key."""


def key_of(bridge: CompiledBridge) -> str:
    """The key of a function, which the operator finds from now on."""
    try:
        text = dumps(bridge.graph)
    except (SymadError, TypeError):  # it calls functions of the user that have no module
        text = f"{id(bridge.graph)}"
    key = hashlib.sha256(f"{bridge.backend}\n{text}".encode()).hexdigest()
    BRIDGES.setdefault(key, bridge)
    return key


def _values(key: str, tensors: list[torch.Tensor]) -> list[torch.Tensor]:
    """The outputs of the function with a key."""
    return list(BRIDGES[key].run(tensors))


def _shapes(key: str, tensors: list[torch.Tensor]) -> list[torch.Tensor]:
    """Empty tensors in place of the outputs."""
    graph = BRIDGES[key].graph
    if BRIDGES[key].pointwise:
        return [torch.empty_like(torch.broadcast_tensors(*tensors)[0]) for _ in graph.output_nodes]
    names = [str(symbol) for symbol in graph.inputs]
    shapes = [tuple(map(int, tensor.shape)) for tensor in tensors]
    declared = [node.shape for node in graph.input_nodes]
    bound = graph.at(solve_dims(list(zip(names, declared, shapes, strict=True))))
    dtype = next((t.dtype for t in tensors if t.is_floating_point()), torch.get_default_dtype())
    device = tensors[0].device if tensors else torch.device("cpu")
    return [torch.empty(tuple(map(int, n.shape)), dtype=dtype, device=device) for n in bound.output_nodes]


def _keep(ctx: Any, inputs: tuple[Any, ...], output: list[torch.Tensor]) -> None:
    ctx.key, tensors = inputs
    ctx.wrt = tuple(k for k, tensor in enumerate(tensors) if tensor.requires_grad)
    ctx.save_for_backward(*tensors)


def _pull(ctx: Any, bars: list[torch.Tensor]) -> tuple[None, list[torch.Tensor | None]]:
    """x̄ of the tensors that need it."""
    pullback = BRIDGES[ctx.key].pullback(ctx.wrt)
    found = iter(call(pullback.key, [*ctx.saved_tensors, *bars]))
    return None, [next(found) if k in ctx.wrt else None for k in range(len(ctx.saved_tensors))]


call: Any = torch.library.custom_op("symad::call", _values, mutates_args=())
"""The operator."""

call.register_fake(_shapes)
call.register_autograd(_pull, setup_context=_keep)


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


# ---- as_function ---------------------------------------------------------------------------------


def as_function(f: Traceable, inputs: Inputs | None = None, backend: str = "numpy") -> TorchFunction:
    """``f`` as a function of tensors that PyTorch differentiates, any number of times and in every mode.

    Forward is the lowered graph; backward is the lowered pullback, which is again such a function, so that
    Hessians, gradient penalties and ``torch.func`` work. Tensors share their memory with the kernels
    (DLPack): on the CPU with NumPy or compiled code, on a CUDA device with CuPy and its kernels.

    Args:
        f: an argument of `symad.trace`: a graph, a SymPy object, or a Python function with ``inputs``.
        inputs: order and grouping of the arguments, as in `symad.trace`; a dict of tensors is one argument.
        backend: "numpy" or "c", for tensors on the CPU, in float64 or float32. On a CUDA device it is "cupy".

    Returns:
        A `TorchFunction`, which is called as ``f`` is, with tensors, arrays and numbers.

    Raises:
        TraceError: ``f`` cannot be traced.
        EvaluationError: when called with tensors on several devices, or of a dtype without kernels.
        LoweringError: when called, there is no such backend, or an op has no form there.

    Example:
        >>> import sympy, symad.torch, torch
        >>> x, y = sympy.symbols("x y", real=True)
        >>> f = symad.torch.as_function(x**2 * y)
        >>> u = torch.tensor(3.0, requires_grad=True)
        >>> f(u, 2.0).backward()
        >>> u.grad
        tensor(12.)
    """
    return TorchFunction(trace(f, inputs), backend)


NUMPY = (np.ndarray, np.generic)


class TorchFunction:
    """A graph as a function of tensors; results have the structure of the graph's.

    Tensors of several floating-point dtypes are promoted as PyTorch does. Arrays of NumPy become tensors of
    their dtype; numbers may be given for tensors.
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
        values = [torch.as_tensor(np.array(v)) if isinstance(v, NUMPY) else v for v in values]
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
