"""Elementary functions, activations, functions of the normal distribution, and users' own, on arrays."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from typing import Any

import numpy as np

from symad.core.arrays import Array, Number


def sec(x: Array | float) -> Array | float:
    """1/cos x."""
    return 1 / np.cos(x)


def csc(x: Array | float) -> Array | float:
    """1/sin x."""
    return np.true_divide(1, np.sin(x))


def cot(x: Array | float) -> Array | float:
    """1/tan x."""
    return np.true_divide(1, np.tan(x))


def sech(x: Array | float) -> Array | float:
    """1/cosh x, without cosh x, which overflows."""
    e = np.exp(-np.abs(x))
    return 2 * e / (1 + e * e)


def csch(x: Array | float) -> Array | float:
    """1/sinh x."""
    return np.true_divide(1, np.sinh(x))


def coth(x: Array | float) -> Array | float:
    """1/tanh x."""
    return np.true_divide(1, np.tanh(x))


def asec(x: Array | float) -> Array | float:
    """Arccos(1/x)."""
    return np.arccos(np.true_divide(1, x))


def acsc(x: Array | float) -> Array | float:
    """Arcsin(1/x)."""
    return np.arcsin(np.true_divide(1, x))


def acot(x: Array | float) -> Array | float:
    """Arctan(1/x), SymPy's branch: π/2 at 0."""
    return np.arctan(np.true_divide(1, x))


def asech(x: Array | float) -> Array | float:
    """Arcosh(1/x)."""
    return np.arccosh(np.true_divide(1, x))


def acsch(x: Array | float) -> Array | float:
    """Arsinh(1/x)."""
    return np.arcsinh(np.true_divide(1, x))


def acoth(x: Array | float) -> Array | float:
    """Artanh(1/x)."""
    return np.arctanh(np.true_divide(1, x))


def sinc(x: Array | float) -> Array | float:
    """Sin(x)/x, unnormalized, 1 at 0."""
    return np.sinc(np.true_divide(x, np.pi))


def frac(x: Array | float) -> Array | float:
    """The fractional part x − floor(x)."""
    return x - np.floor(x)


def maximum(*values: Array | float) -> Array | float:
    """The maximum, elementwise; NaN if an operand is NaN."""
    return reduce(np.maximum, values)


def minimum(*values: Array | float) -> Array | float:
    """The minimum, elementwise; NaN if an operand is NaN."""
    return reduce(np.minimum, values)


def softplus(x: Array | float) -> Array | float:
    """log(1 + exp(x)), without overflow."""
    return np.logaddexp(0.0, x)


def logcosh(x: Array) -> Array:
    """log(cosh(x)) = log(1 + 2 sinh(x/2)²), and |x| − log 2 where cosh overflows or e^(−2|x|) is tiny."""
    small = np.minimum(np.abs(x), 20.0)
    return np.log1p(2 * np.sinh(0.5 * small) ** 2) + (np.abs(x) - small)


def relu(x: Array | float) -> Array | float:
    """max(x, 0)."""
    return np.maximum(x, 0.0)


def silu(x: Array | float) -> Array | float:
    """x/(1 + exp(−x))."""
    from scipy.special import expit

    return x * expit(x)


def gelu(x: Array | float) -> Array | float:
    """x erfc(−x/√2)/2: accurate also where 1 + erf would cancel."""
    from scipy.special import erfc

    return 0.5 * x * erfc(-np.asarray(x) * 0.7071067811865476)


def normal_ratio(x: Number) -> Number:
    """φ(x)/Φ(x) = √(2/π)/erfcx(−x/√2), with density and distribution function of the normal distribution."""
    from scipy.special import erfcx

    return 0.7978845608028654 / erfcx(-0.7071067811865476 * x)


def normal_excess(x: Any) -> Any:
    """φ(x)/Φ(x) + x; below −5 the continued fraction 1/(t + 2/(t + 3/(t + ...))), t = −x (DLMF 7.9.2)."""
    from scipy.special import erfcx

    t, tail = np.maximum(np.negative(x), 5.0), 0.0
    for k in range(32, 0, -1):
        tail = k / (t + tail)
    return np.where(np.less(x, -5.0), tail, 0.7978845608028654 / erfcx(-0.7071067811865476 * x) + x)[()]


def voigt_dispersion(x: Array | float, sigma: Array | float, gamma: Array | float) -> Array | float:
    """Im w((x + iγ)/(σ√2))/(σ √(2π)), the Hilbert transform of Voigt's profile."""
    from scipy.special import wofz

    root = np.multiply(sigma, 1.4142135623730951)
    return wofz((x + 1j * np.asarray(gamma)) / root).imag / (root * 1.7724538509055159)


# ---- user-defined functions, on floats and arrays ------------------------------------------------


def elementwise(name: str, function: Callable[..., object], *values: Array | float) -> Array | float:
    """A user's function of floats and arrays: a new array of their common shape and type.

    Raises:
        TypeError: the function does not accept arrays, or its results are not real numbers.
        ValueError: its result has another shape.
    """
    shape = np.broadcast_shapes(*[np.shape(v) for v in values])
    try:
        made = np.asarray(function(*values))
    except TypeError as error:
        if not shape:
            raise
        raise TypeError(
            f"{name} has to take NumPy arrays, as numpy.vectorize makes it do: {error}"
        ) from error
    if made.dtype.kind not in "fiub":
        raise TypeError(f"{name} has to return real numbers, not {made.dtype}")
    if made.shape != shape:
        raise ValueError(f"{name} has to work elementwise: of shape {shape} it makes {made.shape}")
    kinds = [v.dtype for v in values if hasattr(v, "dtype")]
    return np.array(made, dtype=np.result_type(*kinds, np.float32) if kinds else np.float64)[()]
