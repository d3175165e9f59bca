"""A stage of data that stay the same: least squares whose Gram matrix is formed once."""

from __future__ import annotations

from typing import Any

import numpy as np

import symad
from symad.cli.tour.stage import Finding, Made, TourModel, stage
from symad.cli.tour.stages.compiled import best
from symad.core.arrays import Array

ROWS, COLUMNS = 20_000, 60


def squares(rows: int, columns: int) -> symad.Graph:
    """Half the mean of (X w − y)²."""

    def loss(w: Array, X: Array, y: Array) -> Any:
        return 0.5 * np.mean((X @ w - y) ** 2)

    return symad.trace(loss, inputs=[(columns,), (rows, columns), (rows,)])


@stage("given data", "least squares on data that stay the same: a step no longer reads them")
def given_data() -> TourModel:
    """Three rows, two weights."""
    X, y = np.array([[1.0, 2.0], [0.0, 1.0], [3.0, -1.0]]), np.array([1.0, 0.0, 2.0])
    return TourModel(squares(3, 2), point=(np.array([0.5, -1.0]), X, y), wrt=["w"], use=fitted)


def fitted(made: Made) -> list[Finding]:
    """Conjugate gradients on held data, against numpy.linalg.lstsq."""
    from symad.numeric import given, lower

    rng = np.random.default_rng(4)
    X, truth = rng.normal(size=(ROWS, COLUMNS)), rng.normal(size=COLUMNS)
    y = X @ truth + 0.1 * rng.normal(size=ROWS)
    gradient = symad.gradient(squares(ROWS, COLUMNS), wrt=["w"])
    reading, held = lower(gradient), given(gradient, {"X": X, "y": y})
    w = np.zeros(COLUMNS)
    (start,) = held(w)
    residual = direction = -start
    for _ in range(COLUMNS):
        curved = held(direction)[0] - start
        step = (residual @ residual) / (direction @ curved)
        w, new = w + step * direction, residual - step * curved
        direction, residual = new + (new @ new) / (residual @ residual) * direction, new
    exact = np.linalg.lstsq(X, y, rcond=None)[0]
    apart = float(np.abs(w - exact).max())
    one, other = held(truth / 2)[0], reading(truth / 2, X, y)[0]
    same = float(np.abs(one - other).max() / np.abs(other).max())
    with_data, without = best(reading, [w, X, y]), best(held, [w])
    return [
        Finding(f"{COLUMNS} steps of conjugate gradients end {apart:.1e} from least squares", apart < 1e-8),
        Finding(
            f"a gradient takes {1e6 * without:.0f} us, {1e3 * with_data:.2f} ms where it reads {ROWS} rows; "
            f"the two differ by {same:.1e} relative",
            same < 1e-11,
        ),
    ]
