"""NumPy's statistics on proxies: covariances and correlations, and sums that skip missing values."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import sympy

from symad.core.arrays import Array, ArrayLike, Axis
from symad.errors import ShapeError
from symad.ops.elementwise.selection import compare
from symad.tracing.from_numpy.registry import implements
from symad.tracing.proxies.proxy import Proxy
from symad.tracing.proxies.wrapped import number


@implements(np.cov)
def cov(
    m: ArrayLike,
    y: ArrayLike | None = None,
    rowvar: bool = True,
    bias: bool = False,
    ddof: ArrayLike | None = None,
    fweights: ArrayLike | None = None,
    aweights: ArrayLike | None = None,
) -> Proxy:
    """Σ_t w_t (x_t − mean)(x_t − mean)ᵀ / (count − ddof); rows are variables, columns if not ``rowvar``.

    Observations are repeated ``fweights`` times, and weighted by ``aweights``; the count is that of NumPy.

    Raises:
        ShapeError: more than two axes, or weights of another length.
    """
    rows = _variables(m, rowvar)
    if y is not None:
        rows = np.concatenate([rows, _variables(y, rowvar)], axis=0)
    freedom = (0 if bias else 1) if ddof is None else ddof
    if fweights is None and aweights is None:
        count = rows.shape[1]
        centered = rows - np.mean(rows, axis=1, keepdims=True)
        left = count - freedom
        if isinstance(left, int):
            left = max(left, 0)
        elif freedom not in (0, 1):  # as in np.var
            left = sympy.Max(left, 0)
        return np.squeeze(centered @ centered.T / left)
    times, weights = (_weights(w, rows) for w in (fweights, aweights))
    if np.shape(times) != rows.shape[1:] or np.shape(weights) != rows.shape[1:]:
        raise ShapeError(
            f"np.cov: fweights {np.shape(times)} and aweights {np.shape(weights)} need one number for each "
            f"column of {rows.shape}"
        )
    both = times * weights
    total = np.sum(both)
    centered = rows - (np.sum(rows * both, axis=1, keepdims=True) / total)
    lost = freedom if aweights is None else freedom * np.sum(both * weights) / total
    return np.squeeze((centered * both) @ centered.T / (total - lost))


def _weights(given: ArrayLike | None, rows: Array) -> Any:
    return np.ones(rows.shape[1]) if given is None else Proxy(number(given))


def _variables(m: ArrayLike, rowvar: bool) -> np.ndarray:
    """The variables as rows."""
    data = Proxy(number(m))
    if data.ndim > 2:
        raise ShapeError(f"np.cov takes one or two axes, not {data.ndim}")
    rows = np.atleast_2d(data)
    return rows if rowvar or data.ndim < 2 else rows.T


@implements(np.corrcoef)
def corrcoef(x: ArrayLike, y: ArrayLike | None = None, rowvar: bool = True) -> Proxy:
    """Covariances divided by both standard deviations."""
    c = cov(x, y, rowvar)
    if not c.ndim:
        return c / c
    deviations = np.sqrt(np.diagonal(c))
    return c / deviations[:, None] / deviations


def _present(a: ArrayLike) -> tuple[Any, Any]:
    """The elements with 0 in place of NaN, and the condition that they are not NaN."""
    node = number(a)
    missing = Proxy(compare("!=", node, node))  # NaN differs from itself
    return np.where(missing, 0, Proxy(node)), ~missing


@implements(np.nansum)
def nansum(
    a: ArrayLike, axis: Axis = None, keepdims: bool = False, initial: Any = None, where: Any = True
) -> Proxy:
    """The sum of the elements that are not NaN."""
    values, _ = _present(a)
    return np.sum(values, axis=axis, keepdims=keepdims, initial=initial or 0, where=where)


@implements(np.nanprod)
def nanprod(a: ArrayLike, axis: Axis = None, keepdims: bool = False) -> Proxy:
    """The product of the elements that are not NaN."""
    values, present = _present(a)
    return np.prod(np.where(present, values, 1), axis=axis, keepdims=keepdims)


@implements(np.nanmean)
def nanmean(a: Any, axis: Axis = None, keepdims: bool = False, where: Any = True) -> Proxy:
    """The mean of the elements that are not NaN; NaN where there are none."""
    values, present = _present(a)
    return np.mean(values, axis=axis, keepdims=keepdims, where=np.logical_and(present, where))


def _of_enough(found: Proxy, present: Proxy, axis: Axis, ddof: Any, keepdims: bool) -> Proxy:
    """NaN where there are no more values than ``ddof``; np.var is infinite there."""
    if type(ddof) is int and ddof == 0:
        return found
    enough = np.sum(present, axis=axis, keepdims=keepdims) > ddof
    return Proxy(number(np.where(enough, found, np.nan)))


@implements(np.nanvar)
def nanvar(a: ArrayLike, axis: Axis = None, ddof: Any = 0, keepdims: bool = False) -> Proxy:
    """The variance of the elements that are not NaN; NaN where there are too few."""
    values, present = _present(a)
    found = np.var(values, axis=axis, ddof=ddof, keepdims=keepdims, where=present)
    return _of_enough(found, present, axis, ddof, keepdims)


@implements(np.nanstd)
def nanstd(a: ArrayLike, axis: Axis = None, ddof: Any = 0, keepdims: bool = False) -> Proxy:
    """The standard deviation of the elements that are not NaN; NaN where there are too few."""
    values, present = _present(a)
    found = np.std(values, axis=axis, ddof=ddof, keepdims=keepdims, where=present)
    return _of_enough(found, present, axis, ddof, keepdims)


@implements(np.nanmax)
def nanmax(a: ArrayLike, axis: Axis = None, keepdims: bool = False) -> Proxy:
    """The largest of the elements that are not NaN; NaN where there are none."""
    return _extreme_present(np.max, -np.inf, a, axis, keepdims)


@implements(np.nanmin)
def nanmin(a: ArrayLike, axis: Axis = None, keepdims: bool = False) -> Proxy:
    """The smallest of the elements that are not NaN; NaN where there are none."""
    return _extreme_present(np.min, np.inf, a, axis, keepdims)


def _extreme_present(
    extreme: Callable[..., Any], last: float, a: ArrayLike, axis: Any, keepdims: bool
) -> Any:
    values, present = _present(a)
    found = extreme(np.where(present, values, last), axis=axis, keepdims=keepdims)
    return np.where(np.any(present, axis=axis, keepdims=keepdims), found, np.nan)


@implements(np.nan_to_num)
def nan_to_num(
    x: ArrayLike, nan: float = 0.0, posinf: float | None = None, neginf: float | None = None
) -> Any:
    """Numbers in place of NaN and of infinite elements, by default the largest of double precision."""
    value: Any = Proxy(number(x))
    largest = np.finfo(np.float64).max
    value = np.where(value == np.inf, largest if posinf is None else posinf, value)
    value = np.where(value == -np.inf, -largest if neginf is None else neginf, value)
    return np.where(np.isnan(value), nan, value)
