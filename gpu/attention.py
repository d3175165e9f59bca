"""Tiled attention on the GPU with any score function and mask, and its deterministic derivative.

The mathematics, the arguments and the conventions are those of `symad.numeric.attention`; NumPy
arrays are passed on to it. The kernels are in gpu/kernels; memory beyond arguments and results
is two numbers per query in the backward, never N × M.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np
import sympy as sp

from symad.errors import ShapeError
from symad.gpu.attention_plan import (
    BACKWARD_KV,
    BACKWARD_Q,
    DIAGONALS,
    ELEMENTS,
    FORWARD,
    PLAIN_FLOAT32,
    Element,
    Plan,
    plans,
)
from symad.gpu.compile import GpuError, Machine, machine
from symad.gpu.score import CompiledScore, compile_score
from symad.numeric.attention import AttentionCotangents
from symad.numeric.attention import attention as cpu_attention
from symad.numeric.attention import attention_vjp as cpu_attention_vjp
from symad.numeric.scores import B, I, J, Load, Parameter, parameters_of, trace_score

Array = Any
Function = Callable[..., Any]
Lengths = tuple[Array | None, Array | None]
_LIMITS = ("query_lengths", "key_lengths")
_NULL = np.uint64(0)  # CuPy's launcher takes no None for a null pointer


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
    lengths: Lengths | None = None,
    return_lse: bool = False,
    fast: bool = False,
    tensor_cores: bool = True,
) -> Any:
    """o_i = Σ_j softmax_j(f(scale ⟨q_i, k_j⟩, b, h, i, j, θ)) v_j over the pairs the mask allows.

    Args:
        q: queries (batch, heads, N, d), d ≤ 256: CuPy arrays of float16, bfloat16, float32 or
            float64 (or NumPy arrays, all of them). Others than C-contiguous ones are copied.
        k: keys (batch, kv heads, M, d); query head h reads key head h // (heads / kv heads).
        v: values (batch, kv heads, M, d_v), d_v ≤ 256.
        score: f(s, b, h, i, j, **params) -> SymPy expression. Traced once per function object:
            define it outside of loops.
        mask: (b, h, i, j, **params) -> SymPy Boolean, true where a pair takes part.
        params: parameter values by name; numbers, or arrays that the functions index.
        scale: factor of ⟨q_i, k_j⟩; 1/√d if not given.
        causal: hide the pairs with j > i; their tiles are never computed.
        lengths: (N_b, M_b) integer arrays (batch,), or None for full length.
        return_lse: also return L_i = log Σ_j exp(t_ij), shape (batch, heads, N), float32 (float64
            for float64).
        fast: allow approximate instructions in the score function (tanh, absolute error 5e-4).
        tensor_cores: False computes float32 products by ordinary arithmetic instead of three
            tf32 products each (22 bits of every factor); compute capability 7.5 does so always.

    Returns:
        Outputs (batch, heads, N, d_v) in the dtype of ``q``, with L if asked. Rows without visible
        keys are 0, with L = −∞.

    Raises:
        ShapeError: the shapes do not fit, or the head dim is too large for this device.
        TypeError: arrays of different libraries or dtypes.
        TraceError: score or mask use unknown symbols or arrays.
        GpuError: there is no usable GPU.
    """
    if _all_numpy(q, k, v):
        return cpu_attention(
            q, k, v, score=score, mask=mask, params=params, scale=scale, causal=causal,
            lengths=lengths, return_lse=return_lse,
        )  # fmt: skip
    where = machine()
    element = check_arrays(where, q, k, v, tensor_cores)
    call = AttentionCall.make(
        where, q, k, v, score, mask, params, scale, causal, lengths, fast, element
    )
    out, lse = call.forward()
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
    lengths: Lengths | None = None,
    fast: bool = False,
    tensor_cores: bool = True,
    deterministic: bool = True,
) -> AttentionCotangents:
    """Cotangents of all arguments of `attention`, the same bits from run to run.

    With P_ij = exp(t_ij − L_i) and Δ_i = ⟨ō_i, o_i⟩ − L̄_i: t̄_ij = P_ij (⟨ō_i, v_j⟩ − Δ_i),
    v̄_j = Σ_i P_ij ō_i, s̄ = t̄ ∂f/∂s, q̄_i = scale Σ_j s̄_ij k_j, k̄_j = scale Σ_i s̄_ij q_i and
    θ̄ = Σ_ij t̄_ij ∂f/∂θ (Dao et al. 2022, arXiv 2205.14135, algorithm 4, with a score function).

    Args:
        q: queries, as for `attention`; likewise every argument not named here.
        k: keys.
        v: values.
        out: the outputs o.
        lse: the log-sum-exps L.
        out_bar: cotangent of ``out``, in its shape and dtype.
        lse_bar: cotangent of ``lse``; 0 if not given.
        score: the score function.
        mask: the mask function.
        params: parameter values by name.
        scale: factor of ⟨q_i, k_j⟩.
        causal: as for `attention`.
        lengths: as for `attention`.
        fast: as for `attention`.
        tensor_cores: as for `attention`.
        deterministic: False lets q̄ be added up in any order where that is faster: for 16-bit
            dtypes, head dims up to 128 and scores without parameters per query or pair.
    """
    if _all_numpy(q, k, v):
        return cpu_attention_vjp(
            q, k, v, out, lse, out_bar, lse_bar=lse_bar, score=score, mask=mask, params=params,
            scale=scale, causal=causal, lengths=lengths,
        )  # fmt: skip
    where = machine()
    element = check_arrays(where, q, k, v, tensor_cores)
    call = AttentionCall.make(
        where, q, k, v, score, mask, params, scale, causal, lengths, fast, element
    )
    return call.backward(out, lse, out_bar, lse_bar, deterministic)


@dataclass(frozen=True)
class AttentionCall:
    """One call: arrays as the kernels read them, and the compiled score.

    Attributes:
        machine: where it runs.
        element: type of q, k and v.
        q: contiguous queries, rows padded to 16 bytes; likewise ``k`` and ``v``.
        score: the compiled score function and mask.
        params: the parameters, converted.
        given: the parameters as they came.
        widths: (d, d_v) before padding.
        scale: factor of the scores, positive where the score is s itself.
    """

    machine: Machine
    element: Element
    q: Array
    k: Array
    v: Array
    score: CompiledScore
    params: Mapping[str, Any]
    given: Mapping[str, Any]
    widths: tuple[int, int]
    scale: float

    @staticmethod
    def make(
        machine: Machine,
        q: Array,
        k: Array,
        v: Array,
        score: Function | None = None,
        mask: Function | None = None,
        params: Mapping[str, Any] | None = None,
        scale: float | None = None,
        causal: bool = False,
        lengths: Lengths | None = None,
        fast: bool = False,
        element: Element | None = None,
    ) -> AttentionCall:
        """Check the arguments, trace the functions (once per function object) and convert."""
        element = element or check_arrays(machine, q, k, v)
        params = dict(params or {})
        kinds = parameters_of(params)
        limits = _limits(params, lengths, q.shape[0])
        params |= limits
        compiled = _compiled(score, mask, kinds, tuple(limits), causal, element.real, fast)
        converted = compiled.convert(params, machine.xp)
        compiled.check(converted, q.shape[0], q.shape[1], q.shape[2], k.shape[2])
        factor = q.shape[3] ** -0.5 if scale is None else float(scale)
        widths = (q.shape[3], v.shape[3])
        q, k, v = (_rows_of_16_bytes(machine.xp, a) for a in (q, k, v))
        return AttentionCall(
            machine, element, q, k, v, compiled, converted, params, widths, float(factor)
        )

    @property
    def real(self) -> Any:
        """The type of sums and statistics."""
        return np.float64 if self.element.real == "double" else np.float32

    @property
    def sizes(self) -> tuple[int, int, int, int, int]:
        """Batch, heads, key heads, N, M."""
        (batch, heads, n, _), (_, groups, m, _) = self.q.shape, self.k.shape
        return batch, heads, groups, n, m

    def plans(self, kind: str, atomic: bool = False) -> tuple[Plan, ...]:
        """The specialised kernels of one pass."""
        shared, plain = self.machine.shared_memory, "SCORE_PLAIN 1" in self.score.macros
        return plans(kind, self.element, self.q.shape[3], self.v.shape[3], shared, plain, atomic)

    def launch(
        self, plan: Plan, name: str, grid: Sequence[int], *args: Any, shared: int | None = None
    ) -> None:
        """Run one kernel of a plan's module."""
        text = plan.source(self.score)
        if self.scale <= 0:  # the kernels fold only positive scales: the maximum of s is that of q·k
            text = text.replace("#define SCORE_PLAIN 1", "#define SCORE_PLAIN 0")
        kernel = self.machine.load(text).get_function(name)
        shared = plan.shared_bytes if shared is None else shared
        if shared > 48 * 1024:
            kernel.max_dynamic_shared_size_bytes = shared
        kernel(tuple(grid), (plan.threads,), args, shared_mem=shared)

    def numbers(self) -> tuple[Any, ...]:
        """The arguments at the end of every kernel: sizes, scale, and those of the score."""
        _, heads, groups, n, m = self.sizes
        sizes = tuple(np.int32(x) for x in (heads, groups, n, m))
        return (*sizes, self.real(self.scale), self.score.arguments(self.params))

    def forward(self) -> tuple[Array, Array]:
        """(o, L)."""
        xp, (batch, heads, _, n, m) = self.machine.xp, self.sizes
        if m == 0 or self.q.size == 0:
            out = xp.zeros((*self.q.shape[:3], self.widths[1]), self.q.dtype)
            return out, xp.full((batch, heads, n), -np.inf, self.real)
        out = xp.empty((*self.q.shape[:3], self.v.shape[3]), self.q.dtype)
        lse = xp.empty((batch, heads, n), self.real)
        (plan,) = self.plans(FORWARD)
        grid = (-(-n // plan.own) * plan.slices, heads, batch)
        args = (self.q, self.k, self.v, out, lse, *self.numbers())
        self.launch(plan, "attention_forward", grid, *args)
        return _with_width(xp, out, self.widths[1]), lse

    def backward(
        self,
        out: Array,
        lse: Array,
        out_bar: Array,
        lse_bar: Array | None = None,
        deterministic: bool = True,
    ) -> AttentionCotangents:
        """Cotangents of q, k, v and the real parameters."""
        xp, (batch, heads, _, n, m) = self.machine.xp, self.sizes
        rows = (batch, heads, n)
        _check_shape(xp, "out", out, (*rows, self.widths[1]), self.q.dtype)
        _check_shape(xp, "out_bar", out_bar, (*rows, self.widths[1]), self.q.dtype)
        _check_shape(xp, "lse", lse, rows, self.real)
        if lse_bar is not None:
            _check_shape(xp, "lse_bar", lse_bar, rows, self.real)
            lse_bar = xp.ascontiguousarray(lse_bar)
        out, out_bar = (_rows_of_16_bytes(xp, a) for a in (out, out_bar))
        q_bar, k_bar, v_bar = (xp.zeros_like(a) for a in (self.q, self.k, self.v))
        score = self.score
        row_sums = self._sums(len(score.rows), heads, n)
        column_sums = self._sums(len(score.columns), heads, m)
        diagonals = self._sums(len(score.diagonals), heads, max(n + m - 1, 0))
        pairs = self._sums(len(score.pairs), heads, n, m)
        if m and self.q.size and self.k.size:
            delta, base = self._statistics(out, out_bar, lse, lse_bar)
            common = (self.q, self.k, self.v, out_bar, base, delta)
            q_sum = self._room_for_atomics(deterministic)
            if q_sum is None:
                self._pass_over_keys(common, q_bar, row_sums, pairs)
            self._pass_over_queries(common, q_bar, k_bar, v_bar, column_sums, q_sum)
            if diagonals is not None:
                (plan,) = self.plans(DIAGONALS)
                grid = (-(-(n + m - 1) // plan.band), heads, batch)
                self.launch(plan, "attention_diagonals", grid, *common, diagonals, *self.numbers())
        sums = score.gradients(row_sums, column_sums, diagonals, pairs, self.params, m)
        return AttentionCotangents(
            _with_width(xp, q_bar, self.widths[0]),
            _with_width(xp, k_bar, self.widths[0]),
            _with_width(xp, v_bar, self.widths[1]),
            {n: _like(g, self.given[n]) for n, g in sums.items()},
        )

    def _statistics(
        self, out: Array, out_bar: Array, lse: Array, lse_bar: Array | None
    ) -> tuple[Array, Array]:
        """Δ, and L in base 2, one each per query."""
        xp, (batch, heads, _, n, _) = self.machine.xp, self.sizes
        delta, base = (xp.empty((batch, heads, n), self.real) for _ in range(2))
        (plan,) = self.plans(BACKWARD_Q)
        count = batch * heads * n
        args = (out, out_bar, xp.ascontiguousarray(lse), _pointer(lse_bar), delta, base)
        grid = (-(-count // plan.shape.warps),)
        self.launch(plan, "attention_delta", grid, *args, np.int64(count), shared=0)
        return delta, base

    def _pass_over_keys(
        self, common: tuple[Array, ...], q_bar: Array, row_sums: Array | None, pairs: Array | None
    ) -> None:
        """q̄, and what belongs to query rows."""
        batch, heads, _, n, _ = self.sizes
        (plan,) = self.plans(BACKWARD_Q)
        grid = (-(-n // plan.own) * plan.slices, heads, batch)
        args = (*common, q_bar, _pointer(row_sums), _pointer(pairs), *self.numbers())
        self.launch(plan, "attention_backward_q", grid, *args)

    def _pass_over_queries(
        self,
        common: tuple[Array, ...],
        q_bar: Array,
        k_bar: Array,
        v_bar: Array,
        column_sums: Array | None,
        q_sum: Array | None,
    ) -> None:
        """k̄ and v̄, and what belongs to keys; q̄ by atomic additions to ``q_sum`` if given."""
        batch, _, groups, _, m = self.sizes
        atomic = q_sum is not None
        for plan in self.plans(BACKWARD_KV, atomic):
            grid = (-(-m // plan.own) * plan.slices, groups, batch)
            outputs = (k_bar, v_bar, _pointer(column_sums), _pointer(q_sum))
            self.launch(plan, "attention_backward_kv", grid, *common, *outputs, *self.numbers())
        if atomic:
            blocks = -(-q_bar.size // (2 * plan.threads))
            args = (q_sum, q_bar, np.int64(q_bar.size))
            self.launch(plan, "attention_round", (blocks,), *args, shared=0)

    def _room_for_atomics(self, deterministic: bool) -> Array | None:
        """Zeroed float32 sums for q̄, where the pass with atomic additions exists and is wanted."""
        widest, score = max(self.q.shape[3], self.v.shape[3]), self.score
        if deterministic or self.element.bytes > 2 or widest > 128 or score.rows or score.pairs:
            return None
        return self.machine.xp.zeros(self.q.shape, np.float32)

    def _sums(self, count: int, *shape: int) -> Array | None:
        """Zeroed room for parameter cotangents, or None if there are none."""
        full = (count, self.q.shape[0], *shape)
        return self.machine.xp.zeros(full, self.real) if count else None


def check_arrays(
    machine: Machine, q: Array, k: Array, v: Array, tensor_cores: bool = True
) -> Element:
    """Check that q, k, v are (batch, heads, length, width) arrays of one library and dtype.

    Returns:
        The element type of the kernels.

    Raises:
        ShapeError: the axes do not fit together.
        TypeError: an array of another library, or a dtype without kernels.
        GpuError: the device has no tensor cores for this dtype.
    """
    xp = machine.xp
    named = (("q", q), ("k", k), ("v", v))
    for name, array in named:
        if not isinstance(array, xp.ndarray):
            kind = type(array)
            raise TypeError(
                f"{name} is a {kind.__module__}.{kind.__name__}, others are {xp.__name__} arrays; "
                f"give q, k and v as {xp.__name__} arrays, or all of them as NumPy arrays"
            )
        if array.ndim != 4:
            raise ShapeError(f"{name} has shape {array.shape}; give (batch, heads, length, width)")
    if not q.dtype == k.dtype == v.dtype:
        raise TypeError(f"q, k, v have dtypes {q.dtype}, {k.dtype}, {v.dtype}; use one dtype")
    element = ELEMENTS.get(q.dtype.name)
    if element is None:
        raise TypeError(f"q, k, v have dtype {q.dtype}; the kernels take {', '.join(ELEMENTS)}")
    old = machine.capability < (8, 0)
    if q.dtype == np.float32 and (old or not tensor_cores):
        element = PLAIN_FLOAT32
    elif old:
        raise GpuError(
            f"attention in {q.dtype} needs compute capability 8.0; this device has "
            f"{'.'.join(map(str, machine.capability))}: use float32"
        )
    shapes = f"q {q.shape}, k {k.shape}, v {v.shape}"
    if q.shape[0] != k.shape[0] or k.shape[:3] != v.shape[:3] or q.shape[3] != k.shape[3]:
        raise ShapeError(
            f"{shapes}: q and k share the batch and the head dim; "
            "k and v share all but the last axis"
        )
    if k.shape[1] == 0 or q.shape[1] % k.shape[1]:
        raise ShapeError(f"{shapes}: the query heads must be a multiple of the key heads")
    if max(q.shape[0], q.shape[1]) > 65535 or 0 in (q.shape[3], v.shape[3]):
        raise ShapeError(f"{shapes}: at most 65535 batches and heads, at least one column")
    return element


@lru_cache(maxsize=256)
def _compiled(
    score: Function | None,
    mask: Function | None,
    kinds: tuple[Parameter, ...],
    limits: tuple[str, ...],
    causal: bool,
    real: str,
    fast: bool,
) -> CompiledScore:
    """The compiled score, its mask narrowed to i < query_lengths[b] and j < key_lengths[b]."""
    traced = trace_score(score, mask, kinds, causal)
    for name in limits:
        load = Load(sp.Dummy(name, integer=True), name, (B,))
        loop = I if name == _LIMITS[0] else J
        traced = replace(
            traced,
            mask=sp.And(traced.mask, loop < load.symbol),
            parameters=(*traced.parameters, Parameter(name, 1, True)),
            loads=(*traced.loads, load),
        )
    return compile_score(traced, real, fast)


def _limits(
    params: Mapping[str, Any], lengths: Lengths | None, batch: int
) -> dict[str, Array]:
    """Lengths as two more parameters of the mask."""
    pairs = zip(_LIMITS, lengths or (None, None), strict=True)
    given = {name: array for name, array in pairs if array is not None}
    for name, array in given.items():
        if name in params:
            raise ShapeError(f"a parameter is called {name}, which the argument lengths also names")
        if array.shape != (batch,) or array.dtype.kind not in "iu":
            raise ShapeError(
                f"{name} have shape {array.shape} and dtype {array.dtype}; give integers of shape "
                f"({batch},)"
            )
    return given


def _all_numpy(*arrays: Array) -> bool:
    return all(isinstance(a, np.ndarray) for a in arrays)


def _rows_of_16_bytes(xp: Any, array: Array) -> Array:
    """A contiguous array whose rows are a multiple of 16 bytes: zeros are added where needed."""
    per = 16 // array.dtype.itemsize
    return _with_width(xp, array, -(-array.shape[-1] // per) * per)


def _with_width(xp: Any, array: Array, width: int) -> Array:
    """The array, contiguous, with rows cut or filled with zeros to ``width``.

    Copied as bits: CuPy has few kernels for bfloat16.
    """
    if array.shape[-1] == width and array.flags.c_contiguous:
        return array
    bits = np.dtype(f"u{array.dtype.itemsize}")
    made = xp.zeros((*array.shape[:-1], width), bits)
    common = min(width, array.shape[-1])
    made[..., :common] = array.view(bits)[..., :common]
    return made.view(array.dtype)


def _pointer(array: Array | None) -> Any:
    return _NULL if array is None else array


def _like(gradient: Array, parameter: Any) -> Any:
    """A parameter's gradient in the dtype of the parameter."""
    dtype = getattr(parameter, "dtype", None)
    return gradient if dtype is None else gradient.astype(dtype, copy=False)


def _check_shape(xp: Any, name: str, array: Array, shape: tuple[int, ...], dtype: Any) -> None:
    if not isinstance(array, xp.ndarray):
        raise TypeError(f"{name} is a {type(array)}; give a {xp.__name__} array")
    if array.shape != shape or array.dtype != dtype:
        raise ShapeError(
            f"{name} has shape {array.shape} and dtype {array.dtype}; this attention has "
            f"{shape} and {np.dtype(dtype)}"
        )
