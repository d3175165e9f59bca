"""Counting: the n-gram model, the baseline of every language model.

    p̂(x | c) = (count(c x) + α p̂(x | c')) / (count(c) + α),

where c are the last n−1 tokens, count(c) is the number of their occurrences with a successor, c' is c without
the oldest token, and p̂ before the first level is uniform: with α = 0 the transition model of relative
frequencies, with α > 0 smoothed by the shorter context (so that unseen successors have a probability). n = 2
samples words in Shannon's first-order, n = 3 in his second-order Markov approximation. Perplexity is exp of
the mean of −log p̂. Sources: Shannon, "A mathematical theory of communication" (1948), section 3; MacKay &
Peto, "A hierarchical Dirichlet language model" (1995).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from symad.core.arrays import Array
from symad.errors import ShapeError

Gram = tuple[int, ...]


@dataclass(frozen=True)
class NGram:
    """The numbers of occurrences of all runs of at most n tokens in a sequence."""

    order: int
    vocabulary: int
    counts: Counter[Gram] = field(repr=False)
    length: int
    """The number of tokens in the sequence."""
    ending: Gram
    """Its last n − 1 tokens, the only occurrence of a context without a successor."""
    smoothing: float

    def shorter(self, order: int) -> NGram:
        """The model of a lower order: its counts are among those of this one.

        Raises:
            ShapeError: an order below 1 or above this one.
        """
        if not 1 <= order <= self.order:
            raise ShapeError(f"counts of {self.order}-grams cover the orders 1 to {self.order}, not {order}")
        return replace(self, order=order)

    def successors(self, context: Gram) -> int:
        """The number of times that a context was followed by a token."""
        if not context:
            return self.length
        last = self.ending[max(0, len(self.ending) - len(context)) :]
        return self.counts[context] - (context == last)

    def _levels(self, context: Sequence[int]) -> Iterator[tuple[Gram, int]]:
        """The contexts that are used, from the shortest on, each with the number of its successors."""
        recent = tuple(int(t) for t in context[max(0, len(context) - self.order + 1) :])
        for length in range(0 if self.smoothing else len(recent), len(recent) + 1):
            level = recent[len(recent) - length :]
            seen = self.successors(level)
            if not seen:
                if self.smoothing:
                    return
                raise ShapeError(f"the context {recent} never occurred; give smoothing > 0")
            yield level, seen

    def probability(self, context: Sequence[int], token: int) -> float:
        """p̂(token | context); only the last n − 1 tokens of the context matter.

        Raises:
            ShapeError: a context that was never seen, without smoothing.
        """
        p = 1 / self.vocabulary
        for level, seen in self._levels(context):
            p = (self.counts[(*level, int(token))] + self.smoothing * p) / (seen + self.smoothing)
        return p

    def probabilities(self, context: Sequence[int]) -> Array:
        """p̂(· | context), (n_voc,); see `probability`."""
        p = np.full(self.vocabulary, 1 / self.vocabulary)
        for level, seen in self._levels(context):
            found = np.array([self.counts[(*level, token)] for token in range(self.vocabulary)])
            p = (found + self.smoothing * p) / (seen + self.smoothing)
        return p

    def perplexity(self, tokens: Sequence[int], start: int | None = None) -> float:
        """exp(−mean log p̂) of the tokens from ``start`` (by default n − 1) on, each given those before."""
        first = self.order - 1 if start is None else start
        found = [
            self.probability(tokens[max(0, t - self.order + 1) : t], tokens[t])
            for t in range(first, len(tokens))
        ]
        return float(np.exp(-np.mean(np.log(found))))

    def sample(self, prompt: Sequence[int], count: int, seed: int = 0) -> list[int]:
        """``count`` tokens, sampled one after the other."""
        rng, tokens = np.random.default_rng(seed), [int(t) for t in prompt]
        for _ in range(count):
            tokens.append(int(rng.choice(self.vocabulary, p=self.probabilities(tokens))))
        return tokens[len(prompt) :]


def fit(tokens: Sequence[int], order: int, vocabulary: int, smoothing: float = 0.0) -> NGram:
    """Count the runs of 1 to ``order`` tokens in a sequence.

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
    counts: Counter[Gram] = Counter()
    for length in range(1, order + 1):
        counts.update(zip(*(sequence[k:] for k in range(length)), strict=False))
    ending = tuple(sequence[len(sequence) - order + 1 :])
    return NGram(order, vocabulary, counts, len(sequence), ending, smoothing)
