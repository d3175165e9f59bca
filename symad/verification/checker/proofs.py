"""Claims and proofs as data, and the replay: a number of steps, or a refusal.

Outputs of graphs are claimed to be derivatives of a function. These are not taken from anywhere, but what the
table of `terms` and the chain rule (backwards: Speelpenning 1980) make of the function.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import isqrt, prod
from operator import mul
from typing import Any, NamedTuple, TypeAlias

from symad.core.dims import same_shape
from symad.core.graph import Node
from symad.verification.checker.networks import Networks
from symad.verification.checker.rules import Values
from symad.verification.checker.terms import DERIVATIVES, FREE, Refused, Term, Terms, needed, slope_of_matrix
from symad.verification.checker.writing_out import Writing

Goal: TypeAlias = tuple[int, int, int]  # which element of which output of which claim
Sides: TypeAlias = tuple[Term, Term]  # of it
KINDS = {k: [""] for k in ("value", "gradient", "jacobian", "hessian")}  # of derivatives; their directions
KINDS |= {"pushforward": ["v"], "pullback": ["w", ""], "slope": ["vw", "v"], "curvature": ["vw"]}


@dataclass(frozen=True)
class Derivative:
    """Which derivative of which function some outputs are claimed to be.

    With x all elements of ``wrt`` in order, y those of ``function``, and directions v, w of their shapes
    ("curvature": both of those of ``wrt``), ``kind`` is "value": y; "gradient": ∂y/∂x; "jacobian": ∂y_i/∂x_j;
    "hessian": ∂²y/∂x_i∂x_j; "pushforward": Σ_j ∂y_i/∂x_j v_j; "pullback": Σ_i w_i ∂y_i/∂x_j; "slope":
    Σ_ij w_i ∂y_i/∂x_j v_j; "curvature": Σ_ij w_i ∂²y/∂x_i∂x_j v_j, mostly of one number y if there is no w.
    """

    kind: str
    function: tuple[Node, ...]
    wrt: tuple[Node, ...] = ()
    v: tuple[Node, ...] = ()
    w: tuple[Node, ...] = ()


def sides(claim: Derivative, outputs: Sequence[Node], writing: Writing, sweeps: str = "") -> list[Sides]:
    """The elements of the derivative, and those of the outputs, in order; ``sweeps`` as `Proof` has them."""
    kind, terms, groups = claim.kind, writing.terms, (outputs, claim.function, claim.wrt, claim.v, claim.w)
    made, y, x, v, w = map(writing.elements, groups)
    others = kind == "value" and [a.shape for a in claim.function] != [a.shape for a in outputs]
    if "v" * bool(v) + "w" * bool(w) not in KINDS[kind] or others:
        raise Refused(f"a claim about a {kind} has other directions or shapes")
    if w and kind != "curvature":
        y = [terms.sum(map(terms.product, zip(w, y, strict=True)))]
    elif len(y) != 1 and kind not in ("value", "jacobian", "pushforward"):
        raise Refused(f"a {kind} is of one number")
    usual = "V" * bool(v) + "W" * (kind == "curvature")
    sweeps = "".join(s for s in sweeps if s.upper() in usual or s not in "vwVW") or usual
    apart = len({t for t in x if t.kind == "variable"}) == len(x) and set(x).isdisjoint(needed([*v, *w]))
    if sorted(sweeps.upper()) != [*usual] or not apart:  # what a direction depends on is differentiated, too
        raise Refused("a direction is missing, depends on what the derivative is by, or inputs are doubled")
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
    made, kind, order = outputs[k], claim.kind, {"value": 0, "gradient": 1, "jacobian": 1, "hessian": 2}
    y, x = claim.function[0 if order[kind] else k], [claim.wrt[k]] * order[kind] if order[kind] else []
    joins = order[kind] and (len(claim.function) > 1 or (kind != "gradient" and len(claim.wrt) > 1))
    joins = joins or (kind in ("gradient", "hessian") and any(d != 1 for d in y.shape))
    at = tuple(0 if d == 1 else FREE + i for i, d in enumerate(made.shape))
    axes, rest = [d for a in (y, *x) for d in a.shape if d != 1], iter([i for i in at if i])
    if joins or not same_shape(axes, [d for d in made.shape if d != 1]):
        raise Refused(f"a {kind} is not of one number, or joins axes of functions or inputs")
    place, *places = [tuple(0 if d == 1 else next(rest) for d in a.shape) for a in (y, *x)]
    term = w.element(y, place)
    for a, there in zip(x, places, strict=True):
        met = [t for t in needed([term]) if t.kind == "variable" and t.data[0] is a.op]
        term = tangent(term, {t: w.terms.product(map(w.terms.delta, t.data[1], there)) for t in met})
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
    slope = DERIVATIVES[term.data](*args)[k] if term.data in DERIVATIVES else None
    if slope is None:
        raise Refused(f"the derivative of {term.data} by argument {k + 1} is not in the table")
    return bar * slope


DAMAGE = (TypeError, ValueError, ArithmeticError, LookupError, AttributeError, RecursionError, MemoryError)


class Claim(NamedTuple):
    """Outputs of a graph, and the derivative that they are claimed to be."""

    derivative: Derivative
    outputs: tuple[Node, ...]


@dataclass(frozen=True)
class Proof:
    """Steps for some goals, as plain data that JSON can hold; ``digest`` is a checksum that others use.

    ``claims`` are the numbers of the claims that are written out, in order. ``steps`` are [number of the
    term, rule, data], or [number of the question, answer] for the way "networks", which is for all sizes;
    "same" is for one node. Letters after "elements" are directions: "v", "w" forwards, "V", "W" backwards.
    """

    claims: tuple[int, ...]
    goals: tuple[Goal, ...]
    steps: tuple[Any, ...] = field(repr=False)
    digest: int = 0
    way: str = "elements"


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
            machine, writing = Networks(dict(proof.steps)), Writing(Terms(), symbolic=True)
            whole = dict.fromkeys((k, o) for k, o, _ in proof.goals)
            pairs = [sides_for_all_sizes(*claims[k], o, writing) for k, o in whole]
        else:
            steps: dict[int, list[Any]] = {}
            for number, rule, data in proof.steps:
                steps.setdefault(number, []).append((rule, data))
            (_, goals), machine = written(claims, proof.claims, proof.way[9:]), Values(steps)
            pairs = [goals[goal] for goal in proof.goals]
        if min(map(min, proof.goals)) < 0 or not all(machine.equal(*pair) for pair in pairs):
            raise Refused("a goal does not follow")
        if machine.unused:
            raise Refused(f"step {min(machine.unused)} is used nowhere")
        return machine.count + len(proof.goals)
    except DAMAGE as problem:
        raise Refused(f"the proof is damaged: {problem}") from None
