"""Claims written out for the finder, as the checker writes them."""

from __future__ import annotations

from collections.abc import Sequence

from symad.core.claims import Claim
from symad.core.gc_pause import without_collecting
from symad.verification.checker.proofs import written


class Board:
    """Some claims written out, for one attempt after the other."""

    @without_collecting
    def __init__(self, claims: Sequence[Claim], chosen: Sequence[int]) -> None:
        """Raises what the checker does where a claim cannot be written out."""
        self.chosen = tuple(chosen)
        writing, self.goals = written(claims, chosen)
        writing.made.clear()
        writing.kept.clear()  # it refers to the writing
        self.terms = writing.terms
        self._start = len(self.terms.known), self.terms.work

    def clear(self) -> None:
        """Forget the terms that an attempt has made: the checker numbers those that it makes itself."""
        terms, (count, terms.work) = self.terms, self._start
        while len(terms.known) > count:
            terms.known.popitem()
        terms.numbers = {value: term for value, term in terms.numbers.items() if term.index < count}
        terms.truths = {term for term in terms.truths if term.index < count}

    def close(self) -> None:
        """Let go of the terms, which refer to their table: else they wait for the garbage collector."""
        self.chosen = ()  # so that no attempt takes it for these claims
        for held in (self.terms.known, self.terms.numbers, self.terms.truths):
            held.clear()
