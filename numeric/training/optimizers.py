"""Optimizers: pure functions from parameters, gradients and state to new parameters and state.

Parameters and gradients are NumPy or CuPy arrays in one structure: a dict by name, or lists, tuples and
dataclasses of such, as `symad.gradient` returns them. The state is stored by name.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from symad.core.given import renamed
from symad.errors import EvaluationError
from symad.numeric.plain_numbers import plain_fields
from symad.numeric.training.parameters import Arrays, ParameterForm, State, starts, steps

__all__ = ["SGD", "Adam", "Arrays", "Optimizer", "RMSprop", "State", "adamw", "clip_gradients"]


class Optimizer(Protocol):
    """The interface of an optimizer for `symad.numeric.training.loop.train`."""

    def start(self, parameters: Arrays) -> State:
        """The state before the first step."""

    def step(
        self, parameters: Arrays, gradients: Arrays, state: State, factor: float
    ) -> tuple[Arrays, State]:
        """Parameters and state after a step with the learning rate times ``factor``."""


@dataclass(frozen=True, repr=False)
class SGD:
    """Stochastic gradient descent with momentum: g ← ∇L + λ θ,  v ← μ v + g,  θ ← θ − η v.

    With ``nesterov``, θ ← θ − η (g + μ v). Source: Polyak (1964); in the form of Sutskever et al. (2013),
    with the rate outside of v, as in PyTorch.
    """

    rate: float
    momentum: float = 0.0
    penalty: float = 0.0
    nesterov: bool = False

    __repr__ = plain_fields

    def __post_init__(self) -> None:
        _check(
            self,
            rate=self.rate > 0,
            momentum=0 <= self.momentum < 1,
            penalty=self.penalty >= 0,
            nesterov=not self.nesterov or self.momentum > 0,
        )

    @starts
    def start(self, parameters: Arrays) -> State:
        """Velocities, which are 0."""
        return {"v": _zeros(parameters)} if self.momentum else {}

    @steps
    def step(
        self, parameters: Arrays, gradients: Arrays, state: State, factor: float
    ) -> tuple[Arrays, State]:
        """One step."""
        moves = gradients = _penalized(gradients, parameters, self.penalty)
        if self.momentum:
            moves = {k: self.momentum * state["v"][k] + g for k, g in gradients.items()}
            state = {"v": moves}
        if self.nesterov:
            moves = {k: g + self.momentum * moves[k] for k, g in gradients.items()}
        return _moved(parameters, moves, self.rate * factor), state


@renamed(centred="centered")
@dataclass(frozen=True, repr=False)
class RMSprop:
    """g ← ∇L + λ θ,  v ← α v + (1 − α) g²,  w ← μ w + g / (√v + ε),  θ ← θ − η w.

    With ``centered``, √(v − m²) replaces √v, where m ← α m + (1 − α) g. Sources: Hinton, "Neural networks for
    machine learning" (2012), lecture 6e; centered: Graves (2013), equations 38-45; ε as in PyTorch.
    """

    rate: float = 0.01
    alpha: float = 0.99
    epsilon: float = 1e-8
    momentum: float = 0.0
    centered: bool = False
    penalty: float = 0.0

    __repr__ = plain_fields

    def __post_init__(self) -> None:
        _check(
            self,
            rate=self.rate > 0,
            alpha=0 <= self.alpha < 1,
            epsilon=self.epsilon >= 0,
            momentum=0 <= self.momentum < 1,
            penalty=self.penalty >= 0,
        )

    @starts
    def start(self, parameters: Arrays) -> State:
        """The means of g² and, if used, of g, and the velocities, all 0."""
        names = ["v", *(["m"] if self.centered else []), *(["w"] if self.momentum else [])]
        return {name: _zeros(parameters) for name in names}

    @steps
    def step(
        self, parameters: Arrays, gradients: Arrays, state: State, factor: float
    ) -> tuple[Arrays, State]:
        """One step."""
        a, g = self.alpha, _penalized(gradients, parameters, self.penalty)
        made: State = {"v": {k: a * state["v"][k] + (1 - a) * x * x for k, x in g.items()}}
        spread = made["v"]
        if self.centered:
            made["m"] = {k: a * state["m"][k] + (1 - a) * x for k, x in g.items()}
            spread = {k: v - made["m"][k] ** 2 for k, v in spread.items()}
        moves = {k: _quotient(x, spread[k] ** 0.5 + self.epsilon) for k, x in g.items()}
        if self.momentum:
            moves = made["w"] = {k: self.momentum * state["w"][k] + x for k, x in moves.items()}
        return _moved(parameters, moves, self.rate * factor), made


@dataclass(frozen=True, repr=False)
class Adam:
    """Adam, or AdamW with ``decay``.

        g ← ∇L + κ θ,   m ← β₁ m + (1 − β₁) g,   v ← β₂ v + (1 − β₂) g²,
        θ ← θ − η (m̂ / (√v̂ + ε) + λ θ),   m̂ = m / (1 − β₁ᵗ), v̂ = v / (1 − β₂ᵗ).

    The penalty κ is called ``weight_decay`` in PyTorch's Adam; the decay λ, outside of the moments, is
    ``weight_decay`` in its AdamW. All arrays decay, or with ``decays="matrices"`` only those with at least
    two axes, not biases and gains. With ε = 0, a parameter whose gradients were all 0 does not move. Sources:
    Kingma & Ba (2015), algorithm 1; Loshchilov & Hutter (2019), algorithm 2.
    """

    rate: float = 1e-3
    beta1: float = 0.9
    beta2: float = 0.999
    epsilon: float = 1e-8
    decay: float = 0.0
    penalty: float = 0.0
    decays: str = "all"

    __repr__ = plain_fields

    def __post_init__(self) -> None:
        _check(
            self,
            rate=self.rate > 0,
            beta1=0 <= self.beta1 < 1,
            beta2=0 <= self.beta2 < 1,
            epsilon=self.epsilon >= 0,
            decay=self.decay >= 0,
            penalty=self.penalty >= 0,
            decays=self.decays in ("all", "matrices"),
        )

    @starts
    def start(self, parameters: Arrays) -> State:
        """Both moments, which are 0, and the number of steps."""
        return {"m": _zeros(parameters), "v": _zeros(parameters), "t": {"t": np.zeros((), dtype=np.int64)}}

    @steps
    def step(
        self, parameters: Arrays, gradients: Arrays, state: State, factor: float
    ) -> tuple[Arrays, State]:
        """One step."""
        t = state["t"]["t"] + 1
        b1, b2 = self.beta1, self.beta2
        gradients = _penalized(gradients, parameters, self.penalty)
        m = {k: b1 * state["m"][k] + (1 - b1) * g for k, g in gradients.items()}
        v = {k: b2 * state["v"][k] + (1 - b2) * g * g for k, g in gradients.items()}
        moves, left1, left2 = {}, 1 - b1**t, 1 - b2**t
        for k, p in parameters.items():
            size = (v[k] / left2) ** 0.5
            moves[k] = m[k] / left1 / (size + self.epsilon) if self.epsilon else _quotient(m[k] / left1, size)
            if self.decay and (self.decays == "all" or np.ndim(p) > 1):
                moves[k] = moves[k] + self.decay * p
        return _moved(parameters, moves, self.rate * factor), {"m": m, "v": v, "t": {"t": t}}


def adamw(rate: float = 1e-3, decay: float = 0.01, decays: str = "all") -> Adam:
    """Adam with decay of all arrays by default, as in PyTorch; see `Adam`."""
    return Adam(rate, decay=decay, decays=decays)


def _zeros(parameters: Arrays) -> Arrays:
    """Zeros like the finite parameters, by arithmetic only, so that it works on any device."""
    return {k: p - p if hasattr(p, "dtype") else np.zeros(()) for k, p in parameters.items()}


def _penalized(gradients: Arrays, parameters: Arrays, penalty: float) -> Arrays:
    """The gradients plus that of (λ/2) ‖θ‖²."""
    return {k: g + penalty * parameters[k] for k, g in gradients.items()} if penalty else gradients


def _quotient(move: np.ndarray, size: np.ndarray) -> np.ndarray:
    """A move divided by its size; 0 where both are 0, which ε = 0 allows."""
    return move / (size + ((size == 0) & (move == 0)))


def _moved(parameters: Arrays, moves: Arrays, rate: float) -> Arrays:
    """Parameters after a step, in their own dtypes; numbers stay numbers."""
    return {k: _like(p, p - rate * moves[k]) for k, p in parameters.items()}


def _like(parameter: Any, moved: Any) -> Any:
    """The computed value in the dtype of the parameter; a Python number has no dtype to keep."""
    return moved.astype(parameter.dtype, copy=False) if hasattr(parameter, "dtype") else moved


def _check(optimizer: SGD | RMSprop | Adam, **right: bool) -> None:
    wrong = [name for name, ok in right.items() if not ok]
    if wrong:
        raise EvaluationError(
            f"{optimizer}: {', '.join(wrong)} out of range; the rate is positive; epsilon, decay and "
            "penalty are at least 0; momentum, alpha and betas in [0, 1); decays 'all' or 'matrices'; "
            "nesterov needs momentum"
        )


def clip_gradients(gradients: Any, limit: float | None) -> Any:
    """Gradients in their structure, scaled so that the norm of all arrays together is at most ``limit``.

    Source: Pascanu, Mikolov & Bengio (2013), algorithm 1.
    """
    if limit is None:
        return gradients
    form = ParameterForm.of(gradients)
    arrays = form.arrays(gradients, "gradients")
    norm = sum((g * g).sum().item() if hasattr(g, "sum") else g * g for g in arrays.values()) ** 0.5
    return form.pack({k: g * (limit / norm) for k, g in arrays.items()}) if norm > limit else gradients
