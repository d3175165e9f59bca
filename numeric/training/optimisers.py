"""Optimisers: pure functions from parameters, gradients and state to new parameters and state."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

import numpy as np

from symad.errors import EvaluationError

Arrays: TypeAlias = "dict[str, np.ndarray[Any, Any]]"
State: TypeAlias = "dict[str, Arrays]"


class Optimiser(Protocol):
    """What `symad.numeric.training.loop.train` asks of an optimiser."""

    def start(self, parameters: Arrays) -> State:
        """The state before the first step."""

    def step(
        self, parameters: Arrays, gradients: Arrays, state: State, factor: float
    ) -> tuple[Arrays, State]:
        """Parameters and state after a step with the learning rate times ``factor``."""


@dataclass(frozen=True)
class SGD:
    """Stochastic gradient descent with momentum: v ← μ v + g, θ ← θ − η v.

    Source: Polyak (1964); in the form of Sutskever et al. (2013) with the rate outside of v.
    """

    rate: float
    momentum: float = 0.0

    def __post_init__(self) -> None:
        _check(self, rate=self.rate > 0, momentum=0 <= self.momentum < 1)

    def start(self, parameters: Arrays) -> State:
        """Velocities, which are 0."""
        return {"v": {k: np.zeros_like(p) for k, p in parameters.items()}} if self.momentum else {}

    def step(
        self, parameters: Arrays, gradients: Arrays, state: State, factor: float
    ) -> tuple[Arrays, State]:
        """One step."""
        moves = gradients
        if self.momentum:
            moves = {k: self.momentum * state["v"][k] + g for k, g in gradients.items()}
            state = {"v": moves}
        rate = self.rate * factor
        return {k: p - rate * moves[k] for k, p in parameters.items()}, state


@dataclass(frozen=True)
class Adam:
    """Adam, and with ``decay`` AdamW.

        m ← β₁ m + (1 − β₁) g,   v ← β₂ v + (1 − β₂) g²,
        θ ← θ − η (m̂ / (√v̂ + ε) + λ θ),   m̂ = m / (1 − β₁ᵗ), v̂ = v / (1 − β₂ᵗ).

    Sources: Kingma & Ba (2015), algorithm 1; the decay λ outside of the moments: Loshchilov & Hutter
    (2019), algorithm 2. Only arrays with at least two axes decay: biases and gains do not.
    """

    rate: float = 1e-3
    beta1: float = 0.9
    beta2: float = 0.999
    epsilon: float = 1e-8
    decay: float = 0.0

    def __post_init__(self) -> None:
        _check(
            self,
            rate=self.rate > 0,
            beta1=0 <= self.beta1 < 1,
            beta2=0 <= self.beta2 < 1,
            epsilon=self.epsilon > 0,
            decay=self.decay >= 0,
        )

    def start(self, parameters: Arrays) -> State:
        """Both moments, which are 0, and the number of steps."""
        return {
            "m": {k: np.zeros_like(p) for k, p in parameters.items()},
            "v": {k: np.zeros_like(p) for k, p in parameters.items()},
            "t": {"t": np.zeros((), dtype=np.int64)},
        }

    def step(
        self, parameters: Arrays, gradients: Arrays, state: State, factor: float
    ) -> tuple[Arrays, State]:
        """One step."""
        t = state["t"]["t"] + 1
        b1, b2, rate = self.beta1, self.beta2, self.rate * factor
        m = {k: b1 * state["m"][k] + (1 - b1) * g for k, g in gradients.items()}
        v = {k: b2 * state["v"][k] + (1 - b2) * g * g for k, g in gradients.items()}
        moved = {}
        for k, p in parameters.items():
            move = m[k] / (1 - b1**t) / (np.sqrt(v[k] / (1 - b2**t)) + self.epsilon)
            if self.decay and p.ndim > 1:
                move = move + self.decay * p
            moved[k] = (p - rate * move).astype(p.dtype, copy=False)
        return moved, {"m": m, "v": v, "t": {"t": t}}


def adamw(rate: float = 1e-3, decay: float = 0.01) -> Adam:
    """Adam with decay of the matrices; see `Adam`."""
    return Adam(rate, decay=decay)


def _check(optimiser: SGD | Adam, **right: bool) -> None:
    wrong = [name for name, ok in right.items() if not ok]
    if wrong:
        raise EvaluationError(
            f"{optimiser}: {', '.join(wrong)} out of range; rate and epsilon are positive, momentum and "
            "betas in [0, 1), decay at least 0"
        )


def clip_gradients(gradients: Arrays, limit: float | None) -> Arrays:
    """Gradients scaled so that their norm, all arrays together, is at most ``limit``.

    Source: Pascanu, Mikolov & Bengio (2013), algorithm 1.
    """
    if limit is None:
        return gradients
    norm = float(np.sqrt(sum(float((g * g).sum()) for g in gradients.values())))
    return {k: g * (limit / norm) for k, g in gradients.items()} if norm > limit else gradients
