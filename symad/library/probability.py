"""Functions of SciPy that SymPy lacks, as SymPy functions: scaled forms that keep their digits."""

from __future__ import annotations

from typing import Any

import sympy
from sympy.core.function import ArgumentIndexError

from symad.core.graph import Node
from symad.evaluation.numpy_names import NUMPY_NAMES
from symad.library.scalar_functions import ScalarFunction
from symad.ops.arrays.sources import constant
from symad.ops.elementwise.apply import apply
from symad.ops.elementwise.arithmetic import add, div, mul, neg, sub
from symad.ops.elementwise.powers import sqrt
from symad.ops.elementwise.selection import compare, logic, select


class gammainc(ScalarFunction):
    """P(a, x) = γ(a, x)/Γ(a), the distribution function of the gamma distribution."""

    nargs = 2
    total = False

    @classmethod
    def definition(cls, a: Any, x: Any) -> Any:
        """γ(a, x)/Γ(a)."""
        return sympy.lowergamma(a, x) / sympy.gamma(a)

    def fdiff(self, argindex: int = 2) -> Any:
        """x^(a−1) e^(−x)/Γ(a) by x; by a it is no elementary function."""
        if argindex != 2:
            raise ArgumentIndexError(self, argindex)
        return _gamma_density(*self.args)


class gammaincc(ScalarFunction):
    """Q(a, x) = Γ(a, x)/Γ(a) = 1 − P(a, x)."""

    nargs = 2
    total = False

    @classmethod
    def definition(cls, a: Any, x: Any) -> Any:
        """Γ(a, x)/Γ(a)."""
        return sympy.uppergamma(a, x) / sympy.gamma(a)

    def fdiff(self, argindex: int = 2) -> Any:
        """−x^(a−1) e^(−x)/Γ(a) by x; by a it is no elementary function."""
        if argindex != 2:
            raise ArgumentIndexError(self, argindex)
        return -_gamma_density(*self.args)


def _gamma_density(a: Any, x: Any) -> Any:
    return sympy.exp((a - 1) * sympy.log(x) - x - sympy.loggamma(a))


class ive(ScalarFunction):
    """e^(−|x|) I_v(x), the scaled Bessel function."""

    nargs = 2
    total = False

    @classmethod
    def definition(cls, v: Any, x: Any) -> Any:
        """e^(−|x|) I_v(x)."""
        return sympy.exp(-sympy.Abs(x)) * sympy.besseli(v, x)

    def fdiff(self, argindex: int = 2) -> Any:
        """(y_{v−1} + y_{v+1})/2 − sign(x) y_v by x (DLMF 10.29.1)."""
        if argindex != 2:
            raise ArgumentIndexError(self, argindex)
        v, x = self.args
        return (ive(v - 1, x) + ive(v + 1, x)) / 2 - sympy.sign(x) * self


class log_ndtr(ScalarFunction):
    """log Φ(x), the logarithm of the normal distribution function, which never underflows."""

    nargs = 1

    @classmethod
    def definition(cls, x: Any) -> Any:
        """log(erfc(−x/√2)/2)."""
        return sympy.log(sympy.erfc(-x / sympy.sqrt(2)) / 2)

    def fdiff(self, argindex: int = 1) -> Any:
        """φ(x)/Φ(x), as the exponential of a difference."""
        x = self.args[0]
        return sympy.exp(-(x**2) / 2 - self) / sympy.sqrt(2 * sympy.pi)


NUMPY_NAMES.update(
    {
        gammainc: "scipy.special.gammainc",
        gammaincc: "scipy.special.gammaincc",
        ive: "scipy.special.ive",
        log_ndtr: "scipy.special.log_ndtr",
    }
)


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
    """x log(x/y) − x + y, as `relative_entropy`."""
    return add(sub(relative_entropy(x, y), x), y)
