"""The operator ``symad::call``, by which torch.compile keeps graphs whole; eager code does not use it.

Its arguments are the key of a function and its tensors. The shapes of its outputs follow from the graph, and
its derivative is the operator with the key of the pullback. A key is a digest of the graph, because compiled
code is kept on disk and may be read by another process.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any, Protocol

import torch

from symad.core.dims import solve_dims
from symad.core.graph import Graph
from symad.errors import SymadError
from symad.saving.save_load import dumps


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
