"""Byte-pair encoding.

Start from the distinct characters of a text, in order, as tokens 0, 1, ...; repeatedly the most
frequent pair of neighbors becomes a new token, with the next larger id; of equally frequent pairs the one
with the smallest ids is used. 'abracadabra' becomes XracadXra (ab), XYcadXY (ra), ZcadZ (XY).

Sources: Gage, "A new algorithm for data compression" (1994); Sennrich, Haddow & Birch, "Neural machine
translation of rare words with subword units" (2016), algorithm 1.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from symad.errors import ShapeError, SymadError


@dataclass(frozen=True)
class Tokenizer:
    """Characters, and the merges of token ids in the order they were learned."""

    characters: tuple[str, ...]
    merges: tuple[tuple[int, int], ...]

    @property
    def size(self) -> int:
        """|V|, the number of tokens."""
        return len(self.characters) + len(self.merges)

    @property
    def texts(self) -> list[str]:
        """The text of each token."""
        found = list(self.characters)
        for a, b in self.merges:
            found.append(found[a] + found[b])
        return found

    def encode(self, text: str) -> list[int]:
        """The tokens of a text: the merges are applied in the order in which they were learned.

        Raises:
            SymadError: a character that is not in the text from which the tokenizer was made.
        """
        ids = {c: k for k, c in enumerate(self.characters)}
        unknown = next(((k, c) for k, c in enumerate(text) if c not in ids), None)
        if unknown is not None:
            raise SymadError(
                f"the character {unknown[1]!r} at {unknown[0]} is not among the {len(ids)} known ones"
            )
        packed = _packed(ids[c] for c in text)
        for number, pair in enumerate(self.merges):
            packed = _merged(packed, pair, len(self.characters) + number)
        return [ord(c) for c in packed]

    def decode(self, tokens: Iterable[int]) -> str:
        """The text of some tokens.

        Raises:
            ShapeError: a token that does not exist.
        """
        texts, found = self.texts, []
        for place, token in enumerate(tokens):
            if not 0 <= token < len(texts):
                raise ShapeError(
                    f"token {token} at {place} is not one of the {len(texts)} tokens 0..{len(texts) - 1}"
                )
            found.append(texts[token])
        return "".join(found)


def learn(text: str, size: int) -> Tokenizer:
    """A tokenizer with ``size`` tokens, or fewer when no pair occurs twice.

    Raises:
        ShapeError: an empty text, or a size below the number of distinct characters.
    """
    characters = tuple(sorted(set(text)))
    if not characters or size < len(characters):
        raise ShapeError(
            f"a tokenizer of {size} tokens from a text of {len(text)} characters, {len(characters)} of them "
            "distinct: give a text, and at least one token for each character"
        )
    ids = {c: k for k, c in enumerate(characters)}
    packed, merges = _packed(ids[c] for c in text), list[tuple[int, int]]()
    for new in range(len(characters), size):
        pair, count = _most_frequent(packed)
        if count < 2:
            break
        packed = _merged(packed, pair, new)
        merges.append(pair)
    return Tokenizer(characters, tuple(merges))


def merge(tokens: Sequence[int], pair: tuple[int, int], new: int) -> list[int]:
    """The tokens with every occurrence of a pair, from the left, replaced by a new token."""
    return [ord(c) for c in _merged(_packed(tokens), pair, new)]


def _packed(tokens: Iterable[int]) -> str:
    """Tokens as the characters with these numbers, because strings are searched and counted fast."""
    return "".join(map(chr, tokens))


def _merged(packed: str, pair: tuple[int, int], new: int) -> str:
    return packed.replace(_packed(pair), chr(new))


def _most_frequent(packed: str) -> tuple[tuple[int, int], int]:
    """The most frequent pair of neighbors and its count, ties to the smallest pair of ids.

    Overlapping pairs of one token, as in 'aaa', count at each position.
    """
    counts = Counter(pairwise(packed))
    if not counts:
        return (0, 0), 0
    a, b = min(counts, key=lambda p: (-counts[p], p))
    return (ord(a), ord(b)), counts[a, b]
