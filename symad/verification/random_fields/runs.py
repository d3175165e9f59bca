"""Runs in random prime fields, as many lanes and as large primes as the bound needs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from math import ceil, log2, prod
from random import Random

import numpy as np

import symad.verification.random_fields.linear_algebra  # noqa: F401  (registers rules)
from symad.core.graph import Node, topological
from symad.ops.elementwise.selection import Select
from symad.verification.budget import Meter, Unsupported
from symad.verification.fields.prime_fields import Array, Field
from symad.verification.fields.primes import SMALL, random_primes
from symad.verification.random_fields.degree_bounds import Growths
from symad.verification.random_fields.error_bound import (
    TARGET,
    Sampling,
    add_logs,
    bits_for,
    difference,
    lane_parts,
    log2_collisions,
    log2_false_zero,
    sign_degree,
)
from symad.verification.random_fields.function_values import NeedsLevel, Signatures
from symad.verification.random_fields.known_values import Regions
from symad.verification.random_fields.residues import Run
from symad.verification.terms.linear_terms import order_of_root

LANES = 6
"""Lanes of a first run."""

MAX_LANES = 600
"""The maximum number of lanes, which one run evaluates side by side."""

FEW_ROOTS = 32
"""With more roots than this it is first seen in a few lanes whether anything is equal."""

MAX_REGIONS = 64
"""The maximum number of regions of signs that one claim is cut into."""

MAX_SIGN_DEGREE = 3
"""The maximum degree in signs of which each lane draws its own: it needs some 110, 270 or 570 lanes."""

MAX_COIN_LANE = -8.0
"""log₂ of the probability of an unlucky point in a lane with coins: primes are as large as it needs."""

MAX_COIN_BITS = 192
"""The maximum size of these primes: in hundreds of lanes, larger ones cost more than all regions in turn."""

MAX_CUT_LEVELS = 3
"""The maximum depth of roots inside of roots that are taken exactly."""


@dataclass(frozen=True)
class PairResult:
    """What was found about one pair of nodes."""

    equal: Array
    """Boolean, in the shape of the nodes: equal in every lane in which both are defined."""
    defined: Array
    """Boolean: both are defined in some lane."""
    log2_bound: float
    """log₂ of the probability that some element called equal is not; 0 if nothing is known."""
    way: str
    primes: tuple[int, ...] = ()
    """The primes of the run that said so."""
    everywhere: bool = False
    """Whether both were defined in all lanes."""
    decided: Array | None = None
    """The elements of which nothing needs to be found."""

    @property
    def certain(self) -> Array:
        """The elements that are equal with a bound below the target."""
        return self.equal if self.log2_bound <= TARGET else np.zeros_like(self.equal)

    @property
    def is_done(self) -> bool:
        """Whether nothing is left to be found."""
        return bool((self.certain if self.decided is None else self.certain | self.decided).all())

    @staticmethod
    def together(parts: Sequence[PairResult]) -> PairResult:
        """What holds in all parts; elements undefined in one part count by the others."""
        equal = np.all([p.equal | ~p.defined for p in parts], axis=0)
        defined = np.any([p.defined for p in parts], axis=0)
        bound = add_logs(*[p.log2_bound for p in parts])
        return PairResult(equal & defined, defined, bound, parts[0].way, parts[0].primes)


SignedRun = tuple[Signatures, "list[PairResult]"]


@dataclass(eq=False)
class Sampler:
    """Pairs of nodes in the basis, and the ways to compare them."""

    left: tuple[Node, ...]
    right: tuple[Node, ...]
    rng: Random
    meter: Meter
    odd_roots: tuple[int, ...]
    root_orders: Mapping[Node, int]
    integers: Mapping[Node, Array] = field(default_factory=dict)
    primes: list[int] = field(default_factory=list)
    _measured: Growths | None = None

    # ---- the ways --------------------------------------------------------------------------------

    def free(self) -> list[PairResult]:
        """Roots and signs are free random values."""
        sampling = Sampling(SMALL, LANES, self.odd_roots)
        while True:
            signatures = Signatures(self._field(sampling), self.rng)
            results = self._run(signatures)
            results, better = self._judge(results, signatures, sampling, "free")
            if better is None:
                return results
            sampling = better

    def exact(self) -> list[PairResult]:
        """Roots are roots in an extension, signs are ±1 in each region, one after the other."""
        return self._exactly(self._regions, self._rooted(), "exact")

    def _rooted(self) -> Sampling:
        """As many lanes as tell whether the roots are independent, where they are few."""
        roots = sum(prod(n.shape) for n in topological(self.left + self.right) if order_of_root(n))
        lanes = LANES if not roots or roots > FEW_ROOTS else roots + 16
        return Sampling(SMALL, lanes, self.odd_roots)

    def scattered(self) -> list[PairResult]:
        """As `exact`, but with a region of its own in each lane: where degrees in signs are small.

        Raises:
            Unsupported: they are not; or signs follow from others, or a value is undefined somewhere, so
                that some regions are rarer than `sign_degree` says.
        """
        degree = sign_degree(self.left + self.right)
        if not 0 < degree <= MAX_SIGN_DEGREE:
            raise Unsupported("elements depend on many signs")
        return self._exactly(self._one_run, Sampling(SMALL, LANES, self.odd_roots, coins=degree), "exact")

    def inside(self) -> list[PairResult]:
        """As `exact`, in the regions where arguments of roots and logarithms are positive only."""
        return self._exactly(partial(self._regions, domains=True), self._rooted(), "inside")

    def _exactly(
        self, runs_in: Callable[[Field], Iterable[SignedRun]], sampling: Sampling, way: str
    ) -> list[PairResult]:
        levels, coins = 1, sampling.coins
        while True:
            try:
                runs = _until_hopeless(runs_in(self._field(sampling, levels)))
            except NeedsLevel:
                levels += 1
                if levels > MAX_CUT_LEVELS:
                    raise Unsupported(f"roots are nested deeper than {MAX_CUT_LEVELS}") from None
                continue
            results = _together(runs)
            rooted = max((s for s, _ in runs), key=lambda s: len(s.radicands))
            wanted = min(len(rooted.radicands) + 16, MAX_LANES)
            if rooted.radicands and sampling.lanes < wanted and any(r.equal.any() for r in results):
                sampling = replace(sampling, lanes=wanted)
                continue
            dependent = max(len(s.radicands) - independent_roots(s) for s, _ in runs)
            sampling = replace(sampling, coins=coins + dependent)
            results, better = self._judge(results, rooted, sampling, way)
            if better is None:
                return results
            sampling = better

    # ---- runs ------------------------------------------------------------------------------------

    def _field(self, sampling: Sampling, levels: int = 0) -> Field:
        self.primes = random_primes(self.rng, sampling.lanes, sampling.bits, self.odd_roots)
        return Field(tuple(self.primes), levels)

    def _run(self, signatures: Signatures) -> list[PairResult]:
        """One evaluation of everything; bounds are filled in later."""
        run = Run(signatures.field, self.rng, signatures, self.meter, self.root_orders, self.integers)
        values = run.evaluate(self.left + self.right)
        half = len(self.left)
        results = []
        for k, (a, b) in enumerate(zip(self.left, self.right, strict=True)):
            usable = ~(run.marks_of(a) | run.marks_of(b))
            same = signatures.field.is_zero(signatures.field.sub(values[k], values[half + k]))
            defined = usable.any(axis=0)
            equal = np.asarray((same | ~usable).all(axis=0) & defined)
            every = bool(usable.all())
            results.append(PairResult(equal, np.asarray(defined), 0.0, "", everywhere=every))
        return results

    def _one_run(self, fields: Field) -> list[SignedRun]:
        """One run with a region of its own in each lane."""
        regions = Regions(fields, self.rng)
        signatures = Signatures(fields, self.rng, exact_roots=True, regions=regions)
        results = self._run(signatures)
        if regions.linked or signatures.signs.multiplied or not all(r.everywhere for r in results):
            raise Unsupported("signs follow from others, or a value is undefined in some regions")
        return [(signatures, results)]

    def _regions(self, fields: Field, domains: bool = False) -> Iterator[SignedRun]:
        """A run for each combination of signs, as far as the signs are free."""
        choices: list[bool] = []
        for _ in range(MAX_REGIONS):
            regions = Regions(fields, choices)
            signatures = Signatures(fields, self.rng, True, regions, domains=domains)
            results = self._run(signatures)
            yield signatures, results
            if domains and not self._selects and not any(r.defined.any() for r in results):
                choices = choices[: signatures.left_at]  # other signs of later arguments define nothing
            while choices and not choices[-1]:
                choices = choices[:-1]
            if not choices:
                return
            choices = [*choices[:-1], False]
        raise Unsupported(f"more than {MAX_REGIONS} regions")

    @cached_property
    def _selects(self) -> bool:
        """Whether a value may be undefined in a branch that is not taken."""
        return any(isinstance(n.op, Select) for n in topological(self.left + self.right))

    # ---- bounds ----------------------------------------------------------------------------------

    def _judge(
        self, results: list[PairResult], signatures: Signatures, sampling: Sampling, way: str
    ) -> tuple[list[PairResult], Sampling | None]:
        """The results with their bounds, and a larger sampling if that would bring them down."""
        if not any(r.equal.any() for r in results):
            return [replace(r, way=way) for r in results], None
        growths = self._measure(signatures)
        collisions = log2_collisions(growths, sampling)
        made, worst = [], (0, 0)
        for a, b, result in zip(self.left, self.right, results, strict=True):
            deg, bits = difference(growths.found[a], growths.found[b], growths)
            once = log2_false_zero(deg, bits, growths, sampling)
            bound = add_logs(once + log2(max(result.equal.size, 1)), collisions)
            primes = tuple(dict.fromkeys(signatures.field.primes))
            made.append(replace(result, log2_bound=min(bound, 0.0), way=way, primes=primes))
            worst = max(worst[0], deg), max(worst[1], bits)
        if max(r.log2_bound for r in made) <= TARGET:
            return made, None
        return made, self._larger(worst, growths, sampling)

    def _measure(self, signatures: Signatures) -> Growths:
        """The growths of all nodes; larger samplings of the same kind share them."""
        growths = Growths(
            self.root_orders, self.integers, signatures.exact_roots, frozenset(signatures.turned)
        )
        if self._measured is None or not self._measured.alike(growths):
            growths.measure(self.left + self.right)
            self._measured = growths
        return self._measured

    def _larger(self, worst: tuple[int, int], growths: Growths, sampling: Sampling) -> Sampling | None:
        """More lanes if one lane says enough, else larger primes; None if that was done already."""
        arguments = growths.arguments.values()
        deg = max([worst[0], *(8 * d for _, d, _ in arguments)])
        bits = max([worst[1], *(8 * b + 1 for _, _, b in arguments)])
        size = max(prod(n.shape) for n in self.left)
        slack = 34 + log2(max(size, 1)) + 4 * log2(max([1, *(n for n, _, _ in arguments)]))
        lane = add_logs(*lane_parts(deg, bits, growths, sampling))
        if 0 < sampling.coins <= MAX_SIGN_DEGREE and lane >= MAX_COIN_LANE:
            many = ceil((slack - TARGET) / -MAX_COIN_LANE)
            larger = bits_for(deg, bits, growths, many, slack)
            return replace(sampling, bits=larger) if larger <= MAX_COIN_BITS else None
        if sampling.coins and lane < MAX_COIN_LANE:
            lane = log2(1 - 2.0**-sampling.coins + 2.0**lane)
        lanes = ceil((slack - TARGET) / -lane) if lane < 0 else MAX_LANES + 1
        if sampling.lanes < lanes <= MAX_LANES and (lane < -6 or sampling.coins):
            return replace(sampling, lanes=lanes)
        few = sampling.lanes if growths.root_bits else 3
        needed = bits_for(deg, bits, growths, few, slack)
        if needed <= sampling.bits or sampling.coins:
            return None
        return replace(sampling, bits=needed, lanes=few)


def _together(runs: Sequence[SignedRun]) -> list[PairResult]:
    """What holds in all regions."""
    return [PairResult.together(column) for column in zip(*(r for _, r in runs), strict=True)]


def _until_hopeless(runs: Iterable[SignedRun]) -> list[SignedRun]:
    """The runs in all regions, or as many as show that no element is equal in all."""
    made: list[SignedRun] = []
    for run in runs:
        made.append(run)
        found = _together(made)
        if any(r.defined.any() for r in found) and not any(r.equal.any() for r in found):
            break
    return made


def independent_roots(signatures: Signatures) -> int:
    """How many exact square roots are certainly independent of the others.

    If a product of radicands u_i were a square in the field that the roots of lower levels generate, the
    product of their quadratic characters would be 1 at every point. So radicands of one level whose
    characters, over the lanes, have full rank over F_2 are independent modulo squares; each then doubles
    the field, and all choices of their signs are conjugate.
    """
    rows: dict[int, list[int]] = {}
    for level, column in signatures.radicands:
        squares = signatures.field.is_square(column, level)
        rows.setdefault(level, []).append(
            sum(1 << k for k, square in enumerate(squares.tolist()) if not square)
        )
    return sum(_rank(vectors) for vectors in rows.values())


def _rank(vectors: list[int]) -> int:
    """The rank over F_2 of vectors given as bits."""
    pivots: list[int] = []
    for vector in vectors:
        for pivot in pivots:
            vector = min(vector, vector ^ pivot)
        if vector:
            pivots.append(vector)
    return len(pivots)
