"""An encoder: every position sees every other; trained on masked tokens, read out by pooling.

Masked language model: a fraction of the tokens is chosen, m_t = 1; of these 80 % are replaced by the mask
token, 10 % by a random one, 10 % stay. The loss is −Σ_t m_t log p(token_t | all corrupted tokens) / Σ_t m_t.
Pooling: features x (..., n, d) become one vector: that of the first token, or the mean, or the maximum of
each feature, over the visible positions. Classification: scores = pool(x) Wᵀ + c, cross-entropy.
Shapes: tokens (B, n), chosen and seen (B, n), W (classes, d), c (classes,). Source: Devlin et al., "BERT"
(2019), sections 3.1 and A.1, appendix A.1 for the shares.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from symad.core.arrays import Array
from symad.core.dims import Dim
from symad.errors import ShapeError, SymadError
from symad.models.layers.losses import cross_entropy, masked_cross_entropy
from symad.models.layers.options import model
from symad.models.layers.parameters import Parameters, Shapes, glorot, numbers
from symad.models.transformers.transformer import Transformer

POOLINGS = ("first", "mean", "max")


@model
class Encoder:
    """A transformer without mask, with a readout of classes.

    Args:
        body: the transformer; its mask must be "none".
        classes: the number of classes, 0 for none.
        pooling: "first", "mean" or "max".

    Raises:
        SymadError: another pooling, or a body that hides positions.
    """

    body: Transformer
    classes: Dim = 0
    pooling: str = "mean"

    def __post_init__(self) -> None:
        if self.pooling not in POOLINGS or self.body.mask != "none":
            raise SymadError(
                f"Encoder(pooling={self.pooling!r}) of a transformer with mask={self.body.mask!r}: the "
                f"pooling is one of {', '.join(POOLINGS)}, the mask 'none'"
            )

    @property
    def shapes(self) -> Shapes:
        """The shapes of the body, and W, c if there are classes."""
        if self.classes == 0:
            return self.body.shapes
        return self.body.shapes | {"W": (self.classes, self.body.width), "c": (self.classes,)}

    def init(self, seed: int = 0, scale: float = 0.02) -> Parameters:
        """The body's values, Glorot's W, c = 0."""
        start = self.body.init(seed, scale)
        if self.classes != 0:
            start["W"] = glorot(np.random.default_rng(seed), self.shapes["W"])
            start["c"] = np.zeros(numbers(self.shapes["c"]))
        return start

    def scores(self, p: Mapping[str, Array], tokens: Array, seen: Array | None = None) -> Array:
        """Scores of the token at each position: (B, n) -> (B, n, |V|)."""
        return self.body.unembed(p, self.body.features(p, tokens, seen=seen))

    def masked_loss(self, p: Mapping[str, Array], tokens: Array, targets: Array, chosen: Array) -> Array:
        """The loss of the true tokens ``targets`` where ``chosen`` is 1, from corrupted tokens."""
        return masked_cross_entropy(self.scores(p, tokens), targets, chosen)

    def classify(self, p: Mapping[str, Array], tokens: Array, seen: Array | None = None) -> Array:
        """Scores of the classes: (B, n) -> (B, classes)."""
        pooled = pool(self.body.features(p, tokens, seen=seen), self.pooling, seen)
        return pooled @ p["W"].T + p["c"]

    def classification_loss(
        self, p: Mapping[str, Array], tokens: Array, labels: Array, seen: Array | None = None
    ) -> Array | float:
        """The cross-entropy of the classes: tokens (B, n), labels (B,)."""
        return cross_entropy(self.classify(p, tokens, seen), labels)


def pool(x: Array, kind: str, seen: Array | None = None) -> Array:
    """Pools the visible positions, at least one, to one vector: (..., n, d) -> (..., d)."""
    if kind == "first":
        return x[..., 0, :]
    if seen is None:
        return np.mean(x, axis=-2) if kind == "mean" else np.max(x, axis=-2)
    kept = seen[..., None]
    if kind == "max":
        return np.max(np.where(kept, x, -np.inf), axis=-2)
    return np.sum(np.where(kept, x, 0.0), axis=-2) / np.sum(np.where(kept, 1.0, 0.0), axis=-2)


def corrupt(
    tokens: Array, vocabulary: int, mask_token: int, rng: np.random.Generator, rate: float = 0.15
) -> tuple[Array, Array]:
    """Corrupted tokens, and the chosen ones (1.0 or 0.0): integers (B, n) -> both (B, n).

    At least one token of every row is chosen, so that no loss is 0/0.

    Raises:
        ShapeError: no tokens.
        SymadError: a rate that is not in (0, 1].
    """
    tokens = np.asarray(tokens)
    if tokens.ndim != 2 or tokens.size == 0:
        raise ShapeError(f"corrupt needs tokens of shape (B, n) with n ≥ 1, not {tokens.shape}")
    if not 0 < rate <= 1:
        raise SymadError(f"corrupt(rate={rate}): the share of chosen tokens must be in (0, 1]")
    draws = rng.uniform(size=tokens.shape)
    chosen = draws <= np.maximum(rate, draws.min(axis=1, keepdims=True))
    kind = rng.uniform(size=tokens.shape)
    random = rng.integers(0, vocabulary, tokens.shape)
    other = np.where(kind < 0.8, mask_token, np.where(kind < 0.9, random, tokens))
    return np.where(chosen, other, tokens), chosen.astype(float)
