"""Nodes at random points modulo fixed primes: what is not 0 there is no zero function."""

from __future__ import annotations

from math import prod
from random import Random

import numpy as np

from symad.core.graph import Node
from symad.errors import SymadError
from symad.ops.arrays.gathering import Gather, ScatterAdd
from symad.verification.budget import Budget, Meter
from symad.verification.fields.integer_inputs import integer_inputs
from symad.verification.fields.prime_fields import Array, Field
from symad.verification.random_fields.function_values import Signatures
from symad.verification.random_fields.residues import Run
from symad.verification.terms.discontinuities import unseen

PRIMES = (2147483647, 2147483587)
"""Both 3 mod 4 and below 2³¹. They are fixed: an unlucky one only makes answers more cautious."""

MAX_SAMPLED_ELEMENTS = 1 << 21
"""The maximum number of elements that are evaluated."""


class Samples:
    """One evaluation, with random values for functions, that grows with the nodes it is asked about."""

    def __init__(self) -> None:
        """Nothing is evaluated yet."""
        self.field, rng = Field(PRIMES), Random(0)
        self.run = Run(self.field, rng, Signatures(self.field, rng), Meter(Budget()))
        self.values: dict[Node, Array | None] = {}
        self.elements = 0

    def has_zeros(self, node: Node) -> bool:
        """Whether an element is 0 in all lanes, has no value, or is beyond the limits."""
        new = unseen(node, self.values)
        moved = [n for n in new if isinstance(n.op, (Gather, ScatterAdd))]
        for source, (low, high) in integer_inputs(moved).items():
            if source not in self.values:
                drawn = np.random.default_rng(0).integers(low, max(high, low + 1), size=source.shape)
                self.run.integers = {**self.run.integers, source: drawn}
        for n in new:
            self.values[n] = self._value(n)
        value = self.values[node]
        return value is None or bool(np.any(self.field.is_zero(value).all(axis=0)))

    def _value(self, node: Node) -> Array | None:
        self.elements += prod(node.shape)
        arguments = [v for v in map(self.values.get, node.args) if v is not None]
        if self.elements > MAX_SAMPLED_ELEMENTS or len(arguments) < len(node.args):
            return None
        try:
            return self.run.value(node, arguments)
        except (SymadError, ArithmeticError):
            return None
