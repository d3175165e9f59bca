"""The parts of a sparse matrix, computed side by side in one array, from where the entries are gathered.

Parts are often views: slices of arrays that stencils were evaluated on. The arrays themselves are computed
where they go, and the gather looks through the views, so that no part is copied.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from symad.graph import Node
from symad.ops.contraction import Einsum
from symad.ops.shaping import Broadcast, Concatenate, Gather, Reshape, Slice, Stack
from symad.ops.sources import ArrayConstant
from symad.ops.sparse import CompressedRows, IntArray
from symad.questions import evaluate

if TYPE_CHECKING:
    from collections.abc import Iterator

LEAST = 0.5
"""The part of an array that a view must show, to be looked through."""

MOST = 24
"""With more arrays than this, entries are not gathered."""


@dataclass(frozen=True, eq=False)
class SideBySide:
    """Where arrays stand side by side, and the position among them of every entry of a matrix."""

    starts: dict[Node, int]
    total: int
    index: IntArray

    def place(self, node: Node, values: str, printer: Any) -> str:
        """The part of the array ``values`` that holds the array of a node."""
        start, size = self.starts[node], prod(node.shape)
        if not node.shape:
            return f"{values}[{start}]"
        flat = f"{values}[{start or ''}:{start + size}]"
        return flat if len(node.shape) == 1 else f"{flat}.reshape({printer.dims(node.shape)})"


def side_by_side(node: Node, fits: Callable[[Node], bool]) -> SideBySide | None:
    """Where the parts of a sparse matrix stand; None where a gather is no way to fill it.

    Args:
        node: the matrix.
        fits: whether the array of a node can be computed where it is told to be.
    """
    op = node.op
    if not isinstance(op, CompressedRows) or not node.args or any(adds for *_, adds in op.writes):
        return None
    starts: dict[Node, int] = {}
    total = 0
    for source in dict.fromkeys(s for arg in node.args for s in _sources(arg, fits)):
        starts[source] = total
        total += prod(source.shape)
    if len(starts) > MOST:
        return None
    index = np.zeros(len(op.columns), np.int64)
    for places, arg in zip(op.places_of, node.args, strict=True):
        index[places] = np.ravel(_positions(arg, starts))
    return SideBySide(starts, total, index)


def views_only(node: Node, starts: dict[Node, int]) -> Iterator[Node]:
    """The views between a matrix and the arrays side by side."""
    for arg in node.args:
        if arg not in starts and is_moved(arg):
            yield arg
            yield from views_only(arg, starts)


def is_moved(node: Node) -> bool:
    """Whether the elements of an array are those of its arguments, in another order."""
    op = node.op
    if isinstance(op, Einsum):
        return len(op.inputs) == 1 and set(op.inputs[0]) == set(op.output)
    if isinstance(op, Gather):
        return isinstance(node.args[1].op, ArrayConstant) and node.args[1].op.array.dtype.kind in "iu"
    return isinstance(op, (Slice, Reshape, Broadcast, Stack, Concatenate))


def _given(node: Node) -> tuple[Node, ...]:
    """The arguments whose elements a moved array has."""
    return node.args[:1] if isinstance(node.op, Gather) else node.args


def _sources(node: Node, fits: Callable[[Node], bool]) -> list[Node]:
    """The arrays that a part is read from: those behind its views, if they can be computed in place."""
    if fits(node) or not is_moved(node):
        return [node]
    given = _given(node)
    behind = [source for arg in given for source in _sources(arg, fits)]
    shown = prod(node.shape) / sum(prod(source.shape) for source in behind)
    least = LEAST if all(fits(source) for source in behind) else 1  # what is not shown is copied in vain
    return behind if shown >= least else [node]


def _positions(node: Node, starts: dict[Node, int]) -> Any:
    """For each element of an array where it stands among the arrays side by side."""
    if node in starts:
        return (starts[node] + np.arange(prod(node.shape))).reshape(node.shape)
    given = tuple(_positions(arg, starts) for arg in _given(node))
    rest = tuple(arg.op.array for arg in node.args[len(given) :])  # type: ignore[attr-defined]
    return evaluate(node.op, (*given, *rest))
