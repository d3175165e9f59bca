"""Examples of the ops of `symad.ops.elementwise`, for tests and tables."""

from __future__ import annotations

import sympy

from symad.core.graph import Node
from symad.core.questions import examples
from symad.ops.basic.arithmetic import Add, Mul, add, div, mul, neg, sub
from symad.ops.basic.sources import constant, input_node
from symad.ops.elementwise.apply import Apply, apply
from symad.ops.elementwise.powers import Pow, power, sqrt
from symad.ops.elementwise.selection import Compare, Logic, Select, compare, equal, logic, select
from symad.ops.elementwise.undefined import Undefined, undefined


@examples(Apply)
def apply_examples() -> list[Node]:
    x, y = (input_node(s) for s in sympy.symbols("x y", real=True))
    a = input_node(sympy.MatrixSymbol("A", 2, 3), (2, 3))
    return [
        apply(sympy.sin, x),
        apply(sympy.tanh, a),
        apply(sympy.atan2, y, x),
        apply(sympy.Max, x, y),
        apply(sympy.erf, a),
        mul(apply(sympy.Abs, x), y),
    ]


def example_scalars(names: str) -> list[Node]:
    return [input_node(s) for s in sympy.symbols(names, real=True, seq=True)]


def example_arrays(names: str) -> list[Node]:
    return [input_node(sympy.MatrixSymbol(name, 2, 3), (2, 3)) for name in names.split()]


@examples(Add)
def add_examples() -> list[Node]:
    (x, y), (a, b) = example_scalars("x y"), example_arrays("A B")
    return [sub(x, y), neg(a), add(a, b, x)]


@examples(Mul)
def mul_examples() -> list[Node]:
    (x, y, z), (a, b) = example_scalars("x y z"), example_arrays("A B")
    return [mul(x, y), div(a, b), div(constant(1), x), mul(x, y, z, a), div(mul(a, x), y)]


@examples(Pow)
def pow_examples() -> list[Node]:
    (x, y), (a, b) = example_scalars("x y"), example_arrays("A B")
    return [power(x, constant(3)), sqrt(a), power(x, y), power(a, b)]


@examples(Compare)
def compare_examples() -> list[Node]:
    x, y = (input_node(s) for s in sympy.symbols("x y", real=True))
    return [compare("<", x, y), equal(x, y)]


@examples(Logic)
def logic_examples() -> list[Node]:
    x, y = (input_node(s) for s in sympy.symbols("x y", real=True))
    return [logic("and", compare("<", x, y), compare("<", constant(0), x))]


@examples(Select)
def select_examples() -> list[Node]:
    x, y = (input_node(s) for s in sympy.symbols("x y", real=True))
    a = input_node(sympy.MatrixSymbol("A", 2, 3), (2, 3))
    return [select(compare("<", x, y), x, y), select(compare("<", a, x), a, y)]


@examples(Undefined)
def undefined_examples() -> list[Node]:
    x, y = (input_node(s) for s in sympy.symbols("x y", real=True))
    positive = compare("<", constant(0), x)
    return [Node.of(Undefined(), (positive, x, y)), select(positive, x, undefined([positive], [x]))]
