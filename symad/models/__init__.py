"""Models, one a file, each as SymPy mathematics: what it computes, its loss, its parameters.

A model's functions return SymPy expressions in symbols whose sizes may be symbols too; `symad.trace`,
`symad.gradient`, `symad.check` and `symad.numeric.lower` take them as they are.
"""

from __future__ import annotations

from symad.models import (
    activations,
    adaptation,
    ar,
    attention,
    costs,
    embedding,
    encoder_decoder,
    feedforward,
    gated,
    generation,
    linear_unit,
    losses,
    lstm,
    maximum,
    neural_ar,
    ngram,
    normalization,
    parameters,
    positions,
    presets,
    regression,
    rnn,
    tokenization,
    transformer,
)

__all__ = [
    "activations",
    "adaptation",
    "ar",
    "attention",
    "costs",
    "embedding",
    "encoder_decoder",
    "feedforward",
    "gated",
    "generation",
    "linear_unit",
    "losses",
    "lstm",
    "maximum",
    "neural_ar",
    "ngram",
    "normalization",
    "parameters",
    "positions",
    "presets",
    "regression",
    "rnn",
    "tokenization",
    "transformer",
]
