"""Claims about functions of numbers whose truth is known by construction: identities, and changed ones.

Each identity names an interior point of its domain. A wrong claim is a right one to which a function is
added that is not 0 on an open set around this point.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import sympy as sp

import symad

x, y, z = sp.symbols("x y z", real=True)
p, q = sp.symbols("p q", positive=True)
n, m = sp.symbols("n m", integer=True)
k = sp.Symbol("k", integer=True, positive=True)


@dataclass(frozen=True)
class Claim:
    """A question, and if the answer is yes.

    ``sides`` are what a witness must show to differ. ``shows`` is False for what a sample may miss, so that
    a wrong claim may be measured.
    """

    name: str
    ask: Callable[..., symad.Certificate]
    right: bool
    sides: tuple[sp.Expr, sp.Expr] | None = None
    shows: bool = True


def equality(name, left, right, truth):
    """The claim that two expressions are equal."""
    return Claim(name, lambda **limits: symad.equal(left, right, **limits), truth, (left, right))


IDENTITIES = {  # name: left, right, the symbol that changes are made in, an interior point of the domain
    "logarithm of a square": (sp.log(x**2), 2 * sp.log(sp.Abs(x)), x, -3),
    "logarithm of a cube": (sp.log(x**3), 3 * sp.log(x), x, 2),
    "logarithm of a product": (sp.log(x * y), sp.log(sp.Abs(x)) + sp.log(sp.Abs(y)), x, 2),
    "logarithm of a quotient": (sp.log((1 + x) / (1 - x)), 2 * sp.atanh(x), x, sp.Rational(1, 3)),
    "root of a square": (sp.sqrt(x**2 * p), sp.Abs(x) * sp.sqrt(p), x, -2),
    "root of a product": (sp.sqrt(x) * sp.sqrt(y), sp.sqrt(x * y), x, 3),
    "nested root": (sp.sqrt(3 + 2 * sp.sqrt(2)) * x, (1 + sp.sqrt(2)) * x, x, 1),
    "cube root": ((p**3 * q**3) ** sp.Rational(1, 3), p * q, p, 2),
    "power of a power": ((p**x) ** y, p ** (x * y), x, 1),
    "powers of one base": (p**x * p**y, p ** (x + y), x, -1),
    "power by exp": (p**x, sp.exp(x * sp.log(p)), x, 2),
    "arctan of both": (sp.atan(p) + sp.atan(1 / p), sp.pi / 2, p, 2),
    "arctan of both signs": (sp.atan(x) + sp.atan(1 / x), sp.pi / 2 * sp.sign(x), x, -2),
    "arcsin and arccos": (sp.asin(x) + sp.acos(x), sp.pi / 2, x, sp.Rational(1, 3)),
    "sine of arccos": (sp.sin(sp.acos(x)), sp.sqrt(1 - x**2), x, sp.Rational(-1, 3)),
    "tangent of arcsin": (sp.tan(sp.asin(x)), x / sp.sqrt(1 - x**2), x, sp.Rational(1, 3)),
    "arcosh of cosh": (sp.acosh(sp.cosh(x)), sp.Abs(x), x, -1),
    "arsinh of sinh": (sp.asinh(sp.sinh(x)), x, x, 3),
    "half angle": (sp.tan(x / 2), sp.sin(x) / (1 + sp.cos(x)), x, 1),
    "product of cosines": (2 * sp.cos(x) * sp.cos(y), sp.cos(x + y) + sp.cos(x - y), x, 1),
    "five angles": (sp.sin(5 * x), 16 * sp.sin(x) ** 5 - 20 * sp.sin(x) ** 3 + 5 * sp.sin(x), x, 1),
    "Morrie": (sp.cos(x) * sp.cos(2 * x) * sp.cos(4 * x) * 8 * sp.sin(x), sp.sin(8 * x), x, 1),
    "Gudermann": (2 * sp.atan(sp.tanh(x / 2)), sp.atan(sp.sinh(x)), x, 1),
    "direction": (sp.atan2(y, x), 2 * sp.atan(y / (sp.sqrt(x**2 + y**2) + x)), x, 1),
    "hyperbolic": (sp.tanh(x + y), (sp.tanh(x) + sp.tanh(y)) / (1 + sp.tanh(x) * sp.tanh(y)), x, 1),
    "logistic": (1 / (1 + sp.exp(-x)), (1 + sp.tanh(x / 2)) / 2, x, 0),
    "softplus": (sp.log(1 + sp.exp(x)), x + sp.log(1 + sp.exp(-x)), x, 0),
    "error functions": (sp.erf(x) + sp.erfc(x), 1 + 0 * x, x, 1),
    "gamma's step": (sp.gamma(x + 1), x * sp.gamma(x), x, sp.Rational(5, 2)),
    "gamma's reflection": (sp.gamma(x) * sp.gamma(1 - x), sp.pi / sp.sin(sp.pi * x), x, sp.Rational(1, 3)),
    "gamma's doubling": (
        sp.gamma(p) * sp.gamma(p + sp.Rational(1, 2)), 2 ** (1 - 2 * p) * sp.sqrt(sp.pi) * sp.gamma(2 * p),
            p, 2),
    "digamma's step": (sp.digamma(x + 1), sp.digamma(x) + 1 / x, x, sp.Rational(1, 2)),
    "trigamma's step": (sp.polygamma(1, p + 1), sp.polygamma(1, p) - 1 / p**2, p, 1),
    "beta": (sp.beta(p, q), sp.gamma(p) * sp.gamma(q) / sp.gamma(p + q), p, 2),
    "Bessel of order 1/2": (
        sp.besselj(sp.Rational(1, 2), p), sp.sqrt(2 / (sp.pi * p)) * sp.sin(p), p, 2),
    "Bessel's recurrence": (sp.besselj(0, p) + sp.besselj(2, p), 2 * sp.besselj(1, p) / p, p, 2),
    "Lambert": (sp.LambertW(p * sp.exp(p)), p, p, 2),
    "whole part of both": (sp.floor(x) + sp.floor(-x), -1 + 0 * x, x, sp.Rational(1, 3)),
    "Hermite's whole parts": (
        sp.floor(3 * x), sp.floor(x) + sp.floor(x + sp.Rational(1, 3)) + sp.floor(x + sp.Rational(2, 3)), x,
            0),
    "ceiling": (sp.ceiling(x), sp.floor(x) + 1, x, sp.Rational(1, 2)),
    "halved whole parts": (sp.floor(sp.floor(x) / 2), sp.floor(x / 2), x, 5),
    "remainder": (sp.Mod(x, 3), x - 3 * sp.floor(x / 3), x, 5),
    "negative remainder": (sp.Mod(-x, 1), 1 - sp.Mod(x, 1), x, sp.Rational(1, 3)),
    "maximum and minimum": (sp.Max(x, y) * sp.Min(x, y), x * y, x, 3),
    "absolute product": (sp.Abs(x) * sp.Abs(y), sp.Abs(x * y), x, 3),
    "signs": (sp.sign(x) * sp.sign(y), sp.sign(x * y), x, 3),
    "median": (
        sp.Max(sp.Min(x, y), sp.Min(sp.Max(x, y), z)),
        x + y + z - sp.Max(x, y, z) - sp.Min(x, y, z), x, 3),
    "branches": (
        sp.Piecewise((x**2, x > 0), (-(x**2), True)), x * sp.Abs(x), x, -1),
    "clip": (sp.Min(sp.Max(x, -1), 1), (sp.Abs(x + 1) - sp.Abs(x - 1)) / 2, x, 0),
    "zero to the zero": (x**0 * y + 0**p, y + 0 * x, x, 2),
    "huge constant": ((x + 10**500) ** 2 - 10**1000 - 2 * 10**500 * x, x**2, x, 3),
    "geometric": ((1 - x**7) / (1 - x), sum(x**i for i in range(7)), x, 3),
    "symmetric quotients": (
        1 / ((x - y) * (x - z)) + 1 / ((y - x) * (y - z)) + 1 / ((z - x) * (z - y)), 0 * x, x, 3),
    "Lagrange": (
        (x**2 + y**2) * (z**2 + 1), (x * z + y) ** 2 + (x - y * z) ** 2, x, 3),
    "incomplete gamma": (sp.uppergamma(2, p), (1 + p) * sp.exp(-p), p, 2),
    "exponential integral": (sp.expint(2, p), sp.exp(-p) - p * sp.expint(1, p), p, 2),
    "dilogarithm": (
        sp.polylog(2, x) + sp.polylog(2, -x), sp.polylog(2, x**2) / 2, x, sp.Rational(1, 3)),
    "Chebyshev": (sp.chebyshevt(4, x), 8 * x**4 - 8 * x**2 + 1, x, 2),
    "Legendre": (sp.legendre(3, sp.cos(x)), (5 * sp.cos(x) ** 3 - 3 * sp.cos(x)) / 2, x, 2),
    "integer turns": (sp.cos(x + 2 * sp.pi * n), sp.cos(x), x, 2),
    "half turns": (sp.sin(x + sp.pi * n), (-1) ** n * sp.sin(x), x, 2),
    "even power": (sp.Abs(x) ** (2 * n), x ** (2 * n), x, -2),
    "parity": (sp.Mod(n**2, 4) * x, sp.Mod(n, 2) * x, x, 2),
    "Fermat": (sp.Mod(n**5 - n, 30) + x, x, x, 2),
    "triangles": (sp.floor((n**2 + n) / 2) + x, n * (n + 1) / 2 + x, x, 2),
}

TINY = sp.Rational(1, 10**12)
CHANGES = {  # added at the symbol s, near an interior point a; each is not 0 on an open set near a
    "a tiny constant": lambda s, a: sp.Rational(1, 10**60),
    "a relative 1e-9": lambda s, a: (s - a + 7) * sp.Rational(1, 10**9),
    "a tent": lambda s, a: sp.Max(0, TINY - sp.Abs(s - a)),
    "a step inside a gate": lambda s, a: sp.Piecewise((1, (s > a) & (s < a + TINY)), (0, True)),
    "a smooth bump": lambda s, a: sp.exp(-((s - a) ** 2) * 10**8),
    "a wave that is 0 at dyadic numbers": lambda s, a: sp.sin(sp.pi * 2**90 * s) / 1000,
    "a wave that is 0 at all short fractions": lambda s, a: sp.sin(sp.pi * sp.factorial(60) * 2**300 * s),
    "fractional parts of a large multiple": lambda s, a: sp.Mod(2**80 * s, 1),
    "roots at small integers and halves": lambda s, a: sp.prod([(2 * s - i) for i in range(-8, 9)]) * TINY,
    "a difference of saturated functions": lambda s, a: 1 - sp.tanh(500 + s**2),
    "a plateau of absolute values": lambda s, a: (
        sp.Abs(s - a) + sp.Abs(s - a - TINY) - sp.sqrt((2 * s - 2 * a - TINY) ** 2)),
    "two hidden signs": lambda s, a: sp.sqrt(sp.Max(0, (s - a) * (a + TINY - s))),
    "a large prime": lambda s, a: (2**61 - 1) * (2**89 - 1) * sp.Rational(1, 10**90),
}


def identities():
    """The identities themselves."""
    return [equality(name, left, right, True) for name, (left, right, _, _) in IDENTITIES.items()]


def changed(change):
    """Each identity with one change."""
    return [
        equality(f"{name}, {change}", left, right + CHANGES[change](s, sp.Rational(a)), False)
        for name, (left, right, s, a) in IDENTITIES.items()
    ]


FAMILIES = {"identities": identities} | {name: lambda name=name: changed(name) for name in CHANGES}
