"""Encoder and decoder with attention, recurrent.

    encoder   h_j = f(h_{j−1}, x_j),   j = 1..T;
    decoder   s_t = g(s_{t−1}, y_{t−1}, c_t),   t = 1..T',
              c_t = Σ_j a_tj h_j,   a_t = softmax_j score(s_{t−1}, h_j);
    scores of y_t = W_o [s_t; c_t; e(y_{t−1})] + b_o.

score is the dot product ⟨s, h⟩, or additive, ⟨v, tanh(W_s s + W_h h)⟩. The encoder and the decoder are a tanh
network or an LSTM; s_0 is the encoder's last state. Shapes: source tokens x (T,), targets y (T',), and
y_{t−1} with a start token first; batches (N, T) and (N, T').

Sources: Sutskever, Vinyals & Le (2014); Bahdanau, Cho & Bengio (2015), section 3.1; Luong, Pham & Manning
(2015), equation 8.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from symad.core.arrays import Array
from symad.core.dims import Dim
from symad.errors import SymadError
from symad.functions import concatenate, lookup, scan, softmax
from symad.models.layers.losses import cross_entropy
from symad.models.layers.options import model
from symad.models.layers.parameters import Parameters, Shapes, glorot, initial, normal, numbers, orthogonal
from symad.models.sequences import lstm


def context(s: Array, h: Array, score: Callable[[Array, Array], Array]) -> tuple[Array, Array]:
    """The weights a (..., T) and the context c = Σ_j a_j h_j (..., d).

    Args:
        s: the decoder's state (..., d).
        h: the encoder's states (..., T, d).
        score: from s and h to scores (..., T).
    """
    a = softmax(score(s, h), axis=-1)
    return a, np.einsum("...t,...td->...d", a, h)


def dot_score(s: Array, h: Array) -> Array:
    """⟨s, h_j⟩: (..., d) and (..., T, d) -> (..., T)."""
    return np.einsum("...d,...td->...t", s, h)


def additive_score(s: Array, h: Array, W_s: Array, W_h: Array, v: Array) -> Array:
    """⟨v, tanh(W_s s + W_h h_j)⟩ with W_s, W_h (d_a, d) and v (d_a,)."""
    return np.tanh((s @ W_s.T)[..., None, :] + h @ W_h.T) @ v


@model
class EncoderDecoder:
    """Translates a source (N, T) into a target (N, T').

    Args:
        source: the number of source tokens.
        target: the number of target tokens.
        embedding: d_e of both.
        hidden: d, of encoder and decoder.
        cell: "tanh" or "lstm".
        score: "dot" or "additive".

    Raises:
        SymadError: another cell or score.
    """

    source: Dim
    target: Dim
    embedding: Dim
    hidden: Dim
    cell: str = "lstm"
    score: str = "dot"

    def __post_init__(self) -> None:
        if self.cell not in ("tanh", "lstm") or self.score not in ("dot", "additive"):
            raise SymadError(
                f"cell={self.cell!r}, score={self.score!r}: the cell is 'tanh' or 'lstm', "
                "the score 'dot' or 'additive'"
            )

    @property
    def shapes(self) -> Shapes:
        """Embeddings, both cells (each gate along a leading axis), the score, the readout."""
        d, e = self.hidden, self.embedding
        gates = 4 if self.cell == "lstm" else 1
        found: Shapes = {"E_x": (self.source, e), "E_y": (self.target, e)}
        for name, inputs in (("f", e), ("g", e + d)):
            found |= {f"W_{name}x": (gates, d, inputs), f"W_{name}h": (gates, d, d), f"b_{name}": (gates, d)}
        if self.score == "additive":
            found |= {"W_s": (d, d), "W_h": (d, d), "v": (1, d)}
        return found | {"W_o": (self.target, 2 * d + e), "b_o": (self.target,)}

    def init(self, seed: int = 0) -> Parameters:
        """Standard normal vectors, orthogonal recurrent matrices, Glorot's others, biases 0."""

        def start(rng: np.random.Generator, name: str, shape: tuple[int, ...]) -> np.ndarray:
            if name in ("W_fh", "W_gh"):
                return orthogonal(rng, shape)
            if name[0] == "E":
                return normal(rng, shape, 1.0)
            return np.zeros(numbers(shape)) if name[0] == "b" else glorot(rng, shape)

        return initial(self.shapes, seed, start)

    def advance(
        self, p: Mapping[str, Array], name: str, state: tuple[Array, ...], x: Array
    ) -> tuple[Array | Array, ...]:
        """One step of the encoder (name "f") or decoder ("g"): the state is (h, c), c unused by tanh."""
        h, c = state
        W_x, W_h, b = p[f"W_{name}x"], p[f"W_{name}h"], p[f"b_{name}"]
        driven = np.einsum("nd,ghd->gnh", x, W_x) + b[:, None, :]
        if self.cell == "lstm":
            return lstm.step(h, c, driven, W_h)
        return np.tanh(driven[0] + h @ W_h[0].T), c

    def encode(self, p: Mapping[str, Array], x: Array) -> tuple[Array, tuple[Array, Array]]:
        """The encoder's states (N, T, d), and the last state (h, c): x (N, T) tokens."""
        vectors = np.swapaxes(lookup(p["E_x"], x), 0, 1)
        zero = np.zeros_like(vectors[0, :, :1]) + np.zeros_like(p["b_f"][0])
        h, c = scan(lambda s, v: self.advance(p, "f", s, v), (zero, zero), vectors)
        last = x.shape[1] - 1
        return np.swapaxes(h, 0, 1), (h[last], c[last])

    def scores_of(self, p: Mapping[str, Array], s: Array, h: Array) -> Array:
        """score(s, h_j): (N, d) and (N, T, d) -> (N, T)."""
        if self.score == "dot":
            return dot_score(s, h)
        return additive_score(s, h, p["W_s"], p["W_h"], p["v"][0])

    def decode(self, p: Mapping[str, Array], h: Array, state: tuple[Array, ...], previous: Array) -> Array:
        """Scores (N, T', n_target) of all targets, given the tokens before them ``previous`` (N, T')."""
        vectors = np.swapaxes(lookup(p["E_y"], previous), 0, 1)

        start = (*state, np.zeros_like(state[0]))
        s, _, summaries = scan(lambda carried, e: self.emit(p, h, carried[:2], e), start, vectors)
        return np.swapaxes(self.read(p, s, summaries, vectors), 0, 1)

    def emit(self, p: Mapping[str, Array], h: Array, state: tuple[Array, ...], e: Array) -> tuple[Array, ...]:
        """One step of the decoder with the vector e: its state and cell, and the context that it has read."""
        _, summary = context(state[0], h, lambda s, h: self.scores_of(p, s, h))
        return *self.advance(p, "g", state, concatenate([e, summary], axis=-1)), summary

    def read(self, p: Mapping[str, Array], s: Array, summary: Array, e: Array) -> Array:
        """The scores of the targets."""
        return concatenate([s, summary, e], axis=-1) @ p["W_o"].T + p["b_o"]

    def scores(self, p: Mapping[str, Array], x: Array, previous: Array) -> Array:
        """Scores (N, T', n_target) of source tokens (N, T) and the previous targets (N, T')."""
        h, state = self.encode(p, x)
        return self.decode(p, h, state, previous)

    def loss(self, p: Mapping[str, Array], x: Array, previous: Array, y: Array) -> Array | float:
        """The cross-entropy of the targets y (N, T'), given the true tokens before them."""
        return cross_entropy(self.scores(p, x, previous), y)

    def translate(self, p: Mapping[str, Array], x: Array, length: int, start: int = 0) -> Array:
        """The most likely token at each step, fed back: x (N, T) -> (N, length), on arrays."""
        h, (s, c) = self.encode(p, x)
        tokens, found = np.full(len(x), start), []
        for _ in range(length):
            e = p["E_y"][tokens]
            s, c, summary = self.emit(p, h, (s, c), e)
            tokens = self.read(p, s, summary, e).argmax(axis=-1)
            found.append(tokens)
        return np.stack(found, axis=1)
