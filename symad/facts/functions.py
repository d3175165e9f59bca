"""One row for each real function of numbers: how it is computed, and what its values are like.

All other parts ask `fact`: evaluation for values, sparsity and stable forms for zeros and parity,
verification for signs, ranges, limits, domains, poles and jumps. What a row leaves out weakens an answer and
makes none wrong. symad's own functions state their rows where they are defined, and a user's function is a
row like any other (`symad.register_function`). tests/symad/evaluation/test_facts.py compares each row with
values to 50 digits. Facts of functions of several arguments speak of the last one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from math import inf
from operator import methodcaller
from typing import Any

import mpmath
import sympy
from sympy.codegen import cfunctions
from sympy.codegen.numpy_nodes import logaddexp
from sympy.functions.special.elliptic_integrals import elliptic_e, elliptic_f, elliptic_k, elliptic_pi

EVEN, ODD = 1, -1
ALWAYS, OF_ARGUMENT, OF_POSITIVE = "always", "argument", "positive arguments"
"""Values that are positive; that have their argument's sign; that are positive where all arguments are."""


@dataclass(frozen=True)
class Facts:
    """What is known of one function f; zeros and signs hold but for isolated points."""

    floats: str = ""
    """The function of NumPy, SciPy or `symad.special` that computes it, with its module."""
    digits: Callable[..., Any] | None = None
    """f on mpmath's numbers, where mpmath has another name, convention or domain; may be the user's."""
    balls: Callable[..., Any] | None = None
    """f on balls of Arb."""
    slow: bool = False
    """Whether mpmath sums slow series, so that Arb is asked first."""
    users: Callable[..., Any] | None = None
    """A user's implementation on floats."""
    parity: int = 0
    """`EVEN`, `ODD`, or 0."""
    sign: str = ""
    """`ALWAYS`, `OF_ARGUMENT`, `OF_POSITIVE`."""
    range: tuple[float, float] = (-inf, inf)
    """Bounds of all values."""
    monotone: int = 0
    """1 if f increases wherever it is defined, −1 if it decreases."""
    total: bool = False
    """Whether f has a finite value and finite slopes at all real arguments."""
    grows: bool = False
    """Whether f grows as an exponential does, and overflows at ordinary arguments."""
    never_zero: bool = False
    meromorphic: bool = False
    """Whether f has no branch points: what is 0 on one piece is 0 on all, around the poles."""
    limits: tuple[float | None, float | None] | None = None
    """The limits at −∞ and ∞; None for no value."""
    above: int | None = None
    """f has values for x > ``above`` only."""
    size_above: int | None = None
    size_below: int | None = None
    """The same of |x|."""
    closed: bool = False
    """Whether f has a value at the end of its domain."""
    ends: Mapping[int, float] = field(default_factory=dict)
    """Where f is infinite at an end of its domain."""
    none_at: Callable[..., bool] | None = None
    """Whether balls are shown to be where f has no value, apart from the domain above."""
    pole_at_zero: bool = False
    """Whether f has no value at 0."""
    kink: str = ""
    """Where f is not analytic inside its domain: "zero", "whole" numbers, a whole "quotient", "ties"."""
    jumps: bool = False
    """Whether f is discontinuous there."""
    flat: bool = False
    """Whether f is constant between its jumps."""

    def outside(self, *values: Any) -> bool:
        """Whether balls are shown to be where f has no real value."""
        if self.none_at is not None and self.none_at(*values):
            return True
        if len(values) > 1:
            return False
        (a,) = values
        return bool(
            (self.above is not None and a < self.above)
            or (self.size_above is not None and abs(a) < self.size_above)
            or (self.size_below is not None and abs(a) > self.size_below)
        )

    @property
    def exact(self) -> bool:
        """Whether f only chooses a value, a sign or an integer, so that nothing is rounded."""
        return bool(self.kink) and (self.flat or not self.jumps)

    @property
    def saturates(self) -> bool:
        """Whether f is nearly constant, or out of range, but for arguments of ordinary size."""
        return self.grows or any(end is not None and abs(end) < inf for end in self.limits or ())


NOTHING = Facts()

FACTS: dict[type[sympy.Basic], Facts] = {}
"""All rows; only `state` adds to them."""


