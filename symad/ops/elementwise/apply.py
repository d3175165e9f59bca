"""Functions applied to each element: any scalar SymPy function, with its derivative from SymPy.

One op serves them all. The partial derivatives of a head come from SymPy once and are kept as a
graph; where a better-conditioned form exists (tanh' = 1 − tanh², from the output) it is registered
in `SLOPES` and takes precedence.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import sympy

from symad.core.dims import Shape, size
from symad.core.graph import ZERO, Node, rebuild, shape
from symad.core.questions import (
    Nodes,
    Tangent,
    Tangents,
    Values,
    evaluate,
    flops,
    jvp,
)
from symad.errors import DerivativeError
from symad.ops.arrays.sources import constant, constant_value, input_node
from symad.ops.elementwise.arithmetic import (
    ElementwiseOp,
    add,
    add_tangents,
    common_shape,
    div,
    mul,
    neg,
    scale_tangent,
    sub,
    tangent_of_shape,
)
from symad.ops.elementwise.powers import power


@dataclass(frozen=True, eq=False)
class Apply(ElementwiseOp):
    """head(x_1, ..., x_k) for a scalar SymPy function head."""

    head: Any


def apply(head: Any, *args: Node) -> Node:
    """The function of these arguments, elementwise."""
    return Node.of(Apply(head), args)


Slope = Callable[[Node, Nodes, int], Tangent]
SLOPES: dict[Any, Slope] = {}
"""Better forms of ∂head/∂x_i, from the value y, the arguments and i."""


def slope(*heads: Any) -> Callable[[Slope], Slope]:
    """Register the partial derivatives of some heads."""

    def register(rule: Slope) -> Slope:
        for head in heads:
            SLOPES[head] = rule
        return rule

    return register


def partial(y: Node, i: int) -> Tangent:
    """∂y/∂x_i of a node ``y = head(x_1, ...)``.

    Raises:
        DerivativeError: neither SymPy nor the user knows the derivative; names function and argument.
    """
    head = y.op.head  # type: ignore[attr-defined]
    rule = SLOPES.get(head)
    if rule is not None:
        return rule(y, y.args, i)
    inputs, (output,) = sympy_partial(head, i, len(y.args))
    return rebuild((output,), dict(zip(inputs, y.args, strict=True)))[0]


@cache
def sympy_partial(head: Any, i: int, count: int) -> tuple[tuple[Node, ...], tuple[Node, ...]]:
    """SymPy's ∂head/∂x_i as a graph in fresh inputs."""
    from symad.tracing.from_sympy.scalars import trace_scalar

    symbols = [sympy.Dummy(f"x{k}", real=True) for k in range(count)]
    expression = partial_expression(head, i, symbols)
    return tuple(input_node(s) for s in symbols), (trace_scalar(expression),)


def partial_expression(head: Any, i: int, symbols: list[Any]) -> Any:
    """SymPy's ∂head/∂x_i as an expression in the symbols given."""
    try:
        value = head(*symbols)
        # digamma(x) evaluates to polygamma(0, x), of which argument i is another one.
        same = value.func is head and hasattr(value, "fdiff")
        expression = value.fdiff(i + 1) if same else value.diff(symbols[i])
    except (sympy.core.function.ArgumentIndexError, NotImplementedError, AttributeError, TypeError):
        expression = None
    without_value = (sympy.hyper, sympy.meijerg)
    unknown = (sympy.Derivative, sympy.Subs, sympy.Integral, sympy.Sum, sympy.DiracDelta)
    if expression is None or expression.has(*unknown, *without_value):
        raise DerivativeError(_unknown(head, i, len(symbols)))
    return expression


def _unknown(head: Any, i: int, count: int) -> str:
    """What to do about ∂head/∂x_i, which SymPy does not know."""
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


@slope(sympy.exp)
def exp_slope(y: Node, args: Nodes, i: int) -> Tangent:
    return y


@slope(sympy.log)
def log_slope(y: Node, args: Nodes, i: int) -> Tangent:
    return div(constant(1), args[0])


