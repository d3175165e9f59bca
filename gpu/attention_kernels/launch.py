"""One attention call on a machine: its kernels, launched for the results and their cotangents."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from symad.gpu.attention_kernels.arguments import (
    Lengths,
    aligned,
    check_arrays,
    check_shape,
    compiled_score,
    pointer,
    rows_of_16_bytes,
    with_width,
)
from symad.gpu.attention_kernels.compiled_score import CompiledScore
from symad.gpu.attention_kernels.plan import Element, Plan, plans
from symad.gpu.attention_kernels.tile_shapes import BACKWARD_KV, BACKWARD_Q, DIAGONALS, FORWARD
from symad.gpu.compile import Machine
from symad.numeric.pairs.eager_attention import AttentionCotangents, limits_of
from symad.numeric.pairs.scores import parameters_of

Array = Any
Function = Callable[..., Any]


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
        limits = limits_of(params, lengths, q.shape[0])
        params |= limits
        compiled = compiled_score(score, mask, kinds, tuple(limits), causal, element.real, fast)
        converted = compiled.convert(params, machine.xp)
        compiled.check(converted, q.shape[0], q.shape[1], q.shape[2], k.shape[2])
        factor = q.shape[3] ** -0.5 if scale is None else float(scale)
        widths = (q.shape[3], v.shape[3])
        q, k, v = (rows_of_16_bytes(machine.xp, a) for a in (q, k, v))
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
        if not all(aligned(a) for a in args):
            text = f"#define SYMAD_UNALIGNED\n{text}"
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
        return with_width(xp, out, self.widths[1]), lse

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
        check_shape(xp, "out", out, (*rows, self.widths[1]), self.q.dtype)
        check_shape(xp, "out_bar", out_bar, (*rows, self.widths[1]), self.q.dtype)
        check_shape(xp, "lse", lse, rows, self.real)
        if lse_bar is not None:
            check_shape(xp, "lse_bar", lse_bar, rows, self.real)
            lse_bar = xp.ascontiguousarray(lse_bar)
        out, out_bar = (rows_of_16_bytes(xp, a) for a in (out, out_bar))
        q_bar, k_bar, v_bar = (xp.zeros_like(a) for a in (self.q, self.k, self.v))
        score = self.score
        row_sums = self._sums(len(score.rows), heads, n)
        column_sums = self._sums(len(score.columns), heads, m)
        diagonals = self._sums(len(score.diagonals), heads, max(n + m - 1, 0))
        pairs = self._sums(len(score.pairs), heads, n, m)
        if m and self.q.size and self.k.size:
            delta, base = self.statistics(out, out_bar, lse, lse_bar)
            common = (self.q, self.k, self.v, out_bar, base, delta)
            q_sum = self._room_for_atomics(deterministic)
            if q_sum is None:
                self._pass_over_keys(common, q_bar, row_sums, pairs)
            self._pass_over_queries(common, q_bar, k_bar, v_bar, column_sums, q_sum)
            if diagonals is not None:
                (plan,) = self.plans(DIAGONALS)
                grid = (-(-(n + m - 1) // plan.band), heads, batch)
                self.launch(plan, "attention_diagonals", grid, *common, diagonals, *self.numbers())
        sums = score.gradients(
            row_sums, column_sums, diagonals, pairs, self.params, m, self.machine
        )
        return AttentionCotangents(
            with_width(xp, q_bar, self.widths[0]),
            with_width(xp, k_bar, self.widths[0]),
            with_width(xp, v_bar, self.widths[1]),
            {n: _like(g, self.given[n]) for n, g in sums.items()},
        )

    def statistics(
        self, out: Array, out_bar: Array, lse: Array, lse_bar: Array | None
    ) -> tuple[Array, Array]:
        """Δ, and L in base 2, one each per query."""
        xp, (batch, heads, _, n, _) = self.machine.xp, self.sizes
        delta, base = (xp.empty((batch, heads, n), self.real) for _ in range(2))
        (plan,) = self.plans(BACKWARD_Q)
        count = batch * heads * n
        args = (out, out_bar, xp.ascontiguousarray(lse), pointer(lse_bar), delta, base)
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
        args = (*common, q_bar, pointer(row_sums), pointer(pairs), *self.numbers())
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
            outputs = (k_bar, v_bar, pointer(column_sums), pointer(q_sum))
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


def _like(gradient: Array, parameter: Any) -> Any:
    """A parameter's gradient in the dtype of the parameter."""
    dtype = getattr(parameter, "dtype", None)
    return gradient if dtype is None else gradient.astype(dtype, copy=False)
