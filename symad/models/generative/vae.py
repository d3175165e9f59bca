"""The variational autoencoder, and its class-conditional form.

    (μ, log σ) = e(x),   z = μ + σ ⊙ ε,   ℓ = d(z),
    loss = Σ_pixels BCE(x, σ(ℓ)) + KL(N(μ, σ²)‖N(0, I)),   averaged over the samples:

minus the evidence lower bound for pixels x in [0, 1]. With a ``deviation`` τ the pixels are Gaussian
instead, N(σ(ℓ), τ²), and Σ (x − σ(ℓ))²/(2τ²) + (d/2) log 2πτ² replaces the cross-entropy.
Other data have another ``likelihood``: "gaussian" is N(ℓ, τ²), with no sigmoid; or any function of (x, ℓ)
that gives log p(x | z) of each sample. A ``prior`` log p(z) replaces N(0, I), and log q(z |
x) − log p(z) at the sampled z replaces its mean KL. The noise ε (N, k) is an input, so derivatives
are exact. KL in closed form is ½ Σ (μ² + σ² − 1 − ln σ²). Conditional: a one-hot class c (N, C) is
appended to the inputs of both networks. Source: Kingma and Welling, "Auto-encoding variational Bayes"
(2014), equation 10 and appendix B; Sohn, Lee, Yan (2015) for the condition.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from symad import functions
from symad.core.arrays import Array
from symad.core.dims import Dim
from symad.core.graph import Graph
from symad.errors import SymadError
from symad.models.generative.conditional import with_class
from symad.models.layers.feedforward import FeedForward
from symad.models.layers.options import model
from symad.models.layers.parameters import Parameters, Shapes, part, prefixed, trace_model


@model
class VAE:
    """Pixels d, hidden width h, code k, C classes as conditions (0 for none), deviation of the pixels.

    ``likelihood``: "bernoulli", "gaussian" or a function (x, ℓ) -> log p(x | z) (N,); ``prior``: None for
    N(0, I), or a function z (N, k) -> log p(z) (N,).

    Raises:
        SymadError: a deviation that is not positive, or an unknown name of a likelihood.
    """

    pixels: Dim
    hidden: Dim
    code: Dim
    classes: int = 0
    activation: str = "tanh"
    deviation: float | None = None
    likelihood: str | Callable[[Array, Array], Array] = "bernoulli"
    prior: Callable[[Array], Array] | None = None

    def __post_init__(self) -> None:
        if isinstance(self.likelihood, str) and self.likelihood not in ("bernoulli", "gaussian"):
            raise SymadError(f"likelihood={self.likelihood!r} is not bernoulli, gaussian, or a function")
        if self.deviation is not None and not self.deviation > 0:
            raise SymadError(f"the deviation of the pixels is positive, not {self.deviation}")

    @property
    def encoder(self) -> FeedForward:
        """Maps (x, c) to (μ, log σ)."""
        return FeedForward((self.pixels + self.classes, self.hidden, 2 * self.code), self.activation)

    @property
    def decoder(self) -> FeedForward:
        """Maps (z, c) to the logits of the pixels."""
        return FeedForward((self.code + self.classes, self.hidden, self.pixels), self.activation)

    @property
    def shapes(self) -> Shapes:
        """Both networks' parameters (prefixes e_ and d_) and the pixels' own biases."""
        biases: Shapes = {"e_bias": (2 * self.code,), "d_bias": (self.pixels,)}
        return prefixed("e_", self.encoder.shapes) | prefixed("d_", self.decoder.shapes) | biases

    def init(self, seed: int = 0) -> Parameters:
        """The networks' own initial values, biases 0."""
        start = prefixed("e_", self.encoder.init(seed)) | prefixed("d_", self.decoder.init(seed + 1))
        return start | {n: np.zeros(self.shapes[n]) for n in ("e_bias", "d_bias")}

    def encode(self, p: Mapping[str, Array], x: Array, c: Array | None = None) -> tuple[Array, Array]:
        """μ and log σ, each (N, k)."""
        both = self.encoder.apply(part(p, "e_"), with_class(x, c, self.classes)) + p["e_bias"]
        return both[:, : self.code], both[:, self.code :]

    def logits(self, p: Mapping[str, Array], z: Array, c: Array | None = None) -> Array:
        """The logits of the pixels (N, d)."""
        return self.decoder.apply(part(p, "d_"), with_class(z, c, self.classes)) + p["d_bias"]

    def decode(self, p: Mapping[str, Array], z: Array, c: Array | None = None) -> Array:
        """The probabilities of the pixels (N, d), or their means; for a user's likelihood ℓ itself."""
        logits = self.logits(p, z, c)
        return functions.sigmoid(logits) if self.likelihood == "bernoulli" else logits

    def loss(self, p: Mapping[str, Array], x: Array, noise: Array, c: Array | None = None) -> Array:
        """Minus the evidence lower bound, averaged over the samples, in nats."""
        mu, log_sigma = self.encode(p, x, c)
        z = mu + np.exp(log_sigma) * noise
        logits = self.logits(p, z, c)
        if self.prior is None:
            divergence = (mu * mu + np.exp(2 * log_sigma) - 1 - 2 * log_sigma).sum() / 2
        else:
            own = -(noise * noise + float(np.log(2 * np.pi))) / 2 - log_sigma
            divergence = own.sum() - self.prior(z).sum()
        return (self._reconstruction(x, logits) + divergence) / x.shape[0]

    def _reconstruction(self, x: Array, logits: Array) -> Array:
        """−log p(x | z), summed over samples and pixels."""
        if callable(self.likelihood):
            return -self.likelihood(x, logits).sum()
        if self.likelihood == "gaussian":
            return self._gaussian(x - logits, 1.0 if self.deviation is None else self.deviation)
        if self.deviation is None:
            # −x log σ(ℓ) − (1 − x) log(1 − σ(ℓ)) = softplus(ℓ) − x ℓ
            return (functions.softplus(logits) - x * logits).sum()
        return self._gaussian(x - functions.sigmoid(logits), self.deviation)

    @staticmethod
    def _gaussian(rest: Array, deviation: float) -> Array:
        constant = float(np.log(2 * np.pi * deviation**2)) / 2
        return (rest * rest).sum() / (2 * deviation**2) + constant * rest.shape[0] * rest.shape[1]

    def graph(self, samples: Dim) -> Graph:
        """The loss as a graph of the parameters, x, the noise, and the class if there is one."""
        data = [(samples, self.pixels), (samples, self.code)]
        if self.classes:
            data.append((samples, self.classes))
        return trace_model(self.loss, self.shapes, *data)

    def sample(self, p: Parameters, count: int, seed: int = 0, c: Array | None = None) -> Array:
        """Pixels (count, d) of codes drawn from N(0, I)."""
        z = np.random.default_rng(seed).standard_normal((count, int(self.code)))
        return self.decode(p, z, c)
