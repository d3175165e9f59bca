"""The parts of one step, in the order in which a kernel computes them: stored elements, level by level."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from symad.core.graph import Graph, Node, op_of, topological
from symad.gpu.recurrences.elements import (
    ROW,
    BodyElements,
    ElementLoad,
    InnerProduct,
    NotByRows,
    Place,
    pieces_of,
)
from symad.higher_order.scan import Local

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
