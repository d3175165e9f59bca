"""numpy.linalg on proxies."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
import sympy

from symad.core.arrays import ArrayLike, Axis
from symad.core.dims import broadcast_shapes, format_shape, plus
from symad.core.graph import Node
from symad.errors import ShapeError, TraceError
from symad.ops.arrays.reduction import extreme
from symad.ops.arrays.stacking import take
from symad.ops.basic.contraction import matrix_transpose, permute, sum_axes
from symad.ops.basic.shaping import broadcast_to, reshape
from symad.ops.basic.sources import constant
from symad.ops.elementwise.apply import apply
from symad.ops.elementwise.powers import power, sqrt
from symad.ops.elementwise.selection import compare, equal, select
from symad.ops.linalg import solve_det
from symad.ops.linalg.cholesky import cholesky as lower_factor
from symad.ops.linalg.eigen import eigenvalues, eigenvectors, singular_values
from symad.ops.linalg.matrix_power import matrix_power as power_of_matrix
from symad.ops.linalg.slogdet import determinant_sign, log_absolute_determinant
from symad.tracing.cheapest_contraction import Labeled, contract_all
from symad.tracing.from_numpy.functions.joining import diagonal, flip
from symad.tracing.from_numpy.functions.ordering import sort
from symad.tracing.from_numpy.functions.reductions import sum_
from symad.tracing.from_numpy.registry import implements, normal_axes
from symad.tracing.proxies.proxy import Proxy
from symad.tracing.proxies.wrapped import as_node, number


@implements(np.linalg.solve)
def solve(a: ArrayLike, b: ArrayLike) -> Proxy:
    """The solution X of a X = b; stacks of matrices broadcast."""
    matrix, right = number(a), number(b)
    if len(right.shape) == 1 and len(matrix.shape) == 2:
        return Proxy(solve_det.solve(matrix, right))
    vector = len(right.shape) == 1
    if vector:
        right = reshape(right, (right.shape[0], 1))
    lead = broadcast_shapes(matrix.shape[:-2], right.shape[:-2])
    matrix = broadcast_to(matrix, (*lead, *matrix.shape[-2:]))
    right = broadcast_to(right, (*lead, *right.shape[-2:]))
    x = solve_det.solve(matrix, right)
    return Proxy(reshape(x, x.shape[:-1]) if vector else x)


@implements(np.linalg.inv)
def inv(a: ArrayLike) -> Proxy:
    """The inverse."""
    return Proxy(solve_det.inverse(number(a)))


@implements(np.linalg.det)
def det(a: ArrayLike) -> Proxy:
    """The determinant."""
    return Proxy(solve_det.determinant(number(a)))


@implements(np.linalg.slogdet)
def slogdet(a: ArrayLike) -> tuple[Proxy, Proxy]:
    """(sign of det a, log |det a|); the sign is a step function."""
    matrix = number(a)
    return Proxy(determinant_sign(matrix)), Proxy(log_absolute_determinant(matrix))


@implements(np.linalg.cholesky)
def cholesky(a: ArrayLike, *, upper: bool = False) -> Proxy:
    """The lower Cholesky factor, or its transpose."""
    factor = lower_factor(number(a))
    return Proxy(matrix_transpose(factor) if upper else factor)


class EighResult(NamedTuple):
    """The result of np.linalg.eigh."""

    eigenvalues: Proxy
    eigenvectors: Proxy


@implements(np.linalg.eigh)
def eigh(a: ArrayLike, UPLO: str = "L") -> EighResult:
    """Eigenvalues, ascending, and eigenvectors of a symmetric matrix, from one of its triangles."""
    lower = _lower(a, UPLO)
    return EighResult(Proxy(eigenvalues(lower)), Proxy(eigenvectors(lower)))


@implements(np.linalg.eigvalsh)
def eigvalsh(a: ArrayLike, UPLO: str = "L") -> Proxy:
    """The eigenvalues of a symmetric matrix, ascending."""
    return Proxy(eigenvalues(_lower(a, UPLO)))


def _lower(a: ArrayLike, triangle: str) -> Node:
    """The matrix whose lower triangle is the triangle to be read."""
    if str(triangle).upper() not in ("L", "U"):
        raise TraceError(f"np.linalg.eigh(UPLO={triangle!r}) is not defined; use 'L' or 'U'")
    return number(a) if str(triangle).upper() == "L" else matrix_transpose(number(a))


@implements(np.linalg.svd)
def svd(a: ArrayLike, full_matrices: bool = True, compute_uv: bool = True, hermitian: bool = False) -> Proxy:
    """The singular values, descending.

    Raises:
        TraceError: the vectors were requested.
    """
    if compute_uv:
        raise TraceError(
            f"np.linalg.svd(full_matrices={full_matrices}) of traced values gives singular values: "
            "svd(a, compute_uv=False); symad.functions.svd(a) gives (u, s, v) with a = (u * s) @ v.T"
        )
    if hermitian:
        return flip(sort(np.abs(eigvalsh(a))), -1)
    return Proxy(singular_values(number(a)))


@implements(getattr(np.linalg, "svdvals", None))
def svdvals(x: ArrayLike, /) -> Proxy:
    """The singular values, descending."""
    return Proxy(singular_values(number(x)))


@implements(np.linalg.cond)
def cond(x: ArrayLike, p: ArrayLike | None = None) -> Proxy:
    """The condition number: the ratio of the largest to the smallest singular value, or |A| |A⁻¹|."""
    if p in (None, 2):
        values: Any = Proxy(singular_values(number(x)))
        return values[..., 0] / values[..., -1]
    return norm(x, p, (-2, -1)) * norm(inv(x), p, (-2, -1))


@implements(np.linalg.matrix_power)
def matrix_power(a: ArrayLike, n: int) -> Proxy:
    """The product of n factors a; the inverse's for negative n."""
    return Proxy(power_of_matrix(number(a), int(n)))


