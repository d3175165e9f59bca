"""Claims for all sizes: sums of contraction networks, compared by isomorphisms that the proof gives.

A network is a number times a product of factors atom[indices]^exponent, summed over its bound indices. The
other indices are those of the claim; axes of length 1 have the index 0. An atom is an input, an identity
matrix, or a function of forms, sizes among them; a form is a sum of networks. Two networks are the same if one
is the other with its bound indices renamed; how, is asked of the proof, and then checked.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import count, product
from typing import Any, TypeAlias

from symad.core.dims import same_dim
from symad.verification.checker.terms import FREE, MOST_POWER, Refused, Term, bounded, needed

Factor: TypeAlias = "tuple[int, tuple[int, ...], Fraction]"
Renaming: TypeAlias = "Mapping[int, int]"

ONE = Fraction(1)
AXIS, FRESH = 30_000, 40_000
"""The indices of the axes of a function of forms, and the first that products bind."""

MOST_NETWORKS, MOST_FACTORS, MOST_WORK = 200, 200, 50_000
"""Longer forms and products, and proofs that make more networks, are refused."""


@dataclass(frozen=True)
class Network:
    """number · Σ over the bound indices Π factors; ``sums`` has the sizes of the bound indices."""

    number: Fraction
    factors: tuple[Factor, ...]
    sums: Mapping[int, Any]

    def renamed(self, names: Renaming) -> Network:
        """The same with other indices."""
        factors = tuple((a, tuple(names.get(i, i) for i in at), e) for a, at, e in self.factors)
        return Network(self.number, factors, {names.get(i, i): d for i, d in self.sums.items()})

    def same(self, other: Network, pairs: Any, axes: Renaming) -> bool:
        """Whether this is the other's product and sums, with bound indices renamed one by one, and axes."""
        names = {int(i): int(j) for i, j in pairs}
        if not names.keys() == self.sums.keys() or not set(names.values()) == other.sums.keys():
            raise Refused("a step renames what is not summed over")
        mine = self.renamed({**axes, **names})
        sizes = all(same_dim(d, other.sums[names[i]]) for i, d in self.sums.items())
        return sizes and len(self.sums) == len(other.sums) and sorted(mine.factors) == sorted(other.factors)


Form: TypeAlias = "tuple[Network, ...]"


@dataclass(frozen=True)
class Atom:
    """A function of forms: ``kind`` is "input", "delta", "call" or "sum"."""

    kind: str
    data: Any
    forms: tuple[Form, ...] = ()


def moved(form: Form, axes: Renaming) -> Form:
    """A form with its free indices renamed, to none that is summed over."""
    if any(n.sums.keys() & {*axes, *axes.values()} for n in form):
        raise Refused("an index is captured")
    return tuple(n.renamed(axes) for n in form)


