"""Deciding pairs: one list of tactics, one loop, the cheapest first.

A tactic is given what no earlier one has decided, and returns verdicts on some of it. Pairs of one
certificate share most of their nodes and are decided together, so a tactic gets all of them. Whatever it
says has to pass `accept`, so that a wrong tactic meets strict values; a missing one makes a certificate
weaker. A new way to decide is a function here, and a line in `TACTICS`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial, reduce
from itertools import islice
from math import prod
from typing import TypeAlias

import numpy as np
import sympy

from symad.core.claims import Goal
from symad.core.graph import Graph, Node, topological
from symad.ops.arrays.reduction import Extreme
from symad.ops.basic.sources import Dimension
from symad.verification.accept import (
    DIFFER,
    NOTHING,
    PROOF,
    SAMPLE,
    TEST,
    Seen,
    Verdict,
    all_differ,
    nothing_known,
    proof,
    weakened,
    with_search,
)
from symad.verification.budget import Meter, operations
from symad.verification.certificate.blame import blame
from symad.verification.fields.integer_inputs import are_all_looked_at
from symad.verification.fields.prime_fields import Array
from symad.verification.goals import MAX_SINGLE_ENTRIES, Pair, is_fixed
from symad.verification.guard import inspect
from symad.verification.proof.with_proofs import ONE_GRAPH, Replayed, has_symbolic_sizes, replayed_claim
from symad.verification.random_fields.error_bound import TARGET
from symad.verification.random_fields.runs import PairResult
from symad.verification.rewriting.identities.infinities import without_infinities
from symad.verification.rewriting.identity_testing import Result, compare_nodes
from symad.verification.rewriting.restated.by_elements import by_one_element
from symad.verification.rewriting.rewrite import expand_definitions
from symad.verification.terms.depending import depending
from symad.verification.time_guard import in_time, within
from symad.verification.values.domains import may_lack_values
from symad.verification.values.instance_sizes import Sizes, further_sizes, guarded_sizes, sizes_of
from symad.verification.values.ranges import always_exist
from symad.verification.without_values import MAX_ELEMENTS, largest, nowhere_defined

PART_OF_TESTS = 0.8
"""The part of the steps that the identity test may take."""

@dataclass(eq=False)
class Goals:
    """Pairs that are decided together, what is known of them, and the verdicts so far."""

    pairs: Mapping[int, Pair]
    seed: int
    meter: Meter
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
        return self.known is not None and has_symbolic_sizes(pair.comparison)

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


def solve(goals: Goals, tactics: Sequence[Tactic]) -> None:
    """Decide goals by the tactics in turn; what none decides, because the work is used up, stays open."""
    for tactic in tactics:
        if goals.open:
            goals.found.update(tactic(goals))
    for k, pair in goals.open.items():
        goals.found[k] = nothing_known(pair, goals.meter.used_up, final=False)


# ---- what needs no search ------------------------------------------------------------------------


def of_large_arrays(goals: Goals) -> dict[int, Verdict]:
    """Arrays that are too large to be evaluated: proved without their elements, or undecided."""
    made, known = dict[int, Verdict](), goals.known
    for k, pair in goals.open.items():
        most = largest((pair.left, pair.right))
        if most <= MAX_ELEMENTS or known is None:
            continue
        reason = f"it has an array of {most:,} elements, and arrays of at most {MAX_ELEMENTS:,} are evaluated"
        wanted = goals.wanted(pair)
        if pair.left is pair.right:
            known.identical(wanted)
        else:
            reasons = list(known.reasons)
            known.for_all_sizes(wanted)
            known.reasons = reasons  # what other entries lack has other reasons
        claim = ONE_GRAPH if pair.left is pair.right else replayed_claim(pair.comparison)
        made[k] = proof(pair, claim) if known.goals.issuperset(wanted) else nothing_known(pair, reason)
    return made


def about_nothing(goals: Goals) -> dict[int, Verdict]:
    """Claims about a derivative of a function that has no value: the function alone is looked at.

    The inverse of a singular matrix ends a claim so, before anything is tested.
    """
    if goals.known is None:
        return {}
    claims = {(pair.function, pair.domain) for pair in goals.open.values()}
    unknown = dict.fromkeys(claims, "")
    reasons = within(goals.meter, lambda: {claim: nowhere_defined(*claim) for claim in claims}, unknown)
    found = ((k, pair, reasons[pair.function, pair.domain]) for k, pair in goals.open.items())
    return {k: nothing_known(pair, reason) for k, pair, reason in found if reason}


# ---- proofs --------------------------------------------------------------------------------------


def for_all_sizes(goals: Goals) -> dict[int, Verdict]:
    """Claims about all sizes that the checker accepts."""
    made, known = dict[int, Verdict](), goals.known
    for k, pair in goals.open.items():
        if known is None or not goals.is_symbolic(pair):
            continue
        if within(goals.meter, partial(known.proves_for_all_sizes, pair.place), False):
            made[k] = proof(pair, replayed_claim(pair.comparison))
    return made


def before_tests(goals: Goals) -> dict[int, Verdict]:
    """Proofs of relations between whole arrays, and of extremes: they take less than an evaluation.

    A test may visit a region for each order of the elements of an extreme.
    """
    pairs, known = {k: p for k, p in goals.open.items() if not goals.is_symbolic(p)}, goals.known
    if known is None:
        return {}
    wanted = {k: [(*p.place, e) for e in range(prod(p.left.shape))] for k, p in pairs.items()}
    every = [goal for part in wanted.values() for goal in part]
    within(goals.meter, partial(known.whole_arrays, every), None)
    chosen = [k for k in _with_extremes(pairs) if len(wanted[k]) <= MAX_SINGLE_ENTRIES]
    if any(pairs[k].left is not pairs[k].right for k in chosen):
        left = sorted({goal for k in chosen for goal in wanted[k]} - known.goals)
        within(goals.meter, partial(known.elements, left), None)
    return goals.proofs(pairs)


def _with_extremes(pairs: Mapping[int, Pair]) -> list[int]:
    """The pairs in which there are extremes along axes, and those whose sides are one node."""
    sides = {k: (p.left, p.right, *p.function) for k, p in pairs.items()}
    extremes = depending((n for part in sides.values() for n in part), lambda n: isinstance(n.op, Extreme))
    return [k for k, p in pairs.items() if p.left is p.right or not extremes.isdisjoint(sides[k])]


def by_proof(goals: Goals) -> dict[int, Verdict]:
    """What the checker accepts of the elements that are not known to differ."""
    pairs = {k: p for k, p in goals.open.items() if not goals.is_symbolic(p)}
    few = {k: p for k, p in pairs.items() if prod(p.left.shape) <= MAX_SINGLE_ENTRIES}
    rest = {k: ~goals.seen[k].differs if k in goals.seen else np.ones(p.left.shape) for k, p in few.items()}
    wanted = [(*few[k].place, int(e)) for k, part in rest.items() for e in np.flatnonzero(part)]
    if goals.known is not None:  # proofs have limits of their own
        goals.known.elements(sorted({*wanted} - goals.known.goals))
    return goals.proofs(few)


def one_graph(goals: Goals) -> dict[int, Verdict]:
    """Sides that are one node: after the checker was asked whether it is the derivative that is claimed."""
    made, known = dict[int, Verdict](), goals.known
    for k, pair in goals.open.items():
        if known is not None and pair.left is pair.right:
            wanted = goals.wanted(pair)
            known.identical([goal for goal in wanted if goal not in known.goals])
            if known.goals.issuperset(wanted):
                made[k] = proof(pair, ONE_GRAPH)
    return made


# ---- strict values -------------------------------------------------------------------------------


def by_values(goals: Goals) -> dict[int, Verdict]:
    """Pairs of which all elements differ at points: the guard looks before anything is tested."""
    whole = {k: p for k, p in goals.pairs.items() if not goals.is_symbolic(p) and p.left is not p.right}
    whole = {k: p for k, p in whole.items() if k not in goals.found or not goals.found[k].final}
    goals.asked = _telling(beside_proved(_without_derived(goals, whole), goals.found))
    goals.seen = _inspected(goals, goals.asked)
    differ = {k for k, seen in goals.seen.items() if seen.differs.size and seen.differs.all()}
    return {k: all_differ(p) for k, p in goals.open.items() if k in differ}


def _inspected(goals: Goals, pairs: Mapping[int, Pair], large: bool = False) -> dict[int, Seen]:
    """What the guard sees of pairs of known sizes; of large ones the elements that nothing has decided."""
    listed = list(pairs.values())
    watched = [goals.found[k].ground == NOTHING if large else np.ones(p.left.shape, dtype=bool)
               for k, p in pairs.items()]  # fmt: skip
    looked = partial(inspect, listed, watched, goals.seed, goals.meter, large)
    seen = within(goals.meter, looked, [Seen.nothing(p) for p in listed]) if listed else []
    return dict(zip(pairs, seen, strict=True))


def _without_derived(goals: Goals, pairs: Mapping[int, Pair]) -> dict[int, Pair]:
    """The pairs; where the checker has derived the right side itself, the left side adds nothing."""
    derived = goals.known.derived if goals.known is not None else set[Goal]()

    def is_derived(p: Pair) -> bool:
        count = 0 if goals.is_symbolic(p) or not derived else prod(p.right.shape)
        return count > 0 and all((*p.place, e) in derived for e in range(count))

    return {k: replace(p, left=p.right) if is_derived(p) else p for k, p in pairs.items()}


def beside_proved(pairs: Mapping[int, Pair], found: Mapping[int, Verdict]) -> dict[int, Pair]:
    """The pairs; where there is a proved form of the same derivative, it becomes the left side.

    `check` has two gradients and four Hessians of one function, and a reference that is written out element
    by element and is much longer. Equality with a proved form is an equivalent claim if that form has a value
    at every point; at points where it has none, the claim would be empty.
    """
    forms = {(p.comparison.derivative, p.place[1]): p.right for k, p in pairs.items() if k in found}
    made = dict(pairs)
    for k, pair in pairs.items():
        form = forms.get((pair.comparison.derivative, pair.place[1]))
        if form is None or k in found or pair.comparison.derivative is None:
            continue
        if always_exist(without_infinities(expand_definitions([form]))):
            made[k] = replace(pair, left=form)
    return made


# ---- identity tests ------------------------------------------------------------------------------


def by_test(goals: Goals) -> dict[int, Verdict]:
    """The identity test in prime fields; with the proofs of those elements that have one."""
    pairs = {k: goals.asked.get(k, p) for k, p in goals.open.items() if not goals.is_symbolic(p)}
    if not pairs:
        return {}
    seen = {k: goals.seen.get(k) or Seen.nothing(p) for k, p in pairs.items()}
    decided = [seen[k].differs | goals.proved(goals.pairs[k]) for k in pairs]
    meter = goals.meter.part(goals.meter.budget.steps * PART_OF_TESTS)
    budget, nodes = goals.meter.budget, [p.asked for p in pairs.values()]
    untested = tuple(PairResult(none := np.zeros(d.shape, dtype=bool), none, 0.0, "none") for d in decided)
    nothing = Result(untested, goals.seed, (), (), (goals.meter.used_up,))
    result = within(goals.meter, lambda: compare_nodes(nodes, goals.seed, budget, meter, decided), nothing)
    goals.primes = result.primes
    parts = zip(pairs.items(), result.pairs, strict=True)
    return {k: _tested(goals, k, pair, found, result, seen[k]) for (k, pair), found in parts}


def _tested(
    goals: Goals, k: int, pair: Pair, found: PairResult, result: Result, seen: Seen
) -> Verdict:
    """The verdict of the identity test: equal elements are tested, and what is known to differ is refuted."""
    ground = np.full(pair.left.shape, NOTHING, dtype=object)
    ground[found.certain] = TEST
    reason, covered = "", goals.known.covered if goals.known is not None else set[int]()
    if result.draws and not are_all_looked_at([pair.left, pair.right]):
        ground[ground == TEST] = SAMPLE
        reason = f"only for {_drawn(result)}: of other values nothing is known"
    if not found.certain.all():
        reason = _why_undecided(found, result, seen)
    proved = goals.proved(goals.pairs[k])
    ground[proved] = PROOF
    ground[seen.differs] = DIFFER
    if goals.known is not None and pair.place[0] in covered and (ground == TEST).any():
        large = f"arrays of more than {MAX_SINGLE_ENTRIES} elements are not given to it"
        reason = f"the checker accepts no proof: {[*goals.known.reasons, large][0]}"
    claim = _tested_claim(found, result)
    if pair.left is not goals.pairs[k].left and pair.left is not pair.right:
        claim = f"{claim}, to another form of it that is proved"
    text = replayed_claim(pair.comparison) if proved.any() else ""
    return Verdict(ground, claim, found.log2_bound, text, reason=reason)


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


# ---- chosen sizes --------------------------------------------------------------------------------


def at_sizes(goals: Goals) -> dict[int, Verdict]:
    """Claims about all sizes that have no proof, at some sizes: measured, or by one element for all."""
    made = dict[int, Verdict]()
    groups: dict[Sizes, list[int]] = {}
    for k, pair in goals.open.items():
        if goals.is_symbolic(pair):
            groups.setdefault(sizes_of(pair.comparison.left, pair.comparison.right), []).append(k)
    for sizes, group in groups.items():
        for k, verdict in zip(group, _at_sizes(goals, [goals.pairs[k] for k in group], sizes), strict=True):
            made[k] = verdict
    return made


def _at_sizes(goals: Goals, pairs: Sequence[Pair], sizes: Sizes) -> list[Verdict]:
    """The worst of the verdicts at all choices of sizes."""
    texts, worst = size_texts(sizes), list[Verdict]()
    for j in range(max(len(texts), 1)):
        chosen = {symbol: values[j] for symbol, values in sizes}
        text = f" at {texts[j]}" if texts else ""
        there = Goals({k: bound(p, chosen) for k, p in enumerate(pairs)}, goals.seed + j, goals.meter)
        here = [replace(v, sizes=text) for v in standing(there)]
        worst = [a.worse(b) for a, b in zip(worst, here, strict=True)] if worst else here
        goals.primes = there.primes
    if not texts:
        return worst
    made = []
    for pair, verdict in zip(pairs, worst, strict=True):
        verdict = _measured(_elsewhere(pair, verdict, goals))
        verdict = _by_one_element(pair, verdict, goals)
        made.append(replace(verdict, at=texts))
    return made


def standing(goals: Goals) -> list[Verdict]:
    """What stands of the verdicts on pairs of known sizes."""
    solve(goals, TACTICS)
    seen = looked_at(goals)
    return [reduce(weakened, seen[k], goals.found[k]) for k in goals.pairs]


def _by_one_element(pair: Pair, verdict: Verdict, goals: Goals) -> Verdict:
    """The verdict for all sizes where one element stands for all, and the identity test calls it equal."""
    sides = by_one_element(pair.asked) if (verdict.ground == SAMPLE).all() else None
    if sides is None or any(isinstance(n.op, Dimension) for n in topological(sides)):
        return verdict
    comparison = replace(pair.comparison, derivative=None)
    left, right = sides  # the domain is a condition in both
    alone = Pair(comparison, pair.name, left, right, pair.place)
    (one,) = standing(Goals({0: alone}, goals.seed, goals.meter))
    if one.ground != TEST:
        return verdict
    dims = ", ".join(sorted(map(str, pair.comparison.left.dims | pair.comparison.right.dims)))
    claim = f"{one.claim}, by one element that stands for all, for all {dims}"
    return replace(one, ground=np.full(verdict.ground.shape, TEST, dtype=object), claim=claim)


MAX_OPERATIONS = 100_000
"""Further sizes are tried if the two sides have at most this many scalar operations at them."""


def _elsewhere(pair: Pair, verdict: Verdict, goals: Goals) -> Verdict:
    """The verdict, or the one that all elements differ at another size, where they visibly do."""
    if not np.isin(verdict.ground, (PROOF, TEST)).all():
        return verdict
    for sizes in further_sizes(pair.comparison.left, pair.comparison.right):
        there = bound(pair, sizes)
        if operations(topological([there.left, there.right])) > MAX_OPERATIONS:
            continue
        found = weakened(nothing_known(there, ""), _searched(goals, _inspected(goals, {0: there})[0]))
        if (found.ground == DIFFER).any():
            return replace(found, sizes=f" at {', '.join(f'{s} = {v}' for s, v in sizes.items())}")
    return verdict


def _measured(verdict: Verdict) -> Verdict:
    """The verdict with "measured" for claims that hold at the chosen sizes: other sizes are not known."""
    ground = verdict.ground.copy()
    ground[np.isin(ground, (PROOF, TEST))] = SAMPLE
    return replace(verdict, ground=ground)


def size_texts(sizes: Sizes) -> tuple[str, ...]:
    """The sizes of each instance, as text."""
    count = len(sizes[0][1]) if sizes else 0
    return tuple(", ".join(f"{symbol} = {values[k]}" for symbol, values in sizes) for k in range(count))


def bound(pair: Pair, chosen: Mapping[sympy.Symbol, int]) -> Pair:
    """The pair at some sizes."""
    if not chosen:
        return pair
    domain: tuple[Node, ...] = () if pair.domain is None else (pair.domain,)
    groups = (pair.left, pair.right), pair.function, pair.reading, domain
    rest = iter(Graph((), tuple(n for group in groups for n in group)).at(chosen).output_nodes)
    (left, right), function, reading, domain = (tuple(islice(rest, len(group))) for group in groups)
    return replace(
        pair, left=left, right=right, function=function, reading=reading, domain=domain[0] if domain else None
    )


TACTICS: tuple[Tactic, ...] = (
    of_large_arrays, about_nothing, for_all_sizes, before_tests, by_values, by_proof, one_graph, by_test,
    at_sizes,
)  # fmt: skip


# ---- what is seen of what they say ---------------------------------------------------------------


def looked_at(goals: Goals) -> dict[int, list[Seen]]:
    """What the guard has seen of each pair, at each choice of sizes."""
    late = {k: p for k, p in goals.asked.items() if not goals.seen[k].looked}
    late = {k: p for k, p in late.items() if (goals.found[k].ground == NOTHING).any()}
    goals.seen |= _inspected(goals, late, large=True)  # where nothing else decides
    made = {k: [_searched(goals, goals.seen[k])] if k in goals.seen else [] for k in goals.pairs}
    rest = {k: p for k, p in goals.pairs.items() if k not in goals.seen and not goals.found[k].final}
    groups: dict[Sizes, dict[int, Pair]] = {}
    for k, p in _telling(_without_derived(goals, rest)).items():
        sides = p.comparison.left, p.comparison.right
        groups.setdefault(sizes_of(*sides) if goals.is_symbolic(p) else (), {})[k] = p
    for sizes, group in groups.items():
        for chosen in guarded_sizes([n for p in group.values() for n in (p.left, p.right)], sizes):
            for k, here in _seen_at(goals, group, sizes, chosen).items():
                made[k].append(here)
    return made


def _telling(pairs: Mapping[int, Pair]) -> dict[int, Pair]:
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
    seen = _inspected(goals, {k: bound(p, chosen) for k, p in pairs.items()})
    at = f" at {', '.join(f'{s} = {v}' for s, v in chosen.items())}" if chosen else ""
    if any(chosen[s] not in v for s, v in sizes):  # at the least sizes there may be no value
        seen = {k: replace(here, valued=np.ones_like(here.valued)) for k, here in seen.items()}
    return {k: replace(_searched(goals, here), sizes=at) for k, here in seen.items()}


def _searched(goals: Goals, seen: Seen) -> Seen:
    """What was seen, with what a search for values finds, and what is wrong with what differs."""
    ended = replace(seen, stopped=seen.stopped or goals.meter.used_up)
    found = within(goals.meter, partial(with_search, seen), ended)
    if not found.differs.any():
        return found
    fault = partial(blame, found.pair.left, found.pair.right, found.places)
    return replace(found, blame=in_time(goals.meter, fault, found.blame))
