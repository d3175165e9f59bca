"""Formulas whose digits are lost as they are written, with points where they are."""

from typing import Any

import sympy as sp

U, V, X, Y = sp.symbols("u v x y", real=True)
P, Q = sp.symbols("p q", positive=True)
TINY, NEAR = [(1e-9, 1e-12), (0.3, 1e-10), (-0.7, 1e-9), (-0.3, 0.2)], [(1.3, 1e-10), (2.0, 1e-9), (3.0, 2.0)]
ODDS = 1 / (1 + sp.exp(-X))
NEAR_ONE = [(1 + 2.0**-20,), (1 - 2.0**-17,), (1 + 2.0**-10,), (0.3,), (4.0,)]


def difference(f: Any) -> sp.Expr:
    return f(X + Y) - f(X)


def at(value: sp.Expr, other: Any) -> sp.Expr:
    return sp.Piecewise((value, sp.Ne(X, 0)), (other, True))


CASES: dict[str, tuple[sp.Expr, list[tuple[float, ...]]]] = {
    "sin(x)/x, or 1": (at(sp.sin(X) / X, 1), [(1e-12,), (1e-5,), (0.3,), (3.0,)]),
    "(exp(x) - 1)/x, or 1": (at((sp.exp(X) - 1) / X, 1), [(1e-12,), (1e-5,), (0.3,), (3.0,)]),
    "(1 - cos(x))/x², or 1/2": (at((1 - sp.cos(X)) / X**2, sp.Rational(1, 2)), [(1e-12,), (1e-5,), (0.3,)]),
    "sin(x)/x away from 0": (
        sp.Piecewise((sp.sin(X) / X, sp.Abs(X) > 1e-14), (1 - X**2 / 6, True)),
        [(1e-12,), (1e-5,), (0.3,)],
    ),
    "a difference of roots, or 1": (
        sp.Piecewise((sp.sqrt(X + 1) - sp.sqrt(X), X > 0), (1, True)),
        [(1e12,), (3.0,)],
    ),
    "tanh": (difference(sp.tanh), [*TINY, (20.0, 1e-7), (400.0, 1e-3), (1e-9, -3e-12), (0.3, 0.7)]),
    "sigmoid": (difference(lambda x: 1 / (1 + sp.exp(-x))), [*TINY, (20.0, 1e-7), (-3.0, 2.0)]),
    "asinh": (difference(sp.asinh), [*TINY, (-2.0, 1e-9), (2e8, 1e-7)]),
    "acosh": (difference(sp.acosh), [*NEAR, (2e8, 1e-7)]),
    "asin": (difference(sp.asin), TINY),
    "acos": (difference(sp.acos), TINY),
    "atanh": (difference(sp.atanh), TINY),
    "sec": (difference(sp.sec), TINY),
    "sech": (difference(sp.sech), [*TINY, (720.0, 1e-5)]),
    "erf": (difference(sp.erf), [*TINY, (-2.0, 1e-9), (5.0, 1e-7), (-3.0, 2.0), (5.0, 0.3)]),
    "erfc": (difference(sp.erfc), [*TINY, (-2.0, 1e-9), (5.0, 1e-7), (-3.0, 2.0), (5.0, 0.3)]),
    "loggamma": (difference(sp.loggamma), [(0.3, 1e-10), (2.0, 1e-9), (50.0, 1e-7), (3.0, 2.0)]),
    "a length and a side": (sp.sqrt(U**2 + V**2) - U, [(1e8, 1.0), (1e8, 1e-3), (-3.0, 2.0), (3.0, 4.0)]),
    "a length and a coordinate": (sp.sqrt(X**2 + P) + X, [(1.0, -1e8), (2.0, -1e3), (1.0, 3.0), (0.3, -0.2)]),
    "√(1 + x²) - 1": (sp.sqrt(1 + X**2) - 1, [(1e8,), (1e-8,), (2.0,)]),
    "√(x²/9 + 1)": (sp.sqrt(X**2 / 9 + 1), [(1e7,), (-1e5,), (30.0,), (0.3,)]),
    "√(x² + x + 1)": (sp.sqrt(X**2 + X + 1), [(1e7,), (-1e5,), (30.0,), (-0.5,)]),
    "√(p x² + x y + q)": (sp.sqrt(P * X**2 + X * Y + Q), [(2.0, 3.0, 1e6, 0.5), (0.3, 2.0, -1e3, 0.25)]),
    "Box and Cox": ((U**V - 1) / V, [(3.0, 1e-3), (0.2, 2.5), (5.0, -0.5)]),
    "exp(x y) - 1 - x y": (sp.exp(X * Y) - 1 - X * Y, [(1e-6, 1e-3), (0.5, 0.3), (-3.0, 2.0), (1e-3, 1e-3)]),
    "log(1 + x y) - x y": (sp.log(1 + X * Y) - X * Y, [(1e-6, 1e-3), (0.5, 0.3), (3.0, 2.0), (1e-3, 1e-3)]),
    "log(2 cosh(x)) - |x|": (
        sp.log(sp.exp(X) + sp.exp(-X)) - sp.Abs(X),
        [(40.0,), (2.0,), (-40.0,), (0.1,), (300.0,)],
    ),
    "heat capacity": (
        X**2 * sp.exp(X) / (sp.exp(X) - 1) ** 2,
        [(1e4,), (1e-5,), (1.0,), (-1e4,), (30.0,)],
    ),
    "three states": (
        (sp.exp(X) - sp.exp(-X)) / (sp.exp(X) + sp.exp(-X) + 1),
        [(1e4,), (-1e4,), (30.0,), (-30.0,), (1e-2,), (1.0,)],
    ),
    "odds": (ODDS / (1 - ODDS), [(710.0,), (708.0,), (-710.0,), (1.0,), (-40.0,)]),
    "odds by tanh": (
        (1 + sp.tanh(X / 2)) / 2 / (1 - (1 + sp.tanh(X / 2)) / 2),
        [(800.0,), (700.0,), (20.0,), (1.0,), (-40.0,)],
    ),
    "x²/(1 + x²)": (X**2 / (1 + X**2), [(1e8,), (1e3,), (-1e5,), (0.3,)]),
    "x²/(y + 2 x²)": (X**2 / (Y + 2 * X**2), [(1e8, 1.0), (1e3, 2.0), (1e-3, 3.0)]),
    "log(1 - exp(-x))": (sp.log(1 - sp.exp(-X)), [(40.0,), (700.0,), (1e-9,), (0.7,), (0.68,)]),
    "sin(π x)/(π x)": (sp.sin(sp.pi * X) / (sp.pi * X), [(1e-12,), (1e-5,), (0.01,), (0.3,)]),
    "sin(π x)/(π x) - 1": (sp.sin(sp.pi * X) / (sp.pi * X) - 1, [(1e-5,), (-0.01,), (0.3,)]),
    "π sin(x)/(7 x)": (sp.pi * sp.sin(X) / (7 * X), [(1e-12,), (1e-5,), (-0.01,), (0.3,)]),
    "π x - sin(π x)": (sp.pi * X - sp.sin(sp.pi * X), [(1e-12,), (-1e-5,), (0.01,), (2.7,)]),
    "(exp(π x) - 1)/x": ((sp.exp(sp.pi * X) - 1) / X, [(1e-12,), (-1e-5,), (0.01,), (2.7,)]),
    "1/tanh(π x) - 1/(π x)": (1 / sp.tanh(sp.pi * X) - 1 / (sp.pi * X), [(1e-12,), (-1e-5,), (0.01,)]),
    "tanh(x/3) - x/3": (sp.tanh(X / 3) - X / 3, [(1e-12,), (-1e-5,), (0.01,), (0.3,)]),
    "sin(3 x y) - 3 sin(x y)": (
        sp.sin(3 * X * Y) - 3 * sp.sin(X * Y),
        [(1e-6, 1e-3), (0.01, 0.3), (1e-3, 1e-3)],
    ),
    "log(1 - exp(-exp(2 x)))": (sp.log(1 - sp.exp(-sp.exp(2 * X))), [(-30.0,), (-3.0,), (0.3,), (1.0,)]),
    "exp(2 x)/(exp(2 x) + exp(-2 x))": (
        sp.exp(2 * X) / (sp.exp(2 * X) + sp.exp(-2 * X)),
        [(400.0,), (-400.0,), (1e-5,), (0.3,), (-3.0,)],
    ),
    "x + log(1 + exp(-x))": (X + sp.log(1 + sp.exp(-X)), [(-40.0,), (-700.0,), (800.0,), (1e-5,), (2.0,)]),
    "log(1 - exp(-x y))": (sp.log(1 - sp.exp(-X * Y)), [(40.0, 1.0), (2.0, 3.0), (1e-5, 2.0), (0.3, 0.7)]),
    "acos(1 - x²)": (sp.acos(1 - X**2), [(1e-12,), (1e-5,), (-0.01,), (0.3,), (1.2,)]),
    "acosh(1 + x²)": (sp.acosh(1 + X**2), [(1e-12,), (1e-5,), (-0.01,), (0.3,), (3.0,), (1e8,)]),
    "log(sinh(x))": (sp.log(sp.sinh(X)), [(1e3,), (1e-5,), (0.3,), (3.0,)]),
    "log(tanh(x))": (sp.log(sp.tanh(X)), [(40.0,), (1e-5,), (0.3,), (3.0,)]),
    "log(x + √(x² + 1))": (
        sp.log(X + sp.sqrt(X**2 + 1)),
        [(-1e155,), (1e155,), (-1e10,), (-1e5,), (1e-12,), (-0.01,), (2.0,)],
    ),
    "log(x + √(x² - 1))": (sp.log(X + sp.sqrt(X**2 - 1)), [(1e155,), (3.0,), (1.5,)]),
    "log(erfc(x))": (sp.log(sp.erfc(X)), [(1e-12,), (-1e-5,), (0.01,), (0.49,), (0.51,), (-3.0,)]),
    "√(x² + 1) - |x|": (
        sp.sqrt(X**2 + 1) - sp.Abs(X),
        [(1e8,), (-1e8,), (40.0,), (-40.0,), (1e-5,), (0.3,)],
    ),
    "log(x⁶/(exp(x²) - 1))": (
        sp.log(X**6 / (sp.exp(X**2) - 1)),
        [(40.0,), (-40.0,), (0.01,), (0.3,), (3.0,)],
    ),
    "erf(x)/x": (sp.erf(X) / X, [(s * v,) for v in (1e-160, 1e-8, 1e-3, 0.1, 0.3, 5.0) for s in (1, -1)]),
    "(x - sin(x))/x³": ((X - sp.sin(X)) / X**3, [(1e-160,), (-1e-110,), (1e-8,), (0.3,), (10.0,)]),
    "a spherical Bessel function": (
        (sp.sin(X) - X * sp.cos(X)) / X**2,
        [(1e-140,), (-1e-60,), (1e-8,), (1e-3,), (0.3,), (10.0,)],
    ),
    "(exp(x y) - 1)/x": (
        (sp.exp(X * Y) - 1) / X,
        [(1e-160, 1.0), (1e-8, 2.0), (1e-3, 0.5), (1e-3, 1e-8), (0.3, 0.7)],
    ),
    "(x - sin(x))/x²": ((X - sp.sin(X)) / X**2, [(1e-12,), (-1e-5,), (1e-3,), (0.3,), (10.0,)]),
    "log(p)/(p - 1)": (sp.log(P) / (P - 1), NEAR_ONE),
    "(p - 1)/log(p)": ((P - 1) / sp.log(P), NEAR_ONE),
    "1/log(p) - 1/(p - 1)": (1 / sp.log(P) - 1 / (P - 1), NEAR_ONE),
    "(p - 1 - log(p))/(p - 1)²": ((P - 1 - sp.log(P)) / (P - 1) ** 2, NEAR_ONE),
    "p log(p) - p + 1": (P * sp.log(P) - P + 1, NEAR_ONE),
    "(∛p - 1)/(p - 1)": ((sp.cbrt(P) - 1) / (P - 1), NEAR_ONE),
    "log(2 p)/(1 - 2 p)": (sp.log(2 * P) / (1 - 2 * P), [(p / 2,) for (p,) in NEAR_ONE]),
    "the logarithmic mean": ((P - Q) / sp.log(P / Q), [(3.03, 3.0), (2.97, 3.0), (0.2, 3.0), (5.0, 0.25)]),
    "p log(p/q) - p + q": (
        P * sp.log(P / Q) - P + Q,
        [(3.03, 3.0), (2.97, 3.0), (0.2, 3.0), (5.0, 0.25)],
    ),
    "coth(x) - 1/x": (sp.coth(X) - 1 / X, [(1e-160,), (-1e-8,), (1e-3,), (0.1,), (10.0,), (400.0,)]),
    "a multiple of the logistic density": (
        3 * sp.exp(X) / (sp.exp(2 * X) + 2 * sp.exp(X) + 1),
        [(0.3,), (30.0,), (-30.0,), (300.0,)],
    ),
    "weights that are inputs": (
        sp.log(P * sp.exp(X) + Q * sp.exp(Y)),
        [(0.3, 0.7, 1.0, 2.0), (0.3, 0.7, 30.0, 30.5), (0.3, 0.7, -300.0, -300.0), (2.0, 0.5, 1.0, 1.5)],
    ),
    "three exponentials": (
        X * (sp.exp((U + V) * X) - 1) / ((sp.exp(U * X) - 1) * (sp.exp(V * X) - 1)),
        [(1.0, 2.0, 1e-8), (0.3, 2.0, 1e-3), (0.4, 0.7, 1.0)],
    ),
}
VALUES: dict[str, tuple[sp.Expr, list[tuple[float, ...]]]] = {
    "a scaled tail of a product": (
        sp.exp(X**2 * Y**2) * sp.erfc(X * Y),
        [(30.0, 30.0), (5.0, 4.0), (-0.3, 0.2)],
    ),
    "a scaled tail": (sp.exp(X**2) * sp.erfc(X), [(40.0,), (10.0,), (-5.0,), (1e3,), (0.5,)]),
    "a scaled tail of a root": (
        sp.exp(P) * sp.erfc(sp.sqrt(P)),
        [(800.0,), (30.0,), (1.0,), (1e-3,)],
    ),
    "exponentials that cancel": (sp.exp(X**2) * sp.cos(X) * sp.exp(-(X**2)), [(40.0,), (2.0,)]),
    "a product beside its terms": ((X + Y) * U - X * U, [(1.0, 1e9, 1e-9), (0.3, 2.0, 0.7)]),
}
"""Those of which the second derivatives do not keep their digits; the first do for scaled tails."""
