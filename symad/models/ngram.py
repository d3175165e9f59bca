"""Counting: the n-gram model, the baseline of every language model.

    p̂(x | c) = (count(c x) + α p̂(x | c')) / (count(c) + α),

c the last n−1 tokens, c' the same without the oldest, p̂ before the first level uniform: with α = 0 the
transition model of relative frequencies, with α > 0 smoothed by the shorter context (so that unseen
successors have a probability). n = 2 samples words in Shannon's first-order, n = 3 in his second-order
Markov approximation. Perplexity is exp of the mean of −log p̂. Sources: Shannon, "A mathematical theory
of communication" (1948), section 3; MacKay & Peto, "A hierarchical Dirichlet language model" (1995).
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from symad.errors import ShapeError
from symad.models.parameters import Array

Counts = dict[tuple[int, ...], Counter[int]]


@dataclass(frozen=True)
class NGram:
    """Counts of successors of all contexts of up to n − 1 tokens."""

    order: int
    vocabulary: int
    counts: Counts
    smoothing: float

    def probabilities(self, context: Sequence[int]) -> Array:
        """p̂(· | context), (n_voc,); only the last n − 1 tokens matter.

        Raises:
            ShapeError: without smoothing, a context that was never seen.
        """
        recent = tuple(int(t) for t in context)[max(0, len(context) - self.order + 1) :]
        p = np.full(self.vocabulary, 1 / self.vocabulary)
        start = len(recent) if not self.smoothing else 0
        for length in range(start, len(recent) + 1):
            seen = self.counts.get(recent[len(recent) - length :])
            if seen is None:
                if self.smoothing:
                    break
                raise ShapeError(f"the context {recent} never occurred; give smoothing > 0")
            found = np.zeros(self.vocabulary)
            found[list(seen)] = list(seen.values())
            p = (found + self.smoothing * p) / (found.sum() + self.smoothing)
        return p

    def perplexity(self, tokens: Sequence[int], start: int | None = None) -> float:
        """exp(−mean log p̂) of the tokens from ``start`` (by default n − 1) on, each given those before."""
        first = self.order - 1 if start is None else start
        logs = [
            np.log(self.probabilities(tokens[max(0, t - self.order + 1) : t])[tokens[t]])
            for t in range(first, len(tokens))
        ]
        return float(np.exp(-np.mean(logs)))

    def sample(self, prompt: Sequence[int], count: int, seed: int = 0) -> list[int]:
        """``count`` tokens drawn one after the other."""
        rng, tokens = np.random.default_rng(seed), [int(t) for t in prompt]
        for _ in range(count):
            tokens.append(int(rng.choice(self.vocabulary, p=self.probabilities(tokens))))
        return tokens[len(prompt) :]


def fit(tokens: Sequence[int], order: int, vocabulary: int, smoothing: float = 0.0) -> NGram:
    """Count the successors in a sequence.

    Raises:
        ShapeError: a sequence shorter than the order, or tokens outside of the vocabulary.
    """
    sequence = [int(t) for t in tokens]
    if not 1 <= order <= len(sequence):
        raise ShapeError(
            f"{order}-grams need a sequence of at least {max(order, 1)} tokens, not {len(sequence)}"
        )
    if min(sequence) < 0 or max(sequence) >= vocabulary:
        raise ShapeError(f"tokens from {min(sequence)} to {max(sequence)} are not all in 0..{vocabulary - 1}")
    counts: Counts = defaultdict(Counter)
    for t, token in enumerate(sequence):
        for length in range(min(order - 1, t) + 1):
            counts[tuple(sequence[t - length : t])][token] += 1
    return NGram(order, vocabulary, dict(counts), smoothing)
