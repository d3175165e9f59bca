"""The replay of a proof: derivatives are what the table of `terms` and the chain rule make of a function."""

from collections.abc import Mapping, Sequence
from functools import partial
from math import isqrt, prod
from typing import Any, TypeAlias

from symad.core.claims import Derivative, Derived, Goal, Proof
from symad.core.dims import is_below, same_shape
from symad.core.graph import Node
from symad.ops.basic.sources import Input
from symad.verification.checker import terms as table
from symad.verification.checker.defined import sure
from symad.verification.checker.networks import Networks
from symad.verification.checker.rules import Values
from symad.verification.checker.terms import (
    FREE,
    MAX_WORK,
    Refused,
    Term,
    Terms,
    needed,
    require,
    slope_of_matrix,
)
from symad.verification.checker.writing_out import Element, Index, Writing

Sides: TypeAlias = tuple[Term, Term]  # of a goal
Seeds: TypeAlias = dict[Any, Element | None]  # what inputs (by their ops) and nodes move by, if they do
Sweeps: TypeAlias = Sequence[tuple[str, Mapping[Node, Node]]]  # letters, nodes with their derivatives
HELD, EACH = FREE // 2, FREE // 4  # index symbols: of nodes times their cotangents, of nodes of pairs
MISFIT = "a claim has other shapes, too many numbers, missing directions, or such as depend on its inputs"


