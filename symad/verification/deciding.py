"""Deciding comparisons: structure, identity test, witness, proof, in the order of what they cost.

The order does not blur the levels. What is structurally the same is proved. What the identity test
calls equal is tested, and proved if an exact normal form within the budget says so too. What it does not
is refuted if a witness is found, and undecided otherwise.
"""

from __future__ import annotations

import platform
import secrets
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import mpmath
import numpy as np
import sympy

from symad.dims import format_shape, same_shape
from symad.errors import ShapeError
from symad.graph import Graph, Node
from symad.verification.blame import Blame, blame
from symad.verification.bounds import TARGET
from symad.verification.budget import Budget, Clock, OutOfBudget
from symad.verification.certificate import Certificate, Comparison, Entry
from symad.verification.fields import Array
from symad.verification.index_notation import prove_for_all_sizes
from symad.verification.modular import Result, compare_nodes, integer_inputs
from symad.verification.normal_form import prove
from symad.verification.sampling import PairResult
from symad.verification.sizes import sizes_of
from symad.verification.witness import Search, search

MOST_ENTRIES = 1024
"""Larger outputs get one entry for the whole array instead of one for each element."""


@dataclass(frozen=True)
class Pair:
    """One output of a comparison."""

    comparison: Comparison
    name: str
    left: Node
    right: Node


@dataclass(frozen=True)
class Verdict:
    """What was found about one pair at one choice of sizes."""

    status: Array
    """Object array of statuses, in the shape of the pair."""
    claim: str
    log2_bound: float
    search: Search | None = None
    blame: Blame | None = None
    reason: str = ""
    sizes: str = ""
    """The sizes of a refuted instance."""


def decide(
    title: str, comparisons: Sequence[Comparison], seed: int | None = None, budget: Budget | None = None
) -> Certificate:
    """A certificate of some comparisons.

    Args:
        title: what it is about.
        comparisons: graphs claimed to be equal; they may have symbolic dimensions.
        seed: from which primes and points are drawn; a new one by default, and always recorded.
        budget: limits; the defaults are meant for interactive use.

    Raises:
        ShapeError: two outputs that are compared have different shapes.
    """
    start = time.monotonic()
    seed = secrets.randbits(63) if seed is None else seed
    budget = budget or Budget()
    clock = Clock(budget)
    pairs = [pair for c in comparisons for pair in _pairs(c)]
    entries: dict[int, list[Entry]] = {}
    rest = []
    for k, pair in enumerate(pairs):
        proof = _structural(pair, budget)
        if proof is None:
            rest.append(k)
        else:
            entries[k] = _entries(pair, proof, ())
    primes: tuple[int, ...] = ()
    for sizes in _size_groups([pairs[k] for k in rest]):
        group = [k for k in rest if sizes_of(pairs[k].comparison.left, pairs[k].comparison.right) == sizes]
        verdicts, primes = _decide_group([pairs[k] for k in group], sizes, seed, budget, clock)
        for k, verdict in zip(group, verdicts, strict=True):
            entries[k] = _entries(pairs[k], verdict, _size_text(sizes))
    flat = tuple(e for k in range(len(pairs)) for e in entries[k])
    return Certificate(title, flat, tuple(comparisons), seed, primes, versions(), time.monotonic() - start)


def versions() -> Mapping[str, str]:
    """The versions of what took part."""
    import symad

    return {
        "symad": symad.__version__,
        "sympy": sympy.__version__,
        "numpy": np.__version__,
        "mpmath": mpmath.__version__,
        "python": platform.python_version(),
    }


def _pairs(comparison: Comparison) -> list[Pair]:
    left, right = comparison.left, comparison.right
    made = []
    for name, a, b in zip(comparison.names, left.output_nodes, right.output_nodes, strict=True):
        if not same_shape(a.shape, b.shape):
            raise ShapeError(
                f"{comparison.title}: {name} has shape {format_shape(a.shape)} in {comparison.left_name}, "
                f"but {format_shape(b.shape)} in {comparison.right_name}"
            )
        made.append(Pair(comparison, name, a, b))
    return made


