"""What a certificate claims, read from its graphs: its title and names are words, and may say anything."""

from __future__ import annotations

from dataclasses import fields

from sympy import Basic

from symad.core.dims import format_shape
from symad.core.expressions import Formula
from symad.core.graph import Graph, Node, topological
from symad.display.reading import plain
from symad.display.typesetting.graphs import MAX_NODES, graph_latex
from symad.ops.basic.sources import Input, symbol_of
from symad.verification.certificate.certificate import Certificate, Comparison
from symad.verification.certificate.expression_text import text_of

FORMS = {
    "gradient": "the gradient", "jacobian": "the Jacobian", "hessian": "the Hessian",
    "pullback": "the vector-Jacobian product", "pushforward": "the Jacobian-vector product",
    "slope": "the derivative along directions", "curvature": "the second derivative along directions",
}  # fmt: skip


def stated(certificate: Certificate) -> tuple[str, ...]:
    """Which derivative of which function each comparison is about, without repetitions."""
    return tuple(dict.fromkeys(map(_stated, certificate.comparisons)))


def _stated(comparison: Comparison) -> str:
    claim = comparison.derivative
    names = [str(symbol_of(node)) for node in comparison.right.input_nodes]
    twice = sorted({name for name in names if names.count(name) > 1})
    note = f"; several inputs have the name {', '.join(twice)}" if twice else ""
    if comparison.domain is not None:
        note = f", where {_told(comparison.domain)} is 1{note}"
    if claim is None or claim.kind not in FORMS:
        outputs = zip(comparison.left.output_nodes, comparison.right.output_nodes, strict=True)
        pairs = "; ".join(f"{_told(a)} and {_told(b)}" for a, b in outputs)
        return f"equal values, of no derivative: {pairs}{note}"
    shapes = (format_shape(node.shape) if node.shape else "" for node in claim.wrt)
    by = ", ".join(f"{symbol_of(n)} {shape}".strip() for n, shape in zip(claim.wrt, shapes, strict=True))
    return f"{FORMS[claim.kind]} by {by} of {', '.join(map(_told, claim.function))}{note}"


def _told(node: Node) -> str:
    """A scalar expression as SymPy prints it, and one of arrays as `explain` writes it, with its loops."""
    order = topological([node])
    if len(order) > MAX_NODES or not any(n.shape for n in order) or not all(map(_has_plain_names, order)):
        return text_of(node)
    inputs = tuple(n for n in order if isinstance(n.op, Input))
    return plain(graph_latex(Graph(inputs, (node,)))).partition(" = ")[2]


def _has_plain_names(node: Node) -> bool:
    """Whether no symbol has a name of more than letters, such as a command of LaTeX."""
    values = [getattr(node.op, field.name) for field in fields(node.op)]
    forms = [v.expression if isinstance(v, Formula) else v for v in values]
    symbols = {s for form in forms if isinstance(form, Basic) for s in form.free_symbols}
    return all(str(symbol).isidentifier() for symbol in symbols)
