"""Attention: one head, many heads, masked, across two sequences.

Rows are positions: queries Q (n, d_k), keys K (m, d_k), values V (m, d_v),

    Attention(Q, K, V) = softmax(Q Kᵀ / √d_k + bias) V,   the softmax over each row.

A mask adds −∞ before the softmax. The factor 1/√d_k may be another ``scale``; with a ``cap`` c the scores s
are c tanh(s/c). With columns as positions the same is V softmax(Kᵀ Q / √d_k), the
softmax over each column. Many heads: Q_h = X W_Q,h, K_h = Z W_K,h, V_h = Z W_V,h and
Y = Σ_h Attention(Q_h, K_h, V_h) W_O,h, which is the concatenation of the heads times the stacked W_O;
Z = X is self-attention, another Z cross-attention. With fewer key heads, each is shared by a group of query
heads: query head h reads key head ⌊h G / H⌋; G = 1 is multi-query attention. Leading axes are batches.

Sources: Vaswani et al., "Attention is all you need" (2017), equation 1 and section 3.2.2; Shazeer (2019) and
Ainslie et al. (2023) for shared key heads; Beltagy, Peters & Cohan (2020) for windows; Gemma team (2024) for
the cap.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import sympy

from symad.core.arrays import Array
from symad.core.dims import Dim, format_shape
from symad.errors import ShapeError
from symad.functions import arange, softmax
from symad.models.layers.options import model, refuse_complex
from symad.models.layers.parameters import Parameters, Shapes, initial, normal_matrices


def root(size: Dim) -> float | sympy.Expr:
    """√size, for a number or a symbol."""
    return float(np.sqrt(size)) if isinstance(size, int) else sympy.sqrt(size)


def weights(
    Q: Array,
    K: Array,
    mask: Array | None = None,
    bias: Array | None = None,
    additive: Array | None = None,
    scale: float | None = None,
    cap: float | None = None,
) -> Array:
    """softmax(Q Kᵀ / √d_k + bias) over the keys.

    Args:
        Q: (..., n, d_k).
        K: (..., m, d_k).
        mask: conditions (n, m), or (..., n, m): True where a query may see a key. A query that sees no
            key has weights 0, so its output and all derivatives are 0.
        bias: numbers added to the scores, (..., n, m).
        additive: a mask as numbers to add, (..., n, m), −∞ where a query may not see a key.
        scale: the factor of Q Kᵀ; by default 1/√d_k.
        cap: c > 0; the scores become c tanh(s/c) before a bias is added.

    Returns:
        (..., n, m), rows with the sum 1.
    """
    _check(Q, K, mask=mask, bias=bias, additive=additive)
    scores = np.einsum("...nk,...mk->...nm", Q, K)
    scores = scores / root(Q.shape[-1]) if scale is None else scores * scale
    if cap is not None:
        if isinstance(cap, (int, float)) and not cap > 0:
            raise ShapeError(f"the cap of scores is positive, not {cap}")
        scores = cap * np.tanh(scores / cap)
    if bias is not None:
        scores = scores + bias
    if additive is not None:
        seen = additive > -np.inf
        scores = scores + np.where(seen, additive, 0.0)
        mask = seen if mask is None else np.logical_and(mask, seen)
    if mask is None:
        return softmax(scores, axis=-1)
    alive = np.any(mask, axis=-1)[..., None]
    # A hidden row gets finite scores first: −∞ at all positions would make the softmax 0/0.
    hidden = np.where(np.logical_or(mask, np.logical_not(alive)), scores, -np.inf)
    return np.where(alive, softmax(hidden, axis=-1), 0.0)


def attention(
    Q: Array, K: Array, V: Array, mask: Array | None = None, bias: Array | None = None, **options: Any
) -> Array:
    """softmax(Q Kᵀ / √d_k + bias) V: (..., n, d_k), (..., m, d_k), (..., m, d_v) -> (..., n, d_v).

    Options as in `weights`. With an axis of heads before n, K and V may have fewer, a divisor.

    Raises:
        ShapeError: the key heads do not divide the query heads.
    """
    if len(Q.shape) > 2 and K.shape[-3] != Q.shape[-3]:
        K, V = (shared_heads(values, Q.shape[-3]) for values in (K, V))
    return np.einsum("...nm,...mv->...nv", weights(Q, K, mask, bias, **options), V)


def _check(Q: Array, K: Array, **added: Array | None) -> None:
    """Refuse features and masks of other shapes, conditions in place of numbers, and complex numbers.

    Raises:
        ShapeError: the message names the shapes.
    """
    refuse_complex("attention", Q, K, *added.values())
    if isinstance(Q.shape[-1], int) and isinstance(K.shape[-1], int) and Q.shape[-1] != K.shape[-1]:
        raise ShapeError(
            f"attention: queries {format_shape(Q.shape)} and keys {format_shape(K.shape)} differ in the "
            "last axis"
        )
    if getattr(getattr(added["additive"], "dtype", None), "kind", "") == "b":
        raise ShapeError("attention: additive has conditions; give them as mask, True where a key is seen")
    wanted = (Q.shape[-2], K.shape[-2])
    for name, value in added.items():
        ends = tuple(getattr(value, "shape", ()))[-2:]
        pairs = zip(ends[::-1], wanted[::-1], strict=False)
        if any(isinstance(a, int) and isinstance(b, int) and a not in (1, b) for a, b in pairs):
            raise ShapeError(
                f"attention: {name} {format_shape(getattr(value, 'shape', ()))} does not fit queries "
                f"{format_shape(Q.shape)} and keys {format_shape(K.shape)}"
            )


def shared_heads(values: Array, heads: int) -> Array:
    """Keys or values (..., G, m, d) as (..., H, m, d): H/G query heads share each of G heads."""
    groups = values.shape[-3]
    if not groups or heads % groups != 0:
        raise ShapeError(f"{groups} key heads do not divide {heads} query heads")
    return np.repeat(values, heads // groups, axis=-3)


def attention_columns(Q: Array, K: Array, V: Array, mask: Array | None = None) -> Array:
    """V softmax(Kᵀ Q / √d_k): (d_k, n), (d_k, m), (d_v, m) -> (d_v, n); the mask is (m, n)."""
    return attention(Q.T, K.T, V.T, None if mask is None else mask.T).T


def self_attention_columns(W_Q: Array, W_K: Array, W_V: Array, X: Array) -> Array:
    """The unscaled self-attention W_Vᵀ X softmax(Xᵀ W_Kᵀ W_Q X) of columns X (d, n).

    W_Q and W_K are (d_k, d), W_V is (d, d_v); the result is (d_v, n).
    """
    return W_V.T @ X @ softmax(X.T @ W_K.T @ (W_Q @ X), axis=0)


def causal_mask(n: Dim) -> Array:
    """(n, n) conditions: position t sees t' ≤ t. ``n`` may be a symbol while a function is traced."""
    t = arange(n)
    return t[:, None] >= t[None, :]


