"""A printed gradient, certified; the same with a wrong sign, refuted with its position."""

from __future__ import annotations

import sympy

import symad
from symad.cli.tour.stage import Finding, Made, TourModel, stage

x = sympy.Symbol("x", real=True)
p = 1 / (1 + sympy.exp(-x))


@stage(
    "certificates",
    "the printed gradient of the focal loss, a misprint, and a proof for all sizes",
    quick=True,
)
def certificates() -> TourModel:
    """−(1 − p)² log p with p = σ(x). Lin et al. (2017), appendix B."""
    return TourModel(-((1 - p) ** 2) * sympy.log(p), point=(0.5,), use=certify)


def certify(made: Made) -> list[Finding]:
    """A formula, a mistake, and an identity with symbolic sizes."""
    printed = (1 - p) ** 2 * (2 * p * sympy.log(p) + p - 1)
    right = symad.verify(made.graph, x, gradient=printed)
    wrong = symad.verify(made.graph, x, gradient=-printed)
    named = next((e.blame.mistake for e in wrong.entries if e.blame), "")
    n = sympy.Symbol("n", integer=True, positive=True)
    X = sympy.MatrixSymbol("X", n, n)
    general = symad.verify(sympy.Trace(X**3), X, gradient=3 * (X**2).T)
    kept = symad.verification.Certificate.from_json(wrong.to_json())
    return [
        Finding(f"the printed gradient of the focal loss is {right.status}", bool(right)),
        Finding(f"with its sign turned it is {wrong.status}: {named}", named == "wrong sign"),
        Finding(f"∂ tr X³/∂X = 3 (X²)ᵀ is {general.status} for all n", general.status == "proved"),
        Finding("a certificate read from JSON says the same", kept.witness == wrong.witness),
    ]
