"""One step of a loop: its elements as scalars, and its parts in the order in which a kernel computes them.

An element is the value of a node of the loop's body at row n and column c. Ops that move elements are
resolved into places of arrays. The remaining ops are elementwise, on numbers that are loaded and on sums
Σ_k a[n, k] b[k, c] over a constant matrix b. Parts are stored elements, level by level.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, TypeAlias

from symad.core.graph import Graph, Node, Op, op_of, topological
from symad.core.questions import question
from symad.higher_order.scan import Local
from symad.numeric.fusion.c_expressions import has_c_form
from symad.ops.arrays.stacking import Concatenate, Stack, take
from symad.ops.basic.arithmetic import ElementwiseOp, mul
from symad.ops.basic.contraction import Einsum, permutes
from symad.ops.basic.shaping import Broadcast, Pad, Reshape, ShapingOp, Slice
from symad.ops.basic.sources import Constant, constant

# ---- single elements -----------------------------------------------------------------------------


class NotByRows(Exception):
    """A body cannot be computed row by row; the message names the reason."""


Place: TypeAlias = "tuple[str, int]"
"""A position on one axis: ("row", 0) is n, ("column", 8) is c + 8, ("depth", 8) is k + 8, ("at", 3) is 3."""

Index: TypeAlias = "tuple[Place, ...]"
ROW: Place = ("row", 0)


@dataclass(frozen=True)
class ElementLoad:
    """An element of an array, which is an input of the body, or a value stored earlier in the step."""

    array: Node
    index: Index


@dataclass(frozen=True)
class InnerProduct:
    """Σ_k left right, over ``depth`` elements."""

    left: ElementLoad
    right: ElementLoad
    depth: int


@dataclass
class BodyElements:
    """The elements of one body.

    Attributes:
        states: the inputs of the body that are states.
        batched: whether the values of the body have an axis of rows.
        leaves: the loads and sums, by the scalar that represents each.
        stored: values besides the results that later parts of the step read from memory.
    """

    states: frozenset[Node]
    batched: bool
    leaves: dict[Node, ElementLoad | InnerProduct] = field(default_factory=dict)
    stored: dict[Node, None] = field(default_factory=dict)
    _known: dict[tuple[Node, Index], Node] = field(default_factory=dict)
    _numbers: dict[ElementLoad | InnerProduct, Node] = field(default_factory=dict)

    def at(self, node: Node, index: Index) -> Node:
        """The scalar of a node's element at a place."""
        key = node, index
        if key not in self._known:
            self._known[key] = element(node.op, node, index, self)
        return self._known[key]

    def leaf(self, what: ElementLoad | InnerProduct) -> Node:
        """The scalar that represents a load or a sum."""
        if what not in self._numbers:
            made = Node.of(Local(len(self._numbers), ()))
            self._numbers[what], self.leaves[made] = made, what
        return self._numbers[what]

    def results_index(self, node: Node) -> tuple[Index, int]:
        """The place of the element (n, c) in a value, and the number of the value's columns."""
        rank = len(node.shape) - self.batched
        if rank not in (0, 1):
            raise NotByRows(f"a value of the shape {node.shape}")
        lead = (ROW,) if self.batched else ()
        return ((*lead, ("column", 0)), node.shape[-1]) if rank else (lead, 1)

    def memory(self, node: Node, index: Index) -> ElementLoad:
        """A load of a product's factor; a computed factor is stored in an array first."""
        while (found := moved_from(node, index)) is not None:
            node, index = found
        if not isinstance(node.op, Local):
            for axis, (kind, at) in reversed([*enumerate(index)]):
                if kind == "at":
                    node, index = take(node, axis, at), (*index[:axis], *index[axis + 1 :])
            self.results_index(node)
            self.stored[node] = None
        self.check(node, index)
        return ElementLoad(node, index)

    def check(self, node: Node, index: Index) -> None:
        """Raise NotByRows unless states and stored values are read in their own row only."""
        owned = node in self.states or not isinstance(node.op, Local)
        if owned and self.batched and index[0] != ROW:
            raise NotByRows("a row reads the state of another one")


@question
def element(op: Op, node: Node, index: Index, elements: BodyElements) -> Any:
    """The scalar of a node's element at a place."""


@element.dispatch
def other_element(op: Op, node: Node, index: Index, elements: BodyElements) -> Node:
    """The error for all other ops."""
    raise NotByRows(type(op).__name__)


@element.dispatch
def constant_element(op: Constant, node: Node, index: Index, elements: BodyElements) -> Node:
    """A number."""
    return node


@element.dispatch
def local_element(op: Local, node: Node, index: Index, elements: BodyElements) -> Node:
    """A load."""
    elements.check(node, index)
    return elements.leaf(ElementLoad(node, index))


@element.dispatch
def elementwise_element(op: ElementwiseOp, node: Node, index: Index, elements: BodyElements) -> Node:
    """The op on the elements of its arguments."""
    if not has_c_form(node):
        raise NotByRows(f"{type(op).__name__} has no form in a kernel")
    return Node.of(op, tuple(elements.at(a, index if a.shape else ()) for a in node.args))


