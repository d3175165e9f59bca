"""Nodes as rational functions of their atoms, cancelled and factored.

1 − 1/(1 + E) is E/(1 + E), and 1 − ((E − 1)/(E + 1))² is 4E/(E + 1)²: logarithms and roots of such
sums fall apart only after that. Each step is an identity of rational functions, so it holds wherever
both sides are defined. Large expressions are left as they are.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import flint
import sympy
from sympy.polys.domains import ZZ
from sympy.polys.fields import FracElement, FracField
from sympy.polys.orderings import lex

from symad.core.graph import Node
from symad.ops.basic.arithmetic import Add, Mul, add, mul
from symad.ops.basic.sources import constant
from symad.ops.elementwise.apply import Apply
from symad.ops.elementwise.powers import Pow, power
from symad.verification.terms.linear_terms import Terms, moves_elements, number

if TYPE_CHECKING:
    from sympy.polys.rings import PolyElement

MAX_ATOMS, MAX_NODES, MAX_TERMS, MAX_DEGREE = 12, 64, 24, 32
"""The maximum sizes of expressions that are written as rational functions."""

MAX_COEFFICIENT_BITS = 64
"""The maximum number of bits of their coefficients; those of floats have more."""


class TooLarge(Exception):
    """An expression is beyond the limits."""


@lru_cache(MAX_ATOMS)
def _field(count: int) -> FracField:
    return FracField([f"a{k}" for k in range(count)], ZZ, lex)


@dataclass(eq=False)
class _Reading:
    """One expression on its way to a rational function."""

    ring: FracField = field(default_factory=lambda: _field(MAX_ATOMS))
    atoms: dict[Node, int] = field(default_factory=dict)
    read: dict[Any, Any] = field(default_factory=dict)
    met: int = 0

    def element(self, n: Node, moves: tuple[Node, ...] = ()) -> FracElement:
        """A node as a rational function; the moves are those of its elements on the way to the whole."""
        if (n, moves) not in self.read:
            self.met += 1  # before its arguments, so that chains are not followed to their end
            if self.met > MAX_NODES:
                raise TooLarge
            self.read[n, moves] = self._small(self._element(n, moves))
        return self.read[n, moves]

    def _element(self, n: Node, moves: tuple[Node, ...]) -> FracElement:
        value = number(n)
        if value is not None:
            return self.ring(value.numerator) / self.ring(value.denominator)
        if moves_elements(n):
            return self.element(n.args[0], (*moves, n))
        if isinstance(n.op, Add):
            total = self.ring(0)
            for sign, a in zip(n.op.signs, n.args, strict=True):
                total = self._small(total + sign * self.element(a, moves))
            return total
        if isinstance(n.op, Mul):
            total = self.ring(1)
            for p, a in zip(n.op.powers, n.args, strict=True):
                part = self.element(a, moves)
                total = self._small(total * part if p == 1 else total / part)
            return total
        exponent = number(n.args[1]) if isinstance(n.op, Pow) else None
        if exponent is not None and exponent.denominator == 1 and abs(exponent) <= MAX_DEGREE:
            return self.element(n.args[0], moves) ** int(exponent)
        return self._atom(n, moves)

    def _atom(self, n: Node, moves: tuple[Node, ...]) -> FracElement:
        for move in reversed(moves):
            if n.shape == move.args[0].shape:
                n = Node.of(move.op, (n,))
        position = self.atoms.setdefault(n, len(self.atoms))
        if position >= MAX_ATOMS:
            raise TooLarge
        return self.ring.gens[position]

    def _small(self, element: FracElement) -> FracElement:
        for poly in (element.numer, element.denom):
            if len(poly) > MAX_TERMS or any(sum(m) > MAX_DEGREE for m in poly.itermonoms()):
                raise TooLarge
            if any(int(c).bit_length() > MAX_COEFFICIENT_BITS for c in poly.itercoeffs()):
                raise TooLarge
        return element

    def node(self, poly: PolyElement) -> Node:
        """A polynomial in the atoms as a node."""
        atoms = list(self.atoms)
        terms = []
        for monomial, c in poly.terms():
            powers = [power(atoms[k], constant(e)) for k, e in enumerate(monomial) if e]
            terms.append(mul(constant(int(c)), *powers) if powers else constant(int(c)))
        return add(*terms)


def _factored(poly: PolyElement) -> tuple[int, list[tuple[PolyElement, int]]]:
    """The content and the irreducible factors of a polynomial with their exponents, short ones first.

    By FLINT: SymPy writes polynomials in all of the `MAX_ATOMS` atoms out for this, and takes 5 ms for each.
    """
    names = tuple(map(str, poly.ring.symbols))
    terms = {monomial: int(c) for monomial, c in poly.iterterms()}
    scale, found = flint.fmpz_mpoly_ctx.get(names, "lex").from_dict(terms).factor()
    parts = [({tuple(map(int, m)): int(c) for m, c in f.to_dict().items()}, int(k)) for f, k in found]
    parts.sort(key=lambda part: (len(part[0]), part[1], sorted(part[0].items())))
    return int(scale), [(poly.ring.from_dict(f), k) for f, k in parts]


def rational_factors(node: Node) -> Terms | None:
    """node = Π f^k with integers k, a rational number and irreducible polynomials f in its atoms.

    None where nothing is gained, or where the expression is too large.
    """
    if not isinstance(node.op, (Add, Mul)) or _is_sign_times(node):
        return None
    reading = _Reading()
    try:
        whole = reading.element(node)
        if not whole:
            return None
        content, found = Fraction(1), list[tuple[int, Any]]()
        for turn, poly in ((1, whole.numer), (-1, whole.denom)):
            scale, factors = _factored(poly)
            content *= Fraction(scale) ** turn
            found.extend((turn * k, f) for f, k in factors)
    except (TooLarge, ZeroDivisionError):
        return None
    if content == 1 and len(found) == 1 and found[0][0] == 1 and len(found[0][1]) > 1:
        return None
    number_ = [(Fraction(1), constant(content))] if content != 1 else []
    return [*number_, *((Fraction(k), reading.node(f)) for k, f in found)] or [(Fraction(1), constant(1))]


def _is_sign_times(node: Node) -> bool:
    return any(isinstance(a.op, Apply) and a.op.head is sympy.sign for a in node.args)
