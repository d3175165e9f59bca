"""Kernels with scikit-learn's names and parameters, their sums, products and powers, in D dimensions.

    ConstantKernel c;  WhiteKernel ν 1[x is y];  Matern;  RationalQuadratic (1 + r²/(2αℓ²))^(−α);
    RBF exp(−½ Σ_d (x_d − y_d)²/ℓ_d²), one ℓ or one for each d (ARD);
    DotProduct ⟨x, y⟩ + σ₀²;  Polynomial (γ⟨x, y⟩ + c)^d;
    ExpSineSquared exp(−2 sin²(π|x − y|/p)/ℓ²) on the line;
    Periodic exp(−2 Σ_d sin²(π(x_d − y_d)/p)/ℓ²).

`Periodic` is RBF on circles and therefore a kernel in every dimension, unlike that of the distance.
All parameters are positive; fits use the vector θ of their logarithms in scikit-learn's order. A
kernel is called with points (N, D) and (M, D), arrays or traced values, and returns the matrix (N, M).
Sources: Rasmussen & Williams (2006), section 4.2; MacKay (1998), equation 47, for the periodic one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import sympy

from symad.core.arrays import Array
from symad.core.dims import format_shape, same_dim
from symad.core.given import earlier_names
from symad.errors import ShapeError, SymadError
from symad.functions import concatenate, eye
from symad.models.generative import kernels
from symad.models.generative.gaussian_process import log_density
from symad.models.layers.options import refuse_complex

Matrix = Callable[[Array, Array, "Array | None"], Array]
"""(parameters (P,), xs, ys or None) -> (N, M)."""


@dataclass(frozen=True)
class NamedKernel:
    """A kernel: the values of its parameters, and its matrix as a function of them."""

    values: tuple[float, ...]
    matrix: Matrix

    def __post_init__(self) -> None:
        if any(not value > 0 for value in self.values):
            raise SymadError(f"the parameters of a kernel are positive, not {self.values}")

    @property
    def theta(self) -> np.ndarray:
        """The logarithms of the parameters, (P,)."""
        return np.log(np.array(self.values))

    def __call__(self, xs: Array, ys: Array | None = None, theta: Array | None = None) -> Array:
        """K_ij = k(x_i, y_j), (N, M); without ``ys`` for the points with themselves."""
        refuse_complex("a kernel", xs, ys, theta)
        count = len(self.values)
        if theta is not None and tuple(theta.shape) != (count,):
            raise SymadError(
                f"theta has the shape {tuple(theta.shape)}, but the kernel has {count} parameters"
            )
        return self.matrix(np.array(self.values) if theta is None else np.exp(theta), xs, ys)

    def __add__(self, other: NamedKernel) -> NamedKernel:
        """The sum of the matrices; a number is a `ConstantKernel`."""
        return self._joined(other, lambda a, b: a + b)

    def __mul__(self, other: NamedKernel) -> NamedKernel:
        """The product of the matrices, element by element."""
        return self._joined(other, lambda a, b: a * b)

    def __radd__(self, other: float) -> NamedKernel:
        """The sum for a number as the left operand."""
        return ConstantKernel(other) + self

    def __rmul__(self, other: float) -> NamedKernel:
        """The product for a number as the left operand."""
        return ConstantKernel(other) * self

    def __pow__(self, exponent: int) -> NamedKernel:
        """The elementwise power by a positive integer, which is a product of kernels."""
        if not isinstance(exponent, int) or exponent < 1:
            raise SymadError(f"a kernel to the power of {exponent!r}: give an integer of at least 1")
        return NamedKernel(self.values, lambda v, xs, ys: self.matrix(v, xs, ys) ** exponent)

    def _joined(self, other: NamedKernel, join: Callable[[Array, Array], Array]) -> NamedKernel:
        second = other if isinstance(other, NamedKernel) else ConstantKernel(other)
        count = len(self.values)

        def matrix(v: Array, xs: Array, ys: Array | None) -> Array:
            return join(self.matrix(v[:count], xs, ys), second.matrix(v[count:], xs, ys))

        return NamedKernel((*self.values, *second.values), matrix)


def ConstantKernel(constant_value: float = 1.0) -> NamedKernel:
    """c for every pair."""
    return NamedKernel(
        (float(constant_value),), lambda v, xs, ys: v[0] + 0.0 * (xs @ (xs if ys is None else ys).T)
    )


def WhiteKernel(noise_level: float = 1.0) -> NamedKernel:
    """ν on the diagonal of a matrix of points with themselves, 0 elsewhere."""

    def matrix(v: Array, xs: Array, ys: Array | None) -> Array:
        return v[0] * eye(xs.shape[0]) if ys is None else 0.0 * (xs @ ys.T)

    return NamedKernel((float(noise_level),), matrix)


def _of(expression: sympy.Expr, symbols: Sequence[sympy.Symbol]) -> Matrix:
    """The matrix of an expression in r2, inner and these symbols."""
    return lambda v, xs, ys: kernels.gram(expression, xs, ys, {s: v[k] for k, s in enumerate(symbols)})


def _scaled(expression: sympy.Expr, length_scale: sympy.Expr | float) -> NamedKernel:
    """A kernel of |x − y|/ℓ, with one length or one for each coordinate."""
    lengths = tuple(float(v) for v in np.atleast_1d(length_scale))
    unit = expression.subs(kernels.length, 1)

    def matrix(v: Array, xs: Array, ys: Array | None) -> Array:
        if len(lengths) > 1 and xs.shape[1] != len(lengths):
            raise SymadError(f"{len(lengths)} lengths for points of {xs.shape[1]} coordinates")
        scale = v if len(lengths) > 1 else v[0]
        return kernels.gram(unit, xs / scale, None if ys is None else ys / scale)

    return NamedKernel(lengths, matrix)


def RBF(length_scale: sympy.Expr | float = 1.0) -> NamedKernel:
    """The squared exponential; several lengths belong to the coordinates."""
    return _scaled(kernels.rbf(), length_scale)


def Matern(length_scale: sympy.Expr | float = 1.0, nu: float = 1.5) -> NamedKernel:
    """Smoothness 0.5, 1.5, 2.5."""
    return _scaled(kernels.matern(sympy.nsimplify(nu)), length_scale)


def RationalQuadratic(length_scale: float = 1.0, alpha: float = 1.0) -> NamedKernel:
    """θ is (log α, log ℓ)."""
    if np.ndim(length_scale):
        raise SymadError(f"RationalQuadratic has one length, as in scikit-learn, not {length_scale}")
    matrix = _of(kernels.rational_quadratic(), (kernels.alpha, kernels.length))
    return NamedKernel((float(alpha), float(length_scale)), matrix)


def ExpSineSquared(length_scale: float = 1.0, periodicity: float = 1.0) -> NamedKernel:
    """Periodic in the distance: on the line only; see `Periodic`."""
    return NamedKernel(
        (float(length_scale), float(periodicity)), _of(kernels.periodic(), (kernels.length, kernels.period))
    )


def Periodic(length_scale: float = 1.0, periodicity: float = 1.0) -> NamedKernel:
    """Periodic in every coordinate: RBF of (cos 2πx_d/p, sin 2πx_d/p), d = 1..D."""

    def circles(x: Array, p: Array) -> Array:
        angles = 2 * np.pi * x / p
        return concatenate([np.cos(angles), np.sin(angles)], axis=1)

    def matrix(v: Array, xs: Array, ys: Array | None) -> Array:
        others = None if ys is None else circles(ys, v[1])
        return kernels.gram(kernels.rbf(), circles(xs, v[1]), others, {kernels.length: v[0]})

    return NamedKernel((float(length_scale), float(periodicity)), matrix)


def DotProduct(sigma_0: float = 1.0) -> NamedKernel:
    """⟨x, y⟩ + σ₀²."""
    return NamedKernel((float(sigma_0),), lambda v, xs, ys: xs @ (xs if ys is None else ys).T + v[0] ** 2)


def Polynomial(degree: int = 3, gamma: float = 1.0, coef0: float = 1.0) -> NamedKernel:
    """(γ⟨x, y⟩ + c)^d, scikit-learn's ``polynomial_kernel``; θ is (log γ, log c)."""
    if not isinstance(degree, int) or degree < 1:
        raise SymadError(f"degree={degree!r} is not an integer of at least 1")
    return NamedKernel(
        (float(gamma), float(coef0)),
        lambda v, xs, ys: (v[0] * (xs @ (xs if ys is None else ys).T) + v[1]) ** degree,
    )


