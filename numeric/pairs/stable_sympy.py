"""Scalar SymPy expressions as programs on NumPy arrays, and their derivatives.

A pair function f(x_i, y_j) or a score f(s, i, j) is one scalar SymPy expression applied to blocks
of arrays. `Program` evaluates several such expressions together, each distinct subexpression once,
without generating any source text.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, reduce
from typing import Any

import numpy as np
import sympy as sp
from sympy.codegen import cfunctions as cf

from symad.errors import DerivativeError, LoweringError

Array = Any


class Share(sp.Function):
    """share(a, m, a_1, ..., a_k) = [a = m] / #{l : a_l = m}, with m the extremum of a_1..a_k.

    The derivative of an n-ary maximum or minimum with respect to the argument a: a k-way tie gives
    1/k to each. It is locally constant, so its own derivative is 0.
    """

    def fdiff(self, argindex: int = 1) -> sp.Expr:
        """Return 0: the share is constant wherever it is differentiable."""
        return sp.S.Zero


class _Maximum(sp.Function):
    """Max with `Share` as its derivative (SymPy's own gives a Heaviside per pair)."""

    def fdiff(self, argindex: int = 1) -> sp.Expr:
        return Share(self.args[argindex - 1], self, *self.args)


class _Minimum(sp.Function):
    """Min with `Share` as its derivative."""

    def fdiff(self, argindex: int = 1) -> sp.Expr:
        return Share(self.args[argindex - 1], self, *self.args)


class _Step(sp.Function):
    """A piecewise constant function (kind, argument): sign, floor, ceiling or Heaviside."""

    def fdiff(self, argindex: int = 1) -> sp.Expr:
        return sp.S.Zero


_STEPS = {0: sp.sign, 1: sp.floor, 2: sp.ceiling, 3: sp.Heaviside}


def derivative(expr: sp.Expr, symbol: sp.Symbol) -> sp.Expr:
    """∂expr/∂symbol for real values, with symad's conventions at kinks.

    A k-way tie in Max or Min gives 1/k to each argument; sign, floor, ceiling and Heaviside have
    derivative 0, so that DiracDelta never appears.

    Raises:
        DerivativeError: SymPy does not know the derivative of a function in ``expr``.
    """
    if not expr.has(symbol):
        return sp.S.Zero
    guarded = _swap(expr, {sp.Max: _Maximum, sp.Min: _Minimum})
    for kind, step in _STEPS.items():
        guarded = guarded.replace(step, lambda *a, _kind=kind: _Step(_kind, a[0]))
    result = guarded.diff(symbol)
    unknown = result.atoms(sp.Derivative, sp.Subs)
    if unknown:
        raise DerivativeError(
            f"the derivative of {expr} with respect to {symbol} contains {unknown.pop()}; "
            "give the function an fdiff method"
        )
    result = result.replace(_Step, lambda kind, a: _STEPS[int(kind)](a))
    return _swap(result, {_Maximum: sp.Max, _Minimum: sp.Min})


def _swap(expr: sp.Expr, classes: Mapping[type, type]) -> sp.Expr:
    for old, new in classes.items():
        expr = expr.replace(old, lambda *a, _new=new: _new(*a))
    return expr


def _power(base: Array, exponent: Array) -> Array:
    """base**exponent; integer bases (positions) become floats where the power is not an integer."""
    if isinstance(exponent, int) and exponent >= 0:
        return base * base if exponent == 2 else np.power(base, exponent)
    if isinstance(exponent, int):
        return 1 / (base if exponent == -1 else _power(base, -exponent))
    if isinstance(exponent, float) and abs(exponent) == 0.5:
        return np.sqrt(base) if exponent > 0 else 1 / np.sqrt(base)
    return np.power(base, exponent)


def _share(value: Array, extremum: Array, *others: Array) -> Array:
    ties = reduce(np.add, [np.equal(o, extremum).astype(np.float64) for o in others])
    return np.where(np.equal(value, extremum), 1.0 / np.maximum(ties, 1.0), 0.0)


def _heaviside(x: Array, at_zero: Array = 0.5) -> Array:
    return np.heaviside(x, at_zero)


class FloorDivide(sp.Function):
    """⌊a / n⌋ for an integer expression a and a positive integer n, in integer arithmetic."""

    is_integer = True

    def fdiff(self, argindex: int = 1) -> sp.Expr:
        """Return 0: the quotient is piecewise constant."""
        return sp.S.Zero


def exact_integers(expr: sp.Basic) -> sp.Basic:
    """The same expression without fractions of integers, whose rounding could cross an integer.

    ⌊i/3⌋ becomes `FloorDivide` (i, 3), and i/3 ≤ j becomes i − 3j ≤ 0.
    """

    def floors(step: sp.Expr) -> sp.Expr:
        sign = -1 if isinstance(step, sp.ceiling) else 1
        numerator, n = sp.fraction(sp.together(sign * step.args[0]))
        if n == 1 or not (n.is_Integer and numerator.is_integer):
            return step
        return sign * FloorDivide(sp.expand(numerator), n)

    def comparison(relation: sp.Basic) -> sp.Basic:
        difference = sp.together(relation.lhs - relation.rhs)
        numerator, n = sp.fraction(difference)
        if n == 1 or not (n.is_Integer and numerator.is_integer):
            return relation
        return relation.func(sp.expand(numerator), 0)

    expr = expr.replace(lambda e: isinstance(e, (sp.floor, sp.ceiling)), floors)
    return expr.replace(lambda e: isinstance(e, sp.core.relational.Relational), comparison)


def _piecewise(*flat: Array) -> Array:
    """where(c_1, v_1, where(c_2, v_2, ...)) from v_1, c_1, v_2, c_2, ...; nan if none holds."""
    result: Array = np.nan
    for value, condition in reversed(list(zip(flat[::2], flat[1::2], strict=True))):
        result = np.where(condition, value, result)
    return result


def _fold(function: Callable[[Array, Array], Array]) -> Callable[..., Array]:
    def folded(*args: Array) -> Array:
        return reduce(function, args)

    return folded


def _of_scipy(name: str) -> Callable[[Array], Array]:
    """A function of scipy.special, which is imported when a program with it is first evaluated."""

    def function(x: Array) -> Array:
        from scipy import special

        return getattr(special, name)(x)

    return function


FUNCTIONS: dict[type, Callable[..., Array]] = {
    sp.Add: _fold(np.add),
    sp.Mul: _fold(np.multiply),
    sp.Pow: _power,
    sp.exp: np.exp,
    sp.log: np.log,
    sp.sin: np.sin,
    sp.cos: np.cos,
    sp.tan: np.tan,
    sp.asin: np.arcsin,
    sp.acos: np.arccos,
    sp.atan: np.arctan,
    sp.atan2: np.arctan2,
    sp.sinh: np.sinh,
    sp.cosh: np.cosh,
    sp.tanh: np.tanh,
    sp.asinh: np.arcsinh,
    sp.acosh: np.arccosh,
    sp.atanh: np.arctanh,
    sp.erf: _of_scipy("erf"),
    sp.erfc: _of_scipy("erfc"),
    sp.gamma: _of_scipy("gamma"),
    sp.loggamma: _of_scipy("gammaln"),
    sp.Abs: np.abs,
    sp.sign: np.sign,
    sp.floor: np.floor,
    sp.ceiling: np.ceil,
    sp.Mod: np.mod,
    sp.Max: _fold(np.maximum),
    sp.Min: _fold(np.minimum),
    sp.Heaviside: _heaviside,
    Share: _share,
    FloorDivide: np.floor_divide,
    cf.exp2: np.exp2,
    cf.expm1: np.expm1,
    cf.log1p: np.log1p,
    cf.log2: np.log2,
    cf.Sqrt: np.sqrt,
    sp.Eq: np.equal,
    sp.Ne: np.not_equal,
    sp.Lt: np.less,
    sp.Le: np.less_equal,
    sp.Gt: np.greater,
    sp.Ge: np.greater_equal,
    sp.And: _fold(np.logical_and),
    sp.Or: _fold(np.logical_or),
    sp.Xor: _fold(np.logical_xor),
    sp.Not: np.logical_not,
    sp.Piecewise: _piecewise,
    sp.ITE: np.where,
}


def children(expr: sp.Basic) -> tuple[sp.Basic, ...]:
    """The operands of a node; a Piecewise gives value_1, condition_1, value_2, ... flat."""
    if isinstance(expr, sp.Piecewise):
        return tuple(part for pair in expr.args for part in pair.args)
    return tuple(expr.args)


def rebuild(expr: sp.Basic, operands: Sequence[sp.Basic]) -> sp.Basic:
    """The node with other operands, given as `children` gives them."""
    if isinstance(expr, sp.Piecewise):
        return sp.Piecewise(*zip(operands[::2], operands[1::2], strict=True))
    return expr.func(*operands)


def topological(exprs: Sequence[sp.Basic]) -> list[sp.Basic]:
    """Every distinct subexpression of ``exprs``, operands before users, without recursion."""
    seen: set[sp.Basic] = set()
    order: list[sp.Basic] = []
    stack = [(e, False) for e in reversed(exprs)]
    while stack:
        expr, ready = stack.pop()
        if ready:
            order.append(expr)
        elif expr not in seen:
            seen.add(expr)
            stack.append((expr, True))
            stack.extend((c, False) for c in reversed(children(expr)) if c not in seen)
    return list(dict.fromkeys(order))


def constant(expr: sp.Basic) -> bool | float | None:
    """The Python number of a SymPy number or truth value, else None."""
    if expr is sp.true or expr is sp.false:
        return bool(expr)
    if isinstance(expr, sp.Integer):
        return int(expr)
    if isinstance(expr, (sp.Number, sp.NumberSymbol)):  # infinities included
        return float(expr)
    return None


@dataclass(frozen=True)
class Program:
    """Several scalar expressions of the same arguments, evaluated together on arrays.

    Attributes:
        arguments: the symbols, in calling order.
        steps: one (function or constant, operand slots) per distinct subexpression; the arguments
            fill the first slots.
        results: the slot of each expression.
    """

    arguments: tuple[sp.Symbol, ...]
    steps: tuple[tuple[Any, tuple[int, ...]], ...]
    results: tuple[int, ...]

    def __call__(self, *values: Array) -> tuple[Array, ...]:
        """The value of each expression, broadcast from the arguments by NumPy's rules."""
        slots: list[Array] = list(values)
        with np.errstate(all="ignore"):
            for function, operands in self.steps:
                if callable(function):
                    slots.append(function(*[slots[o] for o in operands]))
                else:
                    slots.append(function)
        return tuple(slots[r] for r in self.results)


def program(exprs: Sequence[sp.Basic], arguments: Sequence[sp.Symbol]) -> Program:
    """Compile scalar expressions of ``arguments`` for evaluation on arrays.

    The programs of the last thousand different calls are kept.

    Raises:
        LoweringError: an expression holds a symbol that is not an argument, or a function without
            a NumPy form.
    """
    return _program(tuple(exprs), tuple(arguments))


@lru_cache(maxsize=1024)
def _program(exprs: tuple[sp.Basic, ...], arguments: tuple[sp.Symbol, ...]) -> Program:
    slot: dict[sp.Basic, int] = {a: k for k, a in enumerate(arguments)}
    steps: list[tuple[Any, tuple[int, ...]]] = []
    for expr in topological(exprs):
        if expr in slot:
            continue
        number = constant(expr)
        if number is not None:
            steps.append((number, ()))
        else:
            steps.append((_function(expr, arguments), tuple(slot[c] for c in children(expr))))
        slot[expr] = len(arguments) + len(steps) - 1
    return Program(tuple(arguments), tuple(steps), tuple(slot[e] for e in exprs))


def _function(expr: sp.Basic, arguments: Sequence[sp.Symbol]) -> Callable[..., Array]:
    if expr.is_Symbol:
        known = ", ".join(str(a) for a in arguments)
        raise LoweringError(f"unknown symbol {expr}: the expression may use {known}")
    function = FUNCTIONS.get(expr.func)
    if function is None:
        raise LoweringError(
            f"{expr.func.__name__} in {expr} has no array form; supported functions are "
            + ", ".join(sorted(f.__name__ for f in FUNCTIONS))
        )
    return function
