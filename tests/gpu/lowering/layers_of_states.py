"""Layers of recurrences, as functions to trace."""

from __future__ import annotations

import numpy as np

from symad.models.layers.parameters import trace_model
from symad.models.sequences.recurrent import Recurrent

RNG = np.random.default_rng(7)


def normal(*shape):
    return RNG.normal(size=shape)


def layer(kind, shape=(6, 3, 2), lengths=None, **options):
    """The sum of the squared outputs and last states of a layer in PyTorch's form."""
    made = Recurrent(kind, shape[-1], 5, **options)

    def loss(p, x):
        y, last = made.apply(p, x, lengths=lengths)
        ends = last if isinstance(last, tuple) else (last,)
        return (y**2).sum() + sum((e**3).sum() for e in ends)

    values = [0.5 * normal(*s) for s in made.shapes.values()]
    return trace_model(loss, made.shapes, shape), [*values, normal(*shape)]
