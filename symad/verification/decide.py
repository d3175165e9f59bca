"""Deciding comparisons: by structure, identity test, witness and proof, the cheapest first.

The levels do not depend on the order. Two sides are proved equal only if the checker accepts a proof, and
tested if the identity test calls them equal. If it does not, they are refuted if a witness is found, and
undecided otherwise. Where sizes are symbols, what the checker does not prove is compared at chosen sizes.
"""

from __future__ import annotations

import platform
import secrets
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import islice
from math import prod

import mpmath
import numpy as np
import sympy

from symad.core.claims import Goal
from symad.core.dims import format_shape, same_shape
from symad.core.escaping import brief
from symad.core.graph import Graph, Node, rebuild, topological
from symad.errors import ShapeError
from symad.ops.arrays.reduction import Extreme
from symad.ops.basic.sources import Dimension, constant
from symad.verification.accept import LOOKED, Seen
from symad.verification.budget import Budget, Meter, operations
from symad.verification.certificate.certificate import Certificate, Comparison, Entry
from symad.verification.goals import MAX_SINGLE_ENTRIES, Pair, Verdict, certain
from symad.verification.guard import inspect
from symad.verification.large_arrays import one_by_one, without_elements
from symad.verification.proof.with_proofs import (
    ONE_GRAPH,
    Replayed,
    has_symbolic_sizes,
    replayed_claim,
    with_proofs,
)
from symad.verification.proved_sides import beside_proved, told
from symad.verification.rewriting.restated.by_one_element import by_one_element
from symad.verification.terms.depending import depending
from symad.verification.values.domains import may_lack_values
from symad.verification.values.instance_sizes import Sizes, further_sizes, guarded_sizes, sizes_of
from symad.verification.values.points import is_zero
from symad.verification.values.scouting import visibly_different
from symad.verification.verdicts import Judge, entries_of
from symad.verification.without_values import without_function
from symad.version import __version__


def decide(
    title: str,
    comparisons: Sequence[Comparison],
    seed: int | None = None,
    budget: Budget | None = None,
    meter: Meter | None = None,
) -> Certificate:
    """A certificate of some comparisons.

    Args:
        title: the title of the certificate.
        comparisons: graphs claimed to be equal; they may have symbolic dimensions.
        seed: the seed of the random primes and points; a new one by default, always recorded.
        budget: limits; the defaults are meant for interactive use.
        meter: a meter that counts the work already.

    Raises:
        ShapeError: two outputs that are compared have different shapes.
    """
    start = time.monotonic()
    seed = seed_of(seed)
    budget = budget or Budget()
    meter = meter or Meter(budget)
    judge = Judge(budget, meter)
    comparisons = [part for whole in comparisons for part in one_by_one(whole)]
    pairs = [pair for k, c in enumerate(comparisons) for pair in pairs_of(k, c)]
    known = Replayed(comparisons, budget)
    entries, primes = _decided(pairs, seed, judge, known)
    made = Certificate(
        title, (), tuple(comparisons), seed, primes, versions(), 0.0, int(meter.steps), budget.notes
    )
    made = with_proofs(made, entries, known)
    return replace(made, seconds=time.monotonic() - start)


def seed_of(seed: int | None) -> int:
    """The seed, or a new one."""
    if seed is not None and not hasattr(seed, "__index__"):
        raise TypeError(f"seed is an int, or None for a new one, not {brief(seed)}")
    return secrets.randbits(63) if seed is None else int(seed)


