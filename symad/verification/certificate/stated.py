"""What a certificate claims, read from its graphs: its title and names are words, and may say anything."""

from __future__ import annotations

from symad.ops.basic.sources import symbol_of
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
        note = f", where {text_of(comparison.domain)} is 1{note}"
    if claim is None or claim.kind not in FORMS:
        outputs = zip(comparison.left.output_nodes, comparison.right.output_nodes, strict=True)
        pairs = "; ".join(f"{text_of(a)} and {text_of(b)}" for a, b in outputs)
        return f"equal values, of no derivative: {pairs}{note}"
    by = ", ".join(str(symbol_of(node)) for node in claim.wrt)
    return f"{FORMS[claim.kind]} of {', '.join(map(text_of, claim.function))} by {by}{note}"
