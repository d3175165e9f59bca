"""Derivatives of special functions by their parameters, on floats and arrays.

f_derivative(m_1, ..., m_k, *args) is f differentiated m_j times by its j-th parameter. There is no formula:
the values come from numerical differentiation of f at a high precision, element by element, in milliseconds
each.
"""

from __future__ import annotations

from functools import partial

import numpy as np

DIGITS = 17


def _derivative(name: str, *values: float) -> float:
    import mpmath

    from symad.tracing.from_sympy.parameter_derivatives import COMPANIONS, high_precision_value

    head = next(of for of, made in COMPANIONS.items() if made.__name__ == name)

    def one(*numbers: float) -> float:
        with mpmath.workdps(DIGITS):
            try:
                found = high_precision_value(head, [mpmath.mpf(float(v)) for v in numbers])
            except (ValueError, ZeroDivisionError, OverflowError):
                return float("nan")
            return float(found) if isinstance(found, mpmath.mpf) else float("nan")

    return np.vectorize(one, otypes=[float])(*values)[()]


def polylog_slope(order: float, s: float, x: float) -> float:
    """d^k/dx^k Li_s(x)."""
    import mpmath

    from symad.sympy_functions.special_functions import polylog_slope_value

    def one(*numbers: float) -> float:
        try:
            return float(polylog_slope_value(*map(mpmath.mpf, numbers)))
        except (ValueError, ZeroDivisionError, OverflowError):
            return float("nan")

    return np.vectorize(one, otypes=[float])(order, s, x)[()]


lowergamma_derivative = partial(_derivative, "lowergamma_derivative")
uppergamma_derivative = partial(_derivative, "uppergamma_derivative")
gammainc_derivative = partial(_derivative, "gammainc_derivative")
gammaincc_derivative = partial(_derivative, "gammaincc_derivative")
stdtr_derivative = partial(_derivative, "stdtr_derivative")
betainc_derivative = partial(_derivative, "betainc_derivative")
betainc_regularized_derivative = partial(_derivative, "betainc_regularized_derivative")
zeta_derivative = partial(_derivative, "zeta_derivative")
polylog_derivative = partial(_derivative, "polylog_derivative")
polylog_slope_derivative = partial(_derivative, "polylog_slope_derivative")
expint_derivative = partial(_derivative, "expint_derivative")
hyp0f1_derivative = partial(_derivative, "hyp0f1_derivative")
hyp1f1_derivative = partial(_derivative, "hyp1f1_derivative")
hyp2f1_derivative = partial(_derivative, "hyp2f1_derivative")
