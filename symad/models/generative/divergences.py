"""Distances between distributions: Kullback-Leibler, f-divergences, Jensen-Shannon, Wasserstein-1.

For probability vectors p, q (n,):

    KL(p‖q) = Σ p log(p/q),     D_f(p‖q) = Σ q f(p/q),     JS = ½ KL(p‖m) + ½ KL(q‖m), m = (p + q)/2,
    D_f(p‖q) ≥ E_p[T] − E_q[f*(T)] for every T, with equality at T = f'(p/q);
    W₁(p, q) = Σ |F_p − F_q| Δx = ∫₀¹ |F_p⁻¹ − F_q⁻¹| = max { E_p[g] − E_q[g] : g 1-Lipschitz }

on points x of a line.

f and its conjugate f*(t) = sup_u (tu − f(u)) are SymPy expressions in `u` and `t`, the maps from
scores to critics are expressions in `v`. The functions of arrays run on NumPy arrays and in traced
functions alike. Sources: Nowozin, Cseke, Tomioka, "f-GAN" (2016), equations 4-6, tables 1 and 2;
Villani, "Topics in Optimal Transportation" (2003), section 2.2.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import sympy
from numpy.typing import NDArray

from symad import functions
from symad.core.arrays import Array
from symad.derivatives.jacobian import gradient
from symad.errors import ShapeError, SymadError
from symad.models.layers.options import refuse_complex
from symad.tracing import to_sympy, trace

u = sympy.Symbol("u", positive=True)
t = sympy.Symbol("t", real=True)
v = sympy.Symbol("v", real=True)


@dataclass(frozen=True)
class Divergence:
    """A convex function f, its conjugate f*, and a parametrization of all critics of the bound.

    A score v on the real line is mapped into the domain of f* by the increasing function ``output``
    T = g(v); ``penalty`` is f*(g(v)) in a form that neither overflows early nor cancels.
    """

    name: str
    f: sympy.Expr
    conjugate: sympy.Expr
    output: sympy.Expr
    penalty: sympy.Expr
    domain: sympy.Interval = sympy.Reals

    @property
    def slope(self) -> sympy.Expr:
        """f'(u), the critic that makes the variational bound tight at u = p/q."""
        return to_sympy(gradient(self.f, u))


def _below(end: float | sympy.Expr) -> sympy.Interval:
    return sympy.Interval.open(-sympy.oo, end)


_log2 = sympy.log(2)

KL = Divergence("KL", u * sympy.log(u), sympy.exp(t - 1), v, sympy.exp(v - 1))
REVERSE_KL = Divergence("reverse KL", -sympy.log(u), -1 - sympy.log(-t), -sympy.exp(-v), v - 1, _below(0))
PEARSON = Divergence("Pearson", (u - 1) ** 2, t**2 / 4 + t, v, v**2 / 4 + v)
"""The conjugate is that of (u − 1)² on the whole line; for critics above −2 it equals that on u > 0."""
NEYMAN = Divergence(
    "Neyman",
    (1 - u) ** 2 / u,
    2 - 2 * sympy.sqrt(1 - t),
    1 - sympy.exp(-v),
    2 - 2 * sympy.exp(-v / 2),
    _below(1),
)
HELLINGER = Divergence(
    "squared Hellinger",
    (sympy.sqrt(u) - 1) ** 2,
    t / (1 - t),
    1 - sympy.exp(-v),
    sympy.exp(v) - 1,
    _below(1),
)
JEFFREYS = Divergence(
    "Jeffreys",
    (u - 1) * sympy.log(u),
    sympy.LambertW(sympy.exp(1 - t)) + 1 / sympy.LambertW(sympy.exp(1 - t)) + t - 2,
    v + 1 - sympy.exp(-v),
    v + sympy.exp(v) - 1,
)
"""KL(p‖q) + KL(q‖p). Its output is f'(eᵛ), so that training needs no Lambert function."""
JENSEN_SHANNON = Divergence(
    "Jensen-Shannon",
    u * sympy.log(u) - (u + 1) * sympy.log((u + 1) / 2),
    -sympy.log(2 - sympy.exp(t)),
    _log2 - functions.softplus(-v),
    functions.softplus(v) - _log2,
    _below(_log2),
)
"""Twice the Jensen-Shannon divergence."""
GAN = Divergence(
    "GAN",
    u * sympy.log(u) - (u + 1) * sympy.log(u + 1),
    -sympy.log(1 - sympy.exp(t)),
    -functions.softplus(-v),
    functions.softplus(v),
    _below(0),
)
"""Twice Jensen-Shannon minus 2 log 2: the value that the discriminator σ(v) of a GAN estimates."""
TOTAL_VARIATION = Divergence(
    "total variation",
    sympy.Abs(u - 1) / 2,
    t,
    sympy.tanh(v) / 2,
    sympy.tanh(v) / 2,
    sympy.Interval(-sympy.Rational(1, 2), sympy.Rational(1, 2)),
)

