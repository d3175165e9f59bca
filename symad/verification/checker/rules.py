"""The rules: values of terms as quotients, step by step.

Sums, products, integer powers and equal arguments of one function need no step. A step is (rule, data):

    define    a function is replaced by its definition in the table
    sum       of exp, sin, cos: the argument is Σ k a with integers k; addition theorems,
              and exp(log(u)/n) = u^(1/n)
    factors   of log, roots, abs: the argument is Π f^e, integers e, signs that allow it; log(exp a) = a

At a point where both sides of a claim are defined, every term has a real value, every divisor is not 0, and
each rule is a true statement about these values. Inverses, Cholesky factors and log det A have values only
where A⁻¹ has. Branches that are not taken, and other goals, have none: parts need no more than the argument,
and `select` is arithmetic only if both branches have values everywhere.
"""

from collections.abc import Iterable, Sequence
from fractions import Fraction
from functools import reduce
from operator import or_
from typing import Any, TypeAlias

from symad.verification.checker import quotients as poly
from symad.verification.checker import terms as table
from symad.verification.checker.quotients import Generator, Poly, Quotient, Quotients
from symad.verification.checker.terms import Refused, Term, needed, require

Parts: TypeAlias = Sequence[tuple[int, Quotient]]
MAX_ROOT_ORDER = 64  # larger multiples of angles, and roots of higher order, are refused


