"""The integrals in terms of which elliptic integrals and their derivatives are expressed."""

from __future__ import annotations

import sympy
from sympy.core.function import ArgumentIndexError

from symad.facts.functions import state
from symad.sympy_functions.special_functions import SpecialFunction


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
