"""Slopes of softmax on entries, with sums over all the other entries: so no digits of 1 − p cancel.

With P_i = Σ_{j≠i} p_j and Q_i = Σ_{j≠i} p_j t_j, t_i − Σ p t is t_i P_i − Q_i, and t_i − p_i Σ t is
t_i P_i − p_i Σ_{j≠i} t_j. Sums over the others come from sums of the entries before and after each, in 3n
additions.
"""

from __future__ import annotations

import numpy as np

from symad.core.graph import Node
from symad.core.questions import Array, Values, evaluate
from symad.evaluation.node_numbers import NodeNumber, as_numbers
from symad.numeric.entries.rules import Evaluator, entries
from symad.ops.arrays.softmax import LogSoftmaxCotangent, LogSoftmaxTangent, Softmax, SoftmaxTangent
from symad.ops.basic.sources import constant

ZERO = NodeNumber(constant(0))


def _others(a: Array, axes: tuple[int, ...]) -> Array:
    """For each entry the sum of all others along some axes."""
    last = tuple(range(-len(axes), 0))
    moved = np.moveaxis(np.asarray(a), axes, last)
    rows = moved.reshape(*moved.shape[: moved.ndim - len(axes)], -1)
    made = np.empty_like(rows)
    for place in np.ndindex(rows.shape[:-1]):
        row, before, after = rows[place], [ZERO], ZERO
        for entry in row[:-1]:
            before.append(before[-1] + entry)
        for k in reversed(range(len(row))):
            made[(*place, k)] = before[k] + after
            after = row[k] + after
    found: Array = np.moveaxis(made.reshape(moved.shape), last, axes)
    return found


def _centered(p: Array, t: Array, axes: tuple[int, ...]) -> Array:
    """t − Σ p t."""
    made: Array = t * _others(p, axes) - _others(p * t, axes)
    return made


@entries.dispatch
def softmax_entries(op: Softmax, y: Node, values: Values, inside: Evaluator) -> Array:
    """exp(x)/Σ exp(x); a single share is exp(x − x), which does not overflow."""
    (x,) = map(np.asarray, values)
    whole: Array = x - x if all(x.shape[axis] == 1 for axis in op.axes) else x
    made: Array = evaluate(op, (whole,))
    return made


@entries.dispatch
def softmax_tangent_entries(op: SoftmaxTangent, y: Node, values: Values, inside: Evaluator) -> Array:
    p, t = map(as_numbers, values)
    made: Array = p * _centered(p, t, op.axes)
    return made


@entries.dispatch
def log_softmax_tangent_entries(op: LogSoftmaxTangent, y: Node, values: Values, inside: Evaluator) -> Array:
    p, t = map(as_numbers, values)
    return _centered(p, t, op.axes)


@entries.dispatch
def log_softmax_cotangent_entries(
    op: LogSoftmaxCotangent, y: Node, values: Values, inside: Evaluator
) -> Array:
    p, t = map(as_numbers, values)
    made: Array = t * _others(p, op.axes) - p * _others(t, op.axes)
    return made
