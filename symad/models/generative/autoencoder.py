"""Autoencoders: a network to a code and a network back.

    z = e(x),   x̂ = d(z),   loss ½ ‖x − x̂‖², averaged over the samples,

with samples as rows: x (N, d), codes z (N, k). The linear autoencoder, x̂ = x W_eᵀ W_dᵀ, finds the space of
the first k principal components (Baldi and Hornik, "Neural networks and principal component analysis",
1989). Deep ones are two `FeedForward` networks.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from symad.core.arrays import Array
from symad.core.dims import Dim
from symad.core.graph import Graph
from symad.models.layers.feedforward import FeedForward
from symad.models.layers.options import model
from symad.models.layers.parameters import Parameters, Shapes, glorot, part, prefixed, trace_model


@model
class LinearAutoencoder:
    """x̂ = W_d W_e x with W_e (k, d) and W_d (d, k), on rows of x (N, d)."""

    inputs: Dim
    code: Dim

    @property
    def shapes(self) -> Shapes:
        """W_e and W_d."""
        return {"W_e": (self.code, self.inputs), "W_d": (self.inputs, self.code)}

    def init(self, seed: int = 0) -> Parameters:
        """Glorot's values."""
        rng = np.random.default_rng(seed)
        return {name: glorot(rng, shape) for name, shape in self.shapes.items()}

    def loss(self, p: Mapping[str, Array], x: Array) -> Array:
        """Half the squared distance between x and x̂, averaged over the samples."""
        rest = x - x @ p["W_e"].T @ p["W_d"].T
        return (rest * rest).sum() / (2 * x.shape[0])

    def graph(self, samples: Dim) -> Graph:
        """The loss as a graph of (W_e, W_d, x)."""
        return trace_model(self.loss, self.shapes, (samples, self.inputs))


@model
class Autoencoder:
    """Two feed-forward networks: widths (d, ..., k) to the code, and the same widths back."""

    widths: tuple[Dim, ...]
    activation: str = "tanh"

    @property
    def encoder(self) -> FeedForward:
        """Maps x to the code."""
        return FeedForward(self.widths, self.activation)

    @property
    def decoder(self) -> FeedForward:
        """Maps the code to x̂."""
        return FeedForward(self.widths[::-1], self.activation)

    @property
    def shapes(self) -> Shapes:
        """The parameters of both, with the prefixes e_ and d_."""
        return prefixed("e_", self.encoder.shapes) | prefixed("d_", self.decoder.shapes)

    def init(self, seed: int = 0) -> Parameters:
        """The networks' own initial values."""
        return prefixed("e_", self.encoder.init(seed)) | prefixed("d_", self.decoder.init(seed + 1))

    def encode(self, p: Mapping[str, Array], x: Array) -> Array:
        """The codes (N, k)."""
        return self.encoder.apply(part(p, "e_"), x)

    def decode(self, p: Mapping[str, Array], z: Array) -> Array:
        """The reconstructions (N, d)."""
        return self.decoder.apply(part(p, "d_"), z)

    def loss(self, p: Mapping[str, Array], x: Array) -> Array:
        """Half the squared distance between x and x̂, averaged over the samples."""
        rest = x - self.decode(p, self.encode(p, x))
        return (rest * rest).sum() / (2 * x.shape[0])

    def graph(self, samples: Dim) -> Graph:
        """The loss as a graph of the parameters and x."""
        return trace_model(self.loss, self.shapes, (samples, self.widths[0]))

    def between(self, p: Parameters, a: Array, b: Array, steps: int) -> Array:
        """Decoded points on the line between the codes of two samples (d,): (steps, d)."""
        ends = self.encode(p, np.stack([a, b]))
        weights = np.linspace(0, 1, steps)[:, None]
        return self.decode(p, (1 - weights) * ends[0] + weights * ends[1])
