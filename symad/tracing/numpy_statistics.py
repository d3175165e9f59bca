"""NumPy's statistics on proxies: covariances and correlations, and sums that leave out missing values."""

from __future__ import annotations

from typing import Any

import numpy as np

from symad.errors import ShapeError
from symad.ops.selection import compare
from symad.proxy import Proxy
from symad.tracing.numpy_functions import implements
from symad.wrapped import number


@implements(np.cov)
def cov(m: Any, y: Any = None, rowvar: bool = True, bias: bool = False, ddof: Any = None) -> Any:
    """Σ_t (x_t − mean)(x_t − mean)ᵀ / (count − ddof); each row is a variable, each column if not ``rowvar``.

    Raises:
        ShapeError: more than two axes.
    """
    rows = _variables(m, rowvar)
    if y is not None:
        rows = np.concatenate([rows, _variables(y, rowvar)], axis=0)
    count = rows.shape[1]
    freedom = (0 if bias else 1) if ddof is None else ddof
    centred = rows - np.mean(rows, axis=1, keepdims=True)
    return np.squeeze(centred @ centred.T / (count - freedom))


def _variables(m: Any, rowvar: bool) -> Any:
    """The variables as rows."""
    data: Any = Proxy(number(m))
    if data.ndim > 2:
        raise ShapeError(f"np.cov takes one or two axes, not {data.ndim}")
    rows = np.atleast_2d(data)
    return rows if rowvar or data.ndim < 2 else rows.T


@implements(np.corrcoef)
def corrcoef(x: Any, y: Any = None, rowvar: bool = True) -> Any:
    """Covariances divided by both standard deviations."""
    c = cov(x, y, rowvar)
    if not c.ndim:
        return c / c
    deviations = np.sqrt(np.diagonal(c))
    return c / deviations[:, None] / deviations


def _present(a: Any) -> tuple[Any, Any]:
    """The elements with 0 in place of NaN, and where there was a number."""
    node = number(a)
    missing = Proxy(compare("!=", node, node))  # NaN differs from itself
    return np.where(missing, 0, Proxy(node)), ~missing


@implements(np.nansum)
def nansum(a: Any, axis: Any = None, dtype: Any = None, out: None = None, keepdims: Any = False) -> Any:
    """The sum of the elements that are not NaN."""
    return np.sum(_present(a)[0], axis=axis, keepdims=keepdims)


@implements(np.nanmean)
def nanmean(a: Any, axis: Any = None, dtype: Any = None, out: None = None, keepdims: Any = False) -> Any:
    """The mean of the elements that are not NaN; NaN where there are none."""
    values, present = _present(a)
    return np.sum(values, axis=axis, keepdims=keepdims) / np.sum(present, axis=axis, keepdims=keepdims)