DIVERGENCES = (
    KL, REVERSE_KL, PEARSON, NEYMAN, HELLINGER, JEFFREYS, JENSEN_SHANNON, GAN, TOTAL_VARIATION
)  # fmt: skip
"""All divergences of table 1 of Nowozin et al. without a parameter."""


def alpha(a: float | sympy.Expr) -> Divergence:
    """The α-divergence, f = (uᵃ − 1 − a (u − 1))/(a (a − 1)): KL for a → 1, reverse KL for a → 0.

    It is half of Pearson's for a = 2, half of Neyman's for a = −1, twice the squared Hellinger for a = ½.

    Raises:
        SymadError: a is 0 or 1, where it is `REVERSE_KL` or `KL`.
    """
    a = sympy.nsimplify(a)
    if a in (0, 1):
        raise SymadError(f"the α-divergence of {a} is a limit; use {'KL' if a == 1 else 'REVERSE_KL'}")
    end = 1 / (1 - a)
    return Divergence(
        f"α = {a}",
        (u**a - 1 - a * (u - 1)) / (a * (a - 1)),
        ((1 + (a - 1) * t) ** (a / (a - 1)) - 1) / a,
        (sympy.exp((a - 1) * v) - 1) / (a - 1),
        (sympy.exp(a * v) - 1) / a,
        _below(end) if a < 1 else sympy.Interval.open(end, sympy.oo),
    )


def check_probabilities(name: str, p: Array | Sequence[float]) -> NDArray[np.float64]:
    """``p`` as an array of probabilities.

    Raises:
        SymadError: an entry is negative or above 1, or they do not sum to 1.
    """
    refuse_complex(name, p)
    values = np.asarray(p, dtype=np.float64)
    inside = np.all((values >= 0) & (values <= 1))  # false for not a number
    if values.ndim != 1 or not inside or abs(values.sum() - 1) > 1e-9:
        raise SymadError(f"{name} = {values} is not a probability vector: entries in 0..1 with the sum 1")
    return values


def _checked(name: str, p: Array | Sequence[float]) -> Any:
    """A vector of numbers, checked; any other value (traced, a batch) unchanged."""
    if isinstance(p, (list, tuple)) or (isinstance(p, np.ndarray) and p.ndim == 1 and p.dtype != object):
        return check_probabilities(name, p)
    return p


def kl(p: Array, q: Array) -> Array:
    """KL(p‖q) in nats; 0 log 0 = 0."""
    p, q = _checked("p", p), _checked("q", q)
    if np.shape(p) != np.shape(q):
        raise ShapeError(f"KL(p‖q) of p {np.shape(p)} and q {np.shape(q)}: they live on the same points")
    return (functions.xlogy(p, p) - functions.xlogy(p, q)).sum()


def jensen_shannon(p: Array, q: Array) -> Array:
    """Half the sum of the divergences from the mixture, in nats; at most log 2."""
    p, q = _checked("p", p), _checked("q", q)
    middle = (p + q) / 2
    return (kl(p, middle) + kl(q, middle)) / 2


def f_divergence(divergence: Divergence, p: Array, q: Array) -> float:
    """Σ q f(p/q) of probability vectors without zeros."""
    p, q = check_probabilities("p", p), check_probabilities("q", q)
    return float(np.sum(q * np.asarray(trace(divergence.f)(p / q))))


def variational_bound(divergence: Divergence, p: Array, q: Array, critic: Array) -> float:
    """E_p[T] − E_q[f*(T)] for a critic T on the points: at most the divergence."""
    p, q = check_probabilities("p", p), check_probabilities("q", q)
    return float(np.sum(p * critic) - np.sum(q * np.asarray(trace(divergence.conjugate)(critic))))


def best_critic(divergence: Divergence, p: Array, q: Array) -> np.ndarray:
    """T = f'(p/q), at which the bound is the divergence."""
    ratio = np.asarray(p, dtype=np.float64) / np.asarray(q, dtype=np.float64)
    return np.asarray(trace(divergence.slope)(ratio))


def best_discriminator(p: Array, q: Array) -> np.ndarray:
    """D* = p/(p + q), the optimal discriminator for a GAN's objective."""
    p, q = check_probabilities("p", p), check_probabilities("q", q)
    return p / (p + q)


def wasserstein(xs: Array, p: Array, q: Array) -> float:
    """W₁ on a line by the distribution functions: Σ |F_p − F_q| Δx."""
    order = np.argsort(xs)
    points = np.asarray(xs, dtype=np.float64)[order]
    p, q = check_probabilities("p", p)[order], check_probabilities("q", q)[order]
    return float(np.sum(np.abs(np.cumsum(p - q))[:-1] * np.diff(points)))


