"""Errors of floating-point numbers: relative, in ulps, and as a multiple of what is allowed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import mpmath
import numpy as np

from symad.core.arrays import Array, Number
from symad.verification.measuring.precisions import DOUBLE, Precision


@dataclass(frozen=True)
class Error:
    """How far a computed value is off."""

    got: float
    relative: float
    ulps: float
    excess: float
    """As a multiple of what is allowed."""
    resolution: float
    """The smallest relative error that is not allowed here; infinite where it underflows or is 0."""
    absolute: float = float("inf")

    @staticmethod
    def of(
        got: float,
        exact: mpmath.mpf,
        moved: float,
        floor: mpmath.mpf,
        limits: Precision,
        beside: float = 1.0,
    ) -> Error:
        """The error of one value; the exact one is known up to ``floor``.

        ``beside`` is what an error is compared with where the exact value and those beside it underflow.
        """
        largest, smallest = mpmath.mpf(limits.max), mpmath.mpf(limits.smallest_subnormal)
        with mpmath.workdps(60):
            eps = mpmath.mpf(limits.eps) / 2
            allowed = limits.factor * (eps * (mpmath.mpf(moved) + abs(exact)) + smallest)
            infinite = float("inf")
            tiny = abs(exact) < mpmath.mpf(limits.smallest_normal)
            resolution = infinite if tiny else float(allowed / abs(exact))
            if abs(exact) > largest:
                right = (got > 0) == (exact > 0) and abs(got) >= float(largest)
                return Error(float(got), 0.0, 0.0, 0.0 if right else infinite, infinite)
            if not np.isfinite(got):
                return Error(float(got), infinite, infinite, infinite, resolution)
            error = max(abs(mpmath.mpf(float(got)) - exact) - floor, mpmath.mpf(0))
            normal = abs(exact) >= mpmath.mpf(limits.smallest_normal)
            spacing = (
                2 * eps * mpmath.mpf(2) ** mpmath.floor(mpmath.log(abs(exact), 2)) if normal else smallest
            )
            underflows = moved < limits.smallest_normal
            relative = error / (abs(exact) if normal else mpmath.mpf(beside if underflows else moved))
            return Error(
                float(got),
                float(relative),
                float(error / spacing),
                float(error / allowed),
                resolution,
                float(error),
            )

    @property
    def word(self) -> str:
        """What to call it."""
        if np.isnan(self.got):
            return "no value (NaN)"
        return "overflow" if np.isinf(self.got) else "digits lost"

    def lost(self, limits: Precision) -> int:
        """How many decimal digits are lost."""
        whole = -np.log10(limits.eps)
        if not np.isfinite(self.relative):
            return round(whole)
        return round(min(whole, max(0.0, np.log10(max(self.ulps, 1.0)))))


def nudged(
    value: Array | float, step: int, limits: Precision = DOUBLE, coarse: bool = False
) -> Array | float:
    """A neighboring float, some units in the last place away, or some parts of 2⁻¹⁴; integers stay.

    A small x always moves by parts of itself: floats of exp(x) or 1 + x² hardly change with its last digits,
    so that the error of a cancellation would look steady.
    """
    array = np.asarray(value)
    if array.dtype.kind != "f":
        return value
    units = limits.eps * (3 if limits.bits > 11 else 1)
    moved = array * (1 + step * np.where(coarse | (np.abs(array) < 2.0**-4), max(2.0**-14, units), units))
    return limits.rounded(moved if isinstance(value, np.ndarray) else float(moved))


def plain(value: Array | float) -> Any:
    """A number or array as text, in lists."""
    return [plain(v) for v in value] if isinstance(value, np.ndarray) and value.ndim else repr(_item(value))


def _item(value: Number) -> object:
    return value.item() if isinstance(value, (np.ndarray, np.generic)) else value