@implements(np.linalg.norm)
def norm(x: ArrayLike, ord: Any = None, axis: Axis = None, keepdims: bool = False) -> Proxy:
    """Vector norms 1, 2, inf, −inf, any other number p, and 0, the number of elements that are not 0.

    Matrix norms fro, nuc, ±1, ±2, ±inf.

    The Euclidean norm has no derivative at 0; there it is defined as 0.
    """
    node = number(x)
    axes = normal_axes(axis, len(node.shape))
    if len(axes) == 1 or ord is None or ord == "fro":
        y = _vector_norm(node, axes, 2 if ord in (None, "fro") else ord)
    elif len(axes) == 2:
        y = _matrix_norm(node, axes, ord)
    else:
        raise TraceError(f"np.linalg.norm(ord={ord!r}) of a traced value with {len(axes)} axes; give axis")
    shape = tuple(1 if k in axes else d for k, d in enumerate(node.shape))
    return Proxy(reshape(y, shape) if keepdims else y)


def _vector_norm(node: Node, axes: tuple[int, ...], order: float) -> Node:
    if order == 2:
        squares = sum_axes(power(node, constant(2)), axes)
        return select(equal(squares, constant(0)), constant(0), sqrt(squares))
    absolute = apply(sympy.Abs, node)
    if order == 0:
        return sum_axes(number(Proxy(compare("!=", node, constant(0)))), axes)
    if order == 1:
        return sum_axes(absolute, axes)
    if order in (np.inf, -np.inf):
        return extreme("max" if order > 0 else "min", absolute, axes)
    total = sum_axes(power(absolute, constant(order)), axes)
    return power(total, constant(1 / Fraction(float(order))))


def _matrix_norm(node: Node, axes: tuple[int, ...], order: float | str) -> Node:
    """The largest (smallest) column sum for 1 (−1), row sum for inf (−inf), singular value for 2 (−2)."""
    if order in (2, -2, "nuc"):
        rest = [k for k in range(len(node.shape)) if k not in axes]
        values = singular_values(permute(node, (*rest, *axes)))
        last = len(values.shape) - 1
        if order == "nuc":
            return sum_axes(values, (last,))
        return take(values, last, 0 if order == 2 else plus(values.shape[last], -1))
    if order not in (1, -1, np.inf, -np.inf):
        raise TraceError(
            f"np.linalg.norm(ord={order!r}) of a matrix is not defined; use 'fro', 'nuc', 1, 2 or inf"
        )
    summed = axes[0] if order in (1, -1) else axes[1]
    sums = sum_axes(apply(sympy.Abs, node), (summed,))
    other = axes[1] if order in (1, -1) else axes[0]
    return extreme("max" if order > 0 else "min", sums, (other - (other > summed),))


@implements(getattr(np.linalg, "vector_norm", None))
def vector_norm(x: ArrayLike, /, *, axis: Axis = None, keepdims: bool = False, ord: float = 2) -> Proxy:
    """The norm of all elements, or along some axes."""
    node = number(x)
    axes = normal_axes(axis, len(node.shape))
    y = _vector_norm(node, axes, ord)
    shape = tuple(1 if k in axes else d for k, d in enumerate(node.shape))
    return Proxy(reshape(y, shape) if keepdims else y)


@implements(getattr(np.linalg, "matrix_norm", None))
def matrix_norm(x: ArrayLike, /, *, keepdims: bool = False, ord: str | float = "fro") -> Proxy:
    """The norm over the last two axes."""
    return norm(x, ord, (-2, -1), keepdims)


@implements(np.linalg.multi_dot)
def multi_dot(arrays: Sequence[ArrayLike]) -> Proxy:
    """The product of matrices, in the order of fewest operations."""
    nodes = [number(a) for a in arrays]
    labels: list[tuple[int, ...]] = [(k, k + 1) for k in range(len(nodes))]
    if len(nodes[0].shape) == 1:
        labels[0] = labels[0][1:]
    if len(nodes[-1].shape) == 1:
        labels[-1] = labels[-1][:1]
    wrong = [n for n, own in zip(nodes, labels, strict=True) if len(n.shape) != len(own)]
    if len(nodes) < 2 or wrong:
        shapes = ", ".join(format_shape(n.shape) for n in nodes)
        raise ShapeError(f"np.linalg.multi_dot takes matrices, a vector first or last, not shapes {shapes}")
    factors = [Labeled(n, own) for n, own in zip(nodes, labels, strict=True)]
    ends = [k for k in (0, len(nodes)) if k in labels[0] or k in labels[-1]]
    return Proxy(contract_all(factors, ends))


@implements(getattr(np.linalg, "diagonal", None))
def diagonal_(x: ArrayLike, /, *, offset: int = 0) -> Proxy:
    """A diagonal of the last two axes."""
    return diagonal(x, offset, -2, -1)


@implements(getattr(np.linalg, "trace", None))
def trace_(x: ArrayLike, /, *, offset: int = 0) -> Proxy:
    """The sum of a diagonal of the last two axes."""
    return sum_(diagonal(x, offset, -2, -1), -1)


@implements(getattr(np.linalg, "matrix_transpose", None), getattr(np, "matrix_transpose", None))
def transpose_last(x: ArrayLike, /) -> Proxy:
    """The last two axes swapped."""
    return Proxy(matrix_transpose(as_node(x)))
