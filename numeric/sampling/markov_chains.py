"""Markov chains that draw from a density known up to a constant: Metropolis, Langevin, Hamiltonian.

    draws = hmc(log_density, x0, data={"X": X, "y": y})
    print(draws.summary())

The log-density has any form that `symad.trace` takes. Its gradient is derived by symad, lowered once and
evaluated for all chains together. All randomness comes from one key (`symad.functions.key`), so that a run
can be repeated exactly. The dynamics are those of `symad.models.sampling`, where they are proved to preserve
volume and to be reversible. Sources: there; Hoffman and Gelman, "The No-U-Turn sampler" (2014), section 3.2
for the step.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import symad
from symad import functions
from symad.core.graph import Graph
from symad.core.signatures import ByInput, Tree
from symad.errors import EvaluationError
from symad.models.generative.sampling import hamiltonian, leapfrog
from symad.numeric.lowering import lower
from symad.numeric.sampling.diagnostics import effective_sample_size, split_r_hat, standard_error
from symad.numeric.solvers.solver_variables import Unknowns, is_scalar

# ---- the draws of Markov chains, with their diagnostics ------------------------------------------


DIVERGENT = 1000.0
"""A larger energy error is not due to rounding: the step is too long for the density there."""


@dataclass(frozen=True)
class Draws:
    """The points that the chains visited after the warm-up.

    Attributes:
        values: the draws in the form of the start, each (chains, count, *shape).
        flat: the same draws as (chains, count, unknowns).
        log_density: log π at the draws, (chains, count).
        acceptance: the mean acceptance probability of each chain.
        energy_errors: ΔH of every proposal, (chains, count); for Metropolis, log π(x) − log π(x').
        step: the length of a step.
        leaps: the number of leapfrog steps of one proposal, 0 for Metropolis.
        names: the names of the unknowns in ``flat``.
    """

    values: Any = field(repr=False)
    flat: Array = field(repr=False)
    log_density: Array = field(repr=False)
    acceptance: Array
    energy_errors: Array = field(repr=False)
    step: float
    leaps: int
    names: tuple[str, ...]

    @property
    def divergences(self) -> int:
        """The number of leapfrog paths whose energy error is beyond 1000, or not finite."""
        if not self.leaps:
            return 0
        return int((~(np.abs(self.energy_errors) < DIVERGENT)).sum())

    def of_each(self, statistic: Callable[[Array], float]) -> Array:
        """A statistic of each unknown, computed from its draws (chains, count)."""
        return np.array([statistic(self.flat[:, :, k]) for k in range(self.flat.shape[2])])

    @property
    def r_hat(self) -> Array:
        """Split-R̂ of each unknown."""
        return self.of_each(split_r_hat)

    @property
    def effective_sizes(self) -> Array:
        """The effective sample size of each unknown."""
        return self.of_each(effective_sample_size)

    @property
    def mean(self) -> Array:
        """The mean of each unknown."""
        return np.asarray(self.flat.mean(axis=(0, 1)))

    @property
    def standard_errors(self) -> Array:
        """The standard error of each mean."""
        return self.of_each(standard_error)

    def summary(self) -> str:
        """A table: mean, its standard error, standard deviation, effective sample size, R̂."""
        lines = [f"{'':12}{'mean':>10}{'± error':>10}{'sd':>10}{'eff. size':>11}{'R-hat':>8}"]
        spread = self.flat.std(axis=(0, 1), ddof=1)
        columns = zip(
            self.names, self.mean, self.standard_errors, spread, self.effective_sizes, self.r_hat, strict=True
        )
        for name, *numbers in columns:
            lines.append(f"{name:12}" + "{:10.4f}{:10.4f}{:10.4f}{:11.0f}{:8.3f}".format(*numbers))
        chains, count, _ = self.flat.shape
        lines.append(
            f"{chains} chains of {count}, acceptance {self.acceptance.mean():.2f}, step {self.step:.3g}, "
            f"{self.divergences} divergent"
        )
        return "\n".join(lines)

    def checked(self, limit: float = 1.05) -> Draws:
        """The draws, if the chains can be trusted.

        Raises:
            ArithmeticError: an R̂ exceeds the limit, or proposals diverged: the chains have not explored π.
        """
        worst = int(np.argmax(self.r_hat))
        if self.r_hat[worst] > limit or self.divergences:
            raise ArithmeticError(
                f"the chains cannot be trusted: R-hat of {self.names[worst]} is {self.r_hat[worst]:.3f} "
                f"(limit {limit}), {self.divergences} proposals diverged; run longer, or rescale the unknowns"
            )
        return self


Array = np.ndarray


def metropolis(log_density: Graph, x0: Tree, **options: Any) -> Draws:
    """Random-walk Metropolis: propose x + h Z, accept with probability min(1, π(x')/π(x)).

    Takes the options of `hmc` except ``leaps``. Needs no gradient. With ``step=None`` the step is tuned to
    accept 0.234 of the proposals (Roberts, Gelman, Gilks 1997), or 0.44 for one unknown.
    """
    return _run(log_density, x0, leaps=0, **options)


def langevin(log_density: Graph, x0: Tree, **options: Any) -> Draws:
    """Metropolis-adjusted Langevin (MALA): propose x + (h²/2) ∇log π(x) + h Z: `hmc` with one leap.

    Takes the options of `hmc` except ``leaps``. With ``step=None`` the step is tuned to accept 0.574.
    """
    return _run(log_density, x0, leaps=1, **options)


def hmc(log_density: Graph, x0: Tree, leaps: int = 10, **options: Any) -> Draws:
    """Hamiltonian Monte Carlo: draw momenta, follow the leapfrog path, accept by the energy error.

    Args:
        log_density: log π up to a constant, a scalar, in any form that `symad.trace` takes, or a Graph.
        x0: a start, in the forms of `symad.numeric.minimize`.
        leaps: the number of leapfrog steps of one proposal. A step that is too long for the curvature in the
            tails of π keeps the chains out of the tails, whatever the acceptance elsewhere: compare with half
            the step.
        options: data (the values of the inputs that are not unknowns); count (draws per chain, 1000); warmup
            (steps before them, 500); chains (4); step (None: tuned during the warm-up to accept 0.8); scale
            (typical sizes of the unknowns, a number or in the form of x0; the step is relative to them);
            spread (of the chains' starts around x0, in units of the scale, 0.1); jitter (the relative
            variation of the step, 0.1, so that no path closes); seed (0).

    Raises:
        EvaluationError: log π is not a scalar, is not finite at a start, or an option is out of range.
    """
    if leaps < 1:
        raise EvaluationError(f"hmc needs leaps ≥ 1, not {leaps}")
    return _run(log_density, x0, leaps=leaps, **options)


def _run(
    log_density: Graph,
    x0: Tree,
    *,
    leaps: int,
    data: ByInput | None = None,
    count: int = 1000,
    warmup: int = 500,
    chains: int = 4,
    step: float | None = None,
    scale: Tree = 1.0,
    spread: float = 0.1,
    jitter: float = 0.1,
    seed: int = 0,
) -> Draws:
    if count < 1 or warmup < 0 or chains < 1 or not 0 <= jitter < 1 or spread < 0:
        raise EvaluationError(
            f"sampling needs count ≥ 1, warmup ≥ 0, chains ≥ 1, 0 ≤ jitter < 1 and spread ≥ 0, not {count}, "
            f"{warmup}, {chains}, {jitter}, {spread}"
        )
    if step is not None and not 0 < step < np.inf:
        raise EvaluationError(f"the step must be positive, not {step}")
    if step is None and warmup < 50:
        raise EvaluationError(f"tuning the step takes a warmup of at least 50, not {warmup}; or give step")
    problem, start = Unknowns.make(log_density, x0, data)
    target = LogDensity(problem, _sizes(problem, scale), gradient=leaps > 0)
    keys = functions.split(seed, 2)
    points = start / target.scale + spread * functions.randn(keys[0], (chains, len(start)))
    return Chains(target, points, leaps, jitter).run(keys[1], count, warmup, step)


def _sizes(problem: Unknowns, scale: Tree) -> Array:
    """The scale of every unknown, as a flat vector."""
    if isinstance(scale, Mapping):
        named = {str(k): v for k, v in scale.items()}
        shapes = dict(zip(problem.names, problem.shapes, strict=True))
        if set(named) != set(shapes):
            raise EvaluationError(f"scale is of {', '.join(named)}, but the unknowns are {', '.join(shapes)}")
        sizes = problem.pack([np.broadcast_to(named[k], shape) for k, shape in shapes.items()])
    elif isinstance(scale, tuple):
        sizes = problem.pack([np.broadcast_to(v, s) for v, s in zip(scale, problem.shapes, strict=True)])
    else:
        sizes = np.broadcast_to(np.ravel(np.asarray(scale, dtype=np.float64)), (sum(problem.sizes),))
    if not np.all((sizes > 0) & np.isfinite(sizes)):
        raise EvaluationError(f"the scale of every unknown must be positive, not {scale}")
    return np.asarray(sizes, dtype=np.float64)


class LogDensity:
    """log π of many points at once, in units of the scale."""

    def __init__(self, problem: Unknowns, scale: Array, gradient: bool) -> None:
        """Lower log π, with its gradient if it is needed."""
        if not is_scalar(problem.graph):
            raise EvaluationError("a log-density has one output, a scalar")
        self.problem, self.scale, self.with_gradient = problem, scale, gradient
        graph = symad.value_and_gradient(problem.graph, list(problem.names)) if gradient else problem.graph
        axes = [None if k in problem.data else 0 for k in range(len(problem.graph.inputs))]
        self.kernel = lower(symad.vmap(graph, axes))

    def __call__(self, points: Array) -> tuple[Array, Array]:
        """log π (chains,) and its gradients (chains, unknowns); −∞ where log π is not finite."""
        count = len(points)
        arguments = self.problem.around(self.problem.stacks(points * self.scale))
        try:
            with np.errstate(all="ignore"):
                found = self.kernel(*arguments)
        except np.linalg.LinAlgError:  # for some chain a matrix in π is singular or not positive definite
            if count == 1:
                return np.array([-np.inf]), np.zeros_like(points)
            parts = [self(point[None]) for point in points]
            return np.concatenate([v for v, _ in parts]), np.concatenate([s for _, s in parts])
        value, *slopes = found if self.with_gradient else (found,)
        value = np.reshape(value, count)
        value = np.where(np.isfinite(value), value, -np.inf)
        if not slopes:
            return value, np.zeros_like(points)
        flat = np.concatenate([np.reshape(s, (count, -1)) for s in slopes], axis=1) * self.scale
        return value, np.where(np.isfinite(flat), flat, 0.0)


class Chains:
    """All chains, which move together."""

    def __init__(self, target: LogDensity, points: Array, leaps: int, jitter: float) -> None:
        """Start at some points (chains, unknowns)."""
        self.target, self.points, self.leaps, self.jitter = target, points, leaps, jitter
        self.value, self.slope = target(points)
        if not np.all(np.isfinite(self.value)):
            chain = int(np.argmin(np.isfinite(self.value)))
            raise EvaluationError(
                f"log π is not finite at the start of chain {chain}, {points[chain] * target.scale}: choose "
                "another x0 or a smaller spread"
            )

    def propose(self, noise: Array, step: float) -> tuple[Array, Array, Array, Array]:
        """Proposed points, log π and its gradients there, and the energy errors."""
        if not self.leaps:
            points = self.points + step * noise
            value, slope = self.target(points)
            return points, value, slope, self.value - value
        at = (self.points, self.value, self.slope)

        def force(q: Array) -> Array:
            nonlocal at
            if q is not at[0]:
                at = (q, *self.target(q))
            return at[2]

        with np.errstate(all="ignore"):
            moved, momenta = leapfrog(force, self.points, noise, step, self.leaps)
            error = hamiltonian(at[1], momenta) - hamiltonian(self.value, noise)
        return np.asarray(moved), at[1], at[2], np.where(np.isnan(error), np.inf, error)

    def move(self, noise: Array, levels: Array, step: float) -> tuple[Array, Array]:
        """One step of every chain: the acceptance probabilities and the energy errors."""
        points, value, slope, error = self.propose(noise, step)
        probability = np.exp(-np.maximum(error, 0.0))
        taken = levels < probability
        self.points = np.where(taken[:, None], points, self.points)
        self.slope = np.where(taken[:, None], slope, self.slope)
        self.value = np.where(taken, value, self.value)
        return probability, error

    def run(self, key: Array, count: int, warmup: int, step: float | None) -> Draws:
        """The draws after the warm-up."""
        shape = self.points.shape
        tuning = Tuning(self.goal) if step is None else None
        length = tuning.step if tuning else float(step or 0)
        draws, values = np.empty((count, *shape)), np.empty((count, shape[0]))
        accepted, errors = np.empty((count, shape[0])), np.empty((count, shape[0]))
        for number in range(warmup + count):
            place = number % NOISE_STEPS
            if not place:
                normal, level, wobble = functions.split(functions.fold_in(key, number // NOISE_STEPS), 3)
                noise = functions.randn(normal, (NOISE_STEPS, *shape))
                levels = functions.rand(level, (NOISE_STEPS, shape[0]))
                factors = 1 + self.jitter * (2 * functions.rand(wobble, NOISE_STEPS) - 1)
            probability, error = self.move(noise[place], levels[place], length * factors[place])
            if tuning and number < warmup:
                length = tuning.update(float(probability.mean()), last=number == warmup - 1)
            if number >= warmup:
                k = number - warmup
                draws[k], values[k], accepted[k], errors[k] = self.points, self.value, probability, error
        flat = np.moveaxis(draws, 0, 1) * self.target.scale
        acceptance, problem = accepted.mean(axis=0), self.target.problem
        return Draws(
            problem.shaped(problem.stacks(flat)),
            flat,
            values.T,
            acceptance,
            errors.T,
            length,
            self.leaps,
            self._names(),
        )

    @property
    def goal(self) -> float:
        """The acceptance rate to which the step is tuned."""
        if not self.leaps:
            return 0.44 if self.points.shape[1] == 1 else 0.234
        return 0.574 if self.leaps == 1 else 0.8

    def _names(self) -> tuple[str, ...]:
        problem = self.target.problem
        return tuple(
            name + (f"[{', '.join(map(str, index))}]" if index else "")
            for name, shape in zip(problem.names, problem.shapes, strict=True)
            for index in np.ndindex(shape)
        )


NOISE_STEPS = 256
"""The number of steps whose noise is drawn together."""


class Tuning:
    """Dual averaging of log h (Hoffman and Gelman, equation 6): the mean acceptance tends to the goal."""

    def __init__(self, goal: float) -> None:
        """The first step is 0.1."""
        self.goal, self.step, self.number, self.sum, self.mean = goal, 0.1, 0, 0.0, 0.0

    def update(self, acceptance: float, last: bool) -> float:
        """The next step after one acceptance probability; after the last, the averaged step."""
        self.number += 1
        t = self.number
        self.sum += (self.goal - acceptance - self.sum) / (t + 10)
        logarithm = float(np.log(10 * 0.1)) - np.sqrt(t) / 0.05 * self.sum
        weight = t**-0.75
        self.mean = weight * logarithm + (1 - weight) * self.mean
        self.step = float(np.exp(self.mean if last else logarithm))
        return self.step
