"""Sums of an array and an array on one of its diagonals: only the elements of the diagonal are changed."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from symad.core.dims import Shape, size
from symad.core.graph import Node, Op, shape
from symad.core.questions import Array, Count, Nodes, Values, definition, evaluate, flops
from symad.ops.basic.arithmetic import signed_sum
from symad.ops.basic.contraction import Einsum, contract
from symad.ops.basic.sources import eye


@dataclass(frozen=True, eq=False)
class AddDiagonal(Op):
    """y = x + sign·d on the diagonal where axes of x with equal labels have equal positions, y = x elsewhere.

    Arguments: x, whose axes have the ``labels``, some of them equal; and d, whose axes have the labels
    ``part``, all of them different.
    """

    labels: tuple[int, ...]
    part: tuple[int, ...]
    sign: int

    @property
    def spec(self) -> str:
        """The einsum subscripts of the diagonal of x, with its axes in the order of ``d``."""
        return Einsum((self.labels,), self.part).spec


def on_diagonal(whole: Node, part: Node, labels: tuple[int, ...], own: tuple[int, ...], sign: int) -> Node:
    """The sum x + sign·d; see `AddDiagonal`."""
    return Node.of(AddDiagonal(labels, own, sign), (whole, part))


@shape(AddDiagonal)
def add_diagonal_shape(op: AddDiagonal, args: Nodes) -> Shape:
    """The shape of x."""
    return args[0].shape


@flops.dispatch
def add_diagonal_flops(op: AddDiagonal, y: Node) -> Count:
    """One addition for each element of the diagonal."""
    return size(y.args[1].shape)


@definition.dispatch
def add_diagonal_definition(op: AddDiagonal, y: Node) -> Node:
    """x + sign·d times an identity matrix for each axis that repeats a label."""
    axes: list[int] = []
    factors, labels = [y.args[1]], [op.part]
    for label, length in zip(op.labels, y.shape, strict=True):
        axis = label if label not in axes else max(*op.labels, *axes) + 1
        axes.append(axis)
        if axis != label:
            factors.append(eye(length))
            labels.append((label, axis))
    return signed_sum([(1, y.args[0]), (op.sign, contract(labels, tuple(axes), *factors))])


@evaluate.dispatch
def add_diagonal_evaluate(op: AddDiagonal, values: Values) -> Array:
    """The sum, in a new array."""
    whole, part = values
    result = np.array(whole, dtype=np.result_type(whole, part))
    np.einsum(op.spec, result)[...] += op.sign * part
    return result
