"""scikit-learn: objectives of linear models, neighborhood components and t-SNE, with their gradients.

Formulas: the user guide's for linear models (HuberRegressor: Owen 2007, "A robust hybrid of lasso and ridge
regression"); Goldberger et al. 2005, "Neighborhood Components Analysis"; van der Maaten and Hinton 2008,
"Visualizing Data using t-SNE", equations 4 and 5.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np

import symad
from symad import functions
from symad.audits.claims import Claim, group
from symad.core.arrays import Array, ArrayLike

if TYPE_CHECKING:
    import sympy as sp

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
