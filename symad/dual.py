"""Dual numbers: a value and its tangent, carried through ordinary arithmetic.

Dual(v, v̇) stands for v + v̇ε with ε² = 0, so that f(v + v̇ε) = f(v) + f'(v) v̇ ε (Clifford 1873;
Griewank and Walther 2008, section 3.1). It is forward mode by operator overloading: it shares no
code with the graph's `pushforward`, nor its table of better-conditioned slopes, and so serves as
an independent check on it. Derivatives of functions are SymPy's ``fdiff``, evaluated on the
components.

Components are floats, arrays, Fractions, mpmath numbers, SymPy expressions, or Dual numbers again.
Dual(Dual(x, 1), Dual(1, 0)) is a second-order (hyper-dual) number: through f it becomes
Dual(Dual(f, f'), Dual(f', f'')).

**Levels are told apart by nesting alone.** The outermost level belongs to the differentiation that
was started last. A variable of an outer differentiation that is used inside an inner one is a
constant there and must be lifted: written ``Dual(x, 0)``. Numbers of different depths never mix;
meeting, they raise, because guessing which ε is which is how perturbations get confused (Siskind
and Pearlmutter 2008).

The integer 0 as a tangent (the default) means known to be zero: it takes no part in products, so
an infinite slope at a constant does no harm.

At points without a derivative the policy is that of the graph: ties in Max and Min are split
evenly, |x|' = 0 at 0, steps have derivative 0, and a branch not taken contributes nothing.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cache, reduce
from typing import Any

import numpy as np
import sympy

from symad.errors import DerivativeError, EvaluationError
from symad.graph import Node
from symad.ops.elementwise import SLOPES, apply as apply_node, sympy_partial
from symad.ops.numeric_names import NUMPY_NAMES
from symad.ops.sources import input_node
from symad.values import DOMAINS, FLOATS, Domain, Undefined, box, domain_of
from symad.values import apply as apply_value
from symad.values import compare as compare_values
from symad.values import divide as divide_values
from symad.values import raise_to as raise_values
from symad.values import select as select_values


@dataclass(frozen=True, eq=False, repr=False)
class Dual:
    """value + tangent·ε with ε² = 0.

    Args:
        value: the primal: a number of any kind, an array, or a Dual.
        tangent: its derivative in the chosen direction, in the shape of the value.

    Operators, NumPy's and SciPy's ufuncs, and calls of graphs work on it. Comparisons are those of
    the values. A Dual of arrays is one dual array; called with it, a graph sees an array of Duals.

    >>> f = lambda x: x + x**2
    >>> f(Dual(3, 1))
    Dual(12, 7)
    >>> f(Dual(Dual(3, 1), Dual(1, 0)))
    Dual(Dual(12, 7), Dual(7, 2))
    """

    value: Any
    tangent: Any = 0

    @property
    def depth(self) -> int:
        """How many levels are nested: 1 for plain components."""
        return 1 + max(depth(self.value), depth(self.tangent))

    def __repr__(self) -> str:
        return f"Dual({self.value}, {self.tangent})"

    def __add__(self, other: Any) -> Any:
        return _added(self, other)

    def __radd__(self, other: Any) -> Any:
        return _added(other, self)

    def __sub__(self, other: Any) -> Any:
        return _added(self, -other)

    def __rsub__(self, other: Any) -> Any:
        return _added(other, -self)

    def __mul__(self, other: Any) -> Any:
        return _multiplied(operator.mul, self, other)

    def __rmul__(self, other: Any) -> Any:
        return _multiplied(operator.mul, other, self)

    def __matmul__(self, other: Any) -> Any:
        return _multiplied(operator.matmul, self, other)

    def __rmatmul__(self, other: Any) -> Any:
        return _multiplied(operator.matmul, other, self)

    def __truediv__(self, other: Any) -> Any:
        return divide_values(self, other)

    def __rtruediv__(self, other: Any) -> Any:
        return divide_values(other, self)

    def __pow__(self, other: Any) -> Any:
        return raise_values(self, other)

    def __rpow__(self, other: Any) -> Any:
        return raise_values(other, self)

    def __mod__(self, other: Any) -> Any:
        return apply_value(sympy.Mod, (self, other))

    def __rmod__(self, other: Any) -> Any:
        return apply_value(sympy.Mod, (other, self))

    def __floordiv__(self, other: Any) -> Any:
        return math.floor(self / other)

    def __rfloordiv__(self, other: Any) -> Any:
        return math.floor(other / self)

    def __neg__(self) -> Dual:
        return Dual(-self.value, scaled(-1, self.tangent))

    def __pos__(self) -> Dual:
        return self

    def __abs__(self) -> Any:
        return apply_value(sympy.Abs, (self,))

    def __floor__(self) -> Any:
        return apply_value(sympy.floor, (self,))

    def __ceil__(self) -> Any:
        return apply_value(sympy.ceiling, (self,))

    def __lt__(self, other: Any) -> Any:
        return compare_values("<", self, other)

    def __le__(self, other: Any) -> Any:
        return compare_values("<=", self, other)

    def __gt__(self, other: Any) -> Any:
        return compare_values("<", other, self)

    def __ge__(self, other: Any) -> Any:
        return compare_values("<=", other, self)

    def __eq__(self, other: object) -> Any:
        return compare_values("==", self, other)

    def __ne__(self, other: object) -> Any:
        return compare_values("!=", self, other)

    __hash__ = None  # type: ignore[assignment]

    def __bool__(self) -> bool:
        return bool(self.value)

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        """NumPy's functions, by name; with arrays the result is an array of Dual numbers."""
        rule = UFUNCS.get(ufunc.__name__)
        out = options.pop("out", (None,))[0]
        if rule is None or method != "__call__" or options:
            return NotImplemented
        if any(isinstance(v, np.ndarray) for v in inputs) and not any(map(is_array, inputs)):
            inputs = tuple(v if isinstance(v, np.ndarray) else box(v) for v in inputs)
            result = np.frompyfunc(rule, len(inputs), 1)(*inputs)
        else:
            result = rule(*inputs)
        if out is None:
            return result
        out[...] = result
        return out


