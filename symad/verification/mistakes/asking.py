"""From a refuted claim to the question which mistake it is: function, derivative, candidate."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial

import sympy

from symad.core.arrays import ArrayLike
from symad.core.graph import Graph
from symad.numbers.values import unchecked
from symad.verification.certificate.blame import Blame
from symad.verification.certificate.certificate import Certificate, Comparison, Entry, ExactForm
from symad.verification.mistakes.elements import owners, without_input
from symad.verification.mistakes.naming import Asked, with_entries, with_names
from symad.verification.values.instance_sizes import sizes_of
from symad.verification.values.point_set import FloatPoint, PointSet

BY_INPUT, MATRICES = ("gradient", "pullback"), ("jacobian", "hessian")
NAMED = (*BY_INPUT, "pushforward", *MATRICES)
"""The derivatives whose mistakes are named here."""


def named_formula(certificate: Certificate, comparison: Comparison) -> Certificate:
    """The certificate of a formula, with the names of its mistakes."""
    sizes = {s: v[0] for s, v in sizes_of(comparison.left, comparison.right)}
    left, right = comparison.left.at(sizes), comparison.right.at(sizes)
    inside: Callable[[FloatPoint], bool] = lambda point: True  # noqa: E731
    if comparison.domain is not None:
        (here,) = Graph(comparison.left.input_nodes, (comparison.domain,)).at(sizes).output_nodes
        inside = PointSet((), 0, domain=here).holds
    found = partial(unchecked, right.output_nodes)
    return named_program(certificate, comparison, left, sizes, comparison.names, found, inside)


def named_program(
    certificate: Certificate,
    claim: ExactForm,
    reference: Graph,
    sizes: Mapping[sympy.Symbol, int],
    names: Sequence[str],
    found: Callable[[FloatPoint], Sequence[ArrayLike]],
    inside: Callable[[FloatPoint], bool],
) -> Certificate:
    """The certificate of a program, with the names of its mistakes; the reference has numbers as sizes."""
    of, function = claim.derivative, claim.function
    if of is None or function is None or of.kind not in NAMED:
        return certificate
    whole = function.at(sizes)
    by = [whole.input_nodes[function.input_nodes.index(node)] for node in of.wrt]
    asked = Asked(whole, by, reference, found, of.kind == "pushforward", inside)
    certificate = _with_inputs(certificate, of.kind, asked, names)
    if of.kind not in MATRICES:
        return with_names(certificate, asked, names)
    return with_entries(certificate, asked, names, asked.wrt if of.kind == "hessian" else whole.output_nodes)


def _with_inputs(certificate: Certificate, kind: str, asked: Asked, names: Sequence[str]) -> Certificate:
    """The certificate with the inputs that the function lacks, where the derivative by them is wrong."""
    missing = {n: text for n in asked.wrt if (text := without_input(asked.function, n))}
    if not missing or kind == "pushforward":
        return certificate
    columns = owners(asked.wrt)

    def told(entry: Entry) -> str:
        if entry.status != "refuted" or entry.name not in names:
            return ""
        if kind in BY_INPUT:
            return missing.get(asked.wrt[names.index(entry.name)], "")
        at = entry.witness.index if entry.witness is not None else ()
        by = [columns[k] for k in (at if kind == "hessian" else at[1:])]
        return next((missing[n] for n in by if n in missing), "")

    entries = [
        replace(e, blame=replace(e.blame or Blame("", "", ""), mistake=text)) if (text := told(e)) else e
        for e in certificate.entries
    ]
    return replace(certificate, entries=tuple(entries))