def fact(head: type[sympy.Basic] | None) -> Facts:
    """The row of a SymPy head; of a head without one, and of None, nothing is known."""
    return NOTHING if head is None else FACTS.get(head, NOTHING)


def state(head: type[sympy.Basic], floats: str = "", /, **known: Any) -> None:
    """Add to the row of a head. ``balls`` may be the name of a method of balls."""
    if floats:
        known["floats"] = floats
    if isinstance(known.get("balls"), str):
        known["balls"] = methodcaller(known["balls"])
    FACTS[head] = replace(fact(head), **known)


def float_names() -> dict[type[sympy.Basic], str]:
    """The functions that NumPy, SciPy or `symad.special` computes, and the names."""
    return {head: row.floats for head, row in FACTS.items() if row.floats}


@cache
def is_zero_at_zero(head: type[sympy.Basic]) -> bool:
    """Whether SymPy knows that a function of one argument is 0 at 0."""
    try:
        return head(sympy.S.Zero) is sympy.S.Zero
    except TypeError:  # another number of arguments
        return False


# ---- values on mpmath's numbers and on balls -----------------------------------------------------


def _nan(a: Any) -> Any:
    """NaN, as a ball."""
    return type(a)("nan")


def sign_of(a: Any) -> int | None:
    """The sign of a ball; None where it is not known."""
    if a > 0:
        return 1
    if a < 0:
        return -1
    return 0 if a.is_exact() and a == 0 else None


def _step(a: Any) -> Any:
    sign = sign_of(a)
    return _nan(a) if sign is None else type(a)(sign)


def _floor(a: Any) -> Any:
    """The integer part; NaN where a ball holds an integer."""
    whole = a.floor()
    return whole if whole.is_exact() and not (a.contains_integer() and not a.is_exact()) else _nan(a)


def _is_pole(a: Any) -> bool:
    return bool(a.is_exact() and a.is_integer() and a <= 0)


def _is_zero(a: Any) -> bool:
    return sign_of(a) == 0


def _polygamma(n: Any, x: Any) -> Any:
    """ψ⁽ⁿ⁾(x) = (−1)ⁿ⁺¹ n! ζ(n + 1, x) for n ≥ 1."""
    if n == 0:
        return x.digamma()
    order = n.unique_fmpz() if n.is_integer() else None
    if order is None or order < 1 or not x > 0:
        return _nan(x)
    sign = 1 if order % 2 else -1
    return sign * n.fac() * (n + 1).zeta(x)


def _zeta(s: Any, a: Any = None) -> Any:
    return s.zeta() if a is None else s.zeta(a) if a > 0 else _nan(s)


def _betainc(regularized: int, a: Any, b: Any, low: Any, high: Any) -> Any:
    if not (a > 0 and b > 0 and low >= 0 and high <= 1):
        return _nan(a)
    return high.beta_lower(a, b, regularized) - (low.beta_lower(a, b, regularized) if low > 0 else 0)


def _spherical(bessel: Callable[..., mpmath.mpf], n: mpmath.mpf, x: mpmath.mpf, parity: int) -> mpmath.mpf:
    """√(π/2x) J or Y of order n + 1/2; for x < 0 and integers n by f(−x) = parity (−1)ⁿ f(x)."""
    turned = parity * (-1) ** int(n) if x < 0 and n == int(n) else 1
    x = abs(x) if x < 0 and n == int(n) else x
    return turned * mpmath.sqrt(mpmath.pi / (2 * x)) * bessel(n + mpmath.mpf(1) / 2, x)


SMOOTH: Mapping[str, bool] = {"total": True, "meromorphic": True}

# fmt: off
# ---- exponentials, logarithms, circular and hyperbolic functions -----------------------------------

state(sympy.exp, "numpy.exp", balls="exp", **SMOOTH, grows=True, monotone=1, sign=ALWAYS, range=(0, inf),
      limits=(0, inf), never_zero=True)
state(cfunctions.exp2, "numpy.exp2", **SMOOTH, grows=True, sign=ALWAYS, range=(0, inf), limits=(0, inf),
      never_zero=True)
state(cfunctions.expm1, "numpy.expm1", balls="expm1", **SMOOTH, grows=True, monotone=1, limits=(-1, inf))
state(sympy.log, "numpy.log", balls=lambda a, *b: a.log() / b[0].log() if b else a.log(), monotone=1,
      above=0, ends={0: -inf}, limits=(None, inf), pole_at_zero=True,
      none_at=lambda a, *b: a < 0 or any(c <= 0 for c in b))