# ---- parts ---------------------------------------------------------------------------------------


def depth(number: Any) -> int:
    """The nesting depth of a number, or of the entries of an array; 0 for what is not Dual."""
    if isinstance(number, Dual):
        return number.depth
    if isinstance(number, np.ndarray) and number.dtype == object:
        return max((depth(entry) for entry in number.flat), default=0)
    return 0


def is_array(number: Any) -> bool:
    """Whether a Dual number has arrays as components."""
    if not isinstance(number, Dual):
        return False
    parts = (number.value, number.tangent)
    return any(isinstance(p, (np.ndarray, sympy.MatrixBase, sympy.NDimArray)) or is_array(p) for p in parts)


def expand(number: Dual) -> Any:
    """A Dual of arrays as an array of Duals (dtype object); a Dual of numbers is returned as it is."""
    if not is_array(number):
        return number
    return np.frompyfunc(Dual, 2, 1)(_entries(number.value), _entries(number.tangent))


def _entries(component: Any) -> Any:
    if isinstance(component, Dual):
        component = expand(component)
    if isinstance(component, (sympy.MatrixBase, sympy.NDimArray)):
        component = np.array(component.tolist(), dtype=object)
    return component.astype(object) if isinstance(component, np.ndarray) else box(component)


def split(numbers: Any) -> tuple[Any, Any]:
    """The values and the tangents of a Dual number or of an array of them.

    >>> split(np.array([Dual(1.0, 2.0), Dual(3.0)]))
    (array([1., 3.]), array([2., 0.]))
    """
    if not isinstance(numbers, np.ndarray):
        return primal(numbers), _tangent(numbers)
    parts = np.frompyfunc(lambda n: (primal(n), _tangent(n)), 1, 1)(numbers)
    return tuple(_array([pair[k] for pair in parts.flat], numbers.shape) for k in (0, 1))  # type: ignore[return-value]


