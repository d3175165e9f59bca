"""Diagnostics of Markov chains: autocovariance, effective sample size, split-R̂.

Source: Gelman et al., "Bayesian Data Analysis" (third edition, 2013), sections 11.4 and 11.5; Geyer,
"Practical Markov chain Monte Carlo" (1992), section 3.3 for the truncation of the sum of correlations.
"""

from __future__ import annotations

import numpy as np

from symad.errors import EvaluationError

Array = np.ndarray


def _checked(draws: Array) -> Array:
    values = np.asarray(draws, dtype=np.float64)
    if values.ndim != 2 or values.shape[1] < 4:
        raise EvaluationError(f"draws have the shape (chains, at least 4), not {values.shape}")
    if not np.all(np.isfinite(values)):
        raise EvaluationError("the draws hold values that are not finite")
    if np.ptp(values) == 0:
        raise EvaluationError("all draws are equal: the chains never moved; lower the step")
    return values


def autocovariance(chain: Array) -> Array:
    """γ_t = (1/n) Σ_i (x_i − x̄)(x_{i+t} − x̄), t = 0 … n − 1, by Fourier transforms; chain (..., n)."""
    values = np.asarray(chain, dtype=np.float64)
    n = values.shape[-1]
    centered = values - values.mean(axis=-1, keepdims=True)
    transform = np.fft.rfft(centered, 2 * n)
    return np.fft.irfft(np.abs(transform) ** 2, 2 * n)[..., :n] / n


def _variances(values: Array) -> tuple[float, float]:
    """W, the mean variance within chains, and var⁺ = (n − 1)/n W + B/n (equation 11.3)."""
    n = values.shape[1]
    within = float(values.var(axis=1, ddof=1).mean())
    between = float(values.mean(axis=1).var(ddof=1)) if len(values) > 1 else 0.0
    return within, (n - 1) / n * within + between


def split_r_hat(draws: Array) -> float:
    """R̂ = √(var⁺/W) of the halves of all chains (equation 11.4); it is near 1 once the chains have mixed.

    Args:
        draws: (chains, count), the draws of one number.

    Raises:
        EvaluationError: too few draws, or they are constant.
    """
    values = _checked(draws)
    half = values.shape[1] // 2
    within, total = _variances(np.concatenate([values[:, :half], values[:, -half:]]))
    return float(np.sqrt(total / within)) if within > 0 else np.inf


def effective_sample_size(draws: Array) -> float:
    """m n / (1 + 2 Σ ρ_t): the number of independent draws with the same standard error (equation 11.8).

    ρ_t = 1 − (W − mean γ_t)/var⁺. The sums of neighbors ρ_2k + ρ_2k+1 are added while they are positive, and
    are made non-increasing (Geyer's initial monotone sequence).
    """
    values = _checked(draws)
    chains, n = values.shape
    within, total = _variances(values)
    covariance = autocovariance(values).mean(axis=0) * n / (n - 1)
    rho = 1 - (within - covariance) / total
    rho[0] = 1.0
    pairs = rho[: n // 2 * 2].reshape(-1, 2).sum(axis=1)
    negative = np.flatnonzero(pairs <= 0)
    kept = np.minimum.accumulate(pairs[: negative[0] if len(negative) else len(pairs)])
    return float(chains * n / max(2 * kept.sum() - 1, 1 / np.log10(chains * n)))


def standard_error(draws: Array) -> float:
    """The standard error of the mean of dependent draws: sd/√(effective sample size)."""
    values = _checked(draws)
    return float(values.std(ddof=1) / np.sqrt(effective_sample_size(values)))
