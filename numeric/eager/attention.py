"""Attention of NumPy arrays: the op is lowered by `symad.numeric.lower` and called at once.

The op (`symad.fused.attention`) is built anew in each call. Its code is cached by the shapes, the
formulas of score and mask, and the dtype, and never by the Python functions, whose closures may change. It
passes over tiles of pairs with an online softmax (`symad.numeric.numpy_arrays.pairs.attention_printer`), so
that memory grows with the length, not with its square.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np
import sympy as sp

from symad.core.expressions import Formula
from symad.core.graph import Node
from symad.errors import ShapeError
from symad.fused.attention import in_part
from symad.fused.attention_ops import Attention, AttentionCotangent
from symad.fused.score_functions import LOOPS, B, I, J, call_functions, parameters_of
from symad.numeric.eager.calls import NUMPY, Library, called, inputs_of
from symad.numeric.pairs.intervals import ArrayBounds, ScoreInterval, evaluate
from symad.numeric.pairs.scores import Score, score_of
from symad.ops.basic.shaping import broadcast_to
from symad.ops.basic.sources import constant

if TYPE_CHECKING:
    from symad.core.dims import Dim

Array = Any
Function = Callable[..., Any]
Lengths = tuple[Array | None, Array | None]

EXACT_IN_SINGLE = 2**24
"""Single precision does not represent all larger integers; where they are read, double precision is used."""


@dataclass(frozen=True)
class Rules:
    """The visible pairs and their scores; the fields are arguments of `attention`."""

    score: Function | None
    mask: Function | None
    params: Mapping[str, Array] | None
    scale: float | None
    causal: bool
    lengths: Lengths | None


@dataclass(frozen=True)
class AttentionCotangents:
    """Cotangents of queries, keys, values (in their shapes) and real parameters."""

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
    params: Mapping[str, Array] | None = None,
    scale: float | None = None,
    causal: bool = False,
    lengths: tuple[Array | None, Array | None] | None = None,
    return_lse: bool = False,
) -> Any:
    """o_i = Σ_j softmax_j(f(scale ⟨q_i, k_j⟩, b, h, i, j, θ)) v_j over the pairs the mask allows.

    Args:
        q: queries (batch, heads, N, d).
        k: keys (batch, kv heads, M, d); query head h reads key head h // (heads / kv heads).
        v: values (batch, kv heads, M, d_v).
        score: f(s, b, h, i, j, **params) -> SymPy expression, called with symbols.
        mask: (b, h, i, j, **params) -> SymPy Boolean, true for the pairs that are visible.
        params: parameter values by name; numbers, or arrays that the functions index.
        scale: factor of ⟨q_i, k_j⟩; 1/√d if not given.
        causal: hide the pairs with j > i; their tiles are never computed.
        lengths: (N_b, M_b) integer arrays (batch,), or None for full length: rows i ≥ N_b have
            output 0, keys j ≥ M_b are hidden.
        return_lse: also return L_i = log Σ_j exp(t_ij), shape (batch, heads, N).

    Returns:
        Outputs (batch, heads, N, d_v) in the dtype of ``q``, with L if asked.

    Raises:
        ShapeError: the shapes do not fit.
        TraceError: score or mask use unknown symbols or arrays.
        IndexError: a pair that the mask does not hide reads outside of an array.

    Example:
        >>> import numpy as np
        >>> from symad.numeric import attention
        >>> q, k, v = (np.ones((1, 1, 2, 4)) for _ in range(3))
        >>> attention(q, k, v, causal=True).shape
        (1, 1, 2, 4)
    """
    return attended(NUMPY, q, k, v, Rules(score, mask, params, scale, causal, lengths), return_lse)


def attended(library: Library, q: Array, k: Array, v: Array, rules: Rules, return_lse: bool) -> Any:
    """`attention` on the arrays of a library."""
    call = _AttentionCall.make(library, q, k, v, rules)
    found = call.results(Attention, (0, 1) if return_lse else (0,))
    out = found[0].astype(q.dtype, copy=False)
    return (out, found[1].astype(call.real, copy=False)) if return_lse else out


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
    params: Mapping[str, Array] | None = None,
    scale: float | None = None,
    causal: bool = False,
    lengths: tuple[Array | None, Array | None] | None = None,
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

    Raises:
        ShapeError: a result or cotangent does not have the shape of this attention's.
    """
    rules = Rules(score, mask, params, scale, causal, lengths)
    return cotangents(NUMPY, q, k, v, out, lse, out_bar, lse_bar, rules)


