"""Sampling by inversion: F⁻¹(u) for any continuous distribution function that SymPy can express."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias

import numpy as np
import sympy

import symad
from symad.errors import EvaluationError
from symad.numeric.lowering import lower

Array = np.ndarray


def invert(
    cdf: sympy.Expr,
    x: sympy.Symbol,
    levels: Array | float,
    parameters: Mapping[sympy.Symbol, float] | None = None,
    support: tuple[float, float] = (-np.inf, np.inf),
) -> Array | float:
    """The quantiles F⁻¹(u), by Newton's method with the density F', safeguarded by a bracket.

    Args:
        cdf: F(x), an increasing expression.
        x: its variable.
        levels: u in (0, 1), of any shape; `symad.functions.rand` makes them.
        parameters: the values of the other symbols; they broadcast with the levels.
        support: the interval on which F rises from 0 to 1.

    Raises:
        EvaluationError: a level is outside (0, 1), a symbol has no value, or F does not rise from 0 to 1.
    """
    u = np.asarray(levels, dtype=np.float64)
    if not np.all((u > 0) & (u < 1)):
        wrong = u[~((u > 0) & (u < 1))].flat[0]
        raise EvaluationError(f"levels of a distribution function lie in (0, 1), not {wrong}")
    values = dict(parameters or {})
    missing = sorted(map(str, cdf.free_symbols - {x} - values.keys()))
    if missing:
        raise EvaluationError(f"the distribution function {cdf} needs values for {', '.join(missing)}")
    others = sorted(values, key=str)
    traced = symad.trace(cdf, [x, *others])
    kernel = lower(symad.join(traced, symad.gradient(traced, x)))
    given = [np.asarray(values[k], dtype=np.float64) for k in others]
    u = np.broadcast_to(u, np.broadcast_shapes(u.shape, *[g.shape for g in given]))

    def both(points: Array) -> tuple[Array, Array]:
        with np.errstate(all="ignore"):
            value, slope = kernel(points, *given)
        return np.asarray(value, dtype=np.float64), np.asarray(slope, dtype=np.float64)

    low, high = _bracket(both, u, support, cdf)
    return _newton(both, u, low, high)[()]


ValueAndSlope: TypeAlias = "Callable[[Array], tuple[Array, Array]]"
"""F and F′ at some points."""


def _bracket(
    both: ValueAndSlope, u: Array, support: tuple[float, float], cdf: sympy.Expr
) -> tuple[Array, Array]:
    """Points below and above every quantile, found from ±1 outwards by doubling, within the support."""
    low, high = (np.full(u.shape, end) for end in support)
    for end, sign in ((low, -1.0), (high, 1.0)):
        if np.all(np.isfinite(end)):
            continue
        end[...] = sign
        for _ in range(1100):
            short = sign * (both(end)[0] - u) < 0
            if not short.any():
                break
            with np.errstate(over="ignore"):
                end[short] *= 2
        else:
            raise EvaluationError(
                f"{cdf} does not rise from 0 to 1 on {support}: is it a distribution function?"
            )
    return low, high


def _newton(both: ValueAndSlope, u: Array, low: Array, high: Array) -> Array:
    """The quantiles: Newton steps where these stay in the bracket and halve it, else bisection."""
    x = (low + high) / 2
    for _ in range(200):
        value, slope = both(x)
        low, high = np.where(value <= u, x, low), np.where(value >= u, x, high)
        with np.errstate(all="ignore"):
            new = x - (value - u) / slope
        inside = np.isfinite(new) & (new > low) & (new < high)
        new = np.where(inside, new, (low + high) / 2)
        if np.all(np.abs(new - x) <= 4 * np.finfo(np.float64).eps * np.abs(x)):
            return new
        x = new
    return x
