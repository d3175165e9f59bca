"""scikit-learn: losses, kernels and Gaussian processes, with their gradients and Hessians.

Formulas: the docstrings of `sklearn._loss.loss`; Rasmussen and Williams, "Gaussian Processes for Machine
Learning" (2006), chapters 4 and 5.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import sympy
from sympy import Abs, Piecewise, Rational, exp, log, pi, sin, sqrt

from symad.audits.claims import Claim, group
from symad.core.arrays import Array

r = sympy.Symbol("r", real=True)

LOSSES: dict[str, tuple[float, sympy.Expr]] = {
    "HalfSquaredError": (1.5, (Rational(3, 2) - r) ** 2 / 2),
    "AbsoluteError": (1.5, Abs(Rational(3, 2) - r)),
    "PinballLoss": (1.5, Abs(Rational(3, 2) - r) / 2),
    "HuberLoss": (
        1.5,
        Piecewise(
            ((Rational(3, 2) - r) ** 2 / 2, Abs(Rational(3, 2) - r) <= Rational(1, 2)),
            (Abs(Rational(3, 2) - r) / 2 - Rational(1, 8), True),
        ),
    ),
    "HalfPoissonLoss": (2.0, exp(r) - 2 * r),
    "HalfGammaLoss": (2.0, r + 2 * exp(-r)),
    "HalfTweedieLoss": (2.0, exp(r / 2) * 2 + 4 * exp(-r / 2)),
    "HalfBinomialLoss": (1.0, log(1 + exp(r)) - r),
    "ExponentialLoss": (1.0, exp(-r)),
}
"""The observed value and the loss at the raw prediction r; constants in r are omitted, as in the library."""


@group("scikit-learn")
def losses() -> Iterator[Claim]:
    """The losses of `sklearn._loss`: value, gradient, and Hessian."""
    from sklearn._loss import loss as library

    for name, (observed, formula) in LOSSES.items():
        made = getattr(library, name)()

        def value(raw: float, made: Any = made, y: float = observed) -> float | Array:
            return made.loss(np.array([y]), np.array([float(raw)]))[0]

        def slope(raw: float, made: Any = made, y: float = observed) -> Array:
            return made.gradient(np.array([y]), np.array([float(raw)]))[0]

        def curvature(raw: float, made: Any = made, y: float = observed) -> float | Array:
            return made.gradient_hessian(np.array([y]), np.array([float(raw)]))[1][0]

        yield Claim(f"_loss.{name}.loss", "value", formula, value, r)
        yield Claim(f"_loss.{name}.gradient", "gradient", formula, slope, r)
        if name not in {"AbsoluteError", "PinballLoss", "HuberLoss"}:  # for these boosting uses other numbers
            yield Claim(f"_loss.{name}.gradient_hessian", "hessian", formula, curvature, r)


POINTS = np.array([[0.0, 0.5], [1.0, -0.25], [0.75, 1.5]])

length, scale, alpha, period, offset = sympy.symbols("l_length l_scale l_alpha l_period l_offset", real=True)
"""Logarithms of the hyperparameters, as scikit-learn optimizes them."""


def _squared(x: sympy.Expr, y: sympy.Expr) -> sympy.Expr:
    return sympy.Add(*[sympy.Rational(float(u - v)) ** 2 for u, v in zip(x, y, strict=True)])


def _matern(nu: str) -> Callable[[sympy.Expr, sympy.Expr], sympy.Expr]:
    def kernel(squared: sympy.Expr, inner: sympy.Expr) -> sympy.Expr:
        d = sqrt(squared) / exp(length)
        return {
            "1/2": exp(-d),
            "3/2": (1 + sqrt(3) * d) * exp(-sqrt(3) * d),
            "5/2": (1 + sqrt(5) * d + 5 * d**2 / 3) * exp(-sqrt(5) * d),
        }[nu]

    return kernel


def _kernels() -> dict[str, tuple[Any, Callable[[sympy.Expr, sympy.Expr], sympy.Expr], list[sympy.Symbol]]]:
    """scikit-learn's kernel, ours as a function of |x − y|² and ⟨x, y⟩, and the order of its parameters."""
    from sklearn.gaussian_process import kernels as library

    def rbf(squared: sympy.Expr, inner: sympy.Expr) -> sympy.Expr:
        return exp(-squared / (2 * exp(2 * length)))

    def quadratic(squared: sympy.Expr, inner: sympy.Expr) -> sympy.Expr:
        return (1 + squared / (2 * exp(alpha) * exp(2 * length))) ** (-exp(alpha))

    def periodic(squared: sympy.Expr, inner: sympy.Expr) -> sympy.Expr:
        return exp(-2 * sin(pi * sqrt(squared) / exp(period)) ** 2 / exp(2 * length))

    def dot(squared: sympy.Expr, inner: sympy.Expr) -> sympy.Expr:
        return inner + exp(2 * offset)

    constant = library.ConstantKernel
    return {
        "RBF": (library.RBF(), rbf, [length]),
        "Matern(1/2)": (library.Matern(nu=0.5), _matern("1/2"), [length]),
        "Matern(3/2)": (library.Matern(nu=1.5), _matern("3/2"), [length]),
        "Matern(5/2)": (library.Matern(nu=2.5), _matern("5/2"), [length]),
        "RationalQuadratic": (library.RationalQuadratic(), quadratic, [alpha, length]),
        "ExpSineSquared": (library.ExpSineSquared(), periodic, [length, period]),
        "DotProduct": (library.DotProduct(), dot, [offset]),
        "ConstantKernel": (constant(), lambda s, i: exp(scale), [scale]),
        "ConstantKernel*RBF": (
            constant() * library.RBF(), lambda s, i: exp(scale) * rbf(s, i), [scale, length],
        ),
        "ConstantKernel+DotProduct": (
            constant() + library.DotProduct(), lambda s, i: exp(scale) + dot(s, i), [scale, offset],
        ),
        "RBF**2": (library.RBF() ** 2, lambda s, i: rbf(s, i) ** 2, [length]),
    }  # fmt: skip


