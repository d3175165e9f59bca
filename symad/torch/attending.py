"""Attention and transformer layers, in PyTorch's layout."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import nn

from symad import functions
from symad.core.dims import format_shape
from symad.errors import ShapeError, TraceError
from symad.models.sequences.recurrent import affine
from symad.models.transformers import attention
from symad.torch.elementary import dropout
from symad.torch.modules import Array, Result, Weights, layer, refuse
from symad.tracing.proxies import wrapped

Masks = tuple[Any, Any]
"""A mask of pairs (n, m) or (N·H, n, m), and one of keys (N, m): conditions (True hides), numbers, None."""


def projected(module: torch.nn.Module, at: Weights, data: tuple[Array, ...]) -> list[Array]:
    """Q, K, V, (..., n, d), from query, key and value, with the keys and values that the module adds."""
    if module.in_proj_weight is not None:
        W, width = at(module.in_proj_weight), module.embed_dim
        weights = [W[k * width : (k + 1) * width] for k in range(3)]
    else:
        weights = [at(w) for w in (module.q_proj_weight, module.k_proj_weight, module.v_proj_weight)]
    bias, size = at(module.in_proj_bias), module.embed_dim
    made = [
        affine(x, weight, None if bias is None else bias[k * size : (k + 1) * size])
        for k, (x, weight) in enumerate(zip(data, weights, strict=True))
    ]
    for k, extra in ((1, module.bias_k), (2, module.bias_v)):
        if extra is not None:
            row = at(extra).reshape(1, size) + 0 * made[k][..., :1, :]
            made[k] = functions.concatenate([made[k], row], axis=-2)
        if module.add_zero_attn:
            made[k] = functions.concatenate([made[k], 0 * made[k][..., :1, :]], axis=-2)
    return made


def heads(module: torch.nn.Module, x: Array) -> Array:
    """(..., n, d) -> (..., H, n, d / H)."""
    return np.swapaxes(x.reshape(*x.shape[:-1], module.num_heads, module.head_dim), -3, -2)


def hidden_keys(
    module: torch.nn.Module, masks: Masks, shape: tuple[int, ...]
) -> tuple[Array | None, Array | None]:
    """Conditions for visible pairs and numbers to add, (N, H, n, m) or arrays that broadcast to it.

    Args:
        module: the attention, which may add keys.
        masks: of pairs and of keys.
        shape: (N, H, n, m), or (H, n, m), without the keys that the module adds.
    """
    *batch, count, n, m = shape
    seen, added = None, None
    product = [k * count for k in batch] or [count]
    fits = {"attn_mask": ((n, m), (*product, n, m)), "key_padding_mask": ((*batch, m),)}
    for (name, right), mask in zip(fits.items(), masks, strict=True):
        if mask is not None and tuple(mask.shape) not in right:
            shown = " or ".join(map(format_shape, right))
            raise ShapeError(f"{name} has the shape {format_shape(tuple(mask.shape))}, not {shown}")
    for mask, of_keys in zip(masks, (False, True), strict=True):
        if mask is None:
            continue
        if of_keys:
            mask = mask[..., None, None, :]
        elif len(mask.shape) == 3:
            mask = mask.reshape(*shape)
        always = (module.bias_k is not None) + bool(module.add_zero_attn)
        if always:  # the keys that the module adds are visible
            rows = [(0, 0)] * (len(mask.shape) - 1)
            mask = np.pad(mask, [*rows, (0, always)])
        if is_condition(mask):
            shown = np.logical_not(mask)
            seen = shown if seen is None else np.logical_and(seen, shown)
        else:
            added = mask if added is None else added + mask
    return seen, added


def is_condition(mask: Array) -> bool:
    """True if a mask holds conditions and not numbers."""
    return mask.dtype == bool if isinstance(mask, np.ndarray) else wrapped.is_condition(wrapped.as_node(mask))


def attend(
    module: torch.nn.Module, at: Weights, data: tuple[Any, ...], masks: Masks = (None, None)
) -> tuple[Any, Any]:
    """(output, weights (N, H, n, m)) of batches whose first axis is N, or of one sequence."""
    turned = not module.batch_first and len(data[0].shape) == 3
    data = tuple(np.swapaxes(x, 0, 1) if turned else x for x in data)
    Q, K, V = (heads(module, x) for x in projected(module, at, data))
    given = (*Q.shape[:-1], data[1].shape[-2])
    seen, added = hidden_keys(module, masks, given)
    weights = attention.weights(Q, K, seen, additive=added)
    dropout(module, weights, "dropout")
    y = np.swapaxes(np.einsum("...nm,...mv->...nv", weights, V), -3, -2)
    y = y.reshape(*y.shape[:-2], module.embed_dim)
    y = affine(y, at(module.out_proj.weight), at(module.out_proj.bias))
    return np.swapaxes(y, 0, 1) if turned else y, weights


@layer.dispatch
def multi_head(module: nn.MultiheadAttention, at: Weights, *data: Array) -> Result:
    """(output, weights): weights are their mean over the heads, all of them, or None, by the options.

    Data: query, key, value, key_padding_mask, need_weights, attn_mask, average_attn_weights, is_causal.
    """
    given = dict(zip(ATTENTION, data, strict=False))
    if len(data) < 3:
        raise TraceError("from_torch: MultiheadAttention takes query, key and value")
    masks = given.get("attn_mask"), given.get("key_padding_mask")
    if masks[0] is None:
        refuse(module, is_causal=given.get("is_causal"))  # a hint about a mask, which PyTorch requires too
    output, weights = attend(module, at, data[:3], masks)
    if not given.get("need_weights", True):
        return output, None
    return output, np.mean(weights, axis=-3) if given.get("average_attn_weights", True) else weights


ATTENTION = (
    *("query", "key", "value", "key_padding_mask"),
    *("need_weights", "attn_mask", "average_attn_weights", "is_causal"),
)
"""The arguments of ``MultiheadAttention.forward``, in order."""


def feed_forward(module: torch.nn.Module, at: Weights, x: Array) -> Array:
    """W₂ σ(W₁ x)."""
    hidden = dropout(module.dropout, activated(module, at, layer(module.linear1, at, x)))
    return layer(module.linear2, at, hidden)


def activated(module: torch.nn.Module, at: Weights, x: Array) -> Array:
    """The activation of a transformer layer: a module, or PyTorch's relu or gelu."""
    if isinstance(module.activation, nn.Module):
        return layer(module.activation, at, x)
    known = {torch.nn.functional.relu: functions.relu, torch.nn.functional.gelu: functions.gelu}
    known |= {torch.relu: functions.relu, torch.tanh: np.tanh}
    if module.activation not in known:
        raise TraceError(f"from_torch: the activation {module.activation} has no rule; use relu or gelu")
    return known[module.activation](x)


