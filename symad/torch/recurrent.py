"""Recurrent layers: several on one another, in one direction or both, with PyTorch's order of gates."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from torch import nn

from symad.errors import TraceError
from symad.functions import concatenate, relu, scan, sigmoid, stack
from symad.torch.elementary import affine, dropout
from symad.torch.modules import Weights, layer, refuse

Step = Callable[[Any, Any, Any, Any], Any]
"""(state, driven = W_ih x + b_ih, W_hh, b_hh) -> state."""


def recurrent(module: Any, at: Weights, step: Step, data: tuple[Any, ...], pairs: bool = False) -> Any:
    """(output, last states), as PyTorch returns them.

    ``pairs``: a state is (h, c). x is (T, d), (T, N, d), or with ``batch_first`` (N, T, d).
    """
    refuse(module, proj_size=module.proj_size)
    x = data[0]
    batch_first = module.batch_first and len(x.shape) == 3
    x = np.swapaxes(x, 0, 1) if batch_first else x
    directions = 2 if module.bidirectional else 1
    given = (data[1] if pairs else (data[1],)) if len(data) > 1 else None
    last: list[tuple[Any, ...]] = []
    for k in range(module.num_layers):
        outputs = []
        for way in range(directions):
            W_ih, W_hh, b_ih, b_hh = tensors_of(module, k, way, at)
            driven = affine(x, W_ih, b_ih)
            start = initial(module, x, given, len(last), pairs)
            history = run(step, start, driven[::-1] if way else driven, W_hh, b_hh)
            last.append(tuple(h[-1] for h in history))
            outputs.append(history[0][::-1] if way else history[0])
        x = concatenate(outputs, axis=-1) if directions == 2 else outputs[0]
        if k < module.num_layers - 1:
            x = dropout(_Between(module), x)
    ends = tuple(stack(list(parts)) for parts in zip(*last, strict=True))
    return np.swapaxes(x, 0, 1) if batch_first else x, ends if pairs else ends[0]


class _Between:
    """The dropout between layers, as a module."""

    def __init__(self, module: Any) -> None:
        self.training, self.p = module.training, module.dropout


def tensors_of(module: Any, k: int, way: int, at: Weights) -> list[Any]:
    """W_ih, W_hh, b_ih, b_hh of one layer in one direction."""
    suffix = f"_l{k}{'_reverse' if way else ''}"
    names = ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
    return [at(getattr(module, name + suffix, None)) for name in names]


def initial(module: Any, x: Any, given: Any, place: int, pairs: bool) -> tuple[Any, ...]:
    """The states of one layer before the first step: those given, or zeros."""
    if given is not None:
        return tuple(part[place] for part in given)
    zeros = np.zeros(module.hidden_size)
    if len(x.shape) == 3:
        zeros = np.zeros_like(x[0, :, :1]) + zeros
    return (zeros,) * (2 if pairs else 1)


def run(step: Step, start: tuple[Any, ...], driven: Any, W: Any, b: Any) -> tuple[Any, ...]:
    """The states after every step."""
    if len(start) == 2:
        history = scan(lambda state, z: step(state, z, W, b), start, driven)
        return tuple(history)
    return (scan(lambda h, z: step(h, z, W, b), start[0], driven),)


@layer.dispatch
def rnn(module: nn.RNN, at: Weights, *data: Any) -> Any:
    """h ← σ(W_ih x + b_ih + W_hh h + b_hh)."""
    sigma = {"tanh": np.tanh, "relu": relu}[module.nonlinearity]

    def step(h: Any, driven: Any, W: Any, b: Any) -> Any:
        return sigma(driven + affine(h, W, b))

    return recurrent(module, at, step, data)


def gates(values: Any, count: int, size: int) -> list[Any]:
    """The gates, which lie side by side along the last axis."""
    return [values[..., k * size : (k + 1) * size] for k in range(count)]


@layer.dispatch
def lstm(module: nn.LSTM, at: Weights, *data: Any) -> Any:
    """i, f, g, o; c ← f c + i g, h = o tanh c."""

    def step(state: Any, driven: Any, W: Any, b: Any) -> Any:
        i, f, g, o = gates(driven + affine(state[0], W, b), 4, module.hidden_size)
        c = sigmoid(f) * state[1] + sigmoid(i) * np.tanh(g)
        return sigmoid(o) * np.tanh(c), c

    return recurrent(module, at, step, data, pairs=True)


@layer.dispatch
def gru(module: nn.GRU, at: Weights, *data: Any) -> Any:
    """r, z, n = tanh(W_in x + b_in + r (W_hn h + b_hn)); h ← (1 − z) n + z h."""

    def step(h: Any, driven: Any, W: Any, b: Any) -> Any:
        from_input = gates(driven, 3, module.hidden_size)
        from_state = gates(affine(h, W, b), 3, module.hidden_size)
        r, z = (sigmoid(a + c) for a, c in zip(from_input[:2], from_state[:2], strict=True))
        n = np.tanh(from_input[2] + r * from_state[2])
        return (1 - z) * n + z * h

    return recurrent(module, at, step, data)


@layer.dispatch
def packed(module: nn.RNNCellBase, at: Weights, *data: Any) -> Any:
    """Cells are one step of the layers."""
    raise TraceError(f"from_torch: {type(module).__name__} is one step; use the layer, or functions.scan")
