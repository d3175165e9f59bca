"""Denoising diffusion: noise step by step, learn to predict the noise, run backwards.

    q(x_t | x_0) = N(√ᾱ_t x_0, (1 − ᾱ_t) I),   ᾱ_t = Π_{s≤t} (1 − β_s),   t = 1..T,
    loss = E ‖ε − ε_θ(√ᾱ_t x_0 + √(1 − ᾱ_t) ε, t)‖²,
    DDPM: x_{t−1} = (x_t − β_t/√(1 − ᾱ_t) ε_θ)/√(1 − β_t) + √β_t n,
    DDIM: x_{t−1} = √ᾱ_{t−1} x̂_0 + √(1 − ᾱ_{t−1}) ε_θ,  x̂_0 = (x_t − √(1 − ᾱ_t) ε_θ)/√ᾱ_t,
    score: ∇ log q(x_t) ≈ −ε_θ/√(1 − ᾱ_t).

The network may predict x_0 or the velocity v = √ᾱ ε − √(1 − ᾱ) x_0 instead, which are linear in (ε, x_t);
the loss is then the squared error of its prediction. A score that is trained on ∇ log q(x_t | x_0)
learns ∇ log q(x_t), since E[∇ log q(x_t | x_0) | x_t] = ∇ log q(x_t) (Vincent 2011). Samples are rows (N,
d). Sources: Ho, Jain, Abbeel, "Denoising diffusion probabilistic models" (2020), equations 4, 11, 14 and
algorithms 1, 2; Song, Meng, Ermon, "Denoising diffusion implicit models" (2021), equation 12 with η = 0;
Song and Ermon (2019) for the score; Nichol & Dhariwal, "Improved denoising diffusion probabilistic models"
(2021), equation 17; Salimans & Ho, "Progressive distillation" (2022), section 4 and appendix D, for v.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import Any

import numpy as np

from symad.core.arrays import Array
from symad.core.dims import Dim
from symad.core.graph import Graph
from symad.errors import SymadError
from symad.models.generative.conditional import class_shapes, with_class
from symad.models.layers.feedforward import FeedForward
from symad.models.layers.options import model, refuse_complex
from symad.models.layers.parameters import Parameters, Shapes, trace_model


def schedule(steps: int, first: float = 1e-4, last: float = 0.02) -> tuple[Array, Array]:
    """β and ᾱ, each (T + 1,), with β_0 = 0 and ᾱ_0 = 1; β grows linearly from ``first`` to ``last``.

    Raises:
        SymadError: no steps, or a β outside (0, 1).
    """
    if steps < 1 or not 0 < first <= last < 1:
        raise SymadError(
            f"a diffusion schedule needs steps ≥ 1 and 0 < β_1 ≤ β_T < 1, not {steps}, {first}, {last}"
        )
    beta = np.concatenate([[0.0], np.linspace(first, last, steps)])
    return beta, np.cumprod(1 - beta)


def cosine_schedule(steps: int, shift: float = 0.008, most: float = 0.999) -> tuple[Array, Array]:
    """β and ᾱ as in `schedule`, with ᾱ_t ∝ cos²((t/T + s)/(1 + s) π/2) and ᾱ_0 = 1, but β at most ``most``.

    Raises:
        SymadError: no steps, a negative shift, or ``most`` outside (0, 1).
    """
    if steps < 1 or shift < 0 or not 0 < most < 1:
        given = f"{steps}, {shift}, {most}"
        raise SymadError(f"a cosine schedule needs steps ≥ 1, shift ≥ 0 and most in (0, 1), not {given}")
    level = np.cos((np.arange(steps + 1) / steps + shift) / (1 + shift) * np.pi / 2) ** 2
    beta = np.concatenate([[0.0], np.minimum(1 - level[1:] / level[:-1], most)])
    return beta, np.cumprod(1 - beta)


def per_sample(level: Any, *samples: Array) -> Any:
    """A level for each sample, (N,), as a column for samples (N, d); a number, or a column, unchanged."""
    refuse_complex("diffusion", level, *samples)
    return level[:, None] if getattr(level, "ndim", 0) == 1 else level


def noised(x: Array, noise: Array, alpha_bar: Array) -> Array:
    """x_t = √ᾱ x_0 + √(1 − ᾱ) ε, with ᾱ (N,) at each sample's step, or one number."""
    alpha_bar = per_sample(alpha_bar, x, noise)
    return np.sqrt(alpha_bar) * x + np.sqrt(1 - alpha_bar) * noise


def denoised(x: Array, noise: Array, alpha_bar: Array | float) -> Array:
    """x̂_0 = (x_t − √(1 − ᾱ) ε)/√ᾱ, which inverts `noised`."""
    alpha_bar = per_sample(alpha_bar, x, noise)
    return (x - np.sqrt(1 - alpha_bar) * noise) / np.sqrt(alpha_bar)


