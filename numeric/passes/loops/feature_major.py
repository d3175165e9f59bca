"""Loops over batches with features along rows and the batch along columns.

The gates of a recurrent cell are columns of one matrix (batch, gates·width), so that every operation on a
gate walks over short pieces of rows. With the last two axes exchanged, a gate is one piece of memory. This
pass represents each node of such a loop, and of what follows it, either as the array or as the array with
its last two axes exchanged. Contractions, sums, slices and elementwise operations accept either form; any
other op reads a view with the axes exchanged back.

The value changes by rounding only.
"""

from __future__ import annotations

from symad.core.graph import Graph, Node, Op, op_of, topological
from symad.core.questions import Nodes
from symad.higher_order.scan import Local, LoopOp
from symad.numeric.passes.bodies import LoopValue, loop_of, with_body
from symad.numeric.passes.rewriting import with_results
from symad.ops.arrays.stacking import Concatenate, Stack
from symad.ops.basic.arithmetic import ElementwiseOp
from symad.ops.basic.contraction import Einsum, contract, matrix_transpose
from symad.ops.basic.shaping import Broadcast, Pad, Reshape, Slice

MIN_PIECES = 2
"""A loop is turned if at least this many different pieces of rows appear in it.

A turned loop with one gate takes 1.06 times as long, with two to four gates 0.8 (bench_thresholds.py,
"gates").
"""

MIN_BATCH = 4
"""A loop is turned only if its batch, where its length is known, is at least this large.

A turned LSTM with 64 units takes 1.0 times as long at 1 and 2, 0.96 at 4, 0.9 at 8, 0.8 at 32
(bench_thresholds.py, "feature major").
"""


def feature_major(graph: Graph) -> Graph:
    """The graph with the last two axes exchanged in loops that work on pieces of rows."""
    bodies = {n.op.body for n in graph.nodes if isinstance(n.op, LoopOp)}
    chosen = {body for body in bodies if _has_pieces(body)}
    if not chosen:
        return graph
    return with_results(graph, _Turning(chosen, graph.output_nodes).outputs(graph.output_nodes))


def _has_pieces(body: Graph) -> bool:
    """Whether a body cuts rows of a batch into pieces, or joins them."""
    pieces = set()
    for node in body.nodes:
        if isinstance(node.op, (Slice, Pad)) and node.shape:
            whole, part = (node.args[0], node) if isinstance(node.op, Slice) else (node, node.args[0])
            rows = whole.shape[-2] if len(whole.shape) > 1 else 1
            start = (node.op.start[-1], part.shape[-1])
            if part.shape[-1] != whole.shape[-1] and not (isinstance(rows, int) and rows < MIN_BATCH):
                pieces.add((type(node.op), whole.shape, start))
    return len(pieces) >= MIN_PIECES


