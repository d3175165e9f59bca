"""Steps of numbers that no input changes, such as ⌈(k − 2)/3⌉ for k = 0, 1, 2, ..., by rational arithmetic.

In balls a third is not exact, so that the step at an integer that is a sum of thirds would not be known.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np
import sympy

from symad.core.graph import Node, rebuild, topological
from symad.errors import SymadError
from symad.numbers.values import unchecked
from symad.ops.basic.sources import Input, array_constant, constant, input_node
from symad.ops.elementwise.apply import Apply
from symad.verification.terms.depending import depending

STEPS = {sympy.floor, sympy.ceiling, sympy.frac, sympy.Mod, sympy.sign, sympy.Heaviside}

MAX_ELEMENTS = 10_000

UNUSABLE = (SymadError, ArithmeticError, ValueError, TypeError)
"""What evaluation raises where it has no answer."""


def with_exact_steps(outputs: Sequence[Node]) -> tuple[Node, ...]:
    """The same nodes, with the values of such steps; sizes are numbers."""
    moving = depending(outputs, lambda node: isinstance(node.op, Input))
    steps = [n for n in topological(outputs) if n not in moving and _is_step(n)]
    known = {n: value for n in steps if (value := _value(n)) is not None}
    return rebuild(outputs, known) if known else tuple(outputs)


def _is_step(node: Node) -> bool:
    return isinstance(node.op, Apply) and node.op.head in STEPS


def _value(node: Node) -> Node | None:
    """The value, if rational arithmetic has one."""
    if int(np.prod(node.shape)) > MAX_ELEMENTS:
        return None
    exact = {input_node(sympy.Symbol("exact", real=True)): Fraction(1)}
    try:
        (value,) = unchecked((node,), exact)
    except UNUSABLE:
        return None
    numbers = np.asarray(value, dtype=object)
    if not all(_is_whole(v) for v in numbers.ravel().tolist()):
        return None
    return array_constant(numbers.astype(np.int64)) if node.shape else constant(int(numbers.item()))


def _is_whole(value: object) -> bool:
    if isinstance(value, Fraction):
        return value.denominator == 1 and abs(value) < 1 << 53
    return isinstance(value, (int, np.integer)) and abs(int(value)) < 1 << 53
