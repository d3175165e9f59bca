"""The derivatives of functions: by a registered rule, or else SymPy's derivative, traced."""

from __future__ import annotations

from fractions import Fraction
from functools import cache
from typing import Any

import sympy

from symad.core.graph import Node, op_of, rebuild
from symad.core.questions import Nodes, Tangent, Tangents, jvp
from symad.errors import DerivativeError
from symad.ops.basic.arithmetic import (
    Add,
    add,
    add_tangents,
    div,
    mul,
    neg,
    scale_tangent,
    signed_sum,
    sub,
    tangent_of_shape,
)
from symad.ops.basic.sources import constant, constant_value, input_node, is_exact
from symad.ops.elementwise import slopes  # noqa: F401  (registers rules)
from symad.ops.elementwise.apply import SLOPES, Apply, apply, slope
from symad.sympy_functions import elliptic_values  # noqa: F401  (registers rules and values)
from symad.sympy_functions.special_functions import polylog_slope, spherical_in
from symad.tracing.from_sympy.parameter_derivatives import by_parameter
from symad.tracing.from_sympy.scalars import trace_scalar


def partial(y: Node, i: int) -> Tangent:
    """∂y/∂x_i of a node ``y = head(x_1, ...)``.

    Raises:
        DerivativeError: neither SymPy nor the user defines the derivative; the message names function and
            argument.
    """
    head = op_of(y, Apply).head
    rule = SLOPES.get(head, getattr(head, "slope", None))
    if rule is not None:
        return rule(y, y.args, i)
    numerical = by_parameter(y, i, partial)
    return _by_sympy(head, i, y.args) if numerical is None else numerical


def _by_sympy(head: Any, i: int, args: Nodes) -> Node:
    """SymPy's ∂head/∂x_i at these arguments.

    Orders and degrees that are exact numbers are substituted: J₀' is −J₁, and neighbors of neighbors
    are equal functions, so that k derivatives of a Bessel function need 2k + 1 functions and not 2ᵏ.
    """
    orders = tuple(None if k == i else _exact(arg) for k, arg in enumerate(args))
    try:
        inputs, (output,) = sympy_partial(head, i, orders)
    except ValueError:  # SymPy refuses an order that occurs in the formula, such as hermite(-1/2, x)
        orders = (None,) * len(args)
        inputs, (output,) = sympy_partial(head, i, orders)
    moving = [arg for arg, order in zip(args, orders, strict=True) if order is None]
    return rebuild((output,), dict(zip(inputs, moving, strict=True)))[0]


def _number(value: int | Fraction) -> sympy.Rational:
    return sympy.Rational(value.numerator, value.denominator)


def _exact(arg: Node) -> int | Fraction | None:
    value = constant_value(arg)
    return value if is_exact(value) else None


@cache
def sympy_partial(
    head: type[sympy.Basic], i: int, orders: tuple[int | Fraction | None, ...]
) -> tuple[tuple[Node, ...], tuple[Node, ...]]:
    """SymPy's ∂head/∂x_i as a graph in new inputs, one for each argument that is not a given number."""
    own = [sympy.Dummy(f"x{k}", real=True) if n is None else _number(n) for k, n in enumerate(orders)]
    expression = partial_expression(head, i, own)
    return tuple(input_node(s) for s in own if s.is_Symbol), (trace_scalar(expression),)


def partial_expression(head: type[sympy.Basic], i: int, symbols: list[sympy.Symbol]) -> sympy.Basic:
    """SymPy's ∂head/∂x_i as an expression in the symbols given."""
    try:
        value = head(*symbols)
        # digamma(x) evaluates to polygamma(0, x), whose argument i is a different one.
        same = value.func is head and hasattr(value, "fdiff")
        expression = value.fdiff(i + 1) if same else value.diff(symbols[i])
    except (sympy.core.function.ArgumentIndexError, NotImplementedError, AttributeError, TypeError):
        expression = None
    without_value = (sympy.hyper, sympy.meijerg)
    unknown = (sympy.Derivative, sympy.Subs, sympy.Integral, sympy.Sum, sympy.DiracDelta)
    if expression is None or expression.has(*unknown, *without_value):
        raise DerivativeError(_unknown(head, i, len(symbols)))
    return expression


def _unknown(head: type[sympy.Basic], i: int, count: int) -> str:
    """The message for ∂head/∂x_i that SymPy does not know."""
    name = getattr(head, "__name__", str(head))
    if str(head.__module__).startswith("sympy.") and count > 1:  # a degree or an order, as of legendre(n, x)
        return (
            f"{name} has no derivative by argument {i + 1} of {count}, such as a degree or an order: give "
            f"wrt=[...] without the inputs on which that argument depends"
        )
    return (
        f"the derivative of {name} in argument {i + 1} of {count} is not known to SymPy; define "
        f"{name}.fdiff(self, argindex), or register it with symad.register_function"
    )


