"""The replay of the proof of a claim: a number of steps, or a refusal.

Outputs of graphs are claimed to be derivatives of a function. These are not taken from anywhere, but what the
table of `terms` and the chain rule (backwards: Speelpenning 1980) make of the function.
"""

from collections.abc import Mapping, Sequence
from functools import partial
from math import isqrt, prod
from operator import mul
from typing import Any, TypeAlias

from symad.core.claims import KINDS, Claim, Derivative, Goal, Proof
from symad.core.dims import same_shape
from symad.core.graph import Node, topological
from symad.ops.basic.sources import Input
from symad.verification.checker import terms as table
from symad.verification.checker.networks import Networks
from symad.verification.checker.rules import Values
from symad.verification.checker.terms import FREE, Refused, Term, Terms, needed, require, slope_of_matrix
from symad.verification.checker.writing_out import Writing

Sides: TypeAlias = tuple[Term, Term]  # of a goal
PLAIN = ("value", "jacobian", "pushforward")  # of any number of numbers; others are of one


def fits(claim: Derivative) -> None:
    """Refuse directions that are missing, have other shapes, or depend on what the derivative is by."""
    v, w, own = claim.v, claim.w, {a.op for a in claim.wrt if isinstance(a.op, Input)}
    pairs = list(zip(claim.wrt, v, strict=True)) if v else []
    pairs += zip(claim.wrt if claim.kind == "curvature" else claim.function, w, strict=True) if w else ()
    usual = "v" * bool(v) + "w" * bool(w) in KINDS[claim.kind] and len(own) == len(claim.wrt)
    apart = own.isdisjoint(n.op for n in topological([*v, *w]))
    if not usual or not apart or not all(same_shape(a.shape, b.shape) for a, b in pairs):
        raise Refused("a direction is missing, depends on what the derivative is by, or inputs are doubled")


def sides(claim: Derivative, outputs: Sequence[Node], writing: Writing, sweeps: str = "") -> list[Sides]:
    """The elements of the derivative, and those of the outputs, in order; ``sweeps`` as `Proof` has them."""
    kind, terms, groups = claim.kind, writing.terms, (outputs, claim.function, claim.wrt, claim.v, claim.w)
    made, y, x, v, w = map(writing.elements, groups)
    fits(claim)
    if w and kind != "curvature":
        y = [terms.sum(map(terms.product, zip(w, y, strict=True)))]
    require(len(y) == 1 or kind in PLAIN, f"a {kind} is of one number")
    usual = "V" * bool(v) + "W" * (kind == "curvature")
    sweeps = "".join(s for s in sweeps if s.upper() in usual or s not in "vwVW") or usual
    others = kind == "value" and [a.shape for a in claim.function] != [a.shape for a in outputs]
    require(not others and sorted(sweeps.upper()) == [*usual], f"a {kind} has other shapes or directions")
    if (claim, sweeps) not in writing.kept:
        for sweep in sweeps:
            d = dict(zip(x, v if sweep in "vV" else w, strict=True))
            along = list(d.values()) if sweep.isupper() else []
            y = [terms.sum(map(mul, gradient(e, x), along)) if along else tangent(e, d) for e in y]
        for _ in range({"value": 0, "hessian": 2}.get(kind, not v)):
            y = [e for row in y for e in gradient(row, x)]
    return list(zip(writing.kept.setdefault((claim, sweeps), y), made, strict=True))


def sides_for_all_sizes(claim: Derivative, outputs: Sequence[Node], k: int, w: Writing) -> Sides:
    """One element of output k of a claim, and of what it is claimed to be; axes have index symbols."""
    made, kind, wrt, twice = outputs[k], claim.kind, claim.wrt, claim.kind == "curvature"
    fits(claim)
    y = claim.function[k : k + 1] if kind in ("value", "pushforward") else claim.function
    x = [wrt[k] for _ in range({"value": 0, "hessian": 2}.get(kind, not claim.v))]
    weights, along = () if twice else claim.w, [claim.v] * bool(claim.v) + [claim.w] * twice
    shapes = [() if weights else y[0].shape, *[a.shape for a in x]]
    at = tuple(0 if d == 1 else FREE + i for i, d in enumerate(made.shape))
    axes, rest = [d for shape in shapes for d in shape if d != 1], iter([i for i in at if i])
    joins = (len(y) > 1 and not weights) or (len(wrt) > 1 and kind in ("jacobian", "hessian"))
    joins = joins or (kind not in PLAIN and any(d != 1 for d in shapes[0]))
    joins = joins or not same_shape(axes, [d for d in made.shape if d != 1])
    require(not joins, f"a {kind} is not of one number, or joins axes of functions or inputs")
    place, *places = [tuple(0 if d == 1 else next(rest) for d in shape) for shape in shapes]
    seeds: list[Any] = [{a.op: partial(map, w.terms.delta, to)} for a, to in zip(x, places, strict=True)]
    seeds += [{a.op: lambda i, b=b: [w.element(b, i)] for a, b in zip(wrt, d, strict=True)} for d in along]
    term = w.terms.sum([w.total(f.shape, lambda *i, f=f, c=c: w.element(c, i) * w.element(f, i))
        for f, c in zip(y, weights, strict=True)]) if weights else w.element(y[0], place)  # fmt: skip
    for seed in seeds:
        met = [t for t in needed([term]) if t.kind == "variable" and t.data[0] in seed]
        term = tangent(term, {t: w.terms.product(seed[t.data[0]](t.data[1])) for t in met})
    return term, w.element(made, at)


