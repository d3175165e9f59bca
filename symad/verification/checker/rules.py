"""The rules: values of terms as quotients, step by step.

Sums, products, integer powers and equal arguments of one function need no step: they follow from the axioms
of real numbers. Every other rule is used where a step of the proof says so. A step is (rule, data):

    name      the value gets a name: a generator that stands for it, the same for equal values
    define    a function is replaced by its definition in the table
    sum       of exp, sin, cos: the argument is Σ k a with integers k; exp(Σ k a) = Π exp(a)^k, and the
              addition theorems; exp(log u) = u
    factors   of log, roots, abs: the argument is Π f^e with integers e; log = Σ e log f, root = Π of roots,
              abs = Π |f|^e, where the signs of the f allow it; log(exp a) = a
    refine    exp(a) is the n-th power of exp(a/n), a generator of its own
    abs       |f| of a value f is a generator, with |f|² = f²

At a point where both sides of a claim are defined, every term has a real value, every divisor is not 0, and
each rule is a true statement about these values; so is their conclusion. Branches that are not taken are why
`select` is replaced by arithmetic only if both branches have values everywhere.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from functools import reduce
from operator import or_
from typing import Any, TypeAlias

from symad.verification.checker import functions as table
from symad.verification.checker import polynomials as poly
from symad.verification.checker.quotients import Generator, Quotient, Quotients
from symad.verification.checker.terms import Refused, Term, Terms, needed

Step: TypeAlias = "tuple[str, Any]"
Parts: TypeAlias = "Sequence[tuple[int, Quotient]]"

MOST_ORDER = 64
"""Larger multiples of angles, and roots of higher order, are refused."""


class Values:
    """The values of the terms of one proof; each is established once."""

    def __init__(self, terms: Terms, steps: Mapping[int, Sequence[Step]]) -> None:
        """``steps`` by the numbers of terms."""
        self.terms, self._steps = terms, steps
        self.field = Quotients()
        self.values: dict[Term, Quotient] = {}
        self.unused = set(steps)
        self.count = 0
        """Steps taken so far: one for each value, and those of the proof."""
        self.atoms: dict[tuple[Any, ...], Quotient] = {}
        self.exponents: dict[int, Quotient] = {}
        """For the generators that are exp(a), and for those that are log(u): a and u."""
        self.logarithms: dict[int, Quotient] = {}
        self._inputs = 0
        self._total: dict[Term, bool] = {}

    def equal(self, left: Term, right: Term) -> bool:
        """Whether two terms are equal wherever both are defined."""
        return left is right or self.field.equal(self.value(left), self.value(right))

    def value(self, goal: Term) -> Quotient:
        """The value of a term, after those of all terms that it needs."""
        if goal not in self.values:
            for term in needed([goal]):
                if term not in self.values:
                    self.values[term] = self._established(term)
        return self.values[goal]

    def advice(self, term: Term) -> Sequence[Step]:
        """The steps of the proof for one term."""
        self.unused.discard(term.index)
        return self._steps.get(term.index, ())

    def _established(self, term: Term) -> Quotient:
        steps = self.advice(term)
        self.count += 1 + len(steps)
        how: Step = ("plain", None)
        for step in steps:
            if step[0] == "refine":
                self.refined(*step[1])
            elif step[0] == "abs":
                self.absolute([(1, step[1])])
            elif step[0] in ("define", "sum", "factors"):
                how = step
        value = self.plain(term, how)
        for rule, _ in steps:
            if rule == "name":
                value = self.named(value)
            elif rule not in ("refine", "abs", how[0]):
                raise Refused(f"there is no rule {rule!r}")
        return value

    # ---- generators --------------------------------------------------------------------------------

    def atom(self, name: Any, args: Sequence[Quotient], sign: str = "", nonzero: bool = False) -> Quotient:
        """The generator of a function of values: one for equal arguments."""
        key = (name, *[a.key for a in args])
        if key not in self.atoms:
            polynomials = [p for a in args for p in (a.over, *map(dict, a.under))]
            inputs = reduce(or_, map(self.field.inputs, polynomials), 0)
            made = Generator(str(name), inputs, sign, False, nonzero or sign == "positive")
            self.atoms[key] = self.field.generator(made)
        return self.atoms[key]

    def named(self, value: Quotient) -> Quotient:
        """A generator that stands for a value."""
        return self.atom("name", [value], self.field.sign(value), self.field.never_zero(value.over))

    def _variable(self, term: Term) -> Quotient:
        """An element of an input, with the assumptions of its symbol."""
        symbol: Any = term.data[0].symbol  # type: ignore[index]
        known = ("positive", "nonnegative", "integer", "zero")
        is_a = {kind: getattr(symbol, f"is_{kind}", None) is True for kind in known}
        if is_a["zero"]:
            return self.field.number(0)
        sign = "positive" if is_a["positive"] else "nonnegative" if is_a["nonnegative"] else ""
        self._inputs += 1
        free = not is_a["integer"]
        return self.field.generator(Generator(str(symbol), 1 << self._inputs, sign, free, free))

    # ---- one term ----------------------------------------------------------------------------------

    def plain(self, term: Term, how: Step) -> Quotient:
        """The value of a term from those of its arguments."""
        args = [self.values[a] for a in term.args]
        if how[0] != "plain" and term.kind not in ("call", "power"):
            raise Refused(f"the rule {how[0]!r} does not apply to a {term.kind}")
        if term.kind == "number":
            return self.field.number(term.number or 0)
        if term.kind == "variable":
            return self._variable(term)
        if term.kind in ("sum", "product"):
            return reduce(self.field.add if term.kind == "sum" else self.field.multiply, args)
        if term.kind == "power":
            exponent: Any = term.data
            if exponent.denominator == 1:
                return self.field.power(args[0], int(exponent))
            return self.root(exponent, self.factors(args[0], how))
        if term.data == "select" and args[0].number in (0, 1):
            return args[1 if args[0].number else 2]
        if how[0] == "define":
            return self.defined(term, args)
        return self.function(term, args, how)

    def function(self, term: Term, args: list[Quotient], how: Step) -> Quotient:
        """The value of a function with relations, or an atom."""
        name: Any = term.data
        if name == "exp":
            return self.exponential(self.summands(args[0], how))
        if name in ("sin", "cos"):
            return self.rotation(self.summands(args[0], how))[name == "sin"]
        if name == "log":
            return self.logarithm(self.factors(args[0], how))
        if name == "abs":
            return self.absolute(self.factors(args[0], how))
        if how[0] in ("sum", "factors"):
            raise Refused(f"the rule {how[0]!r} does not apply to {name}")
        turned = name in table.ODD | table.EVEN and bool(args[0].over) and poly.content(args[0].over) < 0
        if turned:
            args = [self.field.times(args[0], -1)]
        sign = "positive" if name in table.POSITIVE else "nonnegative" if name in table.INDICATORS else ""
        if name in ("max", "min"):
            signs = [self.field.sign(a) for a in args]
            sign = "positive" if (any if name == "max" else all)(s == "positive" for s in signs) else ""
        value = self.atom(name, args, sign)
        if name in table.INDICATORS | table.SQUARES.keys():
            self._with_square(name, term, value)
        return self.field.times(value, -1) if turned and name in table.ODD else value

    def _with_square(self, name: str, term: Term, value: Quotient) -> None:
        """The relation of the square of a function."""
        generator = poly.exponents(max(value.over))[0][0]
        if generator in self.field.relations:
            return
        square = value if name in table.INDICATORS else self.value(table.SQUARES[name](term.args[0]))
        if square.scale == 1 and not square.under:
            self.field.relations[generator] = (2, square.over)

    def defined(self, term: Term, args: list[Quotient]) -> Quotient:
        """A function by its definition, where its condition holds."""
        name: Any = term.data
        if term.kind != "call" or name not in table.DEFINITIONS:
            raise Refused(f"{name} has no definition")
        winner = attained(*term.args) or attained(*term.args[::-1]) if name == "equal" else None
        if winner is not None:
            return self.value(winner)
        if name in ("sign", "Heaviside", *table.INDICATORS):  # at 0 another value: 0 must be no open set's
            gap = args[0] if len(args) == 1 else self.field.add(args[1], self.field.times(args[0], -1))
            if not self.field.never_zero(gap.over):
                raise Refused(f"the argument of {name} may be 0 on an open set")
        if name == "pow" and self.field.sign(args[0]) != "positive":
            raise Refused("the base of a power may be negative")
        if name == "select" and not all(map(self.total, term.args)):
            raise Refused("a branch of a selection may have no value where it is not taken")
        return self.value(table.DEFINITIONS[name](*term.args))

    def total(self, term: Term) -> bool:
        """Whether a term has a value for all real inputs."""
        for t in needed([term]):
            if t in self._total:
                continue
            data: Any = t.data
            safe = t.kind != "call" or data in table.TOTAL
            if (t.kind == "power" and (data.denominator > 1 or data < 0)) or data == "log":
                safe = self.field.sign(self.value(t.args[0])) == "positive"
            self._total[t] = safe and all(self._total[a] for a in t.args)
        return self._total[term]

    # ---- exponentials and angles -------------------------------------------------------------------

    def summands(self, argument: Quotient, how: Step) -> Parts:
        """The argument as Σ k a, checked; the argument itself if no step says more."""
        if how[0] != "sum":
            return [(1, argument)] if argument.over else []
        total = self.field.number(0)
        for k, part in how[1]:
            self._no_new_divisor(argument, part, 1)
            total = self.field.add(total, self.field.times(part, k))
        if not self.field.equal(total, argument):
            raise Refused("the argument is not the sum that the step says")
        return how[1]

    def exponential(self, parts: Parts) -> Quotient:
        """exp(Σ k a) = Π exp(a)^k."""
        powers = [self.field.power(self._exp(a), k) for k, a in parts]
        return reduce(self.field.multiply, powers, self.field.number(1))

    def _exp(self, a: Quotient) -> Quotient:
        """exp(a), which is u for a = log u."""
        known = self.logarithms.get(_single(a))
        if known is not None:
            return known
        value = self.atom("exp", [a], "positive")
        self.exponents[_single(value)] = a
        return value

    def refined(self, a: Quotient, n: int) -> Quotient:
        """exp(a/n), of which exp(a) is the n-th power."""
        if not 1 < n <= MOST_ORDER:
            raise Refused(f"exp is not refined by {n}")
        whole, part = self._exp(a), self._exp(self.field.times(a, Fraction(1, n)))
        generator, relation = _single(whole), (1, poly.power(part.over, n))
        if generator not in self.exponents or self.field.relations.get(generator, relation) != relation:
            raise Refused("an exponential is refined twice, or is none")
        self.field.relations[generator] = relation
        return part

    def rotation(self, parts: Parts) -> tuple[Quotient, Quotient]:
        """(cos, sin) of Σ k a, by the addition theorems."""
        field = self.field
        total = field.number(1), field.number(0)
        for k, a in parts:
            if abs(k) > MOST_ORDER:
                raise Refused(f"{k} times an angle")
            cosine, sine = self._turn(a)
            if k < 0:
                sine = field.times(sine, -1)
            for _ in range(abs(k)):
                c, s = total
                minus = field.times(field.multiply(s, sine), -1)
                turned = field.add(field.multiply(s, cosine), field.multiply(c, sine))
                total = field.add(field.multiply(c, cosine), minus), turned
        return total

    def _turn(self, a: Quotient) -> tuple[Quotient, Quotient]:
        """(cos a, sin a) with sin² = 1 − cos²; a right angle is known."""
        pi = self.atoms.get(("pi",))
        if pi is not None and a.key == self.field.times(pi, Fraction(1, 2)).key:
            return self.field.number(0), self.field.number(1)
        cosine, sine = self.atom("cos", [a]), self.atom("sin", [a])
        square = poly.add(poly.ONE, poly.multiply(cosine.over, cosine.over), -1)
        self.field.relations[_single(sine)] = (2, square)
        return cosine, sine

    # ---- products ----------------------------------------------------------------------------------

    def factors(self, argument: Quotient, how: Step) -> Parts:
        """The argument as Π f^e, checked; without a step its numerator and what divides it."""
        if how[0] == "factors":
            total = self.field.number(1)
            for e, f in how[1]:
                self._no_new_divisor(argument, f, e)
                total = self.field.multiply(total, self.field.power(f, e))
            if not self.field.equal(total, argument):
                raise Refused("the argument is not the product that the step says")
            return how[1]
        under = [(-m, Quotient(dict(f), 1, {})) for f, m in argument.under.items()]
        whole = [(-1, self.field.number(argument.scale))] if argument.scale != 1 else []
        return [(1, Quotient(argument.over, 1, {})), *whole, *under]

    def _no_new_divisor(self, argument: Quotient, part: Quotient, e: int) -> None:
        """What a step divides by is positive, or what the argument divides by, so it is not 0."""
        own = frozenset(part.over.items()) in argument.under or self.field.sign(part) == "positive"
        if any(f not in argument.under for f in part.under) or (e < 0 and not own):
            raise Refused("a step divides by what may be 0")

    def _check_signs(self, parts: Parts) -> None:
        """Of a product that is positive all factors are, if all but one are and that one is odd."""
        unknown = [e for e, f in parts if not self.field.sign(f)]
        strict = all(self.field.sign(f) == "positive" for _, f in parts if self.field.sign(f))
        if unknown and (len(unknown) > 1 or unknown[0] % 2 == 0 or not strict):
            raise Refused("the signs of factors under a root or a logarithm are not known")

    def logarithm(self, parts: Parts) -> Quotient:
        """log Π f^e = Σ e log f."""
        self._check_signs(parts)
        logarithms = [self.field.times(self._log(f), e) for e, f in parts]
        return reduce(self.field.add, logarithms, self.field.number(0))

    def _log(self, f: Quotient) -> Quotient:
        if f.number == 1:
            return self.field.number(0)
        known = self.exponents.get(_single(f))
        if known is not None:
            return known
        value = self.atom("log", [f])
        self.logarithms[_single(value)] = f
        return value

    def root(self, exponent: Fraction, parts: Parts) -> Quotient:
        """(Π f^e)^q = Π f^(eq)."""
        self._check_signs(parts)
        result = self.field.number(1)
        for e, f in parts:
            q = exponent * e
            base = f if q.denominator == 1 else self._root(f, q.denominator)
            result = self.field.multiply(result, self.field.power(base, q.numerator))
        return result

    def _root(self, f: Quotient, order: int) -> Quotient:
        """r ≥ 0 with r^order = f."""
        if f.number in (0, 1):
            return f
        if order > MOST_ORDER or f.scale != 1 or f.under:
            raise Refused("a root of a quotient, or of too high order")
        argument = self.exponents.get(_single(f))
        if argument is not None:
            return self.refined(argument, order)
        value = self.atom(
            f"root {order}", [f], self.field.sign(f) or "nonnegative", self.field.never_zero(f.over)
        )
        self.field.relations[_single(value)] = (order, f.over)
        return value

    def absolute(self, parts: Parts) -> Quotient:
        """|Π f^e| = Π |f|^e, with |f|² = f²."""
        result = self.field.number(1)
        for e, f in parts:
            base = f
            if e % 2 and not self.field.sign(f):
                base = self.field.times(f, -1)
                if not self.field.sign(base):
                    base = self._absolute(f if not f.over or poly.content(f.over) > 0 else base)
            result = self.field.multiply(result, self.field.power(base, e))
        return result

    def _absolute(self, f: Quotient) -> Quotient:
        if f.scale != 1 or f.under:
            raise Refused("the absolute value of a quotient is taken by its factors")
        value = self.atom("abs", [f], "nonnegative", self.field.never_zero(f.over))
        self.field.relations[_single(value)] = (2, self.field.product(f.over, f.over))
        return value


def attained(a: Term, extreme: Term) -> Term | None:
    """[a = max(..., a, ...)]: no other argument is larger; None for anything else."""
    name, others, todo = extreme.data, list[Term](), [extreme]
    while todo:
        term = todo.pop()
        if term.kind == "call" and term.data == name:
            todo.extend(term.args)
        else:
            others.append(term)
    if name not in ("max", "min") or a not in others:
        return None
    beaten = [a.table.call("less", *((a, b) if name == "max" else (b, a))) for b in others if b is not a]
    return a.table.product([1 - c for c in beaten])


def _single(a: Quotient) -> int:
    """The generator that a value is, or −1."""
    if len(a.over) != 1 or a.scale != 1 or a.under:
        return -1
    ((monomial, c),) = a.over.items()
    powers = poly.exponents(monomial)
    return powers[0][0] if c == 1 and len(powers) == 1 and powers[0][1] == 1 else -1
