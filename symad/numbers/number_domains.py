"""The numbers on which graphs are evaluated: floats and NumPy arrays, Fractions, mpmath, SymPy, Dual.

Arrays are NumPy arrays; exact, high-precision, symbolic and dual numbers are entries of arrays of dtype
object, for which NumPy applies their own operators. This module adds the operations without an operator:
functions, division, powers, comparisons and selection, in one `Domain` for each kind of number.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable
from fractions import Fraction
from typing import Any, Generic, TypeAlias, TypeVar

import mpmath
import numpy as np
import sympy

from symad.core.arrays import Array, Number
from symad.core.dims import Dim
from symad.core.expressions import as_sympy
from symad.numbers.function_values import by_arb, mpmath_function, numpy_function


class UndefinedValue:
    """An exact value that does not exist, such as 1/0; it is an error only if it is used."""

    def __init__(self, reason: str) -> None:
        """``reason`` is the message if the value reaches an output."""
        self.reason = reason

    def _absorb(self, *others: Number) -> UndefinedValue:
        return self

    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = _absorb
    __truediv__ = __rtruediv__ = __pow__ = __rpow__ = __neg__ = __abs__ = _absorb
    __lt__ = __le__ = __gt__ = __ge__ = _absorb

    def __repr__(self) -> str:
        return f"Undefined({self.reason})"


def of_expressions(head: type[sympy.Basic], values: Iterable[sympy.Expr]) -> Number:
    """head(*values) for SymPy's numbers and expressions.

    Jacobi and Gegenbauer functions of a fractional degree stay unevaluated: SymPy treats the degree as an
    integer.
    """
    given = tuple(values)
    keep = head in (sympy.jacobi, sympy.gegenbauer) and given[0].is_Number and not given[0].is_Integer
    return head(*given, evaluate=False) if keep else head(*given)


Kind = TypeVar("Kind")

Truth: TypeAlias = "bool | np.ndarray | sympy.Basic"
"""The result of a comparison: a truth value, an array of them, or a condition that is decided later."""


class Domain(Generic[Kind]):
    """Arithmetic on one kind of number."""

    rank: int = 0

    def of(self, value: Kind) -> AnyDomain:
        """The domain of one number of this kind."""
        return self

    def join(self, other: AnyDomain) -> AnyDomain:
        """The domain of the results of operations between both kinds."""
        return max(self, other, key=_rank)

    def number(self, value: Number) -> Kind:
        """A constant (int, Fraction, float, SymPy number) as a number of this kind."""
        raise NotImplementedError

    def apply(self, head: sympy.FunctionClass, *values: Kind) -> Kind:
        """head(*values)."""
        raise NotImplementedError

    def power(self, base: Kind, exponent: Kind) -> Kind:
        """base ** exponent, real."""
        return operator.pow(base, exponent)

    def divide(self, a: Kind, b: Kind) -> Kind:
        """a / b."""
        return operator.truediv(a, b)

    def compare(self, relation: str, a: Kind, b: Kind) -> Truth:
        """``a relation b`` as a truth value."""
        return RELATIONS[relation](a, b)

    def select(self, condition: Truth, a: Kind, b: Kind) -> Kind:
        """The value a where the condition holds, else b."""
        return a if condition else b

    def logic(self, kind: str, *conditions: Truth) -> Truth:
        """And, or, xor, not of truth values."""
        if kind == "not":
            return not conditions[0]
        if kind == "xor":
            return bool(sum(map(bool, conditions)) % 2)
        return all(conditions) if kind == "and" else any(conditions)


AnyDomain: TypeAlias = "Domain[Any]"
"""The domain of numbers whose kind is known only at run time."""


RELATIONS: dict[str, Callable[[Any, Any], Truth]] = {
    "<": operator.lt,
    "<=": operator.le,
    "==": operator.eq,
    "!=": operator.ne,
}


def as_float(value: Number) -> float:
    """The nearest float; infinite if the value is larger than all floats, as in IEEE arithmetic."""
    try:
        return float(value)
    except OverflowError:
        return float("inf") if value > 0 else -float("inf")


def _of_floats(value: Any) -> Any:
    objects = isinstance(value, np.ndarray) and value.dtype == object
    return np.frompyfunc(as_float, 1, 1)(value).astype(np.float64) if objects else value


class Floats(Domain["Array | float"]):
    """Floating-point numbers and arrays of them, with NumPy's IEEE semantics."""

    def number(self, value: Number) -> float:
        """The nearest float."""
        return as_float(value)

    def apply(self, head: sympy.FunctionClass, *values: Array | float) -> Array | float:
        """Calls NumPy or SciPy; Python's integers in arrays of objects become floats, as single ones do."""
        return numpy_function(head)(*map(_of_floats, values))

    def power(self, base: Array | float, exponent: Array | float) -> Array | float:
        """NumPy's power on floats: NaN where the real power does not exist."""
        if isinstance(exponent, float):
            if exponent == 2:
                return base * base
            if exponent == 0.5:
                return np.sqrt(base)
        return np.power(np.asarray(base, dtype=np.float64)[()], exponent)

    def divide(self, a: Array | float, b: Array | float) -> Array | float:
        """IEEE division."""
        return np.true_divide(a, b)

    def select(self, condition: Truth, a: Array | float, b: Array | float) -> Array | float:
        """Calls numpy.where."""
        return np.where(condition, a, b)[()]


