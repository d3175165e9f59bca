"""Derivatives of scalar terms, by the chain rule backwards (Speelpenning 1980).

∂output/∂output = 1, and each term sends to its arguments what it got, times its partial derivatives.
"""

from __future__ import annotations

from collections.abc import Sequence

from symad.verification.checker.functions import DERIVATIVES
from symad.verification.checker.terms import Refused, Term, needed


def gradient(output: Term, variables: Sequence[Term]) -> list[Term]:
    """∂output/∂v for all variables v."""
    terms, order = output.table, needed([output])
    wanted, active = set(variables), set[Term]()
    for term in order:
        if term in wanted or any(a in active for a in term.args):
            active.add(term)
    sent: dict[Term, list[Term]] = {output: [terms.term(1)]}
    for term in reversed(order):
        if term not in active or term not in sent:
            continue
        bar = terms.sum(sent[term])
        sent[term] = [bar]
        for k, arg in enumerate(term.args):
            if arg in active:
                part = contribution(term, k, bar)
                if part.number != 0:
                    sent.setdefault(arg, []).append(part)
    return [terms.sum(sent.get(v, [])) for v in variables]


def contribution(term: Term, k: int, bar: Term) -> Term:
    """``bar`` times the partial derivative of a term by its argument k."""
    args = term.args
    if term.kind == "sum":
        return bar
    if term.kind == "product":
        return term.table.product([bar, *args[:k], *args[k + 1 :]])
    if term.kind == "power":
        exponent = term.data
        return bar * exponent * args[0] ** (exponent - 1)  # type: ignore[operator]
    if term.data == "select":  # the branch that is not taken gets nothing
        taken = (0, bar) if k == 2 else (bar, 0)
        return term.table.select(args[0], *taken) if k else term.table.term(0)
    partial = DERIVATIVES[term.data](*args)[k] if term.data in DERIVATIVES else None
    if partial is None:
        raise Refused(f"the derivative of {term.data} by argument {k + 1} is not in the table")
    return bar * partial
