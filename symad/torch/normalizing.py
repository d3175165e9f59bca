"""Normalizations, over features, channels or the batch."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from torch import nn

from symad.errors import TraceError
from symad.torch.modules import Array, Result, Weights, layer

if TYPE_CHECKING:
    import torch


def normalized(x: Array, axes: tuple[int, ...], epsilon: float) -> Array:
    """(x − μ)/√(σ² + ε), the mean and variance over some axes."""
    centered = x - np.mean(x, axis=axes, keepdims=True)
    return centered / np.sqrt(np.mean(centered**2, axis=axes, keepdims=True) + epsilon)


def scaled(x: Array, weight: Array | None, bias: Array | None) -> Array:
    """γ x + β; a parameter that is None is omitted."""
    if weight is not None:
        x = x * weight
    return x if bias is None else x + bias


def over_channels(parameter: Array | None, x: Array) -> Array | None:
    """A parameter (C,) along axis 1 of x; None for None."""
    return None if parameter is None else parameter.reshape(x.shape[1], *(1,) * (len(x.shape) - 2))


@layer.dispatch
def layer_norm(module: nn.LayerNorm, at: Weights, *data: Array) -> Result:
    """The normalization over the last axes."""
    axes = tuple(range(-len(module.normalized_shape), 0))
    return scaled(normalized(data[0], axes, module.eps), at(module.weight), at(module.bias))


@layer.dispatch
def rms_norm(module: nn.RMSNorm, at: Weights, *data: Array) -> Result:
    """x/√(mean x² + ε) over the last axes."""
    (x,) = data
    axes = tuple(range(-len(module.normalized_shape), 0))
    epsilon = np.finfo(np.float64).eps if module.eps is None else module.eps
    return scaled(x / np.sqrt(np.mean(x**2, axis=axes, keepdims=True) + epsilon), at(module.weight), None)


@layer.dispatch
def group_norm(module: nn.GroupNorm, at: Weights, *data: Array) -> Result:
    """The normalization over the channels of each group, and all positions."""
    (x,) = data
    count = module.num_groups
    parts = x.reshape(x.shape[0], count, x.shape[1] // count, *x.shape[2:])
    made = normalized(parts, tuple(range(2, len(parts.shape))), module.eps).reshape(*x.shape)
    return scaled(made, over_channels(at(module.weight), x), over_channels(at(module.bias), x))


def batch_norm(module: torch.nn.Module, at: Weights, x: Array) -> Array:
    """Each channel by its mean and variance: the batch's in training, the running ones in evaluation."""
    if module.training or module.running_mean is None:
        made = normalized(x, (0, *range(2, len(x.shape))), module.eps)
    else:
        mean, variance = (over_channels(at(s), x) for s in (module.running_mean, module.running_var))
        made = (x - mean) / np.sqrt(variance + module.eps)
    return scaled(made, over_channels(at(module.weight), x), over_channels(at(module.bias), x))


@layer.dispatch
def batch_norm_1d(module: nn.BatchNorm1d, at: Weights, *data: Array) -> Result:
    """x (N, C) or (N, C, L)."""
    return batch_norm(module, at, data[0])


@layer.dispatch
def batch_norm_2d(module: nn.BatchNorm2d, at: Weights, *data: Array) -> Result:
    """x (N, C, H, W)."""
    if len(data[0].shape) != 4:
        raise TraceError(f"BatchNorm2d takes images (N, C, H, W), not {data[0].shape}")
    return batch_norm(module, at, data[0])
