"""The encoder-decoder transformer: one reads the source, the other attends to it and writes the target.

    z = encoder(x)                  without mask,
    scores_t = decoder(y_{<t}; z)   causal, with attention to z in each layer,
    loss = −mean_t log p(y_t | y_{<t}, x).

Shapes: source tokens x (n,) or (B, n), the tokens before each target (m,) or (B, m), a start token first, and
targets y in the same shape; scores (m, |V|) or (B, m, |V|). Sources: Vaswani et al. (2017), figure 1; Raffel
et al. (2020), section 2.1; Phuong & Hutter (2022), algorithm 8.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from symad.core.arrays import Array
from symad.core.dims import Dim
from symad.models.layers.losses import cross_entropy
from symad.models.layers.options import model
from symad.models.layers.parameters import Parameters, Shapes, part, prefixed
from symad.models.transformers.transformer import Transformer


@model
class EncoderDecoderTransformer:
    """A pair of transformers of one width; sizes are ints or symbols, but L is an int.

    Args:
        source: the number of source tokens.
        target: the number of target tokens.
        context: the largest n and m.
        width: d.
        layers: L of each.
        heads: H.
        order: this and the other switches as in `symad.models.transformer.Transformer`.
    """

    source: Dim
    target: Dim
    context: Dim
    width: Dim
    layers: int
    heads: int
    hidden: Dim | None = None
    order: str = "pre"
    norm: str = "layer"
    position: str = "learned"
    block: str = "gelu"
    bias: bool = True

    def __post_init__(self) -> None:
        self._make(self.source, "none", None)

    def _make(self, vocabulary: Dim, mask: str, memory: Dim | None) -> Transformer:
        return Transformer(
            vocabulary, self.context, self.width, self.layers, self.heads, hidden=self.hidden, mask=mask,
            order=self.order, norm=self.norm, position=self.position, block=self.block, bias=self.bias,
            memory=memory,
        )  # fmt: skip

    @property
    def encoder(self) -> Transformer:
        """The transformer that reads the source."""
        return self._make(self.source, "none", None)

    @property
    def decoder(self) -> Transformer:
        """The transformer that writes the target."""
        return self._make(self.target, "causal", self.width)

    @property
    def shapes(self) -> Shapes:
        """The shapes of both, as ``encoder_E``, ``decoder_E``, ..."""
        return prefixed("encoder_", self.encoder.shapes) | prefixed("decoder_", self.decoder.shapes)

    def init(self, seed: int = 0, scale: float = 0.02) -> Parameters:
        """Initial values of both, each as if alone, with different random numbers."""
        read, write = self.encoder.init(2 * seed, scale), self.decoder.init(2 * seed + 1, scale)
        return {f"encoder_{k}": v for k, v in read.items()} | {f"decoder_{k}": v for k, v in write.items()}

    def encode(self, p: Mapping[str, Array], x: Array) -> Array:
        """z: (n,) or (B, n) -> (n, d) or (B, n, d)."""
        return self.encoder.features(part(p, "encoder_"), x)

    def scores(self, p: Mapping[str, Array], x: Array, previous: Array) -> Array:
        """Scores of all targets, given the source and the tokens before each target."""
        return self.decoder.scores(part(p, "decoder_"), previous, self.encode(p, x))

    def loss(self, p: Mapping[str, Array], x: Array, previous: Array, y: Array) -> Array | float:
        """The mean of −log p(y_t | y_{<t}, x) over all positions."""
        return cross_entropy(self.scores(p, x, previous), y)

    def translate(self, p: Mapping[str, Array], x: Array, length: int, start: int = 0) -> Array:
        """The most likely token at each step, fed back: x (B, n) -> (B, length), on arrays."""
        z, found = self.encode(p, x), np.full((len(x), 1), start)
        for _ in range(length):
            scores = self.decoder.scores(part(p, "decoder_"), found, z)
            found = np.hstack([found, scores[:, -1].argmax(axis=-1)[:, None]])
        return found[:, 1:]
