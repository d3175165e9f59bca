"""Newton's method with a modified Cholesky factor, and with conjugate gradients in a trust region.

Source: Nocedal and Wright, "Numerical Optimization" (2006), algorithms 3.2, 3.3, 4.1 and 7.2.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from symad.errors import EvaluationError
from symad.numeric.plain_numbers import plain_fields
from symad.numeric.solvers.newton_directions import Directions
from symad.numeric.solvers.restrictions import Restrictions, curvature_of
from symad.numeric.solvers.solver_variables import Unknowns, Vector, entries_of

EPSILON = float(np.finfo(np.float64).eps)


@dataclass(frozen=True)
class Step:
    """One point of the path: its value, the largest slope, and the length of the step that led there."""

    value: float
    slope: float
    length: float


@dataclass(frozen=True, repr=False)
class Minimum:
    """The result of a minimizer.

    Attributes:
        x: the point, in the form of the start.
        value: f at x.
        slope: the largest component of |∇f| at x, without what bounds and constraints balance.
        converged: whether the slope is within the tolerance, or f is minimal to its last digits.
        message: the reason why it stopped.
        history: the start and the point after each iteration.
        evaluations: the number of evaluations of f (with or without gradients).
        products: the number of Hessian-vector products.
    """

    x: Any
    value: float
    slope: float
    converged: bool
    message: str
    history: list[Step] = field(repr=False)
    evaluations: int
    products: int = 0
    problem: Unknowns | None = field(default=None, repr=False)
    point: Vector | None = field(default=None, repr=False)
    restrictions: Restrictions | None = field(default=None, repr=False)

    __repr__ = plain_fields

    @property
    def iterations(self) -> int:
        """The number of steps."""
        return len(self.history) - 1

    def checked(self) -> Minimum:
        """The result itself, if it has converged.

        Raises:
            ArithmeticError: it has not converged; the message says why.
        """
        if not self.converged:
            raise ArithmeticError(f"no minimum: {self.message}; f = {self.value}, |∇f| = {self.slope}")
        return self

    def standard_errors(self) -> Any:
        """√diag(H⁻¹), H = ∇²f at x, in the form of the unknowns.

        These are the standard errors of maximum likelihood if f is the negative logarithm of the likelihood:
        a sum over the observations, not a mean. Along active constraints they are √diag(Z (ZᵀHZ)⁻¹ Zᵀ), with
        H of the Lagrangian and Z a basis of the directions that the constraints leave (Aitchison and Silvey
        1958). An unknown at a bound has none: NaN.

        Raises:
            EvaluationError: H is not positive definite in these directions.
        """
        if self.problem is None or self.point is None:
            raise EvaluationError("standard errors need the result of symad.numeric.minimize")
        basis, curvature = np.eye(len(self.point)), self.problem.hessian(self.point)
        free = np.ones(len(self.point), dtype=bool)
        if self.restrictions is not None:
            _, gradient = self.problem.value_and_gradient(self.point)
            found = self.restrictions.conditions(self.point, gradient)
            basis, free = found.directions(), found.free
            curvature = curvature_of(self.problem, self.restrictions, self.point, found)
        inner = basis.T @ curvature @ basis
        scale = np.sqrt(np.maximum(np.diag(inner), 0))
        scaled = inner / np.outer(scale, scale) if scale.all() else np.zeros_like(inner)
        if np.linalg.eigvalsh(scaled).min(initial=1.0) < 10 * len(inner) * EPSILON:
            raise EvaluationError(
                "standard errors need a Hessian that is positive definite at the minimum; it is not: some "
                "combination of the unknowns does not change f"
            )
        spread = np.linalg.solve(np.linalg.cholesky(scaled), (basis / scale).T)
        return self.problem.unpack(np.where(free, np.sqrt((spread**2).sum(axis=0)), np.nan))


@dataclass
class Path:
    """The points so far, with counts of evaluations."""

    problem: Unknowns
    x: Vector
    tolerance: float
    watch: Callable[[Any], None] | None = None
    restrictions: Restrictions | None = None
    evaluations: int = 0
    products: int = 0
    undefined: Vector | None = None
    """The last point tried where f or its gradient was not finite."""
    history: list[Step] = field(default_factory=list)
    directions: Directions = field(default_factory=Directions)

    def __post_init__(self) -> None:
        """Evaluate the start.

        Raises:
            EvaluationError: f or its gradient is not finite at the start.
        """
        self.value, self.gradient = self.both(self.x)
        if not np.isfinite(self.value):
            raise EvaluationError(self.problem.not_finite("f or its gradient is", self.x))
        self.move(self.x, self.value, self.gradient)

    @property
    def slope(self) -> float:
        """The largest component of the gradient, without what bounds and constraints balance."""
        rest = self.gradient
        if self.restrictions is not None and np.all(np.isfinite(rest)):
            rest = self.restrictions.conditions(self.x, rest).rest
        return float(np.abs(rest).max(initial=0.0))

    def both(self, x: Vector) -> tuple[float, Vector]:
        """f and ∇f at x, counted; f counts as infinite where its value is not finite."""
        self.evaluations += 1
        try:
            with np.errstate(all="ignore"):
                value, gradient = self.problem.value_and_gradient(x)
        except np.linalg.LinAlgError:  # a matrix in f is singular or not positive definite at x
            return np.inf, np.zeros_like(x)
        if np.isfinite(value) and np.all(np.isfinite(gradient)):
            return value, gradient
        self.undefined = np.array(x)
        return np.inf, gradient

    def move(self, x: Vector, value: float, gradient: Vector) -> None:
        """Take a step."""
        length = float(np.linalg.norm(x - self.x))
        self.x, self.value, self.gradient = x, value, gradient
        self.history.append(Step(value, self.slope, length))
        if self.watch is not None:
            self.watch(self.problem.unpack(x))

    @property
    def small(self) -> bool:
        """Whether the slope is within the tolerance."""
        return self.slope <= self.tolerance

    @property
    def violation(self) -> float:
        """The largest distance from what bounds and constraints allow."""
        return 0.0 if self.restrictions is None else self.restrictions.violation(self.x)

    @property
    def feasible(self) -> bool:
        """Whether bounds and constraints hold to rounding."""
        return self.violation <= FEASIBLE * max(1.0, float(np.abs(self.x).max(initial=0.0)))

    def flat(self, decrease: float, digits: float = 4 * EPSILON) -> bool:
        """Whether the decrease that a quadratic model predicts is below the rounding error of f."""
        return decrease <= digits * abs(self.value)

    def product(self, d: Vector) -> Vector:
        """∇²f(x) d, counted."""
        self.products += 1
        return self.problem.hessian_product(self.x, d)

    def stopped(self, message: str) -> Minimum:
        """The result when a method gives up: a minimum if the predicted decrease is below 10⁻¹⁰ of f."""
        if not self.feasible:
            return self.finish(False, f"{message}; a constraint is violated by {self.violation:.1e}")
        if self.small:
            return self.finish(True, SLOPE_IS_SMALL)
        with np.errstate(all="ignore"):
            few = len(self.x) <= MAX_HESSIAN_CHECKED
            if self.restrictions is not None and not few:
                return self.finish(False, message)
            promised = self.newton_decrease() if few else self.product_decrease()
        return self.finish(True, VALUE_IS_FLAT) if self.flat(promised, 1e-10) else self.finish(False, message)

    def newton_decrease(self) -> float:
        """The decrease that Newton's step predicts; infinite if the Hessian is not positive definite."""
        gradient = self.gradient
        if self.restrictions is None:
            hessian = self.problem.curvature(self.x)
        else:
            found = self.restrictions.conditions(self.x, gradient)
            basis = found.directions()
            hessian = basis.T @ curvature_of(self.problem, self.restrictions, self.x, found) @ basis
            gradient = basis.T @ found.rest
        if not np.all(np.isfinite(entries_of(hessian))):
            return np.inf
        direction, definite = self.directions(hessian, gradient)
        return -float(gradient @ direction) / 2 if definite else np.inf

    def product_decrease(self) -> float:
        """The predicted decrease, by conjugate gradients."""
        return steihaug(self.product, self.gradient, 1e8 * (1 + float(np.linalg.norm(self.x))))[1]

    def finish(self, converged: bool, message: str) -> Minimum:
        """The result."""
        return Minimum(
            self.problem.unpack(self.x), self.value, self.slope, converged, message, self.history,
            self.evaluations, self.products, self.problem, self.x, self.restrictions,
        )  # fmt: skip


