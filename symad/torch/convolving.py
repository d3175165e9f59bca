"""Convolutions and pools, with channels before positions, as in PyTorch."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from torch import nn

from symad import functions
from symad.errors import TraceError
from symad.models.layers.convolution import convolve, convolve_transposed, windows
from symad.torch.modules import Array, Result, Weights, layer, refuse

if TYPE_CHECKING:
    import torch


def channels_last(x: Any, axes: int) -> Array:
    """(..., C, positions) -> (..., positions, C)."""
    return np.moveaxis(x, len(x.shape) - axes - 1, -1)


def channels_first(x: Any, axes: int) -> Array:
    """(..., positions, C) -> (..., C, positions)."""
    return np.moveaxis(x, -1, len(x.shape) - axes - 1)


def tuple_of(value: Any, axes: int) -> tuple[int, ...]:
    """An option for each axis."""
    return tuple(value) if isinstance(value, (list, tuple)) else (value,) * axes


def one_of(module: torch.nn.Module, **options: tuple[int, ...]) -> list[int]:
    """The options, each the same for all axes.

    Raises:
        TraceError: they differ between axes.
    """
    refuse(module, **{name: value for name, value in options.items() if len(set(value)) > 1})
    return [value[0] for value in options.values()]


def padding_of(module: torch.nn.Module, axes: int) -> list[tuple[int, int]]:
    """The zeros before and after, for each axis of positions."""
    refuse(module, padding_mode=module.padding_mode if module.padding_mode != "zeros" else "")
    if module.padding == "valid":
        return [(0, 0)] * axes
    if module.padding == "same":
        totals = [d * (k - 1) for d, k in zip(module.dilation, module.kernel_size, strict=True)]
        return [(total // 2, total - total // 2) for total in totals]
    return [(p, p) for p in tuple_of(module.padding, axes)]


def convolution(module: torch.nn.Module, at: Weights, x: Array) -> Array:
    """Windows times weights, for each group of channels."""
    axes = len(module.kernel_size)
    stride, dilation = one_of(module, stride=module.stride, dilation=module.dilation)
    x = channels_last(x, axes)
    widths = [(0, 0)] * (len(x.shape) - axes - 1) + padding_of(module, axes) + [(0, 0)]
    x = np.pad(x, widths) if any(map(any, widths)) else x
    weight = np.moveaxis(np.moveaxis(at(module.weight), 1, -1), 0, -1)  # (out, in, taps) -> (taps, in, out)
    count, each = module.groups, module.in_channels // module.groups
    out = module.out_channels // count
    parts = [
        convolve(x[..., g * each : (g + 1) * each], weight[..., g * out : (g + 1) * out], stride, 0, dilation)
        for g in range(count)
    ]
    made = functions.concatenate(parts, axis=-1) if count > 1 else parts[0]
    return channels_first(made if module.bias is None else made + at(module.bias), axes)


@layer.dispatch
def convolution_1d(module: nn.Conv1d, at: Weights, *data: Array) -> Result:
    """x (N, C, L) or (C, L)."""
    return convolution(module, at, data[0])


@layer.dispatch
def convolution_2d(module: nn.Conv2d, at: Weights, *data: Array) -> Result:
    """x (N, C, H, W) or (C, H, W)."""
    return convolution(module, at, data[0])


def transposed(module: torch.nn.Module, at: Weights, x: Array) -> Array:
    """The transpose of a convolution."""
    axes = len(module.kernel_size)
    refuse(module, groups=module.groups if module.groups > 1 else 0)
    stride, dilation, padding, extra = one_of(
        module, stride=module.stride, dilation=module.dilation, padding=module.padding,
        output_padding=module.output_padding,
    )  # fmt: skip
    weight = np.moveaxis(np.moveaxis(at(module.weight), 1, -1), 0, -1)  # (in, out, taps) -> (taps, out, in)
    made = convolve_transposed(channels_last(x, axes), weight, stride, padding, dilation, extra)
    return channels_first(made if module.bias is None else made + at(module.bias), axes)


@layer.dispatch
def transposed_1d(module: nn.ConvTranspose1d, at: Weights, *data: Array) -> Result:
    """x (N, C, L) or (C, L)."""
    return transposed(module, at, data[0])


@layer.dispatch
def transposed_2d(module: nn.ConvTranspose2d, at: Weights, *data: Array) -> Result:
    """x (N, C, H, W) or (C, H, W)."""
    return transposed(module, at, data[0])


def pooled(module: torch.nn.Module, x: Array, axes: int, dilation: int) -> Array:
    """The windows of every channel: (..., positions, taps, C)."""
    taps = tuple_of(module.kernel_size, axes)
    (stride,) = one_of(module, stride=tuple_of(module.stride, axes))
    refuse(module, padding=any(tuple_of(module.padding, axes)), ceil_mode=module.ceil_mode)
    x = channels_last(x, axes)
    made = windows(x, taps, stride, dilation)
    return made.reshape(*made.shape[:-1], int(np.prod(taps)), x.shape[-1])


def largest(module: torch.nn.Module, x: Array, axes: int) -> Array:
    """The maximum of each window."""
    refuse(module, return_indices=module.return_indices)
    (dilation,) = one_of(module, dilation=tuple_of(module.dilation, axes))
    return channels_first(np.max(pooled(module, x, axes, dilation), axis=-2), axes)


@layer.dispatch
def max_pool_1d(module: nn.MaxPool1d, at: Weights, *data: Array) -> Result:
    """x (N, C, L) or (C, L)."""
    return largest(module, data[0], 1)


@layer.dispatch
def max_pool_2d(module: nn.MaxPool2d, at: Weights, *data: Array) -> Result:
    """x (N, C, H, W) or (C, H, W)."""
    return largest(module, data[0], 2)


@layer.dispatch
def mean_pool_1d(module: nn.AvgPool1d, at: Weights, *data: Array) -> Result:
    """x (N, C, L) or (C, L)."""
    return channels_first(np.mean(pooled(module, data[0], 1, 1), axis=-2), 1)


@layer.dispatch
def mean_pool_2d(module: nn.AvgPool2d, at: Weights, *data: Array) -> Result:
    """x (N, C, H, W) or (C, H, W)."""
    refuse(module, divisor_override=module.divisor_override)
    return channels_first(np.mean(pooled(module, data[0], 2, 1), axis=-2), 2)


@layer.dispatch
def global_mean_pool(module: nn.AdaptiveAvgPool2d, at: Weights, *data: Array) -> Result:
    """The mean over all positions, for an output of one position."""
    if tuple_of(module.output_size, 2) != (1, 1):
        raise TraceError(f"from_torch: AdaptiveAvgPool2d({module.output_size}) has no rule; use (1, 1)")
    return np.mean(data[0], axis=(-2, -1), keepdims=True)
