"""SciPy: Rosenbrock's function with its derivatives, interpolators, and special functions.

Of special functions SciPy has few derivatives of its own. The claims are the relations of the DLMF
(dlmf.nist.gov) that users apply, computed by SciPy's functions: 2F1' = (ab/c) 2F1(a + 1, b + 1; c + 1),
ζ'(s, q) by q = −s ζ(s + 1, q), and so on; and values against definitions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any

import numpy as np
import sympy
from sympy.functions.special.elliptic_integrals import elliptic_e, elliptic_k

from symad import functions
from symad.audits.claims import Claim, group
from symad.core.arrays import Array
from symad.sympy_functions.probability import stdtr

# ---- SciPy's special functions -------------------------------------------------------------------


x, h, t = sympy.symbols("x h t", real=True)
a, b, c, m, q, s, sigma, gamma = sympy.symbols("a b c m q s sigma gamma", positive=True)
SMALL = sympy.And(a < 4, b < 4, c > sympy.S.Half, c < 4, x > -1, x < sympy.Rational(3, 4))
UNIT = sympy.And(m > 0, m < sympy.Rational(9, 10))

Row = tuple[str, Any, list[Any], Any, Callable[..., Any], Callable[..., Any]]
"""Name, formula, arguments in order, domain, SciPy's function, and its derivative by the last argument."""


def _without(condition: sympy.Basic, *symbols: sympy.Symbol) -> sympy.Basic:
    """The parts of a condition that do not contain these symbols."""
    return sympy.And(*[part for part in condition.args if not part.free_symbols & set(symbols)])


