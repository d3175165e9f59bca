"""Embeddings: a vector for each token.

A token as a one-hot column x ∈ {0, 1}^{n_voc} times C ∈ R^{d_emb × n_voc} is column ``token`` of C; a decoder
D ∈ R^{n_voc × d_emb} gives scores back, tied if D = Cᵀ. Shared over a context of n_ctx tokens the columns
C x_{−1}, ..., C x_{−n_ctx} are stacked, so the first layer W₁ that reads them has n_ctx·d_emb columns
instead of n_ctx·n_voc, and at each position it acts as W₁ C, whose rank is at most d_emb. Shapes here:
the table Cᵀ (n_voc, d_emb), tokens (...), vectors (..., d_emb). Sources: Bengio et al., "A neural
probabilistic language model" (2003), section 2; tied: Press & Wolf (2017).
"""

from __future__ import annotations

import numpy as np

from symad.core.arrays import Array
from symad.functions import lookup


def one_hot(tokens: Array, vocabulary: int) -> Array:
    """Rows of the identity: tokens (...) -> (..., n_voc)."""
    return np.eye(vocabulary)[np.asarray(tokens)]


def embed(table: Array, tokens: Array) -> Array:
    """Rows of the table Cᵀ (n_voc, d_emb): tokens (...) -> (..., d_emb)."""
    return lookup(table, tokens)


def embed_context(table: Array, contexts: Array) -> Array:
    """The stacked vectors of each context: (N, n_ctx) -> (N, n_ctx · d_emb), the table shared."""
    return lookup(table, contexts).reshape(contexts.shape[0], contexts.shape[1] * table.shape[1])


def decode(vectors: Array, table: Array) -> Array:
    """Scores of all tokens with the tied decoder D = Cᵀ: (..., d_emb) -> (..., n_voc)."""
    return vectors @ table.T