state(cfunctions.log1p, "numpy.log1p", balls="log1p", monotone=1, above=-1, ends={-1: -inf},
      limits=(None, inf))
state(cfunctions.log2, "numpy.log2", digits=lambda a: mpmath.log(a) / mpmath.log(2), above=0,
      ends={0: -inf}, limits=(None, inf), pole_at_zero=True)
state(cfunctions.log10, "numpy.log10", above=0, ends={0: -inf}, limits=(None, inf), pole_at_zero=True)
state(logaddexp, "numpy.logaddexp", total=True)
state(cfunctions.hypot, "numpy.hypot")
state(sympy.sin, "numpy.sin", balls="sin", **SMOOTH, parity=ODD, range=(-1, 1), limits=(None, None))
state(sympy.cos, "numpy.cos", balls="cos", **SMOOTH, parity=EVEN, range=(-1, 1), limits=(None, None))
state(sympy.tan, "numpy.tan", balls="tan", meromorphic=True, parity=ODD, limits=(None, None))
state(sympy.cot, "symad.special.cot", balls="cot", meromorphic=True, parity=ODD, pole_at_zero=True,
      none_at=_is_zero)
state(sympy.sec, "symad.special.sec", digits=mpmath.sec, balls="sec", meromorphic=True, parity=EVEN)
state(sympy.csc, "symad.special.csc", balls="csc", meromorphic=True, parity=ODD, pole_at_zero=True,
      none_at=_is_zero)
state(sympy.sinc, "symad.special.sinc", balls="sinc", **SMOOTH, parity=EVEN, limits=(0, 0))
state(sympy.asin, "numpy.arcsin", balls="asin", parity=ODD, sign=OF_ARGUMENT, monotone=1, size_below=1,
      closed=True)
state(sympy.acos, "numpy.arccos", balls="acos", sign=ALWAYS, monotone=-1, size_below=1, closed=True)
state(sympy.atan, "numpy.arctan", balls="atan", total=True, parity=ODD, sign=OF_ARGUMENT, monotone=1,
      limits=(-sympy.pi / 2, sympy.pi / 2))
state(sympy.atan2, "numpy.arctan2", balls=lambda y, x: type(y).atan2(y, x))
state(sympy.acot, "symad.special.acot", parity=ODD, limits=(0, 0))
state(sympy.asec, "symad.special.asec", size_above=1, closed=True, pole_at_zero=True)
state(sympy.acsc, "symad.special.acsc", parity=ODD, sign=OF_ARGUMENT, size_above=1, closed=True,
      pole_at_zero=True)
state(sympy.sinh, "numpy.sinh", balls="sinh", **SMOOTH, grows=True, monotone=1, parity=ODD, sign=OF_ARGUMENT,
      limits=(-inf, inf))
state(sympy.cosh, "numpy.cosh", balls="cosh", **SMOOTH, grows=True, parity=EVEN, sign=ALWAYS, range=(1, inf),
      limits=(inf, inf), never_zero=True)
state(sympy.tanh, "numpy.tanh", balls="tanh", **SMOOTH, monotone=1, parity=ODD, sign=OF_ARGUMENT,
      range=(-1, 1), limits=(-1, 1))
state(sympy.coth, "symad.special.coth", balls="coth", meromorphic=True, parity=ODD, sign=OF_ARGUMENT,
      limits=(-1, 1), never_zero=True, pole_at_zero=True, none_at=_is_zero)
state(sympy.sech, "symad.special.sech", balls="sech", **SMOOTH, parity=EVEN, sign=ALWAYS, range=(0, 1),
      limits=(0, 0), never_zero=True)
state(sympy.csch, "symad.special.csch", balls="csch", meromorphic=True, parity=ODD, sign=OF_ARGUMENT,
      limits=(0, 0), never_zero=True, pole_at_zero=True, none_at=_is_zero)
state(sympy.asinh, "numpy.arcsinh", balls="asinh", total=True, monotone=1, parity=ODD, sign=OF_ARGUMENT,
      limits=(-inf, inf))