def _rows() -> Iterator[Row]:
    from scipy import special as f

    def voigt(x: float, s: float, g: float) -> tuple[float, ...]:
        z = (x + 1j * g) / (s * np.sqrt(2))
        w = f.wofz(z)
        slope = (2j / np.sqrt(np.pi) - 2 * z * w) / (s * np.sqrt(2))
        scale, profile = s * np.sqrt(2 * np.pi), w.real / (s * np.sqrt(2 * np.pi))
        by_x, by_gamma = slope.real / scale, -slope.imag / scale
        return by_x, -(profile + x * by_x + g * by_gamma) / s, by_gamma

    def owens(h: float, a: float) -> tuple[float, float]:
        density = np.exp(-h * h / 2) / np.sqrt(2 * np.pi)
        return -density * f.erf(a * h / np.sqrt(2)) / 2, np.exp(-h * h * (1 + a * a) / 2) / (
            2 * np.pi * (1 + a * a)
        )

    yield (
        "owens_t",
        functions.owens_t(h, x),
        [h, x],
        sympy.And(h > -5, h < 5, x > -5, x < 5),
        f.owens_t,
        owens,
    )
    voigt_box = sympy.And(x > -5, x < 5, sigma > sympy.Rational(1, 4), sigma < 4, gamma < 4)
    profile = functions.voigt_profile(x, sigma, gamma)
    yield ("voigt_profile", profile, [x, sigma, gamma], voigt_box, f.voigt_profile, voigt)
    yield (
        "hyp2f1", functions.hyp2f1(a, b, c, x), [a, b, c, x], SMALL, f.hyp2f1,
        lambda a, b, c, x: a * b / c * f.hyp2f1(a + 1, b + 1, c + 1, x),
    )  # fmt: skip
    yield (
        "hyp1f1", functions.hyp1f1(a, c, x), [a, c, x], _without(SMALL, b), f.hyp1f1,
        lambda a, c, x: a / c * f.hyp1f1(a + 1, c + 1, x),
    )  # fmt: skip
    yield (
        "hyp0f1", functions.hyp0f1(c, x), [c, x], _without(SMALL, a, b), f.hyp0f1,
        lambda c, x: f.hyp0f1(c + 1, x) / c,
    )  # fmt: skip
    large = sympy.And(s > sympy.Rational(3, 2), s < 6, q < 6)
    yield "zeta", sympy.zeta(s, q), [s, q], large, f.zeta, lambda s, q: -s * f.zeta(s + 1, q)
    shapes = sympy.And(a > sympy.Rational(1, 4), a < 6, q < 6)

    def density(a: float, q: float) -> float:
        return float(np.exp((a - 1) * np.log(q) - q - f.gammaln(a)))

    yield "gammainc", functions.gammainc(a, q), [a, q], shapes, f.gammainc, density
    yield "gammaincc", functions.gammaincc(a, q), [a, q], shapes, f.gammaincc, lambda a, q: -density(a, q)
    yield (
        "betainc", sympy.betainc_regularized(a, b, 0, m), [a, b, m], sympy.And(UNIT, a < 6, b < 6), f.betainc,
        lambda a, b, m: m ** (a - 1) * (1 - m) ** (b - 1) / f.beta(a, b),
    )  # fmt: skip
    yield (
        "stdtr", stdtr(a, t), [a, t], sympy.And(a > 1, a < 9, t > -6, t < 6), f.stdtr,
        lambda a, t: (1 + t * t / a) ** (-(a + 1) / 2) / (np.sqrt(a) * f.beta(a / 2, 0.5)),
    )  # fmt: skip
    yield (
        "ellipk", elliptic_k(m), [m], UNIT, f.ellipk,
        lambda m: (f.ellipe(m) - (1 - m) * f.ellipk(m)) / (2 * m * (1 - m)),
    )  # fmt: skip
    yield "ellipe", elliptic_e(m), [m], UNIT, f.ellipe, lambda m: (f.ellipe(m) - f.ellipk(m)) / (2 * m)
    for n in (1, 2, 3):
        yield (
            f"spherical_jn({n}, x)", sympy.jn(n, q), [q], q < 9, lambda v, n=n: f.spherical_jn(n, v),
            lambda v, n=n: f.spherical_jn(n, v, derivative=True),
        )  # fmt: skip
        yield (
            f"spherical_yn({n}, x)", sympy.yn(n, q), [q], q < 9, lambda v, n=n: f.spherical_yn(n, v),
            lambda v, n=n: f.spherical_yn(n, v, derivative=True),
        )  # fmt: skip
        yield (
            f"polygamma({n}, x)", sympy.polygamma(n, q), [q], q < 9, lambda v, n=n: f.polygamma(n, v),
            lambda v, n=n: f.polygamma(n + 1, v),
        )  # fmt: skip
    near = sympy.And(x > -5, x < 3)
    yield "airy Ai", sympy.airyai(x), [x], near, lambda v: f.airy(v)[0], lambda v: f.airy(v)[1]
    yield "airy Bi", sympy.airybi(x), [x], near, lambda v: f.airy(v)[2], lambda v: f.airy(v)[3]
    yield "sici Si", sympy.Si(x), [x], near, lambda v: f.sici(v)[0], lambda v: np.sin(v) / v
    yield (
        "fresnel S",
        sympy.fresnels(x),
        [x],
        near,
        lambda v: f.fresnel(v)[0],
        lambda v: np.sin(np.pi * v * v / 2),
    )
    yield "erfinv", sympy.erfinv(x), [x], sympy.And(x > -1, x < 1), f.erfinv, (
        lambda v: np.sqrt(np.pi) / 2 * np.exp(f.erfinv(v) ** 2)
    )  # fmt: skip
    yield "lambertw", sympy.LambertW(q), [q], None, lambda v: f.lambertw(v).real, (
        lambda v: 1 / (v + np.exp(f.lambertw(v).real))
    )  # fmt: skip


@group("scipy")
def special_functions() -> Iterator[Claim]:
    """The value of each, and the derivative relation."""
    for name, formula, inputs, where, value, slope in _rows():
        options = {"inputs": inputs} if where is None else {"inputs": inputs, "where": where}
        by = inputs if name in ("owens_t", "voigt_profile") else inputs[-1]
        yield Claim(f"special.{name}", "value", formula, value, None, options, source="definition")
        yield Claim(
            f"special.{name}, derivative", "gradient", formula, slope, by, options, source="definition"
        )


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
