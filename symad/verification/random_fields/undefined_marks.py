"""Where residues are undefined: marks that spread like NaN, and no further than they must.

A mark too many would leave out a region; one too few makes a verdict only weaker.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any, TypeAlias

import numpy as np

from symad.core.graph import Node, Op, op_of
from symad.core.questions import evaluate
from symad.ops.arrays.gathering import Gather, ScatterAdd
from symad.ops.arrays.reduction import Product
from symad.ops.basic.arithmetic import Add, Mul
from symad.ops.basic.contraction import Einsum
from symad.ops.basic.shaping import ShapingOp
from symad.ops.elementwise.apply import Apply
from symad.ops.elementwise.powers import Pow
from symad.ops.elementwise.selection import Compare
from symad.ops.linalg.solve_det import Determinant, Solve
from symad.verification.fields.prime_fields import Array

Indices: TypeAlias = Callable[[Array, int], Array]
"""The indices that residues stand for, below a number of rows."""


def spread_marks(y: Node, values: Sequence[Array], marks: Sequence[Array], indices: Indices) -> Array:
    """Where ``y`` depends on an undefined element: never more than that, or a region would be forgotten.

    Args:
        y: a node with arguments.
        values: the residues of its arguments.
        marks: where its arguments are undefined, each (T, *shape).
        indices: reads the positions of a `Gather` or `ScatterAdd` from residues.

    Returns:
        (T, *shape of y), boolean.
    """
    lanes = len(marks[0])
    if isinstance(y.op, (Add, Mul, Pow, Apply, Compare)):
        found = np.zeros((lanes, *y.shape), dtype=bool)
        for mark, arg in zip(marks, y.args, strict=True):
            found |= lift_marks(mark, arg, y)
        return found
    if isinstance(y.op, Einsum):
        return _einsum_marks(y, marks)
    if isinstance(y.op, (Gather, ScatterAdd)):
        return _gathered_marks(y, values, marks, indices)
    if isinstance(y.op, ShapingOp):
        return move(y.op, y, marks, ())
    if isinstance(y.op, Product):
        return np.asarray(marks[0].any(axis=-1))
    if isinstance(y.op, (Determinant, Solve)) and len(y.args[0].shape) == 2:
        anywhere = marks[0].reshape(lanes, -1).any(axis=1)
        return np.broadcast_to(anywhere.reshape((lanes,) + (1,) * len(y.shape)), (lanes, *y.shape))
    return np.zeros((lanes, *y.shape), dtype=bool)  # to mark too little makes a verdict only weaker


def _gathered_marks(y: Node, values: Sequence[Array], marks: Sequence[Array], indices: Indices) -> Array:
    """Marks move with the rows; a row of an undefined index is undefined."""
    if isinstance(y.op, Gather):
        rows = marks[0][:, indices(values[1], int(y.args[0].shape[0]))]
        own = marks[1].reshape(marks[1].shape + (1,) * (rows.ndim - marks[1].ndim))
        return np.asarray(rows | own)
    found = np.zeros((len(marks[0]), *y.shape), dtype=bool)
    at: Any = (slice(None), indices(values[0], int(y.shape[0])))
    np.logical_or.at(found, at, marks[1])
    return found


def _einsum_marks(y: Node, marks: Sequence[Array]) -> Array:
    op = op_of(y, Einsum)
    left, output = op.spec.split("->")
    spec = ",".join(f"Y{part}" for part in left.split(",")) + f"->Y{output}"
    found = np.zeros((marks[0].shape[0], *y.shape), dtype=bool)
    for k in range(len(marks)):
        counts = [
            m.astype(np.int64) if j == k else np.ones_like(m, dtype=np.int64) for j, m in enumerate(marks)
        ]
        found |= np.asarray(np.einsum(spec, *counts)) > 0
    return found


def lift_marks(marks: Array, arg: Node, y: Node) -> Array:
    return marks if arg.shape or not y.shape else marks.reshape((len(marks),) + (1,) * len(y.shape))


def move(op: Op, y: Node, values: Sequence[Array], tail: tuple[int, ...]) -> Array:
    """Elements moved as ``op`` moves their positions; position 0 stands for the zeros it pads with."""
    positions, offset, flat = [], 1, []
    lanes = values[0].shape[0]
    for value, arg in zip(values, y.args, strict=True):
        count = prod(arg.shape)
        positions.append(np.arange(offset, offset + count).reshape(arg.shape))
        flat.append(value.reshape(lanes, count, *tail))
        offset += count
    where = np.asarray(evaluate(op, tuple(positions)))
    zero = np.zeros((lanes, 1, *tail), dtype=flat[0].dtype)
    return np.concatenate([zero, *flat], axis=1)[:, where]