def _array(entries: list[Any], shape: tuple[int, ...]) -> Any:
    if all(isinstance(entry, (int, float, np.floating)) for entry in entries):
        return np.array(entries, dtype=float).reshape(shape)
    result = np.empty(len(entries), dtype=object)
    result[:] = entries
    return result.reshape(shape)


def primal(number: Any) -> Any:
    """The value of a Dual number; other numbers are their own value."""
    return number.value if isinstance(number, Dual) else number


def _tangent(number: Any) -> Any:
    return number.tangent if isinstance(number, Dual) else 0


# ---- arithmetic ----------------------------------------------------------------------------------


def is_known_zero(tangent: Any) -> bool:
    """Whether a tangent is the integer 0, which stands for a structural zero."""
    return type(tangent) is int and tangent == 0


def scaled(slope: Any, tangent: Any, product: Callable[[Any, Any], Any] = operator.mul) -> Any:
    """slope · tangent; a structural zero absorbs everything."""
    return 0 if is_known_zero(slope) or is_known_zero(tangent) else product(slope, tangent)


def _total(terms: list[Any]) -> Any:
    present = [term for term in terms if not is_known_zero(term)]
    return reduce(operator.add, present) if present else 0


def dual(value: Any, tangent: Any) -> Any:
    """Dual(value, tangent), or the value itself where it is undefined."""
    return value if isinstance(value, Undefined) else Dual(value, tangent)


def _check_levels(*numbers: Any) -> None:
    depths = {depth(n) for n in numbers} - {0}
    if len(depths) > 1:
        low, high = min(depths), max(depths)
        raise EvaluationError(
            f"Dual numbers of nesting depths {low} and {high} meet, so it is not clear which tangent "
            f"belongs to which variable; lift the shallower one, a constant of the inner "
            f"differentiation, to Dual(number, 0)"
        )


def _added(a: Any, b: Any) -> Any:
    _check_levels(a, b)
    return dual(primal(a) + primal(b), _total([_tangent(a), _tangent(b)]))


def _multiplied(product: Callable[[Any, Any], Any], a: Any, b: Any) -> Any:
    _check_levels(a, b)
    left = scaled(_tangent(a), primal(b), product)
    right = scaled(primal(a), _tangent(b), product)
    return dual(product(primal(a), primal(b)), _total([left, right]))


# ---- functions -----------------------------------------------------------------------------------


class Duals(Domain):
    """Dual numbers whose components lie in the domain ``inner``."""

    def __init__(self, inner: Domain) -> None:
        """Dual domains outrank all others, and deeper ones outrank shallower ones."""
        self.inner = inner
        self.rank = 10 + inner.rank  # type: ignore[misc]

    def of(self, number: Any) -> Domain:
        """The domain of one Dual number: that of its components, one level up."""
        return _duals(domain_of((number.value, number.tangent)))

    def join(self, other: Domain) -> Domain:
        """Constants of the other domain are taken into the innermost one."""
        if isinstance(other, Duals):
            return _duals(self.inner.join(other.inner))
        return _duals(self.inner.join(other))

    def number(self, value: Any) -> Any:
        """A constant, with a tangent known to be zero."""
        return Dual(self.inner.number(value))

    def apply(self, head: Any, *values: Any) -> Any:
        """f(v) + Σ_i ∂_i f(v) v̇_i ε."""
        _check_levels(*values)
        primals = tuple(map(primal, values))
        result = apply_value(head, primals)
        terms = [
            scaled(slope(head, i, primals, result), _tangent(v))
            for i, v in enumerate(values)
            if not is_known_zero(_tangent(v))
        ]
        return dual(result, _total(terms))

    def power(self, base: Any, exponent: Any) -> Any:
        """b**e + (e b**(e−1) ḃ + b**e log(b) ė) ε; the last term is 0 at b = 0 (its limit for e > 0)."""
        _check_levels(base, exponent)
        b, e = primal(base), primal(exponent)
        result = raise_values(b, e)
        terms = []
        if not is_known_zero(_tangent(base)):
            terms.append(scaled(_power_slope(b, e), _tangent(base)))
        if not is_known_zero(_tangent(exponent)):
            positive = select_values(compare_values("==", b, 0), 1, b)
            terms.append(scaled(result * apply_value(sympy.log, (positive,)), _tangent(exponent)))
        return dual(result, _total(terms))

    def divide(self, a: Any, b: Any) -> Any:
        """a/b + (ȧ − (a/b) ḃ)/b ε."""
        _check_levels(a, b)
        result = divide_values(primal(a), primal(b))
        numerator = _total([_tangent(a), scaled(-1, scaled(result, _tangent(b)))])
        return dual(result, 0 if is_known_zero(numerator) else divide_values(numerator, primal(b)))

    def compare(self, relation: str, a: Any, b: Any) -> Any:
        """The relation between the values."""
        return compare_values(relation, primal(a), primal(b))

    def select(self, condition: Any, a: Any, b: Any) -> Any:
        """Value and tangent of the branch taken."""
        if isinstance(condition, (bool, np.bool_)):
            return a if condition else b
        if isinstance(condition, Undefined):
            return condition
        _check_levels(a, b)
        value = select_values(condition, primal(a), primal(b))
        if is_known_zero(_tangent(a)) and is_known_zero(_tangent(b)):
            return dual(value, 0)
        return dual(value, select_values(condition, _tangent(a), _tangent(b)))


