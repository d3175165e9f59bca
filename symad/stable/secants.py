"""The table of differences: f(u) − f(v) from an exact d = u − v, and c ± f(u) for a number c.

A row holds where its condition does. Elsewhere the difference as it was written is taken. ``early`` rows
serve before differentiation, too: their derivatives are as good, and proved like those of the difference.
Identities: Abramowitz & Stegun, "Handbook of Mathematical Functions" (1964), 4.3.34-4.3.40, 4.4.34, 4.5.41;
Higham, "Accuracy and Stability of Numerical Algorithms" (2002), sections 1.7 and 1.14. Every row is proved by
`tests/symad/stable/test_rows.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from fractions import Fraction

import sympy
from sympy.codegen.cfunctions import Cbrt, expm1, log1p

from symad.core.graph import Node
from symad.ops.basic.arithmetic import add, div, mul, neg
from symad.ops.basic.sources import constant
from symad.ops.elementwise.apply import apply
from symad.ops.elementwise.powers import Pow, power
from symad.ops.elementwise.selection import compare, logic, select
from symad.stable.normal_forms import Number, head_of, rational
from symad.sympy_functions.scalar_functions import sigmoid, softplus

Form = Callable[[Node, Node, Node], Node]
Conditions = Callable[[Node, Node, Node], Node | None]
ZERO, ONE, TWO = constant(0), constant(1), constant(2)


def everywhere(u: Node, v: Node, d: Node) -> Node | None:
    """No condition."""
    return None


@dataclass(frozen=True)
class Secant:
    """f(u) − f(v) = form(u, v, u − v) where the condition holds."""

    form: Form
    condition: Conditions = everywhere
    early: bool = False


def sin(x: Node) -> Node:
    """Sin."""
    return apply(sympy.sin, x)


def cos(x: Node) -> Node:
    """Cos."""
    return apply(sympy.cos, x)


def half(x: Node) -> Node:
    """x/2."""
    return div(x, TWO)


def magnitude(x: Node) -> Node:
    """|x|."""
    value = rational(x)
    return apply(sympy.Abs, x) if value is None else constant(abs(value))


def by_sign(d: Node, up: Node, down: Node) -> Node:
    """The first where d ≥ 0, else the second."""
    return select(compare(">=", d, ZERO), up, down)


def exp_form(u: Node, v: Node, d: Node) -> Node:
    """The larger exponential times one that is less than 1."""
    up = neg(mul(apply(sympy.exp, u), apply(expm1, neg(d))))
    return by_sign(d, up, mul(apply(sympy.exp, v), apply(expm1, d)))


def log_form(u: Node, v: Node, d: Node) -> Node:
    """log1p of a ratio that is not negative."""
    return by_sign(d, apply(log1p, div(d, v)), neg(apply(log1p, neg(div(d, u)))))


def log_condition(u: Node, v: Node, d: Node) -> Node:
    """Both logarithms have values, and the ratio is a float."""
    return logic("and", compare("<", ZERO, v), compare("<", ZERO, u), _ratio_is_a_float(v, d))


def _ratio_is_a_float(v: Node, d: Node) -> Node:
    return compare("<", mul(magnitude(d), constant(2.0**-1000)), v)


def atan_condition(u: Node, v: Node, d: Node) -> Node:
    """0 < 1 + u v: the two angles are less than a right angle apart; and u v is a float."""
    product = add(ONE, mul(u, v))
    return logic("and", compare("<", ZERO, product), compare("<", product, constant(2.0**1000)))


def sigmoid_form(u: Node, v: Node, d: Node) -> Node:
    """Products of factors that are less than 1."""
    up = neg(mul(apply(expm1, neg(d)), apply(sigmoid, u), apply(sigmoid, neg(v))))
    return by_sign(d, up, mul(apply(expm1, d), apply(sigmoid, v), apply(sigmoid, neg(u))))


def tanh_form(u: Node, v: Node, d: Node) -> Node:
    """Twice the difference of logistic functions at 2u and 2v."""
    return mul(TWO, sigmoid_form(*(mul(TWO, x) for x in (u, v, d))))


def softplus_form(u: Node, v: Node, d: Node) -> Node:
    """log1p of (exp(u) − exp(v))/(1 + exp(v))."""
    up = apply(log1p, mul(apply(expm1, d), apply(sigmoid, v)))
    return by_sign(d, up, neg(apply(log1p, mul(apply(expm1, neg(d)), apply(sigmoid, u)))))


def small(u: Node, v: Node, d: Node) -> Node:
    """|d| < 1: v + d/2 is not rounded coarsely beside u and v, and exponentials of d do not overflow."""
    return compare("<", magnitude(d), ONE)


SECANTS: dict[Hashable, Secant] = {
    sympy.exp: Secant(exp_form),
    expm1: Secant(exp_form),
    sympy.log: Secant(log_form, log_condition),
    sympy.sin: Secant(lambda u, v, d: mul(TWO, cos(add(v, half(d))), sin(half(d))), small),
    sympy.cos: Secant(lambda u, v, d: neg(mul(TWO, sin(add(v, half(d))), sin(half(d)))), small),
    sympy.tan: Secant(lambda u, v, d: div(div(sin(d), cos(u)), cos(v))),
    sympy.cot: Secant(lambda u, v, d: neg(div(div(sin(d), sin(u)), sin(v)))),
    sympy.atan: Secant(lambda u, v, d: apply(sympy.atan, div(d, add(ONE, mul(u, v)))), atan_condition),
    sympy.sinh: Secant(
        lambda u, v, d: mul(TWO, apply(sympy.cosh, add(v, half(d))), apply(sympy.sinh, half(d))), small
    ),
    sympy.cosh: Secant(
        lambda u, v, d: mul(TWO, apply(sympy.sinh, add(v, half(d))), apply(sympy.sinh, half(d))), small
    ),
    sigmoid: Secant(sigmoid_form),
    sympy.tanh: Secant(tanh_form),
    softplus: Secant(softplus_form, small),
}
"""The rows by functions; those of powers are made by `power_secant`."""


def spelled(node: Node) -> tuple[Hashable, Node] | None:
    """The function f and the argument u of a value f(u) that has a row; log1p(x) is log(1 + x)."""
    head = head_of(node)
    if head is log1p:
        return sympy.log, add(ONE, node.args[0])
    if head is Cbrt:
        return Fraction(1, 3), node.args[0]
    if head is not None:
        return (head, node.args[0]) if head in SECANTS else None
    if isinstance(node.op, Pow):
        exponent = rational(node.args[1])
        return node.args[1] if exponent is None else exponent, node.args[0]
    return None


def secant_of(f: Hashable) -> Secant:
    """The row of a function that `spelled` has named."""
    return SECANTS[f] if f in SECANTS else power_secant(f)


# ---- powers ---------------------------------------------------------------------------------------


MAX_POWER = 6
"""Powers, also those of roots, up to which a difference is d Σ u^i v^(n−1−i)."""


def power_secant(exponent: Hashable) -> Secant:
    """The row of u^p − v^p for a rational p, or for a node."""
    if (
        isinstance(exponent, Fraction)
        and exponent.denominator in (2, 3)
        and 0 < exponent.numerator <= MAX_POWER
    ):
        return Secant(lambda u, v, d: root_form(u, v, d, exponent), differ, True)
    p = exponent if isinstance(exponent, Node) else constant(exponent)
    return Secant(lambda u, v, d: power_form(u, v, d, p), power_condition)


def root_form(u: Node, v: Node, d: Node, exponent: Fraction) -> Node:
    """From d = r^q − s^q for the roots r and s: d Σ r^i s^(m−1−i) / Σ r^i s^(q−1−i)."""
    r, s = (raised(x, constant(Fraction(1, exponent.denominator))) for x in (u, v))
    over = powers_between(r, s, exponent.numerator)
    return div(mul(d, over), powers_between(r, s, exponent.denominator))


def raised(x: Node, p: Node) -> Node:
    """x^p, 1 for 1."""
    return ONE if x is ONE else power(x, p)


def powers_between(a: Node, b: Node, n: int) -> Node:
    """Σ_i a^i b^(n−1−i): the quotient of aⁿ − bⁿ and a − b."""
    return add(*(mul(power(a, constant(i)), power(b, constant(n - 1 - i))) for i in reversed(range(n))))


def differ(u: Node, v: Node, d: Node) -> Node | None:
    """d ≠ 0: the roots of both may be 0 where d is."""
    return None if rational(d) else compare("!=", d, ZERO)


def power_form(u: Node, v: Node, d: Node, p: Node) -> Node:
    """The power of the smaller base, times expm1 of the difference of logarithms."""
    up = mul(raised(v, p), apply(expm1, mul(p, apply(log1p, div(d, v)))))
    down = mul(raised(u, p), apply(expm1, mul(p, apply(log1p, neg(div(d, u))))))
    return by_sign(d, up, neg(down))


def power_condition(u: Node, v: Node, d: Node) -> Node:
    """0 < v and |d| < v."""
    return compare("<", magnitude(d), v)


# ---- numbers and functions ------------------------------------------------------------------------


@dataclass(frozen=True)
class Complement:
    """number + sign f(u)^power = form(u); ``in_layers``: also where u comes from layers of a network."""

    number: Number
    sign: int
    form: Callable[[Node], Node]
    power: int = 1
    early: bool = True
    in_layers: bool = True


def _square_of_half(head: sympy.FunctionClass) -> Callable[[Node], Node]:
    return lambda u: mul(TWO, power(apply(head, half(u)), TWO))


def _square(head: sympy.FunctionClass) -> Callable[[Node], Node]:
    return lambda u: power(apply(head, u), TWO)


COMPLEMENTS: dict[sympy.FunctionClass, tuple[Complement, ...]] = {
    sympy.erf: (
        Complement(1, -1, lambda u: apply(sympy.erfc, u)),
        Complement(1, 1, lambda u: apply(sympy.erfc, neg(u))),
    ),
    sympy.erfc: (
        Complement(2, -1, lambda u: apply(sympy.erfc, neg(u))),
        Complement(1, -1, lambda u: apply(sympy.erf, u)),
    ),
    sympy.exp: (Complement(-1, 1, lambda u: apply(expm1, u)),),
    expm1: (Complement(1, 1, lambda u: apply(sympy.exp, u)),),
    sympy.cos: (
        Complement(1, -1, _square_of_half(sympy.sin), early=False),
        Complement(1, -1, _square(sympy.sin), power=2, early=False),
    ),
    sympy.sin: (Complement(1, -1, _square(sympy.cos), power=2, early=False),),
    sympy.sec: (
        Complement(-1, 1, lambda u: div(_square_of_half(sympy.sin)(u), cos(u)), early=False),
        Complement(-1, 1, _square(sympy.tan), power=2, early=False),
    ),
    sympy.cosh: (
        Complement(-1, 1, _square_of_half(sympy.sinh), early=False),
        Complement(-1, 1, _square(sympy.sinh), power=2, early=False),
    ),
    sigmoid: (
        Complement(1, -1, lambda u: apply(sigmoid, neg(u)), in_layers=False),
        Complement(Fraction(1, 2), -1, lambda u: neg(half(apply(sympy.tanh, half(u)))), in_layers=False),
    ),
    sympy.tanh: (
        Complement(1, -1, lambda u: mul(TWO, apply(sigmoid, neg(mul(TWO, u)))), in_layers=False),
        Complement(1, 1, lambda u: mul(TWO, apply(sigmoid, mul(TWO, u))), in_layers=False),
        Complement(1, -1, _square(sympy.sech), power=2, in_layers=False),
    ),
}
"""The rows by functions, the first that fits is taken."""


@dataclass(frozen=True)
class Reflection:
    """f(u) + sign f(−u) = form(u)."""

    sign: int
    form: Callable[[Node], Node]


REFLECTIONS: dict[sympy.FunctionClass, tuple[Reflection, ...]] = {
    sympy.exp: (
        Reflection(1, lambda u: mul(TWO, apply(sympy.cosh, u))),
        Reflection(-1, lambda u: mul(TWO, apply(sympy.sinh, u))),
    ),
    softplus: (Reflection(-1, lambda u: u),),
    sigmoid: (Reflection(1, lambda u: ONE),),
}


def guarded(row: Secant, u: Node, v: Node, d: Node, written: Node) -> Node:
    """The row's form where its condition holds, else the difference as it was written."""
    condition = row.condition(u, v, d)
    made = row.form(u, v, d)
    return made if condition is None else select(condition, made, written)