def cotangents(
    library: Library,
    q: Array,
    k: Array,
    v: Array,
    out: Array,
    lse: Array,
    out_bar: Array,
    lse_bar: Array | None,
    rules: Rules,
) -> AttentionCotangents:
    """`attention_vjp` on the arrays of a library."""
    call = _AttentionCall.make(library, q, k, v, rules)
    given = {"out": out, "lse": lse, "out_bar": out_bar}
    given |= {} if lse_bar is None else {"lse_bar": lse_bar}
    for (name, array), axes in zip(given.items(), (4, 3, 4, 3), strict=False):
        expected = (*q.shape[:3], v.shape[3])[:axes]
        if np.shape(array) != expected:
            raise ShapeError(f"{name} has shape {np.shape(array)}; this attention has {expected}")
    bars = call.results(AttentionCotangent, call.op.real, given)
    kinds = [q.dtype] * 3 + [_dtype_of(call.values[r]) for r in call.op.real[3:]]
    q_bar, k_bar, v_bar, *more = [bar.astype(kind, copy=False) for bar, kind in zip(bars, kinds, strict=True)]
    names = [p.name for p in call.op.given if not p.integer]
    return AttentionCotangents(q_bar, k_bar, v_bar, dict(zip(names, more, strict=True)))


def _dtype_of(value: Array) -> np.dtype[Any]:
    return value.dtype if hasattr(value, "dtype") else np.asarray(value).dtype


def attention_traffic(length: Dim, width: Dim, block: Dim) -> dict[str, sp.Expr]:
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
class _AttentionCall:
    """One call: the library, the op, its arguments as nodes and as given values, and the precision."""

    library: Library
    op: Attention
    nodes: tuple[Node, ...]
    values: tuple[Array, ...]
    dtype: str
    real: Any

    @staticmethod
    def make(library: Library, q: Array, k: Array, v: Array, rules: Rules) -> _AttentionCall:
        """Trace the functions with symbols, and check the arguments."""
        check_arrays(library.xp, q, k, v)
        params = dict(rules.params or {})
        limits = limits_of(params, rules.lengths, q.shape[0])
        value, allowed = call_functions(rules.score, rules.mask, parameters_of(params), rules.causal)
        for name, loop in zip(LIMITS, (I, J), strict=True):
            if name in limits:
                allowed = sp.And(allowed, loop < sp.IndexedBase(name, integer=True)[B])
        params |= limits
        kinds = parameters_of(params)
        check_reads(score_of(value, allowed, kinds), params, (*q.shape[:3], k.shape[2]), library.device)
        names = tuple((p.name, p.ndim, p.integer) for p in kinds)
        factor = None if rules.scale is None else float(rules.scale)
        op = Attention(Formula(value), Formula(allowed), names, factor, 0)
        real = np.result_type(q.dtype, np.float32)
        if library.device:
            n, m = LENGTHS
            dtype = q.dtype.name
        else:
            n, m = q.shape[2], k.shape[2]
            integers = [np.asarray(params[p.name]) for p in kinds if p.integer]
            wide = any(np.abs(a).max(initial=0) > EXACT_IN_SINGLE for a in integers)
            dtype = "float64" if wide else str(real)
        named = zip("qkv", (q, k, v), (n, m, m), strict=True)
        shapes = {name: (*a.shape[:2], size, a.shape[3]) for name, a, size in named}
        inner = inputs_of(shapes)
        nodes = (*inner, *inputs_of({name: np.shape(a) for name, a in params.items()}, inner))
        return _AttentionCall(library, op, nodes, (q, k, v, *params.values()), dtype, real)

    def results(
        self,
        kind: type[Attention | AttentionCotangent],
        parts: Sequence[int],
        given: Mapping[str, Array] | None = None,
    ) -> list[Array]:
        """Some results of an op with this score, at these arguments and at further given values."""
        given = given or {}
        row = (*self.nodes[0].shape[:3], self.nodes[2].shape[3])
        more = inputs_of({name: row[: np.ndim(a)] for name, a in given.items()}, self.nodes)
        zero = () if "lse_bar" in given or not given else (broadcast_to(constant(0), row[:3]),)
        outputs = tuple(in_part(self.op, kind, part, (*self.nodes, *more, *zero)) for part in parts)
        values = (*self.values, *given.values())
        return called((*self.nodes, *more), outputs, self.dtype, values, self.library)


