"""What a proof is about: outputs of graphs that are derivatives of a function, element by element.

The derivative is not taken from anywhere: it is what the table of `functions` and the chain rule make of the
function, written out (backwards: Speelpenning 1980).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from symad.core.dims import same_shape
from symad.core.graph import Node, Op
from symad.verification.checker.functions import DERIVATIVES
from symad.verification.checker.terms import Refused, Term, needed
from symad.verification.checker.writing_out import FREE, Writing

KINDS = {
    "value": "", "gradient": "", "jacobian": "", "hessian": "", "pushforward": "v", "pullback": "w",
    "slope": "vw", "curvature": "vw",
}  # fmt: skip
"""The kinds of derivatives, and the directions that they take."""


@dataclass(frozen=True)
class Derivative:
    """Which derivative of which function some outputs are claimed to be.

    Args:
        kind: with x all elements of ``wrt`` in order, y those of ``function``,
            "value": y; "gradient": ∂y/∂x in the shape of each wrt; "jacobian": ∂y_i/∂x_j; "hessian":
            ∂²y/∂x_i∂x_j; "pushforward": Σ_j ∂y_i/∂x_j v_j for each output; "pullback": Σ_i w_i ∂y_i/∂x_j
            for each wrt; "slope": Σ_ij w_i ∂y_i/∂x_j v_j; "curvature": Σ_ij w_i ∂²y/∂x_i∂x_j v_j. Without w
            (of "pullback" and "slope") and for second derivatives y is one number.
        function: outputs of a graph.
        wrt: inputs.
        v: directions, nodes of the shapes of ``wrt``.
        w: nodes of the shapes of ``function``, or for "curvature" of ``wrt``.
    """

    kind: str
    function: tuple[Node, ...]
    wrt: tuple[Node, ...] = ()
    v: tuple[Node, ...] = ()
    w: tuple[Node, ...] = ()


def sides(claim: Derivative, outputs: Sequence[Node], w: Writing) -> list[tuple[Term, Term]]:
    """The elements of the derivative, and those of the outputs, in order."""
    made, kind, groups = w.elements(outputs), claim.kind, (claim.function, claim.wrt, claim.v, claim.w)
    y, x, v, u = map(w.elements, groups)
    if ("v" in KINDS[kind]) != bool(v) or (u and "w" not in KINDS[kind]) or (kind == "curvature" and not u):
        raise Refused(f"a claim about a {kind} has other directions")
    if kind == "value" and [a.shape for a in claim.function] != [a.shape for a in outputs]:
        raise Refused("both sides have other shapes")
    if u and kind != "curvature":
        y = [inner(u, y)]
    elif len(y) != 1 and kind not in ("value", "jacobian", "pushforward"):
        raise Refused(f"a {kind} is of one number")
    rows = [[e] if kind == "value" else gradient(e, x) for e in y]
    if v:
        rows = [[inner(row, v)] for row in rows]
    if kind in ("hessian", "curvature"):
        rows = [gradient(e, x) for row in rows for e in row]
    flat = [inner(rows[0], u)] if kind == "curvature" else [e for row in rows for e in row]
    return list(zip(flat, made, strict=True))


def sides_for_all_sizes(claim: Derivative, outputs: Sequence[Node], k: int, w: Writing) -> tuple[Term, Term]:
    """One element of output k of a claim, and of what it is claimed to be; axes have index symbols."""
    made, kind = outputs[k], claim.kind
    at = tuple(0 if d == 1 else FREE + i for i, d in enumerate(made.shape))
    y = claim.function[k if kind == "value" else 0]
    x = [] if kind == "value" else [claim.wrt[k]] * (2 if kind == "hessian" else 1)
    if kind not in ("value", "gradient", "jacobian", "hessian") or (
        kind == "gradient" and prod(y.shape) != 1
    ):
        raise Refused(f"the derivative {kind!r} is not covered for all sizes")
    if kind != "value" and len(claim.function) + (len(claim.wrt) if kind != "gradient" else 1) != 2:
        raise Refused("a derivative of several functions, or by several inputs, joins axes")
    sizes, places, rest = (
        [d for a in (y, *x) for d in a.shape],
        list[tuple[int, ...]](),
        iter(filter(None, at)),
    )
    if not same_shape([d for d in sizes if d != 1], [d for d in made.shape if d != 1]):
        raise Refused("axes of a derivative are joined")
    places = [tuple(0 if d == 1 else next(rest) for d in a.shape) for a in (y, *x)]
    term = w.element(y, places[0])
    for a, place in zip(x, places[1:], strict=True):
        term = slope(term, a.op, place)
    return term, w.element(made, at)


def inner(a: Sequence[Term], b: Sequence[Term]) -> Term:
    """Σ a_k b_k."""
    return a[0].table.sum([p * q for p, q in zip(a, b, strict=True)])


def gradient(output: Term, variables: Sequence[Term]) -> list[Term]:
    """∂output/∂v for all variables v: each term sends to its arguments what it got, times its slopes."""
    terms, order = output.table, needed([output])
    active = set(variables)
    active.update(term for term in order if not active.isdisjoint(term.args))
    sent: dict[Term, list[Term]] = {output: [terms.term(1)]}
    for term in reversed(order):
        if term in active and term in sent:
            sent[term] = [terms.sum(sent[term])]
            for k, arg in enumerate(term.args):
                if arg in active:
                    part = contribution(term, k, sent[term][0])
                    if part.number != 0:
                        sent.setdefault(arg, []).append(part)
    return [terms.sum(sent.get(v, [])) for v in variables]


def slope(output: Term, wrt: Op, place: Sequence[int]) -> Term:
    """∂output/∂wrt[place] for index symbols, by the chain rule forwards."""
    terms, tangents = output.table, dict[Term, Term]()
    for term in needed([output]):
        parts = [
            contribution(term, k, tangents[a]) for k, a in enumerate(term.args) if tangents[a].number != 0
        ]
        if term.kind == "variable" and term.data[0] is wrt:  # type: ignore[index]
            pairs = zip(term.data[1], place, strict=True)  # type: ignore[index]
            parts = [terms.product([terms.delta(i, j) for i, j in pairs])]
        tangents[term] = terms.sum(parts)
    return tangents[output]


def contribution(term: Term, k: int, bar: Term) -> Term:
    """``bar`` times the partial derivative of a term by its argument k."""
    args, terms = term.args, term.table
    if term.kind in ("sum", "total"):  # sums over index symbols are differentiated forwards only
        return terms.total(term.data or (), bar)  # type: ignore[arg-type]
    if term.kind == "product":
        return terms.product([bar, *args[:k], *args[k + 1 :]])
    if term.kind == "power":
        exponent = term.data
        return bar * exponent * args[0] ** (exponent - 1)  # type: ignore[operator]
    if term.data == "select":  # the branch that is not taken gets nothing
        return terms.select(args[0], *((0, bar) if k == 2 else (bar, 0))) if k else terms.term(0)
    partial = DERIVATIVES[term.data](*args)[k] if term.data in DERIVATIVES else None
    if partial is None:
        raise Refused(f"the derivative of {term.data} by argument {k + 1} is not in the table")
    return bar * partial
