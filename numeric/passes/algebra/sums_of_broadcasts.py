"""Terms that are broadcast along the same axes are added before they are broadcast: P + b + c is P + (b + c).

Each separate bias of a product, such as the two of PyTorch's recurrent layers, costs a pass over the result.
"""

from __future__ import annotations

from collections import Counter

from symad.core.contents import holds
from symad.core.dims import Shape
from symad.core.graph import Graph, Node, rebuild
from symad.core.questions import Nodes
from symad.ops.basic.arithmetic import Add, signed_sum
from symad.ops.basic.shaping import Broadcast, broadcast_axes

Terms = list[tuple[int, Node]]


def broadcast_sums(graph: Graph) -> Graph:
    """The graph with terms added before they are broadcast along the same axes."""
    if not holds(graph, Broadcast):
        return graph
    uses = Counter(arg for node in graph.nodes for arg in node.args) + Counter(graph.output_nodes)

    def better(node: Node, args: Nodes) -> Node:
        if isinstance(node.op, Add) and node.shape:
            once = [uses[given] == 1 for given in node.args]
            terms = _terms(node.op.signs, args, once)
            joined = _joined(terms, node.shape)
            if len(joined) < len(terms):
                return signed_sum(joined)
        return node if args == node.args else Node.of(node.op, args)

    made = rebuild(graph, {}, better)
    return Graph(graph.input_nodes, tuple(made), graph.structure, graph.name, graph.report)


def _terms(signs: tuple[int, ...], args: Nodes, once: list[bool]) -> Terms:
    """The terms of a sum, with nested sums that nothing else reads taken apart."""
    terms: Terms = []
    for sign, arg, alone in zip(signs, args, once, strict=True):
        if alone and isinstance(arg.op, Add):
            terms += [(sign * inner, term) for inner, term in zip(arg.op.signs, arg.args, strict=True)]
        else:
            terms.append((sign, arg))
    return terms


def _joined(terms: Terms, shape: Shape) -> Terms:
    """The terms, with one for all that are broadcast along the same axes."""
    groups: dict[tuple[int, ...], Terms] = {}
    rest: Terms = []
    for sign, term in terms:
        small, axes = _repeated(term)
        if len(axes) < len(term.shape) and small.shape:
            groups.setdefault(axes, []).append((sign, small))
        else:
            rest.append((sign, term))
    return rest + [(1, broadcast_axes(signed_sum(group), shape, axes)) for axes, group in groups.items()]


def _repeated(term: Node) -> tuple[Node, tuple[int, ...]]:
    """The array that a term broadcasts, and the axes along which it lies."""
    axes = tuple(range(len(term.shape)))
    while isinstance(term.op, Broadcast):
        axes, term = tuple(axes[k] for k in term.op.axes), term.args[0]
    return term, axes
