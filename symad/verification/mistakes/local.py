"""The derivative of one operation by one argument, as a function of the values that it uses.

A mistake may confuse these values (the value of tanh with its argument, a matrix with its transpose), so
each has a placeholder: the derivative with another value in its place is the mistake.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from symad.core.graph import ZERO, Node
from symad.core.questions import jvp
from symad.numbers.values import unchecked
from symad.ops.basic.arithmetic import ElementwiseOp
from symad.ops.basic.shaping import broadcast_axes
from symad.ops.basic.sources import Source
from symad.transforms.batches import batch_outputs
from symad.transforms.cotangents import fresh_seed, transpose_linear
from symad.transforms.guards import mask
from symad.verification.fields.prime_fields import Array


@dataclass(frozen=True, eq=False)
class Edge:
    """The derivative of ``owner`` by its argument at ``position``, in the direction of a sweep.

    Args:
        owner: the node that is differentiated.
        position: of the argument.
        source: the node whose tangent (forward) or cotangent (reverse) enters.
        target: the node to whose tangent or cotangent the result is added.
        made: the result, of placeholders.
        entering: the placeholder of what enters.
        leaves: the placeholders of the values that it uses, with their nodes.
        value: the placeholder of the owner's value, an op of the others.
    """

    owner: Node
    position: int
    source: Node
    target: Node
    made: Node
    entering: Node
    leaves: Mapping[Node, Node]
    value: Node

    @property
    def argument(self) -> Node:
        """The argument by which the owner is differentiated."""
        return self.owner.args[self.position]

    @property
    def source_size(self) -> int:
        """The number of elements of the source."""
        return int(np.prod(lengths(self.source)))

    @property
    def target_size(self) -> int:
        """The number of elements of the target."""
        return int(np.prod(lengths(self.target)))

    @property
    def is_diagonal(self) -> bool:
        """Whether each element of the result depends only on the element of the input at the same index."""
        return isinstance(self.owner.op, ElementwiseOp) and self.source.shape == self.target.shape

    def at(self, entering: Array, values: Mapping[Node, Array]) -> Array:
        """The result at one point, for values of the placeholders."""
        (result,) = unchecked((self.made,), {**values, self.entering: entering})
        return np.asarray(result, dtype=float)

    def matrix(self, values: Mapping[Node, Array]) -> Array:
        """The derivative at one point: its diagonal, or the matrix (target elements, source elements)."""
        shape = lengths(self.source)
        if self.is_diagonal:
            return self.at(np.ones(shape), values).ravel()
        count = int(np.prod(shape))
        stacked = fresh_seed_of((count, *shape), self.source)
        (batched,) = batch_outputs((self.made,), {self.entering: stacked}, count)
        (result,) = unchecked((batched,), {**values, stacked: np.eye(count).reshape(count, *shape)})
        return np.asarray(result, dtype=float).reshape(count, -1).T


def lengths(node: Node) -> tuple[int, ...]:
    """The shape of a node, in numbers."""
    return tuple(int(d) for d in node.shape)


def fresh_seed_of(shape: tuple[int, ...], like: Node) -> Node:
    """A placeholder of another shape."""
    rank = len(shape)
    return fresh_seed(broadcast_axes(like, shape, tuple(range(1, rank))))


def edge_of(owner: Node, position: int, condition: Node | None, forward: bool) -> Edge | None:
    """The derivative of a node by one argument; None where it is 0 by structure.

    Args:
        owner: the node.
        position: of the argument.
        condition: under which the node is used alone; None for always.
        forward: whether tangents enter; else cotangents.
    """
    leaves: dict[Node, Node] = {}
    args = []
    for arg in owner.args:
        is_fixed = isinstance(arg.op, Source) and not arg.op.outside
        placed = arg if is_fixed else fresh_seed(arg)
        if placed is not arg:
            leaves[placed] = arg
        args.append(placed)
    value = Node.of(owner.op, tuple(args))
    leaves[value] = owner
    argument = owner.args[position]
    seed = fresh_seed(argument)
    entering = seed
    if condition is not None:
        placed = fresh_seed(condition)
        leaves[placed] = condition
        entering = mask(placed, seed)  # type: ignore[assignment]  # of a node it is one
    tangents = tuple(entering if k == position else ZERO for k in range(len(args)))
    made = jvp(owner.op, value, tangents)
    if not isinstance(made, Node):
        return None
    if forward:
        return Edge(owner, position, argument, owner, made, seed, leaves, value)
    bar = fresh_seed(owner)
    (back,) = transpose_linear([made], [bar], [seed])
    if not isinstance(back, Node):
        return None
    return Edge(owner, position, owner, argument, back, bar, leaves, value)
