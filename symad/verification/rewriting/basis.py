"""What one rewriting of graphs knows: units of coefficients, signs of nodes, winners of extremes."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

import sympy

from symad.core.graph import Node
from symad.verification.rewriting.vanishing import Vanishing
from symad.verification.terms.linear_terms import Terms, linear_terms
from symad.verification.terms.signs import weak_sign

MAX_REFINEMENT = 64
"""The maximum multiple of a unit, and refinement of it; beyond it a new class is opened."""

MAX_MULTIPLE = 8
"""The largest multiple of a unit that is looked for modulo 1."""


class Units:
    """Units of coefficients, refined as new coefficients come; start again when ``changed``."""

    def __init__(self) -> None:
        """The first class has the unit 1."""
        self.found: list[Fraction] = [Fraction(1)]
        self.changed = False
        self._apart: dict[Fraction, tuple[int, int]] = {}
        """What small multiples of a unit are modulo 1: the multiple, and the position of the unit."""

    def split(self, coefficient: Fraction) -> list[tuple[int, Fraction]]:
        """(k, u) with Σ k·u = coefficient, of different units u > 0.

        What differs from a small multiple of a unit by a whole number is no class of its own: 0.7 is
        1 − 0.3, and u**0.3, u**0.7 and u**−1.7 are u and u**0.3 to whole powers.
        """
        first = self._multiple(coefficient, 0)
        if first is not None:
            return [first]
        k, position = self._apart.get(coefficient % 1, (0, 0))
        whole = (coefficient - k * self.found[position]) / self.found[0]
        if k and abs(whole) <= MAX_REFINEMENT:
            return [part for part in ((k, self.found[position]), (int(whole), self.found[0])) if part[0]]
        for position in range(1, len(self.found)):
            multiple = self._multiple(coefficient, position)
            if multiple is not None:
                return [multiple]
        self.found.append(abs(coefficient))
        self._enter(len(self.found) - 1)
        return [(1 if coefficient > 0 else -1, abs(coefficient))]

    def _multiple(self, coefficient: Fraction, position: int) -> tuple[int, Fraction] | None:
        """A coefficient as a multiple of a unit, which is refined if need be; None if it is far from it."""
        ratio = coefficient / self.found[position]
        if max(abs(ratio.numerator), ratio.denominator) > MAX_REFINEMENT:
            return None
        if ratio.denominator > 1:
            self.found[position] /= ratio.denominator
            self.changed = True
            self._apart = {
                part: (k * ratio.denominator if at == position else k, at)
                for part, (k, at) in self._apart.items()
            }
            self._enter(position)
        return int(coefficient / self.found[position]), self.found[position]

    def _enter(self, position: int) -> None:
        """Note the small multiples of a unit, the smallest first."""
        for k in range(1, MAX_MULTIPLE + 1) if position else ():
            for turn in (k, -k):
                self._apart.setdefault(turn * self.found[position] % 1, (turn, position))


class Basis:
    """One rewriting of several graphs together, so that their units and winners agree.

    With ``split``, exponents and angles are taken apart at sums: exp(x + y) is exp(x) exp(y). Without, a
    sum is one argument, which agrees between graphs that compute it in different ways. With ``absolutes``,
    roots and logarithms of products are taken apart by absolute values: √(xy) = √|x| √|y|.
    """

    def __init__(self, split: bool = True, absolutes: bool = False) -> None:
        """Nothing is known yet."""
        self.split, self.absolutes = split, absolutes
        self.start_units()
        self.integers: frozenset[Node] = frozenset()
        """Inputs with integer values only."""
        self.rewrite: Callable[[Node], Node] = lambda node: node
        self._signs: dict[Node, int] = {}
        self._vanishing = Vanishing(self.weak_sign)
        self.opponents: set[tuple[Node, Node]] = set()
        """The indicators of the two arguments of an extreme, in both orders."""
        self.winners: dict[Node, Node | dict[Node, Node]] = {}
        """For each extreme the indicators of what it was taken over: by argument, or as one array."""

    def start_units(self) -> None:
        """Forget what coefficients were met."""
        self.exponents, self.angles, self.roots = Units(), Units(), Units()

    def terms(self, argument: Node) -> Terms:
        """An exponent or angle as Σ c·m."""
        return linear_terms(argument, sums=self.split)

    def sign(self, node: Node) -> int:
        """The sign of a node on an open dense set: 1, −1, or 0 where it is not known."""
        known = self.weak_sign(node)
        return 0 if known and self.may_vanish(node) else known

    def may_vanish(self, node: Node) -> bool:
        """Whether a node may be 0 on an open set."""
        return self._vanishing.may(node)

    def sign_head(self, node: Node) -> sympy.FunctionClass:
        """The sign function that fits a node: sign, or another of which the square need not be 1."""
        return self._vanishing.sign(node)

    def weak_sign(self, node: Node) -> int:
        """1 if a node is nowhere negative, −1 if nowhere positive, or 0 where that is not known."""
        return weak_sign(node, self._signs)

    def rewritten(self, node: Node) -> Node:
        """A node built of arguments that are in the basis already, itself in the basis."""
        return self.rewrite(node)

    def settled(self) -> bool:
        """Whether no unit was refined since this was last asked."""
        every = (self.exponents, self.angles, self.roots)
        changed = any(units.changed for units in every)
        for units in every:
            units.changed = False
        return not changed