def _structural(pair: Pair, budget: Budget) -> Verdict | None:
    """A proof that holds for all sizes; None if there is none."""
    if pair.left is pair.right:
        return _proved(pair, "both sides are one and the same graph")
    if pair.comparison.left.dims | pair.comparison.right.dims:
        equal, _ = prove_for_all_sizes(pair.left, pair.right, budget)
        if equal:
            dims = sorted(map(str, pair.comparison.left.dims | pair.comparison.right.dims))
            return _proved(pair, f"equal in index notation, for all {', '.join(dims)}")
    return None


def _proved(pair: Pair, claim: str) -> Verdict:
    shape = tuple(d if isinstance(d, int) else 1 for d in pair.left.shape)
    return Verdict(np.full(shape, "proved", dtype=object), claim, -np.inf)


Sizes = tuple[tuple[Any, tuple[int, ...]], ...]
"""For each dimension symbol the numbers it is given, one for each instance."""


def _size_groups(pairs: Sequence[Pair]) -> list[Sizes]:
    return list(dict.fromkeys(sizes_of(p.comparison.left, p.comparison.right) for p in pairs))


def _size_text(sizes: Sizes) -> tuple[str, ...]:
    """The sizes of each instance, as text."""
    if not sizes:
        return ()
    count = len(sizes[0][1])
    return tuple(", ".join(f"{symbol} = {values[k]}" for symbol, values in sizes) for k in range(count))


# ---- one group of pairs with the same sizes ------------------------------------------------------


def _decide_group(
    pairs: Sequence[Pair], sizes: Sizes, seed: int, budget: Budget, clock: Clock
) -> tuple[list[Verdict], tuple[int, ...]]:
    """Verdicts at each choice of sizes, and of these the worst."""
    worst: list[Verdict] | None = None
    primes: tuple[int, ...] = ()
    for k in range(len(sizes[0][1]) if sizes else 1):
        chosen = {symbol: values[k] for symbol, values in sizes}
        bound = [_at(pair, chosen) for pair in pairs]
        verdicts, primes = _decide_concrete(bound, seed + k, budget, clock)
        verdicts = [replace(v, sizes=f" at {_size_text(sizes)[k]}" if sizes else "") for v in verdicts]
        worst = verdicts if worst is None else [_worse(a, b) for a, b in zip(worst, verdicts, strict=True)]
    return worst or [], primes


def _at(pair: Pair, sizes: Mapping[Any, int]) -> Pair:
    if not sizes:
        return pair
    graph = Graph((), (pair.left, pair.right)).at(sizes)
    return replace(pair, left=graph.output_nodes[0], right=graph.output_nodes[1])


def _worse(a: Verdict, b: Verdict) -> Verdict:
    """Of two instances the one that says less."""
    rank = ["refuted", "undecided", "tested", "proved"]
    low = [min((rank.index(s) for s in v.status.ravel()), default=3) for v in (a, b)]
    if low[0] == low[1]:
        return a if a.log2_bound >= b.log2_bound else b
    return a if low[0] < low[1] else b


def _decide_concrete(
    pairs: Sequence[Pair], seed: int, budget: Budget, clock: Clock
) -> tuple[list[Verdict], tuple[int, ...]]:
    """Verdicts where all dimensions are numbers."""
    try:
        result = compare_nodes([(p.left, p.right) for p in pairs], seed, budget, clock)
    except OutOfBudget as problem:
        result = Result(tuple(_untested(p) for p in pairs), seed, (), (), (str(problem),))
    verdicts = [
        _verdict(p, found, result, budget, clock) for p, found in zip(pairs, result.pairs, strict=True)
    ]
    return verdicts, result.primes


def _untested(pair: Pair) -> PairResult:
    none = np.zeros(pair.left.shape, dtype=bool)
    return PairResult(none, none, 0.0, "none")


