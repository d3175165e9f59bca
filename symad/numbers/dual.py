"""Dual numbers: a value and its tangent, carried through ordinary arithmetic.

Dual(v, v̇) stands for v + v̇ε with ε² = 0, so that f(v + v̇ε) = f(v) + f'(v) v̇ ε (Clifford 1873;
Griewank and Walther 2008, section 3.1). It is forward mode by operator overloading: it shares no
code with the graph's `pushforward`, nor with its table of better-conditioned slopes, and so serves as
an independent check of it. Derivatives of functions are SymPy's ``fdiff``, evaluated on the
components.

Components are floats, arrays, Fractions, mpmath numbers, SymPy expressions, or Dual numbers again.
Dual(Dual(x, 1), Dual(1, 0)) is a second-order (hyper-dual) number: through f it becomes
Dual(Dual(f, f'), Dual(f', f'')).

**Levels are distinguished by nesting alone.** The outermost level belongs to the differentiation that
was started last. A variable of an outer differentiation that is used inside an inner one is a
constant there and must be lifted: written ``Dual(x, 0)``. An operation on numbers of different depths raises
an error, because guessing which ε is which leads to perturbation confusion (Siskind
and Pearlmutter 2008).

The integer 0 as a tangent (the default) is a structural zero: it takes no part in products, so
an infinite slope at a constant does no harm.

At points without a derivative the rules are those of the graph: ties in Max and Min are split
evenly, |x|' = 0 at 0, steps have derivative 0, and a branch not taken contributes nothing.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import partial, reduce
from typing import Any, TypeAlias

import numpy as np
import sympy

from symad.core.arrays import Number
from symad.core.identifiers import brief
from symad.errors import EvaluationError
from symad.numbers.number_domains import (
    FLOATS,
    AnyDomain,
    Domain,
    UndefinedValue,
    apply,
    box,
    compare,
    divide,
    domain_of,
    raise_to,
)

Rule: TypeAlias = Callable[..., Any]


def _binary(rule: Rule) -> Rule:
    """A rule as an operator; operands that are arrays are left to NumPy, which calls ``__array_ufunc__``."""

    def method(self: Dual, other: Number) -> Number:
        return NotImplemented if isinstance(other, np.ndarray) else rule(self, other)

    return method


def _swapped(rule: Rule) -> Rule:
    """The operator with swapped operands."""
    return _binary(lambda a, b: rule(b, a))


def _add(a: Number, b: Number) -> Number:
    check_levels(a, b)
    (x, u), (y, v) = _parts(a), _parts(b)
    return dual(x + y, total([u, v]))


def _subtract(a: Number, b: Number) -> Number:
    return _add(a, -b)


def _multiply(a: Number, b: Number, product: Rule = operator.mul) -> Number:
    check_levels(a, b)
    (x, u), (y, v) = _parts(a), _parts(b)
    return dual(product(x, y), total([scaled(u, y, product), scaled(x, v, product)]))


def _matmul(a: Number, b: Number) -> Number:
    return _multiply(a, b, operator.matmul)


def _mod(a: Number, b: Number) -> Number:
    return apply(sympy.Mod, (a, b))


def _floor_divide(a: Number, b: float) -> Number:
    return apply(sympy.floor, (divide(a, b),))


NO_NUMBERS = (str, bytes, list, tuple, dict, set, type(None))
"""What a Dual number is not made of; the operators of lists would mean something else."""


@dataclass(frozen=True, eq=False, repr=False)
class Dual:
    """value + tangent·ε with ε² = 0.

    Args:
        value: the primal: a number of any kind, an array, or a Dual.
        tangent: its derivative in the chosen direction, in the shape of the value.

    Raises:
        EvaluationError: a part is text, a list or another container.

    Operators, NumPy's and SciPy's ufuncs, and calls of graphs work on it. Comparisons are those of
    the values. A Dual of arrays is one dual array; called with it, a graph sees an array of Duals.

    >>> f = lambda x: x + x**2
    >>> f(Dual(3.0, 1.0))
    Dual(12.0, 7.0)
    >>> f(Dual(Dual(3.0, 1.0), Dual(1.0, 0.0)))
    Dual(Dual(12.0, 7.0), Dual(7.0, 2.0))
    """

    value: Number
    tangent: Number = 0

    def __post_init__(self) -> None:
        for part in self.value, self.tangent:
            if isinstance(part, NO_NUMBERS):
                advice = ": give an array" if isinstance(part, (list, tuple)) else ""
                raise EvaluationError(f"a Dual number is made of numbers, not of {brief(part)}{advice}")

    @property
    def depth(self) -> int:
        """The number of nested levels: 1 for plain components."""
        return depth(self)

    def __repr__(self) -> str:
        return f"Dual({self.value}, {self.tangent})"

    __add__, __radd__ = _binary(_add), _swapped(_add)
    __sub__, __rsub__ = _binary(_subtract), _swapped(_subtract)
    __mul__, __rmul__ = _binary(_multiply), _swapped(_multiply)
    __matmul__, __rmatmul__ = _binary(_matmul), _swapped(_matmul)
    __truediv__, __rtruediv__ = _binary(divide), _swapped(divide)
    __pow__, __rpow__ = _binary(raise_to), _swapped(raise_to)
    __mod__, __rmod__ = _binary(_mod), _swapped(_mod)
    __floordiv__, __rfloordiv__ = _binary(_floor_divide), _swapped(_floor_divide)
    __lt__, __gt__ = _binary(partial(compare, "<")), _swapped(partial(compare, "<"))
    __le__, __ge__ = _binary(partial(compare, "<=")), _swapped(partial(compare, "<="))
    __eq__ = _binary(partial(compare, "=="))
    __ne__ = _binary(partial(compare, "!="))

    def __neg__(self) -> Dual:
        return Dual(-self.value, scaled(-1, self.tangent))

    def __pos__(self) -> Dual:
        return self

    def __abs__(self) -> Number:
        return apply(sympy.Abs, (self,))

    def __floor__(self) -> Number:
        return apply(sympy.floor, (self,))

    def __ceil__(self) -> Number:
        return apply(sympy.ceiling, (self,))

    def __bool__(self) -> bool:
        return bool(self.value)

    def __getattr__(self, name: str) -> Number:
        """For arrays of objects NumPy calls a method of each entry that has the ufunc's name."""
        if name not in UFUNCS:
            raise AttributeError(f"a Dual number has no attribute {name!r}")
        return partial(UFUNCS[name], self)

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Number, **options: Any) -> Number:
        """NumPy's functions, by name; with arrays the result is an array of Dual numbers."""
        rule = ARITHMETIC.get(ufunc.__name__) or UFUNCS.get(ufunc.__name__)
        out = options.pop("out", (None,))[0]
        if rule is None or method != "__call__" or options:
            return NotImplemented
        result = _apply_over_arrays(rule, inputs)
        if out is None:
            return result
        out[...] = result
        return out


