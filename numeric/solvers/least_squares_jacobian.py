"""The Jacobian of least squares at one point, three ways: dense, sparse, or by its products alone."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from symad.numeric.solvers.solver_variables import Unknowns, Vector


class Linear:
    """J at one point: what the search asks of it."""

    norms: Vector
    """The norms of its columns; ones where they are not known."""

    def __init__(self, problem: Unknowns, x: Vector) -> None:
        """J at x."""
        raise NotImplementedError

    def times(self, p: Vector) -> Vector:
        """J p."""
        raise NotImplementedError

    def transposed(self, w: Vector) -> Vector:
        """Jᵀ w."""
        raise NotImplementedError

    def step(self, r: Vector, weights: Vector) -> Vector:
        """The p that minimises |J p + r|² + |weights ∘ p|²."""
        raise NotImplementedError


class Dense(Linear):
    """By orthogonal factors of J with the weights below it."""

    def __init__(self, problem: Unknowns, x: Vector) -> None:
        """J in one sweep."""
        _, self.j = problem.residuals_and_jacobian(x)
        self.norms = np.linalg.norm(self.j, axis=0)

    def times(self, p: Vector) -> Vector:
        """J p."""
        return self.j @ p

    def transposed(self, w: Vector) -> Vector:
        """Jᵀ w."""
        return w @ self.j

    def step(self, r: Vector, weights: Vector) -> Vector:
        """Scaled to columns of norm about 1, then least squares by singular values."""
        scale = np.where(self.norms > 0, self.norms, 1.0)
        rows = [self.j / scale] + ([np.diag(weights / scale)] if weights.any() else [])
        right = np.concatenate([-r, np.zeros(len(weights) if weights.any() else 0)])
        return np.linalg.lstsq(np.concatenate(rows), right, rcond=None)[0] / scale


class Sparse(Linear):
    """By a sparse factor of JᵀJ + W², W the weights."""

    def __init__(self, problem: Unknowns, x: Vector) -> None:
        """J by coloring."""
        self.j = problem.sparse_jacobian(x)
        self.norms = np.sqrt(np.asarray((self.j * self.j).sum(axis=0)).ravel())

    def times(self, p: Vector) -> Vector:
        """J p."""
        return np.asarray(self.j @ p)

    def transposed(self, w: Vector) -> Vector:
        """Jᵀ w."""
        return np.asarray(self.j.T @ w)

    def step(self, r: Vector, weights: Vector) -> Vector:
        """The normal equations, scaled; a little more on their diagonal keeps them regular."""
        from scipy.sparse import diags_array
        from scipy.sparse.linalg import splu

        scale = np.where(self.norms > 0, self.norms, 1.0)
        scaled = self.j @ diags_array(1 / scale)
        normal = (scaled.T @ scaled + diags_array(np.maximum((weights / scale) ** 2, 1e-14))).tocsc()
        return np.asarray(splu(normal).solve(-(scaled.T @ r)) / scale)


class Products(Linear):
    """By LSMR (Fong and Saunders 2011), which asks for J p and Jᵀ w alone."""

    def __init__(self, problem: Unknowns, x: Vector) -> None:
        """Nothing is formed."""
        self.problem, self.x, self.norms = problem, x, np.ones(len(x))

    def times(self, p: Vector) -> Vector:
        """J p."""
        return self.problem.jacobian_product(self.x, p)

    def transposed(self, w: Vector) -> Vector:
        """Jᵀ w."""
        return self.problem.transposed_product(self.x, w)

    def step(self, r: Vector, weights: Vector) -> Vector:
        """One run; here all weights are equal, since the norms are."""
        from scipy.sparse.linalg import LinearOperator, lsmr

        shape = (len(r), len(self.x))
        operator = LinearOperator(shape, matvec=self.times, rmatvec=self.transposed, dtype=np.float64)
        damp = float(weights[0])
        return np.asarray(lsmr(operator, -r, damp=damp, atol=1e-12, btol=1e-12, maxiter=10 * len(self.x))[0])


LINEAR: dict[str, Callable[[Unknowns, Vector], Linear]] = {
    "dense": Dense,
    "sparse": Sparse,
    "products": Products,
}
