"""Values of an enclosing function, seen by the graphs that are made inside of it.

While f is traced, a graph that is made in f may use values of f: it closes over them. For that graph they
are constants. They must not be confused with its inputs, which may have the same names and shapes
(Siskind and Pearlmutter 2005, "Perturbation confusion and referential transparency"). So the value is
stored in the field of an op without arguments, and is restored when the graph's results become part of f.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NoReturn

from symad.core.contents import holds
from symad.core.dims import Shape
from symad.core.graph import Graph, Node, shape
from symad.core.questions import Array, Nodes, Values, evaluate
from symad.errors import TraceError
from symad.ops.basic.sources import Source


@dataclass(frozen=True, eq=False)
class Captured(Source):
    """The value ``node`` of the function ``owner`` (a `Session` of tracing) that is being traced."""

    outside = True

    node: Node
    owner: Any


def captured_nodes(graph: Graph) -> list[Node]:
    """The values of enclosing functions that a graph uses."""
    if not holds(graph, Captured):
        return []
    return [node for node in graph.nodes if isinstance(node.op, Captured)]


def check_closed(graph: Graph, what: str) -> None:
    """Refuse a graph that uses values of a function that is being traced.

    Raises:
        TraceError: the message names the graph, the function and the intended operation.
    """
    for node in captured_nodes(graph):
        refuse(f"{what} of the graph {graph.name}, which", node.op)


def refuse(what: str, op: Any) -> NoReturn:
    """Raise the error that ``what`` uses a value of an enclosing function."""
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
