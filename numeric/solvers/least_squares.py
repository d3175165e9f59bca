"""Nonlinear least squares: Gauss–Newton and Levenberg–Marquardt, dense, sparse, or matrix-free.

    least_squares(residuals, x0)          minimizes ½ |r(x)|²

The step p solves min |J p + r|² + μ |D p|² (μ = 0 for Gauss–Newton), where D holds the largest column norms
of J so far, so that the method does not depend on the units of the unknowns. Sources: Moré, "The
Levenberg-Marquardt algorithm: implementation and theory" (1978) for D and the convergence tests;
Madsen, Nielsen, Tingleff, "Methods for non-linear least squares problems" (2004), algorithm 3.16 for μ.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from symad.core.identifiers import not_one_of
from symad.core.signatures import ByInput, Inputs, Traceable, Tree
from symad.errors import EvaluationError
from symad.numeric.plain_numbers import plain_fields
from symad.numeric.solvers.least_squares_jacobian import LINEAR
from symad.numeric.solvers.newton import EPSILON, OUT_OF_ITERATIONS, VALUE_IS_FLAT, Step
from symad.numeric.solvers.restrictions import GivenBounds, Restrictions
from symad.numeric.solvers.solver_variables import Unknowns, Vector


@dataclass(frozen=True, repr=False)
class Fit:
    """The result of a least-squares method.

    Attributes:
        x: the unknowns, in the form of the start.
        value: ½ |r|² at x.
        residuals: r at x, flat.
        slope: the largest |cos| of the angle between r and a column of J: 0 at a minimum, without units.
        converged: whether the slope is within the tolerance, or no float near x has a smaller value.
        message: the reason why it stopped.
        history: the start and the point after each iteration.
        evaluations: the number of evaluations of the residuals.
    """

    x: Any
    value: float
    residuals: Vector = field(repr=False)
    slope: float
    converged: bool
    message: str
    history: list[Step] = field(repr=False)
    evaluations: int
    problem: Unknowns = field(repr=False)
    point: Vector = field(repr=False)

    __repr__ = plain_fields

    @property
    def iterations(self) -> int:
        """The number of steps."""
        return len(self.history) - 1

    def checked(self) -> Fit:
        """The result itself, if it has converged.

        Raises:
            ArithmeticError: it has not converged; the message says why.
        """
        if not self.converged:
            raise ArithmeticError(f"no fit: {self.message}; ½|r|² = {self.value}")
        return self

    def standard_errors(self) -> Any:
        """√diag(s² (JᵀJ)⁻¹), s² = |r|²/(m − n), in the form of the unknowns.

        Raises:
            EvaluationError: there are not more residuals than unknowns, or J does not have full rank.
        """
        _, jacobian = self.problem.residuals_and_jacobian(self.point)
        rows, columns = self.problem.count or len(jacobian), jacobian.shape[1]
        scale = np.linalg.norm(jacobian, axis=0)
        if rows <= columns or not scale.all() or np.linalg.matrix_rank(jacobian / scale) < columns:
            raise EvaluationError(
                f"standard errors need more residuals than unknowns and independent columns of J, which is "
                f"{rows} × {columns}"
            )
        r = np.linalg.qr(jacobian / scale, mode="r")
        inverse = np.linalg.inv(r)
        variances = 2 * self.value / (rows - columns) * (inverse**2).sum(axis=1) / scale**2
        return self.problem.unpack(np.sqrt(variances))


def least_squares(
    f: Traceable,
    x0: Tree,
    *,
    data: ByInput | None = None,
    method: str = "levenberg-marquardt",
    solver: str = "dense",
    bounds: GivenBounds | None = None,
    tolerance: float = 1e-10,
    iterations: int = 500,
    watch: Callable[[Any], None] | None = None,
    inputs: Inputs | None = None,
) -> Fit:
    """A local minimum of ½ |r(x)|² for a vector of residuals.

    Args:
        f: the residuals, in any form that `symad.trace` takes: a list, a vector, a Graph; all outputs count.
        x0: the first values of the unknowns, as in `symad.numeric.minimize`.
        data: the values of the inputs that are not unknown.
        method: "levenberg-marquardt" or "gauss-newton" (μ = 0, steps halved until |r| falls).
        solver: the solver of the linear problem: "dense" (orthogonal factors of J), "sparse" (J by coloring,
            normal equations), or "products" (J p and Jᵀ w only, by LSMR).
        bounds: as in `symad.numeric.minimize`, or a tuple (lower, upper) of numbers or vectors, as SciPy's
            least_squares takes it. The method is then SciPy's reflective trust region (Branch, Coleman and Li
            1999) with symad's Jacobian. The slope is that of the unknowns inside.
        tolerance: the largest slope, see `Fit`.
        iterations: the most steps.
        watch: called with the start and with the point after every step, in the form of ``x0``.
        inputs: order and grouping of the arguments, as in `symad.trace`; an argument that is a dict, list or
            dataclass of arrays is given, and found, as such an object. By default a Python function has
            inputs of the shapes of ``x0`` and ``data``.

    Returns:
        A `Fit`: ``x`` in the form of ``x0``, and how the search ended.

    Raises:
        EvaluationError: names or bounds do not fit, or the residuals are not finite at the start.

    Example:
        >>> import sympy
        >>> from symad.numeric import least_squares
        >>> a, b = sympy.symbols("a b", real=True)
        >>> fit = least_squares([a + b - 3, a - b - 1, a - 2], [0.0, 0.0])
        >>> [round(float(v), 6) for v in fit.x]
        [2.0, 1.0]
    """
    if solver not in LINEAR:
        raise EvaluationError(not_one_of("solver", solver, LINEAR))
    problem, x = Unknowns.make(f, x0, data, inputs)
    limits = Restrictions.of(problem, _as_given(bounds, len(x)), None)
    if limits is not None:
        return _bounded(
            _FitSearch(problem, limits.inside(x), LINEAR["dense"], tolerance, watch), limits, iterations
        )
    return fitted(problem, x, method, solver, tolerance, iterations, watch)


def _as_given(bounds: GivenBounds | None, count: int) -> GivenBounds | None:
    """Bounds of ``count`` unknowns, where a tuple is (lower, upper).

    Raises:
        EvaluationError: two pairs for two unknowns, which may be either.
    """
    from scipy.optimize import Bounds

    if not (isinstance(bounds, tuple) and len(bounds) == 2):
        return bounds
    shapes = {np.shape(side) for side in bounds}
    if shapes == {(2,)} and count == 2:
        raise EvaluationError(
            f"bounds={bounds!r} may be (lower, upper) or a pair for each of the two unknowns; give "
            "scipy.optimize.Bounds(lower, upper), or a list of pairs"
        )
    if shapes <= {(), (count,)}:
        lower, upper = (np.broadcast_to(np.asarray(side, float), count) for side in bounds)
        return Bounds(lower, upper)
    return bounds


def fitted(
    problem: Unknowns,
    x: Vector,
    method: str,
    solver: str,
    tolerance: float,
    iterations: int,
    watch: Callable[[Any], None] | None,
) -> Fit:
    """The fit of a problem from a start; see `least_squares`."""
    if method not in ("levenberg-marquardt", "gauss-newton"):
        raise EvaluationError(f"method={method!r} is not one of 'levenberg-marquardt', 'gauss-newton'")
    search = _FitSearch(problem, x, LINEAR[solver], tolerance, watch)
    run = search.damped if method == "levenberg-marquardt" else search.undamped
    converged, message = run(iterations)
    return search.fit(converged, message)


def _bounded(search: _FitSearch, limits: Restrictions, iterations: int) -> Fit:
    """A fit within bounds, by SciPy."""
    from scipy.optimize import least_squares as by_scipy

    problem, free = search.problem, limits.low < limits.high
    if not free.all():
        raise EvaluationError("bounds: an unknown with a single value is no unknown; give it in data")
    found = by_scipy(
        search.residuals, search.x, lambda x: problem.residuals_and_jacobian(x)[1],
        (limits.low, limits.high), gtol=search.tolerance, xtol=1e-15, ftol=1e-15, max_nfev=iterations,
    )  # fmt: skip
    length = float(np.linalg.norm(found.x - search.x))
    search.x, search.r, search.value = found.x, found.fun, float(found.cost)
    search.update(length)
    cosines = np.abs(search.gradient) / np.where(search.j.norms > 0, search.j.norms, 1.0)
    inside = np.max(cosines[found.active_mask == 0], initial=0.0)
    search.slope = float(inside / np.linalg.norm(search.r)) if inside else 0.0
    return search.fit(bool(found.status > 0), str(found.message))


class _FitSearch:
    """The path of one fit."""

    def __init__(self, problem: Unknowns, x: Vector, linear: Any, tolerance: float, watch: Any) -> None:
        self.problem, self.x, self.linear, self.tolerance, self.watch = problem, x, linear, tolerance, watch
        self.evaluations, self.history = 0, []
        self.r = self.residuals(x)
        if not np.all(np.isfinite(self.r)):
            raise EvaluationError(problem.not_finite("the residuals are", x))
        self.value = float(self.r @ self.r) / 2
        self.update(0.0)

    history: list[Step]

    def fit(self, converged: bool, message: str) -> Fit:
        """The result at this point."""
        return Fit(
            self.problem.unpack(self.x), self.value, self.r, self.slope, converged, message, self.history,
            self.evaluations, self.problem, self.x,
        )  # fmt: skip

    def residuals(self, x: Vector) -> Vector:
        self.evaluations += 1
        try:
            with np.errstate(all="ignore"):
                return self.problem.residuals(x)
        except np.linalg.LinAlgError:  # a matrix in r is singular or not positive definite at x
            return np.full(len(self.r), np.inf) if self.history else np.array([np.inf])

    def update(self, length: float) -> None:
        """Compute J at the new point, and the slope there."""
        self.j = self.linear(self.problem, self.x)
        self.gradient = self.j.transposed(self.r)
        norm = np.linalg.norm(self.r) * np.where(self.j.norms > 0, self.j.norms, 1.0)
        self.slope = float(np.max(np.abs(self.gradient) / norm, initial=0.0)) if norm.any() else 0.0
        self.history.append(Step(self.value, self.slope, length))
        if self.watch is not None:
            self.watch(self.problem.unpack(self.x))

    def moved(self, p: Vector) -> float:
        """½|r|² after a step; the step is taken if the value is smaller."""
        x = self.x + p
        r = self.residuals(x)
        with np.errstate(all="ignore"):
            value = float(r @ r) / 2 if np.all(np.isfinite(r)) else np.inf
        if value < self.value:
            self.x, self.r, self.value = x, r, value
        return value

    def promised(self, p: Vector) -> float:
        """The decrease of ½|r|² that the linear model predicts."""
        jp = self.j.times(p)
        return -float(self.r @ jp + jp @ jp / 2)

    def done(self) -> str:
        """The reason why this point is a minimum; empty if it is not known to be one."""
        if self.slope <= self.tolerance:
            return "the residuals are orthogonal to the columns of J within the tolerance"
        if np.linalg.norm(self.r) <= 16 * EPSILON * np.linalg.norm(self.j.norms * self.x):
            return "the residuals are zero within their rounding"
        return ""

    def damped(self, iterations: int) -> tuple[bool, str]:
        """Levenberg–Marquardt."""
        scale = np.where(self.j.norms > 0, self.j.norms, 1.0)
        mu, factor = 1e-3, 2.0
        for _ in range(iterations):
            if why := self.done():
                return True, why
            p = self.j.step(self.r, np.sqrt(mu) * scale)
            promised, before = self.promised(p), self.value
            if promised <= 4 * EPSILON * before:
                return True, VALUE_IS_FLAT
            after = self.moved(p)
            ratio = (before - after) / promised
            if after < before:
                mu *= max(1 / 3, 1 - (2 * min(ratio, 1) - 1) ** 3)
                factor = 2.0
                self.update(float(np.linalg.norm(p)))
                scale = np.maximum(scale, self.j.norms)
            else:
                mu, factor = mu * factor, 2 * factor
                if not np.isfinite(mu) or np.linalg.norm(p) <= EPSILON * np.linalg.norm(self.x):
                    return False, "no step decreases the residuals"
        return bool(self.done()), self.done() or OUT_OF_ITERATIONS

    def undamped(self, iterations: int) -> tuple[bool, str]:
        """Gauss–Newton."""
        none = np.zeros(len(self.x))
        for _ in range(iterations):
            if why := self.done():
                return True, why
            p, before = self.j.step(self.r, none), self.value
            if self.promised(p) <= 4 * EPSILON * before:
                return True, VALUE_IS_FLAT
            for _ in range(50):
                if self.moved(p) < before:
                    break
                p = p / 2
            else:
                return False, "no step along the direction of Gauss and Newton decreases the residuals"
            self.update(float(np.linalg.norm(p)))
        return bool(self.done()), self.done() or OUT_OF_ITERATIONS
