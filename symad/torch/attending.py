"""Attention and transformer layers, as PyTorch arranges them."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import nn

from symad import functions
from symad.errors import TraceError
from symad.models.sequences.recurrent import affine
from symad.models.transformers import attention
from symad.torch.elementary import dropout
from symad.torch.modules import Weights, layer, refuse


def heads(module: Any, at: Weights, data: tuple[Any, ...]) -> list[Any]:
    """Q, K, V of all heads, (N, H, n, d_k), from query, key and value (N, n, d)."""
    if module.in_proj_weight is not None:
        W, width = at(module.in_proj_weight), module.embed_dim
        weights = [W[k * width : (k + 1) * width] for k in range(3)]
    else:
        weights = [at(w) for w in (module.q_proj_weight, module.k_proj_weight, module.v_proj_weight)]
    bias = at(module.in_proj_bias)
    made = []
    for k, (x, weight) in enumerate(zip(data, weights, strict=True)):
        b = None if bias is None else bias[k * module.embed_dim : (k + 1) * module.embed_dim]
        y = affine(x, weight, b)
        y = y.reshape(*y.shape[:-1], module.num_heads, module.head_dim)
        made.append(np.swapaxes(y, -3, -2))
    return made


def attend(module: Any, at: Weights, query: Any, key: Any, value: Any, mask: Any = None) -> tuple[Any, Any]:
    """(output, weights (N, H, n, m)) of batches whose first axis is N, or of one sequence."""
    refuse(module, bias_k=module.bias_k is not None, add_zero_attn=module.add_zero_attn)
    turned = not module.batch_first and len(query.shape) == 3
    data = tuple(np.swapaxes(x, 0, 1) if turned else x for x in (query, key, value))
    Q, K, V = heads(module, at, data)
    weights = attention.weights(Q, K, bias=mask)
    dropout(_Inside(module), weights)
    y = np.swapaxes(np.einsum("...nm,...mv->...nv", weights, V), -3, -2)
    y = y.reshape(*y.shape[:-2], module.embed_dim)
    y = affine(y, at(module.out_proj.weight), at(module.out_proj.bias))
    return np.swapaxes(y, 0, 1) if turned else y, weights


class _Inside:
    """The dropout of the weights, as a module."""

    def __init__(self, module: Any) -> None:
        self.training, self.p = module.training, module.dropout


@layer.dispatch
def multi_head(module: nn.MultiheadAttention, at: Weights, *data: Any) -> Any:
    """query, key, value and perhaps an additive mask -> (output, the mean of the weights over the heads)."""
    if not 3 <= len(data) <= 4:
        raise TraceError(
            "from_torch: MultiheadAttention takes query, key, value, and an additive mask (n, m)"
        )
    output, weights = attend(module, at, *data)
    return output, np.mean(weights, axis=-3)


def feed_forward(module: Any, at: Weights, x: Any) -> Any:
    """W₂ σ(W₁ x)."""
    hidden = dropout(module.dropout, activated(module, at, layer(module.linear1, at, x)))
    return layer(module.linear2, at, hidden)


def activated(module: Any, at: Weights, x: Any) -> Any:
    """The activation of a transformer layer: a module, or PyTorch's relu or gelu."""
    if isinstance(module.activation, nn.Module):
        return layer(module.activation, at, x)
    known = {torch.nn.functional.relu: functions.relu, torch.nn.functional.gelu: functions.gelu}
    known |= {torch.relu: functions.relu, torch.tanh: np.tanh}
    if module.activation not in known:
        raise TraceError(f"from_torch: the activation {module.activation} has no rule; relu and gelu have")
    return known[module.activation](x)


@layer.dispatch
def encoder_layer(module: nn.TransformerEncoderLayer, at: Weights, *data: Any) -> Any:
    """Self-attention and a feed-forward block; data: x, and perhaps an additive mask (n, n)."""
    x, *mask = data

    def itself(value: Any) -> Any:
        return dropout(module.dropout1, attend(module.self_attn, at, value, value, value, *mask)[0])

    def block(value: Any) -> Any:
        return dropout(module.dropout2, feed_forward(module, at, value))

    for part, norm in ((itself, module.norm1), (block, module.norm2)):
        x = x + part(layer(norm, at, x)) if module.norm_first else layer(norm, at, x + part(x))
    return x


@layer.dispatch
def decoder_layer(module: nn.TransformerDecoderLayer, at: Weights, *data: Any) -> Any:
    """Attention to oneself and to a memory, then a block; data: x, memory, perhaps masks of both."""
    x, memory, *masks = data
    own, outer = (*masks, None, None)[:2]

    def itself(value: Any) -> Any:
        return dropout(module.dropout1, attend(module.self_attn, at, value, value, value, own)[0])

    def others(value: Any) -> Any:
        return dropout(module.dropout2, attend(module.multihead_attn, at, value, memory, memory, outer)[0])

    def block(value: Any) -> Any:
        return dropout(module.dropout3, feed_forward(module, at, value))

    for part, norm in ((itself, module.norm1), (others, module.norm2), (block, module.norm3)):
        x = x + part(layer(norm, at, x)) if module.norm_first else layer(norm, at, x + part(x))
    return x


@layer.dispatch
def encoder(module: nn.TransformerEncoder, at: Weights, *data: Any) -> Any:
    """Layers one after the other, and perhaps a norm."""
    x, *mask = data
    for part in module.layers:
        x = layer(part, at, x, *mask)
    return x if module.norm is None else layer(module.norm, at, x)


@layer.dispatch
def decoder(module: nn.TransformerDecoder, at: Weights, *data: Any) -> Any:
    """Layers one after the other, and perhaps a norm."""
    x, *others = data
    for part in module.layers:
        x = layer(part, at, x, *others)
    return x if module.norm is None else layer(module.norm, at, x)
