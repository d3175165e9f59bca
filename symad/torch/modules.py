"""`from_torch`: a module of PyTorch with its weights, as a function that symad traces.

`layer` is a question that every kind of module answers, in terms of arrays: a rule computes the result of
the module's ``forward``. ``@symad.torch.layer.dispatch`` registers the answer for a user's module.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from torch import nn

from symad.core.dims import format_shape
from symad.core.graph import Graph
from symad.core.identifiers import listed
from symad.core.questions import question
from symad.errors import SymadError, TraceError
from symad.tracing import trace

# For the type checker these are the result types of layers; plum dispatches on the module alone.
if TYPE_CHECKING:
    import torch

    from symad.core.arrays import Array as Array

    Result = Array | tuple[Array | None, ...]
else:
    Array = Result = Any


class Weights:
    """The arrays for a module's tensors: ``at(module.weight)`` in a rule.

    Parameters are traced values, buffers and other tensors constants; None stays None.
    """

    def __init__(self, names: Mapping[int, str], values: Mapping[str, Array]) -> None:
        """``names`` gives the parameters' names by identity, ``values`` their arrays."""
        self.names, self.values = names, values

    def __call__(self, tensor: torch.Tensor | None) -> Any:
        """The array for a tensor."""
        if tensor is None:
            return None
        name = self.names.get(id(tensor))
        return array_of(tensor) if name is None else self.values[name]


@question
def layer(module: nn.Module, at: Weights, *data: Array) -> Result:
    """The result of ``module(*data)``, for arrays and traced values; ``at`` has its parameters.

    Returns:
        An array or a traced value, or a tuple of them as the module returns.

    Raises:
        TraceError: no rule is registered for this kind of module.

    Example:
        >>> import numpy as np, symad.torch, torch
        >>> class Triple(torch.nn.Module):
        ...     def forward(self, x):
        ...         return 3 * x
        >>> @symad.torch.layer.dispatch
        ... def triple(module: Triple, at: symad.torch.Weights, *data):
        ...     return 3 * data[0]
        >>> symad.torch.from_torch(Triple()).trace((2,))(np.array([1.0, 2.0]))
        array([3., 6.])
    """


@layer.dispatch
def unknown_layer(module: nn.Module, at: Weights, *data: Array) -> Result:
    """Raises the error for a kind of module without a rule."""
    kind = type(module).__name__
    raise TraceError(
        f"from_torch has no rule for the module {kind}; write one, a function {kind.lower()}(module: {kind}, "
        "at: symad.torch.Weights, *data) that computes with arrays and at(module.weight), registered by "
        "@symad.torch.layer.dispatch"
    )


