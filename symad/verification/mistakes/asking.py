"""From a refuted claim to the question which mistake it is: function, derivative, candidate."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import sympy

from symad.core.arrays import ArrayLike
from symad.core.graph import Graph, Node
from symad.numbers.values import unchecked
from symad.verification.certificate.certificate import Certificate, Comparison
from symad.verification.claimed_domain import inside_of
from symad.verification.mistakes.naming import Asked, with_names
from symad.verification.values.hostile_points import FloatPoint
from symad.verification.values.instance_sizes import sizes_of

NAMED = ("gradient", "vjp", "jvp")
"""The derivatives whose mistakes are named here."""


def named_formula(
    certificate: Certificate,
    kind: str,
    graph: Graph,
    wrt: Sequence[Node],
    comparison: Comparison,
    domain: Node | None,
) -> Certificate:
    """The certificate of a formula, with the names of its mistakes."""
    if certificate.status != "refuted" or kind not in NAMED:
        return certificate
    sizes = {s: v[0] for s, v in sizes_of(comparison.left, comparison.right)}
    left, right = comparison.left.at(sizes), comparison.right.at(sizes)
    inside: Callable[[FloatPoint], bool] = lambda point: True  # noqa: E731
    if domain is not None:
        inside = inside_of(Graph(comparison.left.input_nodes, (domain,)).at(sizes).output_nodes[0])
    asked = _asked(kind, graph, wrt, left, sizes, lambda p: unchecked(right.output_nodes, p), inside)
    return with_names(certificate, asked, comparison.names)


def named_program(
    certificate: Certificate,
    kind: str,
    graph: Graph,
    wrt: Sequence[Node],
    reference: Graph,
    sizes: Mapping[sympy.Symbol, int],
    names: Sequence[str],
    found: Callable[[FloatPoint], Sequence[ArrayLike]],
    inside: Callable[[FloatPoint], bool],
) -> Certificate:
    """The certificate of a program, with the names of its mistakes; the reference has numbers as sizes."""
    if certificate.status != "refuted" or kind not in NAMED:
        return certificate
    return with_names(certificate, _asked(kind, graph, wrt, reference, sizes, found, inside), names)


def _asked(
    kind: str,
    graph: Graph,
    wrt: Sequence[Node],
    reference: Graph,
    sizes: Mapping[sympy.Symbol, int],
    found: Callable[[FloatPoint], Sequence[ArrayLike]],
    inside: Callable[[FloatPoint], bool],
) -> Asked:
    whole = graph.at(sizes)
    by = [whole.input_nodes[graph.input_nodes.index(node)] for node in wrt]
    return Asked(whole, by, reference, found, kind == "jvp", inside)
