"""Linear algebra on the last two axes: solve, inverse, determinants.

All derivatives are expressed through these ops and contractions, so every order of derivative
exists. Formulas: Giles, "Collected matrix derivative results for forward and reverse mode
algorithmic differentiation" (2008), sections 2.2.3, 2.2.4, 2.3.1.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import sympy

from symad.core.dims import Shape, format_shape, same_dim, size
from symad.core.graph import ZERO, Node, Op, shape
from symad.core.questions import (
    Array,
    Count,
    Flags,
    Nodes,
    Tangent,
    Tangents,
    Values,
    batch,
    evaluate,
    flops,
    jvp,
    transpose,
)
from symad.errors import ShapeError
from symad.numbers.exact_linalg import determinant as exact_determinant
from symad.numbers.exact_linalg import solve as exact_solve
from symad.numbers.number_domains import apply
from symad.ops.basic.arithmetic import add_tangents, neg
from symad.ops.basic.contraction import contract, matmul, matrix_transpose
from symad.ops.basic.shaping import broadcast_axes, lift, reshape
from symad.ops.basic.sources import eye


@dataclass(frozen=True, eq=False)
class MatrixOp(Op):
    """An op on the last two axes; leading axes are a stack."""


@dataclass(frozen=True, eq=False)
class Solve(MatrixOp):
    """The solution X of A X = B: A (..., n, n), B (..., n, k). Linear in B."""


@dataclass(frozen=True, eq=False)
class Determinant(MatrixOp):
    """det A of A (..., n, n)."""

    total = True


@dataclass(frozen=True, eq=False)
class LogDeterminant(MatrixOp):
    """log(det A) of A (..., n, n); NaN where det A < 0."""


# ---- makers -------------------------------------------------------------------------------------


def solve(a: Node, b: Node) -> Node:
    """The solution X of A X = B; a vector B (n,) gives a vector."""
    if len(b.shape) == 1:
        return reshape(solve(a, reshape(b, (b.shape[0], 1))), b.shape)
    return Node.of(Solve(), (a, b))


def inverse(a: Node) -> Node:
    """A⁻¹, as the solution of A X = I."""
    n = a.shape[-1]
    identity = broadcast_axes(eye(n), a.shape, (len(a.shape) - 2, len(a.shape) - 1))
    return solve(a, identity)


def determinant(a: Node) -> Node:
    """The determinant."""
    return Node.of(Determinant(), (a,))


def log_determinant(a: Node) -> Node:
    """The logarithm of the determinant."""
    return Node.of(LogDeterminant(), (a,))


def _trace(a: Node, b: Node) -> Node:
    """tr(A B) over the last two axes."""
    lead = range(2, len(a.shape))
    return contract([[*lead, 0, 1], [*lead, 1, 0]], list(lead), a, b)


# ---- shapes -------------------------------------------------------------------------------------


def check_square(name: str, a: Node) -> None:
    if len(a.shape) < 2 or not same_dim(a.shape[-1], a.shape[-2]):
        raise ShapeError(f"{name} needs a square matrix, not {format_shape(a.shape)}")


@shape(Solve)
def solve_shape(op: Solve, args: Nodes) -> Shape:
    a, b = args
    check_square("solve", a)
    if len(b.shape) != len(a.shape) or not same_dim(a.shape[-1], b.shape[-2]):
        raise ShapeError(
            f"solve: the matrix is {format_shape(a.shape)} and the right-hand side {format_shape(b.shape)}"
        )
    return b.shape


@shape(Determinant)
def determinant_shape(op: Determinant, args: Nodes) -> Shape:
    check_square("a determinant", args[0])
    return args[0].shape[:-2]


@shape(LogDeterminant)
def log_determinant_shape(op: LogDeterminant, args: Nodes) -> Shape:
    check_square("a log determinant", args[0])
    return args[0].shape[:-2]


# ---- derivatives --------------------------------------------------------------------------------


@jvp.dispatch
def solve_jvp(op: Solve, y: Node, tangents: Tangents) -> Tangent:
    """X_dot = A⁻¹ (B_dot − A_dot X)."""
    a_dot, b_dot = tangents
    terms: list[Tangent] = [b_dot]
    if isinstance(a_dot, Node):
        terms.append(neg(matmul(a_dot, y)))
    total = add_tangents(terms)
    return Node.of(op, (y.args[0], total)) if isinstance(total, Node) else ZERO


@jvp.dispatch
def log_determinant_jvp(op: LogDeterminant, y: Node, tangents: Tangents) -> Tangent:
    """y_dot = tr(A⁻¹ A_dot)."""
    (a,), (a_dot,) = y.args, tangents
    return _trace(inverse(a), a_dot) if isinstance(a_dot, Node) else ZERO


@transpose.dispatch
def solve_transpose(op: Solve, y: Node, y_bar: Node, linear: Flags) -> Tangents:
    """The cotangent B_bar = A⁻ᵀ X_bar."""
    return ZERO, solve(matrix_transpose(y.args[0]), y_bar)


@batch.dispatch
def matrix_batch(op: MatrixOp, args: Nodes, batched: Flags, count: Count) -> Node:
    """A stack of matrices is already supported: missing axes are repeated."""
    matrices = [
        arg if not arg.shape else lift(arg, flag, count) for arg, flag in zip(args, batched, strict=True)
    ]
    return Node.of(op, tuple(matrices))


# ---- costs and values ---------------------------------------------------------------------------


@flops.dispatch
def solve_flops(op: Solve, y: Node) -> Count:
    """LU: 2n³/3, and 2n² for each right-hand side."""
    n = y.args[0].shape[-1]
    stack = size(y.shape[:-2])
    return stack * (sympy.Rational(2, 3) * n**3 + 2 * n * n * y.shape[-1])


@flops.dispatch
def determinant_flops(op: Determinant, y: Node) -> Count:
    return size(y.shape) * sympy.Rational(2, 3) * y.args[0].shape[-1] ** 3


@flops.dispatch
def log_determinant_flops(op: LogDeterminant, y: Node) -> Count:
    return size(y.shape) * sympy.Rational(2, 3) * y.args[0].shape[-1] ** 3


@evaluate.dispatch
def solve_evaluate(op: Solve, values: Values) -> Array:
    a, b = values
    if a.dtype == object or b.dtype == object:
        return exact_solve(a, b)
    return np.linalg.solve(a, b)


@evaluate.dispatch
def determinant_evaluate(op: Determinant, values: Values) -> Array:
    if values[0].dtype == object:
        return exact_determinant(values[0])
    return np.linalg.det(values[0])


@evaluate.dispatch
def log_determinant_evaluate(op: LogDeterminant, values: Values) -> Array:
    if values[0].dtype == object:
        return apply(sympy.log, (determinant_evaluate(Determinant(), values),))
    sign, logarithm = np.linalg.slogdet(values[0])
    return np.where(sign < 0, np.nan, logarithm)[()]
