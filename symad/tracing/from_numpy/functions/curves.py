"""NumPy's functions of sampled curves and of polynomials on proxies.

Curves have differences, integrals, convolutions and interpolation; coefficients begin with the highest power.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import sympy

from symad.core.arrays import Array, ArrayLike, Axis
from symad.core.dims import as_dim, format_shape
from symad.errors import ShapeError, TraceError
from symad.ops.basic.sources import constant
from symad.ops.elementwise.apply import apply
from symad.tracing.from_numpy.functions.reductions import diff
from symad.tracing.from_numpy.registry import implements, normal_axes
from symad.tracing.proxies.proxy import Proxy
from symad.tracing.proxies.wrapped import number


def _array(a: ArrayLike) -> Any:
    """A value as a proxy, with NumPy's operators and functions."""
    return Proxy(number(a))


def _vector(a: ArrayLike, what: str) -> tuple[Any, int]:
    """A vector and its length.

    Raises:
        ShapeError: it is not a vector, it is empty, or its length is a symbol.
    """
    found = _array(a)
    if found.ndim != 1 or not isinstance(found.shape[0], int) or not found.shape[0]:
        raise ShapeError(f"{what} needs a vector of known length, not shape {format_shape(found.shape)}")
    return found, found.shape[0]


# ---- differences and integrals ------------------------------------------------------------------


@implements(np.ediff1d)
def ediff1d(ary: ArrayLike, to_end: ArrayLike | None = None, to_begin: Array | None = None) -> Array:
    """Differences of neighbors, flattened, with values before and after them."""
    parts = [to_begin, diff(np.ravel(_array(ary))), to_end]
    return np.concatenate([np.ravel(_array(p)) for p in parts if p is not None])


@implements(getattr(np, "trapezoid", None), getattr(np, "trapz", None))
def trapezoid(y: ArrayLike, x: ArrayLike | None = None, dx: Any = 1.0, axis: int = -1) -> Array:
    """∫ y dx by the trapezoidal rule: Σ_i (x_{i+1} − x_i)(y_i + y_{i+1})/2."""
    values = _array(y)
    (k,) = normal_axes(axis, values.ndim)
    moved = np.moveaxis(values, k, -1)
    means = (moved[..., 1:] + moved[..., :-1]) / 2
    if x is None:
        return np.sum(means * dx, axis=-1)
    places = _array(x)
    steps = diff(places) if places.ndim == 1 else np.moveaxis(_array(diff(places, axis=k)), k, -1)
    return np.sum(means * steps, axis=-1)


@implements(np.gradient)
def gradient(
    f: ArrayLike, *varargs: ArrayLike, axis: Axis = None, edge_order: int = 1
) -> Array | tuple[Array, ...]:
    """Differences of second order inside, of order ``edge_order`` (1 or 2) at the ends.

    With steps h before and k after a point:
    f' = (h² f_{i+1} + (k² − h²) f_i − k² f_{i−1}) / (h k (h + k)), as in NumPy. The steps are given by a
    number, or by a vector of points, for each axis.
    """
    values = _array(f)
    axes = normal_axes(axis, values.ndim)
    if edge_order not in (1, 2):
        raise TraceError(f"np.gradient(edge_order={edge_order}) is not defined; use 1 or 2")
    spacings = list(varargs) or [1.0]
    spacings = spacings * len(axes) if len(spacings) == 1 else spacings
    if len(spacings) != len(axes):
        raise ShapeError(f"np.gradient was given {len(spacings)} spacings for {len(axes)} axes")
    pairs = zip(axes, spacings, strict=True)
    found = [_slopes(values, k, _array(spacing), edge_order) for k, spacing in pairs]
    return found[0] if len(axes) == 1 else tuple(found)


def _slopes(values: Any, axis: int, spacing: Array, edge_order: int) -> Array:
    f = np.moveaxis(values, axis, -1)
    count = f.shape[-1]
    if isinstance(count, int) and count <= edge_order:
        least = edge_order + 1
        raise ShapeError(f"np.gradient needs {least} or more elements along axis {axis}, not {count}")
    steps = diff(spacing) if spacing.ndim else np.broadcast_to(spacing, (count - 1,))
    h, k = steps[:-1], steps[1:]
    inside = (h**2 * f[..., 2:] + (k**2 - h**2) * f[..., 1:-1] - k**2 * f[..., :-2]) / (h * k * (h + k))
    first = _edge(f, steps, edge_order)
    last = -_edge(f[..., ::-1], steps[::-1], edge_order)
    return np.moveaxis(np.concatenate([first, inside, last], axis=-1), -1, axis)


def _edge(f: Array, steps: Array, order: int) -> Array:
    """The slope at the first point, by a line through two points or a parabola through three."""
    h = steps[0]
    slope = (f[..., 1:2] - f[..., :1]) / h
    if order == 1:
        return slope
    k = steps[1]
    return slope - h * ((f[..., 2:3] - f[..., 1:2]) / k - slope) / (h + k)


