"""Examples of the ops of `symad.ops.arrays` and `symad.ops.basic`, and the inputs that examples share."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import sympy

from symad.core.dims import as_dim
from symad.core.graph import Node
from symad.core.questions import EXAMPLES, examples
from symad.ops.arrays.gathering import Gather, ScatterAdd, gather
from symad.ops.arrays.ordering import SortingPositions, sorting_positions
from symad.ops.arrays.positions import Positions, positions
from symad.ops.arrays.reduction import Extreme, Product, extreme
from symad.ops.arrays.stacking import Concatenate, Stack, concatenate, stack
from symad.ops.basic.contraction import Einsum, einsum, matmul, matrix_transpose, sum_all, trace_of
from symad.ops.basic.shaping import (
    Broadcast,
    Pad,
    Reshape,
    Slice,
    broadcast_to,
    pad,
    reshape,
    slice_axes,
    slice_axis,
)
from symad.ops.basic.sources import (
    ArrayConstant,
    Constant,
    Dimension,
    Eye,
    Input,
    Iota,
    array_constant,
    constant,
    dimension,
    eye,
    input_node,
    iota,
)


def matrix(name: str, rows: int, columns: int) -> Node:
    return input_node(sympy.MatrixSymbol(name, rows, columns), (rows, columns))


def vector(name: str, length: int) -> Node:
    return input_node(sympy.IndexedBase(name, shape=(length,)), (length,))


def scalars(names: str) -> list[Node]:
    return [input_node(s) for s in sympy.symbols(names, real=True, seq=True)]


EXAMPLES.update(
    {
        Input: lambda: [*scalars("x"), matrix("X", 2, 3)],
        Constant: lambda: [constant(3), constant(Fraction(1, 3)), constant(0.1), constant(sympy.pi)],
        ArrayConstant: lambda: [array_constant(np.arange(6.0).reshape(2, 3))],
        Dimension: lambda: [dimension(sympy.Symbol("n", integer=True) + 1)],
        Iota: lambda: [iota(4)],
        Eye: lambda: [eye(3)],
        Broadcast: lambda: [
            broadcast_to(scalars("x")[0], (2, 3)),
            broadcast_to(matrix("A", 1, 3), (4, 2, 3)),
        ],
        Reshape: lambda: [reshape(matrix("A", 2, 6), (3, 4))],
        Pad: lambda: [pad(matrix("A", 2, 3), (1, 0), (4, 5), (1, 2))],
        Gather: lambda: [gather(matrix("A", 4, 3), array_constant(np.array([[2, 0], [2, 3]])))],
        ScatterAdd: lambda: [
            Node.of(ScatterAdd(as_dim(4)), (array_constant(np.array([2, 0, 2])), matrix("A", 3, 2)))
        ],
        SortingPositions: lambda: [sorting_positions(matrix("A", 2, 4))],
        Product: lambda: [Node.of(Product(), (matrix("A", 3, 4),))],
        Concatenate: lambda: [
            concatenate([matrix("A", 2, 3), matrix("B", 1, 3)]),
            concatenate([matrix("A", 2, 3), matrix("C", 2, 2)], 1),
        ],
        Stack: lambda: [stack([matrix("A", 2, 3), matrix("B", 2, 3)], 1)],
    }
)


@examples(Einsum)
def einsum_examples() -> list[Node]:
    a, b, c = matrix("A", 3, 4), matrix("B", 4, 2), matrix("C", 3, 3)
    return [
        matmul(a, b),
        matrix_transpose(a),
        trace_of(c),
        sum_all(a),
        einsum("ii->i", c),
        einsum("ij,ik->jk", a, c),
        einsum("ij,kl->ijkl", a, b),
        einsum("ij,jk,il->kl", a, b, c),
    ]


@examples(Positions)
def positions_examples() -> list[Node]:
    """All positions of a 3 × 4 array, and two of them."""
    every = positions((reshape(iota(3), (3, 1)), iota(4)), (3, 4), (0, 1), "x")
    some = positions(
        (array_constant(np.array([2, -1])), array_constant(np.array([0, 3]))), (3, 4), (0, 1), "x"
    )
    return [every, some]


@examples(Extreme)
def extreme_examples() -> list[Node]:
    a = matrix("A", 3, 4)
    return [extreme("max", a, (1,)), extreme("min", a), extreme("max", a, (0, 1))]


@examples(Slice)
def slice_examples() -> list[Node]:
    a = matrix("A", 4, 5)
    one = reshape(slice_axes(a, (1, 2), (1, 1)), ())
    return [slice_axes(a, (1, 0), (2, 3), (1, 2)), slice_axis(a, 1, 4, 5, -1), one]