class _Turning:
    """One run over a graph: each node becomes an array and whether its last two axes are exchanged."""

    def __init__(self, chosen: set[Graph], outputs: Nodes) -> None:
        self.chosen = chosen
        self.bodies: dict[tuple[Graph, int], Graph] = {}
        self.made: dict[Node, tuple[Node, bool]] = {}
        users: dict[Node, set[Node | tuple[Graph, Nodes]]] = {}
        for node in topological(outputs):
            one = (node.op.body, node.args) if isinstance(node.op, LoopValue) else node  # a key for the loop
            for arg in node.args:
                users.setdefault(arg, set()).add(one)
        self.alone = {node for node, found in users.items() if len(found) == 1} - set(outputs)

    def outputs(self, outputs: Nodes) -> Nodes:
        """The nodes in their original layout, computed from turned loops."""
        for node in topological(outputs):
            self.made[node] = self.parted(node)
        return tuple(self.plain(node) for node in outputs)

    def plain(self, node: Node) -> Node:
        """The array in its original layout."""
        array, turned = self.made[node]
        return matrix_transpose(array) if turned else array

    def turned(self, node: Node) -> Node:
        """The array with its last two axes exchanged; unchanged if it has fewer axes."""
        array, turned = self.made[node]
        if turned or len(node.shape) < 2:
            return array
        op = array.op
        if isinstance(op, Broadcast):
            return _turned_broadcast(array)
        if node in self.alone and isinstance(op, Einsum):
            return contract(op.inputs, _exchanged(op.output), *array.args)
        if node in self.alone and isinstance(op, ElementwiseOp) and array.args == node.args:
            return Node.of(op, tuple(self.turned(a) for a in node.args))
        same = array.args == node.args
        if isinstance(op, Reshape) and same and node.shape[-2:] == node.args[0].shape[-2:]:
            return Node.of(Reshape(_exchanged(op.shape)), (self.turned(node.args[0]),))
        return matrix_transpose(array)

    def parted(self, node: Node) -> tuple[Node, bool]:
        """The new form of a node whose arguments have been rewritten."""
        op = node.op
        if isinstance(op, LoopOp) and op.body in self.chosen:
            return self.loop(node)
        if any(self.made[a][1] for a in node.args):
            if isinstance(op, Einsum):
                return self.contraction(node)
            new = _turned_op(node)
            if new is not None:
                return Node.of(new, tuple(self.turned(a) for a in node.args)), True
        args = tuple(self.plain(a) for a in node.args)
        return node.over(args), False

    def loop(self, node: Node) -> tuple[Node, bool]:
        """A loop with its state and inputs turned; arguments that all steps share keep their layout."""
        op = loop_of(node)
        last = 1 + op.slices
        key = (op.body, op.slices)
        if key not in self.bodies:
            self.bodies[key] = self._body(op.body, last)
        moving = [self.turned(node.args[0])]
        moving += [self.turned(x) if len(x.shape) > 2 else self.plain(x) for x in node.args[1:last]]
        args = (*moving, *(self.plain(k) for k in node.args[last:]))
        return Node.of(with_body(op, self.bodies[key], op.slices), args), len(node.shape) > 2

    def _body(self, body: Graph, last: int) -> Graph:
        inner = _Turning(self.chosen, body.output_nodes)
        local = []
        for k, given in enumerate(body.input_nodes):
            turned = k < last and len(given.shape) > 1
            shape = (*given.shape[:-2], given.shape[-1], given.shape[-2]) if turned else given.shape
            local.append(Node.of(Local(k, shape)))
            inner.made[given] = local[-1], turned
        for node in body.nodes:
            if node not in inner.made:
                inner.made[node] = inner.parted(node)
        return Graph(tuple(local), tuple(inner.turned(o) for o in body.output_nodes))

    def contraction(self, node: Node) -> tuple[Node, bool]:
        """A contraction with the labels of turned operands exchanged; turned too if its rows are theirs."""
        op = op_of(node, Einsum)
        inputs, batches = [], set()
        for labels, arg in zip(op.inputs, node.args, strict=True):
            turned = self.made[arg][1]
            inputs.append((*labels[:-2], labels[-1], labels[-2]) if turned else labels)
            batches |= {labels[-2]} if turned else set()
        out = op.output
        turned = len(out) > 1 and out[-2] in batches and out[-1] not in batches
        out = (*out[:-2], out[-1], out[-2]) if turned else out
        return contract(inputs, out, *(self.made[a][0] for a in node.args)), turned


def _turned_op(node: Node) -> Op | None:
    """The op that computes the turned value from turned arguments; None if there is none."""
    op = node.op
    rank = len(node.shape)
    if isinstance(op, ElementwiseOp):
        return op
    if isinstance(op, Slice):
        return Slice(*(_exchanged(part) for part in (op.start, op.count, op.step)))
    if isinstance(op, Pad):
        return Pad(_exchanged(op.start), _exchanged(op.step), _exchanged(op.shape))
    if isinstance(op, Concatenate):
        return Concatenate({rank - 1: rank - 2, rank - 2: rank - 1}.get(op.axis, op.axis))
    if isinstance(op, Stack) and op.axis < rank - 2:
        return op
    if isinstance(op, Reshape) and rank > 1 and node.shape[-2:] == node.args[0].shape[-2:]:
        return Reshape(_exchanged(op.shape))
    return None


def _turned_broadcast(node: Node) -> Node:
    """The broadcast array with its last two axes exchanged."""
    axes, (arg,) = op_of(node, Broadcast).axes, node.args
    while isinstance(arg.op, Broadcast):
        axes, (arg,) = tuple(axes[k] for k in arg.op.axes), arg.args
    rank = len(node.shape)
    swap = {rank - 1: rank - 2, rank - 2: rank - 1}
    if swap.keys() <= set(axes):  # both axes belong to the argument
        return matrix_transpose(node)
    return Node.of(Broadcast(_exchanged(node.shape), tuple(swap.get(a, a) for a in axes)), (arg,))


def _exchanged(axes: tuple[int, ...]) -> tuple[int, ...]:
    return (*axes[:-2], axes[-1], axes[-2])
