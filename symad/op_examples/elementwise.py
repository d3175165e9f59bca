"""Examples of the ops of `symad.ops.elementwise`, for tests and tables."""

from __future__ import annotations

import sympy

from symad.core.graph import Node
from symad.core.questions import examples
from symad.op_examples.arrays import matrix, scalars
from symad.ops.basic.arithmetic import Add, Mul, add, div, mul, neg, sub
from symad.ops.basic.sources import constant
from symad.ops.elementwise.apply import Apply, apply
from symad.ops.elementwise.powers import Pow, power, sqrt
from symad.ops.elementwise.selection import Compare, Logic, Select, compare, equal, logic, select
from symad.ops.elementwise.undefined import Undefined, undefined


def arrays(names: str) -> list[Node]:
    return [matrix(name, 2, 3) for name in names.split()]


@examples(Apply)
def apply_examples() -> list[Node]:
    (x, y), (a,) = scalars("x y"), arrays("A")
    return [
        apply(sympy.sin, x),
        apply(sympy.tanh, a),
        apply(sympy.atan2, y, x),
        apply(sympy.Max, x, y),
        apply(sympy.erf, a),
        mul(apply(sympy.Abs, x), y),
    ]


@examples(Add)
def add_examples() -> list[Node]:
    (x, y), (a, b) = scalars("x y"), arrays("A B")
    return [sub(x, y), neg(a), add(a, b, x)]


@examples(Mul)
def mul_examples() -> list[Node]:
    (x, y, z), (a, b) = scalars("x y z"), arrays("A B")
    return [mul(x, y), div(a, b), div(constant(1), x), mul(x, y, z, a), div(mul(a, x), y)]


@examples(Pow)
def pow_examples() -> list[Node]:
    (x, y), (a, b) = scalars("x y"), arrays("A B")
    return [power(x, constant(3)), sqrt(a), power(x, y), power(a, b)]


@examples(Compare)
def compare_examples() -> list[Node]:
    x, y = scalars("x y")
    return [compare("<", x, y), equal(x, y)]


@examples(Logic)
def logic_examples() -> list[Node]:
    x, y = scalars("x y")
    return [logic("and", compare("<", x, y), compare("<", constant(0), x))]


@examples(Select)
def select_examples() -> list[Node]:
    (x, y), (a,) = scalars("x y"), arrays("A")
    return [select(compare("<", x, y), x, y), select(compare("<", a, x), a, y)]


@examples(Undefined)
def undefined_examples() -> list[Node]:
    x, y = scalars("x y")
    positive = compare("<", constant(0), x)
    return [Node.of(Undefined(), (positive, x, y)), select(positive, x, undefined([positive], [x]))]