class Networks:
    """The forms of one proof; ``answers`` are the isomorphisms, by the numbers of the questions."""

    def __init__(self, answers: Mapping[int, Any]) -> None:
        """No form is known yet."""
        self.answers, self.unused = answers, set(answers)
        self.questions = self.work = 0
        self.atoms: list[Atom] = []
        self.forms: dict[Term, Form] = {}
        self.fresh = count(FRESH)

    # ---- what is asked of the proof ---------------------------------------------------------------

    def ask(self, kind: str, *about: Any) -> Any:
        """The answer of the proof to the next question; None if it has none."""
        self.questions += 1
        self.unused.discard(self.questions)
        return self.answers.get(self.questions)

    def add(self, forms: Sequence[Form]) -> Form:
        """The sum, with equal networks added up: [[i, j, renaming of the bound indices of i], ...]."""
        made: list[Network | None] = [n for form in forms for n in form]
        for i, j, names in (self.ask("merge", tuple(made)) or ()) if len(made) > 1 else ():
            a, b = made[i], made[j]
            if i == j or a is None or b is None or not a.same(b, names, {}):
                raise Refused("two networks that a step calls the same are not")
            made[i], made[j] = None, Network(a.number + b.number, b.factors, b.sums)
        kept = tuple(n for n in made if n is not None and n.number)
        self.work += 1 + len(made)
        if len(kept) > MOST_NETWORKS or self.work > MOST_WORK:
            raise Refused(f"more than {MOST_NETWORKS} networks, or {MOST_WORK} in all")
        return kept

    def known(self, atom: Atom, axes: int) -> tuple[int, list[int]]:
        """The number of an atom and the order of its axes; it may be an earlier one with axes permuted.

        The answer is [number, order of the axes, a list of [network, renaming] for each form].
        """
        if not atom.forms:
            if atom not in self.atoms:
                self.atoms.append(atom)
            return self.atoms.index(atom), list(range(axes))
        answer = self.ask("atom", atom, axes)
        if answer is None:
            self.atoms.append(atom)
            return len(self.atoms) - 1, list(range(axes))
        number, order, maps = int(answer[0]), list(map(int, answer[1])), answer[2]
        old = self.atoms[number]
        if number < 0 or (old.kind, old.data, len(old.forms)) != (atom.kind, atom.data, len(atom.forms)):
            raise Refused("two functions that a step calls the same are not")
        if sorted(order) != list(range(axes)):
            raise Refused("a step permutes axes that it must not")
        for mine, other, pairs in zip(atom.forms, old.forms, maps, strict=True):
            if not self.isomorphic(mine, other, pairs, {AXIS + k: AXIS + i for k, i in enumerate(order)}):
                raise Refused("the arguments of two functions are not the same")
        return number, [order.index(k) for k in range(axes)]

    def isomorphic(self, a: Form, b: Form, pairs: Sequence[Any], axes: Renaming) -> bool:
        """Whether each network of a is one of b, by the renamings given."""
        if len(a) != len(b) or sorted(j for j, _ in pairs) != list(range(len(b))):
            return False
        matched = [(n, b[j], names) for n, (j, names) in zip(a, pairs, strict=True)]
        return all(n.number == m.number and n.same(m, names, axes) for n, m, names in matched)

    def equal(self, a: Form, b: Form) -> bool:
        """Whether two forms are the same, axis by axis."""
        pairs = self.ask("equal", a, b)
        return pairs is not None and self.isomorphic(a, b, pairs, {})

    # ---- building forms ---------------------------------------------------------------------------

    def number(self, value: Fraction | int) -> Form:
        """A number."""
        return (Network(Fraction(value), (), {}),) if value else ()

    def single(self, atom: Atom, at: tuple[int, ...] = ()) -> Form:
        """An atom that is no function, at its indices."""
        return self.simple(ONE, [(self.known(atom, len(at))[0], at, ONE)], {})

    def function(self, kind: str, data: Any, forms: Sequence[Form], exponent: Fraction = ONE) -> Form:
        """A power of a function of forms, element by element, with the axes that they have."""
        found = {i for form in forms for n in form for _, at, _ in n.factors for i in at if i not in n.sums}
        axes = sorted(i for i in found if i >= FREE)
        inner = {axis: AXIS + k for k, axis in enumerate(axes)}
        number, order = self.known(Atom(kind, data, tuple(moved(f, inner) for f in forms)), len(axes))
        return self.simple(ONE, [(number, tuple(axes[k] for k in order), exponent)], {})

    def call(self, name: Any, x: Sequence[Form]) -> Form:
        """A function of the table: exp(−u) is 1/exp(u), and [u = 0] is 0 where u is a sum of squares."""
        if name == "exp" and x[0] and all(n.number < 0 for n in x[0]):
            return self.function("call", "exp", [self.scaled(x[0], -1)], -ONE)
        if name == "equal" and (() in x) and any(map(self.positive, x)):
            return ()
        if name == "select" and (not x[0] or x[0] == self.number(1)):
            return x[1] if x[0] else x[2]
        return self.function("call", name, x)

    def positive(self, form: Form) -> bool:
        """Whether a form is a sum of squares of real inputs, which is 0 on no open set, or a power of one."""
        return bool(form) and all(n.number > 0 and all(map(self._square, n.factors)) for n in form)

    def _square(self, factor: Factor) -> bool:
        atom, e = self.atoms[factor[0]], factor[2]
        if atom.kind == "input":
            known = [getattr(atom.data.symbol, f"is_{kind}", None) for kind in ("integer", "zero")]
            return e > 0 and e % 2 == 0 and True not in known
        if atom.kind == "call" and not atom.forms:
            return getattr(atom.data, "is_positive", None) is True
        return atom.data == "exp" or (atom.kind == "sum" and self.positive(atom.forms[0]))

    def times(self, forms: Sequence[Form], sums: Mapping[int, Any] | None = None) -> Form:
        """The product of forms, summed over some of their indices."""
        made: list[Network] = []
        for choice in product(*forms):
            number, factors, bound = ONE, list[Factor](), dict[int, Any]()
            names = {i: next(self.fresh) for i in sums or ()}
            for n in choice:
                copy = n.renamed({**{i: next(self.fresh) for i in n.sums}, **names})
                number *= copy.number
                factors += copy.factors
                bound |= copy.sums
            made += self.simple(number, factors, bound | {names[i]: d for i, d in (sums or {}).items()})
            if len(made) > 4 * MOST_NETWORKS:
                raise Refused(f"more than {MOST_NETWORKS} networks")
        return self.add([tuple(made)])

    def scaled(self, form: Form, by: Fraction | int) -> Form:
        """A multiple of a form."""
        return tuple(Network(n.number * by, n.factors, n.sums) for n in form) if by else ()

    def simple(self, number: Fraction, factors: Sequence[Factor], sums: Mapping[int, Any]) -> Form:
        """One network: identity matrices are carried out, equal factors merged, free sums become sizes."""
        bound, todo = dict(sums), list(factors)
        kinds = {a: self.atoms[a].kind for a, _, _ in factors}
        while (k := self._known_delta(todo, bound)) >= 0:
            i, j = todo.pop(k)[1]
            gone, kept = (i, j) if i in bound else (j, i)
            if i != j:
                bound.pop(gone)
                todo = [(a, tuple(kept if x == gone else x for x in at), e) for a, at, e in todo]
        merged: dict[tuple[int, tuple[int, ...]], Fraction] = {}
        for a, at, e in todo:
            key = (a, tuple(sorted(at)) if kinds[a] == "delta" else at)
            merged[key] = ONE if kinds[a] == "delta" else merged.get(key, Fraction(0)) + e
        for i in bound.keys() - {i for _, at in merged for i in at}:
            if isinstance(dim := bound.pop(i), int):
                number *= dim
            else:
                key = (self.known(Atom("call", dim), 0)[0], ())
                merged[key] = merged.get(key, Fraction(0)) + 1
        made = [(a, at, e) for (a, at), e in merged.items() if e]
        bounded(number.numerator, number.denominator)
        if len(made) > MOST_FACTORS:
            raise Refused(f"a product of more than {MOST_FACTORS} factors")
        for k, (a, at, e) in enumerate(made):
            if kinds.get(a) == "sum" and e >= 1:  # u^(3/2) = u · u^(1/2)
                rest = self.simple(number, [*made[:k], (a, at, e - 1), *made[k + 1 :]], {})
                return self.times(
                    [rest, moved(self.atoms[a].forms[0], {AXIS + k: i for k, i in enumerate(at)})], bound
                )
        return (Network(number, tuple(made), bound),) if number else ()

    def _known_delta(self, factors: Sequence[Factor], bound: Mapping[int, Any]) -> int:
        """The position of an identity matrix that can be carried out, or −1."""
        ends = [(k, at) for k, (a, at, _) in enumerate(factors) if self.atoms[a].kind == "delta"]
        return next((k for k, (i, j) in ends if i == j or i in bound or j in bound), -1)

    def power(self, form: Form, exponent: Fraction) -> Form:
        """A power of each element; (g h)^k = g^k h^k for an integer k and what all networks share."""
        if exponent.denominator > 1:
            return self.function("sum", None, [form], exponent)
        if 0 <= exponent <= 4:
            return self.times([form] * int(exponent)) if exponent else self.number(1)
        if not form or abs(exponent) > 1000:
            raise Refused("a power of 0, or one that is too high")
        if len(form) == 1 and not form[0].factors:
            return self.simple(form[0].number ** int(exponent), [], {})
        shared = self._shared(form)
        if not shared:
            return self.function("sum", None, [form], exponent)
        g, inverse = ([(a, at, e * k) for a, at, e in shared] for k in (exponent, -1))
        rest = self.power(self.times([form, self.simple(ONE, inverse, {})]), exponent)
        return self.times([self.simple(ONE, g, {}), rest])

    def _shared(self, form: Form) -> list[Factor]:
        """The factors that all networks of a form have, with the lowest of their exponents."""
        rows = [{(a, at): e for a, at, e in n.factors if not n.sums.keys() & set(at)} for n in form]
        lowest = {key: min(row.get(key, Fraction(0)) for row in rows) for row in rows for key in row}
        return [(*key, e) for key, e in lowest.items() if e and self.atoms[key[0]].kind != "delta"]

    # ---- terms ------------------------------------------------------------------------------------

    def form(self, goal: Term) -> Form:
        """The form of a term with index symbols."""
        for t in needed([goal]):
            if t not in self.forms:
                data: Any = t.data
                args = [self.forms[a] for a in t.args]
                match t.kind:
                    case "number":
                        self.forms[t] = self.number(data)
                    case "variable":
                        self.forms[t] = self.single(Atom("input", data[0]), data[1])
                    case "delta":
                        self.forms[t] = self.single(Atom("delta", None), data)
                    case "sum" | "product":
                        self.forms[t] = self.add(args) if t.kind == "sum" else self.times(args)
                    case "total":
                        self.forms[t] = self.times(args, dict(data))
                    case "power":
                        self.forms[t] = self.power(args[0], data)
                    case "call":
                        self.forms[t] = self.call(data, args)
                    case _:
                        raise Refused(f"{t.kind} has no form")
        return self.forms[goal]