def _decided(
    pairs: Sequence[Pair], seed: int, judge: Judge, known: Replayed
) -> tuple[list[list[Entry]], tuple[int, ...]]:
    """The entries of each pair, and the primes of the last identity test."""
    found, at = dict[int, Verdict](), dict[int, Sizes]()
    groups: dict[Sizes, list[int]] = {(): []}
    large = without_elements(pairs, known)
    rest = {k: pair for k, pair in enumerate(pairs) if k not in large}
    nothing = judge.within(partial(without_function, rest), dict[int, Verdict]())
    for k, verdict in large.items():
        (found if (verdict.status == "proved").all() else nothing)[k] = verdict
    same, lefts = list[Goal](), dict[tuple[int, int], Node]()
    direct = set(found)
    """Pairs whose verdicts the judge has not seen."""
    for k, pair in rest.items():
        if k in nothing:
            continue
        proof = certain(pair, ONE_GRAPH) if pair.left is pair.right else None
        if proof is None and has_symbolic_sizes(pair.comparison):
            proof = judge.within(partial(_for_all_sizes, pair, known), None)
        if proof is not None:
            found[k] = proof
            direct.add(k)
            same += goals_of(pair, proof)
        else:
            groups.setdefault(sizes_of(pair.comparison.left, pair.comparison.right), []).append(k)
    primes: tuple[int, ...] = ()
    for sizes, group in groups.items():
        chosen = [pairs[k] for k in group]
        if sizes:
            verdicts, primes = _at_sizes(chosen, sizes, seed, judge)
        else:
            proved = _proved_first(known, judge, same, chosen)
            chosen = [replace(p, left=p.right) if _is_derived(p, known) else p for p in chosen]
            asked = beside_proved(chosen, proved)
            verdicts, primes = judge.decide(asked, seed, partial(_replayed, known, same), proved)
            verdicts = [told(p, a, v) for p, a, v in zip(chosen, asked, verdicts, strict=True)]
            lefts = {p.place: a.left for p, a in zip(chosen, asked, strict=True) if a is not p}
        for k, verdict in zip(group, verdicts, strict=True):
            found[k], at[k] = verdict, sizes if verdict.sizes else ()
    lefts |= {p.place: p.right for p in pairs if _is_derived(p, known)}
    looked = {k: replace(pairs[k], left=lefts.get(pairs[k].place, pairs[k].left)) for k in found}
    rest = {k: pair for k, pair in looked.items() if k in direct or has_symbolic_sizes(pair.comparison)}
    found |= guarded(rest, {k: found[k] for k in rest}, seed, judge)  # the others have passed the guard
    found |= nothing
    return [entries_of(pair, found[k], _size_texts(at.get(k, ()))) for k, pair in enumerate(pairs)], primes


def guarded(
    pairs: Mapping[int, Pair], found: Mapping[int, Verdict], seed: int, judge: Judge
) -> dict[int, Verdict]:
    """The verdicts that stand after the guard has looked at them, at each choice of sizes."""
    lacking = depending((n for p in pairs.values() for n in (p.left, *p.function)), may_lack_values)
    held = {
        k: found[k]
        for k, p in pairs.items()
        if np.isin(found[k].status, LOOKED).any()
        and (p.left is not p.right or not lacking.isdisjoint((p.left, *p.function)))
    }
    groups: dict[Sizes, list[int]] = {}
    for k in held:
        groups.setdefault(sizes_of(pairs[k].comparison.left, pairs[k].comparison.right), []).append(k)
    for sizes, group in groups.items():
        for chosen in guarded_sizes([n for k in group for n in (pairs[k].left, pairs[k].right)], sizes):
            bound = [_at(pairs[k], chosen) for k in group]
            watched = [_watched(p, held[k]) for p, k in zip(bound, group, strict=True)]
            nothing = [Seen.nothing(w.shape) for w in watched]
            seen = judge.within(partial(inspect, bound, watched, seed, judge.meter), nothing)
            at = f" at {', '.join(f'{s} = {v}' for s, v in chosen.items())}" if chosen else ""
            if any(chosen[s] not in v for s, v in sizes):  # at the least sizes there may be no value
                seen = [replace(here, valued=np.ones_like(here.valued)) for here in seen]
            for k, pair, here in zip(group, bound, seen, strict=True):
                held[k] = judge.accepted(pair, held[k], here, at)
    return held


def _watched(pair: Pair, verdict: Verdict) -> np.ndarray:
    """The elements that are decided, in the shape of a pair at known sizes."""
    held = np.isin(verdict.status, LOOKED)
    shape = tuple(map(int, pair.left.shape))
    return held if held.shape == shape else np.full(shape, bool(held.any()))


def _is_derived(pair: Pair, known: Replayed) -> bool:
    """True if the checker has derived the right side itself, so that the left side adds nothing."""
    count = 0 if has_symbolic_sizes(pair.comparison) else prod(pair.right.shape)
    return count > 0 and all((*pair.place, e) in known.derived for e in range(count))


