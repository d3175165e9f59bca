"""Tangents of attention, and of its cotangents, on a machine: what Hessian-vector products need.

The formulas stand in gpu/kernels/attention_tangent.cu and attention_second.h. The parameters of the
score are held fixed. Nothing of size N × M is stored.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from symad.gpu.attention_kernels.arguments import check_shape, rows_of_16_bytes, with_width
from symad.gpu.attention_kernels.launch import AttentionCall
from symad.gpu.attention_kernels.tile_shapes import SECOND_KV, SECOND_Q, TANGENT

Array = Any


@dataclass(frozen=True)
class SecondOrder:
    """A call of attention at a point (q, k, v, o, L), with tangents of its arguments.

    Attributes:
        call: the attention.
        out: the outputs o, contiguous, rows padded to 16 bytes.
        lse: the log-sum-exps L.
        dots: tangents of q, k and v, padded likewise.
    """

    call: AttentionCall
    out: Array
    lse: Array
    dots: tuple[Array, Array, Array]

    @staticmethod
    def make(
        call: AttentionCall, out: Array, lse: Array, q_dot: Array, k_dot: Array, v_dot: Array
    ) -> SecondOrder:
        """Check the arrays and bring them into the form of the kernels."""
        xp, (batch, heads, groups, n, m) = call.machine.xp, call.sizes
        (d, d_v), dtype = call.widths, call.q.dtype
        check_shape(xp, "out", out, (batch, heads, n, d_v), dtype)
        check_shape(xp, "lse", lse, (batch, heads, n), call.real)
        check_shape(xp, "q_dot", q_dot, (batch, heads, n, d), dtype)
        check_shape(xp, "k_dot", k_dot, (batch, groups, m, d), dtype)
        check_shape(xp, "v_dot", v_dot, (batch, groups, m, d_v), dtype)
        q_dot, k_dot, v_dot = (rows_of_16_bytes(xp, a) for a in (q_dot, k_dot, v_dot))
        out, lse = rows_of_16_bytes(xp, out), xp.ascontiguousarray(lse)
        return SecondOrder(call, out, lse, (q_dot, k_dot, v_dot))

    @property
    def empty(self) -> bool:
        """Whether there is no pair at all."""
        return not (self.call.q.size and self.call.k.size)

    def tangents(self) -> tuple[Array, Array]:
        """(ȯ, L̇)."""
        out_dot, lse_dot = self._tangents()
        return with_width(self.call.machine.xp, out_dot, self.call.widths[1]), lse_dot

    def _tangents(self) -> tuple[Array, Array]:
        call, xp = self.call, self.call.machine.xp
        batch, heads, _, n, _ = call.sizes
        if self.empty:
            return xp.zeros_like(self.out), xp.zeros((batch, heads, n), call.real)
        out_dot, lse_dot = xp.empty_like(self.out), xp.empty((batch, heads, n), call.real)
        (plan,) = call.plans(TANGENT)
        grid = (-(-n // plan.own) * plan.slices, heads, batch)
        arrays = (call.q, call.k, call.v, self.out, self.lse, *self.dots, out_dot, lse_dot)
        call.launch(plan, "attention_tangent", grid, *arrays, *call.numbers())
        return out_dot, lse_dot

    def cotangents(
        self,
        out_bar: Array,
        out_bar_dot: Array,
        lse_bar: Array | None = None,
        lse_bar_dot: Array | None = None,
    ) -> tuple[Array, Array, Array]:
        """Tangents of the cotangents q̄, k̄ and v̄, as (ō, L̄) moves along (ō̇, L̄̇) too."""
        call, xp = self.call, self.call.machine.xp
        batch, heads, groups, n, m = call.sizes
        for name, array in (("out_bar", out_bar), ("out_bar_dot", out_bar_dot)):
            check_shape(xp, name, array, (batch, heads, n, call.widths[1]), call.q.dtype)
        for name, array in (("lse_bar", lse_bar), ("lse_bar_dot", lse_bar_dot)):
            if array is not None:
                check_shape(xp, name, array, (batch, heads, n), call.real)
        results = tuple(xp.zeros_like(a) for a in (call.q, call.k, call.v))
        if not self.empty:
            out_dot, lse_dot = self._tangents()
            bar, bar_dot = (rows_of_16_bytes(xp, a) for a in (out_bar, out_bar_dot))
            delta, base = call.statistics(self.out, bar, self.lse, _contiguous(xp, lse_bar))
            delta_dot, _ = call.statistics(self.out, bar_dot, self.lse, _contiguous(xp, lse_bar_dot))
            delta_dot += call.statistics(out_dot, bar, self.lse, None)[0]
            rows = (base, delta, lse_dot, delta_dot)
            common = (call.q, call.k, call.v, bar, *self.dots, bar_dot, *rows)
            (plan,) = call.plans(SECOND_Q)
            grid = (-(-n // plan.own) * plan.slices, heads, batch)
            call.launch(plan, "attention_second_q", grid, *common, results[0], *call.numbers())
            for plan in call.plans(SECOND_KV):
                grid = (-(-m // plan.own) * plan.slices, groups, batch)
                outputs = (results[1], results[2])
                call.launch(plan, "attention_second_kv", grid, *common, *outputs, *call.numbers())
        d, d_v = call.widths
        q_bar_dot, k_bar_dot, v_bar_dot = results
        return (
            with_width(xp, q_bar_dot, d),
            with_width(xp, k_bar_dot, d),
            with_width(xp, v_bar_dot, d_v),
        )


def _contiguous(xp: Any, array: Array | None) -> Array | None:
    return None if array is None else xp.ascontiguousarray(array)
