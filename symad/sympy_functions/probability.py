"""Functions of SciPy that SymPy lacks, as SymPy functions: scaled forms that keep their digits."""

from __future__ import annotations

import mpmath
import sympy
from flint import arb
from sympy.codegen import cfunctions
from sympy.core.function import ArgumentIndexError

from symad.core.arrays import Array, Number
from symad.core.graph import Node
from symad.facts.functions import state
from symad.numbers.function_values import by_arb
from symad.ops.basic.arithmetic import add, div, mul, neg, sub
from symad.ops.basic.sources import constant
from symad.ops.elementwise.apply import apply
from symad.ops.elementwise.powers import sqrt
from symad.ops.elementwise.selection import compare, logic, select
from symad.sympy_functions.scalar_functions import ScalarFunction, xlogy


class gammainc(ScalarFunction):
    """P(a, x) = γ(a, x)/Γ(a), the distribution function of the gamma distribution."""

    nargs = 2
    total = False

    @classmethod
    def definition(cls, a: Array, x: Array) -> sympy.Expr:
        """γ(a, x)/Γ(a)."""
        return sympy.lowergamma(a, x) / sympy.gamma(a)

    def fdiff(self, argindex: int = 2) -> sympy.Expr:
        """x^(a−1) e^(−x)/Γ(a) by x; by a it is not an elementary function."""
        if argindex != 2:
            raise ArgumentIndexError(self, argindex)
        return _gamma_density(*self.args)


class gammaincc(ScalarFunction):
    """Q(a, x) = Γ(a, x)/Γ(a) = 1 − P(a, x)."""

    nargs = 2
    total = False

    @classmethod
    def definition(cls, a: sympy.Expr, x: sympy.Expr) -> sympy.Expr:
        """Γ(a, x)/Γ(a)."""
        return sympy.uppergamma(a, x) / sympy.gamma(a)

    def fdiff(self, argindex: int = 2) -> sympy.Expr:
        """−x^(a−1) e^(−x)/Γ(a) by x; by a it is not an elementary function."""
        if argindex != 2:
            raise ArgumentIndexError(self, argindex)
        return -_gamma_density(*self.args)


def _gamma_density(a: sympy.Expr, x: sympy.Expr) -> sympy.Expr:
    """The density: by factors for a number a, so that it has derivatives at x = 0, else by logarithms."""
    if a.is_number:
        return x ** (a - 1) * sympy.exp(-x) / sympy.gamma(a)
    return sympy.exp(xlogy(a - 1, x) - x - sympy.loggamma(a))


class ive(ScalarFunction):
    """e^(−|x|) I_v(x), the scaled Bessel function."""

    nargs = 2
    total = False

    @classmethod
    def definition(cls, v: Array, x: Array) -> sympy.Expr:
        """e^(−|x|) I_v(x)."""
        return sympy.exp(-sympy.Abs(x)) * sympy.besseli(v, x)

    def fdiff(self, argindex: int = 2) -> sympy.Expr:
        """(y_{v−1} + y_{v+1})/2 − sign(x) y_v by x (DLMF 10.29.1)."""
        if argindex != 2:
            raise ArgumentIndexError(self, argindex)
        v, x = self.args
        return (ive(v - 1, x) + ive(v + 1, x)) / 2 - sympy.sign(x) * self


class log_ndtr(ScalarFunction):
    """log Φ(x), the logarithm of the normal distribution function, which never underflows."""

    nargs = 1

    @classmethod
    def definition(cls, x: sympy.Expr) -> sympy.Expr:
        """log(erfc(−x/√2)/2)."""
        return sympy.log(sympy.erfc(-x / sympy.sqrt(2)) / 2)

    def fdiff(self, argindex: int = 1) -> sympy.Expr:
        """φ(x)/Φ(x)."""
        return normal_ratio(self.args[0])


class normal_ratio(ScalarFunction):
    """h(x) = φ(x)/Φ(x), the slope of log Φ: Mills' ratio at −x, inverted."""

    nargs = 1

    @classmethod
    def definition(cls, x: sympy.Expr) -> sympy.Expr:
        """exp(−x²/2)/(√(π/2) erfc(−x/√2))."""
        return sympy.exp(-(x**2) / 2) / (sympy.sqrt(sympy.pi / 2) * sympy.erfc(-x / sympy.sqrt(2)))

    def fdiff(self, argindex: int = 1) -> sympy.Expr:
        """h' = −h (h + x)."""
        return -self * normal_excess(self.args[0])


