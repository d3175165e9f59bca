"""Functions of the normal distribution and of Voigt's profile."""

from __future__ import annotations

from typing import Any

import numpy as np

from symad.core.arrays import Array, Number


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
