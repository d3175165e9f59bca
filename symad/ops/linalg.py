"""Linear algebra on the last two axes: solve, determinants, Cholesky, matrix powers.

All derivatives are expressed through these ops and contractions, so every order of derivative
exists. Formulas: Giles, "Collected matrix derivative results for forward and reverse mode
algorithmic differentiation" (2008), sections 2.2.3, 2.2.4, 2.3.1; Smith, "Differentiation of the
Cholesky algorithm" (1995) in the form of Murray, arXiv:1602.07527, equation 8.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import sympy

from symad.dims import Shape, format_shape, same_dim, size, times
from symad.errors import ShapeError
from symad.graph import ZERO, Node, Op, shape
from symad.ops.arithmetic import add_tangents, mul, neg, sub
from symad.ops.contraction import contract, matmul, matrix_transpose
from symad.ops.shaping import broadcast_axes, broadcast_to, concatenate, lift, slice_axis
from symad.ops.sources import constant, eye, input_node
from symad.questions import (
    Flags,
    Forms,
    Nodes,
    Tangent,
    Tangents,
    Values,
    batch,
    evaluate,
    examples,
    flops,
    jvp,
    sympy_form,
    transpose,
)


@dataclass(frozen=True, eq=False)
class MatrixOp(Op):
    """Works on the last two axes; leading axes are a stack."""


@dataclass(frozen=True, eq=False)
class Solve(MatrixOp):
    """X with A X = B: A (..., n, n), B (..., n, k). Linear in B."""


@dataclass(frozen=True, eq=False)
class TriangularSolve(MatrixOp):
    """X with T X = B, T the lower or upper triangle of A. Linear in B."""

    lower: bool


@dataclass(frozen=True, eq=False)
class Determinant(MatrixOp):
    """det A of A (..., n, n)."""


@dataclass(frozen=True, eq=False)
class LogDeterminant(MatrixOp):
    """log(det A) of A (..., n, n); NaN where det A < 0."""


@dataclass(frozen=True, eq=False)
class Cholesky(MatrixOp):
    """The lower triangular L with L Lᵀ = A, from the lower triangle of a symmetric A."""


@dataclass(frozen=True, eq=False)
class Triangle(MatrixOp):
    """The lower triangle of A with its diagonal times ``diagonal``: Φ of the Cholesky derivative."""

    diagonal: Any
    linear = True


@dataclass(frozen=True, eq=False)
class MatrixPower(MatrixOp):
    """A^k for an integer k known at run time: A (..., n, n), k scalar; negative k inverts."""


@dataclass(frozen=True, eq=False)
class MatrixPowerDerivative(MatrixOp):
    """The Fréchet derivative of A^k in direction E: Σ_j A^j E A^{k−1−j}. Linear in E.

    It is the upper right block of [[A, E], [0, A]]^k (Najfeld and Havel 1995, theorem 4.1), which
    also gives its own derivative: the family is closed.
    """


# ---- makers -------------------------------------------------------------------------------------


def solve(a: Node, b: Node) -> Node:
    """X with A X = B; a vector B (n,) gives a vector."""
    if len(b.shape) == 1:
        from symad.ops.shaping import reshape

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


def cholesky(a: Node) -> Node:
    """The lower Cholesky factor."""
    return Node.of(Cholesky(), (a,))


def triangular_solve(a: Node, b: Node, lower: bool = True) -> Node:
    """X with T X = B for the lower (upper) triangle T of A."""
    return Node.of(TriangularSolve(lower), (a, b))


def matrix_power(a: Node, k: Any) -> Node:
    """A^k: by repeated squaring for a known k, at run time for a symbolic one."""
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


def _trace(a: Node, b: Node) -> Node:
    """tr(A B) over the last two axes."""
    lead = range(2, len(a.shape))
    return contract([[*lead, 0, 1], [*lead, 1, 0]], list(lead), a, b)


# ---- shapes -------------------------------------------------------------------------------------


def _square(name: str, a: Node) -> None:
    if len(a.shape) < 2 or not same_dim(a.shape[-1], a.shape[-2]):
        raise ShapeError(f"{name} needs a square matrix, not {format_shape(a.shape)}")


@shape(Solve)
def solve_shape(op: Solve, args: Nodes) -> Shape:
    a, b = args
    _square("solve", a)
    if len(b.shape) != len(a.shape) or not same_dim(a.shape[-1], b.shape[-2]):
        raise ShapeError(
            f"solve: the matrix is {format_shape(a.shape)} and the right-hand side {format_shape(b.shape)}"
        )
    return b.shape


@shape(TriangularSolve)
def triangular_solve_shape(op: TriangularSolve, args: Nodes) -> Shape:
    return solve_shape(Solve(), args)


@shape(Determinant)
def determinant_shape(op: Determinant, args: Nodes) -> Shape:
    _square("a determinant", args[0])
    return args[0].shape[:-2]


@shape(LogDeterminant)
def log_determinant_shape(op: LogDeterminant, args: Nodes) -> Shape:
    _square("a log determinant", args[0])
    return args[0].shape[:-2]


@shape(Cholesky)
def cholesky_shape(op: Cholesky, args: Nodes) -> Shape:
    _square("a Cholesky factor", args[0])
    return args[0].shape


@shape(Triangle)
def triangle_shape(op: Triangle, args: Nodes) -> Shape:
    return args[0].shape


@shape(MatrixPower)
def matrix_power_shape(op: MatrixPower, args: Nodes) -> Shape:
    _square("a matrix power", args[0])
    return args[0].shape


@shape(MatrixPowerDerivative)
def matrix_power_derivative_shape(op: MatrixPowerDerivative, args: Nodes) -> Shape:
    return args[0].shape


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
def determinant_jvp(op: Determinant, y: Node, tangents: Tangents) -> Tangent:
    """Jacobi: y_dot = tr(adj(A) A_dot)."""
    from symad.ops.adjugate import adjugate

    (a,), (a_dot,) = y.args, tangents
    return _trace(adjugate(a), a_dot) if isinstance(a_dot, Node) else ZERO


@jvp.dispatch
def log_determinant_jvp(op: LogDeterminant, y: Node, tangents: Tangents) -> Tangent:
    """y_dot = tr(A⁻¹ A_dot)."""
    (a,), (a_dot,) = y.args, tangents
    return _trace(inverse(a), a_dot) if isinstance(a_dot, Node) else ZERO


@jvp.dispatch
def cholesky_jvp(op: Cholesky, y: Node, tangents: Tangents) -> Tangent:
    """L_dot = L Φ(L⁻¹ A_dot L⁻ᵀ), Φ the lower triangle with halved diagonal; A_dot is symmetrised."""
    (a_dot,) = tangents
    if not isinstance(a_dot, Node):
        return ZERO
    symmetric = _symmetric_part_of_lower(a_dot)
    left = triangular_solve(y, symmetric)
    both = triangular_solve(y, matrix_transpose(left))
    from fractions import Fraction

    return matmul(y, Node.of(Triangle(Fraction(1, 2)), (both,)))


def _symmetric_part_of_lower(a: Node) -> Node:
    """The symmetric matrix of which only the lower triangle is read."""
    lower = Node.of(Triangle(1), (a,))
    strict = Node.of(Triangle(0), (a,))
    from symad.ops.arithmetic import add

    return add(lower, matrix_transpose(strict))


@jvp.dispatch
def triangle_jvp(op: Triangle, y: Node, tangents: Tangents) -> Tangent:
    return Node.of(op, tangents) if isinstance(tangents[0], Node) else ZERO  # type: ignore[arg-type]


@jvp.dispatch
def matrix_power_jvp(op: MatrixPower, y: Node, tangents: Tangents) -> Tangent:
    """The Fréchet derivative; the integer exponent has no derivative."""
    a, k = y.args
    return (
        Node.of(MatrixPowerDerivative(), (a, tangents[0], k))
        if isinstance(tangents[0], Node)
        else ZERO
    )


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
def solve_transpose(op: Solve, y: Node, y_bar: Node, linear: Flags) -> Tangents:
    """B_bar = A⁻ᵀ X_bar."""
    return ZERO, solve(matrix_transpose(y.args[0]), y_bar)


@transpose.dispatch
def triangular_solve_transpose(
    op: TriangularSolve, y: Node, y_bar: Node, linear: Flags
) -> Tangents:
    return ZERO, triangular_solve(matrix_transpose(y.args[0]), y_bar, not op.lower)


@transpose.dispatch
def triangle_transpose(op: Triangle, y: Node, y_bar: Node, linear: Flags) -> Tangents:
    return (Node.of(op, (y_bar,)),)


@transpose.dispatch
def matrix_power_derivative_transpose(
    op: MatrixPowerDerivative, y: Node, y_bar: Node, linear: Flags
) -> Tangents:
    """The adjoint is the derivative at Aᵀ (Higham, Functions of Matrices, section 3.2)."""
    a, _, k = y.args
    return ZERO, Node.of(op, (matrix_transpose(a), y_bar, k)), ZERO


@batch.dispatch
def matrix_batch(op: MatrixOp, args: Nodes, batched: Flags, count: Any) -> Node:
    """A stack of matrices is already supported: missing axes are repeated."""
    matrices = [
        arg if not arg.shape else lift(arg, flag, count)
        for arg, flag in zip(args, batched, strict=True)
    ]
    return Node.of(op, tuple(matrices))


# ---- costs and values ---------------------------------------------------------------------------


@flops.dispatch
def solve_flops(op: Solve, y: Node) -> Any:
    """LU: 2n³/3, and 2n² for each right-hand side."""
    n = y.args[0].shape[-1]
    stack = size(y.shape[:-2])
    return stack * (sympy.Rational(2, 3) * n**3 + 2 * n * n * y.shape[-1])


@flops.dispatch
def triangular_solve_flops(op: TriangularSolve, y: Node) -> Any:
    return times(size(y.shape), y.args[0].shape[-1])


@flops.dispatch
def determinant_flops(op: Determinant, y: Node) -> Any:
    return size(y.shape) * sympy.Rational(2, 3) * y.args[0].shape[-1] ** 3


@flops.dispatch
def log_determinant_flops(op: LogDeterminant, y: Node) -> Any:
    return size(y.shape) * sympy.Rational(2, 3) * y.args[0].shape[-1] ** 3


@flops.dispatch
def cholesky_flops(op: Cholesky, y: Node) -> Any:
    return size(y.shape[:-2]) * sympy.Rational(1, 3) * y.shape[-1] ** 3


@flops.dispatch
def triangle_flops(op: Triangle, y: Node) -> Any:
    return 0


@flops.dispatch
def matrix_power_flops(op: MatrixPower, y: Node) -> Any:
    """About 2 log2(k) products; counted as one, since k is not known."""
    return 2 * size(y.shape) * y.shape[-1]


@flops.dispatch
def matrix_power_derivative_flops(op: MatrixPowerDerivative, y: Node) -> Any:
    return 16 * size(y.shape) * y.shape[-1]


@evaluate.dispatch
def solve_evaluate(op: Solve, values: Values) -> Any:
    a, b = values
    if a.dtype == object or b.dtype == object:
        from symad.exact_linalg import solve as exact_solve

        return exact_solve(a, b)
    return np.linalg.solve(a, b)


@evaluate.dispatch
def triangular_solve_evaluate(op: TriangularSolve, values: Values) -> Any:
    a, b = values
    triangle = np.tril(a) if op.lower else np.triu(a)
    return solve_evaluate(Solve(), (triangle, b))


@evaluate.dispatch
def determinant_evaluate(op: Determinant, values: Values) -> Any:
    if values[0].dtype == object:
        from symad.exact_linalg import determinant as exact_determinant

        return exact_determinant(values[0])
    return np.linalg.det(values[0])


@evaluate.dispatch
def log_determinant_evaluate(op: LogDeterminant, values: Values) -> Any:
    from symad.values import apply

    if values[0].dtype == object:
        return apply(sympy.log, (determinant_evaluate(Determinant(), values),))
    sign, logarithm = np.linalg.slogdet(values[0])
    return np.where(sign < 0, np.nan, logarithm)[()]


@evaluate.dispatch
def cholesky_evaluate(op: Cholesky, values: Values) -> Any:
    if values[0].dtype == object:
        from symad.exact_linalg import cholesky as exact_cholesky

        return exact_cholesky(values[0])
    return np.linalg.cholesky(values[0])


@evaluate.dispatch
def triangle_evaluate(op: Triangle, values: Values) -> Any:
    (a,) = values
    n = a.shape[-1]
    lower = np.tril(a, -1)
    diagonal = a[..., range(n), range(n)] * (
        op.diagonal if a.dtype == object else float(op.diagonal)
    )
    result = lower.astype(diagonal.dtype)
    result[..., range(n), range(n)] = diagonal
    return result


@evaluate.dispatch
def matrix_power_evaluate(op: MatrixPower, values: Values) -> Any:
    a, k = values
    while hasattr(k, "tangent"):  # an exponent has no derivative
        k = k.value
    exponent = int(k)
    if exponent != k:
        raise ShapeError(f"a matrix power needs an integer exponent, not {k}")
    if a.dtype == object:
        from symad.exact_linalg import power as exact_power

        return exact_power(a, exponent)
    return np.linalg.matrix_power(a, exponent)


@evaluate.dispatch
def matrix_power_derivative_evaluate(op: MatrixPowerDerivative, values: Values) -> Any:
    a, e, k = values
    n = a.shape[-1]
    top = np.concatenate([a, e], -1)
    block = np.concatenate([top, np.concatenate([np.zeros_like(a), a], -1)], -2)
    return matrix_power_evaluate(MatrixPower(), (block, k))[..., :n, n:]


@sympy_form.dispatch
def matrix_sympy(op: MatrixOp, y: Node, forms: Forms) -> Any:
    from symad.tracing.back import array_linalg

    return array_linalg(op, y, forms)


# ---- examples -----------------------------------------------------------------------------------


def _well_conditioned(n: int = 3) -> Node:
    """A + 4I, away from singularity for the tests' arguments in (−1, 1)."""
    a = input_node(sympy.MatrixSymbol("A", n, n), (n, n))
    return sub(a, neg(mul(constant(4), eye(n))))


