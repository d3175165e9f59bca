"""The contents of a picture of a graph: boxes with labels, and edges.

A loop is shown unfolded: the first two steps and the last one, each with the recurrence. A graph has one node
for a loop of any length; unfolded in time it is a chain h_0 → h_1 → h_2 → … → h_T, whose steps share the
constants, and so lectures draw it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, TypeAlias

from symad.core.dims import format_shape
from symad.core.graph import Graph, Node, topological
from symad.core.structures import DictOf
from symad.display.labels import Family, argument_order_shows, details, family, label, slots
from symad.display.reading import plain
from symad.display.tables import Math
from symad.display.typesetting.derivation import written
from symad.display.typesetting.pieces import write
from symad.display.typesetting.recurrences import arguments_named, formal_names
from symad.higher_order.scan import Scan

GAP = Math("", "")


@dataclass(frozen=True)
class StepFrame:
    """A step of a loop: its number, the name of its state, and its formula; a gap has neither."""

    number: int = 0
    name: str = ""
    formula: Math = GAP


def steps_of(graph: Graph, node: Node) -> list[StepFrame]:
    """At most three steps of a loop, with a gap before the last one of a longer loop; none of other nodes."""
    if not isinstance(node.op, Scan) or node.shape[0] == 0:
        return []
    count = node.shape[0]
    if isinstance(count, int) and count <= 3:
        return [_step(graph, node, k, k - 1, k) for k in range(1, count + 1)]
    first = [_step(graph, node, k, k - 1, k) for k in (1, 2)]
    return [*first, StepFrame(), _step(graph, node, -1, count - 1, count)]


def _step(graph: Graph, node: Any, number: int, before: object, now: object) -> StepFrame:
    names, pieces = formal_names(graph, node, (str(before), str(now)))
    slots = dict(zip(node.op.body.input_nodes, pieces, strict=True))
    state = names[0].removesuffix("_{0}")
    formula = write(written(node.op.body.output_nodes[0], slots))
    return StepFrame(number, plain(f"{state}_{{{now}}}"), Math(plain(formula), formula))


def edges_into(
    node: Node, number: Mapping[Node, int], steps: Sequence[StepFrame]
) -> Iterator[tuple[int, int]]:
    """The edges into a node; a loop's ``steps`` are the boxes before its own, and hand on the state."""
    if not steps:
        yield from ((number[arg], number[node]) for arg in slots(node))
        return
    boxes = range(number[node] - len(steps), number[node])
    shown = [box for box, step in zip(boxes, steps, strict=True) if step.name]
    for k, arg in enumerate(node.args):
        if not arg.op.literal:
            yield from ((number[arg], box) for box in (shown if k else shown[:1]))
    yield from pairwise(boxes)
    yield from ((box, number[node]) for box in shown)


MAX_NODES = 80
"""The maximum number of nodes; of larger graphs the first and the last nodes are drawn."""

MAX_LABEL, MAX_FORMULA = 28, 44
"""The maximum length of a label, and of the recurrence of a loop as a label."""

CHARACTER, LINE_CHARACTER, SMALL_CHARACTER = 8.0, 7.3, 6.8
"""The mean width of a character in pixels, at the sizes of labels, of values and of shapes."""


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
    state: str = ""
    """The name of the value in the tables of `explain`, such as ``s_2``; empty if it is the label."""
    lines: tuple[Math, ...] = ()
    """What stands below the label: the value, the adjoint."""
    latex: str = ""
    """The label in LaTeX, if it is a formula."""

    @property
    def width(self) -> float:
        """The width in pixels, from the number of characters."""
        lines = max((LINE_CHARACTER * len(line.text) for line in self.lines), default=0.0)
        shape = SMALL_CHARACTER * len(self.inside)
        return max(44.0, CHARACTER * len(self.heading) + 22, shape + 16, lines + 18)

    @property
    def heading(self) -> str:
        """The label, and above values the shape of an array."""
        return f"{self.label} {self.shape}".strip() if self.lines else self.label

    @property
    def inside(self) -> str:
        """The shape of an array, below the label; that of an output is beside the box."""
        return "" if self.output or self.lines else self.shape

    @property
    def tag(self) -> str:
        """What is written to the left of the box: its state, unless the lines begin with it."""
        return "" if self.lines else self.state

    @property
    def result(self) -> str:
        """What is written beside the box: the name and the shape of an output, or a variable."""
        if self.lines:  # they begin with the variable
            return self.output
        return f"{self.output or self.variable} {self.shape if self.output else ''}".strip()

    @property
    def room(self) -> float:
        """The width that the layout reserves."""
        return self.width + 2 * max(CHARACTER * len(self.result), SMALL_CHARACTER * len(self.tag) + 4)


@dataclass(frozen=True)
class Picture:
    """Boxes, edges in argument order (some twice), and the box of each node."""

    name: str
    boxes: tuple[Box, ...]
    edges: tuple[tuple[int, int], ...]
    places: Mapping[Node, int]


def _output_names(graph: Graph) -> list[str]:
    """The derivatives that the outputs are, the variables that hold them, or their keys.

    Else y, or y1, y2, ...; f or out if an input has such a name.
    """
    taken, count = {str(symbol) for symbol in graph.inputs}, len(graph.output_nodes)
    for stem in ("y", "f", "out", "result"):
        names = [stem] if count == 1 else [f"{stem}{k}" for k in range(1, count + 1)]
        if taken.isdisjoint(names):
            break
    if isinstance(graph.structure, DictOf) and len(graph.structure.keys) == count:
        names = list(graph.structure.keys)
    held = {node: name for node, name in _variables(graph).items() if name not in taken}
    named = [held.get(node, name) for node, name in zip(graph.output_nodes, names, strict=True)]
    return [d or name for d, name in zip(_derivatives(graph), named, strict=True)]


