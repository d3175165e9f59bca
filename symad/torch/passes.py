"""The forward and backward pass of a function of tensors, as functions of arrays."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, is_dataclass, replace
from typing import Any

import numpy as np
import torch

from symad.core.arrays import Array, ArrayLike
from symad.core.graph import Graph
from symad.core.signatures import Tree, Wrt
from symad.core.structures import leaves
from symad.tracing.wrt import select
from symad.verification.fields.integer_inputs import integer_inputs


class Passes:
    """The passes of a function of tensors, as functions of arrays."""

    def __init__(
        self,
        function: Callable[..., Any],
        graph: Graph,
        wrt: Wrt | None,
        dtype: torch.dtype = torch.float64,
    ) -> None:
        """``graph`` gives the numbers of inputs and outputs, ``wrt`` the inputs to differentiate by."""
        self.function, self.dtype = function, dtype
        self.count = len(graph.arguments)
        self.outputs = len(graph.output_nodes)
        owners = [k for k, a in enumerate(graph.arguments) for _ in range(leaves(a.structure))]
        entries = select(graph, wrt).entries
        self.wrt = [owners[graph.input_nodes.index(entry.nodes[0])] for entry in entries]
        places = {graph.input_nodes.index(n) for n in integer_inputs(graph.output_nodes)}
        places |= {k for k, symbol in enumerate(graph.inputs) if getattr(symbol, "is_integer", False)}
        self.whole = [owners[k] for k in places if len(graph.inputs) == self.count]

    def forward(self, *values: Tree) -> Any:
        """The results."""
        return mapped(self.function(*self.tensors(values)), torch.Tensor.detach)

    def backward(self, *values: Any) -> Any:
        """(inputs..., ȳ...) -> x̄ of every argument, computed by PyTorch."""
        given = self.tensors(values[: self.count])
        x = leaves_of(given)
        bars = [self.tensor(v) for v in values[self.count :]]
        found = iter(gradients(leaves_of(self.function(*given)), x, bars))
        return [mapped(value, lambda t: next(found).detach()) for value in given]

    def double_backward(self, *values: Array | float) -> list[Any]:
        """(inputs..., ȳ..., cotangents of the x̄ of wrt...) -> the cotangents of the inputs and of ȳ."""
        given = self.tensors(values[: self.count])
        x = leaves_of(given)
        bars = [self.tensor(v).requires_grad_() for v in values[self.count : self.count + self.outputs]]
        seeds = [self.tensor(v) for v in leaves_of(list(values[self.count + self.outputs :]))]
        first = gradients(leaves_of(self.function(*given)), x, bars, create_graph=True)
        places = {id(t): k for k, t in enumerate(x)}
        chosen = [first[places[id(t)]] for k in self.wrt for t in leaves_of(given[k])]
        found = iter(gradients(chosen, [*x, *bars], seeds))
        return [mapped(value, lambda t: next(found).detach()) for value in (*given, *bars)]

    def tensors(self, values: Sequence[Any]) -> list[Any]:
        """The arguments as tensors; integer tensors need no gradient."""
        return [
            mapped(value, integers if k in self.whole else lambda v: self.tensor(v).requires_grad_())
            for k, value in enumerate(values)
        ]

    def tensor(self, value: Array | float) -> torch.Tensor:
        """A new tensor of the type in which the function computes."""
        return torch.tensor(np.asarray(value, dtype=np.float64)).to(self.dtype)


def integers(value: ArrayLike) -> torch.Tensor:
    """A tensor of integers."""
    return torch.as_tensor(np.asarray(value)).to(torch.int64)


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
