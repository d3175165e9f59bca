"""Models, one a file, each as SymPy mathematics: what it computes, its loss, its parameters.

A model's functions return SymPy expressions in symbols whose sizes may be symbols too; `symad.trace`,
`symad.gradient`, `symad.check` and `symad.numeric.lower` take them as they are.
"""

from __future__ import annotations

from symad.models import (
    activations,
    ar,
    attention,
    costs,
    feedforward,
    gated,
    generation,
    linear_unit,
    losses,
    lstm,
    maximum,
    normalization,
    parameters,
    positions,
    presets,
    regression,
    rnn,
    transformer,
)

__all__ = [
    "activations",
    "ar",
    "attention",
    "costs",
    "feedforward",
    "gated",
    "generation",
    "linear_unit",
    "losses",
    "lstm",
    "maximum",
    "normalization",
    "parameters",
    "positions",
    "presets",
    "regression",
    "rnn",
    "transformer",
]
