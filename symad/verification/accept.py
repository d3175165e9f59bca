"""Pairs that are claimed to be equal, what is known of them, and the verdict: `accept` alone makes it.

A tactic gives each element a ground. `accept` makes the statuses of a certificate of grounds, after all that
strict values have shown of the pair, which can only weaken them: no other code of any package names an
element proved or tested.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Final

import numpy as np
import sympy

from symad.core.graph import Node
from symad.ops.basic.sources import symbol_of
from symad.verification.certificate.blame import NO_BLAME, Blame
from symad.verification.certificate.certificate import STATUSES, Comparison, Entry
from symad.verification.certificate.witness import Witness
from symad.verification.claimed_domain import restricted, ruled
from symad.verification.fields.prime_fields import Array
from symad.verification.random_fields.error_bound import TARGET
from symad.verification.values.labels import parameters
from symad.verification.values.point_set import Point
from symad.verification.without_values import Claimed, claimed_of, is_fixed, why, with_values

# ---- what is to be decided -----------------------------------------------------------------------


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

    @property
    def kind(self) -> str:
        """Which derivative of the function the left side is; "value" if it is none."""
        derivative = self.comparison.derivative
        return derivative.kind if derivative is not None and self.function else "value"

    @property
    def fixed(self) -> frozenset[sympy.Symbol]:
        """The symbols of the inputs that the derivative is not taken by; none for a value."""
        derivative = self.comparison.derivative if self.function else None
        return parameters(derivative, self.comparison.left.input_nodes)

    @property
    def nodes(self) -> tuple[Node, ...]:
        """Both sides, the function and the domain."""
        return self.left, self.right, *self.function, *(() if self.domain is None else (self.domain,))

    def over(self, nodes: Sequence[Node]) -> Pair:
        """The same claim about other nodes in their places."""
        end = 2 + len(self.function)
        domain = nodes[end] if self.domain is not None else None
        return replace(self, left=nodes[0], right=nodes[1], function=tuple(nodes[2:end]), domain=domain)

    @property
    def inputs(self) -> tuple[str, ...]:
        """The names of the inputs, in order."""
        return tuple(str(symbol_of(node)) for node in self.comparison.left.input_nodes)

    @property
    def asked(self) -> tuple[Node, Node]:
        """Both sides, as the identity test reads them: 0 outside of the domain, without what it rules out.

        They are equal where both sides are and the domain holds; whether that is anywhere, is not said.
        """
        return self.simpler if self.domain is None else restricted(self.simpler, self.domain)

    @cached_property
    def simpler(self) -> tuple[Node, Node]:
        """Both sides without the clips and branches that the domain rules out."""
        sides = self.left, self.right
        return sides if self.domain is None else ruled(sides, self.domain)


DIFFER, NOTHING, SAMPLE, TEST, PROOF = GROUNDS = ("differ", "nothing", "sample", "test", "proof")
"""What is known of an element, the worst first: as `STATUSES`."""

STATUS: Final = dict(zip(GROUNDS, STATUSES, strict=True))

HELD = (SAMPLE, TEST, PROOF)

NO_ELEMENTS = "nothing is claimed: the array has no elements"


@dataclass(frozen=True)
class Verdict:
    """What a tactic says of a pair at one choice of sizes, or for all."""

    ground: Array
    """Object array of grounds, in the shape of the pair."""
    claim: str = ""
    """The evidence for the tested elements."""
    log2_bound: float = 0.0
    proof: str = ""
    """The evidence for the proved elements."""
    witnesses: Mapping[tuple[int, ...], Witness] = field(default_factory=dict)
    """Points at which elements differ."""
    blame: Blame | None = None
    reason: str = ""
    sizes: str = ""
    """The sizes at which both sides differ, as text."""
    at: tuple[str, ...] = ()
    """The choices of sizes at which a claim was looked at, as text."""
    final: bool = False
    """True if nothing is claimed, or nothing can be evaluated: there is nothing to be seen."""

    @property
    def rank(self) -> int:
        """The position of the worst ground among all grounds."""
        return min((GROUNDS.index(s) for s in self.ground.ravel()), default=len(GROUNDS))

    def worse(self, other: Verdict) -> Verdict:
        """The worse of two instances."""
        return min(self, other, key=lambda v: (v.rank, -v.log2_bound))


def _shape(pair: Pair) -> tuple[int, ...]:
    return tuple(d if isinstance(d, int) else 1 for d in pair.left.shape)


def proof(pair: Pair, claim: str) -> Verdict:
    """The verdict that every element is proved."""
    return Verdict(np.full(_shape(pair), PROOF, dtype=object), "", -np.inf, claim)


def all_differ(pair: Pair) -> Verdict:
    """The verdict that every element differs; the guard has the witnesses."""
    return Verdict(np.full(_shape(pair), DIFFER, dtype=object))


def nothing_known(pair: Pair, reason: str, final: bool = True) -> Verdict:
    """The verdict that every element is undecided."""
    return Verdict(np.full(_shape(pair), NOTHING, dtype=object), reason=reason, final=final)


@dataclass
class Seen:
    """What was seen of one pair at one choice of sizes."""

    pair: Pair
    """The pair, at these sizes."""
    valued: Array
    """Boolean: both sides, and the function, have values on an open set."""
    differs: Array
    lacks: Array
    """The function has a derivative at a point, and a formula has no value there."""
    outside: Array
    """Of those that differ: only where the function has no value, to which analytic sides continue."""
    witnesses: dict[tuple[int, ...], Witness] = field(default_factory=dict)
    places: list[Point] = field(default_factory=list)
    """Points with a difference, or at which a formula has no value."""
    lacking: str = ""
    """The point at which a formula has no value, as text."""
    agreed: int = 0
    """The number of points at which all elements agreed."""
    looked: bool = False
    """False if the graphs were too large, so that nothing was tried."""
    stopped: str = ""
    sizes: str = ""
    """The choice of sizes, as text."""
    unmet: str = ""
    """Conditions on parameters, one side of which no point has met, as text."""
    free: Array | None = None
    """Grounds of the claim whichever conditions on parameters hold, if it was decided so."""
    blame: Blame = NO_BLAME
    """What is wrong, if elements differ."""

    @staticmethod
    def nothing(pair: Pair) -> Seen:
        """Before anything is tried."""
        valued, differs, lacks, outside = (np.zeros(pair.left.shape, dtype=bool) for _ in range(4))
        return Seen(pair, valued, differs, lacks, outside)

    @property
    def settled(self) -> Array:
        """The elements that differ where something is claimed."""
        return self.differs & ~self.outside


def claim_of(pair: Pair) -> Claimed:
    """What has to have values for a pair to say anything."""
    return claimed_of((pair.left, pair.right), pair.function, pair.kind, pair.place[1], pair.domain)


def with_search(seen: Seen) -> Seen:
    """What was seen, with a search for values of the elements of which none was met.

    A difference where the function has no value counts only if it has values elsewhere.
    """
    missing = ~seen.valued & ~seen.settled
    if not missing.any():
        return seen
    found = with_values(claim_of(seen.pair))
    flags = np.ones_like(missing) if found is None else found[0]
    valued = seen.valued | (flags & missing)
    differs = seen.settled | (seen.differs & valued)
    told = {index: witness for index, witness in seen.witnesses.items() if differs[index]}
    return replace(seen, valued=valued, differs=differs, witnesses=told)


def weakened(verdict: Verdict, seen: Seen) -> Verdict:
    """The verdict that stands after what was seen of a pair: never a stronger one.

    An element that differs is refuted. One that is called equal needs an open set on which both sides have
    values, and none on which the function has a derivative and the formula has no value.
    """
    ground = verdict.ground.copy()
    held, wrong = np.isin(ground, HELD), ground == DIFFER
    differs, lacks = (_fitted(v, ground.shape, False) for v in (seen.differs, seen.lacks))
    valued = _fitted(seen.valued, ground.shape, True)
    if (new := differs & ~(wrong & bool(verdict.witnesses))).any():
        found, fault = {**seen.witnesses, **verdict.witnesses}, verdict.blame or seen.blame
        ground[new] = DIFFER
        sizes = verdict.sizes if verdict.witnesses else seen.sizes
        verdict = replace(verdict, witnesses=found, blame=fault, sizes=sizes)
    reason = verdict.reason
    if (missing := (held | wrong) & ~valued & ~differs).any():
        ground[missing] = NOTHING
        reason = _because(reason, seen.stopped or why(claim_of(seen.pair)), ground, missing)
    elif seen.looked and not seen.stopped and not verdict.final and not (valued | differs).any():
        reason = why(claim_of(seen.pair))
    if (lacking := held & lacks & ~new & ~missing).any():
        ground[lacking] = NOTHING
        reason = f"at {seen.lacking}"
    if seen.unmet:
        free = np.full(ground.shape, NOTHING) if seen.free is None else seen.free
        for index in map(tuple, np.argwhere(np.isin(ground, HELD))):
            least = free[index] if free[index] in HELD else NOTHING
            ground[index] = min(ground[index], least, key=GROUNDS.index)
            reason = seen.unmet if least == NOTHING else reason
    return replace(verdict, ground=ground, reason=reason)


def bounded(verdict: Verdict) -> Verdict:
    """The verdict with tests as samples if no bound makes an error of them unlikely."""
    tests = verdict.ground == TEST
    if verdict.log2_bound <= TARGET or not tests.any():
        return verdict
    return replace(verdict, ground=np.where(tests, SAMPLE, verdict.ground))


def _because(reason: str, more: str, ground: Array, missing: Array) -> str:
    """The reason for elements without values; others may be undecided for their own."""
    if (ground[~missing] == NOTHING).any():
        return f"{reason}; of {int(missing.sum())} elements {more}"
    return more


def _fitted(flags: Array, shape: tuple[int, ...], empty: bool) -> Array:
    """Flags in the shape of a verdict, which has one element for each axis of a symbolic size.

    ``empty`` is what holds at a size at which there are no elements.
    """
    if flags.shape == shape:
        return flags
    return np.broadcast_to(flags.any() if flags.size else np.asarray(empty), shape)


# ---- the entries of a certificate ----------------------------------------------------------------


def accept(pair: Pair, verdict: Verdict, seen: Sequence[Seen]) -> list[Entry]:
    """The entries of a pair: what stands of a verdict after all that was seen, at all sizes.

    There is one entry for each element; one for each status if the array is large or has symbolic sizes.
    """
    verdict = bounded(verdict)
    for here in seen:
        verdict = weakened(verdict, here)
    if verdict.ground.size == 0:
        return [_entry(pair, replace(verdict, reason=NO_ELEMENTS), "", NOTHING, None)]
    if verdict.ground.size > MAX_SINGLE_ENTRIES or not is_fixed(pair.left):
        grounds = dict.fromkeys(verdict.ground.ravel())
        return [_entry(pair, verdict, _count(verdict, g), g, None) for g in grounds]
    return [
        _entry(pair, verdict, _index_text(index), str(verdict.ground[index]), index)
        for index in np.ndindex(verdict.ground.shape)
    ]


def by_own_rules(name: str, claim: str) -> Entry:
    """An entry that rests on the rules of what asks: no graphs are compared (`symad.splits`)."""
    return Entry(name, STATUS[PROOF], claim, 0.0)


def _index_text(index: tuple[int, ...]) -> str:
    return f"[{', '.join(map(str, index))}]" if index else ""


def _count(verdict: Verdict, ground: str) -> str:
    number = int((verdict.ground == ground).sum())
    return "" if number == verdict.ground.size else f" ({number} of {verdict.ground.size} elements)"


def _entry(pair: Pair, verdict: Verdict, index: str, ground: str, at: tuple[int, ...] | None) -> Entry:
    sizes = f" at {' and at '.join(verdict.at)}" if verdict.at else ""
    claim, bound = verdict.claim + sizes, power_of_two(verdict.log2_bound)
    made = Entry(pair.name, STATUS[ground], claim, bound, pair.comparison.assumes, index=index)
    if ground == PROOF:
        return replace(made, claim=verdict.proof + sizes, bound=0.0)
    if ground == TEST:
        return replace(made, reason=verdict.reason)
    if ground == SAMPLE:
        reason = f"only{sizes}: of other sizes nothing is known" if sizes else verdict.reason
        return replace(made, claim=(verdict.proof or verdict.claim) + sizes, bound=1.0, reason=reason)
    if ground == NOTHING:
        return replace(made, claim="not decided" + sizes, reason=verdict.reason)
    known = verdict.witnesses
    witness = known[at] if at is not None else next(iter(known.values()))
    claim = f"{pair.comparison.left_name} and {pair.comparison.right_name} differ{verdict.sizes}"
    return replace(made, claim=claim, bound=0.0, witness=witness, blame=verdict.blame)


def power_of_two(log2_bound: float) -> float:
    """2^log2_bound, kept above 0 when it underflows."""
    return float(max(2.0 ** max(log2_bound, -1074.0), 5e-324))