def ancestral_mean(x: Array, noise: Array, beta: Array | float, alpha_bar: Array | float) -> Array:
    """The mean of q(x_{t−1} | x_t, x_0), where ε = (x_t − √ᾱ x_0)/√(1 − ᾱ) (DDPM, equation 11)."""
    beta, alpha_bar = per_sample(beta, x, noise), per_sample(alpha_bar)
    return (x - beta / np.sqrt(1 - alpha_bar) * noise) / np.sqrt(1 - beta)


def posterior_mean(x: Array, clean: Array, alpha_bar: Array | float, before: Array | float) -> Array:
    """The mean of q(x_{t−1} | x_t, x_0) in terms of x_0, with ᾱ_t and ᾱ_{t−1} (DDPM, equation 7)."""
    alpha_bar, before = per_sample(alpha_bar, x, clean), per_sample(before)
    alpha = alpha_bar / before
    rest = np.sqrt(alpha) * (1 - before) * x + np.sqrt(before) * (1 - alpha) * clean
    return rest / (1 - alpha_bar)


def posterior_variance(alpha_bar: Array | float, before: Array | float) -> Array | float:
    """The variance β_t (1 − ᾱ_{t−1})/(1 − ᾱ_t) of q(x_{t−1} | x_t, x_0), with β_t = 1 − ᾱ_t/ᾱ_{t−1}."""
    return (1 - alpha_bar / before) * (1 - before) / (1 - alpha_bar)


def velocity(clean: Array, noise: Array, alpha_bar: Array) -> Array:
    """The velocity v = √ᾱ ε − √(1 − ᾱ) x_0."""
    alpha_bar = per_sample(alpha_bar, clean, noise)
    return np.sqrt(alpha_bar) * noise - np.sqrt(1 - alpha_bar) * clean


def noise_from(kind: str, predicted: Array, x: Array, alpha_bar: Array | float) -> Array:
    """ε from x_t and the prediction of a network of this kind: "noise", "clean" (x_0) or "velocity"."""
    if kind == "noise":
        return predicted
    alpha_bar = per_sample(alpha_bar, predicted, x)
    if kind == "clean":
        return (x - np.sqrt(alpha_bar) * predicted) / np.sqrt(1 - alpha_bar)
    return np.sqrt(alpha_bar) * predicted + np.sqrt(1 - alpha_bar) * x


def implicit_step(x: Array, noise: Array, alpha_bar: Array | float, before: Array | float) -> Array:
    """The point at the level ``before`` with the same x̂_0 and the same noise (DDIM, equation 12, η = 0)."""
    clean, before = denoised(x, noise, alpha_bar), per_sample(before)
    return np.sqrt(before) * clean + np.sqrt(1 - before) * noise


def score_of(noise: Array, alpha_bar: Array | float) -> Array:
    """∇ log q(x_t | x_0) = −ε/√(1 − ᾱ)."""
    return -noise / np.sqrt(1 - per_sample(alpha_bar, noise))


def tweedie(x: Array, score: Array, alpha_bar: Array | float) -> Array:
    """E[x_0 | x_t] = (x_t + (1 − ᾱ) ∇ log q(x_t))/√ᾱ, for all distributions (Efron 2011, equation 1.4)."""
    alpha_bar = per_sample(alpha_bar, x, score)
    return (x + (1 - alpha_bar) * score) / np.sqrt(alpha_bar)


