"""Scalar SymPy expressions at points, in 30 digits by mpmath, as references for printed code."""

import mpmath
import numpy as np
import sympy as sp


def share(value, extremum, *others):
    """See `symad.numeric.pairs.stable_sympy.Share`."""
    return mpmath.mpf(1) / sum(o == extremum for o in others) if value == extremum else 0


def heaviside(x, at_zero=0.5):
    """The step function."""
    return at_zero if x == 0 else int(x > 0)


FORMS = {
    "Share": share,
    "Heaviside": heaviside,
    "FloorDivide": lambda a, n: a // n,
    "Abs": abs,
    "exp2": lambda a: mpmath.mpf(2) ** a,
    "log2": lambda a: mpmath.log(a, 2),
    "Sqrt": mpmath.sqrt,
    "silu": lambda a: a / (1 + mpmath.exp(-a)),
    "softplus": lambda a: mpmath.log(1 + mpmath.exp(a)),
    "sigmoid": lambda a: 1 / (1 + mpmath.exp(-a)),
    "relu": lambda a: max(a, 0),
    "gelu": lambda a: a * (1 + mpmath.erf(a / mpmath.sqrt(2))) / 2,
}


def values(expressions, symbols, points):
    """The values of every expression at every point, as floats or truth values."""
    found = []
    with mpmath.workdps(30):
        for expression in expressions:
            f = sp.lambdify(symbols, expression, [FORMS, "mpmath"])
            whole = [symbol.is_integer for symbol in symbols]
            at = [
                f(*(int(x) if w else mpmath.mpf(float(x)) for w, x in zip(whole, point, strict=True)))
                for point in zip(*points, strict=True)
            ]
            found.append(np.array([bool(v) if isinstance(v, (bool, np.bool_)) else float(v) for v in at]))
    return found
