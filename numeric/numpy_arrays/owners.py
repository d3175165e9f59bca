"""Which node made the memory of an array."""

from __future__ import annotations

from collections.abc import Iterator

from symad.core.graph import Node
from symad.numeric.program_passes.memory import is_long, is_view
from symad.ops.arrays.shaping import Broadcast, Reshape
from symad.ops.loops.scan import Local

LARGE = 2**14
"""Arrays with this many elements are freed as soon as they are not needed."""


def views(node: Node) -> Iterator[Node]:
    """The node and, as long as these are views, what they show."""
    yield node
    while is_view(node):
        node = node.args[0]
        yield node


def owner(node: Node) -> Node:
    """The node that made the memory of an array."""
    *_, made = views(node)
    return made


def copies(node: Node) -> bool:
    """Whether a view may take memory after all: the parts of another view under another shape."""
    return isinstance(node.op, Reshape) and is_view(node.args[0])


def repeats(node: Node) -> bool:
    """Whether a view shows one element several times."""
    return any(isinstance(view.op, Broadcast) for view in views(node))


def is_large(node: Node) -> bool:
    """Whether an array takes much memory, as far as is known; so may what a body gets from outside."""
    return isinstance(node.op, Local) or is_long(node.shape, LARGE)
