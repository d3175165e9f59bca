"""Errors of floating-point numbers: relative, in ulps, and as a multiple of what is allowed."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

import mpmath
import numpy as np

from symad.core.arrays import Number
from symad.verification.fields.prime_fields import Array
from symad.verification.measuring.precisions import DOUBLE, Precision


@dataclass(frozen=True)
class Errors:
    """How far computed values are off, element by element."""

    got: Array
    relative: Array
    ulps: Array
    excess: Array
    """The errors as multiples of the allowed ones: an element above 1 is wrong, or has lost digits."""
    resolution: Array
    """The smallest relative error that is not allowed; infinite for what underflows, is 0 or overflows."""
    absolute: Array

    @staticmethod
    def of(
        got: Array, exact: Array, moved: Array, floor: Array | float, limits: Precision, beside: float = 1.0
    ) -> Errors:
        """The errors of an array; exact values, numbers of many digits, are known up to ``floor``.

        Args:
            got: what was computed.
            exact: the exact values.
            moved: how far roundings may move them.
            floor: see above.
            limits: the type in which it was computed.
            beside: what an error is compared with where the exact value and those beside it underflow.
        """
        got, size = got.astype(np.float64), np.abs(exact.astype(np.float64))
        with mpmath.workdps(60), np.errstate(all="ignore"):
            apart = np.asarray(np.where(np.isfinite(got), got, 0.0) - exact, dtype=np.float64)
            error = np.maximum(np.abs(apart) - floor, 0.0)
            normal, low = size >= limits.smallest_normal, limits.smallest_subnormal
            allowed = limits.factor * (limits.eps / 2 * (moved + size) + low)
            spacing = np.where(normal, np.ldexp(limits.eps, np.frexp(size)[1] - 1), low)
            scale = np.where(moved < limits.smallest_normal, beside, moved)
            relative = error / np.where(normal, size, scale)
            resolution = np.where(normal, allowed / size, np.inf)
            ulps, excess = error / spacing, error / allowed
        over, lost = size > limits.max, ~np.isfinite(got)
        right = over & ((got > 0) == (exact > 0)) & (np.abs(got) >= limits.max)
        none, all_of_it = np.where(over, 0.0, np.inf), np.where(right, 0.0, np.inf)
        return Errors(
            got,
            np.where(over | lost, none, relative),
            np.where(over | lost, none, ulps),
            np.where(over | lost, all_of_it, excess),
            np.where(over, np.inf, resolution),
            np.where(over | lost, np.inf, error),
        )

    def at(self, index: tuple[int, ...]) -> Error:
        """The error of one element."""
        return Error(*(float(getattr(self, f.name)[index]) for f in fields(self)))


@dataclass(frozen=True)
class Error:
    """How far one computed value is off; see `Errors`."""

    got: float
    relative: float
    ulps: float
    excess: float
    resolution: float
    absolute: float

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
