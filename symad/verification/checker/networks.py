"""Claims for all sizes: sums of contraction networks, compared by isomorphisms that the proof gives.

A network is a number times a product of factors atom[indices]^exponent, summed over its bound indices. An
atom is an input, an identity matrix, or a function of forms; a form is a sum of networks. Two networks are
the same if one is the other with its bound indices renamed; how, is asked of the proof, and then checked.
"""

from collections.abc import Hashable, Iterable, Mapping, Sequence
from fractions import Fraction
from itertools import count, product
from typing import Any, NamedTuple, TypeAlias

from symad.core.dims import Dim, is_below, same_dim
from symad.core.graph import Node
from symad.verification.checker import terms as table
from symad.verification.checker.terms import BOUND, MAX_POWER, Refused, Term, bounded, needed, require

Number: TypeAlias = Fraction | int
Factor: TypeAlias = tuple[int, tuple[int, ...], Number]
Renaming: TypeAlias = Mapping[int, int]
Form: TypeAlias = "tuple[Network, ...]"
Merged: TypeAlias = dict[tuple[int, tuple[int, ...]], Number]  # factors with their exponents
ONE, DELTA, AXIS, NEW = 1, 0, -20_000, BOUND - 1  # [i = j]; atoms' axes; what products bind
MAX_NETWORKS, MAX_FACTORS, MAX_WORK = 800, 200, 50_000  # of a form, of a network, of a proof


class Network(NamedTuple):
    """number · Σ over the bound indices Π factors; ``sums`` has the sizes of the bound indices."""

    number: Number
    factors: tuple[Factor, ...]
    sums: Mapping[int, Dim]

    def renamed(self, names: Renaming) -> "Network":
        """The same with other indices, those of atoms up to 0 in order."""
        moved = [(a, [names.get(i, i) for i in at], e) for a, at, e in self.factors]
        factors = tuple([(a, tuple(sorted(at) if a <= 0 else at), e) for a, at, e in moved])
        return Network(self.number, factors, {names.get(i, i): d for i, d in self.sums.items()})

    def same(self, other: "Network", pairs: Iterable[Sequence[int]], axes: Renaming) -> bool:
        """Whether this is the other's product and sums, with bound indices renamed one by one, and axes."""
        names = {int(i): int(j) for i, j in pairs}
        whole = names.keys() == self.sums.keys() and sorted(names.values()) == sorted(other.sums)
        sizes = whole and all(same_dim(self.sums[i], other.sums[j]) for i, j in names.items())
        return sizes and sorted(self.renamed({**axes, **names}).factors) == sorted(other.factors)


class Atom(NamedTuple):
    """A function of forms or matrices; if its number is not positive, its indices may be exchanged."""

    kind: str
    data: Any
    forms: tuple[Form, ...] = ()


def moved(form: Form, axes: Renaming) -> Form:
    """A form with its free indices renamed, to none that is summed over."""
    require(all(n.sums.keys().isdisjoint({*axes, *axes.values()}) for n in form), "an index is captured")
    return tuple(n.renamed(axes) for n in form)


def without_deltas(
    factors: Sequence[Factor], sums: Mapping[int, Dim]
) -> tuple[list[Factor], dict[int, Dim]]:
    """A product summed over indices, without [i = j] for a summed i: Σ_i [i = j] u_i = u_j.

    [i = i] is 1; if i is summed over, it stays so, with the number of its values.
    """
    todo = [(a, tuple(sorted(at)) if a <= 0 else at, e) for a, at, e in factors]
    bound = dict(sums)
    while found := [at for a, at, _ in todo if a == DELTA and (at[0] == at[1] or {*at} & {*bound})]:
        i, j = found[0] if found[0][0] in bound else found[0][::-1]
        moved = Network(1, tuple(todo), {}).renamed({i: j}).factors
        todo = [f for f in moved if f[0] != DELTA or f[1][0] != f[1][1]]
        bound = {k: d for k, d in bound.items() if k != i or i == j}
    return todo, bound


