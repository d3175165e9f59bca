"""Common units of rational coefficients.

exp(x/2), exp(x) and exp(3x/2) are powers of one another: the first, second and third power of
exp(x/2). The unit of a set of coefficients is the largest rational of which all are integer
multiples. Coefficients that would need large multiples form classes of their own.
"""

from __future__ import annotations

from fractions import Fraction

MAX_REFINEMENT = 64
"""The maximum multiple of a unit, and refinement of it; beyond it a new class is opened."""


class Units:
    """Units of coefficients, refined as new coefficients come; start again when ``changed``."""

    def __init__(self) -> None:
        """The first class has the unit 1."""
        self.found: list[Fraction] = [Fraction(1)]
        self.changed = False

    def split(self, coefficient: Fraction) -> tuple[int, Fraction]:
        """(k, u) with coefficient = k·u and u the unit of its class, positive."""
        for position, unit in enumerate(self.found):
            ratio = coefficient / unit
            if max(abs(ratio.numerator), ratio.denominator) > MAX_REFINEMENT:
                continue
            if ratio.denominator > 1:
                self.found[position] = unit / ratio.denominator
                self.changed = True
            return int(coefficient / self.found[position]), self.found[position]
        self.found.append(abs(coefficient))
        return (1 if coefficient > 0 else -1), abs(coefficient)
