"""Partial derivatives of functions for which a registered rule keeps more digits than SymPy's formula."""

from __future__ import annotations

import sympy
from sympy.codegen.cfunctions import hypot

from symad.core.graph import ZERO, Node
from symad.core.questions import Nodes, Tangent
from symad.ops.basic.arithmetic import ElementwiseOp, add, div, mul, neg, sub
from symad.ops.basic.shaping import ShapingOp
from symad.ops.basic.sources import Constant, Input, constant
from symad.ops.elementwise.apply import apply, choice, slope
from symad.ops.elementwise.powers import power
from symad.ops.elementwise.selection import compare, equal, indicator, logic

# ---- values of layers ----------------------------------------------------------------------------


SIMPLE = (ElementwiseOp, ShapingOp, Input, Constant)
MAX_OPS = 64
"""The maximum number of ops that are examined; longer elementwise formulas count as layers."""


def of_layer(x: Node) -> bool:
    """True if the array ``x`` comes from products, sums or loops, not from inputs by elementwise functions.

    1 − tanh² and σ (1 − σ) are then computed from the values of tanh and σ, so that their arguments need not
    be stored. They are accurate to an ulp of the largest slope, as in PyTorch and JAX. For other x, slopes
    have full relative accuracy.
    """
    if not x.shape:
        return False
    seen, waiting = {x}, [x]
    while waiting:
        node = waiting.pop()
        if not isinstance(node.op, SIMPLE) or len(seen) > MAX_OPS:
            return True
        new = [a for a in node.args if a not in seen]
        seen.update(new)
        waiting += new
    return False


@slope(sympy.exp)
def exp_slope(y: Node, args: Nodes, i: int) -> Tangent:
    return y


@slope(sympy.factorial)
def factorial_slope(y: Node, args: Nodes, i: int) -> Tangent:
    """n! ψ(n + 1), in terms of the value."""
    return mul(y, apply(sympy.polygamma, constant(0), add(args[0], constant(1))))


@slope(sympy.log)
def log_slope(y: Node, args: Nodes, i: int) -> Tangent:
    return div(constant(1), args[0])


@slope(sympy.tanh)
def tanh_slope(y: Node, args: Nodes, i: int) -> Tangent:
    """1/cosh², with all digits; 1 − y² in layers, which store y anyway."""
    if of_layer(args[0]):
        return sub(constant(1), power(y, constant(2)))
    return power(apply(sympy.sech, args[0]), constant(2))


@slope(sympy.tan)
def tan_slope(y: Node, args: Nodes, i: int) -> Tangent:
    return one_plus_square(y)


@slope(sympy.coth)
def coth_slope(y: Node, args: Nodes, i: int) -> Tangent:
    """−1/sinh², as a function whose own derivatives do not overflow."""
    return neg(power(apply(sympy.csch, args[0]), constant(2)))


@slope(sympy.asinh)
def asinh_slope(y: Node, args: Nodes, i: int) -> Tangent:
    """1/√(1 + x²), where x² does not overflow."""
    return div(constant(1), apply(hypot, constant(1), args[0]))


@slope(sympy.acsch)
def acsch_slope(y: Node, args: Nodes, i: int) -> Tangent:
    """−1/(|x| √(1 + x²)), where x² neither overflows nor underflows."""
    (x,) = args
    return neg(div(constant(1), mul(apply(sympy.Abs, x), apply(hypot, constant(1), x))))


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
    """Steps have derivative 0, also at their jumps; H(u, h), which is h at u = 0, has [u = 0] by h."""
    return indicator(equal(args[0], constant(0))) if i else ZERO


@slope(sympy.LambertW)
def lambertw_slope(y: Node, args: Nodes, i: int) -> Tangent:
    """1/(x + exp(W)), also at 0, where SymPy's W/(x (1 + W)) is 0/0."""
    return div(constant(1), add(args[0], apply(sympy.exp, y)))


@slope(sympy.sinc)
def sinc_slope(y: Node, args: Nodes, i: int) -> Tangent:
    """−j₁(x), which is accurate at 0 too, where cos(x)/x − sin(x)/x² cancels."""
    return neg(apply(sympy.jn, constant(1), args[0]))


@slope(sympy.Si)
def sine_integral_slope(y: Node, args: Nodes, i: int) -> Tangent:
    """sin(x)/x, as the function whose derivatives are also defined at 0."""
    return apply(sympy.sinc, args[0])


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
    hits = [indicator(equal(arg, y)) for arg in args]
    return div(hits[i], add(*hits)) if len(hits) > 1 else hits[i]


@choice(sympy.Max)
def maximum_choice(y: Node, k: int) -> Node:
    """Where no other argument is larger."""
    return logic("not", compare("<", y.args[k], y))


@choice(sympy.Min)
def minimum_choice(y: Node, k: int) -> Node:
    """Where no other argument is smaller."""
    return logic("not", compare("<", y, y.args[k]))


@choice(sympy.sign, sympy.floor, sympy.ceiling)
def step_choice(y: Node, k: int) -> Node:
    """Never."""
    return constant(False)


@choice(sympy.Heaviside)
def heaviside_choice(y: Node, k: int) -> Node | None:
    """Never by u; H(u, h) is h at u = 0."""
    return equal(y.args[0], constant(0)) if k else constant(False)


def one_plus_square(y: Node) -> Node:
    """1 + y²."""
    return sub(constant(1), neg(power(y, constant(2))))
