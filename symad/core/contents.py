"""What a graph contains: the classes of its ops, the graphs that its ops hold, and who reads which node.

Most passes apply to graphs with certain ops only. They ask here, so that the nodes of a graph are looked
through once and not once for each pass.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from symad.core.graph import Graph, Node, Op
from symad.core.interning import field_names
from symad.core.questions import Nodes, definition


def op_classes(graph: Graph) -> frozenset[type[Op]]:
    """The classes of the ops of a graph, without those of the graphs that its ops hold."""
    found: frozenset[type[Op]] | None = graph.__dict__.get("_op_classes")
    if found is None:
        found = frozenset({node.op.__class__ for node in graph.nodes})
        graph.__dict__["_op_classes"] = found
    return found


def holds(graph: Graph, *classes: type[Op]) -> bool:
    """Whether an op of one of these classes occurs in a graph."""
    return any(issubclass(kind, classes) for kind in op_classes(graph))


def fields_of(op: Op) -> list[object]:
    """The values of the fields of an op, in order."""
    return [getattr(op, name) for name in field_names(type(op))]


def inner_graphs(op: Op) -> tuple[Graph, ...]:
    """The graphs that an op holds: the bodies of loops and functions."""
    found: tuple[Graph, ...] | None = op.__dict__.get("_inner_graphs")
    if found is None:
        found = tuple([value for value in fields_of(op) if isinstance(value, Graph)])
        op.__dict__["_inner_graphs"] = found
    return found


def in_bodies(op: Op, change: Callable[[Graph], Nodes]) -> Op:
    """The op with ``change(body)`` as outputs of each inner graph; the op itself if nothing changes."""
    if not inner_graphs(op):
        return op
    old = fields_of(op)
    new = [Graph(v.input_nodes, change(v)) if isinstance(v, Graph) else v for v in old]
    return op if new == old else type(op)(*new)


def nodes_at_any_depth(outputs: Iterable[Node]) -> Iterator[Node]:
    """The nodes below some outputs, in the bodies of loops and in the definitions of fused ops, too."""
    seen, stack = set[Node](), list(outputs)
    while stack:
        if (node := stack.pop()) not in seen:
            seen.add(node)
            yield node
            meaning = definition(node.op, node)
            stack += [*node.args, *([] if meaning is None else [meaning])]
            stack += [output for inner in inner_graphs(node.op) for output in inner.output_nodes]


def readers(order: Sequence[Node]) -> dict[Node, list[Node]]:
    """For each of some nodes the nodes that read it, in their order, each once.

    ``order``: nodes with all their arguments, such as the nodes of a graph.
    """
    found: dict[Node, list[Node]] = {node: [] for node in order}
    for node in order:
        for arg in dict.fromkeys(node.args):
            found[arg].append(node)
    return found
