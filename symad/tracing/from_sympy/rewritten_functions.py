"""SymPy's functions with a short formula in terms of others: the formula is traced in their place."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import sympy
from sympy.codegen import cfunctions, numpy_nodes, scipy_nodes
from sympy.codegen.ast import none
from sympy.codegen.numpy_nodes import logaddexp

from symad.core.graph import Node
from symad.core.questions import Nodes
from symad.errors import ShapeError, TraceError
from symad.ops.arrays.reduction import extreme
from symad.ops.basic.sources import constant
from symad.ops.elementwise.apply import apply
from symad.ops.elementwise.selection import compare
from symad.tracing.error_names import check_scalars
from symad.tracing.walk import Tracer, lift, operands


def harmonic(n: sympy.Expr, order: sympy.Expr = sympy.S.One) -> sympy.Basic:
    """Σ_{k ≤ n} k^(−order): ψ(n + 1) + γ, and ζ(order) − ζ(order, n + 1) for orders above 1."""
    if order == 1:
        return sympy.digamma(n + 1) + sympy.EulerGamma
    return sympy.zeta(order) - sympy.zeta(order, n + 1)


def bernoulli(n: sympy.Expr, x: sympy.Expr = sympy.S.One) -> sympy.Basic:
    """Bₙ = −n ζ(1 − n), and B₀ = 1.

    Raises:
        TraceError: a polynomial Bₙ(x) whose order is not a number.
    """
    if x != 1:
        raise TraceError(f"bernoulli({n}, {x}): the order of a Bernoulli polynomial has to be a number")
    return sympy.Piecewise((1, sympy.Eq(n, 0)), (-n * sympy.zeta(1 - n), True))


def catalan(n: sympy.Expr) -> sympy.Basic:
    """4ⁿ Γ(n + 1/2) / (√π Γ(n + 2))."""
    half = sympy.Rational(1, 2)
    return 4**n * sympy.gamma(n + half) / (sympy.sqrt(sympy.pi) * sympy.gamma(n + 2))


def rising_factorial(x: sympy.Expr, k: sympy.Expr) -> sympy.Basic:
    """x (x + 1) ... (x + k − 1) for a number k up to 30; else Γ(x + k)/Γ(x)."""
    if k.is_Integer and 0 <= k <= 30:
        return sympy.Mul(*(x + j for j in range(int(k))))
    return sympy.gamma(x + k) / sympy.gamma(x)


def logaddexp2(a: sympy.Expr, b: sympy.Expr) -> sympy.Basic:
    """log2(2^a + 2^b)."""
    two = sympy.log(2)
    return logaddexp(a * two, b * two) / two


def _logarithmic_integral(x: sympy.Expr) -> sympy.Basic:
    return sympy.Ei(sympy.log(x))


FORMULAS: dict[Any, Callable[..., Any]] = {
    sympy.harmonic: harmonic,
    sympy.UnevaluatedExpr: lambda inner: inner,
    sympy.bernoulli: bernoulli,
    sympy.catalan: catalan,
    sympy.RisingFactorial: rising_factorial,
    sympy.FallingFactorial: lambda x, k: rising_factorial(x - k + 1, k),
    sympy.arg: lambda x: sympy.Piecewise((sympy.pi, x < 0), (0, True)),
    sympy.li: _logarithmic_integral,
    sympy.Li: lambda x: _logarithmic_integral(x) - _logarithmic_integral(sympy.Integer(2)),
    sympy.erf2: lambda x, y: sympy.erf(y) - sympy.erf(x),
    numpy_nodes.logaddexp2: logaddexp2,
    numpy_nodes.maximum: sympy.Max,
    numpy_nodes.minimum: sympy.Min,
    cfunctions.fma: lambda x, y, z: x * y + z,
    cfunctions.Sqrt: sympy.sqrt,
    cfunctions.Cbrt: lambda x: sympy.sign(x) * sympy.Abs(x) ** sympy.Rational(1, 3),
    scipy_nodes.cosm1: lambda x: -2 * sympy.sin(x / 2) ** 2,
    scipy_nodes.powm1: lambda x, y: cfunctions.expm1(y * sympy.log(x)),
}
"""The formulas, by SymPy head; the arguments are SymPy expressions."""


def formula_operands(expression: sympy.Basic, tracer: Tracer) -> tuple[sympy.Basic, ...]:
    """The formula."""
    return (FORMULAS[expression.func](*expression.args),)


def formula_lift(expression: sympy.Basic, args: Nodes, tracer: Tracer) -> Node:
    """The formula's node."""
    return args[0]


for _head in FORMULAS:
    operands.register(_head, formula_operands)
    lift.register(_head, formula_lift)


@lift.register(cfunctions.isnan)
def isnan_lift(expression: sympy.Basic, args: Nodes, tracer: Tracer) -> Node:
    """NaN differs from itself."""
    check_scalars(expression, args)
    return compare("!=", args[0], args[0])


@lift.register(cfunctions.isinf)
def isinf_lift(expression: sympy.Basic, args: Nodes, tracer: Tracer) -> Node:
    """|x| = ∞."""
    check_scalars(expression, args)
    return compare("==", apply(sympy.Abs, args[0]), constant(float("inf")))


@operands.register(numpy_nodes.amin)
@operands.register(numpy_nodes.amax)
def extreme_operands(expression: sympy.Basic, tracer: Tracer) -> tuple[sympy.Basic, ...]:
    """The array."""
    return (expression.array,)


@lift.register(numpy_nodes.amin)
@lift.register(numpy_nodes.amax)
def extreme_lift(expression: sympy.Basic, args: Nodes, tracer: Tracer) -> Node:
    """The smallest or largest element, along an axis if there is one.

    Raises:
        ShapeError: the operand is a number, or the array does not have the axis.
    """
    kind = "min" if isinstance(expression, numpy_nodes.amin) else "max"
    (array,) = args
    rank = len(array.shape)
    if not rank:
        raise ShapeError(f"{expression}: {expression.array} is a number; amin and amax take an array")
    if expression.axis == none:
        return extreme(kind, array)
    if not -rank <= expression.axis < rank:
        raise ShapeError(
            f"{expression}: {expression.array} has {rank} axes, and none of number {expression.axis}"
        )
    return extreme(kind, array, (int(expression.axis) % rank,))
