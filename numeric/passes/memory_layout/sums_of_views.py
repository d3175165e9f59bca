"""A sum of equal views is a view of the sum: of slices, and of arrays broadcast along the same axes.

The gates of a recurrent cell are slices of W h + b and of U x + c, added gate by gate. As slices of one sum
they take one pass over the memory. The rule applies if the slices together contain each element of the arrays
exactly once, so that it adds no further elements. P + b + c, with b and c broadcast, is P + (b + c): each
separate bias of a product, such as the two of PyTorch's recurrent layers, costs a pass over the result.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from itertools import combinations

from symad.core.contents import holds
from symad.core.dims import Shape, is_concrete
from symad.core.graph import Graph, Node
from symad.core.questions import Nodes
from symad.higher_order.scan import Scan
from symad.numeric.passes.memory_layout.pads import Box, apart, box_at, fills
from symad.numeric.passes.rewriting import rewrite, rewritten, with_results
from symad.ops.basic.arithmetic import Add, signed_sum
from symad.ops.basic.shaping import Broadcast, Slice, broadcast_axes

# ---- slices --------------------------------------------------------------------------------------


Arrays = tuple[tuple[int, Node], ...]
"""The arrays in a sum, with their signs."""


def sum_before_slicing(graph: Graph) -> Graph:
    """The graph with sums of slices as slices of sums, also in the bodies of scans."""
    return with_results(graph, _joined(graph))


def _joined(graph: Graph) -> Nodes:
    groups: dict[Arrays, set[Box | None]] = {}
    for node in graph.nodes:
        found = _sum_of_slices(node, node.args)
        if found is not None:
            arrays, op = found
            groups.setdefault(arrays, set()).add(box_at(op.start, op.count))
    chosen = {arrays for arrays, boxes in groups.items() if len(boxes) > 1 and _tile(boxes, arrays[0][1])}
    if not chosen and not holds(graph, Scan):
        return graph.output_nodes
    bodies: dict[Graph, Graph] = {}

    def better(node: Node, args: Nodes) -> Node | None:
        op = node.op
        if isinstance(op, Scan):
            if op.body not in bodies:
                bodies[op.body] = Graph(op.body.input_nodes, _joined(op.body))
            return Node.of(Scan(bodies[op.body], op.slices), args)
        before, after = _sum_of_slices(node, node.args), _sum_of_slices(node, args)
        if before is not None and after is not None and before[0] in chosen:
            arrays, slice_ = after
            return Node.of(slice_, (signed_sum(arrays),))
        return None

    return rewritten(graph, better)


def _sum_of_slices(node: Node, args: Nodes) -> tuple[Arrays, Slice] | None:
    """The arrays of a sum whose terms are the same slice of each, and that slice."""
    op = node.op
    if not isinstance(op, Add) or len(args) < 2:
        return None
    slices = [arg.op for arg in args if isinstance(arg.op, Slice)]
    if len(slices) < len(args) or set(slices[0].step) != {1}:
        return None
    sources = [arg.args[0] for arg in args]
    for slice_, source in zip(slices, sources, strict=True):
        same = (slice_.start, slice_.count, slice_.step) == (slices[0].start, slices[0].count, slices[0].step)
        if not same or source.shape != sources[0].shape:
            return None
    return tuple(zip(op.signs, sources, strict=True)), slices[0]


def _tile(found: Collection[Box | None], array: Node) -> bool:
    """Whether boxes, if their places are known, contain each element of the array exactly once."""
    known = [box for box in found if box is not None]
    if len(known) < len(found) or not is_concrete(array.shape):
        return False
    return all(apart(one, other) for one, other in combinations(known, 2)) and fills(known, array.shape)


Terms = list[tuple[int, Node]]


def broadcast_sums(graph: Graph) -> Graph:
    """The graph with terms added before they are broadcast along the same axes."""
    uses = Counter(arg for node in graph.nodes for arg in node.args) + Counter(graph.output_nodes)

    def better(node: Node, args: Nodes) -> Node | None:
        if not isinstance(node.op, Add) or not node.shape:
            return None
        terms = _terms(node.op.signs, args, [uses[given] == 1 for given in node.args])
        joined = _grouped(terms, node.shape)
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


def _grouped(terms: Terms, shape: Shape) -> Terms:
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
