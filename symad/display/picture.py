"""The contents of a picture of a graph: boxes with labels, and edges."""

from __future__ import annotations

from dataclasses import dataclass

from symad.core.dims import format_shape
from symad.core.graph import Graph, Node, topological
from symad.display.labels import (
    Family,
    argument_order_shows,
    details,
    family,
    is_literal,
    label,
    slots,
)

MAX_NODES = 80
"""The maximum number of nodes; of larger graphs the first and the last nodes are drawn."""

MAX_LABEL = 28
"""The maximum length of a label."""

CHARACTER, SMALL_CHARACTER = 8.0, 5.8
"""The mean width of a character in pixels, at the sizes of labels and of shapes."""


@dataclass(frozen=True)
class Box:
    """A vertex of the picture."""

    label: str
    tip: str
    shape: str
    family: Family
    output: str = ""
    ordered: bool = True
    """True if the edges arrive in argument order, from left to right."""
    variable: str = ""
    """The variable of the traced function that holds the value; may be empty."""

    @property
    def width(self) -> float:
        """The width in pixels, from the number of characters."""
        return max(44.0, CHARACTER * len(self.label) + 22.0, SMALL_CHARACTER * len(self.inside) + 16.0)

    @property
    def inside(self) -> str:
        """The shape of an array, below the label; that of an output stands beside the box."""
        return "" if self.output else self.shape

    @property
    def result(self) -> str:
        """What is written beside the box: the name and the shape of an output, or a variable."""
        return f"{self.output} {self.shape}".strip() if self.output else self.variable

    @property
    def room(self) -> float:
        """The width that the layout reserves."""
        return self.width + 2 * CHARACTER * len(self.result)


@dataclass(frozen=True)
class Picture:
    """Boxes, edges in argument order (some twice), and the number of omitted nodes."""

    name: str
    boxes: tuple[Box, ...]
    edges: tuple[tuple[int, int], ...]
    omitted: int


def _output_names(graph: Graph) -> list[str]:
    """The variables that hold the outputs; else y, or y1, y2, ...; f or out if an input has such a name."""
    taken, count = {str(symbol) for symbol in graph.inputs}, len(graph.output_nodes)
    for stem in ("y", "f", "out", "result"):
        names = [stem] if count == 1 else [f"{stem}{k}" for k in range(1, count + 1)]
        if taken.isdisjoint(names):
            break
    held = {node: name for node, name in _variables(graph).items() if name not in taken}
    return [held.get(node, name) for node, name in zip(graph.output_nodes, names, strict=True)]


def _variables(graph: Graph) -> dict[Node, str]:
    """The variables of the traced function outside of its loops, by the nodes that they hold."""
    return {v.node: v.name for v in graph.variables if v.scope is None}


def picture(graph: Graph) -> Picture:
    """The boxes and edges of a graph."""
    everything = topological([*graph.input_nodes, *graph.output_nodes])
    order = [n for n in everything if not is_literal(n)]
    outputs: dict[Node, list[str]] = {}
    for name, node in zip(_output_names(graph), graph.output_nodes, strict=True):
        outputs.setdefault(node, []).append(name)
    literal = [n for n in dict.fromkeys(graph.output_nodes) if is_literal(n)]
    order += literal
    kept, hidden = order, set()
    if len(order) > MAX_NODES:
        hidden = set(order[MAX_NODES // 2 : len(order) - MAX_NODES // 2])
        kept = [n for n in order if n not in hidden]
    number = {node: k + (bool(hidden) and k >= MAX_NODES // 2) for k, node in enumerate(kept)}
    variables = _variables(graph)
    boxes = [_box(node, ", ".join(outputs.get(node, ())), variables.get(node, "")) for node in kept]
    if hidden:
        note = f"⋯ {len(hidden)} operations not shown ⋯"
        boxes.insert(MAX_NODES // 2, Box(note, note, "", Family("", "#ffffff", "#999999")))
        number.update(dict.fromkeys(hidden, MAX_NODES // 2))
    edges = [(number[a], number[n]) for n in order for a in slots(n)]
    if hidden:
        rest = (MAX_NODES // 2, MAX_NODES // 2)
        edges = [e for e in dict.fromkeys(edges) if e != rest]
    return Picture(graph.name, tuple(boxes), tuple(edges), len(hidden))


def _box(node: Node, output: str, variable: str) -> Box:
    shape = format_shape(node.shape) if node.shape else ""
    text = label(node)
    shown = text if len(text) <= MAX_LABEL else text[: MAX_LABEL - 1] + "…"
    tip = details(node) + (f", shape {shape}" if shape else "")
    return Box(shown, tip, shape, family(node), output, argument_order_shows(node), variable)
