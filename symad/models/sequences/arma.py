"""The exact Gaussian likelihood of ARMA(p, q) by the Kalman filter, as one scan.

    y_t − μ = Σ φ_i (y_{t−i} − μ) + e_t + Σ θ_j e_{t−j},   e_t ~ N(0, σ²),

with the state α_t of r = max(p, q + 1) numbers, α_t = T α_{t−1} + R e_t, y_t = μ + α_t1, where T has φ in its
first column and ones above the diagonal and R = (1, θ_1, ..., θ_{r−1}). The first state has the stationary
covariance P = T P Tᵀ + σ² R Rᵀ, a linear system. Each step, with v = y − μ − α_1 and F = P_11,

    log p −= ½ (log 2πF + v²/F),   α ← T (α + P_·1 v/F),   P ← T (P − P_·1 P_1·/F) Tᵀ + σ² R Rᵀ.

Seasonal factors: the polynomials 1 − Σ φ_i Lⁱ and 1 − Σ Φ_i L^{s i} multiplied give φ of a longer model.
Shapes: φ (p,), θ (q,), μ and σ² numbers, y (T,). Sources: Harvey, "Forecasting, Structural Time Series Models
and the Kalman Filter" (1989), sections 3.2, 3.3; Durbin & Koopman (2012), section 3.4.
"""

from __future__ import annotations

import numpy as np

from symad.core.arrays import Array
from symad.core.dims import Dim
from symad.errors import ShapeError
from symad.functions import arange, concatenate, scan, stack
from symad.models.layers.options import refuse_complex


def state_space(phi: Array, theta: Array) -> tuple[Array, ...]:
    """T (r, r) and R (r,)."""
    p, q = phi.shape[0], theta.shape[0]
    r = max(p, q + 1)
    first = concatenate([phi, np.zeros(r - p)])
    R = concatenate([np.ones(1), theta, np.zeros(r - q - 1)])
    return concatenate([first[:, None], np.eye(r)[:, : r - 1]], axis=1), R


def stationary_covariance(T: Array, Q: Array) -> Array:
    """The solution P of P = T P Tᵀ + Q."""
    r = T.shape[0]
    both = np.einsum("ij,kl->ikjl", T, T).reshape(r * r, r * r)
    return np.linalg.solve(np.eye(r * r) - both, Q.reshape(r * r)).reshape(r, r)


def filtered(
    phi: Array, theta: Array, mean: Array | float, variance: Array | float, y: Array
) -> tuple[Array, Array, Array, Array]:
    """Innovations v (T,), their variances F (T,), and the states α (T, r) and P (T, r, r) for the next step.

    Raises:
        ShapeError: y is not a series.
    """
    refuse_complex("arma", phi, theta, mean, variance, y)
    if len(y.shape) != 1 or y.shape[0] == 0:
        raise ShapeError(f"arma: y is a series (T,) with T ≥ 1, not {tuple(y.shape)}")
    for name, values in (("phi", phi), ("theta", theta)):
        if len(values.shape) != 1:
            raise ShapeError(f"arma: {name} has one axis, not the shape {tuple(values.shape)}")
    if isinstance(variance, (int, float)) and not variance > 0:
        raise ShapeError(f"arma: the variance is positive, not {variance}")
    if isinstance(phi, np.ndarray) and phi.dtype.kind == "f":
        size = np.abs(np.linalg.eigvals(state_space(phi, theta)[0])).max()
        if not size < 1:
            raise ShapeError(
                f"arma: phi={phi.tolist()} is not stationary: a root is {1 / size:.6g}, not beyond 1"
            )
    if isinstance(y, np.ndarray) and y.dtype.kind == "f" and not np.isfinite(y).all():
        raise ShapeError(f"arma: y contains {y[~np.isfinite(y)][0]} at {int(np.argmin(np.isfinite(y)))}")
    T, R = state_space(phi, theta)
    Q = variance * R[:, None] * R[None, :]
    start = stationary_covariance(T, Q)

    def step(state: tuple[Array, ...], y_t: Array) -> tuple[Array, ...]:
        alpha, P = state
        v, gain = y_t - mean - alpha[0], P[:, 0] / P[0, 0]
        return T @ (alpha + gain * v), T @ (P - gain[:, None] * P[0, :][None, :]) @ T.T + Q

    alphas, covariances = scan(step, (0.0 * R, start), y)
    before = concatenate([np.zeros(1), alphas[:-1, 0]])
    F = concatenate([start[0, 0][None], covariances[:-1, 0, 0]])
    return y - mean - before, F, alphas, covariances


def log_likelihood(phi: Array, theta: Array, mean: Array | float, variance: Array | float, y: Array) -> Array:
    """log p(y), exact."""
    v, F, _, _ = filtered(phi, theta, mean, variance, y)
    return -(np.log(2 * np.pi * F) + v * v / F).sum() / 2


def forecast(
    phi: Array, theta: Array, mean: Array | float, variance: Array | float, y: Array, steps: Dim
) -> tuple[Array, Array]:
    """Means and variances (steps,) of y_T, ..., given y."""
    T, R = state_space(phi, theta)
    Q = variance * R[:, None] * R[None, :]
    _, _, alphas, covariances = filtered(phi, theta, mean, variance, y)
    first = alphas[-1], covariances[-1]

    def step(state: Array, _: float) -> tuple[Array, ...]:
        return T @ state[0], T @ state[1] @ T.T + Q

    later, spread = scan(step, first, 0.0 * arange(steps))
    means = concatenate([first[0][:1], later[:-1, 0]])
    return mean + means, concatenate([first[1][0, :1], spread[:-1, 0, 0]])


def seasonal(phi: Array, own: Array, period: int, sign: int = -1) -> Array:
    """The coefficients of (1 ∓ Σ φ_i Lⁱ)(1 ∓ Σ Φ_i L^{s i}), in the convention of φ; sign +1 for θ and Θ.

    Raises:
        ShapeError: a period below 1.
    """
    if period < 1:
        raise ShapeError(f"period={period} is not a length of a season, 1 or more")
    p, q = phi.shape[0], own.shape[0]
    made: list[float] = [0.0] * (p + q * period)
    for i in range(p):
        made[i] = made[i] + phi[i]
    for j in range(q):
        place = (j + 1) * period - 1
        made[place] = made[place] + own[j]
        for i in range(p):
            made[place + i + 1] = made[place + i + 1] + sign * phi[i] * own[j]
    return stack([m + 0.0 * (phi[0] if p else own[0]) for m in made])
