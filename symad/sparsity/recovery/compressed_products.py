"""Compressed products as graphs: the products of a derivative with the seeds of a coloring."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from symad.core.arrays import Array
from symad.core.graph import ZERO, Node, Tangent
from symad.higher_order.scan import scan
from symad.ops.basic.shaping import broadcast_to, reshape, slice_axis
from symad.ops.basic.sources import array_constant, constant
from symad.sparsity.coloring.coloring import Coloring, indicator
from symad.sparsity.patterns.rules import size_of
from symad.transforms.batches import batch_outputs
from symad.transforms.cotangents import fresh_seed, pull
from symad.transforms.jacobians import flat_columns, forward_gradient
from symad.transforms.tangents import push

Linear = Callable[[list[Node]], "list[Tangent]"]
"""A linear map from seeds to outputs."""


def pushed(outputs: Sequence[Node], wrt: Sequence[Node]) -> Linear:
    """The pushforward as a map of the seeds of ``wrt``."""
    return lambda dots: push(outputs, dict(zip(wrt, dots, strict=True)))


def pulled(outputs: Sequence[Node], wrt: Sequence[Node]) -> Linear:
    """The pullback as a map of the seeds of the outputs."""
    return lambda bars: pull(outputs, bars, wrt)


def hessian_product(value: Node, gradient: Sequence[Node], wrt: Sequence[Node], mode: str) -> Linear:
    """The Hessian as a linear map, by one of the four compositions."""
    if mode == "reverse-over-forward":

        def reverse_over_forward(dots: list[Node]) -> list[Tangent]:
            (value_dot,) = pushed([value], wrt)(dots)
            return pull([value_dot], [constant(1)], wrt)

        return reverse_over_forward
    if mode == "forward-over-forward":
        gradient = forward_gradient(value, wrt)
    return pulled(gradient, wrt) if mode == "reverse-over-reverse" else pushed(gradient, wrt)


def compressed_products(
    coloring: Coloring,
    outputs: Sequence[Node],
    wrt: Sequence[Node],
    by_rows: Linear | None,
    by_columns: Linear,
    chunk: int | None = None,
) -> list[Node]:
    """The products that a coloring requires: Sᵀ J (p, N) by rows, then (J S)ᵀ (q, M) by columns.

    Args:
        coloring: of J = ∂outputs/∂wrt.
        outputs: arrays of M elements together.
        wrt: arrays of N elements together.
        by_rows: the transposed map, if the coloring has row colors.
        by_columns: the map J.
        chunk: the number of products that are computed at a time; None for all.
    """
    of_rows, of_columns = (indicator(colors) for colors in coloring.sides)
    products = []
    if by_rows is not None and of_rows.shape[1]:
        products.append(_lanes(by_rows, outputs, wrt, of_rows, chunk))
    if of_columns.shape[1]:
        products.append(_lanes(by_columns, wrt, outputs, of_columns, chunk))
    return products


def _lanes(
    linear: Linear, inputs: Sequence[Node], outputs: Sequence[Node], seeds: Array, chunk: int | None
) -> Node:
    """A linear map applied to all columns of a seed matrix (inputs, p): (p, outputs).

    With ``chunk`` the map is the body of a loop, so that its intermediate values exist for ``chunk`` lanes at
    a time.
    """
    count = seeds.shape[1]
    placeholders = [fresh_seed(x) for x in inputs]
    results = linear(placeholders)

    def at(block: Node, lanes: int) -> Node:
        """The map at seeds (lanes, inputs)."""
        replaced, first = {}, 0
        for x, placeholder in zip(inputs, placeholders, strict=True):
            part = slice_axis(block, 1, first, size_of(x))
            replaced[placeholder] = reshape(part, (lanes, *x.shape))
            first += size_of(x)
        present = [r for r in results if isinstance(r, Node)]
        batched = iter(batch_outputs(present, replaced, lanes))
        made = [next(batched) if isinstance(r, Node) else ZERO for r in results]
        return flat_columns(made, outputs, lanes)

    if chunk is None or chunk >= count:
        return at(array_constant(np.ascontiguousarray(seeds.T)), count)
    steps = -(-count // chunk)
    padded = np.zeros((steps * chunk, len(seeds)), seeds.dtype)
    padded[:count] = seeds.T
    blocks = array_constant(padded.reshape(steps, chunk, -1))
    nothing = broadcast_to(constant(0), (chunk, sum(map(size_of, outputs))))
    history = scan(lambda _, block: at(block, chunk), nothing, [blocks])
    return slice_axis(reshape(history, (steps * chunk, history.shape[-1])), 0, 0, count)
