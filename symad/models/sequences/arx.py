"""Autoregression with selected lags and exogenous inputs, its forecasts, and free-running nonlinear models.

    y_t = c + Σ_{l ∈ lags} w_l y_{t−l} + Σ_j v_j u_tj + e_t,   e_t ~ N(0, σ²),

with lags such as (1, 2, 12) for a season of 12. Least squares is the likelihood given the first max(lags)
numbers; σ² is the mean of the squared residuals. Forecasts feed themselves back: with ψ_0 = 1 and
ψ_j = Σ_l w_l ψ_{j−l} the forecast of h steps has the variance σ² Σ_{j<h} ψ_j². Shapes: y (T,), u (T, k)
beside y, w (number of lags,), v (k,). A nonlinear model is any function of the window of the last numbers
and u_t.

Sources: Hamilton, "Time Series Analysis" (1994), sections 4.2, 5.2; Ljung, "System Identification" (1999),
section 4.2.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from symad.core.arrays import Array
from symad.errors import ShapeError
from symad.functions import arange, concatenate, scan
from symad.models.layers.options import model, refuse_complex
from symad.models.layers.parameters import Shapes


@model
class ARX:
    """A model with these lags, k exogenous inputs, and optionally a constant.

    Raises:
        ShapeError: the lags are not positive, different and ascending.
    """

    lags: tuple[int, ...]
    inputs: int = 0
    constant: bool = True

    def __post_init__(self) -> None:
        whole = all(isinstance(lag, int) for lag in self.lags)
        if not self.lags or not whole or self.lags[0] < 1 or list(self.lags) != sorted(set(self.lags)):
            raise ShapeError(f"lags={self.lags} are not positive integers, different and growing")

    @property
    def shapes(self) -> Shapes:
        """w, (v,) (c)."""
        found: Shapes = {"w": (len(self.lags),)}
        found |= {"v": (self.inputs,)} if self.inputs else {}
        return found | ({"c": ()} if self.constant else {})

    def check(self, y: Array, u: Array | None) -> None:
        """Refuse series that are too short and inputs of other shapes.

        Raises:
            ShapeError: the message names the shapes.
        """
        refuse_complex("ARX", y, u)
        if len(y.shape) != 1 or y.shape[0] <= self.lags[-1]:
            raise ShapeError(f"lags up to {self.lags[-1]} need a longer series (T,) than {tuple(y.shape)}")
        wanted = (y.shape[0], self.inputs) if self.inputs else None
        given = None if u is None else tuple(u.shape)
        if given != wanted:
            raise ShapeError(f"the model has {self.inputs} inputs: u has the shape {wanted}, not {given}")

    def predictions(self, p: Mapping[str, Array], y: Array, u: Any = None) -> Array:
        """ŷ_t for t = max(lags)..T − 1, each from the numbers before it."""
        self.check(y, u)
        first, count = self.lags[-1], y.shape[0]
        predicted = sum(p["w"][k] * y[first - lag : count - lag] for k, lag in enumerate(self.lags))
        predicted = predicted + u[first:] @ p["v"] if self.inputs else predicted
        return predicted + p["c"] if self.constant else predicted

    def loss(self, p: Mapping[str, Array], y: Array, u: Array | None = None) -> Array:
        """The mean squared error of prediction."""
        return np.mean((y[self.lags[-1] :] - self.predictions(p, y, u)) ** 2)

    def fit(self, y: Array, u: Array | None = None) -> tuple[dict[str, Array], float]:
        """The parameters of least squares and σ².

        Raises:
            ShapeError: the shapes do not fit, numbers are not finite, or the columns are dependent.
        """
        refuse_complex("ARX.fit", y, u)
        y = np.asarray(y, dtype=np.float64)
        u = None if u is None else np.asarray(u, dtype=np.float64)
        self.check(y, u)
        if not np.isfinite(y).all() or (u is not None and not np.isfinite(u).all()):
            raise ShapeError("fit: the series or its inputs contain numbers that are not finite")
        first = self.lags[-1]
        columns = [y[first - lag : len(y) - lag] for lag in self.lags]
        columns += list(u[first:].T) if u is not None else []
        columns += [np.ones(len(y) - first)] if self.constant else []
        design = np.column_stack(columns)
        found, _, rank, _ = np.linalg.lstsq(design, y[first:], rcond=None)
        if rank < design.shape[1]:
            raise ShapeError(
                f"fit: {design.shape[1]} lags and inputs have the rank {rank}; drop those that others "
                "determine"
            )
        p: dict[str, Array] = {"w": found[: len(self.lags)]}
        if self.inputs:
            p["v"] = found[len(self.lags) : len(self.lags) + self.inputs]
        if self.constant:
            p["c"] = found[-1]
        return p, float(np.mean((y[first:] - design @ found) ** 2))

    def forecast(self, p: Mapping[str, Array], y: Array, steps: int, u: Array | None = None) -> Array:
        """ŷ_T, ..., ŷ_{T + steps − 1}, fed back; ``u`` (steps, k) are the inputs of these steps."""
        if isinstance(steps, int) and steps < 1:
            raise ShapeError(f"forecast: steps={steps} is not a number of steps, 1 or more")
        if self.inputs and (u is None or tuple(u.shape) != (steps, self.inputs)):
            given = None if u is None else tuple(u.shape)
            raise ShapeError(f"forecast: u has the shape {(steps, self.inputs)}, not {given}")
        driven = u @ p["v"] if self.inputs else 0.0 * arange(steps)

        def step(window: Array, drive: Array) -> Array:
            predicted = drive + sum(p["w"][k] * window[-lag] for k, lag in enumerate(self.lags))
            return predicted + p["c"] if self.constant else predicted

        return free_running(step, y[y.shape[0] - self.lags[-1] :], driven)

    def deviations(self, p: Mapping[str, Array], variance: Array | float, steps: int) -> Array:
        """The standard deviations of the errors of 1, ..., ``steps`` steps."""
        if isinstance(variance, (int, float)) and not variance >= 0:
            raise ShapeError(f"deviations: variance={variance} is not at least 0")
        psi = [1.0]
        for j in range(1, steps):
            psi.append(sum(p["w"][k] * psi[j - lag] for k, lag in enumerate(self.lags) if lag <= j))
        return np.sqrt(variance * np.cumsum(np.stack([x * x for x in psi])))

    def intervals(
        self,
        p: Mapping[str, Array],
        variance: Array | float,
        y: Array,
        steps: int,
        u: Array | None = None,
        level: float = 0.95,
    ) -> tuple[Array, Array]:
        """Lower and upper ends of the forecasts' intervals of this probability.

        Raises:
            ShapeError: the level is not in (0, 1), or the shapes do not fit.
        """
        from scipy.special import ndtri

        if not 0 < level < 1:
            raise ShapeError(f"level={level} is not a probability in (0, 1)")
        middle, spread = self.forecast(p, y, steps, u), self.deviations(p, variance, steps)
        half = float(ndtri((1 + level) / 2)) * spread
        return middle - half, middle + half


def free_running(step: Callable[[Array, Array], Array], window: Array, inputs: Array) -> Array:
    """The outputs of a model that receives its own outputs as inputs: (steps,).

    Args:
        step: from the window of the last s numbers, oldest first, and one step's input to the next number.
        window: (s,), the numbers before the first step.
        inputs: (steps, ...).
    """

    def advance(past: Array, x: Array) -> Array:
        return concatenate([past[1:], step(past, x)[None]])

    return scan(advance, window, inputs)[:, -1]
