"""Python's arithmetic operators on nodes, with NumPy's meaning for conditions."""

from __future__ import annotations

from collections.abc import Callable

import sympy

from symad.core.graph import Node
from symad.ops.basic.arithmetic import add, div, mul, sub
from symad.ops.elementwise.apply import apply
from symad.ops.elementwise.powers import power
from symad.ops.elementwise.selection import logic
from symad.tracing.proxies.wrapped import is_condition, number


def floor_divide(a: Node, b: Node) -> Node:
    """floor(a / b)."""
    return apply(sympy.floor, div(a, b))


def remainder(a: Node, b: Node) -> Node:
    """A − b floor(a / b), with the sign of b, as Python and NumPy define it."""
    return apply(sympy.Mod, a, b)


def plus(a: Node, b: Node) -> Node:
    """A + b; for two conditions, true if one of them holds, as NumPy adds truth values."""
    of_a, of_b = is_condition(a), is_condition(b)
    return logic("or", a, b) if of_a and of_b else add(number(a) if of_a else a, number(b) if of_b else b)


def times(a: Node, b: Node) -> Node:
    """A b; for two conditions, true if both hold."""
    of_a, of_b = is_condition(a), is_condition(b)
    return logic("and", a, b) if of_a and of_b else mul(number(a) if of_a else a, number(b) if of_b else b)


KEEPS_CONDITIONS = (plus, times)

ARITHMETIC: dict[str, Callable[..., Node]] = {
    "add": plus,
    "sub": sub,
    "mul": times,
    "truediv": div,
    "pow": power,
    "floordiv": floor_divide,
    "mod": remainder,
}
SIGNS = {"add": "+=", "sub": "-=", "mul": "*=", "truediv": "/=", "pow": "**=", "floordiv": "//=", "mod": "%="}
