"""The ufuncs of scipy.special on nodes that are not one SymPy function: short formulas of others."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from functools import partial
from math import factorial

import sympy
from sympy.codegen.cfunctions import exp2, expm1, log1p
from sympy.functions.special.elliptic_integrals import elliptic_e

from symad.core.graph import Node
from symad.ops.basic.arithmetic import add, div, mul, neg, sub
from symad.ops.basic.sources import constant, constant_value
from symad.ops.elementwise.apply import apply
from symad.ops.elementwise.powers import power
from symad.ops.elementwise.selection import compare, select
from symad.sympy_functions.probability import (
    gammainc,
    gammaincc,
    ive,
    kl_divergence,
    log_ndtr,
    normal_quantile,
    relative_entropy,
    stdtr,
)
from symad.sympy_functions.scalar_functions import sigmoid, softplus, xlogy
from symad.sympy_functions.special_functions import hyp0f1, hyp1f1, hyp2f1, owens_t, voigt_profile

TWO = constant(2)
HALF = constant(Fraction(1, 2))


def square(a: Node) -> Node:
    """a²."""
    return power(a, TWO)


def cbrt(a: Node) -> Node:
    """The real cube root, with the sign of a."""
    return mul(apply(sympy.sign, a), power(apply(sympy.Abs, a), constant(Fraction(1, 3))))


def log_expit(a: Node) -> Node:
    """Log of the sigmoid: −softplus(−a)."""
    return neg(apply(softplus, neg(a)))


def logit(a: Node) -> Node:
    """log(a / (1 − a)), the inverse of the sigmoid."""
    return sub(apply(sympy.log, a), apply(log1p, neg(a)))


def normal_cdf(a: Node) -> Node:
    """Φ(a) = erfc(−a/√2)/2."""
    return mul(HALF, apply(sympy.erfc, neg(div(a, power(TWO, HALF)))))


def entropy(a: Node) -> Node:
    """−a log a, 0 at 0."""
    return neg(apply(xlogy, a, a))


def xlog1py(a: Node, b: Node) -> Node:
    """A log(1 + b), 0 where a = 0; by log1p where 1 + b would lose digits of b."""
    near = mul(a, apply(log1p, b))
    return select(compare("<", apply(sympy.Abs, b), HALF), near, apply(xlogy, a, add(constant(1), b)))


def log_beta(a: Node, b: Node) -> Node:
    """Log of the beta function, for positive arguments."""
    return sub(add(apply(sympy.loggamma, a), apply(sympy.loggamma, b)), apply(sympy.loggamma, add(a, b)))


def gamma_tail(a: Node, x: Node) -> Node:
    """Q(a, x) = 1 − P(a, x), the regularized incomplete gamma function above x."""
    return apply(gammaincc, a, x)


def poisson_cdf(k: Node, m: Node) -> Node:
    """P(N ≤ k) = Q(⌊k⌋ + 1, m)."""
    return gamma_tail(add(apply(sympy.floor, k), constant(1)), m)


def beta_cdf(a: Node, b: Node, x: Node) -> Node:
    """I_x(a, b)."""
    return apply(sympy.betainc_regularized, a, b, constant(0), x)


def f_cdf(a: Node, b: Node, x: Node) -> Node:
    """I_{ax/(ax + b)}(a/2, b/2)."""
    ax = mul(a, x)
    return beta_cdf(mul(HALF, a), mul(HALF, b), div(ax, add(ax, b)))


def hurwitz_zeta(s: Node, a: Node) -> Node:
    """ζ(s, a) = Σ_k (k + a)^(−s); (−1)^s ψ^(s−1)(a)/(s − 1)! for a known integer s above 1."""
    order = constant_value(s)
    if isinstance(order, (int, float, Fraction)) and order == int(order) and order > 1:
        count = int(order)
        scale = constant(Fraction((-1) ** count, factorial(count - 1)))
        return mul(scale, apply(sympy.polygamma, constant(count - 1), a))
    return apply(sympy.zeta, s, a)


def bessel(head: type[sympy.Basic], order: int, a: Node) -> Node:
    """A Bessel function of fixed order."""
    return apply(head, constant(order), a)


SCIPY: dict[str, Callable[..., Node]] = {
    "expit": partial(apply, sigmoid),
    "log_expit": log_expit,
    "logit": logit,
    "log1p": partial(apply, log1p),
    "expm1": partial(apply, expm1),
    "exp2": partial(apply, exp2),
    "xlogy": partial(apply, xlogy),
    "xlog1py": xlog1py,
    "entr": entropy,
    "gammaln": partial(apply, sympy.loggamma),
    "loggamma": partial(apply, sympy.loggamma),
    "psi": partial(apply, sympy.digamma),
    "betaln": log_beta,
    "ndtr": normal_cdf,
    "ndtri": normal_quantile,
    "gammainc": partial(apply, gammainc),
    "gammaincc": partial(apply, gammaincc),
    "betainc": beta_cdf,
    "betaincc": lambda a, b, x: sub(constant(1), beta_cdf(a, b, x)),
    "chdtr": lambda v, x: apply(gammainc, mul(HALF, v), mul(HALF, x)),
    "chdtrc": lambda v, x: gamma_tail(mul(HALF, v), mul(HALF, x)),
    "gdtr": lambda a, b, x: apply(gammainc, b, mul(a, x)),
    "gdtrc": lambda a, b, x: gamma_tail(b, mul(a, x)),
    "fdtr": f_cdf,
    "fdtrc": lambda a, b, x: sub(constant(1), f_cdf(a, b, x)),
    "stdtr": partial(apply, stdtr),
    "pdtr": poisson_cdf,
    "pdtrc": lambda k, m: sub(constant(1), poisson_cdf(k, m)),
    "cosm1": lambda a: mul(constant(-2), square(apply(sympy.sin, mul(HALF, a)))),
    "_riemann_zeta": partial(apply, sympy.zeta),  # what scipy.special.zeta of one argument calls
    "_zeta": hurwitz_zeta,  # what scipy.special.zeta and polygamma call
    "hyp0f1": partial(apply, hyp0f1),
    "hyp1f1": partial(apply, hyp1f1),
    "hyp2f1": partial(apply, hyp2f1),
    "owens_t": partial(apply, owens_t),
    "voigt_profile": partial(apply, voigt_profile),
    "poch": lambda a, m: apply(sympy.RisingFactorial, a, m),
    "iv": partial(apply, sympy.besseli),
    "ive": partial(apply, ive),
    "i0e": partial(bessel, ive, 0),
    "i1e": partial(bessel, ive, 1),
    "log_ndtr": partial(apply, log_ndtr),
    "rel_entr": relative_entropy,
    "kl_div": kl_divergence,
    "polygamma": partial(apply, sympy.polygamma),
    "ellipe": partial(apply, elliptic_e),
    "ellipeinc": partial(apply, elliptic_e),
    "expn": partial(apply, sympy.expint),
    "beta": partial(apply, sympy.beta),
    "cbrt": cbrt,
    "j0": partial(bessel, sympy.besselj, 0),
    "j1": partial(bessel, sympy.besselj, 1),
    "y0": partial(bessel, sympy.bessely, 0),
    "y1": partial(bessel, sympy.bessely, 1),
    "i0": partial(bessel, sympy.besseli, 0),
    "i1": partial(bessel, sympy.besseli, 1),
    "k0": partial(bessel, sympy.besselk, 0),
    "k1": partial(bessel, sympy.besselk, 1),
}
"""scipy.special's ufuncs that are not one SymPy function of the table, by name."""