class Values:
    """The values of the terms of one proof; each is established once."""

    def __init__(self, steps: Iterable[Any]) -> None:
        """``steps`` are numbers of terms, each with a rule and its data; ``count`` says how many."""
        self.unused, self.count, self.partial = {number: step for number, *step in steps}, 0, 0
        self.field, self.values = Quotients(), dict[Term, Quotient]()
        self.exponents, self.logarithms = dict[int, Quotient](), dict[int, Quotient]()  # a of exp, u of log
        self.atoms, self.divisors = dict[tuple[Any, ...], Quotient](), dict[poly.Factor, int]()  # see `needs`

    def equal(self, a: Term, b: Term) -> bool:
        """Whether two terms are equal wherever both are defined."""
        return a is b or not self.field.gap(self.value(a), self.value(b))

    def value(self, goal: Term) -> Quotient:
        """The value of a term, after those of all terms that it needs."""
        order = needed([goal]) if goal not in self.values else []
        whole = {goal, *(a for term in order if term.kind != "sum" for a in term.args)}
        for term in order:  # products that only sums need are added up there
            if term not in self.values and (term.kind != "product" or term in whole):
                self.values[term] = self.established(term)
        return self.values[goal]

    def established(self, term: Term) -> Quotient:
        """The value of a term by the steps that the proof has for it."""
        rule, data = self.unused.pop(term.index, ("", None))
        self.count += 1 + bool(rule)
        return self.plain(term, rule, [(int(k), self.field.read(a)) for k, a in data or ()])

    def atom(self, name: Any, args: Sequence[Quotient], sign: str = "", zeros: Poly = poly.ZERO) -> Quotient:
        """The generator of a function of values, one for equal arguments; it is 0 only where ``zeros`` is."""
        key = (name, *[(frozenset(a.over.items()), a.scale, frozenset(a.under.items())) for a in args])
        if key not in self.atoms:
            choice, sure, g = name == "select", sign == "positive", self.field.generators
            bits = reduce(or_, map(self.needs, args), 0) & ~(self.partial * choice)  # `needs` comes first
            whole = name == "log" and self.field.sign(args[0]) == "positive"
            partial = choice or not (sure or whole or name in table.TOTAL)
            own = partial << 2 * len(g)  # see `checked`
            smooth = name in ("max", "min") and all(a.generator >= 0 and g[a.generator].smooth for a in args)
            made = Generator(own | bits, sign, smooth, poly.ONE if sure else zeros)
            self.partial, self.atoms[key] = self.partial | own, self.field.generator(made)
        return self.atoms[key]

    def needs(self, a: Quotient) -> int:
        """What a value needs as bits: inputs, divisors, and functions that do not have values everywhere."""
        for f in a.under.keys() - self.divisors:
            known = self.field.sign(Quotient(dict(f))) == "positive"
            self.partial |= self.divisors.setdefault(f, 0 if known else 2 << 2 * len(self.divisors))
        used = {k for p in (a.over, *map(dict, a.under)) for m in p for k in m}
        parts = [self.field.generators[k].inputs for k in used]
        return reduce(or_, [*parts, *[self.divisors[f] for f in a.under]], 0)

    def plain(self, term: Term, rule: str, parts: Parts) -> Quotient:
        """The value of a term from those of its arguments, by a rule that says the parts of the argument."""
        if (v := self.values) and term.kind == "sum" and not rule:  # arguments may be products without value
            return self.field.inner([[v[b] for b in ([a] if a in v else a.args)] for a in term.args])
        data, args = term.data, [v[a] for a in term.args]
        match term.kind, rule:
            case "number", "":
                return self.field.number(data)
            case "variable", "":
                return self.element(data[0].symbol)
            case "product", "":
                return reduce(self.field.multiply, args)
            case "power", "" if data.denominator == 1:
                return self.field.power(args[0], int(data))
            case "power", "" | "factors" if data.denominator > 1:
                return self.root(data, self.factors(args[0], rule, parts))
            case "call", "define" if data in table.DEFINITIONS:
                return self.defined(term, args)
            case "call", "" | "sum" if data in ("exp", "sin", "cos"):
                summands = self.checked(args[0], parts, 0) if rule else [(1, args[0])]
                return self.exponential(summands) if data == "exp" else self.rotation(summands)[data == "sin"]
            case "call", "" | "factors" if data == "log":
                return self.logarithm(self.factors(args[0], rule, parts))
            case "call", "" | "factors" if data == "abs":  # |Π f^e| = Π |f|^e
                sizes = [(self.size(f) if e % 2 else f, e) for e, f in self.factors(args[0], rule, parts)]
                return reduce(self.field.multiply, map(self.field.power, *zip(*sizes, strict=True)))
            case "call", "":
                return self.function(data, args)
        raise Refused(f"the rule {rule!r} does not apply to {term.kind} {data}")

    def element(self, symbol: Any) -> Quotient:
        """An element of an input, with the assumptions of its symbol: a new generator, or 0."""
        words = ("positive", "nonnegative", "zero", "integer")
        plus, least, zero, whole = [getattr(symbol, f"is_{w}", None) is True for w in words]
        sign, bit = "positive" if plus else "nonnegative" * least, 1 << 2 * len(self.field.generators)
        made = Generator(bit, sign, not whole, poly.ZERO if whole else poly.ONE)
        return self.field.number(0) if zero else self.field.generator(made)

    def function(self, name: Any, args: list[Quotient]) -> Quotient:
        """A function without a rule: a generator, with what is known of it."""
        if name == "select" and args[0].number in (0, 1):
            return args[1 if args[0].number else 2]
        if name == "less" and poly.content(gap := self.field.gap(*args)) < 0 and self.field.never_zero(gap):
            # [x < y] = 1 − [y < x] where x ≠ y
            return Quotient(self.field.gap(self.field.number(1), self.function(name, args[::-1])))
        turned = name in table.ODD | table.EVEN and poly.content(args[0].over) < 0
        args = [self.field.multiply(args[0], self.field.number(-1))] if turned else args
        sign = "positive" if name in table.POSITIVE else "nonnegative" if name in table.INDICATORS else ""
        value = self.atom(name, args, sign)
        if name in table.INDICATORS:
            self.field.relations[value.generator] = (2, value.over)
        return self.field.multiply(value, self.field.number(-1)) if turned and name in table.ODD else value

    def defined(self, term: Term, args: list[Quotient]) -> Quotient:
        """A function by its definition, where its condition holds."""
        name = term.data
        for a, top in (term.args, term.args[::-1]) if name == "equal" else ():
            if top.data in ("max", "min") and (smaller := self.smaller(a, top, top.data)):
                return self.value(term.table.product([1 - less for less in smaller]))
        jumps = name in ("sign", "less", "equal")  # at 0, which must be no open set's value
        gap = (args[0].over if len(args) == 1 else self.field.gap(*args)) if jumps else poly.ONE
        require(not jumps or self.field.never_zero(gap), f"the argument of {name} may be 0 on an open set")
        based = name != "pow" or self.field.sign(args[0]) == "positive"
        require(based, "the base of a power may be negative")
        untrue = name == "select" and self.field.gap(self.field.multiply(args[0], args[0]), args[0])
        require(not untrue, "a condition is not 0 or 1")
        total = name not in ("select", "real") or not any([self.needs(a) & self.partial for a in args[-2:]])
        require(total, "a branch may have no value elsewhere, or what is compared with −∞ may be it")
        return self.value(table.DEFINITIONS[name](*term.args))

    def smaller(self, a: Term, top: Term, kind: str) -> list[Term] | None:
        """Which comparisons fail where a is an extreme of extremes of terms of which it is one, else None."""
        top.table.spend(1)
        for p, q in (top.args, top.args[::-1]) if top.data == kind else ():
            if (found := [] if p is a else self.smaller(a, p, kind)) is not None:
                return [*found, top.table.call("less", *((p, q) if kind == "max" else (q, p)))]
        return None

    def checked(self, argument: Quotient, parts: Parts, product: int) -> Parts:
        """The argument as Σ k a, or as Π f^k, where the parts have values."""
        total = self.field.number(product)
        for k, f in parts:
            power = self.field.power(f, k) if product else self.field.multiply(f, self.field.number(k))
            needed = self.needs(f) | self.needs(power)  # before what is partial is asked
            require(not needed & self.partial & ~self.needs(argument), "a part may have no value")
            total = self.field.multiply(total, power) if product else self.field.inner([[total], [power]])
        require(not self.field.gap(total, argument), "the argument is not what the step says")
        return parts

    def factors(self, argument: Quotient, rule: str, parts: Parts) -> Parts:
        """The argument as Π f^e; without a step its numerator and what divides it."""
        under = [(-m, Quotient(dict(f))) for f, m in argument.under.items()]
        usual = [(1, Quotient(argument.over)), (-1, self.field.number(argument.scale)), *under]
        return self.checked(argument, parts, 1) if rule else usual

    def of_known_sign(self, parts: Parts) -> Parts:
        """The factors of a product that is not negative, none of them negative; f^e is |f|^e if e is even."""
        parts = [(e, f if e % 2 or self.field.sign(f) else self.size(f)) for e, f in parts]
        signs = [self.field.sign(f) for _, f in parts]  # one may be unknown, if all others are positive
        known = "" not in signs or sorted(signs)[1:] == ["positive"] * (len(signs) - 1)
        require(known, "the signs of factors under a root or a logarithm are not known")
        return parts

    def exponential(self, parts: Parts) -> Quotient:
        """exp(Σ k a) = Π exp(a)^k, and exp(a) is u^(1/n) for a = log(u)/n, if u has such a root."""
        result = self.field.number(1)
        for k, a in parts if any(a.over for _, a in parts) else ():
            u = None if a.under else self.logarithms.get(Quotient(a.over).generator)
            if u is not None and _has_root(u, a.scale):
                value = self.root(Fraction(1, a.scale), [(1, u)])
            else:
                value = self.atom("exp", [a], "positive")
            if value.generator >= 0:
                self.exponents[value.generator] = a
            result = self.field.multiply(result, self.field.power(value, k))
        return result

    def rotation(self, parts: Parts) -> tuple[Quotient, Quotient]:
        """(cos, sin) of Σ k a, by the addition theorems."""
        inner, (c, s, one, minus) = self.field.inner, map(self.field.number, (1, 0, 1, -1))
        for k, a in parts:
            require(abs(k) <= MAX_ROOT_ORDER, f"{k} times an angle")
            cosine, sine = map(self.field.multiply, self.turn(a), [one, one if k > 0 else minus])
            for _ in range(abs(k)):
                c, s = inner([[c, cosine], [minus, s, sine]]), inner([[s, cosine], [c, sine]])
        return c, s

    def turn(self, a: Quotient) -> tuple[Quotient, Quotient]:
        """(cos a, sin a) with sin² = 1 − cos²; the angles 0 and π/2 are known."""
        pi = self.atoms.get(("pi",))
        right = pi is not None and a == self.field.multiply(pi, self.field.number(Fraction(1, 2)))
        if right or not a.over:
            return self.field.number(int(not right)), self.field.number(int(right))
        cosine, sine = self.atom("cos", [a]), self.atom("sin", [a])
        square = self.field.power(cosine, 2)
        self.field.relations[sine.generator] = (2, self.field.gap(self.field.number(1), square))
        return cosine, sine

    def logarithm(self, parts: Parts) -> Quotient:
        """log Π f^e = Σ e log f, and log f is a for f = exp a."""
        result = self.field.number(0)
        for e, f in self.of_known_sign(parts):
            if f.number != 1:
                if (value := self.exponents.get(f.generator)) is None:
                    self.logarithms[(value := self.atom("log", [f])).generator] = f
                result = self.field.inner([[result], [value, self.field.number(e)]])
        return result

    def root(self, exponent: Fraction, parts: Parts) -> Quotient:
        """(Π f^e)^q = Π f^(eq); the root of order n of f is a generator r ≥ 0 with r^n = f."""
        result = self.field.number(1)
        for e, f in self.of_known_sign(parts):
            q = exponent * e
            if f.number and q.denominator > 1:  # 1/√2 is √2/2
                result, q = self.field.multiply(result, self.field.power(f, q // 1)), q % 1
            if q.denominator > 1 and f.number not in (0, 1):
                require(_has_root(f, q.denominator), "a root of a quotient, or of too high order")
                sign, over = self.field.sign(f) or "nonnegative", f.over
                f = self.atom(f"root {q.denominator}", [f], sign, over)
                self.field.relations[f.generator] = (q.denominator, over)
            result = self.field.multiply(result, self.field.power(f, q.numerator))
        return result

    def size(self, f: Quotient) -> Quotient:
        """|f|: f or −f if its sign is known, else a generator with the square f²."""
        minus = self.field.multiply(f, self.field.number(-1))
        if self.field.sign(f) or self.field.sign(minus):
            return f if self.field.sign(f) else minus
        require(f.scale == 1 and not f.under, "the absolute value of a quotient is taken by its factors")
        value = self.atom("abs", [f if poly.content(f.over) > 0 else minus], "nonnegative", f.over)
        self.field.relations[value.generator] = (2, self.field.product(f.over, f.over))
        return value


def _has_root(f: Quotient, order: int) -> bool:
    """Whether a value may have its root as a generator."""
    return order == 1 or (order <= MAX_ROOT_ORDER and f.scale == 1 and not f.under)
