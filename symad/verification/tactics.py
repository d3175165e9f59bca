"""Deciding pairs: one list of tactics, one loop, the cheapest first.

A tactic is given what no earlier one has decided, and returns verdicts on some of it. Pairs of one
certificate share most of their nodes and are decided together, so a tactic gets all of them. Whatever it
says has to pass `accept`, so that a wrong tactic meets strict values; a missing one makes a certificate
weaker. A new way to decide is a function here, and a line in `TACTICS`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from math import prod

import numpy as np

from symad.core.graph import topological
from symad.ops.arrays.reduction import Extreme
from symad.ops.basic.sources import Dimension
from symad.verification.accept import (
    DIFFER,
    MAX_SINGLE_ENTRIES,
    NOTHING,
    PROOF,
    SAMPLE,
    TEST,
    Pair,
    Seen,
    Verdict,
    all_differ,
    nothing_known,
    proof,
    weakened,
)
from symad.verification.budget import in_time, operations, within
from symad.verification.claimed_domain import RULED_OUT, implied_domain
from symad.verification.fields.integer_inputs import are_all_looked_at
from symad.verification.proof.with_proofs import ONE_GRAPH, replayed_claim
from symad.verification.random_fields.error_bound import TARGET
from symad.verification.random_fields.runs import PairResult
from symad.verification.rewriting.identities.infinities import without_infinities
from symad.verification.rewriting.identity_testing import Result, compare_nodes
from symad.verification.rewriting.restated.by_elements import by_one_element
from symad.verification.rewriting.rewrite import expand_definitions
from symad.verification.solving import (
    Goals,
    Tactic,
    bound,
    inspected,
    is_by_labels,
    searched,
    standing,
    telling,
    without_derived,
)
from symad.verification.terms.depending import depending
from symad.verification.values.instance_sizes import Sizes, further_sizes, sizes_of
from symad.verification.values.ranges import always_exist
from symad.verification.without_values import MAX_ELEMENTS, largest, nowhere_defined

PART_OF_TESTS = 0.8
"""The part of the steps that the identity test may take."""

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
            in_time(goals.meter, partial(known.for_all_sizes, wanted), None)
            known.reasons = reasons  # what other entries lack has other reasons
        claim = ONE_GRAPH if pair.left is pair.right else replayed_claim(pair.comparison)
        made[k] = proof(pair, claim) if known.goals.issuperset(wanted) else nothing_known(pair, reason)
    return made


def about_nothing(goals: Goals) -> dict[int, Verdict]:
    """Claims about a derivative of a function that has no value: the function alone is looked at.

    The inverse of a singular matrix ends a claim so, before anything is tested.
    """
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
        left = sorted({*wanted} - goals.known.goals)
        in_time(goals.meter, partial(goals.known.elements, left), None)
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
    goals.asked = telling(beside_proved(without_derived(goals, whole), goals.found))
    goals.seen = inspected(goals, goals.asked)
    differ = {k for k, seen in goals.seen.items() if seen.differs.size and seen.differs.all()}
    return {k: all_differ(p) for k, p in goals.open.items() if k in differ}


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
        if form is None or k in found or pair.comparison.derivative is None or is_by_labels(pair):
            continue
        if always_exist(without_infinities(expand_definitions([form]))):
            made[k] = replace(pair, left=form)
    return made


# ---- identity tests ------------------------------------------------------------------------------


def by_test(goals: Goals) -> dict[int, Verdict]:
    """The identity test in prime fields; with the proofs of those elements that have one.

    Where it does not decide a claim about a derivative, the domain of the function is looked at alone: of
    other points nothing is claimed.
    """
    pairs = {k: goals.asked.get(k, p) for k, p in goals.open.items() if not goals.is_symbolic(p)}
    made = _tests(goals, pairs) if pairs else {}
    left = {k: p for k, p in pairs.items() if (made[k].ground == NOTHING).any()}
    if 2 * goals.meter.steps > goals.meter.budget.steps or goals.meter.is_late:
        return made
    inside = {k: found for k, pair in left.items() for found in _inside(pair)}
    for k, verdict in (_tests(goals, {k: p for k, (p, _) in inside.items()}) if inside else {}).items():
        if (verdict.ground != NOTHING).all():
            made[k] = replace(verdict, claim=f"{verdict.claim}{inside[k][1]}")
    return made


def _inside(pair: Pair) -> Iterator[tuple[Pair, str]]:
    """A claim about a derivative where the function has values, and how that is told; none elsewhere."""
    if pair.kind != "value" and pair.domain is None and (known := implied_domain(pair.function)):
        yield replace(pair, domain=known[0]), f", where {known[1]}: elsewhere the function has no value"


def _tests(goals: Goals, pairs: Mapping[int, Pair]) -> dict[int, Verdict]:
    """The verdicts of one identity test on all of some pairs."""
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
    if pair.simpler != (pair.left, pair.right):
        claim = f"{claim}, {RULED_OUT}"
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


# ---- claims about all sizes that have no proof, at some sizes ------------------------------------


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
        bounds = {k: bound(p, chosen) for k, p in enumerate(pairs)}
        there = Goals(bounds, goals.seed + j, goals.meter, goals.tactics)
        here = [replace(v, sizes=text) for v in standing(there)]
        worst = [a.worse(b) for a, b in zip(worst, here, strict=True)] if worst else here
        goals.primes = there.primes
    if not texts:
        return worst
    made = []
    for pair, verdict in zip(pairs, worst, strict=True):
        verdict = _measured(_elsewhere(pair, verdict, goals))
        verdict = _by_one_element(pair, verdict, goals)
        made.append(replace(verdict, at=texts, final=False))  # at the least size there may be values
    return made


def _by_one_element(pair: Pair, verdict: Verdict, goals: Goals) -> Verdict:
    """The verdict for all sizes where one element stands for all, and the identity test calls it equal."""
    if not (verdict.ground == SAMPLE).all():
        return verdict
    for asked, where in ((pair, ""), *_inside(pair)):
        sides = by_one_element(asked.asked)
        if sides is None or any(isinstance(n.op, Dimension) for n in topological(sides)):
            continue
        left, right = sides  # the domain is a condition in both
        alone = Pair(pair.comparison, pair.name, left, right, pair.place)
        (one,) = standing(Goals({0: alone}, goals.seed, goals.meter, goals.tactics))
        if one.ground == TEST:
            dims = ", ".join(sorted(map(str, pair.comparison.left.dims | pair.comparison.right.dims)))
            claim = f"{one.claim}{where}, by one element that stands for all, for all {dims}"
            return replace(one, ground=np.full(verdict.ground.shape, TEST, dtype=object), claim=claim)
    return verdict


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
        found = weakened(nothing_known(there, ""), searched(goals, inspected(goals, {0: there})[0]))
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


TACTICS: tuple[Tactic, ...] = (
    of_large_arrays, about_nothing, for_all_sizes, before_tests, by_values, by_proof, one_graph, by_test,
    at_sizes,
)  # fmt: skip
