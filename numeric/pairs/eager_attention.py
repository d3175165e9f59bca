"""Tiled attention in NumPy: online softmax, forward and backward, any score function.

For scores s_ij = scale ⟨q_i, k_j⟩, t_ij = f(s_ij, b, h, i, j, θ) where the mask allows the pair
and −∞ where it does not, the attention is o_i = Σ_j softmax_j(t_i·) v_j. No array over all pairs is
ever formed: blocks of keys pass by, with a running maximum and sum per query (Milakov and
Gimelshein 2018, arXiv 1805.02867; Dao et al. 2022, arXiv 2205.14135, algorithms 1 and 4; Dao 2023,
arXiv 2307.08691). Memory beyond arguments and results is one tile of pairs per batch and head.

A query whose keys are all hidden has output 0 and log-sum-exp −∞, and passes no gradient.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import sympy as sp

from symad.errors import ShapeError
from symad.numeric.pairs.mask_tiles import EMPTY, FULL, Tiling
from symad.numeric.pairs.scores import B, I, J, Load, Parameter, Score, parameters_of, trace_score
from symad.numeric.pairs.tiles import Block, ParameterSums, Plane

Array = Any
Function = Callable[..., Any]


@dataclass(frozen=True)
class AttentionCotangents:
    """Cotangents of the queries, keys and values in their shapes, and of the real parameters."""

    q: Array
    k: Array
    v: Array
    params: dict[str, Array]


def attention(
    q: Array,
    k: Array,
    v: Array,
    *,
    score: Function | None = None,
    mask: Function | None = None,
    params: Mapping[str, Any] | None = None,
    scale: float | None = None,
    causal: bool = False,
    lengths: tuple[Array | None, Array | None] | None = None,
    return_lse: bool = False,
    block: int = 128,
) -> Any:
    """o_i = Σ_j softmax_j(f(scale ⟨q_i, k_j⟩, b, h, i, j, θ)) v_j over the pairs the mask allows.

    Args:
        q: queries (batch, heads, N, d).
        k: keys (batch, kv heads, M, d); query head h reads key head h // (heads / kv heads).
        v: values (batch, kv heads, M, d_v).
        score: f(s, b, h, i, j, **params) -> SymPy expression, called once with symbols.
        mask: (b, h, i, j, **params) -> SymPy Boolean, true where a pair takes part.
        params: parameter values by name; numbers, or arrays that the functions index.
        scale: factor of ⟨q_i, k_j⟩; 1/√d if not given.
        causal: hide the pairs with j > i; their tiles are never computed.
        lengths: (N_b, M_b) integer arrays (batch,), or None for full length: rows i ≥ N_b have
            output 0, keys j ≥ M_b are hidden.
        return_lse: also return L_i = log Σ_j exp(t_ij), shape (batch, heads, N).
        block: rows and columns of a tile.

    Returns:
        Outputs (batch, heads, N, d_v) in the dtype of ``q``, with L if asked.

    Raises:
        ShapeError: the shapes do not fit.
        TraceError: score or mask use unknown symbols or arrays.
    """
    problem = _Problem.make(q, k, v, score, mask, params, scale, causal, lengths, block)
    out, lse = problem.forward()
    out = out.astype(problem.q.dtype, copy=False)
    return (out, lse) if return_lse else out


def attention_vjp(
    q: Array,
    k: Array,
    v: Array,
    out: Array,
    lse: Array,
    out_bar: Array,
    *,
    lse_bar: Array | None = None,
    score: Function | None = None,
    mask: Function | None = None,
    params: Mapping[str, Any] | None = None,
    scale: float | None = None,
    causal: bool = False,
    lengths: tuple[Array | None, Array | None] | None = None,
    block: int = 128,
) -> AttentionCotangents:
    """Cotangents of all arguments of `attention`, from its results and their cotangents.

    With P_ij = exp(t_ij − L_i) and Δ_i = ⟨ō_i, o_i⟩ − L̄_i: t̄_ij = P_ij (⟨ō_i, v_j⟩ − Δ_i),
    v̄_j = Σ_i P_ij ō_i, s̄ = t̄ ∂f/∂s, q̄_i = scale Σ_j s̄_ij k_j, k̄_j = scale Σ_i s̄_ij q_i and
    θ̄ = Σ_ij t̄_ij ∂f/∂θ (Dao et al. 2022, algorithm 4, with a score function).

    Args:
        q: queries, as for `attention`; likewise every argument not named here.
        k: keys.
        v: values.
        out: the outputs o.
        lse: the log-sum-exps L, shape (batch, heads, N).
        out_bar: cotangent of ``out``, in its shape.
        lse_bar: cotangent of ``lse``; 0 if not given.
        score: the score function.
        mask: the mask function.
        params: parameter values by name.
        scale: factor of ⟨q_i, k_j⟩.
        causal: as for `attention`.
        lengths: as for `attention`.
        block: rows and columns of a tile.
    """
    problem = _Problem.make(q, k, v, score, mask, params, scale, causal, lengths, block)
    for name, array, axes in (("out", out, 4), ("out_bar", out_bar, 4), ("lse", lse, 3)):
        expected = (*problem.q.shape[:3], problem.v.shape[3])[:axes]
        if np.shape(array) != expected:
            raise ShapeError(f"{name} has shape {np.shape(array)}; this attention has {expected}")
    return problem.backward(out, lse, out_bar, 0.0 if lse_bar is None else lse_bar)


def attention_traffic(length: Any, width: Any, block: Any) -> dict[str, Any]:
    """Elements moved between slow and fast memory by one attention head of N tokens, width d.

    Standard (three passes, Dao et al. 2022, algorithm 0): read Q, K, write S, read S, write P, read
    P, V, write O. Tiled: read Q, write O and L once; K and V once for each block of queries, or
    once in all where a cache holds them. Numbers or SymPy symbols.

    Returns:
        Elements by name: "standard" = 4Nd + 4N², "tiled" = 2Nd + N + 2Nd⌈N/block⌉, "tiled, keys in
        cache" = 4Nd + N, and "ratio" = standard / tiled.
    """
    n, d = sp.sympify(length, strict=True), sp.sympify(width, strict=True)
    passes = sp.ceiling(n / sp.sympify(block, strict=True))
    standard = 4 * n * d + 4 * n**2
    tiled = 2 * n * d + n + 2 * n * d * passes
    return {
        "standard": standard,
        "tiled": tiled,
        "tiled, keys in cache": 4 * n * d + n,
        "ratio": standard / tiled,
    }


@dataclass(frozen=True)
class _Problem:
    """One attention call: arrays in the computing dtype, and the plane of its pairs."""

    q: Array
    k: Array
    v: Array
    scale: float
    plane: Plane

    @staticmethod
    def make(
        q: Array,
        k: Array,
        v: Array,
        score: Function | None,
        mask: Function | None,
        params: Mapping[str, Any] | None,
        scale: float | None,
        causal: bool,
        lengths: tuple[Array | None, Array | None] | None,
        block: int,
    ) -> _Problem:
        q, k, v = check_arrays(q, k, v)
        if block < 1:
            raise ShapeError(f"block must be at least 1, not {block}")
        params = dict(params or {})
        traced = trace_score(score, mask, parameters_of(params), causal)
        traced, params = with_lengths(traced, params, lengths, q.shape[0])
        tiling = Tiling(q.shape[0], q.shape[1], q.shape[2], k.shape[2], block, block)
        factor = 1.0 / np.sqrt(q.shape[3]) if scale is None else float(scale)
        return _Problem(q, k, v, float(factor), Plane(traced, params, tiling))

    @property
    def dtype(self) -> Any:
        return np.result_type(self.q.dtype, np.float32)

    def tiles(self) -> tuple[Array, Array]:
        """(skip, whole) per tile of (i, j), over all batches and heads together."""
        classes = self.plane.classes
        shape = self.plane.tiling.shape[2:]
        skip = np.broadcast_to((classes == EMPTY).all(axis=(0, 1)), shape)
        return skip, np.broadcast_to((classes == FULL).all(axis=(0, 1)), shape)

    def grouped(self, array: Array, rows: slice) -> Array:
        """A block of queries as (batch, kv heads, group, rows, width), to meet the shared keys."""
        batch, heads, _, width = array.shape
        part = array[:, :, rows].astype(self.dtype, copy=False)
        groups = self.k.shape[1]
        return part.reshape(batch, groups, heads // groups, part.shape[2], width)

    def keys(self, array: Array, columns: slice) -> Array:
        """A block of keys or values as (batch, kv heads, 1, columns, width)."""
        return array[:, :, None, columns].astype(self.dtype, copy=False)

    def flat(self, array: Array) -> Array:
        """(batch, kv heads, group, ...) back to (batch, heads, ...)."""
        return array.reshape(array.shape[0], -1, *array.shape[3:])

    def scores(self, block: Block) -> Array:
        """S = scale Q Kᵀ on one tile, (batch, heads, rows, columns)."""
        queries, keys = self.grouped(self.q, block.rows), self.keys(self.k, block.columns)
        return self.flat(self.scale * (queries @ keys.swapaxes(-1, -2)))

    def apply(self, weights: Array, values: Array) -> Array:
        """Σ_j weights_ij values_j with shared heads: (batch, heads, rows, width)."""
        groups = self.k.shape[1]
        split = weights.reshape(weights.shape[0], groups, -1, *weights.shape[2:])
        return self.flat(split @ values)

    def gather(self, weights: Array, rows: Array) -> Array:
        """Σ over a group's heads and rows i of weights_ij rows_i, per key head."""
        groups = self.k.shape[1]
        split = weights.reshape(weights.shape[0], groups, -1, *weights.shape[2:])
        return (split.swapaxes(-1, -2) @ rows).sum(axis=2)

    def forward(self) -> tuple[Array, Array]:
        batch, heads, length, _ = self.q.shape
        out = np.zeros((batch, heads, length, self.v.shape[3]), self.dtype)
        lse = np.full((batch, heads, length), -np.inf, self.dtype)
        skip, whole = self.tiles()
        for tile_i in range(skip.shape[0]):
            state = None
            for tile_j in np.flatnonzero(~skip[tile_i]).tolist():
                block = self.plane.block(tile_i, tile_j)
                t = self.masked(block, whole[tile_i, tile_j])
                state = self.absorb(state, t, self.keys(self.v, block.columns))
            if state is not None:
                maximum, total, sums = state
                seen = total > 0
                out[:, :, block.rows] = sums / np.where(seen, total, 1)[..., None]
                with np.errstate(divide="ignore"):
                    lse[:, :, block.rows] = maximum + np.log(total)
        return out, lse

    def masked(self, block: Block, whole: bool) -> Array:
        """t on one tile, −∞ at hidden pairs."""
        s = self.scores(block)
        t, allowed = self.plane.forward(*self.plane.arguments(s, block))
        t = np.broadcast_to(np.asarray(t, self.dtype), s.shape)
        return t if whole else np.where(allowed, t, -np.inf)

    def absorb(self, state: tuple[Array, Array, Array] | None, t: Array, values: Array) -> Any:
        """One step of the online softmax: (maximum, Σ exp(t − maximum), Σ exp(t − maximum) v)."""
        highest = t.max(axis=-1)
        if state is not None:
            highest = np.maximum(highest, state[0])
        shift = np.where(np.isneginf(highest), 0, highest)
        p = np.exp(t - shift[..., None])
        total, sums = p.sum(axis=-1), self.apply(p, values)
        if state is not None:
            keep = np.exp(state[0] - shift)
            total, sums = total + keep * state[1], sums + keep[..., None] * state[2]
        return highest, total, sums

    def backward(
        self, out: Array, lse: Array, out_bar: Array, lse_bar: Array
    ) -> AttentionCotangents:
        out_bar = np.asarray(out_bar).astype(self.dtype, copy=False)
        delta = (out_bar * out).sum(axis=-1) - lse_bar
        anchor = np.where(np.isneginf(lse), 0, lse).astype(self.dtype, copy=False)
        q_bar, k_bar, v_bar = (np.zeros(a.shape, self.dtype) for a in (self.q, self.k, self.v))
        sums = ParameterSums(self.plane)
        skip, whole = self.tiles()
        for tile_j in range(skip.shape[1]):
            for tile_i in np.flatnonzero(~skip[:, tile_j]).tolist():
                block = self.plane.block(tile_i, tile_j)
                rows, columns = block.rows, block.columns
                p, factors = self.weights(block, anchor, whole[tile_i, tile_j])
                rows_bar = self.grouped(out_bar, rows)
                v_bar[:, :, columns] += self.gather(p, rows_bar)
                p_bar = self.flat(rows_bar @ self.keys(self.v, columns).swapaxes(-1, -2))
                t_bar = p * (p_bar - delta[:, :, rows, None])
                s_bar = self.scale * t_bar * factors[0]
                q_bar[:, :, rows] += self.apply(s_bar, self.keys(self.k, columns))
                k_bar[:, :, columns] += self.gather(s_bar, self.grouped(self.q, rows))
                sums.add(block, [t_bar * factor for factor in factors[1:]])
        q_bar, k_bar, v_bar = (
            bar.astype(self.q.dtype, copy=False) for bar in (q_bar, k_bar, v_bar)
        )
        return AttentionCotangents(q_bar, k_bar, v_bar, sums.results())

    def weights(self, block: Block, anchor: Array, whole: bool) -> tuple[Array, list[Array]]:
        """P = exp(t − L) on one tile, and ∂t/∂s, ∂t/∂θ; all 0 at hidden pairs.

        The partials are cleared too: at a hidden pair they may be infinite or undefined.
        """
        s = self.scores(block)
        t, allowed, *factors = self.plane.backward(*self.plane.arguments(s, block))
        p = np.exp(np.broadcast_to(t, s.shape) - anchor[:, :, block.rows, None])
        if whole:
            return p, factors
        return np.where(allowed, p, 0), [np.where(allowed, f, 0) for f in factors]