@cache
def _duals(inner: Domain) -> Duals:
    return Duals(inner)


DOMAINS.append(((Dual,), _duals(FLOATS)))


def _power_slope(b: Any, e: Any) -> Any:
    """e b**(e−1), which is 0 for e = 0 also at b = 0."""
    if isinstance(e, (int, float, Fraction, sympy.Number)) and e == 0:
        return 0
    return e * raise_values(b, e - 1)


def slope(head: Any, i: int, primals: tuple[Any, ...], result: Any) -> Any:
    """∂head/∂x_i at the primals, of which ``result`` is the value.

    Raises:
        DerivativeError: neither SymPy nor the user knows the derivative.
    """
    if head in STEPS:
        return 0
    if head in KINKS:
        return KINKS[head](i, primals, result)
    inputs, output = _slope_graph(head, i, len(primals))
    from symad.evaluation import unchecked

    return unchecked((output,), dict(zip(inputs, primals, strict=True)))[0]


@cache
def _slope_graph(head: Any, i: int, count: int) -> tuple[tuple[Node, ...], Node]:
    """SymPy's derivative; for a function SymPy does not know, the one its user registered."""
    try:
        inputs, (output,) = sympy_partial(head, i, count)
        return inputs, output
    except DerivativeError:
        if head not in SLOPES:
            raise
    inputs = tuple(input_node(sympy.Dummy(f"x{k}", real=True)) for k in range(count))
    registered = SLOPES[head](apply_node(head, *inputs), inputs, i)
    from symad.forward import dense

    return inputs, dense(registered, inputs[i])


STEPS = {sympy.sign, sympy.floor, sympy.ceiling, sympy.Heaviside}
"""Piecewise constant functions: derivative 0 everywhere."""


def _extreme_slope(i: int, primals: tuple[Any, ...], result: Any) -> Any:
    """1/k where argument i is one of k that attain the extreme, else 0."""
    hits = [select_values(compare_values("==", p, result), 1, 0) for p in primals]
    return divide_values(hits[i], reduce(operator.add, hits))


def _mod_slope(i: int, primals: tuple[Any, ...], result: Any) -> Any:
    """Mod(a, b) = a − b floor(a/b)."""
    return -apply_value(sympy.floor, (divide_values(*primals),)) if i else 1


def _frac_slope(i: int, primals: tuple[Any, ...], result: Any) -> Any:
    return 1


def _abs_slope(i: int, primals: tuple[Any, ...], result: Any) -> Any:
    return apply_value(sympy.sign, primals)


KINKS: dict[Any, Callable[[int, tuple[Any, ...], Any], Any]] = {
    sympy.Max: _extreme_slope,
    sympy.Min: _extreme_slope,
    sympy.Mod: _mod_slope,
    sympy.frac: _frac_slope,
    sympy.Abs: _abs_slope,
}
"""Functions with kinks or jumps, for which SymPy's derivative is wrong or missing at them."""


