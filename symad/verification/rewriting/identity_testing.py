"""Identity testing in prime fields: are two graphs the same function?

Three ways are tried, each sound, from cheap to complete:

- *free*: roots and signs are free random values; no relation such as √u² = u is used;
- *scattered*, *exact*: roots are roots, in an extension of the field, and signs are ±1, in a region of each
  lane or region by region;
- *inside*: the same, where arguments of roots and logarithms are positive.

Equality in all lanes is equality of functions, but for the stated probability; a difference proves nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import partial
from itertools import combinations, islice
from math import prod
from random import Random

import numpy as np
import sympy

from symad.core.arrays import Number
from symad.core.graph import Node, topological
from symad.core.process import without_collecting
from symad.ops.arrays.reduction import Extreme
from symad.ops.basic.arithmetic import Mul, sub
from symad.ops.basic.sources import Input, constant_value, symbol_of
from symad.ops.elementwise.apply import Apply
from symad.ops.elementwise.powers import Pow
from symad.ops.linalg.cholesky import Cholesky
from symad.verification.budget import Budget, Meter, OutOfBudget, Unsupported
from symad.verification.fields.integer_inputs import all_choices, integer_inputs, reads_inside
from symad.verification.fields.prime_fields import Array
from symad.verification.random_fields.error_bound import add_logs
from symad.verification.random_fields.function_values import NeedsLevel
from symad.verification.random_fields.runs import PairResult, Sampler
from symad.verification.rewriting.basis import Basis
from symad.verification.rewriting.restated.by_cases import cases_of, with_known_signs
from symad.verification.rewriting.restated.by_elements import by_elements, one_element_of
from symad.verification.rewriting.restated.by_free_choices import with_free_choices
from symad.verification.rewriting.restated.by_injective import Box, by_injective
from symad.verification.rewriting.restated.by_spectra import by_spectra
from symad.verification.rewriting.rewrite import expand_definitions, rewrite
from symad.verification.terms.depending import depending
from symad.verification.terms.discontinuities import SIGNS
from symad.verification.terms.linear_terms import MAX_ORDER, order_of_root
from symad.verification.values.constant_exponents import is_nonzero_somewhere
from symad.verification.values.find_values import have_values

DRAWS, MAX_DRAWN = 2, 100
"""How many random choices of integer inputs (indices, matrix exponents) are tested."""


@dataclass(frozen=True)
class Result:
    """What was found about all pairs."""

    pairs: tuple[PairResult, ...]
    seed: int
    primes: tuple[int, ...]
    """The primes of the run that decided last."""
    draws: tuple[str, ...] = ()
    """The values that integer inputs were given."""
    reasons: tuple[str, ...] = ()
    """Why nothing better was found."""


@without_collecting
def compare_nodes(
    pairs: Sequence[tuple[Node, Node]],
    seed: int,
    budget: Budget,
    meter: Meter | None = None,
    decided: Sequence[Array] | None = None,
) -> Result:
    """Test pairs of nodes of equal shapes; all dimensions must be numbers.

    Args:
        pairs: what is compared.
        seed: from which primes and points are drawn.
        budget: limits of time and size.
        meter: where work is counted already.
        decided: the elements of each pair of which nothing needs to be found: they differ, or are proved.

    Returns:
        For each pair which elements are equal, with the probability of a false 'equal'.
    """
    rng, meter = Random(seed), meter or Meter(budget)
    both = [side for pair in pairs for side in pair]
    search, many = _WaySearch(both), depending(both, _compares_many)
    long = {k for k, pair in enumerate(pairs) if not many.isdisjoint(pair)}
    if long:
        search.reasons.append(f"an extreme of more than {MAX_COMPARED} elements is compared at points only")
    expanded = expand_definitions(both)
    plain = list(zip(expanded[0::2], expanded[1::2], strict=True))
    best = [_nothing(a, None if decided is None else decided[k]) for k, (a, _) in enumerate(plain)]
    for way in WAYS:
        rest = [k for k, found in enumerate(best) if not found.is_done and k not in long]
        given = [(pairs[k], plain[k], best[k]) for k in rest]
        for k, found in zip(rest, way(given, search, rng, meter) if rest else (), strict=True):
            best[k] = _better(best[k], found)
    return Result(tuple(best), seed, search.primes, tuple(search.draws), tuple(dict.fromkeys(search.reasons)))


Given = tuple[tuple[Node, Node], tuple[Node, Node], PairResult]
"""A pair, the same without fused ops, and what was found of it."""


MAX_COMPARED = 500
"""The maximum number of elements of an extreme: the terms that compare them take time of its square."""


def _compares_many(n: Node) -> bool:
    return isinstance(n.op, Extreme) and prod(n.args[0].shape[k] for k in n.op.axes) > MAX_COMPARED


def _in_basis(
    given: Sequence[Given], search: _WaySearch, rng: Random, meter: Meter, split: bool, absolutes: bool
) -> list[PairResult]:
    """All pairs together, in one basis."""
    chosen = [k for k, (pair, _, _) in enumerate(given) if not absolutes or _has_roots_of_products(pair)]
    basis, made = Basis(split, absolutes), [found for _, _, found in given]
    if chosen:
        sides = rewrite([n for k in chosen for n in given[k][1]], basis)
        done = [given[k][2].decided for k in chosen]
        for k, found in zip(chosen, search.compare(sides, basis, rng, meter, done), strict=True):
            made[k] = found
    return made


def _by_one_element(given: Given, search: _WaySearch, rng: Random, meter: Meter) -> PairResult:
    """Arrays or sums without fused ops, of which all elements are one function, which contains signs."""
    _, pair, _ = given
    sides = one_element_of(*pair)
    basis = Basis()
    made = rewrite(sides, basis) if sides is not None else ()
    if not any(is_root_or_sign(n) for n in topological(made)) or integer_inputs(made):
        return _nothing(pair[0])
    (found,) = search.compare(made, basis, rng, meter)
    shape = pair[0].shape
    equal, defined = (np.full(shape, bool(each)) for each in (found.equal, found.defined))
    return replace(found, equal=equal, defined=defined)


def _by_elements(given: Given, search: _WaySearch, rng: Random, meter: Meter, more: int = 1) -> PairResult:
    """A pair of small arrays, written out: the elements that are not known to be equal.

    They are compared together, and those that remain each alone.
    """
    pair, _, found = given
    sides = by_elements(pair, more)
    if sides is None:
        return found
    open_ = ~found.certain if found.decided is None else ~found.certain & ~found.decided
    rest = np.flatnonzero(open_.ravel())
    search.ranges = {}
    pairs = [[side[k] for side in sides] for k in rest]
    parts = _written_out(pairs, search, rng, meter)
    for k, part in enumerate(parts):
        if not part.is_done and len(parts) > 1:  # its signs alone are fewer
            parts[k] = _better(part, _written_out([pairs[k]], search, rng, meter)[0])
    equal, defined = found.certain.ravel().copy(), found.defined.ravel().copy()
    equal[rest] = [p.certain for p in parts]
    defined[rest] |= [bool(p.defined) for p in parts]
    search.primes = parts[0].primes or search.primes
    bounds = [r.log2_bound for r in (*parts, found) if r.certain.any()]
    shape, bound = found.equal.shape, add_logs(*bounds) if bounds else 0.0
    return PairResult(equal.reshape(shape), defined.reshape(shape), bound, parts[0].way, parts[0].primes)


def _written_out(
    pairs: Sequence[Sequence[Node]], search: _WaySearch, rng: Random, meter: Meter
) -> list[PairResult]:
    """Pairs of scalars in a basis of their own."""
    basis = Basis()
    made = rewrite([side for pair in pairs for side in pair], basis)
    sampler = _sampler(made, basis, rng, meter)
    nothing = [_nothing(a) for a in sampler.left]
    return search.improve(nothing, sampler, [Sampler.free, *ways_of(made)])


def _by_spectra(given: Given, search: _WaySearch, rng: Random, meter: Meter) -> PairResult:
    """A pair of functions of other inputs, of which eigenvectors and singular vectors are functions."""
    pair, _, found = given
    for sides, claims, apart in by_spectra(pair):
        if not all(is_nonzero_somewhere(sub(a, b)) for a, b in combinations(apart, 2)):
            continue
        results = []
        for each in (sides, *claims):
            basis = Basis(True)
            results += search.compare(rewrite(each, basis), basis, rng, meter)
        if all(r.is_done for r in results[1:]):
            return replace(results[0], log2_bound=add_logs(*[r.log2_bound for r in results]), way="spectral")
    return found


def _by_cases(given: Given, search: _WaySearch, rng: Random, meter: Meter) -> PairResult:
    """A pair of numbers for each sign of each input, by the whole parts of one, or on intervals."""
    pair, _, found = given
    if not have_values(pair):
        return found
    for cases in cases_of(pair):
        parts: list[PairResult] = []
        for a, b, box in cases:
            claims = by_injective(a, b, box)
            known = next((p for c in claims if (p := _all_hold(c, box, search, rng, meter))), None)
            if known is None:
                break
            parts += known
        else:
            if parts:
                whole, bound = np.ones_like(found.equal), add_logs(*[p.log2_bound for p in parts])
                return PairResult(whole, whole, bound, "cases", parts[-1].primes)
    return found


def _all_hold(
    claims: Sequence[tuple[Node, Node]], box: Box, search: _WaySearch, rng: Random, meter: Meter
) -> list[PairResult] | None:
    """What was found of some claims if all of them hold while the inputs lie in a box."""
    parts: list[PairResult] = []
    for claim in claims:
        basis = Basis()
        made = rewrite(claim, basis)
        parts += search.compare(with_known_signs(made, box) if box else made, basis, rng, meter)
        if not parts[-1].is_done:
            return None
    return parts


MORE = 8
"""Without regions for each order of elements, so many times as many of them are compared."""


def _with_free_choices(given: Given, search: _WaySearch, rng: Random, meter: Meter) -> PairResult:
    """A pair that may be equal whatever its maxima are."""
    pair, _, found = given
    sides = with_free_choices(pair)
    if sides is None:
        return found
    a, b = sides
    free = _by_elements(((a, b), (a, b), replace(found, decided=None)), search, rng, meter, MORE)
    return free if free.is_done else found


def _each(way: Callable[[Given, _WaySearch, Random, Meter], PairResult]) -> Callable[..., list[PairResult]]:
    """A way to compare one pair, for all."""
    return lambda given, search, rng, meter: [way(one, search, rng, meter) for one in given]


WAYS: tuple[Callable[..., list[PairResult]], ...] = (
    _each(_with_free_choices), _each(_by_one_element), partial(_in_basis, split=False, absolutes=False),
    partial(_in_basis, split=True, absolutes=False), partial(_in_basis, split=True, absolutes=True),
    _each(_by_elements), _each(_by_spectra), _each(_by_cases),
)  # fmt: skip
"""The ways to compare what is not decided yet, one after the other; `Basis` says what the flags mean."""


def _sampler(made: Sequence[Node], basis: Basis, rng: Random, meter: Meter) -> Sampler:
    """Of nodes that take turns, left and right."""
    odd = odd_parts(basis.roots.found)
    left, right = tuple(made[0::2]), tuple(made[1::2])
    return Sampler(left, right, rng, meter, odd, root_inputs(made))


def _has_roots_of_products(pair: tuple[Node, Node]) -> bool:
    """Whether there is a root or a logarithm of a product or a quotient."""
    return any(has_domain(n) and isinstance(n.args[0].op, Mul) for n in topological(pair))


@dataclass(eq=False)
class _WaySearch:
    """Ways tried one after the other, with what is to be told about them."""

    given: Sequence[Node] = ()
    """What is compared, where indices of several axes are not joined yet."""
    ranges: Mapping[Node, tuple[int, int]] = field(default_factory=dict)
    draws: list[str] = field(default_factory=list)
    reasons: list[str] = field(default_factory=list)
    primes: tuple[int, ...] = ()

    def compare(
        self, made: Sequence[Node], basis: Basis, rng: Random, meter: Meter, done: Sequence[Array | None] = ()
    ) -> list[PairResult]:
        """Pairs in one basis, one after the other: first all together, then those not equal alone."""
        together = _sampler(made, basis, rng, meter)
        known = integer_inputs(self.given)
        self.ranges = {n: known.get(n, found) for n, found in integer_inputs(made).items()}
        nothing = [_nothing(a, done[k] if done else None) for k, a in enumerate(together.left)]
        best = self.improve(nothing, together, [Sampler.free])
        self.primes = tuple(together.primes) or self.primes
        if not basis.split and not has_exponents_with_signs(made):  # exp(max(a, b)) is exp(a) or exp(b)
            return best
        rest = [k for k, found in enumerate(best) if not found.is_done]
        if len(rest) > 1:  # those of one certificate share most of their nodes
            best = self._again(best, rest, made, basis, rng, meter, 1)
        for k in rest:
            if not best[k].is_done:
                best = self._again(best, [k], made, basis, rng, meter)
        return best

    def _again(
        self, best: list[PairResult], chosen: Sequence[int], made: Sequence[Node], basis: Basis, rng: Random,
        meter: Meter, most: int | None = None,
    ) -> list[PairResult]:  # fmt: skip
        """The results after the chosen pairs are tested together again, in `most` ways of roots and signs."""
        sides = [n for k in chosen for n in made[2 * k : 2 * k + 2]]
        sampler = _sampler(sides, basis, rng, meter)
        improved = self.improve([best[k] for k in chosen], sampler, ways_of(sides)[:most])
        self.primes = tuple(sampler.primes) or self.primes
        new = dict(zip(chosen, improved, strict=True))
        return [new.get(k, found) for k, found in enumerate(best)]

    def improve(self, best: list[PairResult], sampler: Sampler, ways: Sequence[Way]) -> list[PairResult]:
        """The best results for the pairs of a sampler."""
        for way in ways:
            try:
                found, draws = _over_draws(sampler, self.ranges, reads_inside(self.given), way)
                self.draws = draws or self.draws
                best = [_better(old, new) for old, new in zip(best, found, strict=True)]
            except (Unsupported, NeedsLevel) as problem:
                self.reasons.append(str(problem))
                if isinstance(problem, OutOfBudget):
                    break
            if all(found.is_done for found in best):
                break
        return best


def _nothing(node: Node, decided: Array | None = None) -> PairResult:
    none = np.zeros(node.shape, dtype=bool)
    return PairResult(none, none, 0.0, "none", decided=decided)


def _better(old: PairResult, new: PairResult) -> PairResult:
    """The result that says more: more elements certainly equal, or equally many with a smaller bound."""
    if (new.certain.sum(), -new.log2_bound) > (old.certain.sum(), -old.log2_bound):
        return replace(new, defined=old.defined | new.defined, decided=old.decided)
    return replace(old, defined=old.defined | new.defined)


# ---- integer inputs -----------------------------------------------------------------------------


def _over_draws(
    sampler: Sampler,
    ranges: Mapping[Node, tuple[int, int]],
    inside: Callable[[Mapping[Node, Number]], bool],
    way: Way,
) -> tuple[list[PairResult], list[str]]:
    """One way, for all values of the integer inputs or for a few; all have to agree."""
    if not ranges:
        return way(sampler), []
    every = all_choices(ranges)
    draw = partial(_draw, sampler.rng)
    drawn = ({n: draw(n, *ends) for n, ends in ranges.items()} for _ in range(MAX_DRAWN))
    said, results = [], []
    for choice in islice(filter(inside, every or drawn), None if every else DRAWS):
        sampler.integers = choice
        said.append(", ".join(f"{symbol_of(n)} = {v.tolist()}" for n, v in choice.items()))
        results.append(way(sampler))
        if not any(r.equal.any() for r in results[-1]):
            break
    if not results:
        raise Unsupported("no integers were found at which all indices are inside of their axes")
    if every:
        said = [", ".join(f"every {symbol_of(n)} from {a} to {b - 1}" for n, (a, b) in ranges.items())]
    return [PairResult.together(column) for column in zip(*results, strict=True)], said


def _draw(rng: Random, node: Node, low: int, high: int) -> Array:
    values = [rng.randrange(low, max(high, low + 1)) for _ in range(prod(node.shape))]
    return np.array(values, dtype=np.int64).reshape(node.shape)


Way = Callable[[Sampler], "list[PairResult]"]


def ways_of(outputs: Sequence[Node]) -> list[Way]:
    """The ways, after the free one, that can find something in these graphs."""
    nodes = topological(outputs)
    signed: list[Way] = [Sampler.scattered, Sampler.exact] if any(map(is_root_or_sign, nodes)) else []
    return [*signed, Sampler.inside] if any(map(has_domain, nodes)) else signed


def has_domain(node: Node) -> bool:
    """Whether a node is defined for positive arguments only."""
    if isinstance(node.op, Pow):
        return isinstance(constant_value(node.args[1]), (float, Fraction))
    return isinstance(node.op, Cholesky) or (isinstance(node.op, Apply) and node.op.head is sympy.log)


def has_exponents_with_signs(outputs: Sequence[Node]) -> bool:
    """Whether exponents or angles have another value in each region, which splitting them would hide."""
    order = topological(outputs)
    signed = depending(outputs, lambda n: isinstance(n.op, Apply) and n.op.head in SIGNS)
    heads = (sympy.exp, sympy.cos, sympy.sin)
    return any(isinstance(n.op, Apply) and n.op.head in heads and n.args[0] in signed for n in order)


def is_root_or_sign(node: Node) -> bool:
    """Whether a node has a value of its own in each region: a root, a factor of Cholesky's, or a sign."""
    if isinstance(node.op, Apply):
        return node.op.head in SIGNS
    return isinstance(node.op, Cholesky) or order_of_root(node) is not None


def odd_parts(units: Sequence[Fraction]) -> tuple[int, ...]:
    """The odd primes that divide orders of roots."""
    orders = [unit.denominator for unit in units if unit.denominator <= MAX_ORDER]
    return tuple(sorted({int(q) for order in orders for q in sympy.primefactors(order) if q > 2}))


def root_inputs(outputs: Sequence[Node]) -> dict[Node, int]:
    """Inputs of which roots are taken, and that are promised to be positive: they are drawn as powers."""
    found: dict[Node, int] = {}
    for node in topological(outputs):
        order, base = order_of_root(node), node.args[0] if node.args else node
        if order and isinstance(base.op, Input) and getattr(base.op.symbol, "is_nonnegative", None):
            found[base] = order
    return found
