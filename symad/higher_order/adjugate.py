"""The adjugate, the derivative of a determinant, which exists at singular matrices too.

    ∂ det A / ∂A = adj(A)ᵀ,  adj(A) A = det(A) I

With A = U Σ Vᵀ, adj(A) = det(U Vᵀ) V adj(Σ) Uᵀ, and adj(Σ) holds products of all singular values but
one: no division, so nothing is lost where det A = 0 (Stewart, "On the adjugate matrix", Linear Algebra
Appl. 283, 1998, section 3). The derivative of adj(Σ) holds products of all but two.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import sympy

from symad.core.dims import Shape
from symad.core.graph import ZERO, Node, rebuild, shape
from symad.core.questions import (
    Array,
    Count,
    Flags,
    Nodes,
    Tangent,
    Tangents,
    Values,
    definition,
    evaluate,
    flops,
    jvp,
    transpose,
)
from symad.numbers.values import unchecked
from symad.ops.basic.arithmetic import add_tangents, mul, sub
from symad.ops.basic.contraction import contract, matmul, matrix_transpose
from symad.ops.basic.shaping import broadcast_axes
from symad.ops.basic.sources import constant, eye, fresh_input
from symad.ops.linalg.solve_det import Determinant, MatrixOp, _trace, determinant, inverse
from symad.transforms.tangents import dense, push


@dataclass(frozen=True, eq=False)
class Adjugate(MatrixOp):
    """adj(A) of A (..., n, n)."""

    total = True


@dataclass(frozen=True, eq=False)
class AdjugateTangent(MatrixOp):
    """The derivative of adj at A in direction E, both (..., n, n). Linear in E."""

    total = True


def adjugate(a: Node) -> Node:
    """The transposed matrix of cofactors."""
    return Node.of(Adjugate(), (a,))


def trace_of(a: Node) -> Node:
    """tr A over the last two axes."""
    lead = range(2, len(a.shape))
    return contract([[*lead, 0, 0]], list(lead), a)


def times_scalar(s: Node, a: Node) -> Node:
    """A stack of scalars times the stack of matrices."""
    return mul(broadcast_axes(s, a.shape, tuple(range(len(s.shape)))) if s.shape else s, a)


def polynomial_adjugate(a: Node) -> Node:
    """adj(A) = (−1)ⁿ⁻¹ M_n with M_1 = I, M_{k+1} = A M_k − tr(A M_k)/k · I (Faddeev and Le Verrier).

    Exact if the arithmetic is exact, and differentiable to any order, but digits cancel for large n.
    """
    n = int(a.shape[-1])
    identity = broadcast_axes(eye(n), a.shape, (len(a.shape) - 2, len(a.shape) - 1))
    m = identity
    for k in range(1, n):
        product = matmul(a, m)
        m = sub(product, times_scalar(mul(constant(Fraction(1, k)), trace_of(product)), identity))
    return m if n % 2 else mul(constant(-1), m)


@shape(Adjugate)
def adjugate_shape(op: Adjugate, args: Nodes) -> Shape:
    determinant(args[0])  # checks that it is square
    return args[0].shape


@shape(AdjugateTangent)
def adjugate_tangent_shape(op: AdjugateTangent, args: Nodes) -> Shape:
    return args[0].shape


@jvp.dispatch
def adjugate_jvp(op: Adjugate, y: Node, tangents: Tangents) -> Tangent:
    (a_dot,) = tangents
    return Node.of(AdjugateTangent(), (y.args[0], a_dot)) if isinstance(a_dot, Node) else ZERO


@jvp.dispatch
def adjugate_tangent_jvp(op: AdjugateTangent, y: Node, tangents: Tangents) -> Tangent:
    """The op itself along E; the polynomial along A, or the definition if n is a symbol."""
    (a, e), (a_dot, e_dot) = y.args, tangents
    parts: list[Tangent] = [Node.of(op, (a, e_dot)) if isinstance(e_dot, Node) else ZERO]
    if isinstance(a_dot, Node):
        point, direction = fresh_input(a.shape), fresh_input(e.shape)
        if isinstance(a.shape[-1], int):
            first = push([polynomial_adjugate(point)], {point: direction})
        else:
            first = [definition(op, Node.of(op, (point, direction)))]
        second = push([f for f in first if isinstance(f, Node)], {point: a_dot})
        parts += [rebuild([s], {point: a, direction: e})[0] for s in second if isinstance(s, Node)]
    return add_tangents(parts)


@transpose.dispatch
def adjugate_tangent_transpose(op: AdjugateTangent, y: Node, y_bar: Node, linear: Flags) -> Tangents:
    """E_bar = (∂adj(A)[y_barᵀ])ᵀ: the second derivative of the determinant is symmetric."""
    return ZERO, matrix_transpose(Node.of(op, (y.args[0], matrix_transpose(y_bar))))


@definition.dispatch
def adjugate_definition(op: Adjugate, y: Node) -> Node:
    """det(A) A⁻¹, for invertible A; both sides are polynomials, so that identities hold for every A."""
    (a,) = y.args
    return times_scalar(determinant(a), inverse(a))


@definition.dispatch
def adjugate_tangent_definition(op: AdjugateTangent, y: Node) -> Node:
    """adj(A) tr(A⁻¹ E) − A⁻¹ E adj(A), for invertible A."""
    a, e = y.args
    moved, whole = matmul(inverse(a), e), times_scalar(determinant(a), inverse(a))
    return sub(times_scalar(trace_of(moved), whole), matmul(moved, whole))


@flops.dispatch
def adjugate_flops(op: Adjugate, y: Node) -> Count:
    """A singular value decomposition, about 22 n³ (Golub and Van Loan, section 8.6.3), and two products."""
    return 26 * sympy.prod(y.shape) * y.shape[-1]


@flops.dispatch
def adjugate_tangent_flops(op: AdjugateTangent, y: Node) -> Count:
    return 33 * sympy.prod(y.shape) * y.shape[-1]


@evaluate.dispatch
def adjugate_evaluate(op: Adjugate, values: Values) -> Array:
    (a,) = values
    if a.dtype == object:
        return _exactly(polynomial_adjugate, a)
    return adjugate_of(a)


@evaluate.dispatch
def adjugate_tangent_evaluate(op: AdjugateTangent, values: Values) -> Array:
    a, e = values
    if a.dtype != object and e.dtype != object:
        return adjugate_tangent_of(a, e)

    def derivative(point: Node, direction: Node) -> Node:
        return dense(push([polynomial_adjugate(point)], {point: direction})[0], direction)

    return _exactly(derivative, a, e)


def _exactly(make: Callable[..., Node], *values: Array) -> Array:
    """The polynomial on exact or high-precision numbers."""
    points = [fresh_input(v.shape) for v in values]
    return np.asarray(unchecked([make(*points)], dict(zip(points, values, strict=True)))[0])


def products_without(s: Array) -> Array:
    """Π_{k≠i} s_k for each i along the last axis."""
    ones = np.ones_like(s[..., :1])
    before = np.cumprod(np.concatenate([ones, s[..., :-1]], axis=-1), axis=-1)
    after = np.cumprod(np.concatenate([ones, s[..., :0:-1]], axis=-1), axis=-1)[..., ::-1]
    return before * after


def singular_values(a: Array) -> tuple[Array, Array, Array]:
    """U, s and Vᵀ where A = U diag(s) Vᵀ; s is NaN for infinities and NaN, for which LAPACK may never end."""
    finite = np.asarray(np.isfinite(a).all(axis=(-2, -1)))
    u, s, vt = np.linalg.svd(np.where(finite[..., None, None], a, 0))
    return u, np.where(finite[..., None], s, np.nan).astype(s.dtype), vt


def adjugate_of(a: Array) -> Array:
    """adj(A) in floating point."""
    u, s, vt = singular_values(a)
    sign = np.round(np.linalg.det(u) * np.linalg.det(vt))[..., None, None]
    inner = products_without(s)[..., None]
    return sign * np.swapaxes(vt, -1, -2) @ (inner * np.swapaxes(u, -1, -2))


def adjugate_tangent_of(a: Array, e: Array) -> Array:
    """The derivative of adj(A) in direction E in floating point."""
    u, s, vt = singular_values(a)
    sign = np.round(np.linalg.det(u) * np.linalg.det(vt))[..., None, None]
    diagonal = np.eye(s.shape[-1], dtype=s.dtype)
    pairs = products_without(s[..., None, :] * (1 - diagonal) + diagonal) * (1 - diagonal)
    moved = np.swapaxes(u, -1, -2) @ e @ np.swapaxes(vt, -1, -2)
    traces = pairs @ (moved * diagonal).sum(axis=-1)[..., None]
    inner = diagonal * traces - pairs * moved
    return sign * np.swapaxes(vt, -1, -2) @ inner @ np.swapaxes(u, -1, -2)


@jvp.dispatch
def determinant_jvp(op: Determinant, y: Node, tangents: Tangents) -> Tangent:
    """Jacobi: y_dot = tr(adj(A) A_dot)."""
    (a,), (a_dot,) = y.args, tangents
    return _trace(adjugate(a), a_dot) if isinstance(a_dot, Node) else ZERO
