"""One row for each real function of SymPy: how it is computed, and what its values are like."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import inf

import mpmath
import sympy
from sympy.codegen import cfunctions
from sympy.codegen.numpy_nodes import logaddexp
from sympy.functions.special.elliptic_integrals import elliptic_e, elliptic_f, elliptic_k, elliptic_pi

from symad.facts.functions import ALWAYS, EVEN, ODD, OF_ARGUMENT, OF_POSITIVE, sign_of, state

# ---- values on mpmath's numbers and on balls -----------------------------------------------------


def _nan(a: mpmath.mpf) -> mpmath.mpf:
    """NaN, as a ball."""
    return type(a)("nan")


def _step(a: mpmath.mpf) -> mpmath.mpf:
    sign = sign_of(a)
    return _nan(a) if sign is None else type(a)(sign)


def _floor(a: mpmath.mpf) -> mpmath.mpf:
    """The integer part; NaN where a ball holds an integer."""
    whole = a.floor()
    return whole if whole.is_exact() and not (a.contains_integer() and not a.is_exact()) else _nan(a)


def _is_pole(a: mpmath.mpf) -> bool:
    return bool(a.is_exact() and a.is_integer() and a <= 0)


def _is_zero(a: mpmath.mpf) -> bool:
    return sign_of(a) == 0


def _polygamma(n: mpmath.mpf, x: mpmath.mpf) -> mpmath.mpf:
    """ψ⁽ⁿ⁾(x) = (−1)ⁿ⁺¹ n! ζ(n + 1, x) for n ≥ 1."""
    if n == 0:
        return x.digamma()
    order = n.unique_fmpz() if n.is_integer() else None
    if order is None or order < 1 or not x > 0:
        return _nan(x)
    sign = 1 if order % 2 else -1
    return sign * n.fac() * (n + 1).zeta(x)


def _zeta(s: mpmath.mpf, a: mpmath.mpf | None = None) -> mpmath.mpf:
    return s.zeta() if a is None else s.zeta(a) if a > 0 else _nan(s)


def _betainc(regularized: int, a: mpmath.mpf, b: mpmath.mpf, low: mpmath.mpf, high: mpmath.mpf) -> mpmath.mpf:
    if not (a > 0 and b > 0 and low >= 0 and high <= 1):
        return _nan(a)
    return high.beta_lower(a, b, regularized) - (low.beta_lower(a, b, regularized) if low > 0 else 0)


def _spherical(bessel: Callable[..., mpmath.mpf], n: mpmath.mpf, x: mpmath.mpf, parity: int) -> mpmath.mpf:
    """√(π/2x) J or Y of order n + 1/2; for x < 0 and integers n by f(−x) = parity (−1)ⁿ f(x)."""
    turned = parity * (-1) ** int(n) if x < 0 and n == int(n) else 1
    x = abs(x) if x < 0 and n == int(n) else x
    return turned * mpmath.sqrt(mpmath.pi / (2 * x)) * bessel(n + mpmath.mpf(1) / 2, x)


def _beta(x: sympy.Expr, y: sympy.Expr | None = None) -> sympy.Expr:
    """Γ(x) Γ(y)/Γ(x + y)."""
    other = x if y is None else y
    return sympy.gamma(x) * sympy.gamma(other) / sympy.gamma(x + other)


SMOOTH: Mapping[str, bool] = {"total": True, "meromorphic": True}

# fmt: off
# ---- exponentials, logarithms, circular and hyperbolic functions -----------------------------------

state(sympy.exp, "numpy.exp", balls="exp", **SMOOTH, grows=True, monotone=1, sign=ALWAYS, range=(0, inf),
      limits=(0, inf), never_zero=True)
state(cfunctions.exp2, "numpy.exp2", **SMOOTH, grows=True, sign=ALWAYS, range=(0, inf), limits=(0, inf),
      never_zero=True, definition=lambda x: sympy.exp(x * sympy.log(2)))
state(cfunctions.expm1, "numpy.expm1", balls="expm1", **SMOOTH, grows=True, monotone=1, limits=(-1, inf),
      definition=lambda x: sympy.exp(x) - 1)
state(sympy.log, "numpy.log", balls=lambda a, *b: a.log() / b[0].log() if b else a.log(), monotone=1,
      above=0, ends={0: -inf}, limits=(None, inf), pole_at_zero=True,
      none_at=lambda a, *b: a < 0 or any(c <= 0 for c in b))
state(cfunctions.log1p, "numpy.log1p", balls="log1p", monotone=1, above=-1, ends={-1: -inf},
      limits=(None, inf), definition=lambda x: sympy.log(1 + x))
state(cfunctions.log2, "numpy.log2", digits=lambda a: mpmath.log(a) / mpmath.log(2), above=0,
      ends={0: -inf}, limits=(None, inf), pole_at_zero=True,
      definition=lambda x: sympy.log(x) / sympy.log(2))
state(cfunctions.log10, "numpy.log10", above=0, ends={0: -inf}, limits=(None, inf), pole_at_zero=True,
      definition=lambda x: sympy.log(x) / sympy.log(10))
state(logaddexp, "numpy.logaddexp", total=True,
      definition=lambda x, y: sympy.log(sympy.exp(x) + sympy.exp(y)))
state(cfunctions.Sqrt, digits=mpmath.sqrt, above=0, closed=True, definition=sympy.sqrt)
state(cfunctions.fma, definition=lambda x, y, z: x * y + z)
state(cfunctions.hypot, "numpy.hypot", definition=lambda x, y: sympy.sqrt(x**2 + y**2))
state(sympy.sin, "numpy.sin", balls="sin", **SMOOTH, parity=ODD, range=(-1, 1), limits=(None, None))
state(sympy.cos, "numpy.cos", balls="cos", **SMOOTH, parity=EVEN, range=(-1, 1), limits=(None, None))
state(sympy.tan, "numpy.tan", balls="tan", meromorphic=True, parity=ODD, limits=(None, None),
      definition=lambda x: sympy.sin(x) / sympy.cos(x))
state(sympy.cot, "symad.special.cot", balls="cot", meromorphic=True, parity=ODD, pole_at_zero=True,
      none_at=_is_zero, definition=lambda x: sympy.cos(x) / sympy.sin(x))
state(sympy.sec, "symad.special.sec", digits=mpmath.sec, balls="sec", meromorphic=True, parity=EVEN,
      definition=lambda x: 1 / sympy.cos(x))
state(sympy.csc, "symad.special.csc", balls="csc", meromorphic=True, parity=ODD, pole_at_zero=True,
      none_at=_is_zero, definition=lambda x: 1 / sympy.sin(x))
state(sympy.sinc, "symad.special.sinc", balls="sinc", **SMOOTH, parity=EVEN, limits=(0, 0),
      definition=lambda x: sympy.sin(x) / x)
state(sympy.asin, "numpy.arcsin", balls="asin", parity=ODD, sign=OF_ARGUMENT, monotone=1, size_below=1,
      closed=True)
state(sympy.acos, "numpy.arccos", balls="acos", sign=ALWAYS, monotone=-1, size_below=1, closed=True,
      definition=lambda x: sympy.pi / 2 - sympy.asin(x))
state(sympy.atan, "numpy.arctan", balls="atan", total=True, parity=ODD, sign=OF_ARGUMENT, monotone=1,
      limits=(-sympy.pi / 2, sympy.pi / 2))
state(sympy.atan2, "numpy.arctan2", balls=lambda y, x: type(y).atan2(y, x))
state(sympy.acot, "symad.special.acot", parity=ODD, limits=(0, 0),
      balls=lambda a: (1 / a).atan(), definition=lambda x: sympy.atan(1 / x))
state(sympy.asec, "symad.special.asec", size_above=1, closed=True, pole_at_zero=True,
      definition=lambda x: sympy.acos(1 / x))
state(sympy.acsc, "symad.special.acsc", parity=ODD, sign=OF_ARGUMENT, size_above=1, closed=True,
      pole_at_zero=True, definition=lambda x: sympy.asin(1 / x))
state(sympy.sinh, "numpy.sinh", balls="sinh", **SMOOTH, grows=True, monotone=1, parity=ODD, sign=OF_ARGUMENT,
      limits=(-inf, inf), definition=lambda x: (sympy.exp(x) - sympy.exp(-x)) / 2)
state(sympy.cosh, "numpy.cosh", balls="cosh", **SMOOTH, grows=True, parity=EVEN, sign=ALWAYS, range=(1, inf),
      limits=(inf, inf), never_zero=True, definition=lambda x: (sympy.exp(x) + sympy.exp(-x)) / 2)
state(sympy.tanh, "numpy.tanh", balls="tanh", **SMOOTH, monotone=1, parity=ODD, sign=OF_ARGUMENT,
      range=(-1, 1), limits=(-1, 1), definition=lambda x: (sympy.exp(2 * x) - 1) / (sympy.exp(2 * x) + 1))
state(sympy.coth, "symad.special.coth", balls="coth", meromorphic=True, parity=ODD, sign=OF_ARGUMENT,
      limits=(-1, 1), never_zero=True, pole_at_zero=True, none_at=_is_zero,
      definition=lambda x: 1 / sympy.tanh(x))
state(sympy.sech, "symad.special.sech", balls="sech", **SMOOTH, parity=EVEN, sign=ALWAYS, range=(0, 1),
      limits=(0, 0), never_zero=True, definition=lambda x: 1 / sympy.cosh(x))
state(sympy.csch, "symad.special.csch", balls="csch", meromorphic=True, parity=ODD, sign=OF_ARGUMENT,
      limits=(0, 0), never_zero=True, pole_at_zero=True, none_at=_is_zero,
      definition=lambda x: 1 / sympy.sinh(x))
state(sympy.asinh, "numpy.arcsinh", balls="asinh", total=True, monotone=1, parity=ODD, sign=OF_ARGUMENT,
      limits=(-inf, inf), definition=lambda x: sympy.log(x + sympy.sqrt(x**2 + 1)))
state(sympy.acosh, "numpy.arccosh", balls="acosh", sign=ALWAYS, range=(0, inf), above=1, closed=True,
      limits=(None, inf), definition=lambda x: sympy.log(x + sympy.sqrt(x - 1) * sympy.sqrt(x + 1)))
state(sympy.atanh, "numpy.arctanh", balls="atanh", parity=ODD, sign=OF_ARGUMENT, monotone=1, size_below=1,
      ends={1: inf, -1: -inf}, definition=lambda x: sympy.log((1 + x) / (1 - x)) / 2)
state(sympy.acoth, "symad.special.acoth", parity=ODD, sign=OF_ARGUMENT, size_above=1, limits=(0, 0),
      pole_at_zero=True, definition=lambda x: sympy.atanh(1 / x))
state(sympy.asech, "symad.special.asech", sign=ALWAYS, range=(0, inf), none_at=lambda a: a <= 0 or a > 1,
      definition=lambda x: sympy.acosh(1 / x))
state(sympy.acsch, "symad.special.acsch", parity=ODD, sign=OF_ARGUMENT, pole_at_zero=True, none_at=_is_zero,
      definition=lambda x: sympy.asinh(1 / x))

# ---- what jumps or has kinks -----------------------------------------------------------------------

state(sympy.Abs, "numpy.abs", digits=abs, balls=abs, total=True, parity=EVEN, sign=ALWAYS, range=(0, inf),
      limits=(inf, inf), kink="zero", definition=lambda x: sympy.sign(x) * x)
state(sympy.sign, "numpy.sign", balls=_step, total=True, parity=ODD, sign=OF_ARGUMENT, range=(-1, 1),
      limits=(-1, 1), kink="zero", jumps=True, flat=True)
state(sympy.Heaviside, "numpy.heaviside", digits=lambda x, at=0.5: mpmath.mpf(at if x == 0 else x > 0),
      balls=lambda a, at=None: (1 + _step(a)) / 2 if at is None or a != 0 else at, total=True, range=(0, 1),
      limits=(0, 1), kink="zero", jumps=True, flat=True)
state(sympy.floor, "numpy.floor", balls=_floor, total=True, limits=(-inf, inf), kink="whole", jumps=True,
      flat=True)
state(sympy.ceiling, "numpy.ceil", balls=lambda a: -_floor(-a), total=True, limits=(-inf, inf), kink="whole",
      jumps=True, flat=True, definition=lambda x: -sympy.floor(-x))
state(sympy.frac, "symad.special.frac", digits=lambda x: x - mpmath.floor(x), balls=lambda a: a - _floor(a),
      total=True, range=(0, 1), kink="whole", jumps=True, definition=lambda x: x - sympy.floor(x))
state(sympy.Mod, "numpy.mod", digits=lambda a, b: a - b * mpmath.floor(a / b),
      balls=lambda a, b: a - b * _floor(a / b), none_at=lambda a, b: _is_zero(b), kink="quotient", jumps=True,
      definition=lambda x, y: x - y * sympy.floor(x / y))
state(sympy.Max, "symad.special.maximum", digits=lambda *values: max(values), total=True, kink="ties")
state(sympy.Min, "symad.special.minimum", digits=lambda *values: min(values), total=True, kink="ties")

# ---- gamma, error and Bessel functions, integrals, polynomials ---------------------------------------

state(sympy.gamma, "scipy.special.gamma", balls="gamma", slow=True, meromorphic=True, grows=True,
      sign=OF_POSITIVE, limits=(None, inf), never_zero=True, pole_at_zero=True, none_at=_is_pole)
state(sympy.loggamma, "symad.special.loggamma", slow=True, above=0, ends={0: inf}, limits=(None, inf),
      digits=lambda x: mpmath.log(abs(mpmath.gamma(x))) if x > 0 else mpmath.nan,
      balls=lambda a: a.lgamma() if a > 0 else _nan(a), pole_at_zero=True)
state(sympy.digamma, "scipy.special.digamma", balls="digamma", slow=True, meromorphic=True,
      limits=(None, inf), pole_at_zero=True, none_at=_is_pole, definition=lambda x: sympy.polygamma(0, x))
state(sympy.polygamma, "symad.special.polygamma", balls=_polygamma, slow=True, meromorphic=True)
state(sympy.factorial, "symad.special.factorial", balls="fac", grows=True, sign=OF_POSITIVE,
      none_at=lambda a: _is_pole(a + 1), definition=lambda x: sympy.gamma(x + 1))
state(sympy.binomial, "scipy.special.binom", digits=mpmath.binomial,
      definition=lambda n, k: sympy.gamma(n + 1) / (sympy.gamma(k + 1) * sympy.gamma(n - k + 1)))
state(sympy.beta, "symad.special.beta", digits=lambda x, *y: mpmath.beta(x, *(y or (x,))), definition=_beta)
state(sympy.lowergamma, "symad.special.lowergamma", digits=lambda s, x: mpmath.gammainc(s, 0, x),
      balls=lambda s, x: x.gamma_lower(s), slow=True)
state(sympy.uppergamma, "symad.special.uppergamma", digits=lambda s, x: mpmath.gammainc(s, x),
      balls=lambda s, x: x.gamma_upper(s), slow=True)
state(sympy.betainc, "symad.special.betainc", digits=lambda a, b, low, high: mpmath.betainc(a, b, low, high),
      balls=lambda *values: _betainc(0, *values), slow=True)
state(sympy.betainc_regularized, "symad.special.betainc_regularized",
      digits=lambda a, b, low, high: mpmath.betainc(a, b, low, high, regularized=True),
      balls=lambda *values: _betainc(1, *values), slow=True)
state(sympy.erf, "scipy.special.erf", balls="erf", slow=True, **SMOOTH, monotone=1, parity=ODD,
      sign=OF_ARGUMENT, range=(-1, 1), limits=(-1, 1))
state(sympy.erfc, "scipy.special.erfc", balls="erfc", slow=True, **SMOOTH, monotone=-1, sign=ALWAYS,
      range=(0, 2), limits=(2, 0), definition=lambda x: 1 - sympy.erf(x))
state(sympy.erfi, "scipy.special.erfi", balls="erfi", slow=True, **SMOOTH, grows=True, parity=ODD,
      sign=OF_ARGUMENT, limits=(-inf, inf))
state(sympy.erfinv, "scipy.special.erfinv", balls="erfinv", slow=True, parity=ODD, sign=OF_ARGUMENT,
      size_below=1, ends={1: inf, -1: -inf})
state(sympy.erfcinv, "scipy.special.erfcinv", digits=lambda x: mpmath.erfinv(1 - x), balls="erfcinv",
      slow=True, ends={0: inf, 2: -inf}, none_at=lambda a: a < 0 or a > 2)
state(sympy.besselj, "scipy.special.jv", balls=lambda n, x: x.bessel_j(n), slow=True)
state(sympy.bessely, "scipy.special.yv", balls=lambda n, x: x.bessel_y(n), slow=True, pole_at_zero=True,
      none_at=lambda n, x: x <= 0)
state(sympy.besseli, "symad.special.besseli", balls=lambda n, x: x.bessel_i(n), slow=True, sign=OF_POSITIVE)
state(sympy.besselk, "scipy.special.kv", balls=lambda n, x: x.bessel_k(n), slow=True, sign=OF_POSITIVE,
      pole_at_zero=True, none_at=lambda n, x: x <= 0)
state(sympy.jn, "symad.special.spherical_jn", digits=lambda n, x: _spherical(mpmath.besselj, n, x, 1))
state(sympy.yn, "symad.special.spherical_yn", digits=lambda n, x: _spherical(mpmath.bessely, n, x, -1))
state(sympy.airyai, "symad.special.airyai", balls="airy_ai", slow=True)
state(sympy.airybi, "symad.special.airybi", balls="airy_bi", slow=True)
state(sympy.airyaiprime, "symad.special.airyaiprime")
state(sympy.airybiprime, "symad.special.airybiprime",
      definition=lambda x: (1 / sympy.pi + sympy.airyaiprime(x) * sympy.airybi(x)) / sympy.airyai(x))
state(sympy.Ei, "scipy.special.expi", balls="ei", slow=True)
state(sympy.E1, "scipy.special.exp1", definition=lambda x: sympy.expint(1, x))
state(sympy.Si, "symad.special.sine_integral", balls="si", slow=True, **SMOOTH, parity=ODD, sign=OF_ARGUMENT)
state(sympy.Ci, "symad.special.cosine_integral", balls="ci", slow=True, pole_at_zero=True)
state(sympy.Shi, "symad.special.sinh_integral", balls="shi", slow=True, **SMOOTH, grows=True, parity=ODD,
      sign=OF_ARGUMENT)
state(sympy.Chi, "symad.special.cosh_integral", balls="chi", slow=True, pole_at_zero=True)
state(sympy.li, balls="li", slow=True)
state(sympy.expint, "symad.special.expint", digits=mpmath.expint, balls=lambda s, x: x.expint(s), slow=True,
      pole_at_zero=True)
state(sympy.fresnels, "symad.special.fresnels", balls="fresnel_s", slow=True, total=True, parity=ODD)
state(sympy.fresnelc, "symad.special.fresnelc", balls="fresnel_c", slow=True, total=True, parity=ODD)
state(sympy.LambertW, "symad.special.lambertw", sign=OF_POSITIVE)
state(sympy.zeta, "scipy.special.zeta", balls=_zeta, slow=True)
state(sympy.polylog, "symad.special.polylog", slow=True,
      balls=lambda s, x: x.polylog(s) if x < 1 else _nan(x),
      digits=lambda s, x: mpmath.re(mpmath.polylog(s, x)) if mpmath.isfinite(x) else mpmath.nan)
state(elliptic_k, "scipy.special.ellipk")
state(elliptic_e, "symad.special.elliptic_e")
state(elliptic_f, "scipy.special.ellipkinc")
state(elliptic_pi, "symad.special.elliptic_pi")
state(sympy.legendre, "scipy.special.eval_legendre")
state(sympy.chebyshevt, "scipy.special.eval_chebyt")
state(sympy.chebyshevu, "scipy.special.eval_chebyu")
state(sympy.hermite, "symad.special.hermite")
state(sympy.laguerre, "symad.special.laguerre", digits=lambda n, x: mpmath.laguerre(n, 0, x))
state(sympy.assoc_laguerre, "scipy.special.eval_genlaguerre")
state(sympy.assoc_legendre, "symad.special.assoc_legendre")
state(sympy.gegenbauer, "scipy.special.eval_gegenbauer")
state(sympy.jacobi, "scipy.special.eval_jacobi")
# fmt: on
