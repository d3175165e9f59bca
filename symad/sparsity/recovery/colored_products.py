"""Compressed products as graphs, and the gather that recovers the entries from them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from symad.core.arrays import Array
from symad.core.graph import ZERO, Node, Tangent
from symad.errors import DerivativeError
from symad.higher_order.scan import scan
from symad.ops.arrays.gathering import ScatterAdd, gather
from symad.ops.arrays.stacking import concatenate
from symad.ops.basic.arithmetic import sub
from symad.ops.basic.shaping import broadcast_to, flatten, reshape, slice_axis
from symad.ops.basic.sources import array_constant, constant
from symad.sparsity.coloring.result import Coloring
from symad.sparsity.coloring.substitution import Forest
from symad.sparsity.patterns.pattern import IntArray
from symad.sparsity.patterns.rules import size_of
from symad.transforms.batches import batch_outputs
from symad.transforms.cotangents import fresh_seed, pull
from symad.transforms.jacobians import flat_columns, forward_gradient
from symad.transforms.tangents import push

MAX_TREE_DEPTH = 200
"""The maximum depth of trees for substitution; deeper ones would make a graph of too many nodes."""

Linear = Callable[[list[Node]], "list[Tangent]"]
"""A linear map from seeds to outputs."""


def jacobian_products(
    outputs: Sequence[Node], wrt: Sequence[Node], coloring: Coloring, chunk: int | None = None
) -> list[Node]:
    """The products that a coloring requires: Sᵀ J (p, N) by rows, then (J S)ᵀ (q, M) by columns.

    ``chunk``: the number of products that are computed at a time; None for all.
    """
    seeds = coloring.seeds()
    both = seeds if coloring.kind == "bidirectional" else (None, seeds)
    by_rows, by_columns = (seeds, None) if coloring.kind == "row" else both
    products = []
    if by_rows is not None and by_rows.shape[1]:
        products.append(_lanes(lambda bars: pull(outputs, bars, wrt), outputs, wrt, by_rows, chunk))
    if by_columns is not None and by_columns.shape[1]:

        def forward(dots: list[Node]) -> list[Tangent]:
            return push(outputs, dict(zip(wrt, dots, strict=True)))

        products.append(_lanes(forward, wrt, outputs, by_columns, chunk))
    return products


def hessian_products(
    value: Node,
    gradient: Sequence[Node],
    wrt: Sequence[Node],
    mode: str,
    coloring: Coloring,
    chunk: int | None = None,
) -> Node:
    """(H S)ᵀ (p, N) for the seeds S (N, p) of a coloring, by one of the four compositions.

    ``chunk``: the number of products that are computed at a time; None for all.
    """

    def pushed(of: Sequence[Node]) -> Linear:
        return lambda dots: push(of, dict(zip(wrt, dots, strict=True)))

    def reverse_over_forward(dots: list[Node]) -> list[Tangent]:
        (value_dot,) = push([value], dict(zip(wrt, dots, strict=True)))
        return pull([value_dot], [constant(1)], wrt)

    linear: Linear
    if mode == "forward-over-reverse":
        linear = pushed(gradient)
    elif mode == "forward-over-forward":
        linear = pushed(forward_gradient(value, wrt))
    elif mode == "reverse-over-reverse":
        linear = lambda bars: pull(gradient, bars, wrt)  # noqa: E731
    else:
        linear = reverse_over_forward
    return _lanes(linear, wrt, wrt, coloring.seeds(), chunk)


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


def recovered(products: Sequence[Node], coloring: Coloring) -> Node:
    """The stored entries (nnz,), in CSR order, from the products, which are stored by lanes."""
    if not products:
        return array_constant(np.zeros(coloring.pattern.nnz))
    flat = concatenate([flatten(product) for product in products])
    if coloring.kind == "acyclic":
        return _substituted(flat, coloring)
    return gather(flat, array_constant(_in_lanes(coloring.positions, coloring)))


def _in_lanes(positions: IntArray, coloring: Coloring) -> IntArray:
    """Positions in column products that are stored by lanes, (q, M), instead of as A S (M, q)."""
    m, n = coloring.pattern.shape
    rows, columns = coloring.row_colors * n, coloring.column_colors
    if not columns:
        return positions
    i, c = np.divmod(positions - rows, columns)
    return np.where(positions < rows, positions, rows + c * m + i)


def _substituted(flat: Node, coloring: Coloring) -> Node:
    """The entries along the trees of an acyclic coloring, from the leaves to the roots."""
    trees: Forest = coloring.trees
    if len(trees.levels) > MAX_TREE_DEPTH:
        raise DerivativeError(
            f"the trees of this acyclic coloring are {len(trees.levels)} levels deep, too many to "
            "write the substitution out; use a star coloring"
        )
    x = gather(flat, array_constant(_in_lanes(trees.reads, coloring)))
    for level in trees.levels:
        moved = gather(x, array_constant(level.nodes))
        carried = Node.of(ScatterAdd(x.shape[0]), (array_constant(level.parents), moved))
        x = sub(x, carried)
    diagonal = gather(flat, array_constant(_in_lanes(trees.diagonal, coloring)))
    return gather(concatenate([x, diagonal]), array_constant(trees.entries))
