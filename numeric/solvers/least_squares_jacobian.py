"""The Jacobian of least squares at one point: dense, sparse, or by its products only."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from symad.numeric.solvers.solver_variables import Unknowns, Vector


class Linear:
    """J at one point, with the operations that the search needs."""

    norms: Vector
    """The norms of the columns of J; ones if they are not known."""

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
        """The p that minimizes |J p + r|² + |weights ∘ p|²."""
        raise NotImplementedError


class Dense(Linear):
    """J as a dense matrix; steps by orthogonal factors of J with the weights below it."""

    def __init__(self, problem: Unknowns, x: Vector) -> None:
        """Compute J in one sweep."""
        _, self.j = problem.residuals_and_jacobian(x)
        self.norms = np.linalg.norm(self.j, axis=0)

    def times(self, p: Vector) -> Vector:
        """J p."""
        return self.j @ p

    def transposed(self, w: Vector) -> Vector:
        """Jᵀ w."""
        return w @ self.j

    def step(self, r: Vector, weights: Vector) -> Vector:
        """The step, by the singular values of J with columns scaled to norm about 1."""
        scale = np.where(self.norms > 0, self.norms, 1.0)
        rows = [self.j / scale] + ([np.diag(weights / scale)] if weights.any() else [])
        right = np.concatenate([-r, np.zeros(len(weights) if weights.any() else 0)])
        return np.linalg.lstsq(np.concatenate(rows), right, rcond=None)[0] / scale


class Sparse(Linear):
    """J as a sparse matrix; steps by a sparse factor of JᵀJ + W² with the weights W."""

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
        """The step, by the scaled normal equations; a small term on the diagonal keeps them regular."""
        from scipy.sparse import diags_array
        from scipy.sparse.linalg import splu

        scale = np.where(self.norms > 0, self.norms, 1.0)
        scaled = self.j @ diags_array(1 / scale)
        normal = (scaled.T @ scaled + diags_array(np.maximum((weights / scale) ** 2, 1e-14))).tocsc()
        return np.asarray(splu(normal).solve(-(scaled.T @ r)) / scale)


class Products(Linear):
    """J by products only; steps by LSMR (Fong and Saunders 2011), which needs J p and Jᵀ w."""

    def __init__(self, problem: Unknowns, x: Vector) -> None:
        """J itself is not computed."""
        self.problem, self.x, self.norms = problem, x, np.ones(len(x))

    def times(self, p: Vector) -> Vector:
        """J p."""
        return self.problem.jacobian_product(self.x, p)

    def transposed(self, w: Vector) -> Vector:
        """Jᵀ w."""
        return self.problem.transposed_product(self.x, w)

    def step(self, r: Vector, weights: Vector) -> Vector:
        """The step, by one run of LSMR; all weights are equal, because the norms are."""
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