def residual(module: torch.nn.Module, at: Weights, x: Array, parts: list[tuple[Any, Any]]) -> Array:
    """x + part(norm(x)) for each part and its norm, or norm(x + part(x))."""
    for part, norm in parts:
        x = x + part(layer(norm, at, x)) if module.norm_first else layer(norm, at, x + part(x))
    return x


def itself(module: torch.nn.Module, at: Weights, masks: Masks) -> Any:
    """Self-attention as a function of x."""
    return lambda x: dropout(module.dropout1, attend(module.self_attn, at, (x, x, x), masks)[0])


def masks_of(data: tuple[Array | None, ...], *places: int) -> tuple[Any, ...]:
    """The arguments at these positions, None for missing ones."""
    return tuple(data[k] if k < len(data) else None for k in places)


@layer.dispatch
def encoder_layer(module: nn.TransformerEncoderLayer, at: Weights, *data: Array) -> Result:
    """Self-attention and a feed-forward block; data: src, src_mask, src_key_padding_mask, is_causal."""

    def block(x: Array) -> Array:
        return dropout(module.dropout2, feed_forward(module, at, x))

    own = itself(module, at, masks_of(data, 1, 2))
    return residual(module, at, data[0], [(own, module.norm1), (block, module.norm2)])


@layer.dispatch
def decoder_layer(module: nn.TransformerDecoderLayer, at: Weights, *data: Array) -> Result:
    """Self-attention and attention to a memory, then a feed-forward block.

    Data: tgt, memory, tgt_mask, memory_mask, tgt_key_padding_mask, memory_key_padding_mask, is_causal twice.
    """
    memory = data[1]

    def others(x: Array) -> Array:
        made = attend(module.multihead_attn, at, (x, memory, memory), masks_of(data, 3, 5))[0]
        return dropout(module.dropout2, made)

    def block(x: Array) -> Array:
        return dropout(module.dropout3, feed_forward(module, at, x))

    own = itself(module, at, masks_of(data, 2, 4))
    parts = [(own, module.norm1), (others, module.norm2), (block, module.norm3)]
    return residual(module, at, data[0], parts)


@layer.dispatch
def encoder(module: nn.TransformerEncoder, at: Weights, *data: Array) -> Result:
    """The layers in sequence, and possibly a norm."""
    return stack(module, at, *data)


@layer.dispatch
def decoder(module: nn.TransformerDecoder, at: Weights, *data: Array) -> Result:
    """The layers in sequence, and possibly a norm."""
    return stack(module, at, *data)


def stack(module: torch.nn.Module, at: Weights, x: Array, *others: Array | None) -> Array:
    """All layers with the same masks and memory."""
    for part in module.layers:
        x = layer(part, at, x, *others)
    return x if module.norm is None else layer(module.norm, at, x)


@layer.dispatch
def transformer(module: nn.Transformer, at: Weights, *data: Array) -> Result:
    """Data: src, tgt, src_mask, tgt_mask, memory_mask, and the masks of keys of src, tgt and memory."""
    src, tgt = data[:2]
    memory = layer(module.encoder, at, src, *masks_of(data, 2, 5))
    return layer(module.decoder, at, tgt, memory, *masks_of(data, 3, 4, 6, 7))
