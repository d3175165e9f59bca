"""Elementary functions: reciprocals of trigonometric and hyperbolic ones, their inverses, sinc, extremes."""

from __future__ import annotations

from functools import reduce

import numpy as np

from symad.core.arrays import Array


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
    """1/cosh x; 0 where cosh x overflows, which is where 1/cosh x is below the least normal number."""
    return 1 / np.cosh(x)


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
