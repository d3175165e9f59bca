"""Entries of a dense derivative that no input reaches are 0, also beside entries that are infinite.

Unit seeds pass through arrays together: the slope of √x at 0 multiplies the 1 of its own seed and the 0 of
the others, and ∞ · 0 is NaN. What a derivative multiplies by 0 for all inputs is 0. Large derivatives are not
masked: their mask would cost as much as they do. Sparse ones and compiled ones never have such products.
"""

from __future__ import annotations

from collections.abc import Sequence

from symad.core.dims import size
from symad.core.graph import Node, topological
from symad.ops.basic.arithmetic import ElementwiseOp
from symad.ops.basic.contraction import Einsum
from symad.ops.basic.shaping import ShapingOp
from symad.ops.basic.sources import Source, array_constant, constant
from symad.ops.elementwise.selection import select
from symad.sparsity.patterns.structural_zeros import ZERO, states_of
from symad.transforms.branch_masks import flat_nodes, has_finite_slopes
from symad.transforms.jacobians import scalar_parts

MAX_ELEMENTS = 1024
"""The elements of a derivative that is masked."""

STRAIGHT = (ElementwiseOp, ShapingOp, Einsum, Source)
"""The ops of derivatives that are masked: the zeros of loops would be those of all their steps."""


def with_exact_zeros(matrix: Node, order: Sequence[Node]) -> Node:
    """A small Jacobian or Hessian with its structural zeros, if slopes of the function may be infinite.

    Args:
        matrix: the derivative.
        order: the nodes of the function, arguments first.
    """
    count = size(matrix.shape)
    if not isinstance(count, int) or count > MAX_ELEMENTS or scalar_parts([matrix]) is not None:
        return matrix
    flat = flat_nodes(order)
    if all(has_finite_slopes(node, flat) for node in order):
        return matrix
    if not all(isinstance(node.op, STRAIGHT) for node in topological([matrix])):
        return matrix
    states = states_of(matrix)
    if states is None or not (states == ZERO).any() or (states == ZERO).all():
        return matrix
    return select(array_constant(states != ZERO), matrix, constant(0))
