"""Convolution in one and two dimensions: the windows of a signal times weights.

    y_{t,o} = Σ_{k<K} Σ_i W_{k,i,o} x_{s t + r k, i},   t = 0..T'−1,   T' = ⌊(T − r (K − 1) − 1) / s⌋ + 1,

with stride s and dilation r, of x with zeros around it (padding). The windows x_{s t + r k} form a matrix
with a row for each t and a column for each (k, i), "seq2col" or "im2col"; its product with the weights as a
matrix of K d_in rows is the convolution. As usual in machine learning, the filter is not flipped.
C is linear in x; its transpose, the transposed convolution, is the pullback of x: ⟨C x, y⟩ = ⟨x, Cᵀ y⟩. It
places zeros between the elements of y (s − 1 of them) and convolves with the flipped filter.

Shapes: signals (..., T, d), filters (K, d_in, d_out); images (..., H, W, d), filters (K_h, K_w, d_in, d_out);
sizes are ints or symbols, those of filters ints. Padding, stride and dilation are the same for all
axes. Sources: Goodfellow, Bengio & Courville, "Deep Learning" (2016), section 9.5; Dumoulin & Visin, "A
guide to convolution arithmetic" (2016), relationships 6, 13 and 14; the causal kind: van den Oord et
al., "WaveNet" (2016), section 2.1.
"""

from __future__ import annotations

from itertools import product

import numpy as np
import sympy

from symad.core.arrays import Array
from symad.errors import ShapeError

T, K, d_in, d_out = sympy.symbols("T K d_in d_out", integer=True, positive=True)
x = sympy.IndexedBase("x", shape=(T, d_in))
W = sympy.IndexedBase("W", shape=(K, d_in, d_out))
y = sympy.IndexedBase("y", shape=(T - K + 1, d_out))


def formula(t: sympy.Expr | int, o: sympy.Expr | int) -> sympy.Expr:
    """y_{t,o} of a signal x with filters W as SymPy: Σ_k Σ_i W_{k,i,o} x_{t+k,i}."""
    k, i = sympy.symbols("k i", integer=True)
    return sympy.Sum(W[k, i, o] * x[t + k, i], (i, 0, d_in - 1), (k, 0, K - 1))


def loss() -> sympy.Expr:
    """The mean squared error of the convolution against y, in the symbols x, W, y of this module."""
    t, o = sympy.symbols("t o", integer=True)
    total = sympy.Sum((formula(t, o) - y[t, o]) ** 2, (o, 0, d_out - 1), (t, 0, T - K))
    return total / ((T - K + 1) * d_out)


def windows(x: Array, taps: tuple[int, ...], stride: int = 1, dilation: int = 1) -> Array:
    """The windows of a signal or image: (..., T, d) -> (..., T', K d), im2col.

    Args:
        x: (..., T, d), or with more axes before the last.
        taps: the sizes of a window along the axes before the last.
        stride: the step from one window to the next.
        dilation: the step from one element of a window to the next.

    Raises:
        ShapeError: a window larger than x, or a size that is not a positive integer.
    """
    if min(*taps, stride, dilation) < 1 or len(x.shape) < len(taps) + 1:
        raise ShapeError(
            f"windows of {taps} elements, stride {stride}, dilation {dilation}, of an array {x.shape}: give "
            f"positive integers, and an array with {len(taps) + 1} axes at least"
        )
    lengths = x.shape[-1 - len(taps) : -1]
    for length, count in zip(lengths, taps, strict=True):
        reach = dilation * (count - 1) + 1
        if isinstance(length, int) and length < reach:
            raise ShapeError(
                f"windows of {taps} elements with dilation {dilation} reach over {reach} places, but the "
                f"array {x.shape} has {length} there; give a longer one, a shorter filter, or padding"
            )
    parts = []
    for place in product(*map(range, taps)):
        ranges = [
            slice(dilation * k, length - dilation * (count - 1 - k), stride)
            for k, count, length in zip(place, taps, lengths, strict=True)
        ]
        parts.append(x[(Ellipsis, *ranges, slice(None))])
    return np.concatenate(parts, axis=-1) if len(parts) > 1 else parts[0]


def pad(x: Array, axes: int, before: int, after: int) -> Array:
    """Zeros before and after along the ``axes`` axes that precede the last."""
    if not (before or after):
        return x
    lead = len(x.shape) - axes - 1
    return np.pad(x, [(0, 0)] * lead + [(before, after)] * axes + [(0, 0)])


