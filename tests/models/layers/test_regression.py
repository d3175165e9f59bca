"""Linear and logistic regression: losses against NumPy, fits against scikit-learn."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer
from sklearn.linear_model import LinearRegression, LogisticRegression

import symad
from symad.derivatives.hessian import MODES
from symad.models.layers import regression as model
from symad.numeric import lower

INPUTS = [model.w, model.b, model.X, model.y, model.penalty]
WRT = [model.w, model.b]


def data(count: int) -> tuple[np.ndarray, np.ndarray]:
    table = load_breast_cancer()
    columns = (table.data - table.data.mean(axis=0)) / table.data.std(axis=0)
    return columns[:count, :6], 2.0 * table.target[:count] - 1.0


def test_losses_are_what_they_say() -> None:
    xs, y = data(40)
    w, b = np.linspace(-1, 1, 6), 0.3
    z = xs @ w + b
    logistic = symad.trace(model.logistic_loss(), INPUTS)(w, b, xs, y, 0.1)
    assert logistic == pytest.approx(np.mean(np.logaddexp(0, -y * z)) + 0.1 * w @ w, rel=1e-13)
    squares = symad.trace(model.least_squares_loss(), INPUTS)(w, b, xs, y, 0.1)
    assert squares == pytest.approx(np.mean((z - y) ** 2) + 0.1 * w @ w, rel=1e-13)


def test_losses_against_torch() -> None:
    torch = pytest.importorskip("torch")
    xs, y = data(30)
    values = np.linspace(-1, 1, 6), np.array(0.3), xs, y, np.array(0.1)
    for expression, kind in ((model.logistic_loss(), "logistic"), (model.least_squares_loss(), "squares")):
        leaves = [torch.tensor(v, requires_grad=True) for v in values]
        w, b, X, targets, penalty = leaves
        z = X @ w + b
        fit = torch.nn.functional.softplus(-targets * z) if kind == "logistic" else (z - targets) ** 2
        loss = fit.mean() + penalty * (w**2).sum()
        loss.backward()
        graph = symad.value_and_gradient(symad.trace(expression, INPUTS))
        for found in (graph(*values), lower(graph)(*values)):
            assert found[0] == pytest.approx(loss.item(), rel=1e-10)
            for one, leaf in zip(found[1:], leaves, strict=True):
                np.testing.assert_allclose(one, leaf.grad.numpy(), rtol=1e-10, atol=1e-13)


@pytest.mark.parametrize("mode", MODES)
def test_newton_reaches_scikit_learns_fit(mode: str) -> None:
    xs, y = data(569)
    penalty = 0.5 / len(y)
    loss = symad.trace(model.logistic_loss(), INPUTS)
    gradient, hessian = lower(symad.gradient(loss, WRT)), lower(symad.hessian(loss, WRT, mode=mode))
    w, b = np.zeros(6), 0.0
    for _ in range(15):
        slope = np.append(*gradient(w, b, xs, y, penalty))
        move = np.linalg.solve(hessian(w, b, xs, y, penalty), -slope)
        w, b = w + move[:-1], b + move[-1]
    theirs = LogisticRegression(C=1.0, tol=1e-12, solver="newton-cholesky", max_iter=1000).fit(xs, y)
    assert np.allclose(w, theirs.coef_[0], rtol=1e-10)
    assert b == pytest.approx(theirs.intercept_[0], rel=1e-10)


def test_hessian_of_the_logistic_loss_is_the_known_formula() -> None:
    xs, y = data(60)
    w, b = np.linspace(-1, 1, 6), 0.3
    loss = symad.trace(model.logistic_loss(), INPUTS)
    ours = lower(symad.hessian(loss, WRT))(w, b, xs, y, 0.1)
    design = np.column_stack([xs, np.ones(len(y))])
    p = 1 / (1 + np.exp(-(xs @ w + b)))
    expected = (design.T * (p * (1 - p))) @ design / len(y) + 0.2 * np.diag([1.0] * 6 + [0.0])
    assert np.allclose(ours, expected, rtol=1e-12, atol=1e-14)


def test_one_newton_step_solves_least_squares() -> None:
    xs, y = data(80)
    loss = symad.trace(model.least_squares_loss(), INPUTS)
    zero = np.zeros(6)
    slope = np.append(*symad.gradient(loss, WRT)(zero, 0.0, xs, y, 0.0))
    step = np.linalg.solve(symad.hessian(loss, WRT)(zero, 0.0, xs, y, 0.0), -slope)
    theirs = LinearRegression().fit(xs, y)
    assert np.allclose(step, np.append(theirs.coef_, theirs.intercept_), rtol=1e-10)