MAX_HESSIAN_CHECKED = 200
"""Up to this many unknowns, a doubtful end is judged by the Hessian, and above by conjugate gradients.

Origin: it bounds the work of a Cholesky factorization, n³/3; not measured.
"""

FEASIBLE = 1e-8
"""The largest violation of a constraint at a minimum, relative to the largest unknown if that is above 1."""

SLOPE_IS_SMALL = "the slope is within the tolerance"
VALUE_IS_FLAT = "f cannot decrease any more in floating point"
OUT_OF_ITERATIONS = "the iterations are used up"


# ---- Newton's method with a modified Cholesky factor ------------------------------------------------


def newton(path: Path, iterations: int) -> Minimum:
    """Newton's direction for a positive definite model, shortened until f decreases enough."""
    for _ in range(iterations):
        if path.small:
            return path.finish(True, SLOPE_IS_SMALL)
        hessian = path.problem.curvature(path.x)
        if not np.all(np.isfinite(entries_of(hessian))):
            return path.finish(False, "the Hessian is not finite")
        direction, _ = path.directions(hessian, path.gradient)
        found = _line_search(path, direction, -float(path.gradient @ direction))
        if found is None:
            return path.stopped("no step along Newton's direction decreases f")
        path.move(*found)
    return path.stopped(OUT_OF_ITERATIONS)


