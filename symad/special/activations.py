"""Activations of neural networks, without overflow."""

from __future__ import annotations

import numpy as np

from symad.core.arrays import Array


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
