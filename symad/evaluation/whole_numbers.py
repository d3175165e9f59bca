"""Evaluation on Python integers: exact where the result is one, by sums and products alone.

A bound on the digits comes first, so that no call takes long: repeated squares soon have more digits than
fit into memory, and are computed as floats.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from symad.core.graph import Node, topological
from symad.ops.arrays.sources import Constant, constant_value
from symad.ops.elementwise.arithmetic import Add, Mul
from symad.ops.elementwise.powers import Pow

MOST_BITS = 4096
"""Of a value that is computed exactly."""


def stay_whole(outputs: Sequence[Node], point: Mapping[Node, int]) -> bool:
    """Whether scalar outputs at integers are integers of bounded size, by the ops that lead to them."""
    bits = {node: value.bit_length() for node, value in point.items()}
    for node in topological(outputs):
        if node in bits:
            continue
        found = _bits(node, bits)
        if found is None or found > MOST_BITS:
            return False
        bits[node] = found
    return True


def _bits(node: Node, bits: Mapping[Node, int]) -> int | None:
    """A bound on the bits of an integer value; None if the value may be no integer."""
    op = node.op
    if node.shape:
        return None
    if isinstance(op, Constant):
        return op.value.bit_length() if op.kind == "int" else None
    if isinstance(op, Add):
        return max(bits[a] for a in node.args) + len(node.args).bit_length()
    if isinstance(op, Mul) and all(power == 1 for power in op.powers):
        return sum(bits[a] for a in node.args)
    if isinstance(op, Pow):
        exponent = constant_value(node.args[1])
        if type(exponent) is int and exponent >= 0:
            return bits[node.args[0]] * max(exponent, 1)
    return None


def whole(value: Any) -> Any:
    """A Fraction that is an integer, as one."""
    return value.numerator if getattr(value, "denominator", 0) == 1 else value
