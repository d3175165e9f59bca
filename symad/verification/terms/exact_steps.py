"""Values of nodes that no input changes, by rational arithmetic: ⌈(k − 2)/3⌉ for k = 0, 1, 2, ...

In balls a third is not exact, so that the step at an integer that is a sum of thirds would not be known.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from math import prod

import numpy as np
import sympy

from symad.core.graph import Node, rebuild, topological
from symad.errors import SymadError
from symad.facts.functions import fact
from symad.numbers.values import unchecked
from symad.ops.basic.sources import Input, array_constant, constant, input_node
from symad.ops.elementwise.apply import Apply
from symad.verification.terms.depending import depending

MAX_ELEMENTS = 10_000

UNUSABLE = (SymadError, ArithmeticError, ValueError, TypeError)
"""What evaluation raises where it has no answer."""


def with_exact_steps(outputs: Sequence[Node]) -> tuple[Node, ...]:
    """The same nodes, with the values of such steps; sizes are numbers."""
    moving = depending(outputs, lambda node: isinstance(node.op, Input))
    steps = [n for n in topological(outputs) if n not in moving and _is_step(n)]
    known = {n: value for n in steps if (value := _whole(n)) is not None}
    return rebuild(outputs, known) if known else tuple(outputs)


def _is_step(node: Node) -> bool:
    return isinstance(node.op, Apply) and fact(node.op.head).jumps


def exact_values(nodes: Sequence[Node], most: int = MAX_ELEMENTS) -> list[np.ndarray] | None:
    """The rational values of some nodes; None where one has an input, too many elements, or no such value."""
    order = topological(nodes)
    if any(isinstance(n.op, Input) or not _is_short(n, most) for n in order):
        return None
    exact = {input_node(sympy.Symbol("exact", real=True)): Fraction(1)}
    try:
        values = [np.asarray(v, dtype=object) for v in unchecked(nodes, exact, order)]
    except UNUSABLE:
        return None
    rational = all(isinstance(x, (Fraction, int, np.integer)) for v in values for x in v.ravel().tolist())
    return values if rational else None


def _is_short(node: Node, most: int) -> bool:
    return all(isinstance(d, int) for d in node.shape) and prod(node.shape) <= most


def _whole(node: Node) -> Node | None:
    """The value, if it is made of integers."""
    found = exact_values([node])
    numbers = found[0] if found is not None else None
    if numbers is None or any(v != int(v) or abs(v) >= 1 << 53 for v in numbers.ravel().tolist()):
        return None
    return array_constant(numbers.astype(np.int64)) if node.shape else constant(int(numbers.item()))