def shared_factors(form: Form) -> list[Factor]:
    """What all networks of a form have as a factor at the same free indices, with the least exponent."""
    rows = [{(a, at): e for a, at, e in n.factors if not n.sums.keys() & set(at)} for n in form]
    lowest = {key: min(row.get(key, 0) for row in rows) for row in rows for key in row}
    return [(*key, e) for key, e in lowest.items() if e and key[0] != DELTA]


class Networks:
    """The forms of one proof; ``answers`` are the isomorphisms, by the numbers of the questions."""

    def __init__(self, answers: Iterable[Any], opened: Mapping[Node, Any] | None = None) -> None:
        """No form is known yet; ``opened`` are the nodes that are replaced by what they compute."""
        self.unused, self.count, self.work = {number: answer for number, answer in answers}, 0, 0
        self.opened, self.conditions = opened or {}, {DELTA}  # these are 0 or 1
        self.forms, self.fresh, self.atoms = dict[Term, Form](), count(NEW, -2), {DELTA: Atom("delta", None)}

    def ask(self, kind: str, *about: Any) -> Any:
        """The answer of the proof to the next question; None if it has none."""
        self.count += 1
        return self.unused.pop(self.count, None)

    def add(self, forms: Sequence[Form]) -> Form:
        """The sum, with equal networks added up: [[i, j, renaming of the bound indices of i], ...]."""
        made: list[Network | None] = [n for form in forms for n in form]
        for i, j, names in (self.ask("merge", tuple(made)) or ()) if len(made) > 1 else ():
            a, b = made[i], made[j]
            if not 0 <= j < i or a is None or b is None or not a.same(b, names, {}):
                raise Refused("two networks that a step calls the same are not")
            made[i], made[j] = None, Network(a.number + b.number, b.factors, b.sums)
        self.work += 1 + len(made)
        require(len(made) <= MAX_NETWORKS and self.work <= MAX_WORK, "too many networks")
        return tuple(n for n in made if n is not None and n.number)

    def known(self, atom: Atom, axes: int = 0) -> tuple[int, list[int]]:
        """The number of an atom and the order of its axes; it may be an earlier one with axes permuted."""
        # The answer is [number, order of the axes, a list of [network, renaming] for each form].
        answer = self.ask("atom", atom, axes) if atom.forms else None
        flagged = atom.kind == "truth" or atom.data in table.INDICATORS
        if answer is None:
            same = [k for k, a in self.atoms.items() if a == atom and not atom.forms]
            self.atoms.setdefault(number := [*same, len(self.atoms)][0], atom)
            self.conditions.update([number] * flagged)
            return number, list(range(axes))
        number, order, maps = int(answer[0]), list(map(int, answer[1])), answer[2]
        if (number, order) == (-len(self.atoms), [1, 0]):  # the new one is the same if turned
            self.atoms[number] = atom
            self.conditions.update([number] * flagged)
        old, names = self.atoms[number], {AXIS + k: AXIS + i for k, i in enumerate(order)}
        alike = (old.kind, old.data) == (atom.kind, atom.data) and sorted(order) == list(range(axes))
        pairs = zip(atom.forms, old.forms, maps, strict=True)
        require(alike and all(self.isomorphic(*p, names) for p in pairs), "two functions are not the same")
        return number, [order.index(k) for k in range(axes)]

    def isomorphic(self, a: Form, b: Form, pairs: Sequence[Any], axes: Renaming) -> bool:
        """Whether each network of a is one of b, by the renamings given."""
        whole = len(a) == len(b) and sorted(j for j, _ in pairs) == list(range(len(b)))
        matched = [(n, b[j], names) for n, (j, names) in zip(a, pairs, strict=True)] if whole else []
        return whole and all(n.number == m.number and n.same(m, names, axes) for n, m, names in matched)

    def equal(self, left: Term, right: Term) -> bool:
        """Whether two terms have the same form, index by index."""
        a, b = self.form(left), self.form(right)
        return self.isomorphic(a, b, self.ask("equal", a, b) or (), {})

    def form(self, goal: Term) -> Form:
        """The form of a term with index symbols."""
        for t in needed([goal]):
            if t not in self.forms:
                form = self.formed(t, [self.forms[a] for a in t.args])
                short = len(form) > 1 and t in t.table.truths and self.ask("name", t)
                self.forms[t] = self.function("truth", None, [form]) if short else form
        return self.forms[goal]

    def formed(self, term: Term, args: list[Form]) -> Form:
        """The form of a term from those of its arguments."""
        kind, data = term.kind, term.data
        if kind == "number":
            return self.simple(data, [], {})
        if kind == "variable" and data[0] in self.opened:
            return self.form(self.opened[data[0]](data[1]))
        if kind in ("variable", "delta"):
            a, at = (DELTA, data) if kind == "delta" else (self.known(Atom("input", data[0]))[0], data[1])
            return self.simple(ONE, [(a, at, 1)], {})
        if kind in ("sum", "power"):
            return self.add(args) if kind == "sum" else self.power(args[0], data)
        if kind in ("product", "total"):
            return self.times(args, {i: d for i, d in data or () if i})
        require(kind == "call", "a value may be −∞")
        return self.called(term, args)

    def called(self, term: Term, args: list[Form]) -> Form:
        """The form of a function: its definition, an element of a matrix, or an atom of its own.

        A selection is its definition y + c (x − y) where c is 0 or 1; others where they have no condition.
        """
        data = term.data
        chosen = data == "select" and (not args[0] or term.args[0] in term.table.truths)
        if chosen or (data in table.EVERYWHERE and self.ask("define", data)):
            return self.form(table.DEFINITIONS[data](*term.args))
        return self.matrix(args[0], *data) if isinstance(data, tuple) and data[3:] else self.call(data, args)

    def matrix(self, form: Form, name: str, i: int, j: int, p: int, q: int, size: Dim) -> Form:
        """An element of a function of the matrix of this size that a form is with indices p and q."""
        number, order = self.known(Atom(name, size, (moved(form, {p: AXIS, q: AXIS + 1}),)), 2)
        at = () if name == "det" else (i, j) if order == [0, 1] else (j, i)
        return self.simple(ONE, [(number, at, 1)], {})

    def function(self, kind: str, data: Hashable, forms: Sequence[Form], exponent: Number = 1) -> Form:
        """A power of a function of forms, element by element, with the axes that they have."""
        found = {i for form in forms for n in form for _, at, _ in n.factors for i in at if i not in n.sums}
        axes = sorted(i for i in found if i < 0)
        inner = {axis: AXIS + k for k, axis in enumerate(axes)}
        number, order = self.known(Atom(kind, data, tuple(moved(f, inner) for f in forms)), len(axes))
        return self.simple(ONE, [(number, tuple(axes[k] for k in order), exponent)], {})

    def call(self, name: Hashable, x: Sequence[Form]) -> Form:
        """A function of the table, of −u by that of u."""
        u = x[0] if x else ()
        if name == "exp" and (made := self.without_logarithms(u)) is not None:
            return made
        if name in table.TURNED and u and all(n.number < 0 for n in u):
            shift, scale, exponent = table.TURNED[name]
            value = self.call(name, [tuple(Network(-n.number, n.factors, n.sums) for n in u)])
            parts = [self.simple(scale, [], {}), self.power(value, exponent)]
            return self.add([self.simple(shift, [], {}), self.times(parts)])
        return self.function("call", name, x)

    def without_logarithms(self, u: Form) -> "Form | None":
        """exp u with its logarithms taken out, None if it has none: exp(c log v) = v^c, as log v needs v > 0.

        Where a condition hides that log v has no value, v^c would have one, so nothing is taken out there.
        """
        logs = [] if self.guarded(u) else [n for n in u if self.is_logarithm(n)]
        if u and not logs:
            return None
        rest = tuple(n for n in u if n not in logs)
        left = [self.call("exp", [rest])] if rest else []
        return self.times([*left, *(self.power(self.inner(*n.factors[0][:2]), n.number) for n in logs)])

    def is_logarithm(self, n: Network) -> bool:
        """Whether a network is a number times one logarithm."""
        return not n.sums and [(self.atoms[a].data, e) for a, _, e in n.factors] == [("log", 1)]

    def inner(self, number: int, at: Sequence[int]) -> Form:
        """What an atom is a function of."""
        return moved(self.atoms[number].forms[0], {AXIS + k: i for k, i in enumerate(at)})

    def guarded(self, form: Form) -> bool:
        """Whether conditions may hide that other factors have no value."""
        return any(a != DELTA and a in self.conditions for n in form for a, _, _ in n.factors)

    def times(self, forms: Sequence[Form], sums: Mapping[int, Dim] | None = None) -> Form:
        """The product of forms, summed over some of their indices."""
        made: list[Form] = []
        for choice in product(*forms):
            names = {i: next(self.fresh) for i in sums or ()}
            factors, bound = list[Factor](), {names[i]: d for i, d in (sums or {}).items()}
            number: Number = 1
            for n in choice:
                new = {i: next(self.fresh) for i in n.sums}
                copy = n.renamed({**new, **names}) if new or names else n
                number, factors = number * copy.number, [*factors, *copy.factors]
                bound |= copy.sums
            made.append(self.simple(number, factors, bound))
            require(len(made) <= MAX_NETWORKS, "too many networks")
        return self.add(made)

    def simple(self, number: Number, factors: Sequence[Factor], sums: Mapping[int, Dim]) -> Form:
        """A product: identity matrices are carried out, equal factors merged, free sums become sizes."""
        left, bound = without_deltas(factors, sums)
        merged = self.merged(left)
        number = self.rooted(number * self.counted(merged, bound), merged)
        made = [(a, at, e) for (a, at), e in merged.items() if e]
        whole = [f for f in made if self.atoms[f[0]].kind == "sum" and f[2] >= 1]
        for a, at, e in whole[:1]:  # u^(3/2) = u u^(1/2)
            rest = [*(f for f in made if f != whole[0]), (a, at, e - 1)]
            return self.times([(Network(number, tuple(rest), {}),), self.inner(a, at)], bound)
        bounded([number.numerator, number.denominator])
        require(len(made) <= MAX_FACTORS, f"a product of more than {MAX_FACTORS} factors")
        return (Network(number, tuple(made), bound),) if number else ()

    def merged(self, factors: Sequence[Factor]) -> Merged:
        """The exponents of equal factors added up: u^p u^q = u^(p + q); conditions are 0 or 1, so c c = c."""
        made: Merged = {}
        for a, at, e in factors:
            made[a, at] = 1 if a in self.conditions else made.get((a, at), 0) + e
        return made

    def counted(self, merged: Merged, bound: dict[int, Dim]) -> Number:
        """Σ over an index that no factor has is the size of its axis: a number, or one more factor.

        Sizes that may be 0 are other atoms than those that are not, since 0/0 is not 1.
        """
        number: Number = 1
        for i in bound.keys() - {i for (_, at), e in merged.items() if e for i in at} if bound else ():
            if isinstance(dim := bound.pop(i), int):
                number *= dim
            else:
                key = (self.known(Atom("call" if is_below(0, dim) else "size", dim))[0], ())
                merged[key] = merged.get(key, 0) + 1
        return number

    def rooted(self, number: Number, merged: Merged) -> Number:
        """The number with the whole powers of roots of numbers: 2^(−1/2) = 1/2 · 2^(1/2)."""
        for (a, at), e in merged.items():
            if self.atoms[a].kind == "root":
                number, merged[a, at] = number * self.atoms[a].data ** (e // 1), e % 1
        return number

    def power(self, form: Form, exponent: Number) -> Form:
        """A power of each element; (g h)^k = g^k h^k for an integer k and what all networks share."""
        exponent = int(exponent) if exponent.denominator == 1 else exponent
        if exponent in range(5):
            return self.times([form] * int(exponent))
        require(form and -MAX_POWER <= exponent <= MAX_POWER, "a power of 0, or one that is too high")
        if len(form) == 1 and not form[0].factors:
            root = self.known(Atom("root", Fraction(form[0].number)))[0]
            return self.simple(ONE, [(root, (), exponent)], {})
        shared = shared_factors(form)
        if exponent.denominator > 1 or not shared or self.guarded(form):
            return self.function("sum", None, [form], exponent)
        g, inverse = (self.simple(ONE, [(a, at, e * k) for a, at, e in shared], {}) for k in (exponent, -1))
        return self.times([g, self.power(self.times([form, inverse]), exponent)])
