"""Kernels: similarities k(x, y) that are scalar products of features.

A kernel here is a SymPy expression in the symbols `r2` = |x − y|², `inner` = ⟨x, y⟩ and its own
parameters; sums and products of kernels are sums and products of expressions, and a user's kernel is
one more expression. `gram` evaluates it on two sets of points, in NumPy or in a traced function.

Sources: Rasmussen and Williams, "Gaussian Processes for Machine Learning" (2006), chapter 4;
Schölkopf and Smola, "Learning with Kernels" (2002), section 2.1 for the polynomial feature map.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from math import comb, factorial, prod

import numpy as np
import sympy

from symad.core.arrays import Array
from symad.core.graph import Graph
from symad.errors import ShapeError, SymadError
from symad.models.layers.options import refuse_complex
from symad.tracing import trace
from symad.tracing.proxies.proxy import Proxy
from symad.tracing.proxies.wrapped import number

r2 = sympy.Symbol("r2", nonnegative=True)
"""|x − y|²."""
inner = sympy.Symbol("inner", real=True)
"""⟨x, y⟩."""

variance, length, alpha, period, offset = sympy.symbols("variance length alpha period offset", positive=True)


def rbf() -> sympy.Expr:
    """exp(−|x − y|²/(2ℓ²))."""
    return sympy.exp(-r2 / (2 * length**2))


def matern(nu: sympy.Expr) -> sympy.Expr:
    """The Matérn kernel of smoothness 1/2, 3/2 or 5/2 (equations 4.16, 4.17), by `at_equal_points`."""
    distance, s = sympy.sqrt(r2) / length, r2 / length**2
    forms = {
        sympy.Rational(1, 2): (sympy.exp(-distance), sympy.S.One),
        sympy.Rational(3, 2): (
            (1 + sympy.sqrt(3) * distance) * sympy.exp(-sympy.sqrt(3) * distance),
            1 - 3 * s / 2,
        ),
        sympy.Rational(5, 2): (
            (1 + sympy.sqrt(5) * distance + 5 * s / 3) * sympy.exp(-sympy.sqrt(5) * distance),
            1 - 5 * s / 6 + 25 * s**2 / 24,
        ),
    }
    chosen = forms.get(sympy.nsimplify(nu))
    if chosen is None:
        raise SymadError(f"matern has smoothness 1/2, 3/2 or 5/2 here, not {nu}")
    return at_equal_points(*chosen)


def at_equal_points(elsewhere: sympy.Expr, series: sympy.Expr) -> sympy.Expr:
    """``elsewhere`` for different points, its Taylor series in r2 at equal ones.

    The root of r2 has no derivative at 0, but a kernel that is smooth in the points has one, which the series
    gives: gradients and Hessians by coordinates are then correct at equal points too. Without a series, as
    for the kink of the Matérn kernel of smoothness 1/2, the derivative at equal points is 0, like that of
    |x|.
    """
    return sympy.Piecewise((elsewhere, r2 > 0), (series, True))


def laplace() -> sympy.Expr:
    """exp(−|x − y|/ℓ), with the Euclidean distance: the Matérn kernel of smoothness 1/2."""
    return matern(sympy.Rational(1, 2))


def periodic() -> sympy.Expr:
    """exp(−2 sin²(π|x − y|/p)/ℓ²) (equation 4.31): a kernel on the line only, which `gram` checks.

    For several coordinates multiply the kernel matrices of each: exp(−2 Σ_d sin²(π|x_d − y_d|/p)/ℓ²)
    (MacKay, "Introduction to Gaussian processes", 1998).
    """
    s = sympy.pi**2 * r2 / period**2
    sine = at_equal_points(sympy.sin(sympy.pi * sympy.sqrt(r2) / period) ** 2, s - s**2 / 3)
    return sympy.exp(-2 * sine / length**2)


def rational_quadratic() -> sympy.Expr:
    """(1 + |x − y|²/(2αℓ²))^(−α) (equation 4.19)."""
    return (1 + r2 / (2 * alpha * length**2)) ** (-alpha)


def linear() -> sympy.Expr:
    """⟨x, y⟩ + c."""
    return inner + offset


def polynomial(degree: int) -> sympy.Expr:
    """⟨x, y⟩^d."""
    return inner**degree


# ---- kernel matrices ------------------------------------------------------------------------------


def gram(
    kernel: sympy.Expr,
    xs: Array,
    ys: Array | None = None,
    parameters: Mapping[sympy.Symbol, Array | float] | None = None,
) -> Array:
    """The kernel matrix K_ij = k(x_i, y_j).

    Args:
        kernel: an expression in `r2`, `inner` and parameters.
        xs: (N, D) points.
        ys: (M, D) points; ``xs`` by default.
        parameters: values of the other symbols, by symbol.

    Returns:
        (N, M) array; inside a traced function a traced value.

    Raises:
        ShapeError: the points have different dimensions.
        SymadError: a symbol of the kernel has no value, or one that its assumptions exclude, such as a
            length of 0; the message names it. Or the kernel contains the periodic one and D > 1.
    """
    if waves(kernel) and len(xs.shape) == 2 and xs.shape[1] not in (0, 1) and isinstance(xs.shape[1], int):
        raise SymadError(
            f"a kernel periodic in the distance, by {', '.join(map(str, waves(kernel)))}, is one on the line "
            f"only, but the points have {xs.shape[1]} coordinates: give one of them, xs[:, :1], or multiply "
            "the kernel matrices of the coordinates"
        )
    return _matrix(kernel, xs, ys, parameters)


def waves(kernel: sympy.Expr) -> list[sympy.Expr]:
    """The terms sin²(c|x − y|) of a kernel; with them it is not a kernel in more than one dimension."""
    found = (p for p in kernel.atoms(sympy.Pow) if p.exp == 2 and isinstance(p.base, sympy.sin))
    return sorted((p for p in found if r2 in p.free_symbols), key=str)


def _matrix(
    kernel: sympy.Expr, xs: Array, ys: Array | None, parameters: Mapping[sympy.Symbol, Array | float] | None
) -> Array:
    """The kernel matrix of `gram`, without the check for periodic kernels."""
    refuse_complex(f"the kernel {kernel}", xs, ys)
    values = dict(parameters or {})
    for symbol, value in values.items():
        if getattr(symbol, "is_positive", False) and isinstance(value, (int, float)) and not value > 0:
            raise SymadError(f"{symbol} of the kernel {kernel} is positive, but was given {value}")
    missing = kernel.free_symbols - {r2, inner} - values.keys()
    if missing:
        raise SymadError(f"the kernel {kernel} needs values for {', '.join(sorted(map(str, missing)))}")
    ys = xs if ys is None else ys
    if len(xs.shape) != 2 or len(ys.shape) != 2 or xs.shape[1] != ys.shape[1]:
        raise ShapeError(f"gram needs points (N, D) and (M, D), not {xs.shape} and {ys.shape}")
    products = xs @ ys.T
    if not any(isinstance(v, Proxy) for v in (xs, ys, *values.values())):
        from scipy.spatial.distance import cdist

        graph = _graph(kernel)
        point = {r2: cdist(xs, ys, "sqeuclidean"), inner: products, **values}
        return np.broadcast_to(graph(*[point[s] for s in graph.inputs]), products.shape).copy()
    # From differences, though squares and products need less memory: exact at equal points, in every order.
    apart = xs[:, None, :] - ys[None, :, :]
    distances = (apart * apart).sum(axis=2)
    return _apply_traced(kernel, {r2: distances, inner: products, **values})


@cache
def _graph(kernel: sympy.Expr) -> Graph:
    return trace(kernel)


def _apply_traced(kernel: sympy.Expr, point: Mapping[sympy.Symbol, Array]) -> Proxy:
    from symad.core.graph import rebuild
    from symad.ops.basic.shaping import broadcast_to

    graph = _graph(kernel)
    nodes = [number(point[s]) for s in graph.inputs]
    (made,) = rebuild(graph.output_nodes, dict(zip(graph.input_nodes, nodes, strict=True)))
    return Proxy(broadcast_to(made, number(point[r2]).shape))


def smallest_eigenvalue(matrix: Array) -> float:
    """The smallest eigenvalue of a symmetric matrix: at least 0 for a kernel, up to rounding."""
    return float(np.linalg.eigvalsh(np.asarray(matrix))[0])


def is_kernel_on(
    kernel: sympy.Expr, xs: Array, parameters: Mapping[sympy.Symbol, float] | None = None
) -> bool:
    """True if the kernel matrix of these points is positive semidefinite, up to rounding."""
    matrix = _matrix(kernel, xs, None, parameters)
    return smallest_eigenvalue(matrix) >= -1e-10 * max(1.0, float(np.abs(matrix).max()))


# ---- feature maps ---------------------------------------------------------------------------------


def multi_indices(n: int, degree: int) -> list[tuple[int, ...]]:
    """All exponents (e_1, ..., e_n) with Σ e = degree: C(n + d − 1, d) of them."""
    if n == 1:
        return [(degree,)]
    return [(k, *rest) for k in range(degree, -1, -1) for rest in multi_indices(n - 1, degree - k)]


def polynomial_features(x: list[sympy.Expr], degree: int) -> sympy.Matrix:
    """φ(x) with ⟨φ(x), φ(y)⟩ = ⟨x, y⟩^d: √(d!/Π e_i!) Π x_i^e_i for every exponent e."""
    entries = []
    for exponents in multi_indices(len(x), degree):
        count = sympy.Integer(factorial(degree) // prod(factorial(e) for e in exponents))
        entries.append(sympy.sqrt(count) * sympy.Mul(*[v**e for v, e in zip(x, exponents, strict=True)]))
    return sympy.Matrix(entries)


def feature_dimension(n: int, degree: int) -> int:
    """C(n + d − 1, d)."""
    return comb(n + degree - 1, degree)


def reconstruct(matrix: Array) -> np.ndarray:
    """Points (N, rank), one a row, whose scalar products are the kernel matrix.

    Every rotation of them gives the same matrix; these are its eigenvectors times the square roots of
    its eigenvalues, which also works for singular matrices.

    Raises:
        SymadError: the matrix has an eigenvalue below 0 by more than rounding; the message gives it.
    """
    values, vectors = np.linalg.eigh(np.asarray(matrix, dtype=np.float64))
    floor = 1e-10 * max(1.0, abs(values[-1]))
    if values[0] < -floor:
        raise SymadError(
            f"the matrix is not a kernel matrix: its smallest eigenvalue is {values[0]:.3e}; add at least "
            "that much to its diagonal (jitter), or use a positive semidefinite kernel"
        )
    kept = values > floor
    points: np.ndarray = vectors[:, kept] * np.sqrt(values[kept])
    return points
