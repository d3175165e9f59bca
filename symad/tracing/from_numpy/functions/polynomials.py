"""NumPy's functions of polynomials on proxies: coefficients begin with the highest power."""

from __future__ import annotations

from typing import Any

import numpy as np

from symad.core.arrays import Array, ArrayLike
from symad.core.dims import format_shape
from symad.errors import ShapeError, TraceError
from symad.tracing.from_numpy.registry import implements
from symad.tracing.proxies.proxy import Proxy
from symad.tracing.proxies.wrapped import number


def _coefficients(p: ArrayLike, what: str) -> Any:
    """The coefficients, as a vector.

    Raises:
        ShapeError: more than one axis, none, or a length that is a symbol.
    """
    found: Any = np.atleast_1d(Proxy(number(p)))
    if found.ndim != 1 or not isinstance(found.shape[0], int) or not found.shape[0]:
        shape = format_shape(found.shape)
        raise ShapeError(f"{what} needs a vector of coefficients of known length, not shape {shape}")
    return found


@implements(np.polyadd)
def polyadd(a1: ArrayLike, a2: ArrayLike) -> Any:
    """The sum of two polynomials."""
    first, second = (_coefficients(a, "np.polyadd") for a in (a1, a2))
    longest = max(len(first), len(second))
    return sum(np.pad(a, (longest - len(a), 0)) for a in (first, second))


@implements(np.polysub)
def polysub(a1: ArrayLike, a2: ArrayLike) -> Proxy:
    """The difference of two polynomials."""
    return polyadd(a1, -_coefficients(a2, "np.polysub"))


@implements(np.polymul)
def polymul(a1: ArrayLike, a2: ArrayLike) -> Array:
    """The product of two polynomials; leading zeros are kept."""
    return np.convolve(_coefficients(a1, "np.polymul"), _coefficients(a2, "np.polymul"))


@implements(np.polyder)
def polyder(p: ArrayLike, m: int = 1) -> Proxy:
    """The m-th derivative by the variable."""
    found = _coefficients(p, "np.polyder")
    for _ in range(m):
        found = found[:-1] * np.arange(len(found) - 1, 0, -1) if len(found) > 1 else 0 * found
    return found


@implements(np.polyint)
def polyint(p: ArrayLike, m: int = 1, k: ArrayLike | None = None) -> Proxy:
    """The m-th integral; k: the constants of integration, 0 by default."""
    found = _coefficients(p, "np.polyint")
    constants = np.zeros(m) if k is None else np.broadcast_to(Proxy(number(k)), (m,))
    for step in range(m):
        found = np.append(found / np.arange(len(found), 0, -1), constants[step])
    return found


@implements(np.polyfit)
def polyfit(x: ArrayLike, y: ArrayLike, deg: int, w: ArrayLike | None = None) -> Proxy:
    """The polynomial of least squares, by the normal equations in x scaled to its largest |x|.

    Raises:
        TraceError: traced points x.
    """
    if isinstance(x, Proxy):
        raise TraceError("np.polyfit of traced values needs known places x; only y may be traced")
    places = np.asarray(x, dtype=float)
    scale = float(np.max(np.abs(places), initial=0.0)) or 1.0
    weights = np.ones(len(places)) if w is None else np.asarray(w, dtype=float)
    columns = np.vander(places / scale, deg + 1) * weights[:, None]
    values = Proxy(number(y))
    fit = np.linalg.pinv(columns) * weights / (scale ** np.arange(deg, -1, -1))[:, None]
    return fit @ values


@implements(np.poly)
def poly(seq_of_zeros: ArrayLike) -> Proxy:
    """The polynomial with these zeros."""
    zeros = _coefficients(seq_of_zeros, "np.poly")
    found: Any = np.ones(1)
    for k in range(len(zeros)):
        found = np.append(found, 0.0) - np.append(0.0, zeros[k] * found)
    return found