UFUNCS: dict[str, Rule] = {}
"""NumPy's and SciPy's functions on Dual numbers, by name; `symad.evaluation.dual_functions` fills it."""

SLOPE: list[Callable[[Any, int, tuple[Any, ...], Any], Any]] = []
"""(head, i, primals, value) -> ∂head/∂x_i; its only entry is `symad.evaluation.dual_functions.slope`."""

ARITHMETIC: dict[str, Rule] = {
    "add": _add,
    "subtract": _subtract,
    "multiply": _multiply,
    "matmul": _matmul,
    "divide": divide,
    "power": raise_to,
    "float_power": raise_to,
    "remainder": _mod,
    "floor_divide": _floor_divide,
    "less": partial(compare, "<"),
    "less_equal": partial(compare, "<="),
    "greater": lambda a, b: compare("<", b, a),
    "greater_equal": lambda a, b: compare("<=", b, a),
    "equal": partial(compare, "=="),
    "not_equal": partial(compare, "!="),
}
"""The ufuncs behind operators."""


def _apply_over_arrays(rule: Rule, inputs: tuple[Number, ...]) -> Number:
    """A rule on Dual numbers and arrays: entry by entry, or on the whole arrays if Duals hold arrays."""
    arrays = [v for v in inputs if isinstance(v, np.ndarray)]
    if any(map(is_array, inputs)) and not any(a.dtype == object for a in arrays):
        return rule(*(Dual(v) if isinstance(v, np.ndarray) else v for v in inputs))
    if not arrays:
        return rule(*inputs)
    entries = [v if isinstance(v, np.ndarray) else _entries(v) for v in inputs]
    return np.frompyfunc(rule, len(inputs), 1)(*entries)


# ---- parts ---------------------------------------------------------------------------------------


def depth(number: Number) -> int:
    """The nesting depth of a number, or of the entries of an array; 0 for numbers that are not Dual."""
    kind = type(number)
    if kind is float or kind is int:
        return 0
    if isinstance(number, Dual):
        return 1 + max(depth(number.value), depth(number.tangent))
    if isinstance(number, np.ndarray) and number.dtype == object:
        return max((depth(entry) for entry in number.flat), default=0)
    return 0


def primal(number: Number) -> Number:
    """The value of a Dual number; other numbers are their own value."""
    return number.value if isinstance(number, Dual) else number


def tangent_of(number: Number) -> Number:
    """The tangent of a Dual number; for other numbers the structural zero."""
    return number.tangent if isinstance(number, Dual) else 0


def _parts(number: Number) -> tuple[Number, Number]:
    """The value and the tangent of a number."""
    return (number.value, number.tangent) if isinstance(number, Dual) else (number, 0)