def _verdict(pair: Pair, found: PairResult, result: Result, budget: Budget, clock: Clock) -> Verdict:
    """One pair: equal elements are proved or tested, others refuted or undecided."""
    status = np.full(pair.left.shape, "undecided", dtype=object)
    certain = found.equal & (found.log2_bound <= TARGET)
    status[certain] = "tested"
    claim, reason, hunt, fault = _tested_claim(found, result), "", None, None
    if certain.any() and not result.draws:
        exact, reason = prove(pair.left, pair.right, budget)
        status[certain & exact] = "proved"
        if (status == "proved").all():
            claim = "equal by exact normal form"
    if not certain.all():
        hunt = search(pair.left, pair.right, integer_inputs([pair.left, pair.right]), clock, ~found.equal)
        status[hunt.differs] = "refuted"
        reason = _why_undecided(found, result, hunt)
        if hunt.witnesses:
            fault = blame(pair.left, pair.right, hunt.points)
    return Verdict(status, claim, found.log2_bound, hunt, fault, reason)


def _tested_claim(found: PairResult, result: Result) -> str:
    way = {
        "free": "",
        "exact": ", roots exact and signs by region",
        "related": ", relations between exponents found",
    }.get(found.way, "")
    drawn = f", for {' and for '.join(result.draws)}" if result.draws else ""
    bits = max((p.bit_length() for p in result.primes), default=0)
    return f"equal at random points modulo {len(result.primes)} random primes of {bits} bits{way}{drawn}"


def _why_undecided(found: PairResult, result: Result, hunt: Search) -> str:
    """What was tried."""
    parts = []
    if found.equal.any() and found.log2_bound > TARGET:
        parts.append(f"equal modulo primes, but with a bound of 2^{found.log2_bound:.0f} only")
    elif not found.defined.all():
        parts.append(
            "undefined at every point tried" if not found.defined.any() else "undefined in some elements"
        )
    else:
        parts.append("not equal modulo primes by the relations that are known here")
    if hunt.agreed:
        parts.append(f"equal to 30 digits at {hunt.agreed} rational points")
    elif not hunt.points:
        parts.append("no rational point was found at which both are defined")
    return "; ".join([*parts, *result.reasons])


# ---- entries ------------------------------------------------------------------------------------


def _entries(pair: Pair, verdict: Verdict, sizes: tuple[str, ...]) -> list[Entry]:
    """One entry for each element, or one for the whole array where there are very many."""
    at = f" at {' and at '.join(sizes)}" if sizes else ""
    if verdict.status.size > MOST_ENTRIES or not _is_concrete(pair):
        statuses = dict.fromkeys(verdict.status.ravel())
        return [_entry(pair, verdict, _count(verdict, s), s, None, at) for s in statuses]
    return [
        _entry(pair, verdict, _index_text(index), str(verdict.status[index]), index, at)
        for index in np.ndindex(verdict.status.shape)
    ]


def _is_concrete(pair: Pair) -> bool:
    return all(isinstance(d, int) for d in pair.left.shape)


def _count(verdict: Verdict, status: str) -> str:
    number = int((verdict.status == status).sum())
    return "" if number == verdict.status.size else f" ({number} of {verdict.status.size} elements)"


def _index_text(index: tuple[int, ...]) -> str:
    return f"[{', '.join(map(str, index))}]" if index else ""


def _entry(
    pair: Pair, verdict: Verdict, index: str, status: str, at: tuple[int, ...] | None, sizes: str
) -> Entry:
    comparison = pair.comparison
    made = Entry(pair.name, status, verdict.claim + sizes, 0.0, comparison.assumes, index=index)
    if status == "proved":
        exact = verdict.claim.startswith("equal in index") or verdict.claim.startswith("both")
        return made if exact else replace(made, claim="equal by exact normal form" + sizes)
    if status == "tested":
        return replace(made, bound=power_of_two(verdict.log2_bound), reason=verdict.reason)
    if status == "undecided":
        bound = power_of_two(verdict.log2_bound)
        return replace(made, claim="not decided" + sizes, bound=bound, reason=verdict.reason)
    assert verdict.search is not None
    known = verdict.search.witnesses
    witness = known[at] if at is not None else next(iter(known.values()))
    claim = f"{comparison.left_name} and {comparison.right_name} differ{verdict.sizes}"
    return replace(made, claim=claim, witness=witness, blame=verdict.blame)


def power_of_two(log2_bound: float) -> float:
    """2^log2_bound, and never 0 by underflow."""
    return float(max(2.0 ** max(log2_bound, -1074.0), 5e-324))
