"""Triangles of matrices, triangular systems, and the Cholesky factor, on the last two axes.

Source of the derivative: Smith, "Differentiation of the Cholesky algorithm" (1995), in the form of Murray,
arXiv:1602.07527, equation 8.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import sympy

from symad.core.dims import Shape, size, times
from symad.core.graph import ZERO, Node, shape
from symad.core.nodes import Moved
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
from symad.numbers.exact_linalg import cholesky as exact_cholesky
from symad.ops.basic.arithmetic import add, add_tangents, neg
from symad.ops.basic.contraction import matmul, matrix_transpose
from symad.ops.linalg.solve_det import (
    MatrixOp,
    Solve,
    check_square,
    solve_evaluate,
    solve_shape,
)


@dataclass(frozen=True, eq=False)
class TriangularSolve(MatrixOp):
    """The solution X of T X = B, T the lower or upper triangle of A. Linear in B."""

    lower: bool


@dataclass(frozen=True, eq=False)
class Cholesky(MatrixOp):
    """The lower triangular L with L Lᵀ = A, from the lower triangle of a symmetric A."""


@dataclass(frozen=True, eq=False)
class Triangle(MatrixOp):
    """The lower triangle of A with its diagonal times ``diagonal``: Φ of the Cholesky derivative."""

    total = True

    diagonal: Any
    linear = True

    @property
    def moves(self) -> Moved:
        """The elements below the diagonal, and on it if they are not multiplied."""
        return Moved.PADDED if self.diagonal in (0, 1) else Moved.COMPUTED


def cholesky(a: Node) -> Node:
    """The lower Cholesky factor."""
    return Node.of(Cholesky(), (a,))


def triangular_solve(a: Node, b: Node, lower: bool = True) -> Node:
    """The solution X of T X = B for the lower (upper) triangle T of A."""
    return Node.of(TriangularSolve(lower), (a, b))


@shape(TriangularSolve)
def triangular_solve_shape(op: TriangularSolve, args: Nodes) -> Shape:
    return solve_shape(Solve(), args)


@shape(Cholesky)
def cholesky_shape(op: Cholesky, args: Nodes) -> Shape:
    check_square("a Cholesky factor", args[0])
    return args[0].shape


@shape(Triangle)
def triangle_shape(op: Triangle, args: Nodes) -> Shape:
    return args[0].shape


@jvp.dispatch
def triangular_solve_jvp(op: TriangularSolve, y: Node, tangents: Tangents) -> Tangent:
    """X_dot = T⁻¹ (B_dot − T_dot X), T_dot the triangle of A_dot."""
    a_dot, b_dot = tangents
    terms: list[Tangent] = [b_dot]
    if isinstance(a_dot, Node):
        terms.append(neg(matmul(_triangle(a_dot, op.lower), y)))
    total = add_tangents(terms)
    return Node.of(op, (y.args[0], total)) if isinstance(total, Node) else ZERO


def _triangle(a: Node, lower: bool) -> Node:
    if lower:
        return Node.of(Triangle(1), (a,))
    return matrix_transpose(Node.of(Triangle(1), (matrix_transpose(a),)))


@jvp.dispatch
def cholesky_jvp(op: Cholesky, y: Node, tangents: Tangents) -> Tangent:
    """L_dot = L Φ(L⁻¹ A_dot L⁻ᵀ), Φ the lower triangle with halved diagonal; A_dot is symmetrized."""
    (a_dot,) = tangents
    if not isinstance(a_dot, Node):
        return ZERO
    symmetric = symmetric_part_of_lower(a_dot)
    left = triangular_solve(y, symmetric)
    both = triangular_solve(y, matrix_transpose(left))
    from fractions import Fraction

    return matmul(y, Node.of(Triangle(Fraction(1, 2)), (both,)))


def symmetric_part_of_lower(a: Node) -> Node:
    """The symmetric matrix with the lower triangle of A; the upper one is not read."""
    lower = Node.of(Triangle(1), (a,))
    strict = Node.of(Triangle(0), (a,))
    return add(lower, matrix_transpose(strict))


@jvp.dispatch
def triangle_jvp(op: Triangle, y: Node, tangents: Tangents) -> Tangent:
    (a_dot,) = tangents
    return Node.of(op, (a_dot,)) if isinstance(a_dot, Node) else ZERO


@transpose.dispatch
def triangular_solve_transpose(op: TriangularSolve, y: Node, y_bar: Node, linear: Flags) -> Tangents:
    return ZERO, triangular_solve(matrix_transpose(y.args[0]), y_bar, not op.lower)


@transpose.dispatch
def triangle_transpose(op: Triangle, y: Node, y_bar: Node, linear: Flags) -> Tangents:
    return (Node.of(op, (y_bar,)),)


@flops.dispatch
def triangular_solve_flops(op: TriangularSolve, y: Node) -> Count:
    return times(size(y.shape), y.args[0].shape[-1])


@flops.dispatch
def cholesky_flops(op: Cholesky, y: Node) -> Count:
    return size(y.shape[:-2]) * sympy.Rational(1, 3) * y.shape[-1] ** 3


@flops.dispatch
def triangle_flops(op: Triangle, y: Node) -> Count:
    return 0


@evaluate.dispatch
def triangular_solve_evaluate(op: TriangularSolve, values: Values) -> Array:
    a, b = values
    triangle = np.tril(a) if op.lower else np.triu(a)
    return solve_evaluate(Solve(), (triangle, b))


@evaluate.dispatch
def cholesky_evaluate(op: Cholesky, values: Values) -> Array:
    if values[0].dtype == object:
        return exact_cholesky(values[0])
    return np.linalg.cholesky(values[0])


@evaluate.dispatch
def triangle_evaluate(op: Triangle, values: Values) -> Array:
    (a,) = values
    n = a.shape[-1]
    lower = np.tril(a, -1)
    diagonal = a[..., range(n), range(n)] * (op.diagonal if a.dtype == object else float(op.diagonal))
    result = lower.astype(diagonal.dtype)
    result[..., range(n), range(n)] = diagonal
    return result