@element.dispatch
def shaping_element(op: ShapingOp, node: Node, index: Index, elements: BodyElements) -> Node:
    """The element of the argument that is moved to this place."""
    found = moved_from(node, index)
    if found is None:
        raise NotByRows(type(op).__name__)
    return elements.at(*found)


@element.dispatch
def pad_element(op: Pad, node: Node, index: Index, elements: BodyElements) -> Node:
    """The element of the array, or 0."""
    (arg,), made = node.args, []
    for (kind, at), start, step, size, whole in zip(
        index, op.start, op.step, arg.shape, node.shape, strict=True
    ):
        if start == 0 and step == 1 and size == whole:
            made.append((kind, at))
            continue
        if kind != "at" or not all(isinstance(n, int) for n in (start, step, size)):
            raise NotByRows("a padded array")
        if (at - start) % step or not 0 <= (at - start) // step < size:
            return constant(0)
        made.append((kind, (at - start) // step))
    return elements.at(arg, tuple(made))


@element.dispatch
def einsum_element(op: Einsum, node: Node, index: Index, elements: BodyElements) -> Node:
    """The element of a transposed array, of an outer product, or of a sum over one axis of two factors."""
    found = moved_from(node, index)
    if found is not None:
        return elements.at(*found)
    place = dict(zip(op.output, index, strict=True))
    if len(node.args) != 2:
        raise NotByRows("a sum")
    summed = {label for labels in op.inputs for label in labels} - set(op.output)
    if not summed:
        first, second = (tuple(place[label] for label in labels) for labels in op.inputs)
        return mul(elements.at(node.args[0], first), elements.at(node.args[1], second))
    if len(summed) > 1 or not all(summed <= set(labels) for labels in op.inputs):
        raise NotByRows("a product with several sums")
    (label,) = summed
    place[label] = ("depth", 0)
    depth = node.args[0].shape[op.inputs[0].index(label)]
    pairs = [(arg, tuple(place[x] for x in labels)) for arg, labels in zip(node.args, op.inputs, strict=True)]
    if _runs_along(pairs[0][1], "column") or _runs_along(pairs[1][1], "row"):
        pairs.reverse()
    left, right = (elements.memory(arg, at) for arg, at in pairs)
    fixed = isinstance(right.array.op, Local) and right.array not in elements.states
    if _runs_along(left.index, "column") or _runs_along(right.index, "row") or not fixed:
        raise NotByRows("a product of two values that change")
    return elements.leaf(InnerProduct(left, right, depth))


def _runs_along(index: Index, wanted: str) -> bool:
    """Whether an axis of an element is counted by rows, or by columns."""
    return any(kind == wanted for kind, _ in index)


def moved_from(node: Node, index: Index) -> tuple[Node, Index] | None:
    """The argument and the place in it from which a node takes its element; None if it computes it."""
    op = node.op
    if isinstance(op, (Stack, Concatenate)):
        return _among(node, index)
    if isinstance(op, Broadcast):
        return node.args[0], tuple(index[axis] for axis in op.axes)
    if permutes(op):
        place = dict(zip(op.output, index, strict=True))
        return node.args[0], tuple(place[label] for label in op.inputs[0])
    if isinstance(op, Reshape):
        return node.args[0], _reshaped(node, index)
    return (node.args[0], _sliced(op, node.args[0], index)) if isinstance(op, Slice) else None


def _among(node: Node, index: Index) -> tuple[Node, Index] | None:
    """One of several joined arrays and the place in it, if the place is known; else None."""
    op = node.op
    assert isinstance(op, (Stack, Concatenate)), node
    kind, at = index[op.axis]
    before, after = index[: op.axis], index[op.axis + 1 :]
    if kind != "at":
        return None
    if isinstance(op, Stack):
        return node.args[at], (*before, *after)
    for arg in node.args:
        size = arg.shape[op.axis]
        if not isinstance(size, int):
            return None
        if at < size:
            return arg, (*before, (kind, at), *after)
        at -= size
    return None


def _reshaped(node: Node, index: Index) -> Index:
    """The index in the argument of a reshape that only adds or drops axes of length 1."""
    (arg,) = node.args
    if [d for d in node.shape if d != 1] != [d for d in arg.shape if d != 1]:
        raise NotByRows("a change of shape")
    long = iter([place for place, size in zip(index, node.shape, strict=True) if size != 1])
    return tuple(("at", 0) if size == 1 else next(long) for size in arg.shape)


def _sliced(op: Slice, arg: Node, index: Index) -> Index:
    made: list[Place] = []
    for (kind, at), start, step, count, size in zip(
        index, op.start, op.step, op.count, arg.shape, strict=True
    ):
        whole = start == 0 and step == 1 and count == size
        known = isinstance(start, int) and (step == 1 or kind == "at")
        if not whole and (kind == "row" or not known):
            raise NotByRows("a part of the rows")
        made.append((kind, at) if whole else (kind, start + step * at))
    return tuple(made)


def pieces_of(node: Node, batched: bool) -> list[tuple[Node, int]]:
    """The arrays that are side by side in a value, and the columns where they begin."""
    op = node.op
    if not isinstance(op, Concatenate) or op.axis != int(batched):
        return [(node, 0)]
    found, start = [], 0
    for arg in node.args:
        found.append((arg, start))
        start += arg.shape[op.axis]
    return found


MAX_MEMBERS, MAX_ARRAYS = 400, 80
"""The most nodes of a body that becomes one kernel, and the most arrays: each takes 48 of the 4096 bytes of
parameters."""


@dataclass(frozen=True)
class ColumnStore:
    """An element (n, c) that is written to column c + ``start`` of a value."""

    value: Node
    start: int
    scalar: Node


@dataclass(frozen=True)
class StepPart:
    """Elements of ``width`` columns that are computed together, after all earlier levels."""

    level: int
    width: int
    stores: tuple[ColumnStore, ...]


@dataclass(frozen=True)
class LoopStep:
    """A step as parts.

    Attributes:
        batched: whether values have an axis of rows.
        parts: the parts, by level.
        leaves: see `BodyElements`.
        stored: values that are not results, kept for the duration of a step.
        states: the number of the body's inputs that are states.
    """

    batched: bool
    parts: tuple[StepPart, ...]
    leaves: dict[Node, ElementLoad | InnerProduct]
    stored: tuple[Node, ...]
    states: int

    @property
    def levels(self) -> int:
        """The number of barriers in a step."""
        return 1 + self.parts[-1].level

    def used(self, part: StepPart) -> list[tuple[Node, ElementLoad | InnerProduct]]:
        """The leaves of a part, in a fixed order."""
        return [(n, self.leaves[n]) for n in topological([s.scalar for s in part.stores]) if n in self.leaves]

    def joins(self) -> bool:
        """Whether the last part of a step and the first part of the next can be one, element by element.

        This requires that no value which the last level stores is read by a product of the first level, or at
        another column.
        """
        first = [part for part in self.parts if part.level == 0]
        last = [part for part in self.parts if part.level == self.levels - 1]
        if self.levels < 2 or len({part.width for part in (*first, *last)}) > 1:
            return False
        plain: tuple[Place, ...] = (("column", 0),)
        for part in first:
            for _, leaf in self.used(part):
                if isinstance(leaf, InnerProduct):
                    return False
                is_state = op_of(leaf.array, Local).position < self.states
                if is_state and leaf.index not in (plain, (ROW, *plain)):
                    return False
        return True


def step_of(body: Graph, states: int) -> LoopStep:
    """The parts of a body.

    Raises:
        NotByRows: rows depend on each other, or the body has an op that the kernel does not support.
    """
    order = topological(body.output_nodes)
    if len(order) > MAX_MEMBERS:
        raise NotByRows(f"{len(order)} operations")
    outputs = body.output_nodes
    batched = max(len(o.shape) for o in outputs) > 1
    if batched and len({o.shape[:1] for o in outputs}) > 1:
        raise NotByRows("values with different numbers of rows")
    elements = BodyElements(frozenset(body.input_nodes[:states]), batched)
    stores: dict[ColumnStore, tuple[int, int]] = {}
    waiting = list(dict.fromkeys(outputs))
    done: dict[Node, int] = {}
    while waiting:
        node = waiting.pop(0)
        for part, start in pieces_of(node, batched):
            index, width = elements.results_index(part)
            if not isinstance(width, int):
                raise NotByRows(f"a value of unknown width {width}")
            stores[ColumnStore(node, start, elements.at(part, index))] = (0, width)
        done[node] = 0
        waiting += [n for n in elements.stored if n not in done and n not in waiting]
    if len(body.input_nodes) + len(done) > MAX_ARRAYS:
        raise NotByRows(f"{len(body.input_nodes) + len(done)} arrays")
    levels = _levels(stores, elements)
    groups: dict[tuple[int, int], list[ColumnStore]] = {}
    for store, (_, width) in stores.items():
        groups.setdefault((levels[store], width), []).append(store)
    parts = tuple(StepPart(level, width, tuple(groups[level, width])) for level, width in sorted(groups))
    stored = tuple(n for n in elements.stored if n not in outputs)
    return LoopStep(batched, parts, dict(elements.leaves), stored, states)


def _levels(stores: dict[ColumnStore, Any], elements: BodyElements) -> dict[ColumnStore, int]:
    """For each element, the number of barriers before it: it is computed after all factors of its sums."""
    below: dict[ColumnStore, set[Node]] = {}
    for store in stores:
        leaves = [elements.leaves[n] for n in topological([store.scalar]) if n in elements.leaves]
        below[store] = {leaf.left.array for leaf in leaves if isinstance(leaf, InnerProduct)}
    level = dict.fromkeys(stores, 0)
    for _ in range(len(stores) + 1):
        of: dict[Node, int] = {}
        for store, height in level.items():
            of[store.value] = max(of.get(store.value, 0), height)
        new = {s: max([1 + of[a] for a in below[s] if a in of], default=0) for s in stores}
        if new == level:
            return level
        level = new
    raise NotByRows("values that need each other")
