"""What is to be decided: pairs of nodes that are claimed to be equal, and verdicts on them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from symad.core.graph import Node
from symad.ops.basic.sources import symbol_of
from symad.verification.certificate.blame import Blame
from symad.verification.certificate.certificate import STATUSES, Comparison
from symad.verification.certificate.witness import Witness
from symad.verification.claimed_domain import restricted
from symad.verification.fields.prime_fields import Array

MAX_SINGLE_ENTRIES = 1024
"""The maximum number of elements of an output with an entry for each; larger ones get one for the array."""


@dataclass(frozen=True)
class Pair:
    """One output of a comparison."""

    comparison: Comparison
    name: str
    left: Node
    right: Node
    place: tuple[int, int] = (0, 0)
    """The position of the comparison, and of its output."""
    function: tuple[Node, ...] = ()
    """The function that the left side is a derivative of, if it is one."""

    domain: Node | None = None
    """Positive where the claim is made; None for everywhere."""
    reading: tuple[Node, ...] = ()
    """Both sides as the identity test reads them inside of the domain, if others than they are."""

    @property
    def kind(self) -> str:
        """Which derivative of the function the left side is; "value" if it is none."""
        derivative = self.comparison.derivative
        return derivative.kind if derivative is not None and self.function else "value"

    @property
    def inputs(self) -> tuple[str, ...]:
        """The names of the inputs, in order."""
        return tuple(str(symbol_of(node)) for node in self.comparison.left.input_nodes)

    @property
    def asked(self) -> tuple[Node, Node]:
        """Both sides, as the identity test reads them: simpler ones if there are, 0 outside of the domain.

        They are equal where both sides are and the domain holds; whether that is anywhere, is not said.
        """
        left, right = self.reading or (self.left, self.right)
        if self.domain is not None:
            left, right = restricted((left, right), self.domain)
        return left, right


@dataclass(frozen=True)
class Verdict:
    """The result for one pair at one choice of sizes."""

    status: Array
    """Object array of statuses, in the shape of the pair."""
    claim: str
    """The evidence for the tested elements."""
    log2_bound: float
    proof: str = ""
    """The evidence for the proved elements."""
    witnesses: Mapping[tuple[int, ...], Witness] = field(default_factory=dict)
    """Points at which refuted elements differ."""
    blame: Blame | None = None
    reason: str = ""
    sizes: str = ""
    """The sizes, as text."""
    lacking: bool = False
    """True if undecided elements agree at real points: the identity test may lack a relation."""

    @property
    def rank(self) -> int:
        """The position of the worst status among all statuses."""
        return min((STATUSES.index(s) for s in self.status.ravel()), default=len(STATUSES))

    def worse(self, other: Verdict) -> Verdict:
        """The worse of two instances."""
        return min(self, other, key=lambda v: (v.rank, -v.log2_bound))


def certain(pair: Pair, claim: str) -> Verdict:
    """The verdict that every element is proved."""
    shape = tuple(d if isinstance(d, int) else 1 for d in pair.left.shape)
    return Verdict(np.full(shape, "proved", dtype=object), "", -np.inf, claim)
