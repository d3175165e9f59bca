"""Eigenvalues and eigenvectors of symmetric matrices, on the last two axes.

With A = V diag(w) Vᵀ, the gaps w_j − w_i, and S = Vᵀ Ȧ V:

    ẇ_i = S_ii,    V̇ = V (F ∘ S),    F_ij = 1 / (w_j − w_i) for i ≠ j, F_ii = 0

(Giles, "Collected matrix derivative results for forward and reverse mode algorithmic differentiation",
2008, section 3.1). If eigenvalues are equal, F is infinite: their vectors have no derivative. The derivative
of the eigenvalues needs no gaps; it is that for the computed vectors.

One decomposition serves values, vectors and derivatives: `EigenSystem` is computed once and counts as a
constant in derivatives; the two ops that read it define their derivatives by A.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import sympy

from symad.core.dims import Shape, as_dim, plus, size
from symad.core.graph import ZERO, Node, shape
from symad.core.questions import Array, Count, Nodes, Tangent, Tangents, Values, evaluate, flops, jvp
from symad.errors import EvaluationError
from symad.numbers.dual import Dual, depth, split
from symad.ops.arrays.stacking import concatenate
from symad.ops.basic.arithmetic import div, mul, sub
from symad.ops.basic.contraction import contract, matmul, matrix_transpose
from symad.ops.basic.shaping import broadcast_axes, broadcast_to, slice_axis
from symad.ops.basic.sources import constant, eye
from symad.ops.linalg.cholesky import symmetric_part_of_lower
from symad.ops.linalg.solve_det import MatrixOp, check_square


@dataclass(frozen=True, eq=False)
class EigenSystem(MatrixOp):
    """[wᵀ; V]: the eigenvalues in row 0, ascending, and below them the eigenvectors as columns.

    Only the lower triangle of A (..., n, n) is read, as by LAPACK, which also determines the vectors' signs.
    The value is (..., n + 1, n).
    """


@dataclass(frozen=True, eq=False)
class EigenValues(MatrixOp):
    """w (..., n) of A (..., n, n) and its `EigenSystem`."""


@dataclass(frozen=True, eq=False)
class EigenVectors(MatrixOp):
    """V (..., n, n) of A (..., n, n) and its `EigenSystem`."""


def eigenvalues(a: Node) -> Node:
    """The eigenvalues of a symmetric matrix, ascending."""
    return Node.of(EigenValues(), (a, Node.of(EigenSystem(), (a,))))


def eigenvectors(a: Node) -> Node:
    """The eigenvectors of a symmetric matrix, as columns."""
    return Node.of(EigenVectors(), (a, Node.of(EigenSystem(), (a,))))


@shape(EigenSystem)
def eigen_system_shape(op: EigenSystem, args: Nodes) -> Shape:
    (a,) = args
    check_square("an eigenvalue problem", a)
    return (*a.shape[:-2], plus(a.shape[-1], 1), a.shape[-1])


@shape(EigenValues)
def eigenvalues_shape(op: EigenValues, args: Nodes) -> Shape:
    return args[0].shape[:-1]


@shape(EigenVectors)
def eigenvectors_shape(op: EigenVectors, args: Nodes) -> Shape:
    return args[0].shape


@jvp.dispatch
def eigen_system_jvp(op: EigenSystem, y: Node, tangents: Tangents) -> Tangent:
    return ZERO


@jvp.dispatch
def eigenvalues_jvp(op: EigenValues, y: Node, tangents: Tangents) -> Tangent:  # diag(Vᵀ Ȧ V)
    if not isinstance(tangents[0], Node):
        return ZERO
    labels = [f"axis {k}" for k in range(len(y.shape) - 1)]
    return contract([[*labels, "i", "i"]], [*labels, "i"], _moved(eigenvectors(y.args[0]), tangents[0]))


@jvp.dispatch
def eigenvectors_jvp(op: EigenVectors, y: Node, tangents: Tangents) -> Tangent:  # V (F ∘ Vᵀ Ȧ V)
    if not isinstance(tangents[0], Node):
        return ZERO
    values, whole = eigenvalues(y.args[0]), y.shape
    lead, last = tuple(range(len(whole) - 2)), len(whole) - 2
    columns, rows = (broadcast_axes(values, whole, (*lead, last + k)) for k in (1, 0))
    diagonal = broadcast_axes(eye(whole[-1]), whole, (last, last + 1))
    inverse_gaps = div(sub(constant(1), diagonal), sub(columns, sub(rows, diagonal)))
    return matmul(y, mul(inverse_gaps, _moved(y, tangents[0])))


def _moved(vectors: Node, a_dot: Node) -> Node:
    """Vᵀ Ȧ V."""
    return matmul(matrix_transpose(vectors), matmul(symmetric_part_of_lower(a_dot), vectors))


@flops.dispatch
def eigen_system_flops(op: EigenSystem, y: Node) -> Count:
    """About 9 n³ (Golub and Van Loan, Matrix Computations, section 8.3)."""
    return 9 * size(y.shape[:-2]) * y.shape[-1] ** 3


@evaluate.dispatch
def eigen_system_evaluate(op: EigenSystem, values: Values) -> Array:
    """The decomposition by LAPACK, or by mpmath to its working precision with the signs of LAPACK's vectors.

    Raises:
        EvaluationError: entries are not floating-point numbers; eigenvalues of rational matrices are
            not rational.
    """
    (a,) = values
    if depth(a):
        return _of_duals(op, a)
    if a.dtype == object:
        return np.stack([_precisely(m) for m in a.reshape(-1, *a.shape[-2:])]).reshape(
            (*a.shape[:-2], a.shape[-1] + 1, a.shape[-1])
        )
    found, vectors = np.linalg.eigh(a)
    return np.concatenate([found[..., None, :], vectors], axis=-2)


def _of_duals(op: EigenSystem, a: Array) -> Any:
    """For dual numbers: λ̇ = diag(Vᵀ Ȧ V) and V̇ = V (F ∘ Vᵀ Ȧ V), where F_ij = 1/(λ_j − λ_i) and F_ii = 0."""
    primal, dot = split(a)
    found, n = eigen_system_evaluate(op, (np.asarray(primal),)), a.shape[-1]
    diagonal, below = np.eye(n, dtype=int), np.tri(n, dtype=bool)
    dots = []
    stacks = found.reshape(-1, n + 1, n), np.asarray(dot).reshape(-1, n, n)
    for (values, *rows), a_dot in zip(*stacks, strict=True):
        vectors = np.stack(rows)
        moved = vectors.T @ np.where(below, a_dot, a_dot.T) @ vectors
        gaps = values - values[:, None] + diagonal
        dots.append(np.concatenate([np.diagonal(moved)[None], vectors @ (moved * (1 - diagonal) / gaps)]))
    return np.frompyfunc(Dual, 2, 1)(found, np.reshape(dots, found.shape))


def _precisely(a: Any) -> Array:
    """Decomposes one matrix of mpmath or SymPy numbers, some of which are floating-point numbers."""
    import mpmath

    numbers, floats = a.ravel(), (float, mpmath.mpf, sympy.Float)
    known = all(isinstance(v, (int, sympy.Number, *floats)) for v in numbers)
    if not known or not any(isinstance(v, floats) for v in numbers):
        raise EvaluationError("eigenvalues are of floating-point numbers, not of exact ones or symbols")
    n, symbolic = len(a), any(isinstance(v, sympy.Basic) for v in numbers)
    digits = max([v._prec for v in numbers if isinstance(v, sympy.Float)], default=mpmath.mp.prec)
    with mpmath.workprec(digits):
        whole = np.array(
            [mpmath.mpf(v._to_mpmath(digits) if isinstance(v, sympy.Number) else v) for v in numbers]
        ).reshape(n, n)
        lower = np.array([[whole[max(i, j), min(i, j)] for j in range(n)] for i in range(n)])
        found, vectors = mpmath.eigsy(mpmath.matrix(lower.tolist()))
        order = sorted(range(n), key=lambda k: found[k])
        made = np.array([[found[k] for k in order], *([vectors[i, k] for k in order] for i in range(n))])
        near = np.linalg.eigh(lower.astype(float))[1]
        agree = (made[1:].astype(float) * near).sum(axis=0) > 0
        made[1:] = made[1:] * np.where(agree, 1, -1).astype(object)
    if symbolic:
        return np.vectorize(lambda v: sympy.Float(v, precision=digits), otypes=[object])(made)
    return made


@evaluate.dispatch
def eigenvalues_evaluate(op: EigenValues, values: Values) -> Array:
    return values[1][..., 0, :]


@evaluate.dispatch
def eigenvectors_evaluate(op: EigenVectors, values: Values) -> Array:
    return values[1][..., 1:, :]


@flops.dispatch
def eigenvalues_flops(op: EigenValues, y: Node) -> Count:
    return 0


@flops.dispatch
def eigenvectors_flops(op: EigenVectors, y: Node) -> Count:
    return 0


def singular_values(a: Node) -> Node:
    """The min(m, n) singular values of A (..., m, n), descending.

    They are the largest eigenvalues of [[0, A], [Aᵀ, 0]], whose eigenvalues are ±σ and 0 (Golub and Van
    Loan, section 8.6). No matrix is squared, so small values keep their digits relative to the largest one.
    """
    m, n = a.shape[-2:]
    lead, rank = a.shape[:-2], len(a.shape)
    top = concatenate([broadcast_to(constant(0), (*lead, m, m)), a], rank - 1)
    below = concatenate([matrix_transpose(a), broadcast_to(constant(0), (*lead, n, n))], rank - 1)
    values = eigenvalues(concatenate([top, below], rank - 2))
    count = min(m, n) if isinstance(m, int) and isinstance(n, int) else as_dim(sympy.Min(m, n))
    return slice_axis(values, rank - 2, plus(plus(m, n), -1), count, -1)
