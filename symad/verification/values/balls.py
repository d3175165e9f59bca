"""Strict values: graphs on balls of Arb, ±∞, "no value" and "not known", by the ops' own rules.

At a point each node has a value in the extended reals, or none, or it cannot be told. A finite value is a
ball that holds it, so that two balls without a common point are two different numbers. `NONE` is shown: the
logarithm of a number below 0, a division by what is exactly 0. `UNKNOWN` is all that is not: a divisor whose
ball holds 0, a function without a rule here. None and unknown pass through every op; a branch that is not
taken is not looked at. Numbers that are exact in binary stay exact in sums and products, so that |x| − x is
exactly 0 for a dyadic x > 0.

Source: Johansson (2017), "Arb: efficient arbitrary-precision midpoint-radius interval arithmetic".
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from fractions import Fraction
from functools import reduce
from typing import Any

import flint
import numpy as np
import sympy
from flint import arb
from sympy.codegen import cfunctions
from sympy.codegen.numpy_nodes import logaddexp

from symad.core.arrays import Number
from symad.core.graph import Node, topological
from symad.errors import SymadError
from symad.evaluation.scalar_definitions import definition_of, is_defined
from symad.facts.functions import fact, sign_of
from symad.numbers.ball_functions import ball_by_mpmath, ball_of, named_ball
from symad.numbers.number_domains import DOMAINS, Domain, Truth, box
from symad.numbers.values import unchecked, value_of
from symad.ops.basic.sources import Constant
from symad.ops.elementwise.selection import Condition
from symad.ops.linalg.cholesky import Cholesky

VALUE, NONE, UNKNOWN = "value", "none", "unknown"
"""At a point there is a value, perhaps an infinite one; none, which is shown; or what is not known."""


class Undetermined(ArithmeticError):
    """The truth of a comparison is needed, and there is none, or it is not known."""


class NoTruth:
    """The truth of a comparison of what has no value, or is not known."""

    def __init__(self, mark: str) -> None:
        """``mark`` is `NONE` or `UNKNOWN`."""
        self.mark = mark

    def __bool__(self) -> bool:
        raise Undetermined(f"a comparison of what is {self.mark}")


NO_TRUTH, UNDECIDED = NoTruth(NONE), NoTruth(UNKNOWN)


class Ball:
    """A strict value with the operators of a number; ``value`` is NaN unless ``mark`` is `VALUE`."""

    __slots__ = ("mark", "value")

    def __init__(self, value: flint.arb, mark: str = VALUE) -> None:
        """``value`` is finite, or exactly ±∞."""
        self.value, self.mark = value, mark

    def __add__(self, other: Any) -> Ball:
        return NotImplemented if isinstance(other, np.ndarray) else _sum(self, strict(other))

    def __sub__(self, other: Any) -> Ball:
        return NotImplemented if isinstance(other, np.ndarray) else _sum(self, -strict(other))

    def __rsub__(self, other: Any) -> Ball:
        return NotImplemented if isinstance(other, np.ndarray) else _sum(strict(other), -self)

    def __mul__(self, other: Any) -> Ball:
        return NotImplemented if isinstance(other, np.ndarray) else _product(self, strict(other))

    __radd__, __rmul__ = __add__, __mul__

    def __truediv__(self, other: Any) -> Ball:
        return NotImplemented if isinstance(other, np.ndarray) else _quotient(self, strict(other))

    def __rtruediv__(self, other: Any) -> Ball:
        return NotImplemented if isinstance(other, np.ndarray) else _quotient(strict(other), self)

    def __pow__(self, other: Ball | Fraction | int) -> Ball:
        return NUMBERS.power(self, other)

    def __neg__(self) -> Ball:
        return Ball(-self.value, self.mark)

    def __abs__(self) -> Ball:
        return Ball(abs(self.value), self.mark)

    def __lt__(self, other: Ball | Fraction | int) -> bool | NoTruth:
        return _compare("<", self, other)

    def __le__(self, other: Ball | Fraction | int) -> bool | NoTruth:
        return _compare("<=", self, other)

    def __gt__(self, other: Ball | Fraction | int) -> bool | NoTruth:
        return _compare("<", other, self)

    def __ge__(self, other: Ball | Fraction | int) -> bool | NoTruth:
        return _compare("<=", other, self)

    def __eq__(self, other: object) -> Any:
        return _compare("==", self, other)

    def __int__(self) -> int:
        """An index; an error for what is no exact integer."""
        if not (self.value.is_exact() and self.value.is_integer()):
            raise Undetermined(f"{self.value} is no integer")
        return int(self.value.unique_fmpz())

    def __float__(self) -> float:
        return float(self.value.mid())

    @property
    def is_finite(self) -> bool:
        """Whether it is a real number."""
        return bool(self.value.is_finite())


NOTHING, NOT_KNOWN = Ball(arb("nan"), NONE), Ball(arb("nan"), UNKNOWN)
INFINITE = {1: Ball(arb("inf")), -1: Ball(arb("-inf"))}


def strict(value: Any) -> Ball:
    """A number of any kind as a strict value; NaN has none."""
    if isinstance(value, Ball):
        return value
    found = ball_of(value)
    return NOTHING if found.is_nan() else Ball(found)


def _known(found: flint.arb) -> Ball:
    """A finite result; another one says nothing."""
    return Ball(found) if found.is_finite() else NOT_KNOWN


def _worst(*values: Ball) -> Ball | None:
    """What passes through an op: no value before what is not known; None where all have values."""
    marks = [v.mark for v in values]
    if NONE in marks:
        return NOTHING
    return NOT_KNOWN if UNKNOWN in marks else None


def _sum(a: Ball, b: Ball) -> Ball:
    found = a.value + b.value
    if found.is_finite():
        return Ball(found)
    if (mark := _worst(a, b)) is not None:
        return mark
    infinite = [v for v in (a, b) if not v.value.is_finite()]
    if not infinite:
        return NOT_KNOWN
    return infinite[0] if len({bool(v.value > 0) for v in infinite}) == 1 else NOTHING


def _product(a: Ball, b: Ball) -> Ball:
    found = a.value * b.value
    if found.is_finite():
        return Ball(found)
    if (mark := _worst(a, b)) is not None:
        return mark
    if a.value.is_finite() and b.value.is_finite():
        return NOT_KNOWN
    signs = sign_of(a.value), sign_of(b.value)
    if 0 in signs:
        return NOTHING  # 0 · ∞
    return NOT_KNOWN if None in signs else INFINITE[(signs[0] or 1) * (signs[1] or 1)]


def _quotient(a: Ball, b: Ball) -> Ball:
    """a / b: none where b is exactly 0, not known where it may be."""
    if (mark := _worst(a, b)) is not None:
        return mark
    sign = sign_of(b.value)
    if sign == 0:
        return NOTHING
    if sign is None:
        return NOT_KNOWN
    if not b.value.is_finite():
        return Ball(arb(0)) if a.value.is_finite() else NOTHING
    return _known(a.value / b.value) if a.value.is_finite() else _product(a, Ball(arb(sign)))


def _whole_power(b: flint.arb, n: int) -> flint.arb:
    """bⁿ of an integer; Arb's own power of a ball around 0 is NaN."""
    if n < 0 or not b.contains(0):
        return b**n
    if n == 0:
        return arb(1)
    largest = b.abs_upper()
    bound = largest**n if largest > 0 else arb(0)
    return bound.union(arb(0) if n % 2 == 0 else -bound)