# ---- NumPy's functions ---------------------------------------------------------------------------


def _head(head: Any) -> Callable[..., Any]:
    return lambda *values: apply_value(head, values)


def log1p(x: Any) -> Any:
    """log(1 + x), accurate for small x."""
    if isinstance(x, Dual):
        return dual(log1p(x.value), scaled(divide_values(1, 1 + x.value), x.tangent))
    return np.log1p(x) if domain_of((x,)) is FLOATS else apply_value(sympy.log, (1 + x,))


def expm1(x: Any) -> Any:
    """exp(x) − 1, accurate for small x."""
    if isinstance(x, Dual):
        return dual(expm1(x.value), scaled(apply_value(sympy.exp, (x.value,)), x.tangent))
    return np.expm1(x) if domain_of((x,)) is FLOATS else apply_value(sympy.exp, (x,)) - 1


def logaddexp(a: Any, b: Any) -> Any:
    """log(eᵃ + eᵇ) without overflow."""
    largest = apply_value(sympy.Max, (a, b))
    return largest + log1p(apply_value(sympy.exp, (-abs(a - b),)))


def _sqrt(x: Any) -> Any:
    return raise_values(x, Fraction(1, 2) if isinstance(domain_of((x,)).number(1), Fraction) else 0.5)


UFUNCS: dict[str, Callable[..., Any]] = {
    name.rpartition(".")[2]: _head(head)
    for head, name in NUMPY_NAMES.items()
    if name.startswith(("numpy.", "scipy."))
} | {
    "absolute": abs,
    "fabs": abs,
    "positive": operator.pos,
    "negative": operator.neg,
    "add": operator.add,
    "subtract": operator.sub,
    "multiply": operator.mul,
    "matmul": operator.matmul,
    "divide": divide_values,
    "power": raise_values,
    "float_power": raise_values,
    "remainder": _head(sympy.Mod),
    "floor_divide": operator.floordiv,
    "square": lambda x: x * x,
    "reciprocal": lambda x: divide_values(1, x),
    "sqrt": lambda x: raise_values(x, _half(x)),
    "cbrt": lambda x: apply_value(sympy.sign, (x,)) * abs(x) ** (1 / 3),
    "exp2": lambda x: raise_values(2, x),
    "log2": lambda x: apply_value(sympy.log, (x,)) / math.log(2),
    "log10": lambda x: apply_value(sympy.log, (x,)) / math.log(10),
    "log1p": log1p,
    "expm1": expm1,
    "hypot": lambda x, y: raise_values(x * x + y * y, _half(x)),
    "logaddexp": logaddexp,
    "degrees": lambda x: x * (180 / math.pi),
    "radians": lambda x: x * (math.pi / 180),
    "maximum": _head(sympy.Max),
    "minimum": _head(sympy.Min),
    "psi": _head(sympy.digamma),
    "gammaln": _head(sympy.loggamma),
    "less": operator.lt,
    "less_equal": operator.le,
    "greater": operator.gt,
    "greater_equal": operator.ge,
    "equal": operator.eq,
    "not_equal": operator.ne,
}
"""What NumPy's and SciPy's ufuncs of these names do to Dual numbers."""


def _half(x: Any) -> Any:
    """1/2 in the kind of number that x is made of."""
    while isinstance(x, Dual):
        x = x.value
    return sympy.Rational(1, 2) if isinstance(x, sympy.Basic) else Fraction(1, 2) if isinstance(x, Fraction) else 0.5


def _method(rule: Callable[..., Any]) -> Callable[..., Any]:
    """For arrays of objects NumPy calls a method of each entry that has the ufunc's name."""
    return lambda self, *others: rule(self, *others)


for _name, _rule in UFUNCS.items():
    if isinstance(getattr(np, _name, None), np.ufunc) and not hasattr(Dual, _name):
        setattr(Dual, _name, _method(_rule))
