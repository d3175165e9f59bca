"""The verdict on one pair of nodes of known sizes, and the entries of a certificate made from it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeAlias, TypeVar

import numpy as np

from symad.core.graph import Node
from symad.ops.basic.sources import symbol_of
from symad.verification.budget import Budget, Meter, OutOfBudget
from symad.verification.certificate.blame import Blame, blame
from symad.verification.certificate.certificate import STATUSES, Comparison, Entry
from symad.verification.certificate.witness import Search, search
from symad.verification.claimed_domain import restricted
from symad.verification.fields.integer_inputs import are_all_looked_at, integer_inputs
from symad.verification.fields.prime_fields import Array
from symad.verification.function_domain import Holds, where_claimed
from symad.verification.random_fields.error_bound import TARGET
from symad.verification.random_fields.identity_testing import Result, compare_nodes
from symad.verification.random_fields.runs import PairResult
from symad.verification.time_guard import Guard

MAX_SINGLE_ENTRIES = 1024
"""The maximum number of elements of an output with an entry for each; larger ones get one for the array."""

PART_OF_TESTS = 0.8
"""The part of the steps that the identity test may take; with the rest a witness is searched for."""

T = TypeVar("T")

INDEXED = "equal by normal forms in index notation"


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
    def claimed(self) -> Holds | None:
        """The condition under which something is claimed about the elements; None for everywhere."""
        return where_claimed(self.comparison.derivative, self.function, (self.left, self.right), self.domain)

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
    search: Search | None = None
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


Prove: TypeAlias = "Callable[[Sequence[Pair], Sequence[Verdict]], list[Verdict]]"
NOTHING: Mapping[int, Verdict] = {}


@dataclass(eq=False)
class Judge:
    """Decides pairs within one budget."""

    budget: Budget
    meter: Meter

    def decide(
        self,
        pairs: Sequence[Pair],
        seed: int,
        prove: Prove | None = None,
        known: Mapping[int, Verdict] = NOTHING,
    ) -> tuple[list[Verdict], tuple[int, ...]]:
        """Verdicts on pairs whose dimensions are numbers, and the primes of the identity test.

        ``prove`` returns verdicts with the proofs that the checker accepts; without it there are only tests.
        ``known`` has verdicts on pairs that need no test.
        """
        rest = [pair for k, pair in enumerate(pairs) if k not in known]
        tested, primes = self._tested(rest, seed, prove)
        todo = iter(tested)
        return [known.get(k) or next(todo) for k in range(len(pairs))], primes

    def _tested(
        self, pairs: Sequence[Pair], seed: int, prove: Prove | None
    ) -> tuple[list[Verdict], tuple[int, ...]]:
        """Verdicts by the identity test and by proofs, and its primes."""
        nodes = [p.asked for p in pairs]
        nothing = Result(tuple(_untested(p) for p in pairs), seed, (), (), (self.meter.used_up,))
        meter = self.meter.part(self.budget.steps * PART_OF_TESTS)
        result = self.within(lambda: compare_nodes(nodes, seed, self.budget, meter), nothing)
        verdicts = []
        for pair, found in zip(pairs, result.pairs, strict=True):
            if found.certain.all():  # nothing is searched for
                verdicts.append(self._verdict(pair, found, result))
                continue
            stopped = _undecided(pair, found, result)
            verdicts.append(self.within(partial(self._verdict, pair, found, result), stopped))
        if prove is not None:
            verdicts = prove(pairs, verdicts)
        return verdicts, result.primes

    def within(self, compute: Callable[[], T], otherwise: T) -> T:
        """The result of a computation, or ``otherwise`` if it uses up the budget."""
        try:
            self.meter.spend(0)
            with Guard(self.meter):
                return compute()
        except OutOfBudget:
            return otherwise
        except Exception:
            if self.meter.stopped:  # other code has turned an interruption into its own error
                return otherwise
            raise

    def _verdict(self, pair: Pair, found: PairResult, result: Result) -> Verdict:
        """The verdict of the identity test: equal elements are tested, the others refuted or undecided."""
        status = np.full(pair.left.shape, "undecided", dtype=object)
        equal = found.certain
        status[equal] = "tested"
        reason, hunt, fault = "", None, None
        if result.draws and not are_all_looked_at([pair.left, pair.right]):
            status[status == "tested"] = "measured"
            reason = f"only for {_drawn(result)}: of other values nothing is known"
        if not equal.all():
            ranges = integer_inputs([pair.left, pair.right])
            hunt = search(pair.left, pair.right, ranges, self.meter, ~equal, (), pair.claimed, pair.inputs)
            status[hunt.differs] = "refuted"
            reason = _why_undecided(found, result, hunt)
            fault = blame(pair.left, pair.right, hunt.points) if hunt.witnesses else None
        lacking = hunt is not None and hunt.agreed > 0
        claim, bound = _tested_claim(found, result), found.log2_bound
        return Verdict(status, claim, bound, "", hunt, fault, reason, lacking=lacking)


def _undecided(pair: Pair, found: PairResult, result: Result) -> Verdict:
    """The verdict of the identity test alone, without a search for a witness or a proof."""
    status = np.full(pair.left.shape, "undecided", dtype=object)
    status[found.certain] = "tested"
    reasons = result.reasons or ("the work allowed was used up",)
    return Verdict(status, _tested_claim(found, result), found.log2_bound, reason="; ".join(reasons))


def _untested(pair: Pair) -> PairResult:
    none = np.zeros(pair.left.shape, dtype=bool)
    return PairResult(none, none, 0.0, "none")


def _tested_claim(found: PairResult, result: Result) -> str:
    way = {
        "exact": ", roots exact and signs by region",
        "inside": ", roots exact, region by region where both sides are defined",
        "related": ", relations between exponents found",
        "cases": ", by signs or whole parts of inputs, after functions that take each value once",
        "spectral": ", of matrices made of their eigenvectors or singular vectors",
    }.get(found.way, "")
    drawn = f", for {_drawn(result)}" if result.draws else ""
    count, bits = len(found.primes), max((p.bit_length() for p in found.primes), default=0)
    primes = f"{count} random primes" if count > 1 else "a random prime"
    return f"equal at random points modulo {primes} of {bits} bits{way}{drawn}"


MAX_DRAWS = 8
"""The largest number of draws of the integer inputs that a certificate lists; it counts the others."""


def _drawn(result: Result) -> str:
    """The values of the integer inputs."""
    told = " and for ".join(result.draws[:MAX_DRAWS])
    more = len(result.draws) - MAX_DRAWS
    return f"{told} and {more} more" if more > 0 else told


def _why_undecided(found: PairResult, result: Result, hunt: Search) -> str:
    """The list of what was tried."""
    if found.equal.any() and found.log2_bound > TARGET:
        parts = [f"equal modulo primes, but with a bound of 2^{found.log2_bound:.0f} only"]
    elif not found.defined.any() and not result.reasons:
        parts = ["undefined at every point tried"]
    elif not found.defined.all() and not result.reasons:
        parts = ["undefined in some elements"]
    else:
        parts = ["not equal modulo primes by the relations that are known here"]
    if hunt.agreed:
        parts.append(f"equal to 30 digits at {hunt.agreed} rational points")
    elif not hunt.points:
        parts.append("no rational point was found at which both are defined")
    if hunt.stopped:
        parts.append(hunt.stopped)
    return "; ".join(dict.fromkeys([*parts, *result.reasons]))


# ---- entries ------------------------------------------------------------------------------------


def entries_of(pair: Pair, verdict: Verdict, sizes: tuple[str, ...]) -> list[Entry]:
    """One entry for each element; one for each status if the array is large or has symbolic sizes."""
    at = f" at {' and at '.join(sizes)}" if sizes else ""
    if verdict.status.size == 0:
        claim = "there are no elements"  # nothing is claimed, so that there is nothing to replay
        return [Entry(pair.name, "proved", claim, 0.0, pair.comparison.assumes, checked=True)]
    if verdict.status.size > MAX_SINGLE_ENTRIES or not all(isinstance(d, int) for d in pair.left.shape):
        statuses = dict.fromkeys(verdict.status.ravel())
        return [_entry(pair, verdict, _count(verdict, s), s, None, at) for s in statuses]
    return [
        _entry(pair, verdict, _index_text(index), str(verdict.status[index]), index, at)
        for index in np.ndindex(verdict.status.shape)
    ]


def _count(verdict: Verdict, status: str) -> str:
    number = int((verdict.status == status).sum())
    return "" if number == verdict.status.size else f" ({number} of {verdict.status.size} elements)"


def _index_text(index: tuple[int, ...]) -> str:
    return f"[{', '.join(map(str, index))}]" if index else ""


def _entry(
    pair: Pair, verdict: Verdict, index: str, status: str, at: tuple[int, ...] | None, sizes: str
) -> Entry:
    made = Entry(pair.name, status, verdict.claim + sizes, 0.0, pair.comparison.assumes, index=index)
    if status == "proved":
        return replace(made, claim=verdict.proof + sizes)
    if status == "tested":
        return replace(made, bound=power_of_two(verdict.log2_bound), reason=verdict.reason)
    if status == "measured":
        reason = f"only{sizes}: of other sizes nothing is known" if sizes else verdict.reason
        return replace(made, claim=(verdict.proof or verdict.claim) + sizes, bound=1.0, reason=reason)
    if status == "undecided":
        bound = power_of_two(verdict.log2_bound)
        return replace(made, claim="not decided" + sizes, bound=bound, reason=verdict.reason)
    assert verdict.search is not None
    known = verdict.search.witnesses
    witness = known[at] if at is not None else next(iter(known.values()))
    claim = f"{pair.comparison.left_name} and {pair.comparison.right_name} differ{verdict.sizes}"
    return replace(made, claim=claim, witness=witness, blame=verdict.blame)


def power_of_two(log2_bound: float) -> float:
    """2^log2_bound, kept above 0 when it underflows."""
    return float(max(2.0 ** max(log2_bound, -1074.0), 5e-324))
