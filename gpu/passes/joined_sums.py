"""Sums over rows that no other work waits for, such as the gradients of all biases, as one kernel."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from symad.core.dims import Shape
from symad.core.graph import Node, Op, op_of, rebuild, shape, topological
from symad.core.questions import Nodes, Values, definition, evaluate
from symad.numeric.passes.bodies import read_once
from symad.numeric.passes.rewriting import over, rewritten
from symad.ops.basic.contraction import Einsum, contract

AXES = 3
"""The most axes that are kept, and that are summed, of one array."""


@dataclass(frozen=True, eq=False)
class Sums(Op):
    """Value k: the sum of argument k over all axes except ``kept[k]``, which stay in this order."""

    kept: tuple[tuple[int, ...], ...]
    k: int
    several = ("k",)


@shape(Sums)
def sums_shape(op: Sums, args: Nodes) -> Shape:
    """The lengths of the axes that are kept."""
    return tuple(args[op.k].shape[axis] for axis in op.kept[op.k])


@evaluate.dispatch
def sums_evaluate(op: Sums, values: Values) -> np.ndarray:
    """The sum, by NumPy."""
    array, kept = np.asarray(values[op.k]), op.kept[op.k]
    others = tuple(axis for axis in range(array.ndim) if axis not in kept)
    return array.sum(axis=others).transpose([sorted(kept).index(axis) for axis in kept])


@definition.dispatch
def sums_definition(op: Sums, y: Node) -> Node:
    """The sum of one argument."""
    arg = y.args[op.k]
    return contract([tuple(range(len(arg.shape)))], op.kept[op.k], arg)


def joined_sums(outputs: Sequence[Node]) -> Nodes:
    """The outputs with their sums over rows, if there are several, as values of one op."""
    outputs = _at_once(outputs)
    read = {a for node in topological(outputs) for a in node.args}
    found = [node for node in dict.fromkeys(outputs) if node not in read and _is_sum(node)]
    if len(found) < 2:
        return tuple(outputs)
    kept = tuple(tuple(op_of(n, Einsum).inputs[0].index(x) for x in op_of(n, Einsum).output) for n in found)
    args = tuple(node.args[0] for node in found)
    return rebuild(outputs, {node: Node.of(Sums(kept, k), args) for k, node in enumerate(found)})


def _at_once(outputs: Sequence[Node]) -> Nodes:
    """The outputs with sums of sums, which nothing else reads, as one sum."""
    alone = read_once(outputs)

    def make(node: Node, args: Nodes) -> Node | None:
        made = over(node, args)
        if not (_is_sum(made) and _is_sum(args[0]) and node.args[0] in alone):
            return made
        inner, outer = op_of(args[0], Einsum), op_of(made, Einsum)
        names = dict(zip(outer.inputs[0], inner.output, strict=True))
        return contract(inner.inputs, [names[label] for label in outer.output], *args[0].args)

    return rewritten(outputs, make)


def _is_sum(node: Node) -> bool:
    op = node.op
    if not isinstance(op, Einsum) or len(node.args) != 1 or not op.output:
        return False
    (labels,) = op.inputs
    few = len(op.output) <= AXES and 0 < len(labels) - len(op.output) <= AXES
    return few and len(set(labels)) == len(labels)
