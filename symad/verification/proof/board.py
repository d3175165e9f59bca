"""Claims written out for the finder, as the checker writes them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

from symad.core.claims import Claim
from symad.core.gc_pause import without_collecting
from symad.verification.checker.proofs import written
from symad.verification.checker.terms import needed
from symad.verification.proof.cut_points import Cuts


class Board:
    """Some claims written out, for one attempt after the other."""

    @without_collecting
    def __init__(self, claims: Sequence[Claim], chosen: Sequence[int], sweeps: str = "") -> None:
        """Raises what the checker does where a claim cannot be written out."""
        self.chosen, self.sweeps = tuple(chosen), sweeps
        writing, self.goals = written(claims, chosen, sweeps)
        outputs = [e for k in chosen for e in writing.elements(claims[k].derivative.function)]
        writing.made.clear()
        writing.kept.clear()  # it refers to the writing
        self.terms = writing.terms
        self.primal = set(needed(outputs))
        """The terms of the functions of which derivatives are claimed."""
        powers = [t for t in self.terms.known.values() if t.kind == "power" and t.data < 0]
        self.divisors = {t.args[0] for t in powers if t.args[0].kind == "sum"}
        self._start = len(self.terms.known), self.terms.work

    @cached_property
    def cuts(self) -> Cuts:
        """Where the sides may be cut."""
        return Cuts.of(list(self.terms.known.values()), self.primal)

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
