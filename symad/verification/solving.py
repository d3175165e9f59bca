"""Goals that are decided together, the loop over tactics, and what the guard sees of what these say.

Pairs of one certificate share most of their nodes, so a tactic gets all that no earlier one has decided.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial, reduce
from itertools import chain
from math import prod
from typing import TypeAlias

import numpy as np
import sympy

from symad.core.claims import Derivative, Goal, regrouped
from symad.core.graph import Graph
from symad.verification.accept import (
    HELD,
    MAX_SINGLE_ENTRIES,
    NOTHING,
    Pair,
    Seen,
    Verdict,
    nothing_known,
    proof,
    weakened,
    with_search,
)
from symad.verification.budget import Meter, in_time, within
from symad.verification.certificate.blame import blame
from symad.verification.certificate.certificate import Comparison
from symad.verification.fields.prime_fields import Array
from symad.verification.guard import inspect
from symad.verification.proof.with_proofs import Replayed, replayed_claim
from symad.verification.terms.depending import depending
from symad.verification.values.domains import may_lack_values
from symad.verification.values.instance_sizes import Sizes, guarded_sizes, sizes_of
from symad.verification.values.labels import conditions_of, freed, parameters
from symad.verification.without_values import is_fixed


@dataclass(eq=False)
class Goals:
    """Pairs that are decided together, what is known of them, and the verdicts so far."""

    pairs: Mapping[int, Pair]
    seed: int
    meter: Meter
    tactics: Sequence[Tactic]
    known: Replayed | None = None
    """What the checker accepts; None at chosen sizes, which are only tested."""
    found: dict[int, Verdict] = field(default_factory=dict)
    seen: dict[int, Seen] = field(default_factory=dict)
    asked: dict[int, Pair] = field(default_factory=dict)
    """The pairs with other left sides, which are equal and simpler."""
    primes: tuple[int, ...] = ()
    """The primes of the last identity test."""

    @property
    def open(self) -> dict[int, Pair]:
        """What is not decided yet."""
        return {k: p for k, p in self.pairs.items() if k not in self.found}

    def is_symbolic(self, pair: Pair) -> bool:
        """Whether a pair is about all sizes."""
        return self.known is not None and pair.comparison.is_symbolic

    def wanted(self, pair: Pair) -> list[Goal]:
        """What the checker is asked of a pair: its elements, or the array as one."""
        count = prod(pair.left.shape) if is_fixed(pair.left) and not self.is_symbolic(pair) else 1
        return [(*pair.place, e) for e in range(count if count <= MAX_SINGLE_ENTRIES else 1)]

    def proved(self, pair: Pair) -> Array:
        """The elements of a pair of known sizes of which the checker accepts a proof."""
        held = np.zeros(prod(pair.left.shape), dtype=bool)
        for k, o, e in self.known.goals if self.known is not None else ():
            if (k, o) == pair.place and e < held.size:
                held[e] = True
        return held.reshape(pair.left.shape)

    def proofs(self, pairs: Mapping[int, Pair]) -> dict[int, Verdict]:
        """Verdicts on the pairs of which all elements are proved."""
        return {k: proof(p, replayed_claim(p.comparison)) for k, p in pairs.items() if self.proved(p).all()}


Tactic: TypeAlias = Callable[[Goals], Mapping[int, Verdict]]
"""Decides some of the pairs that are open."""


def solve(goals: Goals) -> None:
    """Decide goals by their tactics in turn; what none decides, because the work is used up, stays open."""
    for tactic in goals.tactics:
        if goals.open:
            goals.found.update(tactic(goals))
    for k, pair in goals.open.items():
        goals.found[k] = nothing_known(pair, goals.meter.used_up, final=False)


def standing(goals: Goals) -> list[Verdict]:
    """What stands of the verdicts on pairs of known sizes."""
    solve(goals)
    seen = looked_at(goals)
    return [reduce(weakened, seen[k], goals.found[k]) for k in goals.pairs]


# ---- what is seen of pairs ---------------------------------------------------------------------


def inspected(goals: Goals, pairs: Mapping[int, Pair], large: bool = False) -> dict[int, Seen]:
    """What the guard sees of pairs of known sizes; of large ones the elements that nothing has decided."""
    made = dict[int, Seen]()
    for domain in dict.fromkeys(p.domain for p in pairs.values()):  # each has points of its own
        here = {k: p for k, p in pairs.items() if p.domain is domain}
        watched = [goals.found[k].ground == NOTHING if large else np.ones(p.left.shape, dtype=bool)
                   for k, p in here.items()]  # fmt: skip
        looked = partial(inspect, list(here.values()), watched, goals.seed, goals.meter, large)
        nothing = [Seen.nothing(p) for p in here.values()]
        made.update(zip(here, within(goals.meter, looked, nothing), strict=True))
    return made


def without_derived(goals: Goals, pairs: Mapping[int, Pair]) -> dict[int, Pair]:
    """The pairs; where the checker has derived the right side itself, the left side adds nothing.

    At labels it does: for the checker, a branch on the equality of a label is a tie.
    """
    derived = goals.known.derived if goals.known is not None else set[Goal]()

    def is_derived(p: Pair) -> bool:
        known = derived and not goals.is_symbolic(p) and not is_by_labels(p)
        count = prod(p.right.shape) if known else 0
        return count > 0 and all((*p.place, e) in derived for e in range(count))

    return {k: replace(p, left=p.right) if is_derived(p) else p for k, p in pairs.items()}


def is_by_labels(pair: Pair) -> bool:
    """Whether branches of a derivative, or of its function, ask for labels."""
    return bool(conditions_of(pair.nodes, pair.fixed))


def looked_at(goals: Goals) -> dict[int, list[Seen]]:
    """What the guard has seen of each pair, at each choice of sizes.

    Where one side of a condition on parameters was not met, the claim is asked whichever conditions hold.
    """
    made, asked = _looked_at(goals), dict[int, Pair]()
    for k, pair in goals.pairs.items():
        held = np.isin(goals.found[k].ground, HELD).any() and any(seen.unmet for seen in made[k])
        free = freed(pair.nodes, pair.fixed) if held else None
        if free is not None:
            asked[k] = pair.over(free)
    for k, verdict in whichever_hold(goals, asked).items():
        made[k] = [replace(seen, free=verdict.ground) for seen in made[k]]
    return made


def whichever_hold(goals: Goals, pairs: Mapping[int, Pair]) -> dict[int, Verdict]:
    """What stands of pairs whose conditions on parameters are free truth values."""
    if not pairs:
        return {}
    known = goals.known
    if known is not None:
        known = Replayed(list(map(whichever, known.comparisons)), known.budget)
    there = Goals(pairs, goals.seed, goals.meter, goals.tactics, known)
    return dict(zip(pairs, standing(there), strict=True))


def whichever(claim: Comparison) -> Comparison:
    """A claim with free truth values in the place of conditions on parameters."""
    nodes = freed(list(chain(*claim.groups)), parameters(claim.derivative, claim.left.input_nodes))
    if nodes is None or claim.derivative is None:
        return claim
    left, right, *of, domain = regrouped(nodes, claim.groups)
    derivative = Derivative(claim.derivative.kind, *of)
    return replace(claim, left=Graph((), left), right=Graph((), right), derivative=derivative,
                   domain=domain[0] if domain else None)  # fmt: skip


def _looked_at(goals: Goals) -> dict[int, list[Seen]]:
    late = {k: p for k, p in goals.asked.items() if not goals.seen[k].looked}
    late = {k: p for k, p in late.items() if (goals.found[k].ground == NOTHING).any()}
    goals.seen |= inspected(goals, late, large=True)  # where nothing else decides
    made = {k: [searched(goals, goals.seen[k])] if k in goals.seen else [] for k in goals.pairs}
    rest = {k: p for k, p in goals.pairs.items() if k not in goals.seen and not goals.found[k].final}
    groups: dict[Sizes, dict[int, Pair]] = {}
    for k, p in telling(without_derived(goals, rest)).items():
        sides = p.comparison.left, p.comparison.right
        groups.setdefault(sizes_of(*sides) if goals.is_symbolic(p) else (), {})[k] = p
    for sizes, group in groups.items():
        for chosen in guarded_sizes([n for p in group.values() for n in (p.left, p.right)], sizes):
            for k, here in _seen_at(goals, group, sizes, chosen).items():
                made[k].append(here)
    return made


def telling(pairs: Mapping[int, Pair]) -> dict[int, Pair]:
    """The pairs of which values can tell something: no one node that has values everywhere.

    Of a claim on a domain they tell whether the domain is empty.
    """
    lacking = depending((n for p in pairs.values() for n in (p.left, *p.function)), may_lack_values)
    return {k: p for k, p in pairs.items()
            if p.left is not p.right or p.domain is not None or not lacking.isdisjoint((p.left, *p.function))
            }  # fmt: skip


def _seen_at(
    goals: Goals, pairs: Mapping[int, Pair], sizes: Sizes, chosen: Mapping[sympy.Symbol, int]
) -> dict[int, Seen]:
    """What the guard sees of some pairs at one choice of sizes."""
    seen = inspected(goals, {k: bound(p, chosen) for k, p in pairs.items()})
    at = f" at {', '.join(f'{s} = {v}' for s, v in chosen.items())}" if chosen else ""
    least = any(chosen[s] not in v for s, v in sizes)  # there may be no value: then nothing is claimed
    made = dict[int, Seen]()
    for k, here in seen.items():
        found = searched(goals, replace(here, valued=here.valued | ~here.outside) if least else here)
        made[k] = replace(found, valued=found.valued | least, sizes=at)
    return made


def searched(goals: Goals, seen: Seen) -> Seen:
    """What was seen, with what a search for values finds, and what is wrong with what differs."""
    ended = replace(seen, differs=seen.settled, stopped=seen.stopped or goals.meter.used_up)
    found = within(goals.meter, partial(with_search, seen), ended)
    if not found.differs.any():
        return found
    fault = partial(blame, found.pair.left, found.pair.right, found.places)
    return replace(found, blame=in_time(goals.meter, fault, found.blame))


def bound(pair: Pair, chosen: Mapping[sympy.Symbol, int]) -> Pair:
    """The pair at some sizes."""
    return pair.over(Graph((), pair.nodes).at(chosen).output_nodes) if chosen else pair
