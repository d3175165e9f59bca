"""Terms that are broadcast along the same axes are added before they are broadcast: P + b + c is P + (b + c).

Each separate bias of a product, such as the two of PyTorch's recurrent layers, costs a pass over the result.
"""

from __future__ import annotations

from collections import Counter

from symad.core.dims import Shape
from symad.core.graph import Graph, Node
from symad.core.questions import Nodes
from symad.numeric.passes.rewriting import rewrite
from symad.ops.basic.arithmetic import Add, signed_sum
from symad.ops.basic.shaping import Broadcast, broadcast_axes

Terms = list[tuple[int, Node]]


def broadcast_sums(graph: Graph) -> Graph:
    """The graph with terms added before they are broadcast along the same axes."""
    uses = Counter(arg for node in graph.nodes for arg in node.args) + Counter(graph.output_nodes)

    def better(node: Node, args: Nodes) -> Node | None:
        if not isinstance(node.op, Add) or not node.shape:
            return None
        terms = _terms(node.op.signs, args, [uses[given] == 1 for given in node.args])
        joined = _joined(terms, node.shape)
        return signed_sum(joined) if len(joined) < len(terms) else None

    return rewrite(graph, better, Broadcast)


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