def convolve(x: Array, W: Array, stride: int = 1, padding: int = 0, dilation: int = 1) -> Array:
    """The convolution of (..., T, d_in) with (K, d_in, d_out), or of images: (..., T', d_out).

    Args:
        x: signals (..., T, d_in) or images (..., H, W, d_in).
        W: filters (K, d_in, d_out) or (K_h, K_w, d_in, d_out).
        stride: the step from one window to the next.
        padding: the number of zeros at both ends of each axis.
        dilation: the step from one element of a window to the next.

    Raises:
        ShapeError: filters for other features, a filter longer than the padded signal, or a padding < 0.
    """
    _check(x, W, W.shape[-2], padding)
    axes = len(W.shape) - 2
    columns = windows(pad(x, axes, padding, padding), W.shape[:axes], stride, dilation)
    return columns @ _matrix(W)


def causal(x: Array, W: Array, dilation: int = 1) -> Array:
    """y_t = Σ_k W_kᵀ x_{t − r (K − 1 − k)}, zeros before the start: (..., T, d_in) -> (..., T, d_out).

    The last tap multiplies x_t; no y_t depends on a later x.
    """
    _check(x, W, W.shape[-2], 0)
    return windows(pad(x, 1, dilation * (W.shape[0] - 1), 0), W.shape[:1], 1, dilation) @ _matrix(W)


def depthwise(x: Array, W: Array) -> Array:
    """The causal convolution of each feature with its own filter: x (..., T, d), W (K, d)."""
    if x.shape[-1] != W.shape[-1]:
        raise ShapeError(f"filters {W.shape} for each of the features of {x.shape}: the last axes differ")
    count, length = W.shape[0], x.shape[-2]
    padded = pad(x, 1, count - 1, 0)
    return sum(padded[..., k : length + k, :] * W[k] for k in range(count))


def convolve_transposed(
    y: Array, W: Array, stride: int = 1, padding: int = 0, dilation: int = 1, extra: int = 0
) -> Array:
    """Cᵀ y for the convolution C with these filters: (..., T', d_out) -> (..., T, d_in).

    T = s (T' − 1) + r (K − 1) + 1 − 2 padding + extra. Several T have the same T'; ``extra`` < s selects one.

    Raises:
        ShapeError: other features, an extra for which there is no T, or a padding larger than r (K − 1).
    """
    _check(y, W, W.shape[-1], padding)
    axes = len(W.shape) - 2
    if not 0 <= extra < stride or padding > dilation * (min(W.shape[:axes]) - 1):
        raise ShapeError(
            f"convolve_transposed(padding={padding}, stride={stride}, extra={extra}) with filters {W.shape}: "
            "needs 0 ≤ extra < stride and padding ≤ dilation · (taps − 1)"
        )
    for axis in range(len(y.shape) - axes - 1, len(y.shape) - 1):
        y = spread(y, axis, stride)
        before = dilation * (W.shape[axis - len(y.shape) + axes + 1] - 1) - padding
        widths = [(0, 0)] * len(y.shape)
        widths[axis] = (before, before + extra)
        y = np.pad(y, widths)
    turned = W[(slice(None, None, -1),) * axes]
    return windows(y, W.shape[:axes], 1, dilation) @ _matrix(np.swapaxes(turned, -1, -2))


def spread(y: Array, axis: int, stride: int) -> Array:
    """``stride`` − 1 zeros between the elements along an axis: length T' becomes s (T' − 1) + 1."""
    if stride == 1:
        return y
    length = y.shape[axis]
    wide = np.stack([y] + [np.zeros_like(y)] * (stride - 1), axis=axis + 1)
    wide = wide.reshape(*y.shape[:axis], length * stride, *y.shape[axis + 1 :])
    return wide[(*(slice(None),) * axis, slice(0, stride * (length - 1) + 1))]


def max_pool(x: Array, size: int) -> Array:
    """The maximum of each square of ``size`` × ``size``: (..., H, W, d) -> (..., H/size, W/size, d).

    Raises:
        ShapeError: ``size`` does not divide both sides.
    """
    *lead, height, width, d = x.shape
    if height % size or width % size:
        raise ShapeError(f"squares of side {size} do not tile images {x.shape}")
    tiles = x.reshape(*lead, height // size, size, width // size, size, d)
    return np.max(np.max(tiles, axis=-4), axis=-2)


def _matrix(W: Array) -> Array:
    rows: int = 1
    for dim in W.shape[:-1]:
        rows = rows * dim
    return W.reshape(rows, W.shape[-1])


def _check(x: Array, W: Array, features: int, padding: int) -> None:
    if len(W.shape) < 3 or x.shape[-1] != features or padding < 0:
        raise ShapeError(
            f"filters {W.shape} (taps, d_in, d_out) with padding {padding} do not fit an array {x.shape} "
            f"(..., positions, features): {features} features are needed, and a padding ≥ 0"
        )
