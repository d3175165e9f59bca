"""scikit-learn: losses, kernels, Gaussian processes, and objectives of models, with their derivatives.

Formulas: the docstrings of `sklearn._loss.loss`; Rasmussen and Williams, "Gaussian Processes for Machine
Learning" (2006), chapters 4 and 5; the user guide's for linear models (HuberRegressor: Owen 2007, "A robust
hybrid of lasso and ridge regression"); Goldberger et al. 2005, "Neighborhood Components Analysis"; van der
Maaten and Hinton 2008, "Visualizing Data using t-SNE", equations 4 and 5.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np
import sympy
from sympy import Abs, Piecewise, Rational, exp, log, pi, sin, sqrt

import symad
from symad import functions
from symad.audits.claims import Claim, group
from symad.core.arrays import Array, ArrayLike

if TYPE_CHECKING:
    import sympy as sp


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


# ---- scikit-learn --------------------------------------------------------------------------------


X = np.array([[-1.0, 0.5], [0.25, -0.75], [0.5, 1.0], [1.5, 0.25], [-0.5, -1.25]])
LABELS = np.array([0, 1, 1, 0, 1])
COUNTS = np.array([0.0, 1.0, 3.0, 2.0, 1.0])
TARGETS = np.array([0.5, -1.0, 2.5, 1.0, -0.25])
PENALTY = 0.25


def _claims(
    name: str,
    formula: Callable[..., ArrayLike],
    size: int,
    methods: dict[str, Callable[..., ArrayLike]],
    where: sp.Basic | None = None,
) -> Iterator[Claim]:
    """Claims about an objective of a vector: a method of the library for each kind."""
    graph = symad.trace(formula, [(size,)])
    options = {} if where is None else {"where": where}
    for kind, method in methods.items():
        suffix = {"value": "loss", "gradient": "gradient", "hessian": "hessian"}[kind]
        yield Claim(f"{name}.{suffix}", kind, graph, method, None, options, source="objective")


def _realistic(w: Array) -> Array:
    """Coefficients of the size that fits have; where a loss is flat, gradient_hessian gives no Hessian."""
    return np.abs(w) < 3


@group("scikit-learn")
def linear_models() -> Iterator[Claim]:
    """Mean loss with an L2 penalty, the objective of LogisticRegression, PoissonRegressor and others."""
    from sklearn._loss import loss as losses
    from sklearn.linear_model._linear_loss import LinearModelLoss

    pointwise: dict[str, tuple[Any, Any, Callable[[Any], Any]]] = {
        "HalfBinomialLoss": (
            losses.HalfBinomialLoss(), LABELS, lambda r: np.log1p(np.exp(r)) - LABELS * r
        ),
        "HalfPoissonLoss": (losses.HalfPoissonLoss(), COUNTS, lambda r: np.exp(r) - COUNTS * r),
        "HalfGammaLoss": (losses.HalfGammaLoss(), COUNTS + 1, lambda r: r + (COUNTS + 1) * np.exp(-r)),
        "HalfSquaredError": (losses.HalfSquaredError(), TARGETS, lambda r: (TARGETS - r) ** 2 / 2),
    }  # fmt: skip
    for name, (loss, observed, terms) in pointwise.items():

        def objective(w: Array, terms: Callable[[Any], Any] = terms) -> Array:
            return np.mean(terms(X @ w[:2] + w[2])) + PENALTY / 2 * np.sum(w[:2] ** 2)

        model, data = LinearModelLoss(loss, fit_intercept=True), (X, observed.astype(float))
        yield from _claims(f"LinearModelLoss({name})", objective, 3, _methods(model, data), _realistic)
    classes = np.array([0.0, 1.0, 2.0, 1.0, 0.0])

    def multinomial(w: Array) -> Array:
        table = w.reshape(3, 3, order="F")  # class by class within a feature, the intercepts last
        scores = X @ table[:, :2].T + table[:, 2]
        chosen = np.sum(np.eye(3)[classes.astype(int)] * scores, axis=1)
        return np.mean(functions.logsumexp(scores, axis=1) - chosen) + PENALTY / 2 * np.sum(table[:, :2] ** 2)

    model = LinearModelLoss(losses.HalfMultinomialLoss(n_classes=3), fit_intercept=True)
    methods = _methods(model, (X, classes))
    yield from _claims("LinearModelLoss(HalfMultinomialLoss)", multinomial, 9, methods, _realistic)


def _methods(model: Any, data: tuple[Array, Array]) -> dict[str, Any]:
    return {
        "value": lambda w: model.loss(w, *data, l2_reg_strength=PENALTY),
        "gradient": lambda w: model.gradient(w, *data, l2_reg_strength=PENALTY),
        "hessian": lambda w: model.gradient_hessian(w, *data, l2_reg_strength=PENALTY)[1],
    }


@group("scikit-learn")
def huber_regression() -> Iterator[Claim]:
    """Σ σ + H((y − Xw − c)/σ) σ + α |w|², with H(z) = z² up to ε, 2ε|z| − ε² beyond."""
    from sklearn.linear_model._huber import _huber_loss_and_gradient as library

    epsilon = 1.35

    def objective(w: Array) -> Array:
        scale = w[3]
        z = (TARGETS - X @ w[:2] - w[2]) / scale
        huber = np.where(np.abs(z) <= epsilon, z**2, 2 * epsilon * np.abs(z) - epsilon**2)
        return np.sum(scale + huber * scale) + PENALTY * np.sum(w[:2] ** 2)

    def call(k: int) -> Callable[..., ArrayLike]:
        return lambda w: library(w, X, TARGETS, epsilon, PENALTY, np.ones(len(X)))[k]

    methods = {"value": call(0), "gradient": call(1)}
    yield from _claims("HuberRegressor", objective, 4, methods, lambda w: w[3] > 0.25)


@group("scikit-learn")
def neighborhood_components() -> Iterator[Claim]:
    """Σ_i Σ_{j of the same class} softmax_j(−|A x_i − A x_j|²), j ≠ i."""
    from sklearn.neighbors import NeighborhoodComponentsAnalysis

    same = (LABELS[:, None] == LABELS[None]).astype(float)
    others = 1 - np.eye(len(X))

    def objective(a: Array) -> Array:
        points = X @ a.reshape(2, 2).T
        gaps = np.sum((points[:, None] - points[None]) ** 2, axis=2)
        weights = np.exp(-gaps) * others
        return np.sum(weights * same / np.sum(weights, axis=1, keepdims=True))

    model = SimpleNamespace(n_iter_=1, verbose=0)

    def call(k: int) -> Callable[..., ArrayLike]:
        return lambda a: NeighborhoodComponentsAnalysis._loss_grad_lbfgs(model, a, X, same)[k]

    methods = {"value": call(0), "gradient": call(1)}
    yield from _claims("NeighborhoodComponentsAnalysis", objective, 4, methods)


@group("scikit-learn")
def embedding() -> Iterator[Claim]:
    """The Kullback–Leibler divergence Σ_ij p_ij log(p_ij/q_ij), q_ij ∝ 1/(1 + |y_i − y_j|²).

    The value that the library returns has q_ij of at least 2⁻⁵²; its gradient is that without this bound.
    """
    from sklearn.manifold._t_sne import _kl_divergence as library

    first, second = np.triu_indices(4, k=1)
    joint = np.array([1.0, 2.0, 4.0, 3.0, 1.0, 5.0])
    joint = joint / (2 * joint.sum())

    def objective(y: Array, least: float = 0.0) -> Array:
        points = y.reshape(4, 2)
        weights = 1 / (1 + np.sum((points[first] - points[second]) ** 2, axis=1))
        shares = weights / (2 * np.sum(weights))
        return 2 * np.sum(joint * np.log(joint / (np.maximum(shares, least) if least else shares)))

    def call(k: int) -> Callable[..., ArrayLike]:
        return lambda y: library(np.asarray(y, dtype=float), joint, 1, 4, 2)[k]

    yield from _claims("TSNE", lambda y: objective(y, 2.0**-52), 8, {"value": call(0)})
    yield from _claims("TSNE", objective, 8, {"gradient": call(1)})