class normal_excess(ScalarFunction):
    """h(x) + x, which is positive, and about 1/|x| for large negative x, where the two terms cancel."""

    nargs = 1

    @classmethod
    def definition(cls, x: sympy.Expr) -> sympy.Expr:
        """The sum."""
        return normal_ratio.definition(x) + x

    def fdiff(self, argindex: int = 1) -> sympy.Expr:
        """1 − h (h + x)."""
        return 1 - normal_ratio(self.args[0]) * self


class stdtr(ScalarFunction):
    """F_ν(t), the distribution function of Student's t with ν degrees of freedom."""

    nargs = 2
    total = False

    @classmethod
    def definition(cls, v: sympy.Expr, t: sympy.Expr) -> sympy.Expr:
        """I_z(ν/2, 1/2)/2 below 0 and 1 minus that above, z = ν/(ν + t²)."""
        half = sympy.S.Half
        tail = sympy.betainc_regularized(v / 2, half, 0, v / (v + t**2)) / 2
        return sympy.Piecewise((tail, t < 0), (1 - tail, True))

    def fdiff(self, argindex: int = 2) -> sympy.Expr:
        """(1 + t²/ν)^(−(ν+1)/2)/(√ν B(ν/2, 1/2)) by t; by ν it is not an elementary function."""
        if argindex != 2:
            raise ArgumentIndexError(self, argindex)
        v, t = self.args
        scale = sympy.sqrt(v) * sympy.beta(v / 2, sympy.S.Half)
        return sympy.exp(-(v + 1) / 2 * cfunctions.log1p(t**2 / v)) / scale


state(
    gammainc,
    "scipy.special.gammainc",
    digits=lambda a, x: _regularized(a, 0, x) if x >= 0 else mpmath.nan,
    balls=lambda a, x: x.gamma_lower(a, regularized=1) if a > 0 and x > 0 else arb("nan"),
    slow=True,
)
state(
    gammaincc,
    "scipy.special.gammaincc",
    digits=lambda a, x: _regularized(a, x, mpmath.inf) if x >= 0 else mpmath.nan,
    balls=lambda a, x: x.gamma_upper(a, regularized=1) if a > 0 and x > 0 else arb("nan"),
    slow=True,
)
state(ive, "symad.special.ive")
state(log_ndtr, "scipy.special.log_ndtr")
state(normal_ratio, "symad.special.normal_ratio")
state(normal_excess, "symad.special.normal_excess")
state(stdtr, "scipy.special.stdtr", digits=lambda v, t: _student(v, t))


def _regularized(a: Array, low: Number, high: Number) -> Number:
    return mpmath.gammainc(a, low, high, regularized=True) if a > 0 else mpmath.nan


def _student(v: mpmath.mpf, t: mpmath.mpf) -> mpmath.mpf:
    if not v > 0:
        return mpmath.nan
    values = tuple(map(mpmath.mpf, (v / 2, 0.5, 0, v / (v + t * t))))
    inside = by_arb(sympy.betainc_regularized, values)
    if inside is None:
        inside = mpmath.betainc(*values, regularized=True)
    return inside / 2 if t < 0 else 1 - inside / 2


# ---- formulas on nodes --------------------------------------------------------------------------


def normal_quantile(p: Node) -> Node:
    """Φ⁻¹(p) = −√2 erfcinv(2p)."""
    return neg(mul(sqrt(constant(2)), apply(sympy.erfcinv, mul(constant(2), p))))


def relative_entropy(x: Node, y: Node) -> Node:
    """x log(x/y) for x, y > 0; 0 for x = 0 ≤ y; infinite elsewhere."""
    zero = constant(0)
    inside = logic("and", compare(">", x, zero), compare(">", y, zero))
    empty = logic("and", compare("==", x, zero), compare(">=", y, zero))
    value = mul(x, apply(sympy.log, div(x, y)))
    return select(inside, value, select(empty, zero, constant(float("inf"))))


def kl_divergence(x: Node, y: Node) -> Node:
    """x log(x/y) − x + y, with the cases of `relative_entropy`."""
    return add(sub(relative_entropy(x, y), x), y)
