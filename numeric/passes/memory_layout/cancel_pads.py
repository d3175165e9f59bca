"""Zeros that a slice would cut off again are not written.

The cotangent of one part of a state is an array padded with zeros, which every step of a loop adds to the
state and slices again. This pass moves the padding into the steps, where a slice of a sum becomes the sum of
the slices, and the slice of a padded array becomes the array itself, or nothing.
"""

from __future__ import annotations

from collections.abc import Sequence

from symad.core.contents import readers
from symad.core.graph import Graph, Node, op_of, rebuild
from symad.core.questions import Nodes
from symad.higher_order.scan import Local, Scan, backwards
from symad.numeric.passes.loop import LoopValue, with_body
from symad.numeric.passes.rewriting import over, rewrite
from symad.ops.basic.arithmetic import Add, signed_sum
from symad.ops.basic.shaping import Pad, Slice


def drop_pads(graph: Graph) -> Graph:
    """The graph with the padding of loop inputs moved into the loop, where slices remove it."""
    bodies: dict[tuple[Graph | Node | None, ...], Graph] = {}

    def better(node: Node, args: Nodes) -> Node | None:
        op = node.op
        if not isinstance(op, (Scan, LoopValue)):
            return None
        found = [_padded(x) if 0 < k <= op.slices else None for k, x in enumerate(args)]
        pads = [pair[0] if pair else None for pair in found]
        if not any(pads):
            return None
        key = (op.body, *pads)
        if key not in bodies:
            bodies[key] = _body(op.body, pads)
        args = tuple(pair[1] if pair else x for pair, x in zip(found, args, strict=True))
        return Node.of(with_body(op, bodies[key], op.slices), args)

    return rewrite(graph, better, Scan, LoopValue)


def _padded(x: Node) -> tuple[Node, Node] | None:
    """A padded array, in or against the order of time, and the array before padding in that order."""
    turned = isinstance(x.op, Slice) and not isinstance(x.args[0].op, Slice) and backwards(x.args[0]) is x
    pad = x.args[0] if turned else x
    if not isinstance(pad.op, Pad) or pad.args[0].shape[0] != pad.shape[0]:
        return None
    (inner,), turns = pad.args, turned ^ (pad.op.step[0] == -1)
    return pad, backwards(inner) if turns else inner


def _body(body: Graph, pads: Sequence[Node | None]) -> Graph:
    """The body with some inputs padded inside, and with slices of their sums as sums of slices."""
    sources, made = [], {}
    for k, (given, pad) in enumerate(zip(body.input_nodes, pads, strict=True)):
        sources.append(given)
        if pad is not None:
            op = op_of(pad, Pad)
            sources[-1] = Node.of(Local(k, pad.args[0].shape[1:]))
            made[given] = Node.of(Pad(op.start[1:], op.step[1:], op.shape[1:]), (sources[-1],))
    users = readers(body.nodes)
    whole = set(body.output_nodes)
    taken_apart = {n for n, u in users.items() if n not in whole and all(isinstance(x.op, Slice) for x in u)}

    def better(node: Node, args: Nodes) -> Node:
        if isinstance(node.op, Slice) and isinstance(args[0].op, Add) and node.args[0] in taken_apart:
            sliced = _sum_of_slices(node.op, args[0])
            if sliced is not None:
                return sliced
        return over(node, args)

    return Graph(tuple(sources), rebuild(body, made, better))


def _sum_of_slices(cut: Slice, total: Node) -> Node | None:
    """A slice of a sum with padded terms as a sum of slices; None if it cuts through a padded array."""
    op = op_of(total, Add)
    terms = []
    for sign, term in zip(op.signs, total.args, strict=True):
        if term.shape != total.shape:
            return None
        if not isinstance(term.op, Pad):
            terms.append((sign, Node.of(cut, (term,))))
            continue
        meets = _meeting(cut, term)
        if meets is None:
            return None
        if meets:
            terms.append((sign, term.args[0]))
    padded = any(isinstance(term.op, Pad) for term in total.args)
    return signed_sum(terms) if padded and terms else None


def _meeting(cut: Slice, pad: Node) -> bool | None:
    """True if a slice is exactly the array before padding, False if it has none of it, None otherwise."""
    op = op_of(pad, Pad)
    same = True
    for start, count, step, first, own, size in zip(
        cut.start, cut.count, cut.step, op.start, op.step, pad.args[0].shape, strict=True
    ):
        if (start, count, step, own) == (first, size, 1, 1):
            continue
        same = False
        known = all(isinstance(d, int) for d in (start, count, first, size)) and step == own == 1
        if known and (start + count <= first or first + size <= start):
            return False
    return True if same else None