class ForAllSizes(Writing):
    """Claims for all sizes, written out with index symbols: one element for all."""

    symbolic = True

    def lemmas(self, claim: Derived, outputs: Sequence[int], sweeps: Sweeps) -> dict[Any, Sides]:
        """What shows outputs of a claim: pairs as in `Proof`, whose nodes may be any numbers; and outputs."""
        require(claim.is_whole and all(isinstance(a.op, Input) for a in claim.derivative.wrt), MISFIT)
        self.cut, found = frozenset(n for _, d in sweeps for n in (*d, *d.values())), dict[Any, Sides]()
        self.admit(claim, outputs)
        for k in outputs:
            term, made, ways = self.stated(claim.derivative, claim.outputs[k], k)
            for j, (letter, pairs) in enumerate([s for s in sweeps if s[0]] or [(s, {}) for s, _ in ways]):
                _, seeds = ways.pop([s for s, _ in ways].index(letter.upper() if letter in "vw" else letter))
                term = self.swept(term, pairs, seeds, letter.isupper(), j, found)
            require(not ways, "a sweep is missing")
            found[k] = (term, made)
        return found

    def admit(self, claim: Derived, outputs: Sequence[int]) -> None:
        """Refuse pairs of nodes that may have no value, or be −∞, where the function and outputs have one.

        Cut nodes stand for any numbers. So each must be a number wherever the sides are, and a sum over an
        empty axis must not hide that what it would add up has no value.
        """
        everywhere = all(self.cut <= there for there in sure(claim, outputs).values())
        require(everywhere, "a node of a pair may have no value")
        inner = [n for n in claim.nodes if n in self.cut and {n} != {claim.outputs[k] for k in outputs}]
        inside = [self.opened(n, self.symbols(n, EACH)) for n in inner]
        require(self.terms.masked.isdisjoint(inside), "a node of a pair may be −∞")
        sizes = {d for n in claim.nodes for d in n.shape}  # what an empty sum does not use may have no value
        require(not inner or all(is_below(0, d) for d in sizes), "arrays next to pairs may be empty")

    def swept(
        self, term: Term, pairs: Mapping[Node, Node], seeds: Seeds, pull: bool, j: int,
        found: dict[Any, Sides],
    ) -> Term:  # fmt: skip
        """The derivative of a term in sweep j by its pairs; what shows a pair is entered once in ``found``.

        Forwards, a tangent b of a node a is shown by what a computes, and is then what a moves by. Backwards,
        b is shown as what the term sends to a; then a is held there, and Σ a b brings what a is made of.
        """
        require(all(same_shape(a.shape, b.shape) for a, b in pairs.items()), "a pair of other shapes")
        rates: Any = {a: None if pull else partial(self.element, b) for a, b in pairs.items()}
        held = pairs if pull else {}
        for a, b in pairs.items():  # the same for all outputs that are about this term
            i, key = self.symbols(a, EACH), (j, a, term)
            goal, by = (term, {a: self.unit(i)}) if pull else (self.opened(a, i), seeds)
            if key not in found:
                found[key] = self.pulled(goal, rates | by, held), self.element(b, i)
        return self.pulled(term, seeds | rates, held)

    def stated(self, claim: Derivative, output: Node, k: int) -> tuple[Term, Term, list[tuple[str, Seeds]]]:
        """One element of the function, and of output k; seeds by directions ("V", "W") and axes ("X")."""
        wrt, y, at = claim.wrt, claim.about(k), self.symbols(output, FREE)
        x = [wrt[k] for _ in range({"value": 0, "hessian": 2}.get(claim.kind, not claim.v))]
        weights, along = ((), claim.w) if claim.kind == "curvature" else (claim.w, ())
        shapes = [() if weights else y[0].shape, *[a.shape for a in x]]
        place, *places = self.places(claim, shapes, output, len(y))
        ways: list[tuple[str, Seeds]] = [("X", {a.op: self.unit(i)}) for a, i in zip(x, places, strict=True)]
        ways += [(letter, {a.op: partial(self.element, b) for a, b in zip(wrt, d, strict=True)})
            for letter, d in (("V", claim.v), ("W", along)) if d]  # fmt: skip
        parts = [self.total(f.shape, lambda *i, f=f, c=c: self.element(c, i) * self.element(f, i))
            for f, c in zip(y, weights, strict=bool(weights))]  # fmt: skip
        return self.terms.sum(parts) if weights else self.element(y[0], place), self.element(output, at), ways

    def places(self, claim: Derivative, shapes: Sequence[Any], output: Node, count: int) -> list[Index]:
        """The axes of an output as those of the function and of the inputs, in order; axes of length 1 are 0.

        They are what the output's shape says only if no axis joins several functions or inputs.
        """
        axes = [d for s in shapes for d in s if d != 1]
        joins = claim.kind in ("jacobian", "hessian") and len(claim.wrt) + count > 2
        alike = same_shape(axes, [d for d in output.shape if d != 1])
        require(alike and not joins, f"a {claim.kind} joins axes of functions or inputs")
        rest = iter([i for i in self.symbols(output, FREE) if i])
        return [tuple(0 if d == 1 else next(rest) for d in shape) for shape in shapes]

    def pulled(self, term: Term, seeds: Seeds, held: Mapping[Node, Node]) -> Term:
        """The tangent of a term, and of Σ node · cotangent where the cotangents stay."""
        rates, places = dict[Term, Term](), [(n, bar, self.symbols(n, HELD)) for n, bar in held.items()]
        met = [(tuple(zip(at, n.shape, strict=True)), self.element(bar, at), self.opened(n, at))
            for n, bar, at in places]  # fmt: skip
        parts = [(axes, b * self.moved(a, seeds, rates)) for axes, b, a in met]
        sums = [self.terms.made("total", axes, part) for axes, part in parts if part.number != 0]
        return self.terms.sum([self.moved(term, seeds, rates), *sums])

    def moved(self, term: Term, seeds: Seeds, rates: dict[Term, Term]) -> Term:
        """The tangent of a term, with those that are known; nodes without seed are written out."""
        self.terms.spend(1)
        zero = self.terms.term(0)
        for t in needed([term], rates):
            n, at = t.data if t.kind == "variable" else (None, ())
            if n in seeds:
                rates[t] = zero if (seed := seeds[n]) is None else seed(at)
            elif isinstance(n, Node):
                rates[t] = self.moved(self.opened(n, at), seeds, rates)
            else:
                moving = [contribution(t, k, rates[a]) for k, a in enumerate(t.args) if rates[a] is not zero]
                rates[t] = self.terms.sum(moving) if moving else zero
        return rates[term]

    def symbols(self, node: Node, first: int) -> Index:
        """Index symbols of the axes of a node, or 0 for axes of length 1."""
        return tuple(0 if d == 1 else first + i for i, d in enumerate(node.shape))

    def unit(self, place: Index) -> Element:
        """The array that is 1 at one place, and 0 elsewhere."""
        return lambda at: self.terms.product(map(self.terms.delta, place, at))


def gradient(output: Term, variables: Sequence[Term]) -> list[Term]:
    """∂output/∂v for all v: terms send to arguments what they got, times slopes (Speelpenning 1980)."""
    terms, order, active = output.table, needed([output]), set(variables)
    active.update(term for term in order if not active.isdisjoint(term.args))
    sent: dict[Term, list[Term]] = {output: [terms.term(1)]}
    for term in reversed(order):
        if term in active and term in sent:
            sent[term] = [terms.sum(sent[term])]
            for k, arg in enumerate(term.args):
                if arg in active and (part := contribution(term, k, sent[term][0])).number != 0:
                    sent.setdefault(arg, []).append(part)
    terms.spend(len(variables))
    return [terms.sum(sent[v]) if v in sent else terms.term(0) for v in variables]


def directional(output: Term, variables: Sequence[Term], along: Sequence[Term]) -> Term:
    """Σ ∂output/∂v · direction."""
    parts = zip(gradient(output, variables), along, strict=True)
    return output.table.sum(rate * u for rate, u in parts if rate.number != 0)


