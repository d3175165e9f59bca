"""Sums of contraction networks, written with indices, and when two of them are the same.

A `Network` is a product of factors T[i, j, ...]^e with a rational coefficient. Indices 0, 1, ... are
the axes of the value; larger ones (`BOUND` and up) are summed over their dimension; along axes of
length 1 the index is always `UNIT`. A `Form` is a sum of networks. Networks that differ only in the
order of factors and the names of bound indices are isomorphic graphs, which networkx decides.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import partial
from itertools import count, permutations, product
from typing import TYPE_CHECKING, Any

from symad.core.dims import Dim, Shape, is_below
from symad.verification.budget import Meter, OutOfBudget
from symad.verification.proof.same_networks import isomorphic, signature

if TYPE_CHECKING:
    import sympy as sp

BOUND = 1000
UNIT = -1
DELTA = ("delta",)
CONDITION, CHOICE = "condition", "choice"
"""Kinds of atoms that are 0 or 1, with more about them."""

MAX_TERMS = 400
"""The maximum number of terms of a normal form."""

MAX_SUMS_MULTIPLIED = 200
"""The maximum number of sums in a product that is multiplied out: calls would be nested as deeply."""

STEPS_OF_EDGE = 20
"""Steps to draw an edge and hash it, and those of one comparison in the search for an isomorphism."""

Atom = Hashable
Factor = tuple[Atom, tuple[int, ...], Fraction]
"""An atom, its indices, and its exponent (elementwise)."""


@dataclass(frozen=True)
class Network:
    """A product of factors, with the dimensions of its bound indices."""

    factors: tuple[Factor, ...]
    dims: Mapping[int, Dim]


Form = list[tuple[Fraction, Network]]


@dataclass(eq=False)
class Networks:
    """Forms of one proof: what is known about their atoms, and the forms named so far."""

    meter: Meter
    fresh: Iterator[int] = field(default_factory=lambda: count(BOUND))
    named: list[tuple[Shape, Form]] = field(default_factory=list)
    numbers: dict[frozenset[tuple[int, Fraction]], list[int]] = field(default_factory=dict)
    """Which of these have the same sums of coefficients by signature."""
    singles: dict[Atom, tuple[Atom, bool]] = field(default_factory=dict)
    """For the inverse of a single matrix: that matrix, and whether it is transposed."""
    symmetric: set[Atom] = field(default_factory=set)
    """Matrices of which both index orders are the same."""

    # ---- building --------------------------------------------------------------------------------

    def constant(self, value: Fraction | int) -> Form:
        """A number."""
        return [(Fraction(value), Network((), {}))] if value else []

    def single(
        self, atom: Atom, shape: Shape, order: Sequence[int] | None = None, exponent: Fraction | int = 1
    ) -> Form:
        """One atom with all its axes free; axis k of the value is axis ``order[k]`` of the atom."""
        at = [UNIT if dim == 1 else k for k, dim in enumerate(shape)]
        own = at if order is None else [at[order.index(k)] for k in range(len(at))]
        return self.simplify(Fraction(1), [(atom, tuple(own), Fraction(exponent))], {})

    def atom(self, kind: Hashable, form: Form, shape: Shape, exponent: Fraction | int = 1) -> Form:
        """A function of a form, elementwise: an atom with the axes that the form has."""
        used = self.axes(form)
        inner = self.permuted(form, [used.index(k) if k in used else UNIT for k in range(len(shape))])
        number, order = self.name(inner, tuple(shape[k] for k in used))
        at = tuple(used[order.index(k)] for k in range(len(used)))
        return self.simplify(Fraction(1), [((kind, number), at, Fraction(exponent))], {})

    def axes(self, form: Form) -> list[int]:
        """The axes of the value that a form depends on."""
        return sorted({i for _, n in form for _, at, _ in n.factors for i in at if UNIT < i < BOUND})

    def contract(
        self,
        parts: Sequence[tuple[Form, Sequence[Hashable]]],
        output: Sequence[Hashable],
        dims: Mapping[Any, Dim],
    ) -> Form:
        """Σ over labels not in ``output`` of the product; ``parts`` are forms with labels of their axes."""
        place = {label: UNIT if dims[label] == 1 else k for k, label in enumerate(output)}
        if len(place) != len(output):
            raise OutOfBudget("a diagonal is written")
        labels_used = dict.fromkeys(x for _, labels in parts for x in labels)
        place.update({label: UNIT for label in labels_used if dims[label] == 1})
        summed = [label for label in labels_used if label not in place]
        total: Form = []
        for choice in product(*[form for form, _ in parts]):
            names = {**place, **{label: next(self.fresh) for label in summed}}
            bound = {names[label]: dims[label] for label in summed}
            coefficient = Fraction(1)
            factors: list[Factor] = []
            for (c, network), (_, labels) in zip(choice, parts, strict=True):
                coefficient *= c
                renamed = {UNIT: UNIT, **{k: names[label] for k, label in enumerate(labels)}}
                for index, dim in network.dims.items():
                    renamed[index] = next(self.fresh)
                    bound[renamed[index]] = dim
                factors.extend((atom, tuple(renamed[i] for i in at), e) for atom, at, e in network.factors)
            total.extend(self.simplify(coefficient, factors, bound))
            if len(total) > 4 * MAX_TERMS:
                raise OutOfBudget(f"more than {MAX_TERMS} contraction networks")
        return self.collect(total)

    def add(self, parts: Iterable[tuple[Fraction, Form]]) -> Form:
        """A linear combination."""
        return self.collect([(s * c, network) for s, form in parts for c, network in form])

    # ---- simplifying one network -----------------------------------------------------------------

    def simplify(self, coefficient: Fraction, factors: list[Factor], dims: dict[int, Dim]) -> Form:
        """Identity matrices and inverses are carried out, equal factors merged, free sums are dimensions."""
        while True:
            factors = self._merged(factors)
            step = self._without_delta(factors, dims) or self._without_inverse(factors, dims)
            if step is None:
                break
            factors = step
        used = {i for _, at, _ in factors for i in at}
        for index in [i for i in dims if i not in used]:
            dim = dims.pop(index)
            if isinstance(dim, int):
                coefficient *= dim
            else:
                # Σ 1/n over nothing is 0, not 1: a size that may be 0 is kept apart from the number n
                kinds = ((("dim" if is_below(0, b) else "size", b), e) for b, e in _powers_of(dim))
                factors.extend((atom, (), Fraction(int(e))) for atom, e in kinds)
        factors = self._merged(factors)
        if sum(e for atom, _, e in factors if _is_power(atom) and e >= 1) > MAX_SUMS_MULTIPLIED:
            raise OutOfBudget(f"a product of more than {MAX_SUMS_MULTIPLIED} sums")
        for k, (atom, at, e) in enumerate(factors):
            if _is_power(atom) and e >= 1:  # u^(3/2) = u · u^(1/2)
                rest: Form = [
                    (coefficient, Network((*factors[:k], (atom, at, e - 1), *factors[k + 1 :]), dims))
                ]
                return self._times(rest, atom, at)
            if _is_power(atom) and e < 0:
                found = self._led(coefficient, factors, dims, k)
                if found is not None:
                    return found
        return [(coefficient, Network(tuple(factors), dims))] if coefficient else []

    def _led(self, coefficient: Fraction, factors: list[Factor], dims: dict[int, Dim], k: int) -> Form | None:
        """x u^e = (u^(e+1) − (u − x) u^e) for the term x of highest degree of a sum u, and e < 0."""
        atom, at, e = factors[k]
        _, form = self.named[atom[1]]  # type: ignore[index]  # the atom of a sum
        lead = _leading(form)
        if lead is None:
            return None
        scale, term = form[lead]
        place = {UNIT: UNIT, **dict(enumerate(at))}
        have = {(a, where): x for a, where, x in factors}
        for a, where, x in term.factors:
            key = (a, tuple(place[i] for i in where))
            if have.get(key, 0) < x:
                return None
            have[key] -= x
        left = [(a, where, x) for (a, where), x in have.items() if x and (a, where) != (atom, at)]
        raised: list[Factor] = [*left, (atom, at, e + 1)] if e != -1 else left
        total = self.simplify(coefficient / scale, raised, dict(dims))
        others = [(-c / scale, network) for n, (c, network) in enumerate(form) if n != lead]
        kept: Form = [(coefficient, Network((*left, (atom, at, e)), dims))]
        return [*total, *self._multiplied(kept, others, at)]

    def _times(self, rest: Form, atom: Any, at: tuple[int, ...]) -> Form:
        """Networks multiplied by the form that a power is taken of, at these indices."""
        return self._multiplied(rest, self.named[atom[1]][1], at)

    def _multiplied(self, rest: Form, form: Form, at: tuple[int, ...]) -> Form:
        """Networks multiplied by a form, at these indices."""
        total: Form = []
        for c, network in rest:
            for d, inner in form:
                renamed = {UNIT: UNIT, **dict(enumerate(at))}
                bound = dict(network.dims)
                for index, dim in inner.dims.items():
                    renamed[index] = next(self.fresh)
                    bound[renamed[index]] = dim
                more = [(a, tuple(renamed[i] for i in places), e) for a, places, e in inner.factors]
                total.extend(self.simplify(c * d, [*network.factors, *more], bound))
        return total

    def _merged(self, factors: Sequence[Factor]) -> list[Factor]:
        """Factors of one atom at the same indices added up in their exponents."""
        total: dict[tuple[Atom, tuple[int, ...]], Fraction] = {}
        for atom, at, e in factors:
            if atom == DELTA or atom in self.symmetric:
                at = tuple(sorted(at))
            total[atom, at] = total.get((atom, at), Fraction(0)) + e
        return [
            (atom, at, Fraction(1) if _is_zero_or_one(atom) and e > 0 else e)
            for (atom, at), e in total.items()
            if e
        ]

    def _without_delta(self, factors: list[Factor], dims: dict[int, Dim]) -> list[Factor] | None:
        for k, (atom, at, _) in enumerate(factors):
            if atom != DELTA:
                continue
            rest = factors[:k] + factors[k + 1 :]
            i, j = at
            if i == j:
                return rest
            if i >= BOUND or j >= BOUND:
                gone, kept = (i, j) if i >= BOUND else (j, i)
                dims.pop(gone)
                return [(a, tuple(kept if x == gone else x for x in places), e) for a, places, e in rest]
        return None

    def _without_inverse(self, factors: list[Factor], dims: dict[int, Dim]) -> list[Factor] | None:
        """M⁻¹[i, j] M[j, k] summed over j is δ[i, k], and M[k, i] M⁻¹[i, j] summed over i is δ[k, j]."""
        uses: dict[int, int] = {}
        for _, at, _ in factors:
            for i in at:
                uses[i] = uses.get(i, 0) + 1
        for k, (atom, at, e) in enumerate(factors):
            if atom not in self.singles or e != 1:
                continue
            matrix, turned = self.singles[atom]
            for m, (other, places, f) in enumerate(factors):
                if other != matrix or f != 1 or m == k:
                    continue
                row, column = places[::-1] if turned else places
                orders = [(row, column), (column, row)] if other in self.symmetric else [(row, column)]
                for r, c in orders:
                    for joined, left, right in ((at[1] == r, at[0], c), (at[0] == c, r, at[1])):
                        shared = r if left == at[0] else c
                        if joined and shared >= BOUND and uses[shared] == 2:
                            dims.pop(shared)
                            rest = [x for n, x in enumerate(factors) if n not in (k, m)]
                            return [*rest, (DELTA, (left, right), Fraction(1))]
        return None

    # ---- comparing -------------------------------------------------------------------------------

    def collect(self, form: Form) -> Form:
        """Isomorphic networks added up."""
        buckets: dict[int, list[tuple[Fraction, Network]]] = {}
        for c, network in form:
            self.meter.spend(STEPS_OF_EDGE * (1 + 2 * sum(len(at) for _, at, _ in network.factors)))
            bucket = buckets.setdefault(self._signature(network), [])
            for k, (d, known) in enumerate(bucket):
                if self._isomorphic(network, known):
                    bucket[k] = (c + d, known)
                    break
            else:
                bucket.append((c, network))
        kept = [(c, network) for bucket in buckets.values() for c, network in bucket if c]
        if len(kept) > MAX_TERMS:
            raise OutOfBudget(f"more than {MAX_TERMS} contraction networks")
        return kept

    def is_unordered(self, atom: Hashable) -> bool:
        """Whether the indices of an atom may be exchanged."""
        return atom == DELTA or atom in self.symmetric

    def _signature(self, network: Network) -> int:
        return signature(network.factors, network.dims, self.is_unordered)

    def _isomorphic(self, a: Network, b: Network) -> bool:
        """Whether two networks of one signature are one but for the names of bound indices."""
        spend = partial(self.meter.spend, STEPS_OF_EDGE)
        return isomorphic((a.factors, a.dims), (b.factors, b.dims), self.is_unordered, spend)

    def is_zero(self, form: Form) -> bool:
        """Whether a form is zero for all sizes; scalar denominators are multiplied out first."""
        for _ in range(8):
            form = self.collect(form)
            lowest: dict[Hashable, int] = {}
            for _, network in form:
                for atom, at, e in network.factors:
                    if _is_power(atom) and not at and e < 0:
                        lowest[atom] = min(lowest.get(atom, 0), e.numerator // e.denominator)
            if not lowest:
                return not form
            cleared: Form = []
            for c, network in form:
                more = [(atom, (), Fraction(-k)) for atom, k in lowest.items()]
                cleared.extend(self.simplify(c, [*network.factors, *more], dict(network.dims)))
            form = cleared
        return not form

    def name(self, form: Form, shape: Shape) -> tuple[int, tuple[int, ...]]:
        """A number for a form up to the order of its axes, and the order in which it is known.

        Axis k of the form is axis ``order[k]`` of the one with that number.
        """
        found = self._named(form, shape)
        if found is None:
            self.named.append((tuple(shape), form))
            found = len(self.named) - 1, tuple(range(len(shape)))
            self.numbers.setdefault(self._sums(form), []).append(found[0])
        return found

    def known(self, form: Form, shape: Shape) -> tuple[int, tuple[int, ...]] | None:
        """As `atom` would name it, if it has a name already."""
        used = self.axes(form)
        inner = self.permuted(form, [used.index(k) if k in used else UNIT for k in range(len(shape))])
        return self._named(inner, tuple(shape[k] for k in used))

    def _named(self, form: Form, shape: Shape) -> tuple[int, tuple[int, ...]] | None:
        for order in permutations(range(len(shape))):
            turned = self.permuted(form, order)
            dims = tuple(shape[order.index(k)] for k in range(len(shape)))
            for number in self.numbers.get(self._sums(turned), ()):
                known_shape, known = self.named[number]
                if known_shape == dims and not self.collect([*turned, *[(-c, n) for c, n in known]]):
                    return number, order
        return None

    def _sums(self, form: Form) -> frozenset[tuple[int, Fraction]]:
        """The sum of the coefficients by signature: the same for equal forms."""
        totals: dict[int, Fraction] = {}
        for c, network in form:
            key = self._signature(network)
            totals[key] = totals.get(key, Fraction(0)) + c
        self.meter.spend(STEPS_OF_EDGE * (1 + sum(len(n.factors) for _, n in form)))
        return frozenset((key, c) for key, c in totals.items() if c)

    def permuted(self, form: Form, order: Sequence[int]) -> Form:
        """The form with its axis k called ``order[k]``."""
        return [
            (
                c,
                Network(
                    tuple(
                        (a, tuple(order[i] if UNIT < i < BOUND else i for i in at), e)
                        for a, at, e in n.factors
                    ),
                    n.dims,
                ),
            )
            for c, n in form
        ]

    def is_symmetric(self, form: Form) -> bool:
        """Whether a matrix is its own transpose."""
        return not self.collect([*form, *[(-c, n) for c, n in self.permuted(form, (1, 0))]])


def _leading(form: Form) -> int | None:
    """The term of a sum that alone has the highest degree; None if exponents are not whole."""
    if any(e < 0 or e.denominator > 1 or a == DELTA for _, n in form for a, _, e in n.factors):
        return None
    degrees = [sum(e for _, _, e in n.factors) for _, n in form]
    top = max(degrees)
    lead = degrees.index(top)
    return lead if degrees.count(top) == 1 and len(form) > 1 and not form[lead][1].dims else None


def _is_zero_or_one(atom: Any) -> bool:
    """Whether an atom is 0 or 1, so that its powers are itself."""
    kind = atom[0]
    return atom == DELTA or (isinstance(kind, tuple) and kind[0] in (CONDITION, CHOICE))


def _is_power(atom: object) -> bool:
    return isinstance(atom, tuple) and atom[0] == "power"


def _powers_of(dim: sp.Expr) -> list[tuple[sp.Expr, sp.Expr]]:
    """A dimension as a product of powers."""
    return [(base, e) for base, e in dim.as_powers_dict().items()]