Rational: TypeAlias = "Fraction | int | UndefinedValue"
"""An exact number."""


class Fractions(Domain["Rational"]):
    """Exact rational numbers; a value that is not rational is `UndefinedValue`."""

    rank = 1

    def number(self, value: Any) -> Fraction | UndefinedValue:
        """Floats are their exact binary values."""
        if isinstance(value, sympy.NumberSymbol):
            return UndefinedValue(f"{value} is not rational")
        if isinstance(value, float) and not np.isfinite(value):
            return UndefinedValue("no branch of a Piecewise holds")
        return (
            Fraction(sympy.Rational(value).p, sympy.Rational(value).q)
            if isinstance(value, sympy.Basic)
            else Fraction(value)
        )

    def apply(self, head: sympy.FunctionClass, *values: Any) -> Rational:
        """Exact where SymPy finds a rational value."""
        if any(isinstance(v, UndefinedValue) for v in values):
            return next(v for v in values if isinstance(v, UndefinedValue))
        result = of_expressions(head, [sympy.Rational(Fraction(v)) for v in values])
        if isinstance(result, sympy.Rational):
            return Fraction(int(result.p), int(result.q))
        return UndefinedValue(f"{head.__name__}({', '.join(map(str, values))}) is not rational")

    def power(self, base: Any, exponent: Any) -> Rational:
        """Integer powers, and roots that are rational."""
        for value in (base, exponent):
            if isinstance(value, UndefinedValue):
                return value
        if base == 0 and exponent < 0:
            return UndefinedValue(f"0 ** {exponent}")
        if Fraction(exponent).denominator == 1:
            return Fraction(base) ** int(exponent)
        result = sympy.Rational(Fraction(base)) ** sympy.Rational(Fraction(exponent))
        if isinstance(result, sympy.Rational):
            return Fraction(int(result.p), int(result.q))
        return UndefinedValue(f"({base}) ** ({exponent}) is not rational")

    def divide(self, a: Rational, b: Rational) -> Rational:
        """Exact division."""
        if isinstance(a, UndefinedValue) or isinstance(b, UndefinedValue):
            return a if isinstance(a, UndefinedValue) else b
        return UndefinedValue(f"({a}) / 0") if b == 0 else Fraction(a) / b

    def select(self, condition: Truth | UndefinedValue, a: Rational, b: Rational) -> Rational:
        """The taken branch; the other may be undefined."""
        return condition if isinstance(condition, UndefinedValue) else (a if condition else b)


class HighPrecision(Domain[mpmath.mpf]):
    """mpmath numbers at the working precision; complex results are NaN."""

    rank = 2

    def number(self, value: Number) -> mpmath.mpf:
        """Rounded to the working precision."""
        if isinstance(value, sympy.Basic):
            return mpmath.mpf(value.evalf(mpmath.mp.dps + 5)._mpf_)
        return _mp(value)

    def apply(self, head: sympy.FunctionClass, *values: mpmath.mpf) -> mpmath.mpf:
        """Calls Arb if it has the function, else mpmath."""
        numbers = tuple([_mp(v) for v in values])
        found = by_arb(head, numbers)
        if found is not None:
            return found
        try:
            return _real(mpmath_function(head)(*numbers))
        except (ValueError, ZeroDivisionError, OverflowError, mpmath.libmp.NoConvergence):
            return mpmath.nan
        except TypeError:  # some of mpmath's functions raise it at infinities
            if all(map(mpmath.isfinite, numbers)):
                raise
            return mpmath.nan

    def power(self, base: Number, exponent: Number) -> mpmath.mpf:
        """The real power."""
        try:
            return _real(_mp(base) ** _mp(exponent))
        except (ValueError, ZeroDivisionError):
            return mpmath.inf if _mp(base) == 0 else mpmath.nan

    def divide(self, a: Number, b: Number) -> Number:
        """IEEE-like division."""
        a, b = _mp(a), _mp(b)
        if b == 0:
            return mpmath.nan if a == 0 or mpmath.isnan(a) else mpmath.sign(a) * mpmath.inf
        return a / b


def _mp(value: Number) -> Number:
    if isinstance(value, Fraction):
        return mpmath.mpf(value.numerator) / value.denominator
    return mpmath.mpf(value.item() if isinstance(value, np.generic) else value)


