"""The node that allocated the memory of an array."""

from __future__ import annotations

from collections.abc import Iterator

from symad.core.graph import Node
from symad.numeric.program_passes.memory.allocation import is_view
from symad.ops.basic.shaping import Broadcast

MIN_FREED_ELEMENTS = 2**14
"""The smallest number of elements of an array that is freed as soon as it is not needed.

To free arrays of 2**10 to 2**20 elements takes no time (bench_thresholds.py, "freed"); the number bounds how
many lines of code free memory.
"""


def views(node: Node) -> Iterator[Node]:
    """The node, then the argument of each view, until a node is no view."""
    yield node
    while is_view(node):
        node = node.args[0]
        yield node


def owner(node: Node) -> Node:
    """The node that allocated the memory of an array."""
    while is_view(node):
        node = node.args[0]
    return node


def repeats(node: Node) -> bool:
    """Whether a view repeats elements."""
    return any(isinstance(view.op, Broadcast) for view in views(node))
