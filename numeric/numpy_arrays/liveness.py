"""How long the arrays of a module live, and which of them share memory."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Any

import sympy

from symad.core.graph import Node
from symad.library.scalar_functions import relu, sigmoid, silu, softplus
from symad.numeric.fusion.chains import Fused
from symad.numeric.fusion.rows import RowGroup
from symad.numeric.numpy_arrays.elementwise_statements import is_indicator, ufunc_name
from symad.numeric.passes.blocking.row_blocks import RowBlocks
from symad.numeric.passes.loops.loop import Loop
from symad.numeric.passes.memory_layout.memory_spans import Cleared, Spread
from symad.numeric.passes.memory_layout.overlapping_pads import Overlay
from symad.ops.arrays.contraction import Einsum
from symad.ops.arrays.shaping import Broadcast, Pad, Reshape, Slice
from symad.ops.arrays.stacking import Concatenate, Stack
from symad.ops.elementwise.apply import Apply
from symad.ops.elementwise.arithmetic import Add, Mul
from symad.ops.elementwise.powers import Pow
from symad.ops.elementwise.selection import Condition, Logic, Select
from symad.ops.fused.softmax import LogSoftmax, Softmax, SoftmaxTangent
from symad.ops.loops.scan import Local, Scan

FRESH = (
    Add, Mul, Pow, Pad, Concatenate, Stack, Softmax, LogSoftmax, SoftmaxTangent, Scan, Loop, RowBlocks,
    RowGroup, Cleared, Overlay,
)  # fmt: skip
"""Ops whose result is a new array of floats, so that it may be overwritten."""


LARGE = 2**14
"""Arrays with this many elements are freed as soon as they are not needed."""


@dataclass
class Lifetimes:
    """Positions of nodes in the order of printing, and the last use of every array by its owner."""

    position: dict[Node, int] = field(default_factory=dict)
    last: dict[Node, int] = field(default_factory=dict)


def is_view(node: Node) -> bool:
    """Whether the array shares the memory of its argument's."""
    op = node.op
    if isinstance(op, Einsum):
        return len(op.inputs) == 1 and set(op.inputs[0]) == set(op.output)
    return isinstance(op, (Slice, Reshape, Broadcast, Spread))


def copies(node: Node) -> bool:
    """Whether a view may take memory after all: the parts of another view under another shape."""
    return isinstance(node.op, Reshape) and is_view(node.args[0])


def owner(node: Node) -> Node:
    """The node that made the memory of an array."""
    while is_view(node):
        node = node.args[0]
    return node


def is_fresh(node: Node) -> bool:
    """Whether the statement of a node makes a new array of floats."""
    op = node.op
    if isinstance(op, Apply):
        return op.head in (relu, sigmoid, silu, softplus, sympy.sech) or ufunc_name(op.head) is not None
    if isinstance(op, Select):
        return any(a.shape for a in node.args[1:])
    if isinstance(op, Fused):
        return not isinstance(op.body.output_nodes[op.index].op, (Condition, Logic))
    return isinstance(op, FRESH) or (isinstance(op, Einsum) and not is_view(node))


def is_large(node: Node) -> bool:
    """Whether an array takes much memory, as far as is known; so may what a body gets from outside."""
    if isinstance(node.op, Local):
        return True
    return not all(isinstance(d, int) for d in node.shape) or prod(node.shape) >= LARGE


def lifetimes(order: Sequence[Node], outputs: Sequence[Node]) -> Lifetimes:
    """The last use of every array; outputs never end."""
    found = Lifetimes()
    for k, node in enumerate(order):
        found.position[node] = k
        if not is_view(node):
            for arg in node.args:
                found.last[owner(arg)] = k
    # what waits to be written with its user is read there
    for node in reversed(order):
        if is_indicator(node):
            condition = owner(node.args[0])
            found.last[condition] = max(found.last[condition], found.last.get(node, 0))
    for node in outputs:
        found.last[owner(node)] = len(order)
    return found


def last_reads(order: Sequence[Node], outputs: Sequence[Node]) -> dict[Node, int]:
    """The position of the last node that reads a node; outputs are read behind all."""
    found = {arg: k for k, node in enumerate(order) for arg in node.args}
    return found | dict.fromkeys(outputs, len(order))


def in_steps(node: Node) -> bool:
    """Whether a node takes more than one statement: 1/(a b) begins with 1/a, −a − b with −a."""
    op: Any = node.op
    powers = getattr(op, "powers", getattr(op, "signs", (1,)))
    return len(node.args) > 2 or 1 not in powers


def overlap(a: Node, b: Node) -> bool:
    """Whether two arrays are different ranges of one, with elements in both."""
    first, second = _range(a), _range(b)
    if a is b or a.args != b.args or first is None or second is None:
        return False
    return max(first[0], second[0]) < min(first[1], second[1])


def _range(node: Node) -> tuple[int, int] | None:
    """The positions of a slice of an array with one axis."""
    op: Any = node.op
    if not isinstance(op, Slice) or len(node.shape) > 1 or op.step != (1,):
        return None
    start, count = op.start[0], op.count[0]
    return (start, start + count) if isinstance(start, int) and isinstance(count, int) else None


def repeats(node: Node) -> bool:
    """Whether a view shows one element several times."""
    while is_view(node):
        if isinstance(node.op, Broadcast):
            return True
        node = node.args[0]
    return False


def cut(node: Node) -> bool:
    """Whether a view leaves gaps in memory: whole arrays are worked on faster."""
    while is_view(node):
        op = node.op
        if isinstance(op, Spread):
            return True
        if isinstance(op, Slice) and (
            any(c != d for c, d in zip(op.count[1:], node.args[0].shape[1:], strict=True))
            or any(step != 1 for step in op.step)
        ):
            return True
        node = node.args[0]
    return False


IN_PLACE = (Add, Mul, Pow, Apply, Cleared)
"""Operations on floats that may write over an operand."""


def made_over(node: Node, users: Mapping[Node, int]) -> Iterator[Node]:
    """What an array may be made from in its own place: an operand that nothing else needs, one of its, ..."""
    inner: Node | None = node
    while inner is not None and isinstance(inner.op, IN_PLACE):
        shape = inner.shape
        inner = next((a for a in inner.args if a.shape == shape and users[a] == 1 and _is_made(a)), None)
        if inner is not None:
            yield inner


def _is_made(node: Node) -> bool:
    product = isinstance(node.op, Einsum) and len(node.args) == 2 == len(node.shape)
    return product or isinstance(node.op, (*IN_PLACE, Fused))