def _compare(relation: str, a: Any, b: Any) -> Any:
    """The truth of a relation; a `NoTruth` where there is none, or the balls overlap."""
    a, b = strict(a), strict(b)
    if (mark := _worst(a, b)) is not None:
        return NO_TRUTH if mark is NOTHING else UNDECIDED
    u, v = a.value, b.value
    same = a is b or (u.is_exact() and v.is_exact() and bool(u == v))
    if relation in ("==", "!="):
        if same or not u.overlaps(v):
            return same is (relation == "==")
        return UNDECIDED
    if same:
        return relation == "<="
    return True if u < v else False if u > v else UNDECIDED


class Balls(Domain["Ball | int"]):
    """Arithmetic of strict values."""

    rank = 7

    def number(self, value: Number) -> Ball:
        """Floats are their exact binary values; a number of SymPy that has no ball is not known."""
        found = strict(value)
        return NOT_KNOWN if found is NOTHING and getattr(value, "is_real", False) else found

    def apply(self, head: sympy.FunctionClass, *values: Ball | int) -> Ball:
        """By Arb; maxima are the argument itself, and steps have a value away from their jumps only."""
        boxed = [strict(v) for v in values]
        if (mark := _worst(*boxed)) is not None:
            return mark
        if head in (sympy.Max, sympy.Min):
            return reduce(_largest if head is sympy.Max else _smallest, boxed)
        arguments = [b.value for b in boxed]
        row = fact(head)
        if row.outside(*arguments):
            return NOTHING
        if not all(a.is_finite() for a in arguments):
            return _at_infinity(head, boxed)
        if len(arguments) == 1 and arguments[0].is_exact():
            known = next((_infinite(sign) for end, sign in row.ends.items() if arguments[0] == end), None)
            if known is not None:
                return known
        if head in BY_DEFINITION:
            return BY_DEFINITION[head](*boxed)
        if row.balls is not None:
            return _known(row.balls(*arguments))
        if is_defined(head):
            found = _defined(head, boxed)
            return NOT_KNOWN if row.definition and found.mark == NONE else found  # a formula may lack values
        return _known(ball_by_mpmath(head, arguments))

    def power(self, base: Any, exponent: Any) -> Ball:
        """The real power: 0⁰ = 1, and none of a negative base with an exponent that is no integer."""
        a, x = strict(base), strict(exponent)
        if (mark := _worst(a, x)) is not None:
            return mark
        b, e = a.value, x.value
        if not (b.is_finite() and e.is_finite()):
            return _infinite_power(b, e)
        if e.is_exact() and e.is_integer():
            if e < 0 and b.contains(0):
                return NOTHING if sign_of(b) == 0 else NOT_KNOWN
            return _known(_whole_power(b, int(e.unique_fmpz()))) if abs(e) < 1 << 40 else NOT_KNOWN
        if b > 0:
            return _known(b**e)
        if b < 0 and not e.contains_integer():
            return NOTHING
        if b >= 0 and e > 0:  # a ball that ends at 0
            return Ball(arb(0)) if sign_of(b) == 0 else _known((b.upper() ** e).union(arb(0)))
        return NOTHING if sign_of(b) == 0 and e < 0 else NOT_KNOWN

    def divide(self, a: Any, b: Any) -> Ball:
        """None where the divisor is 0, not known where it may be."""
        return _quotient(strict(a), strict(b))

    def compare(self, relation: str, a: Ball | int, b: Ball | int) -> Truth:
        """A truth value, or a `NoTruth`."""
        return _compare(relation, a, b)

    def select(self, condition: Truth, a: Ball | int, b: Ball | int) -> Ball | int:
        """The branch that is taken; where that is not known, what both have in common."""
        if not isinstance(condition, NoTruth):
            return a if condition else b
        if condition is NO_TRUTH:
            return NOTHING
        one, other = strict(a), strict(b)
        if one.mark == other.mark == NONE:
            return NOTHING
        return _either(one, other)

    def logic(self, kind: str, *conditions: Truth) -> Truth:
        """And, or, xor, not: a false part decides an "and", whatever the others are."""
        lacking = [c for c in conditions if isinstance(c, NoTruth)]
        known = [bool(c) for c in conditions if not isinstance(c, NoTruth)]
        if kind == "and" and not all(known):
            return False
        if kind == "or" and any(known):
            return True
        if lacking:
            return NO_TRUTH if NO_TRUTH in lacking else UNDECIDED
        return super().logic(kind, *known)


