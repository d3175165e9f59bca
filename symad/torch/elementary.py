"""Layers that act on each element or feature vector: linear maps, tables, activations, and `Sequential`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from torch import nn

from symad import functions
from symad.core.dims import Dim
from symad.errors import TraceError
from symad.models.layers import activations
from symad.models.sequences.recurrent import affine
from symad.torch.modules import Array, Result, Weights, layer, refuse

if TYPE_CHECKING:
    import torch


@layer.dispatch
def sequential(module: nn.Sequential, at: Weights, *data: Array) -> Result:
    """The layers in sequence."""
    for part in module:
        data = (layer(part, at, *data),)
    return data[0]


@layer.dispatch
def identity(module: nn.Identity, at: Weights, *data: Array) -> Result:
    """X."""
    return data[0]


@layer.dispatch
def linear(module: nn.Linear, at: Weights, *data: Array) -> Result:
    """x Wᵀ + b."""
    return affine(data[0], at(module.weight), at(module.bias))


@layer.dispatch
def bilinear(module: nn.Bilinear, at: Weights, *data: Array) -> Result:
    """x₁ᵀ A_k x₂ + b_k."""
    made = np.einsum("...i,kij,...j->...k", data[0], at(module.weight), data[1])
    return made if module.bias is None else made + at(module.bias)


@layer.dispatch
def embedding(module: nn.Embedding, at: Weights, *data: Array) -> Result:
    """Rows of a table; the row of ``padding_idx`` has no gradient."""
    refuse(module, max_norm=module.max_norm, scale_grad_by_freq=module.scale_grad_by_freq)
    table = at(module.weight)
    if module.padding_idx is not None:
        fixed = (np.arange(module.num_embeddings) == module.padding_idx)[:, None]
        table = np.where(fixed, functions.stop_gradient(table), table)
    return functions.lookup(table, data[0])


@layer.dispatch
def flatten(module: nn.Flatten, at: Weights, *data: Array) -> Result:
    """The axes from start_dim to end_dim as one."""
    (x,) = data
    shape = x.shape
    first, last = (k % len(shape) for k in (module.start_dim, module.end_dim))
    size: Dim = 1
    for length in shape[first : last + 1]:
        size = size * length
    return x.reshape(*shape[:first], size, *shape[last + 1 :])


# ---- dropout, which is active in training only ----------------------------------------------------


def dropout(module: torch.nn.Module, x: Array, rate: str = "p") -> Array:
    """X, in evaluation; ``rate`` is the option of the module with the probability.

    Raises:
        TraceError: the dropout is active.
    """
    if module.training and getattr(module, rate):
        raise TraceError(
            f"from_torch: {type(module).__name__}({rate}={getattr(module, rate)}) draws random numbers in "
            "training; call "
            f"module.eval() before, or set {rate} = 0"
        )
    return x


@layer.dispatch
def dropout_layer(module: nn.Dropout, at: Weights, *data: Array) -> Result:
    """See `dropout`."""
    return dropout(module, data[0])


# ---- activations ----------------------------------------------------------------------------------


@layer.dispatch
def relu(module: nn.ReLU, at: Weights, *data: Array) -> Result:
    """Max(x, 0)."""
    return functions.relu(data[0])


@layer.dispatch
def leaky_relu(module: nn.LeakyReLU, at: Weights, *data: Array) -> Result:
    """X, or a x where x < 0."""
    return activations.leaky_relu(data[0], module.negative_slope)


@layer.dispatch
def prelu(module: nn.PReLU, at: Weights, *data: Array) -> Result:
    """Leaky ReLU with parameters, along axis 1."""
    (x,) = data
    slope = at(module.weight)
    if module.num_parameters > 1 and len(x.shape) > 1:
        slope = slope.reshape(module.num_parameters, *(1,) * (len(x.shape) - 2))
    return np.where(x > 0, x, slope * x)


@layer.dispatch
def elu(module: nn.ELU, at: Weights, *data: Array) -> Result:
    """X, or α (eˣ − 1) where x < 0."""
    return activations.elu(data[0], module.alpha)


@layer.dispatch
def gelu(module: nn.GELU, at: Weights, *data: Array) -> Result:
    """x Φ(x), or its approximation by tanh."""
    return (activations.gelu_tanh if module.approximate == "tanh" else functions.gelu)(data[0])


@layer.dispatch
def silu(module: nn.SiLU, at: Weights, *data: Array) -> Result:
    """x σ(x)."""
    return functions.silu(data[0])


@layer.dispatch
def mish(module: nn.Mish, at: Weights, *data: Array) -> Result:
    """x tanh(log(1 + eˣ))."""
    return activations.mish(data[0])


@layer.dispatch
def softplus(module: nn.Softplus, at: Weights, *data: Array) -> Result:
    """log(1 + e^{β x})/β; PyTorch's threshold changes it by less than a rounding."""
    return functions.softplus(module.beta * data[0]) / module.beta


@layer.dispatch
def sigmoid(module: nn.Sigmoid, at: Weights, *data: Array) -> Result:
    """1/(1 + e⁻ˣ)."""
    return functions.sigmoid(data[0])


@layer.dispatch
def log_sigmoid(module: nn.LogSigmoid, at: Weights, *data: Array) -> Result:
    """−log(1 + e⁻ˣ)."""
    return -functions.softplus(-data[0])


@layer.dispatch
def tanh(module: nn.Tanh, at: Weights, *data: Array) -> Result:
    """Tanh x."""
    return np.tanh(data[0])


@layer.dispatch
def hard_tanh(module: nn.Hardtanh, at: Weights, *data: Array) -> Result:
    """X, clipped to two limits; ReLU6 is a special case."""
    return np.minimum(np.maximum(data[0], module.min_val), module.max_val)


@layer.dispatch
def softmax(module: nn.Softmax, at: Weights, *data: Array) -> Result:
    """The softmax along ``dim``."""
    return functions.softmax(data[0], axis=_axis(module))


@layer.dispatch
def log_softmax(module: nn.LogSoftmax, at: Weights, *data: Array) -> Result:
    """The log-softmax along ``dim``."""
    return functions.log_softmax(data[0], axis=_axis(module))


def _axis(module: torch.nn.Module) -> int:
    if module.dim is None:
        raise TraceError(f"from_torch: {type(module).__name__} without dim; give one, such as dim=-1")
    return int(module.dim)