def goals_of(pair: Pair, verdict: Verdict) -> list[Goal]:
    """The goals of a pair for the checker: the elements that are not known to differ.

    They include elements that agree at real points although the identity test does not decide them: the
    checker may have a relation that the test lacks.
    """
    if has_symbolic_sizes(pair.comparison) or verdict.status.size > MAX_SINGLE_ENTRIES:
        return []
    asked = ("proved", "tested", "undecided") if verdict.lacking else ("proved", "tested")
    return [(*pair.place, int(e)) for e in np.flatnonzero(np.isin(verdict.status.ravel(), asked))]


def _proved_first(
    known: Replayed, judge: Judge, same: Sequence[Goal], pairs: Sequence[Pair]
) -> dict[int, Verdict]:
    """The pairs that the checker accepts before anything is tested.

    They are asked first where a proof takes less than a test: of few elements and many terms, and with
    extremes along axes, of which a test may visit a region for each order of the elements. ``same`` are
    goals about equal graphs; the checker gets these, too.
    """
    goals = {k: [(*pair.place, e) for e in range(prod(pair.left.shape))] for k, pair in enumerate(pairs)}
    asked = [*same, *(goal for part in goals.values() for goal in part)]
    judge.within(partial(known.whole_arrays, asked), None)
    same = [goal for goal in same if goal not in known.goals]
    left = {k: [goal for goal in part if goal not in known.goals] for k, part in goals.items()}
    sides = [(pair.left, pair.right, *pair.function) for pair in pairs]
    extremes = depending((n for part in sides for n in part), lambda node: isinstance(node.op, Extreme))
    chosen = [k for k, part in enumerate(sides) if not extremes.isdisjoint(part)]
    chosen = [k for k in chosen if len(left[k]) <= MAX_SINGLE_ENTRIES]
    compared = [goal for k in chosen for goal in left[k] if goal not in known.goals]
    if compared:
        judge.within(partial(known.elements, sorted([*same, *compared])), None)
    return {
        k: certain(pair, replayed_claim(pair.comparison))
        for k, pair in enumerate(pairs)
        if goals[k] and known.goals.issuperset(goals[k])
    }


def _replayed(
    known: Replayed, same: Sequence[Goal], pairs: Sequence[Pair], verdicts: Sequence[Verdict]
) -> list[Verdict]:
    """The verdicts, with the proofs that the checker accepts; it gets equal graphs, too."""
    goals = [goals_of(pair, verdict) for pair, verdict in zip(pairs, verdicts, strict=True)]
    known.elements(sorted([*same, *(goal for part in goals for goal in part)]))
    made = []
    for pair, verdict, part in zip(pairs, verdicts, goals, strict=True):
        status, reason = verdict.status.copy(), verdict.reason
        held = [goal for goal in part if goal in known.goals]
        for _, _, place in held:
            status.flat[place] = "proved"
        if pair.place[0] in known.covered and (status == "tested").any():
            why = known.reasons or [f"arrays of more than {MAX_SINGLE_ENTRIES} elements are not given to it"]
            reason = f"the checker accepts no proof: {why[0]}"
        proof = replayed_claim(pair.comparison) if held else ""
        made.append(replace(verdict, status=status, proof=proof, reason=reason))
    return made


def versions() -> Mapping[str, str]:
    """The versions of the packages that a certificate depends on."""
    return {
        "symad": __version__,
        "sympy": sympy.__version__,
        "numpy": np.__version__,
        "mpmath": mpmath.__version__,
        "python": platform.python_version(),
    }


def pairs_of(number: int, comparison: Comparison) -> list[Pair]:
    left, right = comparison.left, comparison.right
    zeros = {n: constant(0) for n in (*left.input_nodes, *right.input_nodes) if is_zero(n)}
    made = []
    function = comparison.derivative.function if comparison.derivative is not None else ()
    groups = [left.output_nodes, right.output_nodes, function]
    *sides, function = [rebuild(group, zeros) for group in groups] if zeros else groups
    for output, (name, a, b) in enumerate(zip(comparison.names, *sides, strict=True)):
        if not same_shape(a.shape, b.shape):
            raise ShapeError(
                f"{comparison.title}: {name} has shape {format_shape(a.shape)} in {comparison.left_name}, "
                f"but {format_shape(b.shape)} in {comparison.right_name}"
            )
        reading = tuple(g.output_nodes[output] for g in comparison.reading or ())
        made.append(Pair(comparison, name, a, b, (number, output), function, comparison.domain, reading))
    return made