@slope(sympy.jn)
def jn_slope(y: Node, args: Nodes, i: int) -> Tangent:
    """j_n' = (n j_{n−1} − (n + 1) j_{n+1})/(2n + 1), without a quotient by x (DLMF 10.51.1)."""
    order, x = args
    n = constant_value(order)
    if i == 0 or not isinstance(n, int) or n < 0:
        return _by_sympy(sympy.jn, i, args)
    above = apply(sympy.jn, constant(n + 1), x)
    if n == 0:
        return neg(above)
    below = apply(sympy.jn, constant(n - 1), x)
    return div(sub(mul(constant(n), below), mul(constant(n + 1), above)), constant(2 * n + 1))


@slope(sympy.besselj, sympy.bessely, sympy.besseli, sympy.besselk)
def bessel_slope(y: Node, args: Nodes, i: int) -> Tangent:
    """(C_{ν−1} ∓ C_{ν+1})/2, with − for J and Y, and −(K_{ν−1} + K_{ν+1})/2 (DLMF 10.6.1, 10.29.1)."""
    order, x = args
    head = op_of(y, Apply).head
    if i == 0 or _exact(order) is not None:
        return _by_sympy(head, i, args)
    below, above = (apply(head, _plus(order, c), x) for c in (-1, 1))
    both = sub(below, above) if head in (sympy.besselj, sympy.bessely) else add(below, above)
    half = div(both, constant(2))
    return neg(half) if head is sympy.besselk else half


def _plus(order: Node, c: int) -> Node:
    """An order plus a number, with numbers added up, so that neighbors of neighbors are equal functions."""
    signs = order.op.signs if isinstance(order.op, Add) else (1,)
    terms = order.args if isinstance(order.op, Add) else (order,)
    return signed_sum([*zip(signs, terms, strict=True), (1, constant(c))])


@jvp.dispatch
def apply_jvp(op: Apply, y: Node, tangents: Tangents) -> Tangent:
    """y_dot = Σ_i ∂head/∂x_i · x_i_dot."""
    terms = []
    for i, tangent in enumerate(tangents):
        if isinstance(tangent, Node):
            coefficient = partial(y, i)
            if isinstance(coefficient, Node):
                terms.append(scale_tangent(coefficient, tangent))
    return tangent_of_shape(add_tangents(terms), y.shape)


# ---- orthogonal polynomials ---------------------------------------------------------------------
# By x, for which SymPy's n (x P_n − P_{n−1})/(x² − 1) would be 0/0 at ±1; also for degrees that are not
# integers, for which SymPy treats C_n^(a) as a polynomial.


@slope(sympy.legendre)
def legendre_slope(y: Node, args: Nodes, i: int) -> Tangent:
    """P_n' = C_{n−1}^(3/2) (DLMF 18.9.19)."""
    if i < 1:
        return _by_sympy(sympy.legendre, i, args)
    return _gegenbauer_below(args[0], constant(Fraction(3, 2)), args[1])


@slope(sympy.chebyshevu)
def chebyshevu_slope(y: Node, args: Nodes, i: int) -> Tangent:
    """U_n' = 2 C_{n−1}^(2), since U_n = C_n^(1) (DLMF 18.7.4)."""
    if i < 1:
        return _by_sympy(sympy.chebyshevu, i, args)
    return mul(constant(2), _gegenbauer_below(args[0], constant(2), args[1]))


@slope(sympy.gegenbauer)
def gegenbauer_slope(y: Node, args: Nodes, i: int) -> Tangent:
    """2a C_{n−1}^(a+1) (DLMF 18.9.19)."""
    degree, a, x = args
    if i < 2:
        return _by_sympy(sympy.gegenbauer, i, args)
    return mul(constant(2), a, _gegenbauer_below(degree, add(a, constant(1)), x))


def _gegenbauer_below(degree: Node, a: Node, x: Node) -> Node:
    """C_{n−1}^(a)."""
    return apply(sympy.gegenbauer, sub(degree, constant(1)), a, x)


@slope(sympy.Shi)
def sinh_integral_slope(y: Node, args: Nodes, i: int) -> Tangent:
    """sinh(x)/x, as the function whose derivatives are also defined at 0."""
    return apply(spherical_in, constant(0), args[0])


@slope(sympy.polylog)
def polylog_slope_by_x(y: Node, args: Nodes, i: int) -> Tangent:
    """Li_{s−1}(x)/x, as a function that has a value at 0."""
    numerical = by_parameter(y, i, partial)
    return apply(polylog_slope, constant(1), *args) if numerical is None else numerical
