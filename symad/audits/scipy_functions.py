"""SciPy: Rosenbrock's function with its derivatives, derivatives of Bessel functions, interpolators."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import numpy as np
import sympy

from symad.audits.claims import Claim, group
from symad.core.arrays import Array

x = sympy.Symbol("x", real=True)
p = sympy.Symbol("x", positive=True)


@group("scipy")
def rosenbrock() -> Iterator[Claim]:
    """Value, gradient and Hessian in four variables."""
    from scipy import optimize

    xs = sympy.symbols("x:4", real=True)
    formula = sympy.Add(*[100 * (b - a**2) ** 2 + (1 - a) ** 2 for a, b in pairwise(xs)])

    def slope(*values: float) -> tuple[float, ...]:
        return tuple(optimize.rosen_der(np.array(values)))

    yield Claim("optimize.rosen", "value", formula, lambda *v: optimize.rosen(np.array(v)))
    yield Claim("optimize.rosen_der", "gradient", formula, slope)
    yield Claim("optimize.rosen_hess", "hessian", formula, lambda *v: optimize.rosen_hess(np.array(v)))

    def product(*values: float) -> Array:
        return optimize.rosen_hess_prod(np.array(values[:4]), np.array(values[4:]))

    slopes = sympy.Matrix([formula]).jacobian(xs).T
    yield Claim("optimize.rosen_hess_prod", "jvp", slopes, lambda *v: product(*v)[:, None])


@group("scipy")
def bessel_functions() -> Iterator[Claim]:
    """jvp, yvp, ivp and kvp: derivatives of orders 0 to 2 of Bessel functions of order 0 to 2."""
    from scipy import special

    heads = {"jvp": sympy.besselj, "yvp": sympy.bessely, "ivp": sympy.besseli, "kvp": sympy.besselk}
    kinds = {0: "value", 1: "gradient", 2: "hessian"}
    for name, head in heads.items():
        function = getattr(special, name)
        for order in (0, 1, 2):
            for n, kind in kinds.items():

                def call(value: float, function: Any = function, order: int = order, n: int = n) -> float:
                    return function(order, value, n)

                yield Claim(f"special.{name}({order}, x, {n})", kind, head(order, p), call, p)


def _spline(curve: Any) -> Any:
    """Knots, coefficients and degree of a spline; `UnivariateSpline` stores FITPACK's privately."""
    return curve if hasattr(curve, "tck") else curve._eval_args


@group("scipy")
def polynomials() -> Iterator[Claim]:
    """Interpolating polynomials with their derivatives, against Lagrange's."""
    from scipy import interpolate

    knots, values = [0, 1, 2, 4], [1, -2, 3, 1]
    formula = sympy.interpolate(list(zip(knots, values, strict=True)), x)
    made = {
        "KroghInterpolator": interpolate.KroghInterpolator(knots, values),
        "BarycentricInterpolator": interpolate.BarycentricInterpolator(knots, values),
    }
    for name, curve in made.items():
        for n, kind in enumerate(("value", "gradient", "hessian")):

            def call(value: float, curve: Any = curve, n: int = n) -> float:
                return float(curve.derivative(value, n)) if n else float(curve(value))

            yield Claim(
                f"interpolate.{name}.derivative(x, {n})", kind, formula, call, x, {"where": sympy.Abs(x) < 5}
            )


@group("scipy")
def interpolators() -> Iterator[Claim]:
    """Interpolators against polynomials with their coefficients: value and two derivatives."""
    from scipy import interpolate

    knots, values = np.array([0.0, 0.5, 1.25, 2.0, 3.0]), np.array([1.0, -0.5, 0.25, 2.0, 1.5])
    made = {
        "CubicSpline": interpolate.CubicSpline(knots, values),
        "PchipInterpolator": interpolate.PchipInterpolator(knots, values),
        "Akima1DInterpolator": interpolate.Akima1DInterpolator(knots, values),
        "CubicHermiteSpline": interpolate.CubicHermiteSpline(knots, values, values[::-1]),
        "make_interp_spline": interpolate.make_interp_spline(knots, values, k=3),
        "UnivariateSpline": interpolate.UnivariateSpline(knots, values, s=0),
    }
    for name, curve in made.items():
        pieces = []
        piecewise = curve if hasattr(curve, "x") else interpolate.PPoly.from_spline(_spline(curve))
        for k, (start, end) in enumerate(pairwise(piecewise.x)):
            if start < end:
                t = x - sympy.Rational(float(start))
                powers = [sympy.Rational(float(c)) * t ** (3 - m) for m, c in enumerate(piecewise.c[:, k])]
                pieces.append((sympy.Add(*powers), x < sympy.Rational(float(end))))
        formula = sympy.Piecewise(*pieces[:-1], (pieces[-1][0], True))
        inside = {"where": sympy.And(x > 0, x < 3)}
        for n, kind in enumerate(("value", "gradient", "hessian")):

            def call(value: float, curve: Any = curve, n: int = n) -> float:
                return float(curve(value, n))

            yield Claim(
                f"interpolate.{name}(x, {n})", kind, formula, call, x, inside, source="piecewise polynomial"
            )
