"""Reductions over rows and the elementwise work around them as single kernels: a pass from graph to graph.

A row is the last axis. Layer norm, for example, is two sums over rows between elementwise steps: one kernel
reads a row three times from the cache, instead of six kernels that read and write whole arrays. A region is
grown node by node in topological order, and kept if a sum over rows is used again by the rows in it. A node
joins a region only if no path leaves the region and returns to it through the node, and no cycle of regions
arises. With ``dots``, sums over rows times one vector join as well: a kernel matrix times a vector then
needs no second pass over the matrix.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from symad.core.contents import readers
from symad.core.dims import Shape, same_shape
from symad.core.graph import Node, rebuild, topological
from symad.core.questions import Nodes, definition
from symad.higher_order.remat import Fallback
from symad.numeric.fusion.c_expressions import has_c_form
from symad.numeric.fusion.nest import (
    New,
    in_units,
    is_row,
    is_row_dot,
    is_row_sum,
    nests_of,
    repeats_columns,
    repeats_rows,
)
from symad.ops.basic.arithmetic import ElementwiseOp
from symad.ops.basic.contraction import Einsum
from symad.ops.basic.shaping import Broadcast, Reshape
from symad.ops.basic.sources import Constant
from symad.ops.elementwise.selection import Condition

MIN_ROW, MAX_ROW, MAX_MEMBERS, MAX_LEAVES, MAX_RESULTS = 8, 4096, 80, 12, 6
"""Limits of a kernel: elements of a row (two bounds), nodes, arrays read and arrays written."""


def _is_vector(node: Node, user: Node, full: Shape) -> bool:
    """Whether a sum times a vector reads the node as the vector, which it needs before the first row."""
    return is_row_dot(user, full) and user.args[1] is node


def _is_short(full: Shape) -> bool:
    """Whether rows are not known to be shorter or longer than those of a kernel."""
    return not isinstance(full[-1], int) or MIN_ROW <= full[-1] <= MAX_ROW


@dataclass(eq=False)
class _Region:
    full: Shape
    bits: int
    """Its number as a bit of a set of regions; also those of the regions that have become part of it."""
    members: dict[Node, None] = field(default_factory=dict)
    before: int = 0
    """The set of regions on which its members depend."""


class _RowRegions:
    """The regions of one graph."""

    def __init__(
        self, outputs: Sequence[Node], dots: bool, alone: Callable[[Node], bool], most: tuple[int, int]
    ) -> None:
        self.outputs = outputs
        self.dots = dots
        self.alone = alone
        self.leaves, self.results = most
        self.order = topological(outputs)
        self.users = readers(self.order)
        self.regions: list[_Region] = []
        self.of: dict[Node, int] = {}
        self.at: list[int] = []
        """The present number of each region, which may have become part of another."""
        self.reached: dict[Node, int] = {}
        """The set of regions that a node depends on or belongs to."""
        self.last = {node: k for k, node in enumerate(self.order)}
        for full in self._shapes():
            self._find_dependencies()
            self.fresh = True
            for node in self.order:
                self._reach(node)
                if node not in self.of:
                    self._place(node, full)

    def _is_sum(self, node: Node, full: Shape) -> bool:
        return is_row_sum(node, full) or (self.dots and is_row_dot(node, full))

    def _shapes(self) -> list[Shape]:
        """The shapes with a sum over rows that is broadcast to the rows again."""
        found: list[Shape] = []
        for node in self.order:
            if isinstance(node.op, Einsum) and node.args and len(node.args[0].shape) > 1:
                full = node.args[0].shape
                new = not any(same_shape(full, f) for f in found)
                if new and _is_short(full) and self._is_sum(node, full):
                    found.append(full)
        return found

    def _place(self, node: Node, full: Shape) -> None:
        """Put a node into the last region of this shape that can take it, or into a new one."""
        if not self._belongs(node, full) or self.alone(node):
            return
        near = {self.of[a] for a in node.args if a in self.of}
        for number in sorted(near, reverse=True):
            region = self.regions[number]
            if same_shape(region.full, full) and self._may_join(node, number):
                region.members[node] = None
                self.of[node] = number
                self._absorb(node, number)
                break
        else:
            number = self.of[node] = len(self.regions)
            self.at.append(number)
            self.regions.append(_Region(full, 1 << number, {node: None}))
        self.fresh = False
        self._reach(node)

    def _absorb(self, node: Node, number: int) -> None:
        """Add nodes that only this region reads, after a node that reads them has joined."""
        region = self.regions[number]
        for other in {self.of[a] for a in node.args if self.of.get(a, number) != number}:
            members = self.regions[other].members
            both = {**members, **region.members}
            uses = [(m, u) for m in members for u in self.users[m]]
            alone = all(u in both and not _is_vector(m, u, region.full) for m, u in uses)
            small = len(members) + len(region.members) <= MAX_MEMBERS
            alone = alone and not any(m in self.outputs for m in members)
            if alone and small and same_shape(self.regions[other].full, region.full):
                region.members = both
                self.of |= dict.fromkeys(members, number)
                region.bits |= self.regions[other].bits
                region.before |= self.regions[other].before
                self.regions[other].members = {}
                self.at = [number if k == other else k for k in self.at]

    def _belongs(self, node: Node, full: Shape) -> bool:
        if self._is_sum(node, full):
            return True
        arg = node.args[0] if node.args else node
        if isinstance(node.op, Broadcast):
            return repeats_rows(node, full) and arg in self.of
        if isinstance(node.op, Reshape):
            return is_row(node.shape, full) and is_row(arg.shape, full) and arg in self.of
        if not isinstance(node.op, ElementwiseOp) or not has_c_form(node):
            return False
        if any(isinstance(a.op, Condition) and a not in self.of for a in node.args):
            return False
        if same_shape(node.shape, full):
            return True
        return is_row(node.shape, full) and any(a in self.of for a in node.args)

    def _may_join(self, node: Node, number: int) -> bool:
        region = self.regions[number]
        if len(region.members) >= MAX_MEMBERS or not any(self.of.get(a) == number for a in node.args):
            return False
        if any(a in region.members and _is_vector(a, node, region.full) for a in node.args):
            return False
        arguments = [a for a in node.args if self.of.get(a) != number]
        fine, late = self._is_apart(number, arguments, self.last[node])
        if fine and late and not self.fresh:  # what later nodes depend on has changed since
            self._find_dependencies()
            self.fresh = True
            fine, _ = self._is_apart(number, arguments, self.last[node])
        return fine

    def _is_apart(self, number: int, nodes: Sequence[Node], position: int) -> tuple[bool, bool]:
        """Whether nodes do not depend on a region, by no path through other regions.

        Also whether one of these regions has members after a position in the order.
        """
        own, seen, late = self.regions[number].bits, 0, False
        frontier = 0
        for a in nodes:
            frontier |= self.reached[a]
        while frontier and not frontier & own:
            region = self.regions[self.at[(frontier & -frontier).bit_length() - 1]]
            seen |= region.bits
            late = late or any(self.last[m] > position for m in region.members)
            frontier = (frontier | region.before) & ~seen
        return not frontier, late

    def _reach(self, node: Node) -> None:
        """Find the regions on which a node depends, once those of its arguments are known."""
        found = 0
        for a in node.args:
            found |= self.reached[a]
        if (own := self.of.get(node)) is not None:
            region = self.regions[own]
            region.before |= found & ~region.bits
            found |= region.bits
        self.reached[node] = found

    def _find_dependencies(self) -> None:
        """Find the regions on which every node and every region depends."""
        for node in self.order:
            self._reach(node)

    def kept(self) -> list[_Region]:
        """The regions within the limits that use a sum over their rows again."""
        return [r for r in self.regions if self._pays(r)]

    def _pays(self, region: _Region) -> bool:
        full = region.full
        sums = [m for m in region.members if self._is_sum(m, full)]
        back = [m for m in region.members if repeats_rows(m, full)]
        dots = [m for m in region.members if is_row_dot(m, full) and m.args[0] in region.members]
        read = set(self.outputs) | {
            m for m in region.members if any(u not in region.members for u in self.users[m])
        }
        results, leaves = _results(region.members, read), _leaves(region.members, full)
        plain = not any(isinstance(m.op, Condition) for m in (*results, *leaves))
        few = len(results) <= self.results and len(leaves) <= self.leaves
        return bool(sums and (back or dots)) and plain and few


def _results(members: Iterable[Node], read: set[Node]) -> list[Node]:
    """The members that others read; instead of a number broadcast over a row, the number itself."""
    found = (m.args[0] if isinstance(m.op, Broadcast) else m for m in members if m in read)
    return list(dict.fromkeys(found))


def _leaves(members: Iterable[Node], full: Shape) -> list[Node]:
    """The arrays that members read, before they are broadcast along rows, columns or both."""
    inside = set(members)
    found: dict[Node, None] = {}
    for m in members:
        for a in m.args:
            if a in inside or isinstance(a.op, Constant):
                continue
            scalar = isinstance(a.op, Broadcast) and not a.args[0].shape
            repeated = scalar or repeats_columns(a, full) or repeats_rows(a, full)
            leaf = a.args[0] if repeated else a
            if not isinstance(leaf.op, Constant):
                found[leaf] = None
    return list(found)


def open_fallbacks(outputs: Sequence[Node]) -> Nodes:
    """The outputs with `Fallback` written out where its root of a sum over rows is used by the rows again.

    One kernel then computes it, and decides for each row.
    """
    order = topological(outputs)
    if not any(isinstance(node.op, Fallback) for node in order):
        return tuple(outputs)
    back: dict[Node, set[Shape]] = {}
    """The shapes of rows to which functions of a number per row are broadcast."""
    for node in reversed(order):
        repeated = isinstance(node.op, Broadcast) and repeats_rows(node, node.shape)
        passed = isinstance(node.op, (ElementwiseOp, Reshape, Fallback))
        for arg in node.args:
            given = {node.shape} if repeated else back.get(node, ()) if passed else ()
            back.setdefault(arg, set()).update(given)

    def opened(node: Node, args: Nodes) -> Node:
        made = node.over(args)
        if isinstance(node.op, Fallback):
            q = node.args[1].args[0]
            if any(is_row_sum(q, full) and _is_short(full) for full in back.get(node, ())):
                return definition(made.op, made) or made
        return made

    return tuple(rebuild(outputs, {}, opened))


def fuse_rows(
    outputs: Sequence[Node],
    dots: bool = False,
    alone: Callable[[Node], bool] = lambda node: False,
    most: tuple[int, int] = (MAX_LEAVES, MAX_RESULTS),
) -> Nodes:
    """The outputs with such regions as `Nest` nodes.

    Args:
        outputs: the outputs of a graph.
        dots: whether sums times a vector join as well.
        alone: whether a node stays outside of all regions.
        most: the largest numbers of arrays that one kernel reads and writes.
    """
    if not any(isinstance(node.op, Einsum) for node in topological(outputs)):
        return tuple(outputs)
    found = _RowRegions(outputs, dots, alone, most)
    regions = found.kept()
    if not regions:
        return tuple(outputs)
    unit = {m: k for k, r in enumerate(regions) for m in r.members}
    users = {a for n in found.order for a in n.args if n not in unit or unit[n] != unit.get(a)} | set(outputs)

    def make(members: Sequence[Node], new: New) -> Mapping[Node, Node]:
        first = members[0]
        if first not in unit:
            args = tuple(new[a] for a in first.args)
            return {first: first.over(args)}
        full = regions[unit[first]].full
        made = nests_of(_results(members, users), _leaves(members, full), new, full, (len(full) - 1,))
        ends = [m for m in members if m in users and isinstance(m.op, Broadcast)]
        return made | {m: Node.of(m.op, (made[m.args[0]],)) for m in ends}

    return in_units(outputs, found.order, unit, make)