def _real(value: Number) -> Number:
    if isinstance(value, mpmath.mpc):
        return mpmath.nan if value.imag else value.real
    return value


class Symbolic(Domain[sympy.Expr]):
    """SymPy expressions."""

    rank = 3

    def number(self, value: Number) -> sympy.Expr:
        """The SymPy number."""
        return _sympy(value)

    def apply(self, head: sympy.FunctionClass, *values: sympy.Expr) -> sympy.Expr:
        """The function of SymPy."""
        return of_expressions(head, map(_sympy, values))

    def power(self, base: sympy.Expr, exponent: Number) -> sympy.Expr:
        """SymPy's power."""
        return _sympy(base) ** _sympy(exponent)

    def divide(self, a: Dim, b: sympy.Expr) -> sympy.Expr:
        """SymPy's quotient."""
        return _sympy(a) / _sympy(b)

    def compare(self, relation: str, a: sympy.Expr, b: sympy.Expr) -> Truth:
        """A SymPy relation."""
        heads = {"<": sympy.Lt, "<=": sympy.Le, "==": sympy.Eq, "!=": sympy.Ne}
        return heads[relation](_sympy(a), _sympy(b))

    def select(self, condition: Truth, a: sympy.Expr, b: sympy.Expr) -> sympy.Expr:
        """A Piecewise."""
        return sympy.Piecewise((_sympy(a), as_sympy(condition)), (_sympy(b), True))


def _sympy(value: Number) -> Number:
    if isinstance(value, Fraction):
        return sympy.Rational(value.numerator, value.denominator)
    return as_sympy(value)


DOMAINS: list[tuple[tuple[type, ...], AnyDomain]] = [
    ((Fraction, UndefinedValue), Fractions()),
    ((mpmath.mpf, mpmath.mpc, type(mpmath.mp.pi)), HighPrecision()),
    ((sympy.Basic,), Symbolic()),
]
"""Number classes and their domains; `symad.numbers.dual` adds its domain."""

FLOATS = Floats()


def domain_of(values: Iterable[Number]) -> AnyDomain:
    """The widest domain among the values; entries of arrays of dtype object count."""
    found: AnyDomain = FLOATS
    for value in values:
        if isinstance(value, (int, float)):
            continue
        if isinstance(value, np.ndarray):
            if value.dtype == object:
                found = wider(found, domain_of(value.ravel().tolist()))
            continue
        for classes, domain in DOMAINS:
            if isinstance(value, classes):
                found = wider(found, domain.of(value))
    return found


def wider(a: AnyDomain, b: AnyDomain) -> AnyDomain:
    """The domain of the results of operations between two domains, according to the one of higher rank."""
    return a.join(b) if a.rank >= b.rank else b.join(a)


def _rank(domain: AnyDomain) -> int:
    return domain.rank


def _spread(function: Callable[..., Number], domain: AnyDomain, values: tuple[Number, ...]) -> Any:
    """Apply a scalar function of a domain over arrays of dtype object."""
    if not isinstance(domain, Floats) and any(isinstance(v, np.ndarray) for v in values):
        boxed = [v if isinstance(v, np.ndarray) else box(v) for v in values]
        return np.frompyfunc(function, len(values), 1)(*boxed)
    return function(*values)


def box(value: Number) -> np.ndarray:
    """A number as an object array without axes."""
    array = np.empty((), dtype=object)
    array[()] = value
    return array


def apply(head: sympy.FunctionClass, values: tuple[Number, ...]) -> Any:
    """head(*values), elementwise."""
    domain = domain_of(values)
    return _spread(lambda *v: domain.apply(head, *v), domain, values)


def divide(a: Any, b: Any) -> Any:
    """a / b, elementwise."""
    domain = domain_of((a, b))
    return _spread(domain.divide, domain, (a, b))


def raise_to(base: Number, exponent: Number) -> Any:
    """base ** exponent, elementwise."""
    domain = domain_of((base, exponent))
    return _spread(domain.power, domain, (base, exponent))


def compare(relation: str, a: Number, b: Number) -> Array:
    """``a relation b``, elementwise; the relation is one of < <= == !=."""
    domain = domain_of((a, b))
    return _spread(lambda x, y: domain.compare(relation, x, y), domain, (a, b))


def logic(kind: str, conditions: tuple[Number, ...]) -> Array:
    """And, or, xor, not, elementwise, of conditions that are not plain truth values."""
    domain = domain_of(conditions)
    return _spread(lambda *c: domain.logic(kind, *c), domain, conditions)


def select(condition: Number, a: Number, b: Number) -> Array:
    """The value a where the condition holds and b elsewhere."""
    domain = domain_of((condition, a, b))
    return _spread(domain.select, domain, (condition, a, b))
