"""The draws of Markov chains, with their diagnostics."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from symad.numeric.sampling.diagnostics import effective_sample_size, split_r_hat, standard_error

Array = np.ndarray

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