def contribution(term: Term, k: int, bar: Term) -> Term:
    """``bar`` times the partial derivative of a term by its argument k."""
    args, terms = term.args, term.table
    match term.kind, term.data:
        case "sum" | "total", sizes:  # sums over index symbols are differentiated forwards only
            return terms.made("total", sizes, bar) if sizes else bar
        case "product", _:
            return terms.product([bar, *args[:k], *args[k + 1 :]])
        case "power", exponent:
            return bar * exponent * args[0] ** (exponent - 1)
        case "call", (_, _, _):
            return bar * slope_of_matrix(term, *divmod(k, isqrt(len(args))))
        case "call", (_, _, _, p, q, n):  # Σ over new r and s of slope_rs Σ [p = r] [q = s] bar
            r, s = (c - FREE**4 - 2 * len(terms.known) for c in (0, 1))
            bar = terms.made("total", ((p, n), (q, n)), bar * terms.delta(p, r) * terms.delta(q, s))
            return terms.made("total", ((r, n), (s, n)), slope_of_matrix(term, r, s) * bar)
        case _, "select":  # the branch that is not taken gets nothing
            return terms.select(args[0], *((0, bar) if k == 2 else (bar, 0))) if k else terms.term(0)
    slope = table.DERIVATIVES[term.data](*args)[k] if term.data in table.DERIVATIVES else None
    require(slope is not None, f"the derivative of {term.data} by argument {k + 1} is not in the table")
    return bar * slope  # type: ignore[operator]  # not None, as is required


DAMAGE = (TypeError, ValueError, ArithmeticError, LookupError, AttributeError, RecursionError, MemoryError)


def written(
    claims: Sequence[Derived], chosen: Sequence[int], most: int = MAX_WORK
) -> tuple[Writing, dict[Goal, Sides]]:
    """Some claims written out, and the two sides of each goal: of the derivative, and of the output."""
    terms, goals = Terms(most), dict[Goal, Sides]()
    writing, known = Writing(terms), dict[Derivative, list[Term]]()
    for k in chosen:
        claim, outputs = claims[k]
        made, y, x, v, w = map(writing.elements, (outputs, claim.function, claim.wrt, claim.v, claim.w))
        require(claims[k].is_whole and all(t.kind == "variable" for t in x), MISFIT)
        if w and claim.kind != "curvature":
            y = [terms.sum(map(terms.product, zip(w, y, strict=True)))]
        if claim not in known:
            for along in [v] * bool(v) + [w] * (claim.kind == "curvature"):
                y = [directional(e, x, along) for e in y]
            for _ in range({"value": 0, "hessian": 2}.get(claim.kind, not v)):
                y = [e for row in y for e in gradient(row, x)]
        places = ((k, o, e) for o, node in enumerate(outputs) for e in range(prod(node.shape)))
        goals |= zip(places, zip(known.setdefault(claim, y), made, strict=True), strict=True)
    return writing, goals


Machines: TypeAlias = list[tuple[Values | Networks, list[Sides]]]  # each with the sides it has to show equal


def for_all_sizes(claims: Sequence[Derived], proof: Proof) -> Machines:
    """A machine for each lemma of one claim: for each pair of its sweeps, and for each output."""
    (k,), (plan, *parts) = {k for k, _, _ in proof.goals}, proof.steps
    w, n, outputs = ForAllSizes(Terms()), claims[k].nodes, dict.fromkeys(o for _, o, _ in proof.goals)
    sweeps = [(letter, {n[i]: n[j] for i, j in pairs}) for letter, pairs in plan]
    made = zip(w.lemmas(claims[k], [*outputs], sweeps).values(), parts, strict=True)
    return [(Networks(a, {n[i]: partial(w.opened, n[i]) for i in o}), [p]) for p, (o, a) in made]


def element_by_element(claims: Sequence[Derived], proof: Proof) -> Machines:
    """One machine for all goals, of claims that are written out."""
    goals, machine = written(claims, proof.claims)[1], Networks if proof.way == "sums" else Values
    return [(machine(proof.steps), [goals[goal] for goal in proof.goals])]


def replay(claims: Sequence[Derived], proof: Proof) -> int:
    """How many steps prove the goals of a proof; `Refused` if one is wrong, missing or unused."""
    try:
        machines = (for_all_sizes if proof.way == "networks" else element_by_element)(claims, proof)
        held = [m.equal(*pair) for m, pairs in machines for pair in pairs]
        require(all(held) and min(map(min, proof.goals)) >= 0, "a goal does not follow")
        require(not any(m.unused for m, _ in machines), "a step is used nowhere")
        return sum(m.count for m, _ in machines) + len(proof.goals)
    except DAMAGE as problem:
        raise Refused(f"the proof is damaged: {problem}") from None