@slope(sympy.tanh)
def tanh_slope(y: Node, args: Nodes, i: int) -> Tangent:
    """1 − y² from the values of arrays, which layers keep anyway; 1/cosh², with all digits, of numbers."""
    if y.shape:
        return sub(constant(1), power(y, constant(2)))
    return power(apply(sympy.sech, args[0]), constant(2))


@slope(sympy.tan)
def tan_slope(y: Node, args: Nodes, i: int) -> Tangent:
    return apply_sum_of_one(y)


@slope(sympy.coth)
def coth_slope(y: Node, args: Nodes, i: int) -> Tangent:
    """−1/sinh², as a function whose own derivatives do not overflow."""
    return neg(power(apply(sympy.csch, args[0]), constant(2)))


def apply_sum_of_one(y: Node) -> Node:
    """1 + y²."""
    return sub(constant(1), neg(power(y, constant(2))))


@slope(sympy.sin)
def sin_slope(y: Node, args: Nodes, i: int) -> Tangent:
    return apply(sympy.cos, args[0])


@slope(sympy.cos)
def cos_slope(y: Node, args: Nodes, i: int) -> Tangent:
    return neg(apply(sympy.sin, args[0]))


@slope(sympy.Abs)
def abs_slope(y: Node, args: Nodes, i: int) -> Tangent:
    """The sign, with 0 at 0."""
    return apply(sympy.sign, args[0])


@slope(sympy.sign, sympy.floor, sympy.ceiling, sympy.Heaviside)
def step_slope(y: Node, args: Nodes, i: int) -> Tangent:
    """Steps have derivative 0, also where they jump."""
    return ZERO


@slope(sympy.LambertW)
def lambertw_slope(y: Node, args: Nodes, i: int) -> Tangent:
    """exp(−W)/(1 + W), also at 0, where SymPy's W/(x (1 + W)) is 0/0."""
    return div(apply(sympy.exp, neg(y)), add(constant(1), y))


@slope(sympy.sinc)
def sinc_slope(y: Node, args: Nodes, i: int) -> Tangent:
    """−j₁(x), which is right at 0 too, where cos(x)/x − sin(x)/x² cancels."""
    return neg(apply(sympy.jn, constant(1), args[0]))


@slope(sympy.jn)
def jn_slope(y: Node, args: Nodes, i: int) -> Tangent:
    """j_n' = (n j_{n−1} − (n + 1) j_{n+1})/(2n + 1), without a quotient by x (DLMF 10.51.1)."""
    order, x = args
    n = constant_value(order)
    if i == 0 or not isinstance(n, int) or n < 0:
        inputs, (output,) = sympy_partial(sympy.jn, i, 2)
        return rebuild((output,), dict(zip(inputs, args, strict=True)))[0]
    above = apply(sympy.jn, constant(n + 1), x)
    if n == 0:
        return neg(above)
    below = apply(sympy.jn, constant(n - 1), x)
    return div(sub(mul(constant(n), below), mul(constant(n + 1), above)), constant(2 * n + 1))


@slope(sympy.frac)
def frac_slope(y: Node, args: Nodes, i: int) -> Tangent:
    return constant(1)


@slope(sympy.Mod)
def mod_slope(y: Node, args: Nodes, i: int) -> Tangent:
    """Mod(a, b) = a − b floor(a/b)."""
    if i == 0:
        return constant(1)
    return neg(apply(sympy.floor, div(*args)))


@slope(sympy.Max, sympy.Min)
def extremum_slope(y: Node, args: Nodes, i: int) -> Tangent:
    """1 for the extreme argument; 1/k for each of k that tie."""
    from symad.ops.elementwise.arithmetic import add
    from symad.ops.elementwise.selection import equal, indicator

    hits = [indicator(equal(arg, y)) for arg in args]
    return div(hits[i], add(*hits)) if len(hits) > 1 else hits[i]


# ---- answers ------------------------------------------------------------------------------------


@shape(Apply)
def apply_shape(op: Apply, args: Nodes) -> Shape:
    return common_shape(f"{op.head.__name__}", args)


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


@flops.dispatch
def apply_flops(op: Apply, y: Node) -> Any:
    return size(y.shape)


@evaluate.dispatch
def apply_evaluate(op: Apply, values: Values) -> Any:
    from symad.evaluation.number_domains import apply as apply_values

    return apply_values(op.head, values)