def wasserstein_quantiles(xs: Array, p: Array, ys: Array, q: Array) -> float:
    """W₁ on a line by optimal transport: ∫₀¹ |F_p⁻¹(s) − F_q⁻¹(s)| ds, which keeps the order of points.

    Args:
        xs: (N,) points with the probabilities p (N,).
        ys: (M,) points with the probabilities q (M,).
        p: probabilities.
        q: probabilities.
    """
    rows, columns = np.argsort(xs), np.argsort(ys)
    levels_p = np.cumsum(check_probabilities("p", p)[rows])
    levels_q = np.cumsum(check_probabilities("q", q)[columns])
    levels = np.sort(np.concatenate([[0.0], levels_p, levels_q]))
    middles = (levels[1:] + levels[:-1]) / 2
    # rounding may leave a middle above the last level
    from_p = np.asarray(xs, dtype=np.float64)[rows][np.searchsorted(levels_p[:-1], middles)]
    from_q = np.asarray(ys, dtype=np.float64)[columns][np.searchsorted(levels_q[:-1], middles)]
    return float(np.sum(np.diff(levels) * np.abs(from_p - from_q)))


def wasserstein_dual(xs: Array, p: Array, q: Array) -> float:
    """W₁ by duality: the best 1-Lipschitz function, a linear program."""
    from scipy.optimize import linprog

    order = np.argsort(xs)
    points = np.asarray(xs, dtype=np.float64)[order]
    weights = (check_probabilities("p", p) - check_probabilities("q", q))[order]
    steps = np.diff(np.eye(len(points)), axis=0)
    gaps = np.diff(points)
    bounds = [(0, 0), *[(None, None)] * (len(points) - 1)]
    found = linprog(
        -weights, A_ub=np.vstack([steps, -steps]), b_ub=np.concatenate([gaps, gaps]), bounds=bounds
    )
    return float(-found.fun)


def discriminator_objective(p: Array, q: Array, d: Array) -> Array:
    """p log D + q log(1 − D), the summand of a GAN's objective; at D* its sum is −log 4 + 2 JS(p, q)."""
    return functions.xlogy(p, d) + functions.xlogy(q, 1 - d)


# ---- Gaussians ------------------------------------------------------------------------------------

mu, sigma = sympy.Symbol("mu", real=True), sympy.Symbol("sigma", positive=True)


def gaussian_kl() -> sympy.Expr:
    """KL(N(μ, σ²)‖N(0, 1)) = ½(μ² + σ² − 1 − ln σ²): the regularizer of a variational autoencoder."""
    return (mu**2 + sigma**2 - 1 - sympy.log(sigma**2)) / 2


def gaussian_kl_by_moments() -> sympy.Expr:
    """The same from the definition E[log N(x; μ, σ²) − log N(x; 0, 1)] with E x = μ, E x² = μ² + σ²."""
    first, second = mu, mu**2 + sigma**2
    own = -((second - 2 * mu * first + mu**2) / sigma**2) / 2 - sympy.log(sigma)
    return own + second / 2


def gaussian_kl_full(
    mean: Array, covariance: Array, other_mean: Array, other_covariance: Array
) -> Array | float:
    """KL(N(m, S)‖N(n, R)) = ½ (tr R⁻¹S + (n − m)ᵀR⁻¹(n − m) − d + log det R − log det S).

    Args:
        mean: m (d,), and n.
        covariance: S (d, d), symmetric and positive definite, and R.
        other_mean: n.
        other_covariance: R.

    Raises:
        ShapeError: the shapes do not fit.
        LinAlgError: a covariance is not positive definite (of arrays).
    """
    shapes = [tuple(v.shape) for v in (mean, covariance, other_mean, other_covariance)]
    size = shapes[0][0] if len(shapes[0]) == 1 else None
    if shapes != [(size,), (size, size)] * 2:
        given = ", ".join(map(str, shapes))
        raise ShapeError(f"Gaussians have means (d,) and covariances (d, d), not {given}")
    own, other = np.linalg.cholesky(covariance), np.linalg.cholesky(other_covariance)
    # With R = L Lᵀ and S = M Mᵀ: tr R⁻¹S = ‖L⁻¹M‖², and the quadratic form is ‖L⁻¹(n − m)‖².
    spread = functions.solve_triangular(other, own, lower=True)
    shift = functions.solve_triangular(other, (other_mean - mean)[:, None], lower=True)
    logs = np.log(np.diagonal(other)).sum() - np.log(np.diagonal(own)).sum()
    return ((spread * spread).sum() + (shift * shift).sum() - size) / 2 + logs
