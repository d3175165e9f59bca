"""The parts of a sparse matrix, computed side by side in one array, from where the entries are gathered.

Parts are often views: slices of arrays that stencils were evaluated on. The arrays themselves are computed
where they go, and the gather looks through the views, so that no part is copied.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from symad.core.graph import Node, op_of
from symad.core.questions import evaluate
from symad.numeric.numpy_arrays.texts import Part
from symad.ops.arrays.contraction import Einsum
from symad.ops.arrays.gathering import Gather
from symad.ops.arrays.shaping import Broadcast, Reshape, Slice
from symad.ops.arrays.sources import ArrayConstant, Constant
from symad.ops.arrays.stacking import Concatenate, Stack
from symad.ops.sparse.csr import CompressedRows, IntArray, as_slice

if TYPE_CHECKING:
    from collections.abc import Iterator

    from symad.numeric.numpy_arrays.printer import ArrayPrinter

LEAST = 0.5
"""The part of an array that a view must show, to be looked through."""

MANY = 4
"""If one of so many entries is a number, all entries are copied before the others are computed."""

MOST = 24
"""With more arrays than this, entries are not gathered."""


@dataclass(frozen=True, eq=False)
class Sum:
    """Entries to which several parts contribute: they are added up at ``start`` + 0, 1, ..., ``size`` − 1.

    Part ``terms[k]`` goes to the positions ``where[k]`` among them; entry number i of the sum stands at
    ``places[i]`` of the matrix.
    """

    start: int
    terms: tuple[Node, ...]
    where: tuple[IntArray, ...]
    places: IntArray

    @property
    def size(self) -> int:
        """The number of entries."""
        return len(self.places)


@dataclass(frozen=True, eq=False)
class SideBySide:
    """Where arrays stand side by side, and the position among them of every entry of a matrix.

    Without an index the arrays are only sums, and all parts go to places that are evenly spaced.
    """

    starts: dict[Node, int]
    sums: tuple[Sum, ...]
    total: int
    index: IntArray | None
    single: tuple[int, ...]
    """The parts that meet no others, as positions among the arguments."""
    direct: dict[Node, int]
    """Of these, arrays that are computed where they go first."""

    def place(self, node: Node, values: str, printer: ArrayPrinter) -> str:
        """The part of the array ``values`` that holds the array of a node."""
        start, size = self.starts[node], prod(node.shape)
        if not node.shape:
            return Part(values, str(start))
        flat = Part(values, f"{start or ''}:{start + size}")
        return flat if len(node.shape) == 1 else f"{flat}.reshape({printer.dims(node.shape)})"


def side_by_side(
    node: Node, fits: Callable[[Node], bool], users: Mapping[Node, Sequence[Node]], always: bool = False
) -> SideBySide | None:
    """Where the parts of a sparse matrix stand; None where each is best assigned to its places.

    Args:
        node: the matrix.
        fits: whether the array of a node can be computed where it is told to be.
        users: for each array what reads it. Only what nobody else reads begins a sum.
        always: gather entries even if they could be assigned with even steps.
    """
    op = node.op
    if not isinstance(op, CompressedRows) or not node.args:
        return None
    groups = _groups(op)
    single = [group[0] for group in groups if len(group) == 1]
    joined = [np.unique(np.concatenate([op.places_of[k] for k in group])) for group in groups]
    even = sum(len(places) for places in joined if isinstance(as_slice(places), slice))
    gathers = always or 2 * even < len(op.columns)
    if not gathers and (even < len(op.columns) or _is_mostly_there(node, single, fits)):
        return None
    behind = [s for k in single for s in _sources(node.args[k], fits)] if gathers else []
    starts: dict[Node, int] = {}
    total = 0
    for source in dict.fromkeys(behind):
        starts[source] = total
        total += prod(source.shape)
    sums = []
    for group, places in zip(groups, joined, strict=True):
        if len(group) > 1:
            where = tuple(np.searchsorted(places, op.places_of[k]) for k in group)
            sums.append(Sum(total, tuple(node.args[k] for k in group), where, places))
            first = node.args[group[0]]
            if fits(first) and list(users[first]) == [node] and _is_range(where[0]):
                starts[first] = total + int(where[0][0])
            total += len(places)
    if len(starts) + len(sums) > MOST:
        return None
    if not gathers:
        own = {node.args[k]: k for k in reversed(single) if {*users[node.args[k]]} == {node}}
        direct = {arg: k for arg, k in own.items() if fits(arg) and arg not in starts}
        return SideBySide(starts, tuple(sums), total, None, tuple(single), direct)
    index = np.zeros(len(op.columns), np.int64)
    for k in single:
        index[op.places_of[k]] = np.ravel(_positions(node.args[k], starts))
    for found in sums:
        index[found.places] = found.start + np.arange(found.size)
    return SideBySide(starts, tuple(sums), total, index, tuple(single), {})


def views_only(node: Node, found: SideBySide) -> Iterator[Node]:
    """The views between a matrix and the arrays side by side."""
    summed = {term for each in found.sums for term in each.terms}
    for arg in node.args if found.index is not None else ():
        if arg not in found.starts and arg not in summed and is_moved(arg):
            yield arg
            yield from views_only(arg, found)


def _groups(op: CompressedRows) -> list[list[int]]:
    """The parts of a matrix; those that meet somewhere are together."""
    owner = np.full(len(op.columns), -1)
    groups: dict[int, list[int]] = {}
    for k, places in enumerate(op.places_of):
        met = [g for g in np.unique(owner[places]).tolist() if g >= 0]
        groups[k] = [*(j for g in met for j in groups.pop(g)), k]
        owner[np.isin(owner, met)] = k
        owner[places] = k
    return [sorted(group) for group in groups.values()]


def _is_mostly_there(node: Node, single: Sequence[int], fits: Callable[[Node], bool]) -> bool:
    """Whether many entries are numbers, or all are in one array that was made before."""
    op = op_of(node, CompressedRows)
    numbers = sum(len(op.places_of[k]) for k in single if isinstance(node.args[k].op, Constant))
    return numbers * MANY >= len(op.columns) or (len(node.args) == 1 and not fits(node.args[0]))


def _is_range(where: IntArray) -> bool:
    return bool(len(where)) and np.array_equal(where, np.arange(where[0], where[0] + len(where)))


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
    rest = tuple(op_of(arg, ArrayConstant).array for arg in node.args[len(given) :])
    return evaluate(node.op, (*given, *rest))
