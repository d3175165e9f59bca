"""Array graphs written out element by element, where they are small.

Two sums over the same products agree term by term only when both are written out: an exponent x̂ W is
one argument to exp, while that of s x W + (1 − s) g W falls apart into known ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np

from symad.core.arrays import Array
from symad.core.graph import Node, topological
from symad.errors import SymadError
from symad.evaluation.node_numbers import NodeNumber
from symad.numbers.values import unchecked
from symad.ops.arrays.stacking import element
from symad.ops.basic.sources import Input, constant
from symad.verification.rewriting.rewrite import expand_definitions

MAX_OPERATIONS, MAX_ELEMENTS = 3000, 64
"""The maximum numbers of scalar operations of graphs, and elements of outputs, that are written out."""


def flat_elements(node: Node) -> list[Node]:
    """The elements of a node of known sizes, as scalar nodes in row-major order."""
    return [element(node, *index) if index else node for index in np.ndindex(*node.shape)]


def as_numbers(node: Node) -> Array | NodeNumber:
    """A node of known sizes as an array of scalar nodes that are numbers."""
    numbers = np.empty(prod(node.shape), dtype=object)
    numbers[:] = [NodeNumber(e) for e in flat_elements(node)]
    return numbers.reshape(node.shape) if node.shape else numbers[0]


def scalar_operations(outputs: Sequence[Node]) -> int:
    """Roughly the number of scalar operations of some nodes."""
    total = 0
    for node in topological(outputs):
        if node.args:
            own = prod(node.shape) if all(isinstance(d, int) for d in node.shape) else 1 << 40
            widest = max(prod(a.shape) for a in node.args) if own < 1 << 40 else 1
            total += max(own, widest)
    return total


def by_elements(outputs: Sequence[Node], more: int = 1) -> list[list[Node]] | None:
    """The elements of each output as scalar nodes; None where there are no arrays, or too large ones.

    The limits count so many times.
    """
    outputs = expand_definitions(outputs)
    nodes = topological(outputs)
    if not any(n.shape for n in nodes) or max(prod(o.shape) for o in outputs) > more * MAX_ELEMENTS:
        return None
    if scalar_operations(outputs) > more * MAX_OPERATIONS:
        return None
    point = {n: as_numbers(n) for n in nodes if isinstance(n.op, Input)}
    try:
        values = unchecked(outputs, point)
        return [[_scalar(v) for v in np.asarray(value, dtype=object).ravel()] for value in values]
    except (SymadError, TypeError, ValueError, AttributeError):
        return None


def _scalar(value: NodeNumber | int) -> Node:
    return value.node if isinstance(value, NodeNumber) else constant(value)