def time_features(times: Array, width: int, steps: int) -> Array:
    """Sines and cosines of the step, (N, width), wave lengths from 2π to 2π T.

    Raises:
        SymadError: an odd width.
    """
    if width < 2 or width % 2:
        raise SymadError(f"features of the step are pairs of a sine and a cosine, not {width} numbers")
    rates = np.exp(-np.log(steps) * np.arange(width // 2) / max(width // 2 - 1, 1))
    angles = np.asarray(times, dtype=np.float64)[:, None] * rates
    return np.concatenate([np.sin(angles), np.cos(angles)], axis=1)


@model
class Diffusion:
    """A feed-forward network of (x_t, features of t, class) for d-dimensional data.

    ``predicts``: "noise" ε, "clean" x_0 or "velocity" v.

    Raises:
        SymadError: it is none of these.
    """

    inputs: Dim
    hidden: tuple[Dim, ...]
    features: int = 16
    classes: int = 0
    activation: str = "silu"
    predicts: str = "noise"

    def __post_init__(self) -> None:
        if self.predicts not in ("noise", "clean", "velocity"):
            raise SymadError(f"predicts={self.predicts!r} is not one of noise, clean, velocity")

    @property
    def network(self) -> FeedForward:
        """Maps (x_t, features, class) to ε."""
        return FeedForward(
            (self.inputs + self.features + self.classes, *self.hidden, self.inputs), self.activation
        )

    @property
    def shapes(self) -> Shapes:
        """The network's parameters."""
        return self.network.shapes

    def init(self, seed: int = 0) -> Parameters:
        """The network's own initial values."""
        return self.network.init(seed)

    def predict(self, p: Mapping[str, Array], x: Array, time: Array, c: Array | None = None) -> Array:
        """The network's prediction (N, d) for x_t (N, d), time features (N, features), classes (N, C)."""
        inputs = np.concatenate([x, time], axis=1)
        return self.network.apply(p, with_class(inputs, c, self.classes))

    def noise(
        self, p: Mapping[str, Array], x: Array, time: Array, alpha_bar: Array | float, c: Array | None = None
    ) -> Array:
        """ε_θ (N, d), for every kind of prediction."""
        return noise_from(self.predicts, self.predict(p, x, time, c), x, alpha_bar)

    def loss(
        self,
        p: Mapping[str, Array],
        x: Array,
        noise: Array,
        alpha_bar: Array,
        time: Array,
        c: Array | None = None,
    ) -> Array | float:
        """The mean squared error of the prediction, over samples and coordinates."""
        wanted = {"noise": noise, "clean": x}
        aim = wanted[self.predicts] if self.predicts in wanted else velocity(x, noise, alpha_bar)
        rest = aim - self.predict(p, noised(x, noise, alpha_bar), time, c)
        return (rest * rest).mean()

    def graph(self, samples: Dim) -> Graph:
        """The loss as a graph of the parameters, x_0, ε, ᾱ, time features and classes."""
        data = [(samples, self.inputs), (samples, self.inputs), (samples,), (samples, self.features)]
        return trace_model(self.loss, self.shapes, *data, *class_shapes(samples, self.classes))

    def draw(self, x: Array, steps: int, alpha_bar: Array, rng: np.random.Generator,
             c: Any = None, hidden: float = 0.0) -> tuple[Array, ...]:  # fmt: skip
        """Random inputs of the loss for samples x: (x, ε, ᾱ, features[, c]).

        A fraction ``hidden`` of the classes becomes 0, so that the network also learns to predict without
        them.
        """
        times = rng.integers(1, steps + 1, size=len(x))
        noise = rng.standard_normal(x.shape)
        found = (x, noise, alpha_bar[times], time_features(times, self.features, steps))
        if not self.classes:
            return found
        return (*found, c * (rng.uniform(size=(len(x), 1)) >= hidden) if hidden else c)

    def guided(
        self,
        p: Mapping[str, Array],
        x: Array,
        time: Array,
        c: Array | None,
        guidance: float,
        alpha_bar: Any = None,
    ) -> Array:
        """ε_θ with a larger weight of the class: (1 + w) ε_θ(x, c) − w ε_θ(x, no class).

        Source: Ho and Salimans, "Classifier-free diffusion guidance" (2022), equation 6.
        """
        noise = self.noise(p, x, time, alpha_bar, c)
        if not guidance:
            return noise
        return (1 + guidance) * noise - guidance * self.noise(p, x, time, alpha_bar, np.zeros_like(c))

    def noise_at(
        self,
        p: Mapping[str, Array],
        x: Array,
        t: int,
        alpha_bar: Array,
        c: Array | None = None,
        guidance: float = 0.0,
    ) -> Array:
        """ε_θ, or the `guided` one, of points (N, d) at the step t of a schedule."""
        time = time_features(np.full(len(x), t), self.features, len(alpha_bar) - 1)
        return self.guided(p, x, time, c, guidance, alpha_bar[t])

    def score(self, p: Parameters, x: Array, t: int, alpha_bar: Array, c: Array | None = None) -> Array:
        """∇ log q(x_t) at points (N, d), for a step t in 1..T."""
        if not 1 <= t < len(alpha_bar):
            raise SymadError(f"the steps of this schedule are 1..{len(alpha_bar) - 1}, not {t}")
        return score_of(self.noise_at(p, x, t, alpha_bar, c), alpha_bar[t])

    def bound(self, p: Parameters, x: Array, beta: Array, seed: int = 0, c: Array | None = None) -> float:
        """A lower bound on the mean of log p(x) over samples x (N, d), in nats: one draw of ε for each step.

        E_q [log p(x_0 | x_1) − Σ_{t>1} KL(q(x_{t−1} | x_t, x_0)‖p(x_{t−1} | x_t))] − KL(q(x_T | x_0)‖N(0, I))
        with p(x_{t−1} | x_t) = N(ancestral mean, β_t I), the distribution of `sample` except for noise of
        variance β_1 at the end (DDPM, equation 5).
        """
        rng, alpha_bar, steps = np.random.default_rng(seed), np.cumprod(1 - beta), len(beta) - 1
        count, width = np.shape(x)
        log_p = -_kl((alpha_bar[-1] * x * x).sum(axis=1), 1 - alpha_bar[-1], 1.0, width)
        for t in range(steps, 0, -1):
            noise = rng.standard_normal((count, width))
            noisy = noised(x, noise, np.full(count, alpha_bar[t]))
            mean = ancestral_mean(noisy, self.noise_at(p, noisy, t, alpha_bar, c), beta[t], alpha_bar[t])
            if t == 1:
                square = ((x - mean) ** 2).sum(axis=1)
                log_p = log_p - square / (2 * beta[1]) - width * np.log(2 * np.pi * beta[1]) / 2
            else:
                square = ((ancestral_mean(noisy, noise, beta[t], alpha_bar[t]) - mean) ** 2).sum(axis=1)
                variance = posterior_variance(alpha_bar[t], alpha_bar[t - 1])
                log_p = log_p - _kl(square, variance, beta[t], width)
        return float(log_p.mean())

    def sample(self, p: Parameters, count: int, beta: Array, seed: int = 0, c: Array | None = None,
               guidance: float = 0.0, posterior: bool = False) -> Array:  # fmt: skip
        """Ancestral sampling (DDPM, algorithm 2): (count, d).

        The noise of a step has the variance β_t, which is best for data N(0, I), or with ``posterior`` that
        of q(x_{t−1} | x_t, x_0), which is best for data that are one point, and sharper for few steps
        (section 3.2).
        """
        rng = np.random.default_rng(seed)
        alpha_bar = np.cumprod(1 - beta)
        x: Array = rng.standard_normal((count, int(self.inputs)))
        for t in range(len(beta) - 1, 0, -1):
            noise = self.noise_at(p, x, t, alpha_bar, c, guidance)
            x = ancestral_mean(x, noise, beta[t], alpha_bar[t])
            if t > 1:
                variance = posterior_variance(alpha_bar[t], alpha_bar[t - 1]) if posterior else beta[t]
                x = x + np.sqrt(variance) * rng.standard_normal(x.shape)
        return x

    def sample_corrected(self, p: Parameters, count: int, beta: Array, steps: int = 2, rate: float = 0.1,
                         seed: int = 0, c: Array | None = None) -> Array:  # fmt: skip
        """Sampling by the score: Langevin's dynamics at every level, DDIM's step to the next: (count, d).

        At each level ``steps`` times x ← x + (η/2) ∇ log q(x) + √η n with η = rate (1 − ᾱ). Source: Song et
        al., "Score-based generative modeling through stochastic differential equations" (2021), section 4.2.
        """
        rng, alpha_bar = np.random.default_rng(seed), np.cumprod(1 - beta)
        x: Array = rng.standard_normal((count, int(self.inputs)))
        for t in range(len(beta) - 1, 0, -1):
            size = rate * (1 - alpha_bar[t])
            for _ in range(steps):
                drift = self.score(p, x, t, alpha_bar, c)
                x = x + size / 2 * drift + np.sqrt(size) * rng.standard_normal(x.shape)
            noise = -np.sqrt(1 - alpha_bar[t]) * self.score(p, x, t, alpha_bar, c)
            x = implicit_step(x, noise, alpha_bar[t], alpha_bar[t - 1])
        return x

    def sample_ddim(self, p: Parameters, count: int, beta: Array, steps: int, seed: int = 0,
                    c: Array | None = None, guidance: float = 0.0) -> Array:  # fmt: skip
        """Deterministic sampling in fewer steps (DDIM with η = 0): (count, d)."""
        if not 1 <= steps < len(beta):
            raise SymadError(f"DDIM takes 1..{len(beta) - 1} steps with this schedule, not {steps}")
        alpha_bar = np.cumprod(1 - beta)
        chosen = np.unique(np.linspace(0, len(beta) - 1, steps + 1).round().astype(int))[::-1]
        x: Array = np.random.default_rng(seed).standard_normal((count, int(self.inputs)))
        for t, before in pairwise(chosen):
            noise = self.noise_at(p, x, t, alpha_bar, c, guidance)
            x = implicit_step(x, noise, alpha_bar[t], alpha_bar[before])
        return x


def _kl(square: Array, variance: Array | float, other: Array | float, width: int) -> Array:
    """KL(N(m, v I)‖N(n, w I)) for |m − n|² = ``square``, v = ``variance``, w = ``other``."""
    ratio = variance / other
    return (square / other + width * (ratio - 1 - np.log(ratio))) / 2