state(sympy.acosh, "numpy.arccosh", balls="acosh", sign=ALWAYS, range=(0, inf), above=1, closed=True,
      limits=(None, inf))
state(sympy.atanh, "numpy.arctanh", balls="atanh", parity=ODD, sign=OF_ARGUMENT, monotone=1, size_below=1,
      ends={1: inf, -1: -inf})
state(sympy.acoth, "symad.special.acoth", parity=ODD, sign=OF_ARGUMENT, size_above=1, limits=(0, 0),
      pole_at_zero=True)
state(sympy.asech, "symad.special.asech", sign=ALWAYS, range=(0, inf), none_at=lambda a: a <= 0 or a > 1)
state(sympy.acsch, "symad.special.acsch", parity=ODD, sign=OF_ARGUMENT, pole_at_zero=True, none_at=_is_zero)

# ---- what jumps or has kinks -----------------------------------------------------------------------

state(sympy.Abs, "numpy.abs", digits=abs, balls=abs, total=True, parity=EVEN, sign=ALWAYS, range=(0, inf),
      limits=(inf, inf), kink="zero")
state(sympy.sign, "numpy.sign", balls=_step, total=True, parity=ODD, sign=OF_ARGUMENT, range=(-1, 1),
      limits=(-1, 1), kink="zero", jumps=True, flat=True)
state(sympy.Heaviside, "numpy.heaviside", digits=lambda x, at=0.5: mpmath.mpf(at if x == 0 else x > 0),
      balls=lambda a, at=None: (1 + _step(a)) / 2 if at is None or a != 0 else at, total=True, range=(0, 1),
      limits=(0, 1), kink="zero", jumps=True, flat=True)
state(sympy.floor, "numpy.floor", balls=_floor, total=True, limits=(-inf, inf), kink="whole", jumps=True,
      flat=True)
state(sympy.ceiling, "numpy.ceil", balls=lambda a: -_floor(-a), total=True, limits=(-inf, inf), kink="whole",
      jumps=True, flat=True)
state(sympy.frac, "symad.special.frac", digits=lambda x: x - mpmath.floor(x), balls=lambda a: a - _floor(a),
      total=True, range=(0, 1), kink="whole", jumps=True)
state(sympy.Mod, "numpy.mod", digits=lambda a, b: a - b * mpmath.floor(a / b),
      balls=lambda a, b: a - b * _floor(a / b), none_at=lambda a, b: _is_zero(b), kink="quotient", jumps=True)
state(sympy.Max, "symad.special.maximum", digits=lambda *values: max(values), total=True, kink="ties")
state(sympy.Min, "symad.special.minimum", digits=lambda *values: min(values), total=True, kink="ties")

# ---- gamma, error and Bessel functions, integrals, polynomials ---------------------------------------

state(sympy.gamma, "scipy.special.gamma", balls="gamma", slow=True, meromorphic=True, grows=True,
      sign=OF_POSITIVE, limits=(None, inf), never_zero=True, pole_at_zero=True, none_at=_is_pole)
state(sympy.loggamma, "symad.special.loggamma", slow=True, above=0, ends={0: inf}, limits=(None, inf),
      digits=lambda x: mpmath.log(abs(mpmath.gamma(x))) if x > 0 else mpmath.nan,
      balls=lambda a: a.lgamma() if a > 0 else _nan(a), pole_at_zero=True)
state(sympy.digamma, "scipy.special.digamma", balls="digamma", slow=True, meromorphic=True,
      limits=(None, inf), pole_at_zero=True, none_at=_is_pole)
state(sympy.polygamma, "symad.special.polygamma", balls=_polygamma, slow=True, meromorphic=True)
state(sympy.factorial, "symad.special.factorial", balls="fac", grows=True, sign=OF_POSITIVE,
      none_at=lambda a: _is_pole(a + 1))
state(sympy.binomial, "scipy.special.binom", digits=mpmath.binomial)
state(sympy.beta, "symad.special.beta", digits=lambda x, *y: mpmath.beta(x, *(y or (x,))))
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
      range=(0, 2), limits=(2, 0))
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
state(sympy.airybiprime, "symad.special.airybiprime")
state(sympy.Ei, "scipy.special.expi", balls="ei", slow=True)
state(sympy.E1, "scipy.special.exp1")
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