def _right_hand_side() -> Node:
    return input_node(sympy.MatrixSymbol("B", 3, 2), (3, 2))


@examples(Solve)
def solve_examples() -> list[Node]:
    return [solve(_well_conditioned(), _right_hand_side()), inverse(_well_conditioned())]


@examples(TriangularSolve)
def triangular_solve_examples() -> list[Node]:
    a, b = _well_conditioned(), _right_hand_side()
    return [triangular_solve(a, b), triangular_solve(a, b, lower=False)]


@examples(Determinant)
def determinant_examples() -> list[Node]:
    return [determinant(_well_conditioned())]


@examples(LogDeterminant)
def log_determinant_examples() -> list[Node]:
    return [log_determinant(_well_conditioned())]


@examples(Cholesky)
def cholesky_examples() -> list[Node]:
    return [cholesky(_well_conditioned())]


@examples(Triangle)
def triangle_examples() -> list[Node]:
    return [Node.of(Triangle(1), (_well_conditioned(),))]


@examples(MatrixPower)
def matrix_power_examples() -> list[Node]:
    return [matrix_power(_well_conditioned(), constant(3))]


@examples(MatrixPowerDerivative)
def matrix_power_derivative_examples() -> list[Node]:
    e = input_node(sympy.MatrixSymbol("E", 2, 2), (2, 2))
    return [Node.of(MatrixPowerDerivative(), (_well_conditioned(2), e, constant(3)))]