LENGTHS = sp.symbols("N M", integer=True, positive=True)


def check_arrays(xp: ModuleType, q: Array, k: Array, v: Array) -> None:
    """Check that q, k, v are (batch, heads, length, width) arrays of one library and one real dtype.

    Raises:
        ShapeError: the axes do not fit together.
        TypeError: an argument is an array of another library, or the dtypes differ or are not real.
    """
    for name, array in (("q", q), ("k", k), ("v", v)):
        if not isinstance(array, xp.ndarray):
            raise TypeError(
                f"{name} is a {type(array).__module__}.{type(array).__name__}; this attention takes "
                f"{xp.__name__} arrays (symad.numeric.attention NumPy's, symad.gpu.attention CuPy's too); "
                "convert all of them"
            )
        if array.ndim != 4:
            raise ShapeError(f"{name} has shape {array.shape}; give (batch, heads, length, head dim)")
        if array.dtype.kind != "f" and array.dtype.name != "bfloat16":
            raise TypeError(f"{name} has dtype {array.dtype}; give floating-point numbers")
    if not q.dtype == k.dtype == v.dtype:
        raise TypeError(f"q, k, v have dtypes {q.dtype}, {k.dtype}, {v.dtype}; use one dtype")
    check_heads(q, k, v)


def check_heads(q: Array, k: Array, v: Array) -> str:
    """The shapes as text, for messages.

    Raises:
        ShapeError: the axes do not fit together.
    """
    shapes = f"q {q.shape}, k {k.shape}, v {v.shape}"
    if q.shape[0] != k.shape[0] or k.shape[:3] != v.shape[:3] or q.shape[3] != k.shape[3]:
        raise ShapeError(
            f"{shapes}: q and k share the batch and the head dim; k and v share all but the last axis"
        )
    if k.shape[1] == 0 or q.shape[1] % k.shape[1]:
        raise ShapeError(f"{shapes}: the query heads must be a multiple of the key heads")
    return shapes


LIMITS = ("query_lengths", "key_lengths")
"""The mask's parameters that hold the lengths of the sequences of a batch."""


def _array(lengths: Any) -> Array:
    return lengths if hasattr(lengths, "dtype") else np.asarray(lengths)


def limits_of(params: Mapping[str, Array], lengths: Lengths | None, batch: int) -> dict[str, Array]:
    """The given lengths, as further parameters.

    Raises:
        ShapeError: the lengths are not one integer for each sequence, or a parameter has their name.
    """
    pairs = zip(LIMITS, lengths or (None, None), strict=True)
    given = {name: _array(array) for name, array in pairs if array is not None}
    for name, array in given.items():
        if name in params:
            raise ShapeError(f"a parameter is called {name}, which the argument lengths also names")
        if array.shape != (batch,) or array.dtype.kind not in "iu":
            raise ShapeError(
                f"{name.replace('_', ' ')} have shape {array.shape} and dtype {array.dtype}; "
                f"give integers of shape ({batch},)"
            )
    return given


def check_reads(score: Score, params: Mapping[str, Array], sizes: Sequence[int], clamped: bool) -> None:
    """Reject arrays that are too short for the positions that index them.

    Args:
        score: the traced functions.
        params: the arrays by name.
        sizes: the numbers of values of b, h, i and j.
        clamped: whether the code silently reads the nearest entry for a position outside of an array. Then
            all positions are checked by intervals, unless a mask may hide the pairs that read outside.

    Raises:
        ShapeError: an array has fewer entries than there are positions.
    """
    count = dict(zip(LOOPS, sizes, strict=True))
    known = {loop: ScoreInterval(0, max(size - 1, 0)) for loop, size in count.items()}
    for load in score.loads:
        shape = np.shape(params[load.name])
        for axis, index in enumerate(load.index):
            read = f"{load.name}[{', '.join(map(str, load.index))}]"
            if index in count and shape[axis] < count[index]:
                raise ShapeError(
                    f"{read} needs at least {count[index]} entries on axis {axis}; "
                    f"{load.name} has shape {shape}"
                )
            if not clamped or score.mask != sp.true or not index.free_symbols <= set(LOOPS):
                continue
            found = evaluate(index, known, ArrayBounds)
            if found.low < 0 or found.high >= shape[axis]:
                raise ShapeError(
                    f"{read} reads entries {found.low} to {found.high} of axis {axis}; "
                    f"{load.name} has shape {shape}"
                )