def prefix_mask(n: Dim, prefix: Array | Dim) -> Array:
    """Causal, except that all positions see the first ``prefix`` ones (Raffel et al. 2020, figure 3)."""
    t = arange(n)
    return np.logical_or(t[:, None] >= t[None, :], t[None, :] < prefix)


def window_mask(n: Dim, width: Dim) -> Array:
    """Position t sees the last ``width`` positions: t − width < t' ≤ t (n, n)."""
    t = arange(n)
    return np.logical_and(t[:, None] >= t[None, :], t[:, None] - t[None, :] < width)


def multiplicative_mask(Q: Array, K: Array, mask: Array) -> Array:
    """The wrong mask softmax(S) ⊙ M, kept as an example of a refuted claim.

    Its rows do not sum to 1, and the hidden keys still contribute to the denominator: it is not causal.
    """
    return np.where(mask, weights(Q, K), 0.0)


@model
class MultiHead:
    """Attention with several heads; sizes are ints or symbols.

    Args:
        width: d_in, the features of X.
        heads: H.
        key: d_k of each head; by default d_in / H.
        value: d_v of each head; by default d_k.
        out: d_out; by default d_in.
        context: the features of Z in cross-attention; by default d_in.
        bias: true if Q, K, V and Y have biases.
        key_heads: G heads of keys and values, a divisor of H; by default H.
        scale: the factor of the scores; by default 1/√d_k.
        cap: the cap of the scores; see `weights`.

    Raises:
        ShapeError: H does not divide d_in and no d_k is given, or G does not divide H.
    """

    width: Dim
    heads: Dim
    key: Dim | None = None
    value: Dim | None = None
    out: Dim | None = None
    context: Dim | None = None
    bias: bool = False
    key_heads: Dim | None = None
    scale: float | None = None
    cap: float | None = None

    def __post_init__(self) -> None:
        if self.key_heads is not None and (not self.key_heads or self.heads % self.key_heads != 0):
            raise ShapeError(f"key_heads={self.key_heads} does not divide the {self.heads} heads")
        if self.cap is not None and not self.cap > 0:
            raise ShapeError(f"the cap of scores is positive, not {self.cap}")
        if self.key is None and self.width % self.heads != 0:
            raise ShapeError(
                f"{self.heads} heads do not divide the width {self.width}; give key, the size of one head"
            )

    @property
    def d_k(self) -> Dim:
        """The size of queries and keys."""
        return self.width // self.heads if self.key is None else self.key

    @property
    def d_v(self) -> Dim:
        """The size of values."""
        return self.d_k if self.value is None else self.value

    @property
    def groups(self) -> Dim:
        """G."""
        return self.heads if self.key_heads is None else self.key_heads

    @property
    def shapes(self) -> Shapes:
        """W_Q (H, d_in, d_k), W_K (G, d_z, d_k), W_V (G, d_z, d_v), W_O (H, d_v, d_out), and biases."""
        d_z = self.width if self.context is None else self.context
        groups = self.groups
        d_out = self.width if self.out is None else self.out
        found: Shapes = {
            "W_Q": (self.heads, self.width, self.d_k),
            "W_K": (groups, d_z, self.d_k),
            "W_V": (groups, d_z, self.d_v),
            "W_O": (self.heads, self.d_v, d_out),
        }
        if self.bias:
            found |= {
                "b_Q": (self.heads, self.d_k),
                "b_K": (groups, self.d_k),
                "b_V": (groups, self.d_v),
                "b_O": (d_out,),
            }
        return found

    def init(self, seed: int = 0, scale: float = 0.02) -> Parameters:
        """Normal numbers, as GPT-2 does; biases 0."""
        return initial(self.shapes, seed, normal_matrices(scale))

    def project(self, p: Mapping[str, Array], name: str, X: Array) -> Array:
        """Queries, keys or values (name Q, K, V) of all heads: (..., n, d) -> (..., H, n, d_head)."""
        projected = np.einsum("...nd,hdk->...hnk", X, p[f"W_{name}"])
        return projected + p[f"b_{name}"][:, None, :] if self.bias else projected

    def merge(self, p: Mapping[str, Array], heads: Array) -> Array:
        """Σ_h head_h W_O,h: (..., H, n, d_v) -> (..., n, d_out)."""
        merged = np.einsum("...hnv,hvo->...no", heads, p["W_O"])
        return merged + p["b_O"] if self.bias else merged

    def apply(
        self,
        p: Mapping[str, Array],
        X: Array,
        Z: Array | None = None,
        mask: Array | None = None,
        bias: Array | None = None,
        rotate: Callable[[Array], Array] | None = None,
        attend: Callable[[Array, Array, Array], Array] | None = None,
        additive: Array | None = None,
    ) -> Array:
        """Y (..., n, d_out) of X (..., n, d_in), with keys and values from Z (..., m, d_z) or from X.

        ``rotate`` is applied to queries and keys (see `symad.models.positions.rotate`). ``attend``
        computes the heads from Q, K and V instead of ``mask`` and ``bias``: `symad.functions.attention`
        with its options, which lowered code computes tile by tile.
        """
        Z = X if Z is None else Z
        Q, K, V = self.project(p, "Q", X), self.project(p, "K", Z), self.project(p, "V", Z)
        if rotate is not None:
            Q, K = rotate(Q), rotate(K)
        heads = self.attend(Q, K, V, mask, bias, additive) if attend is None else attend(Q, K, V)
        return self.merge(p, heads)

    def attend(
        self,
        Q: Array,
        K: Array,
        V: Array,
        mask: Array | None = None,
        bias: Array | None = None,
        additive: Array | None = None,
    ) -> Array:
        """The heads (..., H, n, d_v), with this model's scale and cap."""
        return attention(Q, K, V, mask, bias, additive=additive, scale=self.scale, cap=self.cap)