NUMBERS = Balls()
DOMAINS.append(((Ball, NoTruth), NUMBERS))


def _either(a: Ball, b: Ball) -> Ball:
    """A ball around two values that are nearly the same; not known where they are not."""
    if not (a.value.is_finite() and b.value.is_finite()):
        return NOT_KNOWN
    both = a.value.union(b.value)
    return Ball(both) if both.rel_accuracy_bits() > SHARP else NOT_KNOWN


def _infinite(sign: float) -> Ball:
    return INFINITE[1 if sign > 0 else -1]


def _largest(a: Ball, b: Ball) -> Ball:
    if a is b or a.value >= b.value:
        return a
    return b if b.value >= a.value else _either(a, b)


def _smallest(a: Ball, b: Ball) -> Ball:
    return -_largest(-a, -b)


def _at_infinity(head: type[sympy.Basic], values: Sequence[Ball]) -> Ball:
    """A function where an argument is infinite; not known where no rule says so."""
    limits = fact(head).limits
    if len(values) == 1 and limits is not None:
        limit = limits[bool(values[0].value > 0)]
        if limit is None:
            return NOTHING
        if isinstance(limit, sympy.Basic):
            return Ball(named_ball(limit))
        return _infinite(limit) if math.isinf(limit) else Ball(arb(limit))
    if head in BY_DEFINITION:
        return BY_DEFINITION[head](*values)
    if is_defined(head):
        found = _defined(head, values)
        return found if found.mark == VALUE else NOT_KNOWN  # ∞ − ∞ in a definition is none of the function
    return NOT_KNOWN


def _log_of_sum(a: Ball, b: Ball) -> Ball:
    """log(eˣ + eʸ): the larger one where the other is −∞."""
    largest = _largest(a, b)
    if not largest.is_finite:
        return largest
    total = NUMBERS.apply(sympy.exp, a - largest) + NUMBERS.apply(sympy.exp, b - largest)
    return largest + NUMBERS.apply(sympy.log, total)


BY_DEFINITION: dict[sympy.FunctionClass, Callable[..., Ball]] = {
    cfunctions.exp2: lambda a: NUMBERS.power(Ball(arb(2)), a),
    logaddexp: _log_of_sum,
}
"""Functions in terms of others, with their infinities."""