def _line_search(path: Path, direction: Vector, decrease: float) -> tuple[Vector, float, Vector] | None:
    """Halve the step until f falls by 10⁻⁴ of the slope's prediction (Armijo); None at step 10⁻¹⁵."""
    factor = 1.0
    while factor > 1e-15:
        x = path.x + factor * direction
        value, gradient = path.both(x)
        if value <= path.value - 1e-4 * factor * decrease and value < path.value:
            return x, value, gradient
        factor /= 2
    return None


# ---- Newton's method by conjugate gradients in a trust region ---------------------------------------


def steihaug(product: Callable[[Vector], Vector], gradient: Vector, radius: float) -> tuple[Vector, float]:
    """An approximate minimum p of ⟨g, p⟩ + ½⟨p, H p⟩ with |p| ≤ radius, and its predicted decrease.

    Conjugate gradients until the residual is small, the path leaves the region, or the curvature along it is
    not positive. Source: Steihaug (1983); Nocedal and Wright, algorithm 7.2, residuals as in (7.3).
    """
    norm = float(np.linalg.norm(gradient))
    target = min(0.5, np.sqrt(norm)) * norm
    p, r, d = np.zeros_like(gradient), gradient, -gradient
    hp = np.zeros_like(gradient)
    for _ in range(2 * len(gradient) + 10):
        hd = product(d)
        curvature = float(d @ hd)
        square = float(r @ r)
        step = square / curvature if curvature > 0 else np.inf
        if curvature <= 0 or np.linalg.norm(p + step * d) >= radius:
            step = _to_boundary(p, d, radius)
            p, hp = p + step * d, hp + step * hd
            break
        p, hp, r = p + step * d, hp + step * hd, r + step * hd
        if np.linalg.norm(r) <= target:
            break
        d = -r + float(r @ r) / square * d
    return p, -float(gradient @ p + p @ hp / 2)


def _to_boundary(p: Vector, d: Vector, radius: float) -> float:
    """The τ ≥ 0 with |p + τ d| = radius."""
    a, b, c = float(d @ d), float(p @ d), float(p @ p) - radius**2
    root = np.sqrt(max(b * b - a * c, 0.0))
    return -c / (b + root) if b > 0 else (root - b) / a


def newton_cg(path: Path, iterations: int) -> Minimum:
    """Trust-region steps by `steihaug` (Nocedal and Wright, algorithm 4.1)."""
    radius = max(1.0, float(np.linalg.norm(path.x)))
    for _ in range(iterations):
        if path.small:
            return path.finish(True, SLOPE_IS_SMALL)
        p, promised = steihaug(path.product, path.gradient, radius)
        if not np.isfinite(promised):
            return path.finish(False, "a product with the Hessian is not finite")
        x = path.x + p
        value, gradient = path.both(x)
        length = float(np.linalg.norm(p))
        if path.flat(promised) and length < 0.99 * radius:
            if value <= path.value:
                path.move(x, value, gradient)
            return path.finish(True, VALUE_IS_FLAT)
        ratio = (path.value - value) / promised
        if ratio < 0.25:
            radius = 0.25 * length
        elif ratio > 0.75 and length > 0.99 * radius:
            radius = 2 * radius
        if ratio > 1e-4:
            path.move(x, value, gradient)
        elif radius < EPSILON * float(np.linalg.norm(path.x)):
            return path.stopped("the trust region has shrunk to nothing")
    return path.stopped(OUT_OF_ITERATIONS)