@dataclass(frozen=True, repr=False)
class Model:
    """A module as a function of its parameters and its inputs.

    Attributes:
        module: the module.
        parameters: dotted names and float64 arrays, as in its ``state_dict``.
    """

    module: nn.Module
    parameters: dict[str, np.ndarray]
    names: Mapping[int, str]

    def __repr__(self) -> str:
        count = sum(value.size for value in self.parameters.values())
        kind, names = type(self.module).__name__, listed(self.parameters, 6)
        return f"<Model of {kind}: {count} parameters in {names}; .trace(shape) is its graph>"

    def apply(self, parameters: Mapping[str, Array], *data: Array, **named: Array) -> Any:
        """The result of the module with these parameters: arrays or traced values.

        Arguments are those of the module's ``forward``, by position or by name. Recurrent layers also accept
        ``lengths`` (N,), the lengths of packed sequences.
        """
        return layer(self.module, Weights(self.names, parameters), *self._bound(data, named))

    def _bound(self, data: tuple[Array, ...], named: Mapping[str, Array]) -> tuple[Array | None, ...]:
        """All arguments by position, in the order of ``forward``."""
        if not named:
            return data
        own = [p for p in self._forward if p.kind is p.POSITIONAL_OR_KEYWORD]
        names = [p.name for p in own] + ["lengths"] * isinstance(self.module, nn.RNNBase)
        given = dict(zip(names, data, strict=False))
        if unknown := [name for name in named if name not in names or name in given]:
            kind = type(self.module).__name__
            raise TraceError(
                f"{kind} takes {', '.join(names)}, each once, and was given {', '.join(unknown)}"
            )
        given |= named
        defaults = {p.name: p.default for p in own if p.default is not p.empty}
        last = max(names.index(name) for name in given)
        return tuple(given.get(name, defaults.get(name)) for name in names[: last + 1])

    @property
    def _forward(self) -> list[inspect.Parameter]:
        return list(inspect.signature(self.module.forward).parameters.values())

    def trace(self, *data: Any, **named: Any) -> Graph:
        """The graph of (parameters, *data); parameters are one argument, a dict by dotted names.

        Args:
            data: for each input of the module an entry of `symad.trace`'s inputs: a shape, a symbol, an
                example.
            named: further, constant arguments of ``forward``: masks as arrays, options.

        Raises:
            TraceError: no data are given.
        """
        shapes = {name: value.shape for name, value in self.parameters.items()}
        names = [p.name for p in self._forward if p.kind is p.POSITIONAL_OR_KEYWORD][: len(data)]
        names += [f"x{k}" for k in range(len(names), len(data))]
        if not data and not named:
            raise TraceError(
                f"trace takes an entry for each input of {type(self.module).__name__}, such as its shape (3,)"
            )

        def model(*values: Any) -> Any:
            made = self.apply(*values, **named) if shapes else self.apply({}, *values, **named)
            if not isinstance(made, tuple) or None not in made:
                return made
            there = tuple(part for part in made if part is not None)  # None: weights that were not requested
            return there[0] if len(there) == 1 else there

        names = ["parameters", *names] if shapes else names
        kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
        model.__signature__ = inspect.Signature([inspect.Parameter(n, kind) for n in names])  # type: ignore[attr-defined]  # for inspect
        return trace(model, [shapes, *data] if shapes else list(data))

    def state(self, parameters: Mapping[str, Array]) -> dict[str, torch.Tensor]:
        """Parameters as tensors of the module's dtypes, for ``load_state_dict(..., strict=False)``."""
        import torch

        own = dict(self.module.named_parameters())
        return {name: torch.as_tensor(np.array(v)).to(own[name]) for name, v in parameters.items()}


def from_torch(module: nn.Module) -> Model:
    """A module of PyTorch as mathematics: its graph, its parameters by their dotted names, its numbers.

    Supported are linear, bilinear and embedding layers, normalizations, convolutions and pools, activations,
    losses, RNN, LSTM, GRU, multi-head attention, transformer layers and stacks, and `nn.Sequential` of them.
    Modules are read in their current mode, training or evaluation; an active dropout is refused. Parameters
    are copied as float64; tied parameters are one.

    Args:
        module: the module; it is not changed.

    Returns:
        A `Model`; its ``trace`` makes a graph for an input shape.

    Raises:
        SymadError: it is not a module, or has parameters that are not yet initialized.
        TraceError: for modules without a rule (`layer`), when the model is traced.

    Example:
        >>> import numpy as np, symad.torch, torch
        >>> model = symad.torch.from_torch(torch.nn.Linear(2, 1, bias=False))
        >>> graph = model.trace((5, 2))
        >>> graph({"weight": np.array([[3.0, 4.0]])}, np.ones((5, 2))).ravel()
        array([7., 7., 7., 7., 7.])
    """
    if not isinstance(module, nn.Module):
        raise SymadError(f"from_torch takes a torch.nn.Module, not {type(module).__name__}")
    named = dict(module.named_parameters())
    if lazy := [name for name, p in named.items() if isinstance(p, nn.parameter.UninitializedParameter)]:
        raise SymadError(f"from_torch: {', '.join(lazy)} have no shape yet; call the module once before")
    if wrong := [f"{n} of {p.dtype}" for n, p in named.items() if p.is_complex()]:
        raise SymadError(f"from_torch: {', '.join(wrong)}; symad works over the real numbers")
    return Model(module, {n: array_of(p) for n, p in named.items()}, {id(p): n for n, p in named.items()})


def array_of(tensor: torch.Tensor) -> np.ndarray:
    """A tensor's numbers as float64, in separate memory.

    Raises:
        SymadError: complex numbers.
    """
    if tensor.is_complex():
        shape = format_shape(tuple(tensor.shape))
        raise SymadError(f"from_torch: a tensor {shape} of {tensor.dtype}; symad works over the real numbers")
    return np.array(tensor.detach().cpu().double().numpy())


def refuse(module: nn.Module, **options: object) -> None:
    """Raise TraceError for options of a module that no rule supports, named with their values."""
    if given := [f"{name}={value!r}" for name, value in options.items() if value]:
        raise TraceError(f"from_torch: {type(module).__name__} with {', '.join(given)} has no rule")