# ---- convolution --------------------------------------------------------------------------------


@implements(np.convolve)
def convolve(a: ArrayLike, v: ArrayLike, mode: str = "full") -> Proxy:
    """y_t = Σ_k a_{t−k} v_k, for vectors; the shorter one is split into its elements."""
    (long, n), (short, m) = sorted(
        (_vector(x, "np.convolve") for x in (a, v)), key=lambda pair: pair[1], reverse=True
    )
    if mode not in ("full", "same", "valid"):
        raise TraceError(f"np.convolve(mode={mode!r}) is not defined; use 'full', 'same' or 'valid'")
    around = {"full": (m - 1, m - 1), "same": (m // 2, m - 1 - m // 2), "valid": (0, 0)}[mode]
    padded = np.pad(long, around)
    count = n + sum(around) - m + 1
    return short[::-1] @ np.stack([padded[k : k + count] for k in range(m)])


@implements(np.correlate)
def correlate(a: ArrayLike, v: ArrayLike, mode: str = "valid") -> Proxy:
    """y_t = Σ_k a_{t+k} v_k, for vectors."""
    (first, n), (second, m) = _vector(a, "np.correlate"), _vector(v, "np.correlate")
    return convolve(first, second[::-1], mode) if m <= n else correlate(second, first, mode)[::-1]


# ---- values of polynomials and tables -----------------------------------------------------------


@implements(np.polyval)
def polyval(p: ArrayLike, x: ArrayLike) -> Array:
    """Σ_k p_k x^{n−1−k}, by Horner's rule."""
    coefficients, count = _vector(p, "np.polyval")
    points = _array(x)
    value = np.full_like(points, coefficients[0])
    for k in range(1, count):
        value = value * points + coefficients[k]
    return value


@implements(np.vander)
def vander(x: ArrayLike, N: int | None = None, increasing: bool = False) -> Array:
    """The powers of each element, in descending order from N − 1 to 0 along the rows."""
    points = _array(x)
    count = points.shape[0] if N is None else as_dim(N)
    if points.ndim != 1 or not isinstance(count, int):
        raise ShapeError(f"np.vander needs a vector and a known N, not {format_shape(points.shape)}, {count}")
    powers = [points**k for k in range(count)]
    return np.stack(powers if increasing else powers[::-1], axis=1)


@implements(np.interp)
def interp(
    x: ArrayLike,
    xp: ArrayLike,
    fp: ArrayLike,
    left: Any = None,
    right: Any = None,
    period: Any = None,
) -> Array:
    """Straight lines between the points (xp, fp), xp ascending; the values at the ends beyond them.

    With a ``period`` the points are taken modulo it, in any order, and there are no ends. The
    derivative at a point of the table is that of the line after it.

    Raises:
        TraceError: points xp that are not ascending, or a period with traced points.
        ShapeError: a table that is not a vector of known length, or xp of another shape.
    """
    if period is not None:
        return _periodic(x, xp, fp, period)
    places, values = (xp if isinstance(xp, Proxy) else np.asarray(xp)), _array(fp)
    count = _vector(values, "np.interp")[1]
    if np.shape(places) != (count,):
        raise ShapeError(
            f"np.interp: xp {np.shape(places)} and fp {format_shape(values.shape)} need one shape"
        )
    if not isinstance(xp, Proxy) and np.any(np.diff(places) <= 0):
        raise TraceError("np.interp of traced values needs places xp that ascend")
    points = x if isinstance(x, Proxy) else np.asarray(x)
    first, last = values[0] if left is None else left, values[-1] if right is None else right
    if count == 1:
        inside: Any = values[0]
    else:
        k = np.clip(np.searchsorted(places, points, "right") - 1, 0, count - 2)
        start, end = _array(places)[k], _array(places)[k + 1]
        inside = values[k] + (values[k + 1] - values[k]) * ((points - start) / (end - start))
    outside = np.where(_array(points) > places[-1], last, inside)
    return np.where(_array(points) < places[0], first, outside)


def _periodic(x: ArrayLike, xp: ArrayLike, fp: ArrayLike, period: Any) -> Array:
    """The table over one period, with one more point at each end."""
    if isinstance(xp, Proxy) or isinstance(period, Proxy) or not period:
        raise TraceError("np.interp(period=...) of traced values needs known places xp and a number not 0")
    length = abs(period)
    places = np.asarray(xp, dtype=float) % length
    order = np.argsort(places, kind="stable")
    places = places[order]
    values = np.take(_vector(fp, "np.interp")[0], order)
    wide = np.concatenate([values[-1:], values, values[:1]])
    around = np.concatenate([places[-1:] - length, places, places[:1] + length])
    return interp(_array(x) % length, around, wide)


@implements(np.sinc)
def sinc(x: ArrayLike) -> Proxy:
    """sin(πx)/(πx), 1 at 0."""
    return Proxy(apply(sympy.sinc, number(_array(x) * Proxy(constant(sympy.pi)))))


# ---- polynomials ---------------------------------------------------------------------------------


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
