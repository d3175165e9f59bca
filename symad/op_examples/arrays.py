"""Examples of the ops of `symad.ops.arrays`, for tests and tables."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import sympy

from symad.core.dims import as_dim
from symad.core.graph import Node
from symad.core.questions import examples
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


@examples(Einsum)
def einsum_examples() -> list[Node]:
    a = input_node(sympy.MatrixSymbol("A", 3, 4), (3, 4))
    b = input_node(sympy.MatrixSymbol("B", 4, 2), (4, 2))
    c = input_node(sympy.MatrixSymbol("C", 3, 3), (3, 3))
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


@examples(Gather)
def gather_examples() -> list[Node]:
    return [gather(example_matrix("A", 4, 3), array_constant(np.array([[2, 0], [2, 3]])))]


@examples(ScatterAdd)
def scatter_add_examples() -> list[Node]:
    indices = array_constant(np.array([2, 0, 2]))
    return [Node.of(ScatterAdd(as_dim(4)), (indices, example_matrix("A", 3, 2)))]


@examples(SortingPositions)
def sorting_positions_examples() -> list[Node]:
    return [sorting_positions(example_matrix("A", 2, 4))]


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
    a = input_node(sympy.MatrixSymbol("A", 3, 4), (3, 4))
    return [extreme("max", a, (1,)), extreme("min", a), extreme("max", a, (0, 1))]


@examples(Product)
def product_examples() -> list[Node]:
    a = input_node(sympy.MatrixSymbol("A", 3, 4), (3, 4))
    return [Node.of(Product(), (a,))]


def example_matrix(name: str, rows: int, columns: int) -> Node:
    return input_node(sympy.MatrixSymbol(name, rows, columns), (rows, columns))


@examples(Broadcast)
def broadcast_examples() -> list[Node]:
    x = input_node(sympy.Symbol("x", real=True))
    return [broadcast_to(x, (2, 3)), broadcast_to(example_matrix("A", 1, 3), (4, 2, 3))]


@examples(Reshape)
def reshape_examples() -> list[Node]:
    return [reshape(example_matrix("A", 2, 6), (3, 4))]


@examples(Slice)
def slice_examples() -> list[Node]:
    a = example_matrix("A", 4, 5)
    one = reshape(slice_axes(a, (1, 2), (1, 1)), ())
    return [slice_axes(a, (1, 0), (2, 3), (1, 2)), slice_axis(a, 1, 4, 5, -1), one]


@examples(Pad)
def pad_examples() -> list[Node]:
    return [pad(example_matrix("A", 2, 3), (1, 0), (4, 5), (1, 2))]


@examples(Input)
def input_examples() -> list[Node]:
    return [
        input_node(sympy.Symbol("x", real=True)),
        input_node(sympy.MatrixSymbol("X", 2, 3), (2, 3)),
    ]


@examples(Constant)
def constant_examples() -> list[Node]:
    return [constant(3), constant(Fraction(1, 3)), constant(0.1), constant(sympy.pi)]


@examples(ArrayConstant)
def array_constant_examples() -> list[Node]:
    return [array_constant(np.arange(6.0).reshape(2, 3))]


@examples(Dimension)
def dimension_examples() -> list[Node]:
    return [dimension(sympy.Symbol("n", integer=True) + 1)]


@examples(Iota)
def iota_examples() -> list[Node]:
    return [iota(4)]


@examples(Eye)
def eye_examples() -> list[Node]:
    return [eye(3)]


@examples(Concatenate)
def concatenate_examples() -> list[Node]:
    return [
        concatenate([example_matrix("A", 2, 3), example_matrix("B", 1, 3)]),
        concatenate([example_matrix("A", 2, 3), example_matrix("C", 2, 2)], 1),
    ]


@examples(Stack)
def stack_examples() -> list[Node]:
    return [stack([example_matrix("A", 2, 3), example_matrix("B", 2, 3)], 1)]
