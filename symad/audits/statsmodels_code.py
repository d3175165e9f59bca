"""statsmodels: derivatives against the library's own values, as code.

Both methods are NumPy code. Each is traced, and the derivative of one is compared exactly with the other,
for all values of tuning constants such as the c of Tukey's biweight. Floats stand for the simple numbers of
which they are roundings, and guards such as 1e-20 stand for 0.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from itertools import pairwise
from typing import Any, NoReturn

import sympy

import symad
from symad.audits.claims import Claim, group
from symad.core.arrays import Array, ArrayLike
from symad.core.signatures import Inputs, Wrt

p, z = sympy.symbols("p z", real=True)
y, mu = sympy.symbols("y mu", real=True)
BETWEEN, POSITIVE = sympy.And(p > 0, p < 1), p > 0

LINKS: dict[str, tuple[sympy.Basic | None, sympy.Basic | None]] = {
    "Logit": (BETWEEN, None), "Probit": (BETWEEN, None), "Cauchy": (BETWEEN, None),
    "CLogLog": (BETWEEN, None), "LogLog": (BETWEEN, None), "NegativeBinomial": (POSITIVE, z < 0),
    "Log": (POSITIVE, None), "LogC": (BETWEEN, z < 0), "Identity": (None, None),
    "InversePower": (POSITIVE, z > 0), "InverseSquared": (POSITIVE, z > 0), "Sqrt": (POSITIVE, z > 0),
}  # fmt: skip
"""The conditions under which g(p) and its inverse are defined."""

NORMS: dict[str, tuple[str, ...]] = {
    "LeastSquares": (), "HuberT": ("t",), "RamsayE": ("a",), "AndrewWave": ("a",), "TrimmedMean": ("c",),
    "Hampel": ("a", "b", "c"), "TukeyBiweight": ("c",), "TukeyQuartic": ("c",), "StudentT": ("c",),
}  # fmt: skip
"""The tuning constants of robust norms."""


def compared(
    target: str,
    value: Callable[..., ArrayLike],
    derivative: Callable[..., ArrayLike],
    kind: str,
    inputs: Inputs | None,
    wrt: Wrt | None,
    where: sympy.Basic | None = None,
) -> Claim:
    """The claim that one function of the library is a derivative of another, compared as code."""
    options: dict[str, Any] = {"constants": "rounded"}
    if where is not None:
        options["where"] = where
    try:
        formula, candidate = symad.trace(value, inputs), symad.trace(derivative, inputs)
    except Exception as problem:  # the row says which line cannot be traced
        return Claim(target, kind, p, partial(_untraced, problem), source="library's own code")
    return Claim(target, kind, formula, candidate, wrt, options, source="library's own code")


def _untraced(problem: Exception, *values: object) -> NoReturn:
    raise problem


def _one(method: Callable[..., Array]) -> Callable[..., ArrayLike]:
    """A method of arrays as a function of one number."""
    import numpy as np

    return lambda value, *others: method(np.atleast_1d(value), *others)[0]


@group("statsmodels")
def link_code() -> Iterator[Claim]:
    """Two derivatives of each link and of its inverse."""
    from statsmodels.genmod.families import links as library

    for name, (domain, inverse_domain) in LINKS.items():
        link = getattr(library, name)()
        for of, symbol, where in (("__call__", p, domain), ("inverse", z, inverse_domain)):
            stem = "" if of == "__call__" else "inverse_"
            for method, kind in ((f"{stem}deriv", "gradient"), (f"{stem}deriv2", "hessian")):
                functions = getattr(link, of), getattr(link, method)
                yield compared(f"links.{name}.{method}, code", *functions, kind, [symbol], symbol, where)


def _method(norm: Any, name: str, scaled: bool = False) -> Callable[..., ArrayLike]:
    """A method of a robust norm as a function of z and the tuning constants, or z times this method."""

    def call(z: Array, *tuning: Array) -> Array:
        found = getattr(norm(*tuning), name)(z)
        return z * found if scaled else found

    return _one(call)


@group("statsmodels")
def norm_code() -> Iterator[Claim]:
    """ψ = ρ', ψ', and z times the weights, which is ψ, for all tuning constants."""
    from statsmodels.robust import norms as library

    for name, names in NORMS.items():
        constants = sympy.symbols(names, positive=True)
        inputs = [z, *constants]
        where = sympy.And(*(a < b for a, b in pairwise(constants)))
        method = partial(_method, getattr(library, name))
        domain = where if len(constants) > 1 else None
        for of, derivative in (("rho", "psi"), ("psi", "psi_deriv")):
            functions = method(of), method(derivative)
            yield compared(f"norms.{name}.{derivative}, code", *functions, "gradient", inputs, z, domain)
        if name != "AndrewWave":  # its weights branch on data, to treat zeros separately
            functions = method("psi"), method("weights", scaled=True)
            yield compared(f"norms.{name}.weights, code", *functions, "value", inputs, None, domain)


@group("statsmodels")
def family_code() -> Iterator[Claim]:
    """Derivatives of deviance and log-likelihood by the mean, −2 (y − μ)/V(μ) and (y − μ)/V(μ)."""
    from statsmodels.genmod.families import family as library

    positive = sympy.And(y > 0, mu > 0)
    families = {
        "Poisson": (library.Poisson(), positive),
        "Gaussian": (library.Gaussian(), None),
        "Gamma": (library.Gamma(), positive),
        "Binomial": (library.Binomial(), sympy.And(y > 0, y < 1, mu > 0, mu < 1)),
        "InverseGaussian": (library.InverseGaussian(), positive),
        "NegativeBinomial": (library.NegativeBinomial(alpha=2.0), positive),
        "Tweedie": (library.Tweedie(var_power=1.5, eql=True), positive),
    }
    for name, (family, where) in families.items():
        for method, factor in (("deviance", -2), ("loglike", 1)):

            def slope(y: Array, mu: Array, family: Any = family, factor: int = factor) -> Array:
                return factor * (y - mu) / family.variance(mu)

            functions = getattr(family, method), slope
            yield compared(f"families.{name}.{method}, code", *functions, "gradient", [y, mu], mu, where)


@group("statsmodels")
def variance_code() -> Iterator[Claim]:
    """The derivative of each variance function."""
    from statsmodels.genmod.families import varfuncs as library

    for name in ("constant", "mu", "mu_squared", "mu_cubed", "binary", "nbinom"):
        variance = getattr(library, name)
        functions = _one(variance), _one(variance.deriv)
        yield compared(f"varfuncs.{name}.deriv, code", *functions, "gradient", [p], p, BETWEEN)


@group("statsmodels")
def model_code() -> Iterator[Claim]:
    """Scores and Hessians of models of six observations."""
    import numpy as np
    from statsmodels.discrete import discrete_model as discrete
    from statsmodels.genmod.families import Poisson
    from statsmodels.genmod.generalized_linear_model import GLM

    design = np.column_stack([np.ones(6), [-1.0, -0.5, 0.25, 0.5, 1.0, 2.0]])
    counts, classes = np.array([0, 1, 0, 2, 3, 1]), np.array([0, 1, 2, 0, 1, 2])
    models = {
        "Logit": (discrete.Logit(counts > 0, design), 2, ("score", "hessian"), None),
        "Probit": (discrete.Probit(counts > 0, design), 2, ("score", "hessian"), _small),
        "MNLogit": (discrete.MNLogit(classes, design), 4, ("score", "hessian"), None),
        "Poisson": (discrete.Poisson(counts, design), 2, ("score", "hessian"), _small),
        "NegativeBinomial": (discrete.NegativeBinomial(counts, design), 3, ("score",), None),
        "GLM(Poisson)": (GLM(counts, design, family=Poisson()), 2, ("score",), None),
    }
    for name, (model, count, methods, where) in models.items():
        for method in methods:
            kind = {"score": "gradient", "hessian": "hessian"}[method]
            functions = model.loglike, getattr(model, method)
            yield compared(f"{name}.{method}, code", *functions, kind, [(count,)], None, where)


def _small(parameters: Array) -> Array:
    """The condition that exp(x'b) and Φ(x'b) are not clipped."""
    import numpy as np

    return np.abs(parameters) < 2
