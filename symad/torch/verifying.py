"""`verify_function`: a certificate for the forward and backward pass of an autograd function."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, is_dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import torch

from symad.core.arrays import Array, ArrayLike
from symad.core.graph import Graph, TupleOf
from symad.core.signatures import Inputs, Traceable, Tree, Wrt
from symad.core.structures import leaves
from symad.derivatives.reverse import pullback
from symad.tracing import as_graph
from symad.tracing.wrt import select
from symad.verification import Budget, Certificate, verify
from symad.verification.measuring.call_users_code import refuse_arguments

if TYPE_CHECKING:
    import sympy as sp


def verify_function(
    function: Any,
    f: Traceable,
    wrt: Wrt | None = None,
    *,
    inputs: Inputs | None = None,
    where: sp.Basic | None = None,
    order: int = 1,
    hostile: bool = True,
    budget: Budget | None = None,
) -> Certificate:
    """A certificate of an autograd function against a formula: its values, and the results of backward.

    The function is called with float64 tensors in the order of the graph's arguments (integer inputs as
    int64) and differentiated by PyTorch with random cotangents: this measures what its backward saves and
    returns. The reference has 50 digits.

    Args:
        function: a subclass of ``torch.autograd.Function``, a module, or a function of tensors.
        f: its formula, an argument of `symad.trace`.
        wrt: the inputs whose cotangents are compared, all by default.
        inputs: order and grouping of the arguments, as in `symad.trace`.
        where: the domain of the claim, as in `symad.verify`.
        order: 2 also compares the derivative of the backward pass (double backward).
        hostile: as in `symad.verify`.
        budget: limits of work.

    Raises:
        ValueError: order is neither 1 nor 2.
        TypeError: the function takes the inputs in another order, or returns a value of another shape.
    """
    if order not in (1, 2):
        raise ValueError(f"verify_function: order is 1, or 2 for double backward, not {order!r}")
    graph = as_graph(f, wrt, inputs)
    name = getattr(function, "__name__", type(function).__name__)
    called = function.apply if _is_autograd(function) else function
    refuse_arguments(_forward(function), [a.name for a in graph.arguments], f"{name}'s forward")
    passes = Passes(called, graph, wrt)
    options: Any = {"hostile": hostile, "budget": budget}
    parts = [
        verify(graph, wrt, value=named(passes.forward, name), where=where, **options),
        verify(graph, wrt, vjp=named(passes.backward, f"{name}'s backward"), where=where, **options),
    ]
    if order == 2:
        second = cotangents(graph, wrt)
        parts.append(
            verify(second, vjp=named(passes.double_backward, f"{name}'s double backward"), **options)
        )
    return _joined(f"{name} against {graph.name}", parts)


def _forward(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function whose parameters are the inputs: ``forward`` of an autograd function, without ctx."""
    if not _is_autograd(function):
        return function
    forward = getattr(function, "forward")  # noqa: B009  (of a class that mypy does not know)
    own = list(inspect.signature(forward).parameters)
    return partial(forward, None) if own[:1] == ["ctx"] else forward


def _is_autograd(function: object) -> bool:
    return isinstance(function, type) and issubclass(function, torch.autograd.Function)


Result = TypeVar("Result")


def named(function: Callable[..., Result], name: str) -> Callable[..., Result]:
    """A function of any arguments under a name, for certificates."""

    def called(*values: object) -> Result:
        return function(*values)

    called.__name__ = name
    return called


def cotangents(graph: Graph, wrt: Wrt | None) -> Graph:
    """(x..., ȳ...) -> x̄..., without the values."""
    full = pullback(graph, wrt)
    count = len(graph.output_nodes)
    structure = full.structure
    assert isinstance(structure, TupleOf)  # the values, and then the cotangents
    return full.with_outputs(full.output_nodes[count:], TupleOf(structure.items[count:]), "backward")


def _joined(title: str, parts: Sequence[Certificate]) -> Certificate:
    """A certificate with the entries of several."""
    entries = tuple(e for part in parts for e in part.entries)
    return replace(
        parts[0],
        title=title,
        entries=entries,
        comparisons=tuple(c for part in parts for c in part.comparisons),
        losses=tuple(x for part in parts for x in part.losses),
        notes=tuple(dict.fromkeys(n for part in parts for n in part.notes)),
        seconds=sum(part.seconds for part in parts),
        steps=sum(part.steps for part in parts),
    )


