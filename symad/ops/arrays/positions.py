"""Positions in several axes at once, as one position in these axes laid out row by row.

For arrays of integers i and j, ``x[i, j]`` reads row i·n + j of x with its two axes joined.
Joining hides an index that is out of range of its own axis, so each index is checked first.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from symad.core.dims import Shape, broadcast_shapes, format_shape
from symad.core.graph import ZERO, Node, Op, shape
from symad.core.questions import (
    Array,
    Count,
    Flags,
    Nodes,
    Tangent,
    Tangents,
    Values,
    batch,
    definition,
    evaluate,
    flops,
    jvp,
)
from symad.errors import ShapeError
from symad.numbers.dual import primals
from symad.ops.basic.arithmetic import add, mul
from symad.ops.basic.shaping import broadcast_to, reshape
from symad.ops.basic.sources import Input, constant, dimension
from symad.ops.elementwise.selection import compare, select


@dataclass(frozen=True, eq=False)
class Positions(Op):
    """Σ_k i_k Π_{l>k} n_l for indices i_k into axes of lengths n = ``shape``.

    Arguments: one array of integers for each axis; they broadcast together. ``axes`` are the numbers of
    the axes and ``what`` the name of the array, for messages. If ``from_end``, negative indices count
    from the end, as in NumPy.
    """

    total = True

    shape: Shape
    axes: tuple[int, ...]
    what: str
    from_end: bool = True

    @property
    def row_numbers(self) -> range:
        """All arguments."""
        return range(len(self.shape))


def positions(
    indices: Nodes, lengths: Shape, axes: tuple[int, ...], what: str, from_end: bool = True
) -> Node:
    """The row-major position of the indices in axes of these lengths."""
    return Node.of(Positions(lengths, axes, what, from_end), indices)


def name_of(array: Node) -> str:
    """The name of an array in messages: an input's name as one word, or a phrase with the shape."""
    if isinstance(array.op, Input):
        return "".join(c if c.isprintable() else "_" for c in "_".join(str(array.op.symbol).split()))
    return f"{TRACED}{format_shape(array.shape)}"


TRACED = "a traced value of shape "


def is_name(text: str) -> bool:
    """True if `name_of` can return the text: a word, or the phrase with a shape; files contain no other."""
    rest = text.removeprefix(TRACED)
    if rest != text:
        for separator in (", ", " + ", " - "):
            rest = rest.replace(separator, "")
    return rest.isprintable() and " " not in rest and 0 < len(rest) <= 1000


@shape(Positions)
def positions_shape(op: Positions, args: Nodes) -> Shape:
    return broadcast_shapes(*[arg.shape for arg in args])


@jvp.dispatch
def positions_jvp(op: Positions, y: Node, tangents: Tangents) -> Tangent:
    return ZERO


@batch.dispatch
def positions_batch(op: Positions, args: Nodes, batched: Flags, count: Count) -> Node:
    rank = max(len(arg.shape) - flag for arg, flag in zip(args, batched, strict=True))
    aligned = [
        reshape(arg, (count, *(1,) * (rank + 1 - len(arg.shape)), *arg.shape[1:])) if flag else arg
        for arg, flag in zip(args, batched, strict=True)
    ]
    return Node.of(op, tuple(aligned))


@flops.dispatch
def positions_flops(op: Positions, y: Node) -> Count:
    return 0


@evaluate.dispatch
def positions_evaluate(op: Positions, values: Values) -> Array:
    whole: Any = 0
    for value, length, axis in zip(values, op.shape, op.axes, strict=True):
        whole = whole * length + _from_start(op, value, length, axis)
    return whole


def _from_start(op: Positions, value: Array, length: int, axis: int) -> Array:
    """Integers in 0..length − 1.

    Raises:
        ShapeError: an index is not integral or out of range; the message names the first one.
    """
    given = np.asarray(primals(value))
    found = given.astype(np.int64)
    low = -length if op.from_end else 0
    right = np.asarray((found == given) & (found >= low) & (found < length), bool)
    if not right.all():
        place = tuple([int(k) for k in np.argwhere(~right)[0]])
        raise ShapeError(
            f"index {given[place]} at position {place} is not an integer in {low}..{length - 1}: "
            f"axis {axis} of {op.what} has length {length}"
        )
    return found % length if length else found


@definition.dispatch
def positions_definition(op: Positions, y: Node) -> Node:
    """The definition in primitives, for indices that are in range."""
    whole = constant(0)
    for arg, length in zip(y.args, op.shape, strict=True):
        n = dimension(length)
        # integers are compared with −1/2, not 0: proofs exclude ties
        negative = compare("<", arg, constant(Fraction(-1, 2)))
        from_start = select(negative, add(arg, n), arg) if op.from_end else arg
        whole = add(mul(whole, n), broadcast_to(from_start, y.shape))
    return broadcast_to(whole, y.shape)
