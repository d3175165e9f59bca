"""Layers that mix positions, features or steps: convolutions and pools, normalizations, recurrent layers.

Channels precede positions, as in PyTorch; `symad.models.sequences.recurrent` has its layout, names and order
of gates.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from torch import nn

from symad import functions
from symad.errors import TraceError
from symad.models.layers.convolution import convolve, convolve_transposed, windows
from symad.models.sequences.recurrent import Recurrent
from symad.torch.elementary import dropout
from symad.torch.modules import Array, Result, Weights, layer, refuse

if TYPE_CHECKING:
    import torch


# ---- convolutions and pools, with channels before positions, as in PyTorch -----------------------


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


# ---- normalizations, over features, channels or the batch ----------------------------------------


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


@layer.dispatch
def recurrent(module: nn.RNNBase, at: Weights, *data: Array) -> Result:
    """x, optionally first states and lengths -> (output, last states), in PyTorch's form."""
    if module.num_layers > 1:
        dropout(module, data[0], "dropout")
    model = model_of(module)
    p = {name: at(getattr(module, name)) for name in model.shapes}
    return model.apply(p, *data)


def model_of(module: nn.RNNBase) -> Recurrent:
    """The model with the options of a module."""
    return Recurrent(
        kind=module.mode.split("_")[0].lower(),
        inputs=module.input_size,
        hidden=module.hidden_size,
        layers=module.num_layers,
        bidirectional=module.bidirectional,
        batch_first=module.batch_first,
        bias=module.bias,
        activation="relu" if module.mode == "RNN_RELU" else "tanh",
        projection=module.proj_size,
    )


@layer.dispatch
def cell(module: nn.RNNCellBase, at: Weights, *data: Array) -> Result:
    """One step: x (N, d_in) or (d_in,), optionally the previous state -> the state, or (h, c)."""
    kind = {nn.LSTMCell: "lstm", nn.GRUCell: "gru"}.get(type(module), "rnn")
    sigma = getattr(module, "nonlinearity", "tanh")
    model = Recurrent(kind, module.input_size, module.hidden_size, bias=module.bias, activation=sigma)
    p = {name: at(getattr(module, name.removesuffix("_l0"))) for name in model.shapes}
    before = None
    if len(data) > 1:
        before = tuple(part[None] for part in (data[1] if kind == "lstm" else (data[1],)))
    last = model.apply(p, data[0][None], before)[1]
    return tuple(part[0] for part in last) if kind == "lstm" else last[0]
