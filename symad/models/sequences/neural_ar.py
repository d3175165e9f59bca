"""The neural autoregressive model of order n_ctx.

    p̂(x_0 | x_{−1}, ..., x_{−n_ctx}) = softmax(W₂ tanh(W₁ [C x_{−1}; ...; C x_{−n_ctx}] + b₁) + b₂)

The joint probability of a sequence is Π_t p(x_t | x_{t−1}, x_{t−2}, ...); truncating each factor to n_ctx
tokens gives the model, and −Σ p log p̂ over the observed tokens the cross-entropy. Shapes: contexts (N, n_ctx)
integers, the newest token first; targets (N,); C as a table (n_voc, d_emb); W₁ (d_h, n_ctx·d_emb), b₁ (d_h,),
W₂ (n_voc, d_h), b₂ (n_voc,). Source: Bengio et al., "A neural probabilistic language model" (2003).
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from symad.core.arrays import Array
from symad.core.dims import Dim
from symad.errors import ShapeError
from symad.models.layers.losses import cross_entropy
from symad.models.layers.options import model
from symad.models.layers.parameters import (
    Parameters,
    Shapes,
    glorot_matrices,
    initial,
    normal,
)
from symad.models.sequences.embedding import embed_context


@model
class NeuralAR:
    """A model with n_voc tokens, a context of n_ctx, vectors of d_emb and a layer of d_h."""

    vocabulary: Dim
    context: Dim
    embedding: Dim
    hidden: Dim

    @property
    def shapes(self) -> Shapes:
        """C, W1, b1, W2, b2."""
        return {
            "C": (self.vocabulary, self.embedding),
            "W1": (self.hidden, self.context * self.embedding),
            "b1": (self.hidden,),
            "W2": (self.vocabulary, self.hidden),
            "b2": (self.vocabulary,),
        }

    def init(self, seed: int = 0) -> Parameters:
        """Standard normal C, Glorot's W, biases 0."""

        def start(rng: np.random.Generator, name: str, shape: tuple[int, ...]) -> np.ndarray:
            return normal(rng, shape, 1.0) if name == "C" else glorot_matrices(rng, name, shape)

        return initial(self.shapes, seed, start)

    def scores(self, p: Mapping[str, Array], contexts: Array) -> Array:
        """Scores of the next token: contexts (N, n_ctx) -> (N, n_voc)."""
        hidden = np.tanh(embed_context(p["C"], contexts) @ p["W1"].T + p["b1"])
        return hidden @ p["W2"].T + p["b2"]

    def loss(self, p: Mapping[str, Array], contexts: Array, targets: Array) -> Array | float:
        """The cross-entropy: contexts (N, n_ctx), targets (N,)."""
        return cross_entropy(self.scores(p, contexts), targets)


def contexts(tokens: Array, length: int) -> tuple[Array, Array]:
    """Contexts (N − n_ctx, n_ctx), the newest token first, and the tokens that follow them.

    Raises:
        ShapeError: no token follows a whole context.
    """
    sequence = np.asarray(tokens)
    if sequence.ndim != 1 or not 1 <= length < len(sequence):
        raise ShapeError(
            f"contexts of {length} tokens need a sequence of more, but the tokens have shape {sequence.shape}"
        )
    windows = np.lib.stride_tricks.sliding_window_view(sequence[:-1], length)
    return windows[:, ::-1].copy(), sequence[length:]
