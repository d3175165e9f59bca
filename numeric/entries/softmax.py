"""Slopes of softmax on entries: differences to the likeliest element, so that no digits cancel.

These are the formulas that evaluation uses for floats, with selections for the comparisons; see
`symad.ops.arrays.softmax`.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np

from symad.core.graph import Node
from symad.core.questions import Array, Values
from symad.evaluation.node_numbers import NodeNumber, as_numbers
from symad.numeric.entries.rules import Evaluator, entries
from symad.ops.arrays.softmax import LogSoftmaxCotangent, LogSoftmaxTangent, SoftmaxTangent
from symad.ops.basic.sources import constant
from symad.ops.elementwise.selection import compare, select

HALF = constant(Fraction(1, 2))


def _if_likely(p: NodeNumber, a: NodeNumber, b: NodeNumber) -> NodeNumber:
    """a where the probability is more than 1/2, else b."""
    return NodeNumber(select(compare("<", HALF, p.node), a.node, b.node))


_where_likely: Any = np.frompyfunc(_if_likely, 3, 1)
ZERO = NodeNumber(constant(0))


def _centred(p: Array, t: Array, axes: tuple[int, ...]) -> Array:
    """t − Σ p t, from differences to the t of an element with p > 1/2."""
    t = t - np.sum(_where_likely(p, t, ZERO), axis=axes, keepdims=True)
    made: Array = t - np.sum(p * t, axis=axes, keepdims=True)
    return made


@entries.dispatch
def softmax_tangent_entries(op: SoftmaxTangent, y: Node, values: Values, inside: Evaluator) -> Array:
    p, t = map(as_numbers, values)
    made: Array = p * _centred(p, t, op.axes)
    return made


@entries.dispatch
def log_softmax_tangent_entries(op: LogSoftmaxTangent, y: Node, values: Values, inside: Evaluator) -> Array:
    p, t = map(as_numbers, values)
    return _centred(p, t, op.axes)


@entries.dispatch
def log_softmax_cotangent_entries(
    op: LogSoftmaxCotangent, y: Node, values: Values, inside: Evaluator
) -> Array:
    p, t = map(as_numbers, values)
    made = t - p * np.sum(t, axis=op.axes, keepdims=True)
    rest = np.sum(_where_likely(p, ZERO, made), axis=op.axes, keepdims=True)
    found: Array = _where_likely(p, -rest, made)
    return found
