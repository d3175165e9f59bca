"""The verdict on one pair of nodes of known sizes, and the entries of a certificate made from it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeAlias, TypeVar

import numpy as np

from symad.verification.accept import LOOKED, Seen, accept, all_differ, with_search
from symad.verification.budget import Budget, Meter, OutOfBudget
from symad.verification.certificate.certificate import Entry
from symad.verification.fields.integer_inputs import are_all_looked_at
from symad.verification.goals import MAX_SINGLE_ENTRIES, Pair, Verdict
from symad.verification.guard import inspect
from symad.verification.random_fields.error_bound import TARGET
from symad.verification.random_fields.identity_testing import Result, compare_nodes
from symad.verification.random_fields.runs import PairResult
from symad.verification.time_guard import Guard

PART_OF_TESTS = 0.8
"""The part of the steps that the identity test may take; with the rest a witness is searched for."""

T = TypeVar("T")

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
        everything = [np.ones(p.left.shape, dtype=bool) for p in pairs]
        nothing = [Seen.nothing(w.shape) for w in everything]
        seen = self.within(partial(inspect, pairs, everything, seed, self.meter), nothing)
        done = {k: all_differ(pairs[k]) for k, s in enumerate(seen) if s.differs.all() and s.differs.size}
        done = {k: v for k, v in done.items() if k not in known} | dict(known)
        rest = [k for k in range(len(pairs)) if k not in done]
        tested, primes = self._tested([pairs[k] for k in rest], [seen[k] for k in rest], seed, prove)
        done |= dict(zip(rest, tested, strict=True))
        late = [k for k, s in enumerate(seen) if not s.looked and (done[k].status == "undecided").any()]
        if late:  # large graphs are looked at where nothing else decides
            again = partial(inspect, [pairs[k] for k in late], [done[k].status == "undecided" for k in late],
                            seed, self.meter, True)  # fmt: skip
            found = self.within(again, [seen[k] for k in late])
            seen = [found[late.index(k)] if k in late else s for k, s in enumerate(seen)]
        return [self.accepted(p, done[k], seen[k]) for k, p in enumerate(pairs)], primes

    def accepted(self, pair: Pair, verdict: Verdict, seen: Seen, sizes: str = "") -> Verdict:
        """The verdict that stands after all that was seen of a pair, and a search for values."""
        held = np.isin(verdict.status, LOOKED)
        held = held if held.shape == seen.valued.shape else np.full(seen.valued.shape, bool(held.any()))
        ended = replace(seen, stopped=seen.stopped or self.meter.used_up)
        whole = self.within(partial(with_search, pair, seen, held), ended)
        return accept(pair, verdict, whole, sizes)

    def _tested(
        self, pairs: Sequence[Pair], seen: Sequence[Seen], seed: int, prove: Prove | None
    ) -> tuple[list[Verdict], tuple[int, ...]]:
        """Verdicts by the identity test and by proofs, and its primes."""
        nodes = [p.asked for p in pairs]
        nothing = Result(tuple(_untested(p) for p in pairs), seed, (), (), (self.meter.used_up,))
        meter = self.meter.part(self.budget.steps * PART_OF_TESTS)
        result = self.within(lambda: compare_nodes(nodes, seed, self.budget, meter), nothing)
        triples = zip(pairs, result.pairs, seen, strict=True)
        verdicts = [_verdict(pair, found, result, s) for pair, found, s in triples]
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


def _verdict(pair: Pair, found: PairResult, result: Result, seen: Seen) -> Verdict:
    """The verdict of the identity test: equal elements are tested, and what is known to differ is refuted."""
    status = np.full(pair.left.shape, "undecided", dtype=object)
    status[found.certain] = "tested"
    status[seen.differs] = "refuted"
    reason = ""
    if result.draws and not are_all_looked_at([pair.left, pair.right]):
        status[status == "tested"] = "measured"
        reason = f"only for {_drawn(result)}: of other values nothing is known"
    if not found.certain.all():
        reason = _why_undecided(found, result, seen)
    lacking = not found.certain.all() and (bool(seen.agreed) or not seen.looked)
    return Verdict(status, _tested_claim(found, result), found.log2_bound, reason=reason, lacking=lacking)


def _untested(pair: Pair) -> PairResult:
    none = np.zeros(pair.left.shape, dtype=bool)
    return PairResult(none, none, 0.0, "none")


def _tested_claim(found: PairResult, result: Result) -> str:
    way = {
        "exact": ", roots exact and signs by region",
        "inside": ", roots exact, region by region where both sides are defined",
        "cases": ", by signs or whole parts of inputs, after functions that take each value once",
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


def _why_undecided(found: PairResult, result: Result, seen: Seen) -> str:
    """The list of what was tried."""
    if found.equal.any() and found.log2_bound > TARGET:
        parts = [f"equal modulo primes, but with a bound of 2^{found.log2_bound:.0f} only"]
    elif not found.defined.any() and not result.reasons:
        parts = ["undefined at every point tried"]
    elif not found.defined.all() and not result.reasons:
        parts = ["undefined in some elements"]
    else:
        parts = ["not equal modulo primes by the relations that are known here"]
    if seen.agreed:
        parts.append(f"equal to 30 digits at {seen.agreed} rational points")
    elif not seen.places:
        parts.append("no rational point was found at which both are defined")
    if seen.stopped:
        parts.append(seen.stopped)
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
    known = verdict.witnesses
    witness = known[at] if at is not None else next(iter(known.values()))
    claim = f"{pair.comparison.left_name} and {pair.comparison.right_name} differ{verdict.sizes}"
    return replace(made, claim=claim, witness=witness, blame=verdict.blame)


def power_of_two(log2_bound: float) -> float:
    """2^log2_bound, kept above 0 when it underflows."""
    return float(max(2.0 ** max(log2_bound, -1074.0), 5e-324))
