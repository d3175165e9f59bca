"""Values in floats, and how far two of them are apart."""

from __future__ import annotations

import numpy as np

from symad.core.arrays import Number
from symad.numbers.number_domains import as_float
from symad.verification.fields.prime_fields import Array


def relative_gaps(u: Array | float, v: Array | float, watched: Array) -> Array:
    """Relative differences of watched elements where both values are finite, else 0."""
    with np.errstate(all="ignore"):
        gap = np.abs(np.asarray(u, dtype=float) - v) / (np.abs(u) + np.abs(v))
    return np.where(np.isfinite(gap) & watched, gap, 0.0)


def as_floats(value: Number) -> Array | float:
    """Rational values as floats."""
    if isinstance(value, np.ndarray):
        return np.frompyfunc(as_float, 1, 1)(value).astype(np.float64) if value.dtype == object else value
    return as_float(value)
