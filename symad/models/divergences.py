"""Distances between distributions: Kullback-Leibler, f-divergences, Jensen-Shannon, Wasserstein-1.

For probability vectors p, q (n,):

    KL(p‖q) = Σ p log(p/q),     D_f(p‖q) = Σ q f(p/q),     JS = ½ KL(p‖m) + ½ KL(q‖m), m = (p + q)/2,
    D_f(p‖q) ≥ E_p[T] − E_q[f*(T)] for every T, with equality at T = f'(p/q);
    W₁(p, q) = Σ |F_p − F_q| Δx = max { E_p[g] − E_q[g] : g 1-Lipschitz }   on points x of a line.

f and its conjugate f*(t) = sup_u (tu − f(u)) are SymPy expressions in `u` and `t`. The functions of
arrays run on NumPy arrays and in traced functions alike. Sources: Nowozin, Cseke, Tomioka, "f-GAN"
(2016), equations 4-6 and table 1; Villani, "Topics in Optimal Transportation" (2003), section 2.2.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import sympy

import symad
from symad import functions
from symad.errors import SymadError

u = sympy.Symbol("u", positive=True)
t = sympy.Symbol("t", real=True)


@dataclass(frozen=True)
class Divergence:
    """A convex function f with f(1) fixed, and its conjugate f*."""

    name: str
    f: sympy.Expr
    conjugate: sympy.Expr

    @property
    def slope(self) -> sympy.Expr:
        """f'(u), the critic that makes the variational bound tight at u = p/q."""
        return symad.to_sympy(symad.gradient(self.f, u))


KL = Divergence("KL", u * sympy.log(u), sympy.exp(t - 1))
REVERSE_KL = Divergence("reverse KL", -sympy.log(u), -1 - sympy.log(-t))
PEARSON = Divergence("Pearson", (u - 1) ** 2, t**2 / 4 + t)
GAN = Divergence("GAN", u * sympy.log(u) - (u + 1) * sympy.log(u + 1), -sympy.log(1 - sympy.exp(t)))
"""Twice Jensen-Shannon minus 2 log 2: what the discriminator of a GAN estimates."""


def check_probabilities(name: str, p: Any) -> np.ndarray[Any, Any]:
    """``p`` as an array of probabilities.

    Raises:
        SymadError: an entry is negative or above 1, or they do not sum to 1.
    """
    values = np.asarray(p, dtype=np.float64)
    if values.ndim != 1 or np.any(values < 0) or np.any(values > 1) or abs(values.sum() - 1) > 1e-9:
        raise SymadError(f"{name} = {values} is no probability vector: its entries lie in 0..1 and sum to 1")
    return values


def kl(p: Any, q: Any) -> Any:
    """KL(p‖q) in nats; 0 log 0 = 0."""
    return (functions.xlogy(p, p) - functions.xlogy(p, q)).sum()


def jensen_shannon(p: Any, q: Any) -> Any:
    """Half the sum of the divergences from the mixture, in nats; at most log 2."""
    middle = (p + q) / 2
    return (kl(p, middle) + kl(q, middle)) / 2


def f_divergence(divergence: Divergence, p: Any, q: Any) -> float:
    """Σ q f(p/q) of probability vectors without zeros."""
    p, q = check_probabilities("p", p), check_probabilities("q", q)
    return float(np.sum(q * np.asarray(symad.trace(divergence.f)(p / q))))


def variational_bound(divergence: Divergence, p: Any, q: Any, critic: Any) -> float:
    """E_p[T] − E_q[f*(T)] for a critic T on the points: at most the divergence."""
    p, q = check_probabilities("p", p), check_probabilities("q", q)
    return float(np.sum(p * critic) - np.sum(q * np.asarray(symad.trace(divergence.conjugate)(critic))))


def best_critic(divergence: Divergence, p: Any, q: Any) -> np.ndarray[Any, Any]:
    """T = f'(p/q), at which the bound is the divergence."""
    ratio = np.asarray(p, dtype=np.float64) / np.asarray(q, dtype=np.float64)
    return np.asarray(symad.trace(divergence.slope)(ratio))


def best_discriminator(p: Any, q: Any) -> np.ndarray[Any, Any]:
    """D* = p/(p + q), the discriminator that a GAN's objective asks for."""
    p, q = check_probabilities("p", p), check_probabilities("q", q)
    return p / (p + q)


def wasserstein(xs: Any, p: Any, q: Any) -> float:
    """W₁ on a line by the distribution functions: Σ |F_p − F_q| Δx."""
    order = np.argsort(xs)
    points = np.asarray(xs, dtype=np.float64)[order]
    p, q = check_probabilities("p", p)[order], check_probabilities("q", q)[order]
    return float(np.sum(np.abs(np.cumsum(p - q))[:-1] * np.diff(points)))


def wasserstein_dual(xs: Any, p: Any, q: Any) -> float:
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


# ---- Gaussians ------------------------------------------------------------------------------------

mu, sigma = sympy.Symbol("mu", real=True), sympy.Symbol("sigma", positive=True)


def gaussian_kl() -> sympy.Expr:
    """KL(N(μ, σ²)‖N(0, 1)) = ½(μ² + σ² − 1 − ln σ²): the regulariser of a variational autoencoder."""
    return (mu**2 + sigma**2 - 1 - sympy.log(sigma**2)) / 2


def gaussian_kl_by_moments() -> sympy.Expr:
    """The same from the definition E[log N(x; μ, σ²) − log N(x; 0, 1)] with E x = μ, E x² = μ² + σ²."""
    first, second = mu, mu**2 + sigma**2
    own = -((second - 2 * mu * first + mu**2) / sigma**2) / 2 - sympy.log(sigma)
    return own + second / 2
