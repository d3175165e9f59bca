"""Value and gradient of an LSTM in NumPy, optimized by hand: a bound for what NumPy can do.

The model and the order of arguments are those of `model_cases`: gates i, f, g, o, and the mean square of a
linear readout. Features run along rows and the batch along columns; [W; U; b] is one matrix whose gates are
in the order f, i, o, g, so that σ(u) = (1 + tanh(u/2))/2 of three gates and tanh of the fourth are one call.
That form of σ is exact to a rounding of 1, not of σ, and generated code does not use it. Memory is reused
from call to call. In the backward pass some steps at a time are prepared, and multiplied while they are in
the cache.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

STEPS = 10
"""Steps that are prepared together, as one product; of 5, 10, 20 and 50, 10 took the least time."""


def lstm_by_hand(T: int, B: int, D: int, H: int, K: int, dtype: str) -> Callable[..., Any]:
    """A function of W (H, 4H), U (D, 4H), b (4H,), V (H, K), x (T, B, D), y (T, B, K)."""
    mul, add, sub, tanh = np.multiply, np.add, np.subtract, np.tanh

    def new(*shape: int) -> Any:
        return np.zeros(shape, dtype)

    order = np.r_[H : 2 * H, :H, 3 * H : 4 * H, 2 * H : 3 * H]
    weights, halved, rows = new(4 * H, H + D + 1), new(4 * H, H + D + 1), new(T + 1, H + D + 1, B)
    rows[:, -1] = 1
    gates, c, tanh_c = new(T, 4 * H, B), new(T + 1, H, B), new(T, H, B)
    slope, of_c, h_bar, c_bar, u = new(STEPS, 4 * H, B), new(STEPS, H, B), new(H, B), new(H, B), new(H, B)
    states, residuals, from_readout = new(H, T, B), new(K, T, B), new(H, T * B)
    left, right = new(4 * H * STEPS * B), new(STEPS, B, H + D + 1)
    total, more = new(4 * H, H + D + 1), new(4 * H, H + D + 1)
    one, half = np.array(1, dtype), np.array(0.5, dtype)
    f, i, o, g = (gates[:, k * H : (k + 1) * H] for k in range(4))
    s = gates[:, : 3 * H]
    zf, zi, zo, zg = (slope[:, k * H : (k + 1) * H] for k in range(4))
    two = slope[:, : 2 * H].reshape(STEPS, 2, H, B)

    def forward() -> None:
        columns = zip(gates, s, f, i, o, g, rows, rows[1:, :H], c, c[1:], tanh_c, strict=False)
        for z_t, s_t, f_t, i_t, o_t, g_t, row_t, h_t, c_before, c_t, tanh_t in columns:
            halved.dot(row_t, z_t)
            tanh(z_t, z_t)
            mul(s_t, half, s_t)
            add(s_t, half, s_t)
            mul(f_t, c_before, c_t)
            mul(i_t, g_t, u)
            add(c_t, u, c_t)
            tanh(c_t, tanh_t)
            mul(o_t, tanh_t, h_t)

    def slopes(part: slice, k: int) -> None:
        """The slopes of the gates and of c, with which cotangents are multiplied, for k steps at a time."""
        every, S, t_c, G = slope[:k, : 3 * H], s[part], tanh_c[part], g[part]
        mul(S, S, every)
        sub(S, every, every)
        mul(zf[:k], c[part], zf[:k])
        mul(zi[:k], G, zi[:k])
        mul(zo[:k], t_c, zo[:k])
        mul(G, G, zg[:k])
        sub(one, zg[:k], zg[:k])
        mul(zg[:k], i[part], zg[:k])
        mul(t_c, t_c, of_c[:k])
        sub(one, of_c[:k], of_c[:k])
        mul(of_c[:k], o[part], of_c[:k])

    def backward(readout: Any) -> None:
        across = np.ascontiguousarray(weights[:, :H].T)
        h_bar[...] = c_bar[...] = total[...] = 0
        for start in range((T - 1) // STEPS * STEPS, -1, -STEPS):
            k = min(STEPS, T - start)
            part = slice(start, start + k)
            slopes(part, k)
            columns = (a[:k][::-1] for a in (slope, two, zo, zg, of_c))
            for z_t, two_t, zo_t, zg_t, c_t, f_t, r_t in zip(
                *columns, f[part][::-1], readout[part][::-1], strict=True
            ):
                add(h_bar, r_t, h_bar)
                mul(h_bar, c_t, u)
                add(c_bar, u, c_bar)
                mul(zo_t, h_bar, zo_t)
                mul(two_t, c_bar, two_t)
                mul(zg_t, c_bar, zg_t)
                mul(c_bar, f_t, c_bar)
                across.dot(z_t, h_bar)
            first = left[: 4 * H * k * B].reshape(4 * H, k, B)
            first[...] = slope[:k].transpose(1, 0, 2)
            right[:k] = rows[part].transpose(0, 2, 1)
            np.matmul(first.reshape(4 * H, -1), right[:k].reshape(k * B, -1), more)
            add(total, more, total)

    def value_and_gradient(W: Any, U: Any, b: Any, V: Any, x: Any, y: Any) -> Any:
        weights[:, :H], weights[:, H:-1], weights[:, -1] = W.T[order], U.T[order], b[order]
        halved[...] = weights
        halved[: 3 * H] *= half
        rows[:T, H:-1] = x.transpose(0, 2, 1)
        forward()
        states[...] = rows[1:, :H].transpose(1, 0, 2)
        flat, r = states.reshape(H, T * B), residuals.reshape(K, T * B)
        np.matmul(V.T, flat, r)
        residuals[...] -= y.transpose(2, 0, 1)
        value = np.vdot(r, r) / r.size
        mul(r, 2 / r.size, r)
        V_bar = flat @ r.T
        np.matmul(V, r, from_readout)
        backward(from_readout.reshape(H, T, B).transpose(1, 0, 2))
        all_bar = np.empty_like(total)
        all_bar[order] = total
        return value, all_bar[:, :H].T, all_bar[:, H:-1].T, all_bar[:, -1].copy(), V_bar

    return value_and_gradient
