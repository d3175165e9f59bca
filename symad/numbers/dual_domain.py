"""Dual numbers as a domain: the operations that the evaluation of a graph needs, with tangents."""

from __future__ import annotations

from fractions import Fraction
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
import sympy

from symad.core.arrays import Number
from symad.numbers.dual import (
    SLOPE,
    Dual,
    NestedDomain,
    check_levels,
    dual,
    is_known_zero,
    primal,
    scaled,
    tangent_of,
    total,
)
from symad.numbers.number_domains import (
    DOMAINS,
    FLOATS,
    AnyDomain,
    UndefinedValue,
    apply,
    compare,
    divide,
    domain_of,
    raise_to,
    select,
)

if TYPE_CHECKING:
    from symad.numbers.number_domains import Truth


class Duals(NestedDomain):
    """Dual numbers whose components are numbers of the domain ``inner``."""

    def __init__(self, inner: AnyDomain) -> None:
        """Dual domains rank above all others, and deeper ones above shallower ones."""
        self.inner = inner
        self.rank = 10 + inner.rank

    def of(self, value: Any) -> AnyDomain:
        """The domain of one Dual number: that of its components, one level up."""
        return _duals(domain_of((value.value, value.tangent)))

    def join(self, other: AnyDomain) -> AnyDomain:
        """The dual domain in which numbers of the other domain are constants among the components."""
        return _duals(self.inner.join(other.inner if isinstance(other, Duals) else other))

    def number(self, value: Number) -> Dual:
        """A constant, with a tangent known to be zero."""
        return Dual(self.inner.number(value))

    def apply(self, head: sympy.FunctionClass, *values: Any) -> Any:
        """f(v) + Σ_i ∂_i f(v) v̇_i ε."""
        check_levels(*values)
        primals = tuple(map(primal, values))
        result = apply(head, primals)
        terms = [
            scaled(SLOPE[0](head, i, primals, result), tangent_of(v))
            for i, v in enumerate(values)
            if not is_known_zero(tangent_of(v))
        ]
        return dual(result, total(terms))

    def power(self, base: Any, exponent: Number) -> Any:
        """b**e + (e b**(e−1) ḃ + b**e log(b) ė) ε; the last term is 0 at b = 0, its limit."""
        check_levels(base, exponent)
        b, e = primal(base), primal(exponent)
        result = raise_to(b, e)
        terms = []
        if not is_known_zero(tangent_of(base)):
            terms.append(scaled(_power_slope(b, e), tangent_of(base)))
        if not is_known_zero(tangent_of(exponent)):
            positive = select(compare("==", b, 0), 1, b)
            terms.append(scaled(result * apply(sympy.log, (positive,)), tangent_of(exponent)))
        return dual(result, total(terms))

    def divide(self, a: Number, b: Number) -> Any:
        """a/b + (ȧ − (a/b) ḃ)/b ε."""
        check_levels(a, b)
        result = divide(primal(a), primal(b))
        numerator = total([tangent_of(a), scaled(-1, scaled(result, tangent_of(b)))])
        return dual(result, 0 if is_known_zero(numerator) else divide(numerator, primal(b)))

    def compare(self, relation: str, a: Any, b: Any) -> Truth:
        """The relation between the values."""
        return compare(relation, primal(a), primal(b))

    def select(self, condition: Truth, a: Any, b: Any) -> Any:
        """Value and tangent of the branch taken; the other one may be undefined."""
        if isinstance(condition, UndefinedValue):
            return condition
        if isinstance(condition, (bool, np.bool_)):
            return a if condition else b
        check_levels(a, b)
        value = select(condition, primal(a), primal(b))
        tangents = tangent_of(a), tangent_of(b)
        return dual(value, 0 if all(map(is_known_zero, tangents)) else select(condition, *tangents))


@cache
def _duals(inner: AnyDomain) -> Duals:
    return Duals(inner)


DOMAINS.append(((Dual,), _duals(FLOATS)))


def _power_slope(b: Number, e: Number) -> Number:
    """e b**(e−1), which is 0 for e = 0 also at b = 0."""
    known_zero = isinstance(e, (int, float, Fraction, sympy.Number)) and e == 0
    return 0 if known_zero else e * raise_to(b, e - 1)
