"""Finding proofs for the checker: which steps to take.

Nothing here is trusted. A finder is the checker's own machine with somebody who decides what to do next; what
was decided is written down, and the checker replays it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import reduce
from math import lcm
from typing import Any, TypeAlias

import flint
from sympy import factorint

from symad.verification.checker import quotients as poly
from symad.verification.checker.proofs import DAMAGE
from symad.verification.checker.quotients import Factor, Monomial, Poly, Quotient
from symad.verification.checker.rules import MAX_ROOT_ORDER, Parts, Values
from symad.verification.checker.terms import DEFINITIONS, MAX_WORK, Refused, Term

MAX_SUMMANDS = 24
"""The maximum number of summands of an argument of exp, sin or cos that is taken apart."""


MIN_PART = 5000
"""The least work of one goal that is worth while: of more goals none has a part of its own."""

UNUSABLE = (Refused, *DAMAGE)
"""What the checker says of a claim that it cannot take."""

EXHAUSTED = "the work allowed was used up"

Json: TypeAlias = Any
Step: TypeAlias = "tuple[str, Any]"
Unit: TypeAlias = "tuple[Monomial, frozenset[tuple[Factor, int]]]"


class SmallerUnit(Exception):
    """An exponential is needed of a part of an argument that was taken whole before."""


@dataclass(frozen=True)
class Strategy:
    """How to go about it, and how much work it may take."""

    expand: bool
    """Whether functions are replaced by their definitions."""
    work: int
    factor: bool = False
    """Whether polynomials under logarithms and roots are factored."""


@dataclass(frozen=True)
class Limits:
    """How much work, and how many terms of a polynomial, a proof may take, and work to write claims out."""

    work: int
    terms: int
    writing: int = MAX_WORK


class Finder(Values):
    """The machine of the checker with decisions made on the way."""

    def __init__(
        self, strategy: Strategy, limits: Limits, units: dict[tuple[str, Unit], Fraction]
    ) -> None:
        """``units`` are kept from one start to the next."""
        super().__init__(())
        self.strategy, self.limits, self.units = strategy, limits, units
        self.failed: dict[Term, str] = {}
        self.steps: list[Any] = []
        self.allowed = min(strategy.work, limits.work)
        """The work after which no term is established any more."""

    def established(self, term: Term) -> Quotient:
        """The value of a term, with the steps that led to it written down."""
        bad = next((a for a in term.args if a in self.failed), None) if self.failed else None
        if bad is not None:
            self.failed[term] = self.failed[bad]
            raise Refused(self.failed[term])
        try:
            if self.field.work > self.allowed:
                raise Refused(EXHAUSTED)
            return self._decided(term)
        except Refused as problem:
            self.failed[term] = str(problem)
            raise

    def share(self, goals: int) -> None:
        """Allow the next of some goals what the others have left, but at least its part, if that is enough.

        What was too long for another goal is tried again.
        """
        whole = min(self.strategy.work, self.limits.work)
        part = whole // goals if whole >= MIN_PART * goals else 0
        self.allowed = max(whole, self.field.work + part)
        self.failed = {term: problem for term, problem in self.failed.items() if problem != EXHAUSTED}

    def _decided(self, term: Term) -> Quotient:
        value, steps = self._tried(term)
        if len(value.over) > self.limits.terms:
            raise Refused(f"a polynomial of {len(value.over)} terms (allowed: {self.limits.terms})")
        self.steps += [[term.index, rule, written_data(data)] for rule, data in steps]
        return value

    def _tried(self, term: Term) -> tuple[Quotient, list[Step]]:
        """The value by the steps that seem best, or by none."""
        if term.kind in ("sum", "product", "number", "variable"):
            return self.plain(term, "", []), []
        if term.kind == "call" and term.data in DEFINITIONS and self._defines(term):
            try:
                return self.plain(term, "define", []), [("define", None)]
            except Refused:
                pass
        for rule, parts in self._ways(term):
            try:
                return self.plain(term, rule, parts), [(rule, parts)]
            except Refused:
                continue
        return self.plain(term, "", []), []

    def _defines(self, term: Term) -> bool:
        if term.data in ("select", "pow", "equal", "real"):
            return True
        return self.strategy.expand

    def _ways(self, term: Term) -> Iterator[tuple[str, Parts]]:
        """Steps worth trying for one term."""
        data: Any = term.data
        if term.kind == "call" and data in ("exp", "sin", "cos"):
            parts = self._as_sum(data, self.values[term.args[0]])
            if parts:
                yield "sum", parts
        elif (term.kind == "call" and data in ("log", "abs")) or (
            term.kind == "power" and data.denominator != 1
        ):
            argument = self.values[term.args[0]]
            if argument.over:
                yield "factors", self._as_product(argument, data)
            yield "factors", [(1, argument)]

    # ---- sums --------------------------------------------------------------------------------------

    def _as_sum(self, name: str, argument: Quotient) -> Parts:
        """The argument as integer multiples of quotients of monomials; nothing if it is one of them."""
        if len(argument.over) > MAX_SUMMANDS:
            if argument.over and poly.content(argument.over) < 0:
                return [(-1, self.field.multiply(argument, self.field.number(-1)))]
            return []
        under = self.field.number(1)
        for f, k in argument.under.items():
            under = self.field.multiply(under, self.field.power(Quotient(dict(f)), k))  # √y² is y
        divided, parts = self.field.inverse(under), []
        for m, c in argument.over.items():
            one = self.field.multiply(Quotient({m: 1}), divided)
            q = Fraction(c, argument.scale)
            unit = self._unit(name, _unit_of(one), q)
            parts.append((int(q / unit), self.field.multiply(one, self.field.number(unit))))
        return [] if len(parts) == 1 and parts[0][0] == 1 else parts

    def _unit(self, name: str, m: Unit, q: Fraction) -> Fraction:
        """The unit of a monomial, of which q is a multiple; a smaller one makes the attempt start again."""
        unit = self.units.get((name, m))
        if unit is None:
            small = q.denominator <= MAX_ROOT_ORDER and abs(q.numerator) <= MAX_ROOT_ORDER
            unit = Fraction(1, q.denominator) if small else abs(q)
            if self._is_pi(m):
                unit = Fraction(1, lcm(2, q.denominator))
        k = q / unit
        if k.denominator > 1 and name == "exp":
            self.divide_unit(m, k.denominator)
        if k.denominator > 1 or abs(k) > MAX_ROOT_ORDER:
            unit = abs(q)
        self.units[name, m] = unit
        return unit

    def divide_unit(self, m: Unit, n: int) -> None:
        """Start again with a smaller unit, if it is not too small."""
        if ("exp", m) in self.units and self.units["exp", m].denominator * n <= MAX_ROOT_ORDER:
            self.units["exp", m] /= n
            raise SmallerUnit

    def _is_pi(self, m: Unit) -> bool:
        pi = self.atoms.get(("pi",))
        return pi is not None and _unit_of(pi) == m

    # ---- products ----------------------------------------------------------------------------------

    def _as_product(self, argument: Quotient, function: Any) -> Parts:
        """Numbers as primes, generators, what is divided by, and the rest of the numerator."""
        scale, shared = poly.content(argument.over), _common_monomial(argument.over)
        rest = poly.exact_quotient(argument.over, {shared: scale}) or poly.ONE
        parts = self._primes(Fraction(abs(scale), argument.scale))
        powers = [(e, Quotient({(k,): 1})) for k, e in Counter(shared).items()]
        powers += [(-m, Quotient(dict(f))) for f, m in argument.under.items()]
        if rest != poly.ONE or scale < 0:
            signed = {m: c if scale > 0 else -c for m, c in rest.items()}
            found = factors_of(signed) if self.strategy.factor else [(1, signed)]
            powers += [(e, Quotient(f)) for e, f in found]
        if isinstance(function, Fraction):
            self._smaller_units(function, powers)
        return [*parts, *(powers if function == "abs" else self._of_known_sign(powers))]

    def _of_known_sign(self, powers: list[tuple[int, Quotient]]) -> list[tuple[int, Quotient]]:
        """Powers of which one at most may be negative: the product of those that may."""
        unknown = [(e, f) for e, f in powers if e % 2 and not self.field.sign(f)]
        known = [p for p in powers if p not in unknown]
        if len(unknown) < 2:
            return [*known, *unknown]
        whole = [self.field.power(f, e) for e, f in unknown]
        return [*known, (1, reduce(self.field.multiply, whole))]

    def _primes(self, ratio: Fraction) -> list[tuple[int, Quotient]]:
        """A number as powers of primes, if it is not too long."""
        if max(ratio.numerator, ratio.denominator) >= 1 << 40:
            return [(1, self.field.number(ratio))]
        turns = (ratio.numerator, 1), (ratio.denominator, -1)
        return [(turn * e, self.field.number(p)) for n, turn in turns for p, e in factorint(n).items()]

    def _smaller_units(self, exponent: Fraction, powers: Parts) -> None:
        """Roots of exponentials are exponentials of a part of the argument."""
        for e, f in powers:
            argument = self.exponents.get(f.generator)
            n = (exponent * e).denominator
            if argument is not None and n > 1 and len(argument.over) == 1:
                self.divide_unit(_unit_of(argument), n)


def _unit_of(quotient: Quotient) -> Unit:
    """A quotient of monomials without its number."""
    return next(iter(quotient.over)), frozenset(quotient.under.items())


MAX_TERMS_FACTORED = 64
"""The maximum number of terms of polynomials that are factored: nothing bounds how long that takes."""


def factors_of(p: Poly) -> list[tuple[int, Poly]]:
    """The irreducible factors of a polynomial and their exponents, the sign with one of them."""
    if len(p) > MAX_TERMS_FACTORED or max(map(len, p)) > MAX_TERMS_FACTORED:
        return [(1, p)]
    names = sorted({k for m in p for k in m})
    ring = flint.fmpz_mpoly_ctx.get(tuple(f"g{k}" for k in names), "lex")
    scale, found = ring.from_dict({tuple(map(m.count, names)): c for m, c in p.items()}).factor()
    made: list[tuple[int, Poly]] = [(1, {(): int(scale)})] if scale != 1 else []
    for f, e in found:
        terms = f.to_dict().items()
        powers = [(zip(names, m, strict=True), int(c)) for m, c in terms]
        made.append((int(e), {tuple(k for k, n in m for _ in range(n)): c for m, c in powers}))
    return made


# ---- proofs as data ----------------------------------------------------------------------------------


def written_poly(p: Poly) -> Json:
    """[[c, [generator, ...]], ...]: each generator as often as its exponent says."""
    return [[c, list(m)] for m, c in sorted(p.items())]


def written_value(a: Quotient) -> Json:
    """[numerator, number, [[factor, multiplicity], ...]]."""
    under = sorted(((sorted(f), m) for f, m in a.under.items()))
    return [written_poly(a.over), a.scale, [[written_poly(dict(f)), m] for f, m in under]]


def written_data(data: Any) -> Json:
    """The data of a step as JSON: parts, if there are some."""
    return None if data is None else [[k, written_value(a)] for k, a in data]


def _common_monomial(p: poly.Poly) -> poly.Monomial:
    """The monomial of highest degree that divides all terms."""
    shared = set(next(iter(p), ())).intersection(*p)
    return tuple(k for k in sorted(shared) for _ in range(min(m.count(k) for m in p)))
