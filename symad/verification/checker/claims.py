"""What a proof is about: outputs of graphs that are derivatives of a function, element by element.

The derivative is not taken from anywhere: it is what the table of `functions` and the chain rule make of the
function, written out (backwards: Speelpenning 1980).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from symad.core.graph import Node
from symad.verification.checker.functions import DERIVATIVES
from symad.verification.checker.terms import Refused, Term, Terms, needed
from symad.verification.checker.writing_out import Array, write_out

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


def derivative_terms(claim: Derivative, known: dict[Node, Array], terms: Terms) -> list[Term]:
    """The elements of all outputs that the claim is about, in order."""
    kind, groups = claim.kind, (claim.function, claim.wrt, claim.v, claim.w)
    y, x, v, w = ([e for a in write_out(group, known, terms) for e in a.flat] for group in groups)
    if ("v" in KINDS[kind]) != bool(v) or (w and "w" not in KINDS[kind]) or (kind == "curvature" and not w):
        raise Refused(f"a claim about a {kind} has other directions")
    if kind == "value":
        return y
    if w and kind != "curvature":
        y = [inner(w, y)]
    elif len(y) != 1 and kind not in ("jacobian", "pushforward"):
        raise Refused(f"a {kind} is of one number")
    rows = [gradient(e, x) for e in y]
    if v:
        rows = [[inner(row, v)] for row in rows]
    if kind in ("hessian", "curvature"):
        rows = [gradient(e, x) for row in rows for e in row]
    return [inner(rows[0], w)] if kind == "curvature" else [e for row in rows for e in row]


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


def contribution(term: Term, k: int, bar: Term) -> Term:
    """``bar`` times the partial derivative of a term by its argument k."""
    args, terms = term.args, term.table
    if term.kind == "sum":
        return bar
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
