"""SymPy's functions as Python functions of floats and arrays, and of mpmath's numbers."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from functools import cache, partial
from typing import Any

import flint
import mpmath
import numpy as np
import sympy
from flint import arb

from symad.core.arrays import Number
from symad.errors import EvaluationError
from symad.facts.functions import fact
from symad.special import elementwise


def implementation(head: type[sympy.Basic]) -> Callable[..., Number] | None:
    """The user's implementation of a SymPy head, registered or by SymPy's ``implemented_function``."""
    found: Callable[..., Number] | None = fact(head).users or getattr(head, "_imp_", None)
    return found


@cache
def numpy_function(head: sympy.FunctionClass) -> Callable[..., Any]:
    """The NumPy or SciPy function of a SymPy head; mpmath's if neither has one."""
    users = implementation(head)
    if users is not None:
        return partial(elementwise, head.__name__, users)
    name = fact(head).floats
    if name:
        module, _, attribute = name.rpartition(".")
        found: Callable[..., Number] = getattr(importlib.import_module(module), attribute)
        return found
    slow = mpmath_function(head)

    def through_mpmath(*values: float) -> Number:
        result = np.vectorize(lambda *v: _as_float(slow(*v)), otypes=[float])(*values)
        return result if result.ndim else result[()]

    return through_mpmath


@cache
def mpmath_function(head: type[sympy.Basic]) -> Callable[..., Number]:
    """The mpmath function of a SymPy head."""
    from sympy.utilities.lambdify import MPMATH_TRANSLATIONS

    special = fact(head).digits
    if special is not None:
        return special
    if hasattr(head, "_imp_"):
        return head._imp_
    name = MPMATH_TRANSLATIONS.get(head.__name__, head.__name__)
    found = getattr(mpmath, name, None)
    own = str(head.__module__).startswith("sympy.")  # a user's function may have the name of mpmath's
    if own and callable(found) and not isinstance(found, type(mpmath.euler)):  # mpmath.catalan is a number
        return found

    def through_sympy(*values: Number) -> Number:
        try:
            floats = [sympy.Float(v, mpmath.mp.dps) for v in values]
            result = head(*floats) if own or _evaluates(head) else head.eval(*floats)
            result = result if result is None else result.evalf(mpmath.mp.dps)
        except (TypeError, ValueError) as error:
            raise EvaluationError(f"{head.__name__} has no numeric value at {values}: {error}") from None
        if not isinstance(result, (sympy.Float, sympy.Rational)):
            raise EvaluationError(f"{head.__name__} has no numeric value at {values}")
        return mpmath.mpf(sympy.Float(result, mpmath.mp.dps)._mpf_)

    return through_sympy


def _evaluates(head: type[sympy.Basic]) -> bool:
    """True if a user's function computes its own value; SymPy would take mpmath's function of its name."""
    return head._eval_evalf is not sympy.Function._eval_evalf


def _as_float(value: Number) -> float:
    return float("nan") if isinstance(value, mpmath.mpc) and value.imag else float(mpmath.re(value))


# ---- special functions to many digits by Arb, where mpmath would sum slow series -----------------
#
# Arb gives a ball that contains the value; its midpoint is used if the ball is narrower than one rounding
# of the working precision. Everything else, such as a value outside the real domain, is left to mpmath.
# Source: Johansson (2017), "Arb: efficient arbitrary-precision midpoint-radius interval arithmetic".


GUARD = 30
"""Bits beyond the working precision; cancellation inside a function may need more."""

ATTEMPTS = 3
"""The number of times that the bits are doubled."""

MAX_ARB_ARGUMENT = 10**4
"""Larger arguments are left to mpmath, whose series end early there."""


def by_arb(head: sympy.FunctionClass, values: tuple[Number, ...]) -> Number | None:
    """head(*values) rounded to mpmath's working precision; None if Arb does not determine it.

    Args:
        head: a function of SymPy.
        values: mpmath numbers.
    """
    row = fact(head)
    if (
        row.balls is None
        or not row.slow
        or not all(mpmath.isfinite(v) and abs(v) < MAX_ARB_ARGUMENT for v in values)
    ):
        return None
    wanted, before = mpmath.mp.prec, flint.ctx.prec
    try:
        for attempt in range(ATTEMPTS):
            flint.ctx.prec = (wanted + GUARD) << attempt
            found = row.balls(*[_exact(v) for v in values])
            if found.is_nan():
                return None
            if found.is_finite() and found.rel_accuracy_bits() > wanted + 2:
                mantissa, exponent = found.mid().man_exp()
                return mpmath.ldexp(mpmath.mpf(int(mantissa)), int(exponent))
    except (ValueError, TypeError, OverflowError):
        pass
    finally:
        flint.ctx.prec = before
    return None


def _exact(value: mpmath.mpf) -> flint.arb:
    sign, mantissa, power, _ = value._mpf_
    return arb((-int(mantissa) if sign else int(mantissa), int(power)))
