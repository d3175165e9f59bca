"""Logistic regression by Newton's method, with the Hessian computed in all four modes.

Data: scikit-learn's breast-cancer table, 569 tumours, 30 standardized measurements. The coefficients
are compared with scikit-learn's own fit under the same penalty.
Run: python examples/first_steps/03_logistic_regression.py
"""

import time

import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.linear_model import LogisticRegression

import symad
from symad.derivatives.hessian import MODES
from symad.models.layers import regression as model
from symad.numeric import lower


def main() -> None:
    """Fit and compare."""
    table = load_breast_cancer()
    data = (table.data - table.data.mean(axis=0)) / table.data.std(axis=0)
    labels = 2.0 * table.target - 1.0
    penalty = 0.5 / len(labels)  # scikit-learn's C = 1

    loss = symad.trace(model.logistic_loss(), [model.w, model.b, model.X, model.y, model.penalty])
    wrt = [model.w, model.b]
    slope = lower(symad.value_and_gradient(loss, wrt))
    hessians = {mode: lower(symad.hessian(loss, wrt, mode=mode)) for mode in MODES}

    w, b = np.zeros(data.shape[1]), 0.0
    for step in range(20):
        value, g_w, g_b = slope(w, b, data, labels, penalty)
        g = np.append(g_w, g_b)
        print(f"step {step:2d}: loss {value:.12f}, largest slope {np.abs(g).max():.1e}")
        if np.abs(g).max() < 1e-14:
            break
        h = hessians["forward-over-reverse"](w, b, data, labels, penalty)
        move = np.linalg.solve(h, -g)
        w, b = w + move[:-1], b + move[-1]

    for mode, kernel in hessians.items():
        start = time.perf_counter()
        difference = np.abs(kernel(w, b, data, labels, penalty) - h).max()
        print(f"{mode:22}: {1e3 * (time.perf_counter() - start):7.2f} ms, differs by {difference:.1e}")

    theirs = LogisticRegression(C=1.0, tol=1e-10, max_iter=10_000, solver="newton-cholesky").fit(
        data, table.target
    )
    print(f"coefficients differ from scikit-learn's by {np.abs(theirs.coef_[0] - w).max():.1e}")
    accuracy = np.mean(np.sign(data @ w + b) == labels)
    print(f"accuracy on the data: {accuracy:.4f}")
    print(lower(symad.gradient(loss, wrt)).source)


if __name__ == "__main__":
    main()
