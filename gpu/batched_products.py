"""Fewer products in the steps of a loop: products that share an operand become one.

The gates of a recurrent cell multiply one state by several constant matrices. With the matrices stacked
before the loop, the step has one product, whose parts are the gates. In the backward loop the cotangents of
the gates are multiplied by the transposed matrices and added, which is one product of the stacks.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from symad.core.dims import Shape
from symad.core.graph import Graph, Node, op_of, rebuild, topological
from symad.core.questions import Nodes
from symad.gpu.views import Take
from symad.higher_order.scan import Local, Scan
from symad.ops.arrays.stacking import stack
from symad.ops.basic.arithmetic import Add, add
from symad.ops.basic.contraction import Einsum, contract

NEW = -1
"""The label of the stacked axis."""


def stacked_products(op: Scan, args: Nodes) -> tuple[Scan, Nodes]:
    """The scan with the products of its step joined, and its arguments."""
    maker = _LoopStacks(op, args)
    outputs = maker.apart(op.body.output_nodes)
    outputs = maker.added(outputs)
    if not maker.more:
        return op, args
    inputs = (*op.body.input_nodes, *(local for local, _ in maker.more.values()))
    arrays = tuple(array for _, array in maker.more.values())
    return Scan(Graph(inputs, outputs), op.slices), (*args, *arrays)


class _LoopStacks:
    """The stacks of matrices that a loop reads."""

    def __init__(self, op: Scan, args: Nodes) -> None:
        self.op, self.args = op, args
        self.more: dict[tuple[Node, ...], tuple[Node, Node]] = {}

    def is_constant(self, node: Node) -> bool:
        """Whether a node of the body has the same value in every step."""
        return isinstance(node.op, Local) and self.op.slices < node.op.position < len(self.args)

    def factor(self, node: Node) -> tuple[int, int] | None:
        """The positions of the varying and the constant operand in a product of the two; otherwise None."""
        if not isinstance(node.op, Einsum) or len(node.args) != 2:
            return None
        constant = [k for k in (0, 1) if self.is_constant(node.args[k])]
        if len(constant) != 1 or len(set(node.op.inputs[0]) & set(node.op.inputs[1])) == 0:
            return None
        return 1 - constant[0], constant[0]

    def stack_of(self, matrices: Sequence[Node]) -> Node:
        """The array whose slices the constants are, if any; else their stack, made before the loop."""
        key = tuple(matrices)
        if key not in self.more:
            outer = [self.args[op_of(m, Local).position] for m in matrices]
            whole = _whole(outer)
            array = stack(outer) if whole is None else whole
            position = len(self.op.body.input_nodes) + len(self.more)
            self.more[key] = Node.of(Local(position, array.shape)), array
        return self.more[key][0]

    def apart(self, outputs: Nodes) -> Nodes:
        """The outputs, with products of a varying operand with several constants as parts of one product."""
        groups: dict[tuple[Node, Einsum, int, Shape], list[Node]] = {}
        for node in topological(outputs):
            places = self.factor(node)
            if places is not None:
                varying, constant = places
                key = node.args[varying], op_of(node, Einsum), varying, node.args[constant].shape
                groups.setdefault(key, []).append(node)
        replaced: dict[Node, tuple[Node, ...]] = {}
        for (_, op, varying, _), members in groups.items():
            axis = _place(op, 1 - varying)
            if len(members) > 1 and axis is not None:
                members = self._in_order(members, 1 - varying)
                replaced |= dict.fromkeys(members, tuple(members))
        if not replaced:
            return outputs

        def make(node: Node, args: Nodes) -> Node:
            if node not in replaced:
                return node if args == node.args else Node.of(node.op, args)
            members, op, places = replaced[node], node.op, self.factor(node)
            assert isinstance(op, Einsum)
            assert places is not None
            varying, constant = places
            axis = _place(op, constant) or 0
            inputs = [op.inputs[0], op.inputs[1]]
            inputs[constant] = (NEW, *inputs[constant])
            output = (*op.output[:axis], NEW, *op.output[axis:])
            operands = [args[varying], args[varying]]
            operands[constant] = self.stack_of([m.args[constant] for m in members])
            whole = contract(inputs, output, *operands)
            start, count = [0] * len(whole.shape), list(whole.shape)
            start[axis], count[axis] = members.index(node), 1
            steps = (1,) * len(start)
            return Node.of(Take(tuple(start), tuple(count), steps, (axis,)), (whole,))

        return rebuild(outputs, {}, make)

    def added(self, outputs: Nodes) -> Nodes:
        """The outputs, with sums of products with constants as one product of two stacks."""

        def make(node: Node, args: Nodes) -> Node:
            made = node if args == node.args else Node.of(node.op, args)
            if not isinstance(made.op, Add) or set(made.op.signs) != {1}:
                return made
            groups: dict[tuple[Einsum, tuple[int, int], tuple[Shape, Shape]], list[Node]] = {}
            for term in made.args:
                places = self.factor(term)
                if places is not None:
                    shapes = term.args[places[0]].shape, term.args[places[1]].shape
                    groups.setdefault((op_of(term, Einsum), places, shapes), []).append(term)
            terms = list(made.args)
            for (op, (varying, constant), _), members in groups.items():
                if len(members) > 1 and len(set(members)) == len(members):
                    members = self._in_order(members, constant)
                    terms = [t for t in terms if t not in members]
                    terms.append(self._sum(op, members, varying, constant))
            return add(*terms) if len(terms) < len(made.args) else made

        return rebuild(outputs, {}, make)

    def _sum(self, op: Einsum, members: Sequence[Node], varying: int, constant: int) -> Node:
        summed = [label for label in op.inputs[varying] if label not in op.output]
        axis = op.inputs[varying].index(summed[0]) if summed else 0
        inputs = [op.inputs[0], op.inputs[1]]
        inputs[varying] = (*inputs[varying][:axis], NEW, *inputs[varying][axis:])
        inputs[constant] = (NEW, *inputs[constant])
        operands = [members[0], members[0]]
        operands[varying] = stack([m.args[varying] for m in members], axis)
        operands[constant] = self.stack_of([m.args[constant] for m in members])
        return contract(inputs, op.output, *operands)

    def _in_order(self, members: Sequence[Node], constant: int) -> list[Node]:
        """The products, in the order of their matrices in memory if these are rows of one array."""

        def place(node: Node) -> int:
            outer: Any = self.args[op_of(node.args[constant], Local).position]
            return int(outer.op.start[0]) if _is_row(outer) else 0

        return sorted(members, key=place)


def _is_row(node: Node) -> bool:
    """Whether a node is one entry along the first axis of an array."""
    op = node.op
    return (
        isinstance(op, Take)
        and op.dropped == (0,)
        and isinstance(op.start[0], int)
        and all(s == 0 for s in op.start[1:])
        and tuple(op.count[1:]) == tuple(node.args[0].shape[1:])
        and op.step == (1,) * len(op.step)
    )


def _whole(rows: Sequence[Node]) -> Node | None:
    """The array whose entries along the first axis are exactly these nodes, in order; else None."""
    if not all(_is_row(r) for r in rows) or len({r.args[0] for r in rows}) > 1:
        return None
    array = rows[0].args[0]
    starts = [op_of(r, Take).start[0] for r in rows]
    return array if starts == list(range(len(rows))) and array.shape[0] == len(rows) else None


def _place(op: Einsum, constant: int) -> int | None:
    """The place of the stacked axis in a product: before the first label that only the constant has."""
    own = [k for k, label in enumerate(op.output) if label not in op.inputs[1 - constant]]
    return own[0] if own else None
