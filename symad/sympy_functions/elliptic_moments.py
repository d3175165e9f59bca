"""Elliptic integrals as one family, and their derivatives, which are integrals of it.

    I(p, r, q; n, z, m) = ∫_0^z sin^2p θ (1 − n sin² θ)^(−r) (1 − m sin² θ)^(−q − 1/2) dθ

contains F = I(0, 0, 0), E = I(0, 0, −1) and Π = I(0, 1, 0), and is closed under differentiation. The formulas
of tables, dK/dm = (E − (1 − m) K)/(2m (1 − m)), are differences of nearly equal terms divided by m: near m =
0, or n = m, they lose all digits. These integrands are positive, so no digits are lost.
"""

from __future__ import annotations

import sympy
from sympy.core.function import ArgumentIndexError
from sympy.functions.special.elliptic_integrals import elliptic_e, elliptic_f, elliptic_k, elliptic_pi

from symad.core.graph import Node
from symad.core.questions import Nodes, Tangent
from symad.facts.functions import state
from symad.ops.basic.arithmetic import div, mul, neg, sub
from symad.ops.basic.sources import constant
from symad.ops.elementwise.apply import apply, slope
from symad.ops.elementwise.powers import power, sqrt
from symad.sympy_functions.special_functions import SpecialFunction

# ---- the integrals in terms of which elliptic integrals and their derivatives are expressed ------


class elliptic_moment(SpecialFunction):
    """I(p, r, q; n, z, m), or with five arguments I(p, r, q; n, m), the complete integral up to z = π/2.

    p, r, q are integers, m sin² θ ≤ 1 and n sin² θ ≤ 1 on the whole range; NaN otherwise.
    """

    nargs = (5, 6)

    def fdiff(self, argindex: int = 6) -> sympy.Expr:
        """∂I/∂n = r I(p+1, r+1, q), ∂I/∂m = (q + 1/2) I(p+1, r, q+1); ∂I/∂z is the integrand."""
        p, r, q, n, *z, m = self.args
        if argindex == len(self.args):
            return (q + sympy.Rational(1, 2)) * elliptic_moment(p + 1, r, q + 1, n, *z, m)
        if argindex == 4:
            return r * elliptic_moment(p + 1, r + 1, q, n, *z, m)
        if argindex == 5:
            s = sympy.sin(z[0]) ** 2
            return s**p * (1 - n * s) ** -r * (1 - m * s) ** (-q - sympy.Rational(1, 2))
        raise ArgumentIndexError(self, argindex)


state(elliptic_moment, "symad.special.elliptic_moment")


def in_tables(p: int, r: int, q: int) -> bool:
    """True if the formulas cover an integral: all derivatives of K, E, F and Π consist of such integrals."""
    return r >= 0 and p >= 0 and q - max(p - r, 0) >= (0 if r else -1)


def moment(p: int, r: int, q: int, n: Node, *rest: Node) -> Node:
    """The integral as a node."""
    return apply(elliptic_moment, constant(p), constant(r), constant(q), n, *rest)


def _root(z: Node, m: Node) -> Node:
    """√(1 − m sin² z)."""
    return sqrt(sub(constant(1), mul(m, _squared_sine(z))))


def _squared_sine(z: Node) -> Node:
    return power(apply(sympy.sin, z), constant(2))


HALF = sympy.Rational(1, 2)


@slope(elliptic_k)
def elliptic_k_slope(y: Node, args: Nodes, i: int) -> Tangent:
    """I(1, 0, 1)/2, complete."""
    return mul(constant(HALF), moment(1, 0, 1, constant(0), *args))


@slope(elliptic_e)
def elliptic_e_slope(y: Node, args: Nodes, i: int) -> Tangent:
    """−I(1, 0, 0)/2 by m, √(1 − m sin² z) by z."""
    if i == len(args) - 1:
        return neg(mul(constant(HALF), moment(1, 0, 0, constant(0), *args)))
    return _root(*args)


@slope(elliptic_f)
def elliptic_f_slope(y: Node, args: Nodes, i: int) -> Tangent:
    """I(1, 0, 1)/2 by m, 1/√(1 − m sin² z) by z."""
    if i == 1:
        return mul(constant(HALF), moment(1, 0, 1, constant(0), *args))
    return div(constant(1), _root(*args))


@slope(elliptic_pi)
def elliptic_pi_slope(y: Node, args: Nodes, i: int) -> Tangent:
    """I(1, 2, 0) by n, I(1, 1, 1)/2 by m, the integrand by z."""
    if i == len(args) - 1:
        return mul(constant(HALF), moment(1, 1, 1, *args))
    if i == 0:
        return moment(1, 2, 0, *args)
    n, z, m = args
    return div(constant(1), mul(sub(constant(1), mul(n, _squared_sine(z))), _root(z, m)))