def primals(numbers: Number) -> np.ndarray:
    """An array of numbers without their tangents, at any depth."""
    array = np.asarray(numbers)
    while depth(array):
        array = np.frompyfunc(primal, 1, 1)(array)
    return array


def is_array(number: Number) -> bool:
    """True if a Dual number has arrays as components."""
    arrays = (np.ndarray, sympy.MatrixBase, sympy.NDimArray)
    if not isinstance(number, Dual):
        return False
    return any(isinstance(part, arrays) or is_array(part) for part in (number.value, number.tangent))


def as_input(number: Dual) -> Number:
    """A Dual as an input of graphs: a Dual of arrays as an array of Duals, machine ints as floats."""
    if is_array(number):
        return np.frompyfunc(as_input, 1, 1)(_entries(number))
    if _innermost(number) is not FLOATS:
        return number
    return Dual(_as_float(number.value), _as_float(number.tangent))


def _as_float(part: Number) -> Number:
    if isinstance(part, Dual):
        return as_input(part)
    return part if is_known_zero(part) else float(part)


def _innermost(number: Dual) -> AnyDomain:
    domain = domain_of((number,))
    while isinstance(domain, NestedDomain):
        domain = domain.inner
    return domain


class NestedDomain(Domain["Dual | float | UndefinedValue"]):
    """A domain of numbers whose components are numbers of another domain, ``inner``."""

    inner: AnyDomain


def _entries(number: Any) -> Any:
    """A number or array of any kind as an array of dtype object."""
    if is_array(number):
        return np.frompyfunc(Dual, 2, 1)(_entries(number.value), _entries(number.tangent))
    if isinstance(number, (sympy.MatrixBase, sympy.NDimArray)):
        return np.array(number.tolist(), dtype=object)
    return number.astype(object) if isinstance(number, np.ndarray) else box(number)


def split(numbers: Any) -> tuple[Any, Any]:
    """The values and the tangents of a Dual number, or of an array of them.

    >>> split(np.array([Dual(1.0, 2.0), Dual(3.0)]))
    (array([1., 3.]), array([2., 0.]))
    """
    if not np.ndim(numbers):
        number = numbers[()] if isinstance(numbers, np.ndarray) else numbers
        return primal(number), tangent_of(number)
    values, tangents = (
        np.frompyfunc(primal, 1, 1)(numbers),
        np.frompyfunc(tangent_of, 1, 1)(numbers),
    )
    return _tidy(values), _tidy(tangents)


def _tidy(entries: np.ndarray) -> np.ndarray:
    """Plain numbers as an array of floats."""
    plain = all(isinstance(entry, (int, float)) for entry in entries.flat)
    return entries.astype(np.float64) if plain else entries


# ---- arithmetic ----------------------------------------------------------------------------------


def is_known_zero(tangent: Number) -> bool:
    """True if a tangent is the integer 0, which stands for a structural zero."""
    return type(tangent) is int and tangent == 0


def scaled(slope: Number, tangent: Number, product: Rule = operator.mul) -> Number:
    """slope · tangent; a structural zero absorbs everything, also where a tangent is 0 on one side."""
    if is_known_zero(slope) or is_known_zero(tangent):
        return 0
    if product is operator.mul and isinstance(tangent, Dual) and depth(slope) in (0, depth(tangent)):
        (x, u), (y, v) = _parts(slope), _parts(tangent)
        return dual(scaled(x, y), total([scaled(x, v), scaled(u, y)]))
    masked = getattr(tangent, "masked_product", None)
    return product(slope, tangent) if masked is None else masked(slope, product)


def total(terms: list[Number]) -> Number:
    """The sum of tangents; structural zeros take no part."""
    present = [term for term in terms if not is_known_zero(term)]
    return reduce(operator.add, present) if present else 0


def dual(value: Number, tangent: Number) -> UndefinedValue | Dual:
    """Dual(value, tangent), or the value itself if it is undefined."""
    return value if isinstance(value, UndefinedValue) else Dual(value, tangent)


def check_levels(*numbers: Number) -> None:
    """Refuse Dual numbers of different depths.

    Raises:
        EvaluationError: the depths differ, so it is not clear which tangent belongs to which variable.
    """
    depths = [d for n in numbers if (d := depth(n))]
    if len(depths) > 1 and min(depths) < max(depths):
        raise EvaluationError(
            f"Dual numbers of nesting depths {min(depths)} and {max(depths)} meet, so it is not "
            "clear which tangent belongs to which variable; lift the shallower one, a constant of "
            "the inner differentiation, to Dual(number, 0)"
        )


def half(number: Number) -> Number:
    """1/2 in the kind of number that a Dual number is made of."""
    while isinstance(number, Dual):
        number = number.value
    if isinstance(number, sympy.Basic):
        return sympy.Rational(1, 2)
    return Fraction(1, 2) if isinstance(number, (Fraction, UndefinedValue)) else 0.5