def _gram(kernel: Callable[[sympy.Expr, sympy.Expr], sympy.Expr]) -> sympy.Matrix:
    def inner(x: sympy.Expr, y: sympy.Expr) -> sympy.Expr:
        return sympy.Add(*[sympy.Rational(float(u * v)) for u, v in zip(x, y, strict=True)])

    return sympy.Matrix([[kernel(_squared(x, y), inner(x, y)) for y in POINTS] for x in POINTS])


@group("scikit-learn")
def kernels() -> Iterator[Claim]:
    """Kernel matrices by the logarithms of their parameters: K, and ∂K/∂θ as ``eval_gradient`` returns it."""
    for name, (kernel, formula, order) in _kernels().items():
        gram = _gram(formula)

        def value(*theta: float, kernel: Any = kernel) -> float | Array:
            return kernel.clone_with_theta(np.array(theta, dtype=float))(POINTS)

        def slope(*theta: float, kernel: Any = kernel) -> Array:
            made = kernel.clone_with_theta(np.array(theta, dtype=float))
            return made(POINTS, eval_gradient=True)[1].reshape(-1, len(theta))

        yield Claim(f"kernels.{name}", "value", gram, value, order, {"inputs": order})
        yield Claim(f"kernels.{name}.eval_gradient", "jacobian", gram, slope, order, {"inputs": order})


@group("scikit-learn")
def likelihoods() -> Iterator[Claim]:
    """The log marginal likelihood of a Gaussian process with an RBF kernel, and its gradient."""
    from sklearn.gaussian_process import GaussianProcessRegressor
    from sklearn.gaussian_process.kernels import RBF, ConstantKernel

    targets = np.array([0.5, -1.0, 0.25])
    model = GaussianProcessRegressor(ConstantKernel() * RBF(), alpha=0.25, optimizer=None)
    model.fit(POINTS, targets)
    gram = _gram(lambda s, i: exp(scale) * exp(-s / (2 * exp(2 * length)))) + sympy.eye(3) / 4
    y = sympy.Matrix([sympy.Rational(t) for t in targets])
    formula = -(y.T * gram.inv(method="ADJ") * y)[0] / 2 - log(gram.det()) / 2 - Rational(3, 2) * log(2 * pi)

    def value(*theta: float) -> float | Array:
        return model.log_marginal_likelihood(np.array(theta, dtype=float))

    def slope(*theta: float) -> tuple[float, ...]:
        return tuple(model.log_marginal_likelihood(np.array(theta, dtype=float), eval_gradient=True)[1])

    order, name = [scale, length], "GaussianProcessRegressor.log_marginal_likelihood"
    options = {"inputs": order}
    yield Claim(name, "value", formula, value, order, options, source="likelihood")
    yield Claim(f"{name}(eval_gradient)", "gradient", formula, slope, order, options, source="likelihood")