def gradient(output: Term, variables: Sequence[Term]) -> list[Term]:
    """∂output/∂v for all variables v: each term sends to its arguments what it got, times its slopes."""
    terms, order, active = output.table, needed([output]), set(variables)
    active.update(term for term in order if not active.isdisjoint(term.args))
    sent: dict[Term, list[Term]] = {output: [terms.term(1)]}
    for term in reversed(order):
        if term in active and term in sent:
            sent[term] = [terms.sum(sent[term])]
            for k, arg in enumerate(term.args):
                if arg in active and (part := contribution(term, k, sent[term][0])).number != 0:
                    sent.setdefault(arg, []).append(part)
    return [terms.sum(sent.get(v, [])) for v in variables]


def tangent(output: Term, seeds: Mapping[Term, Term]) -> Term:
    """Σ ∂output/∂v seed of v over the variables that have one, by the chain rule forwards."""
    tangents = dict(seeds)
    for term in [term for term in needed([output]) if term not in seeds]:
        moving = [(k, tangents[a]) for k, a in enumerate(term.args) if tangents[a].number != 0]
        tangents[term] = output.table.sum([contribution(term, k, part) for k, part in moving])
    return tangents[output]


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
    if slope is None:
        raise Refused(f"the derivative of {term.data} by argument {k + 1} is not in the table")
    return bar * slope


DAMAGE = (TypeError, ValueError, ArithmeticError, LookupError, AttributeError, RecursionError, MemoryError)


def written(claims: Sequence[Claim], chosen: Sequence[int], sweeps: str) -> tuple[Writing, dict[Goal, Sides]]:
    """Some claims written out, and the two sides of each goal."""
    writing, goals = Writing(Terms()), dict[Goal, Sides]()
    for k in chosen:
        places = ((k, o, e) for o, node in enumerate(claims[k].outputs) for e in range(prod(node.shape)))
        goals |= zip(places, sides(*claims[k], writing, sweeps), strict=True)
    return writing, goals


def replay(claims: Sequence[Claim], proof: Proof) -> int:
    """How many steps prove the goals of a proof; `Refused` if one is wrong, missing or unused."""
    try:
        machine: Values | Networks
        if proof.way == "same":  # one node is itself, whatever it computes
            both = [(claims[k].derivative, claims[k].outputs[o], o) for k, o, _ in proof.goals]
            if proof.steps or not all(d.kind == "value" and d.function[o] is n for d, n, o in both):
                raise Refused("two sides are not one node")
            return len(both)
        if proof.way == "networks":
            machine, ((k, o),) = Networks(dict(proof.steps)), {goal[:2] for goal in proof.goals}
            pairs = [sides_for_all_sizes(*claims[k], o, Writing(Terms(), symbolic=True))]
        else:
            steps: dict[int, list[Any]] = {}
            for number, rule, data in proof.steps:
                steps.setdefault(number, []).append((rule, data))
            (_, goals), machine = written(claims, proof.claims, proof.way[9:]), Values(steps)
            pairs = [goals[goal] for goal in proof.goals]
        held = min(map(min, proof.goals)) >= 0 and all(machine.equal(*pair) for pair in pairs)
        require(held, "a goal does not follow")
        require(not machine.unused, f"step {min(machine.unused, default=0)} is used nowhere")
        return machine.count + len(proof.goals)
    except DAMAGE as problem:
        raise Refused(f"the proof is damaged: {problem}") from None