def _for_all_sizes(pair: Pair, known: Replayed) -> Verdict | None:
    """A proof by the checker that holds for all sizes; None if there is none."""
    if not known.proves_for_all_sizes(pair.place):
        return None
    return certain(pair, replayed_claim(pair.comparison))


def _size_texts(sizes: Sizes) -> tuple[str, ...]:
    """The sizes of each instance, as text."""
    count = len(sizes[0][1]) if sizes else 0
    return tuple(", ".join(f"{symbol} = {values[k]}" for symbol, values in sizes) for k in range(count))


def _at_sizes(
    pairs: Sequence[Pair], sizes: Sizes, seed: int, judge: Judge
) -> tuple[list[Verdict], tuple[int, ...]]:
    """The worst of the verdicts at all choices of sizes."""
    worst, primes = judge.decide([_bound(pair, sizes, 0) for pair in pairs], seed)
    texts = _size_texts(sizes)
    if texts:
        worst = [replace(v, sizes=f" at {texts[0]}") for v in worst]
    for k in range(1, len(texts)):
        verdicts, primes = judge.decide([_bound(pair, sizes, k) for pair in pairs], seed + k)
        here = [replace(v, sizes=f" at {texts[k]}") for v in verdicts]
        worst = [a.worse(b) for a, b in zip(worst, here, strict=True)]
    if texts:
        worst = [_measured(_elsewhere(pair, v, seed, judge)) for pair, v in zip(pairs, worst, strict=True)]
        worst = [_by_one_element(pair, v, seed, judge) for pair, v in zip(pairs, worst, strict=True)]
    return worst, primes


def _by_one_element(pair: Pair, verdict: Verdict, seed: int, judge: Judge) -> Verdict:
    """The verdict for all sizes where one element stands for all, and the identity test calls it equal."""
    sides = by_one_element(pair.asked) if (verdict.status == "measured").all() else None
    if sides is None or any(isinstance(n.op, Dimension) for n in topological(sides)):
        return verdict
    comparison = replace(pair.comparison, derivative=None)
    left, right = sides  # the domain is a condition in both
    alone = Pair(comparison, pair.name, left, right, pair.place)
    (one,), _ = judge.decide([alone], seed)
    if one.status != "tested":
        return verdict
    dims = ", ".join(sorted(map(str, pair.comparison.left.dims | pair.comparison.right.dims)))
    status = np.full(verdict.status.shape, "tested", dtype=object)
    return replace(
        one, status=status, claim=f"{one.claim}, by one element that stands for all, for all {dims}"
    )


MAX_OPERATIONS = 100_000
"""Further sizes are tried if the two sides have at most this many scalar operations at them."""


def _elsewhere(pair: Pair, verdict: Verdict, seed: int, judge: Judge) -> Verdict:
    """The verdict, or the verdict at another size where floats show a difference."""
    if not np.isin(verdict.status, ("proved", "tested")).all():
        return verdict
    for sizes in further_sizes(pair.comparison.left, pair.comparison.right):
        left, right, *function = Graph((), (pair.left, pair.right, *pair.function)).at(sizes).output_nodes
        steps = operations(topological([left, right]))
        if steps > MAX_OPERATIONS or not visibly_different(left, right, np.ones(left.shape, dtype=bool)):
            continue
        (there,), _ = judge.decide([replace(pair, left=left, right=right, function=tuple(function))], seed)
        if (there.status == "refuted").any():
            return replace(there, sizes=f" at {', '.join(f'{s} = {v}' for s, v in sizes.items())}")
    return verdict


def _measured(verdict: Verdict) -> Verdict:
    """The verdict with "measured" for claims that hold at the chosen sizes: other sizes are not known."""
    status = verdict.status.copy()
    status[(status == "proved") | (status == "tested")] = "measured"
    return replace(verdict, status=status)


def _bound(pair: Pair, sizes: Sizes, k: int) -> Pair:
    """The pair at instance k of the sizes."""
    return _at(pair, {symbol: values[k] for symbol, values in sizes})


def _at(pair: Pair, chosen: Mapping[sympy.Symbol, int]) -> Pair:
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
