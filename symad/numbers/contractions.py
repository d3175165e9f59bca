"""Values of contractions: Σ over the labels that the output lacks of Π_k x_k[labels_k].

Two arrays of floats are multiplied by matmul, after their axes were brought into its order. What has to be
done for given labels and shapes is kept: NumPy's ``einsum`` finds it anew for each call, which takes longer
than a small product.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from functools import lru_cache, reduce
from math import prod
from typing import NamedTuple

import numpy as np

from symad.core.arrays import Array, Number

Labels = tuple[int, ...]
Lengths = tuple[int, ...]

LETTERS = "ijklmnopqrstuvwxyzabcdefghIJKLMNOPQRSTUVWXYZABCDEFGH"

PLANS = 4096
"""The number of plans that are kept."""


@lru_cache(PLANS)
def subscripts(inputs: tuple[Labels, ...], output: Labels) -> str:
    """The subscripts as NumPy writes them: ``ij,jk->ik``."""
    return ",".join(map(letters, inputs)) + "->" + letters(output)


def letters(labels: Labels) -> str:
    """A letter for each label."""
    return "".join([LETTERS[k] for k in labels])


def contracted(inputs: tuple[Labels, ...], output: Labels, values: Sequence[Number]) -> Array:
    """The contraction of numbers or arrays of any kind."""
    arrays = [np.asarray(v) for v in values]
    for array in arrays:
        if array.dtype == object:
            return _of_objects(inputs, output, arrays)
    if len(arrays) == 2:
        left, right = arrays
        return _plan(*inputs, output, left.shape, right.shape).run(left, right)[()]
    return np.einsum(subscripts(inputs, output), *arrays, optimize=len(arrays) > 1)[()]


# ---- two arrays of floats ------------------------------------------------------------------------


class ProductPlan(NamedTuple):
    """A product of two arrays: their preparation, then matmul or an elementwise product, then the result."""

    left: str
    """The subscripts that take diagonals and sums of the left array and order its axes; "" for none."""
    right: str
    lengths: tuple[Lengths, Lengths]
    """The shapes of both arrays in the product."""
    is_matmul: bool
    shape: Lengths
    """The shape of the result, axes in the order of the product."""
    axes: tuple[int, ...]

    def run(self, left: np.ndarray, right: np.ndarray) -> np.ndarray:
        """The product of two arrays of the planned shapes."""
        left = np.einsum(self.left, left) if self.left else left
        right = np.einsum(self.right, right) if self.right else right
        left, right = left.reshape(self.lengths[0]), right.reshape(self.lengths[1])
        if not self.is_matmul:
            return right * left
        return np.matmul(right, left).reshape(self.shape).transpose(self.axes)


@lru_cache(PLANS)
def _plan(
    left: Labels, right: Labels, output: Labels, left_shape: Lengths, right_shape: Lengths
) -> ProductPlan:
    """The plan for labels and shapes.

    Axes of length 1 take no part in the order of axes. With the labels of both arrays and of the output in
    ``batch``, those of both alone in ``summed``, and the others in ``of_left`` and ``of_right``, the product
    is (batch, of_right, summed) @ (batch, summed, of_left), NumPy's order.
    """
    pairs = [*zip(left, left_shape, strict=True), *zip(right, right_shape, strict=True)]
    sizes = {x: n for x, n in pairs if n != 1}
    long_left = list(dict.fromkeys(x for x, n in zip(left, left_shape, strict=True) if n != 1))
    long_right = list(dict.fromkeys(x for x, n in zip(right, right_shape, strict=True) if n != 1))
    summed = [x for x in long_right if x in long_left and x not in output]
    if not summed:
        return _elementwise(left, right, output, left_shape, right_shape)
    batch = [x for x in long_right if x in long_left and x in output]
    of_right = [x for x in long_right if x not in long_left and x in output]
    of_left = [x for x in long_left if x not in long_right and x in output]
    lead = tuple(sizes[x] for x in batch)

    def whole(*groups: list[int]) -> Lengths:
        return (*([prod(lead)] if batch else []), *(prod(sizes[x] for x in group) for group in groups))

    made = [x for x in output if x not in sizes] + batch + of_right + of_left
    return ProductPlan(
        _change(left, [*batch, *summed, *of_left]),
        _change(right, [*batch, *of_right, *summed]),
        (whole(summed, of_left), whole(of_right, summed)),
        True,
        tuple(sizes.get(x, 1) for x in made),
        tuple(made.index(x) for x in output),
    )


def _elementwise(
    left: Labels, right: Labels, output: Labels, left_shape: Lengths, right_shape: Lengths
) -> ProductPlan:
    """The plan of a product without a sum, by broadcasting."""
    at_left, at_right = ([x for x in output if x in part] for part in (left, right))
    of_both = dict(zip(left, left_shape, strict=True)), dict(zip(right, right_shape, strict=True))
    whole_left, whole_right = (tuple(n.get(x, 1) for x in output) for n in of_both)
    return ProductPlan(
        _change(left, at_left), _change(right, at_right), (whole_left, whole_right), False, (), ()
    )


def _change(labels: Labels, wanted: Sequence[int]) -> str:
    """The subscripts that turn axes with some labels into the axes wanted; "" if they are these already."""
    return "" if labels == tuple(wanted) else subscripts((labels,), tuple(wanted))


# ---- other numbers -------------------------------------------------------------------------------


class BroadcastSums(NamedTuple):
    """A contraction by broadcasting: for each array its diagonal, its order of axes and its new axes."""

    diagonals: tuple[str, ...]
    orders: tuple[tuple[slice | None, ...], ...]
    summed: tuple[int, ...]
    axes: tuple[int, ...]


@lru_cache(PLANS)
def _sums(inputs: tuple[Labels, ...], output: Labels) -> BroadcastSums:
    """The plan for labels."""
    labels = sorted({label for part in inputs for label in part})
    distinct = [sorted(set(part)) for part in inputs]
    remaining = [label for label in labels if label in output]
    return BroadcastSums(
        tuple(_change(part, own) for part, own in zip(inputs, distinct, strict=True)),
        tuple(tuple(slice(None) if x in own else None for x in labels) for own in distinct),
        tuple(k for k, label in enumerate(labels) if label not in output),
        tuple(remaining.index(label) for label in output),
    )


def _of_objects(inputs: tuple[Labels, ...], output: Labels, arrays: Sequence[np.ndarray]) -> Array:
    """The same sums over exact or symbolic numbers, by broadcasting."""
    plan = _sums(inputs, output)
    steps = zip(plan.diagonals, plan.orders, arrays, strict=True)
    parts = [(np.einsum(diagonal, a) if diagonal else a)[order] for diagonal, order, a in steps]
    product = reduce(operator.mul, parts)
    total = product.sum(axis=plan.summed) if plan.summed else product
    result = np.asarray(total, dtype=object).transpose(plan.axes)
    return result if result.ndim else result[()]