def check_arrays(q: Array, k: Array, v: Array) -> tuple[Array, Array, Array]:
    """Check that q, k, v are (batch, heads, length, width) NumPy arrays of one real dtype.

    Raises:
        ShapeError: the axes do not fit together.
        TypeError: an argument is not a NumPy array, or the dtypes differ or are not real.
    """
    for name, array in (("q", q), ("k", k), ("v", v)):
        if not isinstance(array, np.ndarray):
            raise TypeError(
                f"{name} is a {type(array).__module__}.{type(array).__name__}; this attention "
                "takes NumPy arrays (symad.gpu.attention takes CuPy arrays); convert all of them"
            )
        if array.ndim != 4:
            raise ShapeError(
                f"{name} has shape {array.shape}; give (batch, heads, length, head dim)"
            )
        if array.dtype.kind != "f":
            raise TypeError(f"{name} has dtype {array.dtype}; give floating-point numbers")
    if not q.dtype == k.dtype == v.dtype:
        raise TypeError(f"q, k, v have dtypes {q.dtype}, {k.dtype}, {v.dtype}; use one dtype")
    shapes = f"q {q.shape}, k {k.shape}, v {v.shape}"
    if q.shape[0] != k.shape[0] or k.shape[:3] != v.shape[:3] or q.shape[3] != k.shape[3]:
        raise ShapeError(
            f"{shapes}: q and k share the batch and the head dim; "
            "k and v share all but the last axis"
        )
    if k.shape[1] == 0 or q.shape[1] % k.shape[1]:
        raise ShapeError(f"{shapes}: the query heads must be a multiple of the key heads")
    return q, k, v


def with_lengths(
    score: Score,
    params: dict[str, Any],
    lengths: tuple[Array | None, Array | None] | None,
    batch: int,
) -> tuple[Score, dict[str, Any]]:
    """Add i < N_b and j < M_b to the mask, as reads of two integer parameters.

    Raises:
        ShapeError: a length array is not an integer array of shape (batch,).
    """
    names = ("query lengths", "key lengths")  # not identifiers: no parameter can have them
    for name, loop, array in zip(names, (I, J), lengths or (), strict=False):
        if array is None:
            continue
        array = np.asarray(array)
        if array.shape != (batch,) or array.dtype.kind not in "iu":
            raise ShapeError(
                f"{name} have shape {array.shape} and dtype {array.dtype}; "
                f"give integers of shape ({batch},)"
            )
        load = Load(sp.Dummy(name.replace(" ", "_"), integer=True), name, (B,))
        score = replace(
            score,
            mask=sp.And(score.mask, loop < load.symbol),
            parameters=(*score.parameters, Parameter(name, 1, True)),
            loads=(*score.loads, load),
        )
        params = {**params, name: array}
    return score, params