def _derivatives(graph: Graph) -> list[str]:
    """∂f/∂x, ∂f or ∂²f for the outputs that are derivatives; empty for others."""
    count = len(graph.output_nodes)
    found = re.fullmatch("(.+?)_(value_and_gradient|gradient|jacobian|hessian)", graph.name)
    if found is None:
        return [""] * count
    function, kind = found.groups()
    if "gradient" not in kind:
        return [f"∂{function}" if kind == "jacobian" else f"∂²{function}"] if count == 1 else [""] * count
    labels = graph.origin.labels if graph.origin else ("",) * count
    return [re.sub("(.+)_bar", rf"∂{function}/∂\1", label) for label in labels]


def _variables(graph: Graph) -> dict[Node, str]:
    """The variables of the traced function outside of its loops, by the nodes that they hold."""
    return {v.node: v.name for v in graph.variables if v.scope is None}


def states(order: Iterable[Node], inputs: Sequence[Node]) -> dict[Node, str]:
    """The index of each state s_k: 0 for a single input, otherwise inputs keep their names; then 1, 2, ..."""
    index = {node: "0" if len(inputs) == 1 else label(node) for node in inputs}
    steps = [n for n in order if n not in index and not n.op.literal]
    return index | {node: str(k) for k, node in enumerate(steps, 1)}


Lines: TypeAlias = "tuple[Math, ...]"

NOT_SHOWN = Family("", "#ffffff", "#999999")
"""The look of a box that stands for several."""


def picture(
    graph: Graph,
    lines: Mapping[Node, Lines] | None = None,
    steps: Mapping[Node, Sequence[Lines]] | None = None,
) -> Picture:
    """The boxes and edges of a graph; ``lines`` are shown below the labels.

    Loops are unfolded, but with lines only where ``steps`` has those of each step.
    """
    everything = topological([*graph.input_nodes, *graph.output_nodes])
    order = [n for n in everything if not n.op.literal]
    order += [n for n in dict.fromkeys(graph.output_nodes) if n.op.literal]
    half = MAX_NODES // 2
    hidden = order[half:-half] if len(order) > MAX_NODES else []
    unfold = not hidden and (lines is None or steps is not None)
    loops = {n: steps_of(graph, n) for n in order} if unfold else {}
    outputs, variables = _outputs(graph), _variables(graph)
    labels = _state_names(everything, graph) | _named_by_steps(graph, loops)
    number: dict[Node, int] = {}
    boxes: list[Box] = []
    for node in [*order[:half], *order[half:][-half:]] if hidden else order:
        if hidden and len(boxes) == half:
            number |= dict.fromkeys(hidden, half)
            note = f"⋯ {len(hidden)} operations not shown ⋯"
            boxes.append(Box(note, note, "", NOT_SHOWN))
        boxes += [_step_box(step, (steps or {}).get(node, ()), node) for step in loops.get(node, ())]
        number[node] = len(boxes)
        shown = (lines or {}).get(node, ())
        boxes.append(_box(node, outputs.get(node, ""), variables.get(node, ""), labels.get(node, ""), shown))
    edges = [edge for node in order for edge in edges_into(node, number, loops.get(node, ()))]
    if hidden:
        edges = [e for e in dict.fromkeys(edges) if e != (half, half)]
    return Picture(graph.name, tuple(boxes), tuple(edges), number)


def _state_names(order: Iterable[Node], graph: Graph) -> dict[Node, str]:
    """The names s_k; inputs that have names of their own are left out."""
    numbered = states(order, graph.input_nodes).items()
    return {node: f"s_{k}" for node, k in numbered if k.isdigit()}


def _named_by_steps(graph: Graph, loops: Mapping[Node, Sequence[StepFrame]]) -> dict[Node, str]:
    """What the steps of unfolded loops call their arguments, such as h_0."""
    unfolded = [node for node, frames in loops.items() if frames]
    return {a: plain(name) for n in unfolded for a, name in arguments_named(graph, n).items()}


def _outputs(graph: Graph) -> dict[Node, str]:
    """The names of the outputs that a node is."""
    names: dict[Node, list[str]] = {}
    for name, node in zip(_output_names(graph), graph.output_nodes, strict=True):
        names.setdefault(node, []).append(name)
    return {node: ", ".join(held) for node, held in names.items()}


def _step_box(step: StepFrame, lines: Sequence[Lines], node: Node) -> Box:
    """A step of a loop, with its recurrence if it is short; ``lines`` are those of all steps."""
    if not step.name:
        return Box("⋯", "further steps", "", NOT_SHOWN)
    short = len(step.formula.text) <= MAX_FORMULA
    label, name = (step.formula.text, step.name) if short else (f"step {step.name.partition('_')[2]}", "")
    shown = lines[step.number - (step.number > 0)] if lines else ()
    tip, latex = f"{step.name} = {step.formula.text}", step.formula.latex if short else ""
    return Box(label, tip, "", family(node), "", False, name, lines=shown, latex=latex)


def _box(node: Node, output: str, variable: str, state: str, lines: Lines) -> Box:
    shape = format_shape(node.shape) if node.shape else ""
    text = label(node)
    shown = text if len(text) <= MAX_LABEL else text[: MAX_LABEL - 1] + "…"
    tip = details(node) + (f", shape {shape}" if shape else "")
    ordered = argument_order_shows(node)
    return Box(shown, tip, shape, family(node), output, ordered, variable, state, lines)
