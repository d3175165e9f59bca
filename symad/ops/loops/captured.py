"""Values of an enclosing function, as the graphs that are made inside of it see them.

While f is traced, a graph that is made in f may use values of f: it closes over them. To that graph they are
constants. They must not be taken for its own inputs, which may have the same names and shapes
(Siskind and Pearlmutter 2005, "Perturbation confusion and referential transparency"). So the value
is hidden in the field of an op without arguments, and comes back when the graph's results join f.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NoReturn

from symad.core.dims import Shape
from symad.core.graph import Graph, Node, shape
from symad.core.questions import Array, Nodes, Values, evaluate
from symad.errors import TraceError
from symad.ops.arrays.sources import Source


@dataclass(frozen=True, eq=False)
class Captured(Source):
    """The value ``node`` of the function ``owner`` (a `Session` of tracing) that is being traced."""

    node: Node
    owner: Any


def captured_nodes(graph: Graph) -> list[Node]:
    """The values of enclosing functions that a graph uses."""
    return [node for node in graph.nodes if isinstance(node.op, Captured)]


def check_closed(graph: Graph, what: str) -> None:
    """Refuse a graph that uses values of a function that is being traced.

    Raises:
        TraceError: names the graph, the function and what was to be done.
    """
    for node in captured_nodes(graph):
        refuse(f"{what} of the graph {graph.name}, which", node.op)


def refuse(what: str, op: Any) -> NoReturn:
    """Say that ``what`` uses a value of an enclosing function."""
    raise TraceError(
        f"{what} uses a value of {op.owner.title}; such a value has no number: call the graph inside of "
        f"{op.owner.title}, or make the value an input of the graph"
    )


@shape(Captured)
def captured_shape(op: Captured, args: Nodes) -> Shape:
    return op.node.shape


@evaluate.dispatch
def captured_evaluate(op: Captured, values: Values) -> Array:
    refuse("a value that", op)
