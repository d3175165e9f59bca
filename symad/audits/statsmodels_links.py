"""statsmodels: links and variances of generalized linear models, norms of robust ones.

Formulas are those of McCullagh and Nelder, "Generalized Linear Models" (1989), section 2.2.4, and of the
docstrings of `statsmodels.robust.norms` (Huber 1981; Hampel et al. 1986).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import sympy
from sympy import Abs, Piecewise, Rational, cos, erf, exp, log, pi, sqrt

from symad.audits.claims import Claim, group
from symad.core.arrays import Array

p = sympy.Symbol("p", positive=True)
z = sympy.Symbol("z", real=True)
BETWEEN = p < 1

LINKS: dict[str, tuple[sympy.Expr, Any, sympy.Expr, Any]] = {
    "Logit": (log(p) - log(1 - p), BETWEEN, 1 / (1 + exp(-z)), None),
    "Probit": (sqrt(2) * sympy.erfinv(2 * p - 1), BETWEEN, (1 + erf(z / sqrt(2))) / 2, None),
    "Cauchy": (sympy.tan(pi * (p - Rational(1, 2))), BETWEEN, sympy.atan(z) / pi + Rational(1, 2), None),
    "CLogLog": (log(-log(1 - p)), BETWEEN, 1 - exp(-exp(z)), z < 2),
    "LogLog": (-log(-log(p)), BETWEEN, exp(-exp(-z)), z > -2),
    "NegativeBinomial": (log(p / (p + 1)), None, 1 / (exp(-z) - 1), z < 0),
    "Log": (log(p), None, exp(z), None),
    "LogC": (log(1 - p), BETWEEN, 1 - exp(z), z < 0),
    "Identity": (p, None, z, None),
    "InversePower": (1 / p, None, 1 / z, z > 0),
    "InverseSquared": (1 / p**2, None, 1 / sqrt(z), z > 0),
    "Sqrt": (sqrt(p), None, z**2, z > 0),
}
"""g(p), its domain, its inverse, and the domain of the inverse (where it is not rounded to 1)."""


def _options(where: sympy.Basic | None) -> dict[str, sympy.Basic]:
    return {} if where is None else {"where": where}


@group("statsmodels")
def links() -> Iterator[Claim]:
    """Value, two derivatives, the inverse and its two derivatives of every link."""
    from statsmodels.genmod.families import links as library

    for name, (formula, domain, inverse, inverse_domain) in LINKS.items():
        link = getattr(library, name)()
        for method, kind in (("__call__", "value"), ("deriv", "gradient"), ("deriv2", "hessian")):
            function = getattr(link, method)
            yield Claim(f"links.{name}.{method}", kind, formula, _scalar(function), p, _options(domain))
        inverses = {"inverse": "value", "inverse_deriv": "gradient", "inverse_deriv2": "hessian"}
        for method, kind in inverses.items():
            function = getattr(link, method)
            options = _options(inverse_domain)
            yield Claim(f"links.{name}.{method}", kind, inverse, _scalar(function), z, options)


def _scalar(function: Callable[[Array], Array]) -> Callable[[float], float]:
    """A function of arrays as a function of one number; the result may be an array of one element."""

    def call(value: float) -> float:
        import numpy as np

        return np.asarray(function(np.array([float(value)])), dtype=float).reshape(-1)[0]

    return call


VARIANCES: dict[str, tuple[sympy.Expr, Any]] = {
    "constant": (sympy.Integer(1) + 0 * p, None),
    "mu": (p, None),
    "mu_squared": (p**2, None),
    "mu_cubed": (p**3, None),
    "binary": (p * (1 - p), BETWEEN),
    "nbinom": (p + p**2, None),
}


@group("statsmodels")
def variances() -> Iterator[Claim]:
    """The variance of each family as a function of its mean, and the derivative."""
    from statsmodels.genmod.families import varfuncs as library

    for name, (formula, domain) in VARIANCES.items():
        function = getattr(library, name)
        yield Claim(f"varfuncs.{name}", "value", formula, _scalar(function), p, _options(domain))
        if formula.has(p) and hasattr(function, "deriv"):
            derivative = _scalar(function.deriv)
            yield Claim(f"varfuncs.{name}.deriv", "gradient", formula, derivative, p, _options(domain))


def _number(text: str) -> sympy.Expr:
    return sympy.Float(float(text))


def _norms() -> dict[str, sympy.Expr]:
    size, t, c = Abs(z), _number("1.345"), _number("2.0")
    a, b, d = _number("2.0"), _number("4.0"), _number("8.0")
    wave, tukey, ramsay = _number("1.339"), _number("4.685"), _number("0.3")
    quartic, student = _number("3.61752"), _number("2.3849")
    u = (z / quartic) ** 4
    return {
        "LeastSquares": z**2 / 2,
        "HuberT": Piecewise((z**2 / 2, size <= t), (t * size - t**2 / 2, True)),
        "RamsayE": (1 - exp(-ramsay * size) * (1 + ramsay * size)) / ramsay**2,
        "AndrewWave": Piecewise((wave**2 * (1 - cos(z / wave)), size <= wave * pi), (2 * wave**2, True)),
        "TrimmedMean": Piecewise((z**2 / 2, size <= c), (c**2 / 2, True)),
        "Hampel": Piecewise(
            (z**2 / 2, size <= a),
            (a * size - a**2 / 2, size <= b),
            (a * (b + d - a) / 2 - a * (d - size) ** 2 / (d - b) / 2, size <= d),
            (a * (b + d - a) / 2, True),
        ),
        "TukeyBiweight": Piecewise(
            ((1 - (1 - (z / tukey) ** 2) ** 3) * tukey**2 / 6, size <= tukey), (tukey**2 / 6, True)
        ),
        "TukeyQuartic": Piecewise(
            (z**2 / 2 * (1 - 2 * u / 3 + u**2 / 5), size <= quartic), (quartic**2 * Rational(4, 15), True)
        ),
        "StudentT": 2 * student**2 * (log(4 + (z / student) ** 2) - log(4)),
    }


@group("statsmodels")
def norms() -> Iterator[Claim]:
    """ρ, ψ = ρ', ψ' and the weights ψ(z)/z of every robust norm."""
    from statsmodels.robust import norms as library

    for name, formula in _norms().items():
        norm = getattr(library, name)()
        yield Claim(f"norms.{name}.rho", "value", formula, _scalar(norm.rho), z)
        yield Claim(f"norms.{name}.psi", "gradient", formula, _scalar(norm.psi), z)
        yield Claim(f"norms.{name}.psi_deriv", "hessian", formula, _scalar(norm.psi_deriv), z)
        slope = sympy.piecewise_fold(formula.diff(z)) if formula.has(Piecewise) else formula.diff(z)
        weights = slope.subs(sympy.Derivative(Abs(z), z), sympy.sign(z)) / z
        yield Claim(f"norms.{name}.weights", "value", weights, _scalar(norm.weights), z)