class Passes:
    """The passes of a function of tensors, as functions of arrays."""

    def __init__(self, function: Callable[..., Any], graph: Graph, wrt: Wrt | None) -> None:
        """``graph`` gives the numbers of inputs and outputs, ``wrt`` the inputs to differentiate by."""
        self.function = function
        self.count = len(graph.arguments)
        self.outputs = len(graph.output_nodes)
        owners = [k for k, a in enumerate(graph.arguments) for _ in range(leaves(a.structure))]
        entries = select(graph, wrt).entries
        self.wrt = [owners[graph.input_nodes.index(entry.nodes[0])] for entry in entries]
        whole = graph.inputs if len(graph.inputs) == self.count else ()
        self.whole = [k for k, symbol in enumerate(whole) if getattr(symbol, "is_integer", False)]

    def forward(self, *values: Tree) -> Any:
        """The results as arrays."""
        return mapped(self.function(*self.tensors(values)), lambda t: t.detach().numpy())

    def backward(self, *values: Any) -> Any:
        """(inputs..., ȳ...) -> x̄ of every argument, computed by PyTorch."""
        given = self.tensors(values[: self.count])
        x = leaves_of(given)
        bars = [tensor_of(v) for v in values[self.count :]]
        found = iter(gradients(leaves_of(self.function(*given)), x, bars))
        return [mapped(value, lambda t: next(found).detach().numpy()) for value in given]

    def double_backward(self, *values: Array | float) -> list[Array]:
        """(inputs..., ȳ..., cotangents of the x̄ of wrt...) -> the cotangents of the inputs and of ȳ."""
        given = self.tensors(values[: self.count])
        x = leaves_of(given)
        bars = [tensor_of(v).requires_grad_() for v in values[self.count : self.count + self.outputs]]
        seeds = [tensor_of(v) for v in leaves_of(list(values[self.count + self.outputs :]))]
        first = gradients(leaves_of(self.function(*given)), x, bars, create_graph=True)
        places = {id(t): k for k, t in enumerate(x)}
        chosen = [first[places[id(t)]] for k in self.wrt for t in leaves_of(given[k])]
        found = iter(gradients(chosen, [*x, *bars], seeds))
        return [mapped(value, lambda t: next(found).detach().numpy()) for value in (*given, *bars)]

    def tensors(self, values: Sequence[Any]) -> list[Any]:
        """The arguments as tensors; integer tensors need no gradient."""
        return [
            mapped(value, integers if k in self.whole else lambda v: tensor_of(v).requires_grad_())
            for k, value in enumerate(values)
        ]


def integers(value: ArrayLike) -> torch.Tensor:
    """A tensor of integers."""
    return torch.as_tensor(np.asarray(value)).to(torch.int64)


def tensor_of(value: Array | float) -> torch.Tensor:
    """A new tensor of doubles."""
    return torch.tensor(np.asarray(value, dtype=np.float64))


def gradients(
    outputs: Sequence[torch.Tensor], x: Sequence[torch.Tensor], bars: Sequence[torch.Tensor], **options: bool
) -> list[torch.Tensor]:
    """x̄ of each tensor; zeros where the outputs do not depend on it."""
    pairs = [(y, bar.reshape(y.shape)) for y, bar in zip(outputs, bars, strict=True) if y.requires_grad]
    wanted = [t for t in x if t.requires_grad]
    if not pairs or not wanted:
        return [torch.zeros_like(t) for t in x]
    ys, seeds = zip(*pairs, strict=True)
    options |= {"allow_unused": True, "materialize_grads": True}
    found = iter(torch.autograd.grad(ys, wanted, seeds, **options))
    return [next(found) if t.requires_grad else torch.zeros_like(t) for t in x]


def mapped(value: Any, rule: Callable[[Any], object]) -> Any:
    """The structure with a rule applied to every array."""
    if isinstance(value, Mapping):
        return {k: mapped(v, rule) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(mapped(v, rule) for v in value)
    if is_dataclass(value) and not isinstance(value, type):
        return replace(value, **{f.name: mapped(getattr(value, f.name), rule) for f in fields(value)})
    return rule(value)


def leaves_of(value: Any) -> list[Any]:
    """The arrays of a structure, in order."""
    found: list[Any] = []
    mapped(value, found.append)
    return found