# ---- regression, in arrays or traced --------------------------------------------------------------


def log_marginal_likelihood(
    kernel: NamedKernel, theta: Array, xs: Array, y: Array, jitter: float = 1e-10
) -> Array:
    """log p(y) of a Gaussian process with this kernel; ``jitter`` is added to the diagonal."""
    _check_targets(xs, y)
    return log_density(kernel(xs, None, theta) + jitter * eye(xs.shape[0]), y)


def posterior(
    kernel: NamedKernel, theta: Array, xs: Array, y: Array, new: Array, jitter: float = 1e-10
) -> tuple[Array, Array]:
    """Mean (M,) and covariance (M, M) at the points ``new`` (M, D), given y (N,) at xs."""
    _check_targets(xs, y)
    matrix = kernel(xs, None, theta) + jitter * eye(xs.shape[0])
    cross = kernel(xs, new, theta)
    both = np.linalg.solve(matrix, cross)
    return both.T @ y, kernel(new, None, theta) - cross.T @ both


def kernel_ridge(
    kernel: NamedKernel, theta: Array, penalty: Array | float, xs: Array, y: Array, new: Array
) -> Array:
    """The predictions k(new, xs) (K + λI)⁻¹ y of kernel ridge regression: (M,) or (M, T)."""
    _check_targets(xs, y)
    weights = np.linalg.solve(kernel(xs, None, theta) + penalty * eye(xs.shape[0]), y)
    return kernel(new, xs, theta) @ weights


def _check_targets(xs: Array, y: Array) -> None:
    refuse_complex("a regression", y)
    if not y.shape or not same_dim(y.shape[0], xs.shape[0]):
        raise ShapeError(
            f"points {format_shape(xs.shape)} need one target for each, not {format_shape(y.shape)}"
        )


__getattr__ = earlier_names(__name__, Kernel="NamedKernel")