def _infinite_power(b: flint.arb, e: flint.arb) -> Ball:
    """A power with an infinite base or exponent."""
    if not b.is_finite():
        whole = e.is_exact() and e.is_integer()
        if b < 0 and not whole:
            return NOT_KNOWN
        odd = whole and int(e.unique_fmpz()) % 2 == 1
        sign = sign_of(e)
        return {1: INFINITE[-1 if b < 0 and odd else 1], -1: Ball(arb(0)), 0: Ball(arb(1))}.get(
            sign if sign is not None else 2, NOT_KNOWN
        )
    if not b > 0 or b.overlaps(arb(1)):
        return NOT_KNOWN
    return INFINITE[1] if bool(b > 1) == bool(e > 0) else Ball(arb(0))


def _defined(head: sympy.FunctionClass, values: Sequence[Ball]) -> Ball:
    """A function by its definition."""
    inputs, meaning = definition_of(head, len(values))
    (value,) = unchecked([meaning], dict(zip(inputs, values, strict=True)))
    return value if isinstance(value, Ball) else NUMBERS.number(value)


# ---- graphs -------------------------------------------------------------------------------------


UNUSABLE = (SymadError, ArithmeticError, ValueError, TypeError, np.linalg.LinAlgError)
"""What an op raises where it has no value, as the factor of a matrix that is not definite."""


@contextmanager
def precision(bits: int) -> Iterator[None]:
    """Balls of so many bits."""
    before = flint.ctx.prec
    flint.ctx.prec = bits
    try:
        yield
    finally:
        flint.ctx.prec = before


def strict_nodes(outputs: Sequence[Node], point: Mapping[Node, Number], bits: int) -> dict[Node, Any]:
    """Strict values of all nodes below some outputs at a rational point; of ops that raise not known."""
    with precision(bits), np.errstate(all="ignore"):
        found: dict[Node, Any] = {n: _entered(v) for n, v in point.items()}
        found[Node.of(Constant(sympy.EulerGamma, "symbol"))] = NUMBERS.number(sympy.EulerGamma)
        for node in topological(outputs):
            if node not in found:
                found[node] = _value(node, found)
    return found


def _value(node: Node, found: Mapping[Node, Any]) -> Any:
    try:
        value = value_of(node, found, NUMBERS)
    except UNUSABLE:
        value = UNDECIDED if isinstance(node.op, Condition) else NOT_KNOWN
        if not node.shape:
            return value
        made = np.empty(tuple(map(int, node.shape)), dtype=object)
        made.fill(value)
        return made
    if isinstance(node.op, Cholesky):  # that of an indefinite matrix has some of its elements
        lost = ~np.frompyfunc(lambda v: strict(v).is_finite, 1, 1)(value).astype(bool)
        value[np.broadcast_to(lost.any(axis=(-2, -1), keepdims=True), value.shape)] = NOT_KNOWN
    return value


def ball_values(outputs: Sequence[Node], point: Mapping[Node, Number], bits: int) -> list[np.ndarray]:
    """The same of the outputs alone, as arrays of balls."""
    found = strict_nodes(outputs, point, bits)
    with precision(bits):
        return [as_balls(found[o]).reshape(tuple(map(int, o.shape))) for o in outputs]


def _entered(value: Number) -> Ball | Number:
    if isinstance(value, np.ndarray):
        return np.frompyfunc(_entered, 1, 1)(value) if value.dtype == object else value
    return strict(value) if isinstance(value, Fraction) else value


def as_balls(value: Number) -> np.ndarray:
    """A number or an array as an array of balls."""
    whole = value if isinstance(value, np.ndarray) else box(value)
    made = np.empty(whole.shape, dtype=object)
    for index, number in np.ndenumerate(whole):
        made[index] = NOT_KNOWN if isinstance(number, NoTruth) else strict(number)
    return made


DISJOINT, EQUAL, OVERLAP = 1, 0, -1
"""What two values say: two of them, the same as far as they tell, or nothing."""

SHARP = 40
"""Balls that overlap agree if both are known to this many bits."""


def compared(left: Any, right: Any) -> np.ndarray:
    """What the elements of two arrays of balls say; infinities count as values."""
    pairs = zip(left.ravel(), right.ravel(), strict=True)
    return np.array([_compared(a, b) for a, b in pairs], dtype=int).reshape(left.shape)


def _compared(a: Ball, b: Ball) -> int:
    u, v = a.value, b.value
    if a.mark != VALUE or b.mark != VALUE:
        return OVERLAP
    if not (u.is_finite() and v.is_finite()):
        return EQUAL if not u.is_finite() and not v.is_finite() and u == v else DISJOINT
    if not u.overlaps(v):
        return DISJOINT
    small = all(w.rel_accuracy_bits() > SHARP or (w.is_exact() or abs(w) < 1e-30) for w in (u, v))
    return EQUAL if small else OVERLAP
