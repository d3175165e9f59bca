"""Scalar terms: what graphs are once they are written out, element by element; and the table of functions.

A term is a number, a variable, a sum, a product, a rational power, a function called by name, a sum over
index symbols, [i = j] for index symbols, or −∞ where a condition fails. Equal terms are one object. The table
has formulas of textbooks such as the NIST Digital Library of Mathematical Functions (DLMF).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partialmethod
from math import isqrt
from typing import Any, TypeAlias

import sympy
from sympy.codegen import cfunctions
from sympy.codegen.numpy_nodes import logaddexp

from symad.sympy_functions import scalar_functions as own

Operand: TypeAlias = "Term | Fraction | int"
MAX_TERMS, MAX_WORK, MAX_BITS, MAX_POWER = 200_000, 5_000_000, 20_000, 1000  # more are refused
FREE, BOUND = -10_000, -30_000  # positions are 0 and up; index symbols from here up, and from here down


class Refused(Exception):
    """A claim or a step that the checker does not accept; says why."""


def require(true: object, why: str) -> None:
    """Refuse what does not hold."""
    if not true:
        raise Refused(why)


def bounded(numbers: Collection[int]) -> None:
    """Refuse integers that are too long."""
    require(max(map(int.bit_length, numbers), default=0) <= MAX_BITS, "a number has too many bits")


@dataclass(frozen=True, eq=False, slots=True)
class Term:
    """One term; ``data`` is the number, the name, the exponent, or the index symbols with their sizes."""

    table: Terms
    kind: str
    data: Any
    args: tuple[Term, ...]
    index: int
    number: Fraction | int | None  # the value of a number

    def __add__(self, other: Operand) -> Term:
        return self.table.sum([self, other])

    def __mul__(self, other: Operand) -> Term:
        return self.table.product([self, other])

    def __pow__(self, exponent: Fraction | int) -> Term:
        return self.table.power(self, Fraction(exponent))

    __radd__, __rmul__ = __add__, __mul__

    def __sub__(self, other: Operand) -> Term:
        return self + self.table.term(other) * -1

    def __rsub__(self, other: Operand) -> Term:
        return self * -1 + other

    def __truediv__(self, other: Operand) -> Term:
        return self * self.table.term(other) ** -1


class Terms:
    """All terms of one proof, numbered in the order in which they are made: arguments come first."""

    def __init__(self, most: int = MAX_WORK) -> None:
        """``truths`` are known to be 0 or 1; ``masked`` may be −∞, so that they are no arguments."""
        self.work, self.truths, self.known = 0, set[Term](), dict[tuple[Hashable, ...], Term]()
        self.numbers, self.masked, self.most = dict[Operand, Term](), set[Term](), min(most, MAX_WORK)
        self.minus_infinity = self.mask(self.term(0), self.term(0))

    def spend(self, work: int) -> None:
        """Count work, and refuse more than is allowed."""
        self.work += work
        require(self.work <= self.most, "writing the claim out takes too long")

    def made(self, kind: str, data: object, *args: Term) -> Term:
        """The term; it is made if there is none."""
        if (found := self.known.get(key := (kind, data, args))) is None:
            if len(self.known) >= MAX_TERMS or not self.masked.isdisjoint(args):
                raise Refused(f"more than {MAX_TERMS} scalar terms, or −∞ is used as a number")
            number: Any = data if kind == "number" else None
            self.known[key] = found = Term(self, kind, data, args, len(self.known), number)
        return found

    def term(self, value: Operand) -> Term:
        """A number as a term; terms as they are."""
        if isinstance(value, Term) or value in self.numbers:
            return value if isinstance(value, Term) else self.numbers[value]
        bounded([(q := Fraction(value)).numerator, q.denominator])
        return self.numbers.setdefault(value, self.made("number", int(q) if q == int(q) else q))

    def _folded(self, kind: str, start: Fraction | int, parts: Iterable[Operand]) -> Term:
        """Σ parts from 0, or Π parts from 1: numbers are taken together, and a zero makes Π zero."""
        terms = list(map(self.term, parts))
        self.spend(len(terms))
        kept, total = [term for term in terms if term.kind != "number"], start
        for number in [t.data for t in terms if t.kind == "number"] if len(kept) < len(terms) else ():
            total = total * number if start else total + number
            bounded([total.numerator, total.denominator])
        if not start and not self.masked.isdisjoint(kept):
            masks, values = zip(*map(self.split, kept), strict=True)
            return self.mask(self.product(masks), self.sum([*values, total]))
        if not total and start and self.masked.isdisjoint(kept):
            return self.term(0)
        kept += [self.term(total)] if total != start or not kept else []
        return kept[0] if len(kept) == 1 else self.made(kind, None, *kept)

    sum, product = partialmethod(_folded, "sum", 0), partialmethod(_folded, "product", 1)  # Σ and Π of parts

    def power(self, base: Term, exponent: Fraction) -> Term:
        """base^exponent for a rational exponent; (u^p)^k is u^(p k) for an integer k."""
        if base.kind == "power" and exponent.denominator == 1:
            base, exponent = base.args[0], exponent * base.data
        if exponent in (0, 1):
            return base if exponent else self.term(1)
        if base.kind == "number" and exponent.denominator == 1:
            bits = max(base.data.numerator.bit_length(), base.data.denominator.bit_length())
            short = (base.data or exponent > 0) and bits * abs(exponent) <= MAX_BITS
            require(short, "a power of 0, or too long")
            return self.term(Fraction(base.data) ** int(exponent))
        return self.made("power", exponent, base)

    def call(self, name: object, *args: Operand) -> Term:
        """The function of this name."""
        if name == "exp" and (a := self.term(args[0])) in self.masked:
            return self.select(a.args[0], self.call(name, a.args[1]), 0)
        return self.made("call", name, *map(self.term, args))

    def mask(self, real: Term, value: Term) -> Term:
        """The value where ``real`` is 1, and −∞ where it is 0."""
        if real.number != 1:
            self.truths.add(real)
            self.masked.add(value := self.made("mask", None, real, value if real.number is None else real))
        return value

    def split(self, a: Term) -> Sequence[Term]:
        """Where a term is not −∞, and its value there."""
        return a.args if a in self.masked else (self.term(1), a)

    def delta(self, i: int, j: int) -> Term:
        """[i = j] for two positions, or two index symbols."""
        known = i == j or (type(i + j) is int and min(i, j) >= 0)  # positions in symbols may be equal
        return self.term(i == j) if known else self.made("delta", (min(i, j), max(i, j)))

    def select(self, condition: Term, then: Operand, otherwise: Operand) -> Term:
        """``then`` where the condition is 1, and ``otherwise`` where it is 0."""
        a, b = self.term(then), self.term(otherwise)
        if a is b or condition.kind == "number":
            return a if a is b or condition.data else b
        if (a.number, b.number) == (1, 0) and condition in self.truths:
            return condition
        if condition in self.truths and not self.masked.isdisjoint([a, b]):
            (c, x), (d, y) = map(self.split, (a, b))
            value = y if c.number == 0 else x if d.number == 0 else self.select(condition, x, y)
            return self.mask(self.select(condition, c, d), value)
        return self.call("select", condition, a, b)


def needed(goals: Sequence[Term], known: Collection[Term] = ()) -> list[Term]:
    """All terms that some terms need, arguments first, without those that are known."""
    stack = [*(seen := set(goals).difference(known))]
    while stack:
        new = [arg for arg in stack.pop().args if arg not in seen and arg not in known]
        seen.update(new)
        stack.extend(new)
    return sorted(seen, key=lambda term: term.index)


_NAMES = {
    sympy: "exp log sin cos tan cot sec csc sinh cosh tanh coth sech csch asin acos atan asinh acosh atanh "
    "erf erfc loggamma gamma digamma polygamma sign floor ceiling Heaviside atan2 sinc",
    cfunctions: "log1p expm1 exp2 log2 log10 hypot", own: "sigmoid softplus relu silu gelu logcosh",
}  # fmt: skip
HEADS: dict[object, str] = {getattr(m, name): name for m in _NAMES for name in _NAMES[m].split()} | {
    sympy.Abs: "abs", sympy.Max: "max", sympy.Min: "min", cfunctions.Sqrt: "sqrt", logaddexp: "logaddexp",
}  # fmt: skip  # by identity: a user's function of the same name is another one

HALF, FLAT = Fraction(1, 2), ("sign", "floor", "ceiling", "less", "equal", "real")


def call(name: str, *args: Term | int) -> Term:
    """The function of this name; the last argument is a term."""
    return args[-1].table.call(name, *args)  # type: ignore[union-attr]  # a term, as said


def of_matrix(name: str, i: int, j: int, a: Sequence[Term], symbols: Sequence[Hashable] = ()) -> Term:
    """An element of A⁻¹ or L where L Lᵀ = A, or det A, of A row by row, or of A_pq for symbols p, q, size."""
    n, inverse = isqrt(len(a)), name == "inverse"
    turned = [a[k % n * n + k // n] for k in range(n * n)]  # (Aᵀ)⁻¹ is (A⁻¹)ᵀ
    i, j, a = (j, i, turned) if inverse and [t.index for t in turned] < [t.index for t in a] else (i, j, a)
    return a[0].table.call((name, i, j, *symbols), *a)


def slope_of_matrix(term: Term, p: int, q: int) -> Term:
    """∂/∂A_pq: d A⁻¹ = −A⁻¹ dA A⁻¹, d det A = det A tr(A⁻¹ dA), d L = L Φ(L⁻¹ dA L⁻ᵀ) where L Lᵀ = A."""
    (name, i, j, *symbols), a, n = term.data, term.args, isqrt(len(term.args))
    if name != "cholesky":
        right = of_matrix("inverse", q, p if name == "det" else j, a, symbols)
        return right * (term if name == "det" else -1 * of_matrix("inverse", i, p, a, symbols))
    # Φ is the lower triangle with half the diagonal (Murray, arXiv:1602.07527, equation 8)
    low = [of_matrix(name, *divmod(m, n), a) if m // n >= m % n else 0 * a[0] for m in range(n * n)]
    parts = [low[i * n + m] * of_matrix("inverse", m, p, low) * (HALF if m == j else 1) for m in range(j, n)]
    return a[0].table.sum(parts) * of_matrix("inverse", j, q, low)


DERIVATIVES: dict[str, Callable[..., tuple[Term | None, ...]]] = {  # by each argument, where f is smooth
    "exp": lambda x: (call("exp", x),), "sigmoid": lambda x: (call("sigmoid", x) * (1 - call("sigmoid", x)),),
    "log": lambda x: (x**-1,), "sin": lambda x: (call("cos", x),), "abs": lambda x: (call("sign", x),),
    "cos": lambda x: (-1 * call("sin", x),), "min": lambda x, y: (call("less", x, y), 1 - call("less", x, y)),
    "tanh": lambda x: (1 - call("tanh", x) ** 2,), "loggamma": lambda x: (call("polygamma", 0, x),),
    "asin": lambda x: ((1 - x**2) ** -HALF,), "logcosh": lambda x: (call("tanh", x),),
    "atan": lambda x: ((1 + x**2) ** -1,), "atan2": lambda y, x: (x / (x**2 + y**2), -1 * y / (x**2 + y**2)),
    "asinh": lambda x: ((1 + x**2) ** -HALF,), "softplus": lambda x: (call("sigmoid", x),),
    "pow": lambda x, y: (y * call("pow", x, y - 1), call("pow", x, y) * call("log", x)),
    "erf": lambda x: (2 * x.table.call("pi") ** -HALF * call("exp", -1 * x**2),),  # DLMF 7.2.1
    "gamma": lambda x: (call("gamma", x) * call("polygamma", 0, x),),  # DLMF 5.2.2
    "polygamma": lambda n, x: (None, call("polygamma", n + 1, x)),  # DLMF 5.15
    "max": lambda x, y: (call("less", y, x), 1 - call("less", y, x)),  # ties are no open set
    **dict.fromkeys(FLAT, lambda *x: (x[0] * 0,) * len(x)),
}  # fmt: skip

ALWAYS: dict[str, Callable[..., Term]] = {  # f is only short for this when a graph is written out
    "tan": lambda x: call("sin", x) / call("cos", x), "cot": lambda x: call("cos", x) / call("sin", x),
    "sec": lambda x: call("cos", x) ** -1, "csc": lambda x: call("sin", x) ** -1, "sqrt": lambda x: x**HALF,
    "sinh": lambda x: (call("exp", x) - call("exp", -1 * x)) / 2, "coth": lambda x: call("tanh", x) ** -1,
    "cosh": lambda x: (call("exp", x) + call("exp", -1 * x)) / 2, "erfc": lambda x: 1 - call("erf", x),
    "sech": lambda x: (1 - call("tanh", x) ** 2) ** HALF, "log1p": lambda x: call("log", 1 + x),
    "csch": lambda x: 2 * (call("exp", x) - call("exp", -1 * x)) ** -1, "sinc": lambda x: call("sin", x) / x,
    "acos": lambda x: x.table.call("pi") / 2 - call("asin", x), "digamma": lambda x: call("polygamma", 0, x),
    "acosh": lambda x: call("log", x + (x - 1) ** HALF * (x + 1) ** HALF),
    "atanh": lambda x: call("log", (1 + x) / (1 - x)) / 2, "expm1": lambda x: call("exp", x) - 1,
    "exp2": lambda x: call("exp", x * x.table.call("log", 2)), "hypot": lambda x, y: (x**2 + y**2) ** HALF,
    "log2": lambda x: call("log", x) / x.table.call("log", 2), "silu": lambda x: x * call("sigmoid", x),
    "log10": lambda x: call("log", x) / x.table.call("log", 10), "relu": lambda x: call("max", x, 0 * x),
    "logaddexp": lambda x, y: call("log", call("exp", x) + call("exp", y)),
    "gelu": lambda x: x * (1 + call("erf", x * x.table.term(2) ** -HALF)) / 2,
    "Heaviside": lambda x, at_0=HALF: call("less", 0, x) + call("equal", x, 0 * x) * at_0,
}  # fmt: skip

DEFINITIONS: dict[str, Callable[..., Term]] = {  # used by steps, under the conditions in `rules`
    "tanh": lambda x: 1 - 2 * (call("exp", 2 * x) + 1) ** -1, "equal": lambda x, y: x.table.term(0),
    "asinh": lambda x: call("log", x + (x**2 + 1) ** HALF), "sign": lambda x: call("abs", x) / x,
    "logcosh": lambda x: call("log", (call("exp", x) + call("exp", -1 * x)) / 2),
    "softplus": lambda x: call("log", 1 + call("exp", x)), "less": lambda x, y: (1 + call("sign", y - x)) / 2,
    "max": lambda x, y: (x + y + call("abs", x - y)) / 2, "real": lambda x: x.table.term(1),
    "min": lambda x, y: (x + y - call("abs", x - y)) / 2, "pow": lambda x, y: call("exp", y * call("log", x)),
    "sigmoid": lambda x: (1 + call("exp", -1 * x)) ** -1, "select": lambda c, x, y: y + c * (x - y),
}  # fmt: skip

EVERYWHERE = {"tanh", "asinh", "logcosh", "softplus", "sigmoid"}  # their definitions have no condition
ODD, EVEN = {"tanh", "asin", "atan", "asinh", "erf", "sign"}, {"logcosh"}
TURNED = dict.fromkeys(ODD, (0, -1, 1)) | {"exp": (0, 1, -1), "sigmoid": (1, -1, 1)}  # a + b f(u)^k is f(−u)
POSITIVE, INDICATORS = {"pi", "sigmoid", "softplus"}, {"less", "equal", "real"}  # these are 0 or 1
TOTAL = {*DERIVATIVES, "pi", "select", "erfc", "silu", "gelu", "relu"} - {  # values for all arguments
    "log", "asin", "gamma", "loggamma", "polygamma", "atan2", "pow"}  # fmt: skip
