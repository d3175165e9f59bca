"""Integer powers of matrices and their Fréchet derivatives, on the last two axes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from symad.core.dims import Shape, size
from symad.core.graph import ZERO, Node, shape
from symad.core.questions import (
    Array,
    Count,
    Flags,
    Nodes,
    Tangent,
    Tangents,
    Values,
    evaluate,
    flops,
    jvp,
    transpose,
)
from symad.errors import ShapeError
from symad.numbers.exact_linalg import power as exact_power
from symad.ops.arrays.stacking import concatenate
from symad.ops.basic.arithmetic import add_tangents
from symad.ops.basic.contraction import matmul, matrix_transpose
from symad.ops.basic.shaping import broadcast_axes, broadcast_to, slice_axis
from symad.ops.basic.sources import constant, eye
from symad.ops.linalg.solve_det import MatrixOp, check_square, inverse


@dataclass(frozen=True, eq=False)
class MatrixPower(MatrixOp):
    """A^k for an integer k known at run time: A (..., n, n), k scalar; negative k inverts."""


@dataclass(frozen=True, eq=False)
class MatrixPowerDerivative(MatrixOp):
    """The Fréchet derivative of A^k in direction E: Σ_j A^j E A^{k−1−j}. Linear in E.

    It is the upper right block of [[A, E], [0, A]]^k (Najfeld and Havel 1995, theorem 4.1), from which
    its own derivative follows too: the family is closed under differentiation.
    """


def matrix_power(a: Node, k: Node | int) -> Node:
    """A^k: by repeated squaring for a known k, otherwise at run time."""
    if isinstance(k, Node):
        return Node.of(MatrixPower(), (a, k))
    if k < 0:
        return matrix_power(inverse(a), -k)
    if k == 0:
        return broadcast_axes(eye(a.shape[-1]), a.shape, (len(a.shape) - 2, len(a.shape) - 1))
    if k == 1:
        return a
    half = matrix_power(a, k // 2)
    squared = matmul(half, half)
    return matmul(squared, a) if k % 2 else squared


@shape(MatrixPower)
def matrix_power_shape(op: MatrixPower, args: Nodes) -> Shape:
    check_square("a matrix power", args[0])
    return args[0].shape


@shape(MatrixPowerDerivative)
def matrix_power_derivative_shape(op: MatrixPowerDerivative, args: Nodes) -> Shape:
    return args[0].shape


@jvp.dispatch
def matrix_power_jvp(op: MatrixPower, y: Node, tangents: Tangents) -> Tangent:
    """The Fréchet derivative; the integer exponent has no derivative."""
    a, k = y.args
    return Node.of(MatrixPowerDerivative(), (a, tangents[0], k)) if isinstance(tangents[0], Node) else ZERO


@jvp.dispatch
def matrix_power_derivative_jvp(op: MatrixPowerDerivative, y: Node, tangents: Tangents) -> Tangent:
    """The upper right block of the derivative at [[A, E], [0, A]] in direction [[A', E'], [0, A']]."""
    a, e, k = y.args
    a_dot, e_dot, _ = tangents
    terms: list[Tangent] = []
    if isinstance(e_dot, Node):
        terms.append(Node.of(op, (a, e_dot, k)))
    if isinstance(a_dot, Node):
        zero = broadcast_to(constant(0), a.shape)
        whole = Node.of(op, (_block(a, e), _block(a_dot, zero), k))
        n, rank = a.shape[-1], len(a.shape)
        terms.append(slice_axis(slice_axis(whole, rank - 2, 0, n), rank - 1, n, n))
    return add_tangents(terms)


def _block(a: Node, e: Node) -> Node:
    """[[A, E], [0, A]]."""
    rank = len(a.shape)
    zero = broadcast_to(constant(0), a.shape)
    top = concatenate([a, e], rank - 1)
    return concatenate([top, concatenate([zero, a], rank - 1)], rank - 2)


@transpose.dispatch
def matrix_power_derivative_transpose(
    op: MatrixPowerDerivative, y: Node, y_bar: Node, linear: Flags
) -> Tangents:
    """The adjoint is the derivative at Aᵀ (Higham, Functions of Matrices, section 3.2)."""
    a, _, k = y.args
    return ZERO, Node.of(op, (matrix_transpose(a), y_bar, k)), ZERO


@flops.dispatch
def matrix_power_flops(op: MatrixPower, y: Node) -> Count:
    """About 2 log2(k) products; counted as one, since k is not known."""
    return 2 * size(y.shape) * y.shape[-1]


@flops.dispatch
def matrix_power_derivative_flops(op: MatrixPowerDerivative, y: Node) -> Count:
    return 16 * size(y.shape) * y.shape[-1]


@evaluate.dispatch
def matrix_power_evaluate(op: MatrixPower, values: Values) -> Array:
    a, k = values
    while hasattr(k, "tangent"):  # an exponent has no derivative
        k = k.value
    exponent = int(k)
    if exponent != k:
        raise ShapeError(f"a matrix power needs an integer exponent, not {k}")
    if a.dtype == object:
        return exact_power(a, exponent)
    return np.linalg.matrix_power(a, exponent)


@evaluate.dispatch
def matrix_power_derivative_evaluate(op: MatrixPowerDerivative, values: Values) -> Array:
    a, e, k = values
    n = a.shape[-1]
    top = np.concatenate([a, e], -1)
    block = np.concatenate([top, np.concatenate([np.zeros_like(a), a], -1)], -2)
    return matrix_power_evaluate(MatrixPower(), (block, k))[..., :n, n:]
