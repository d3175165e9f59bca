"""What follows a refutation: the guest that names mistakes, if it is there, says which one it is."""

from __future__ import annotations

from symad.guests import guest
from symad.verification.certificate.certificate import Certificate


def named_formula(certificate: Certificate, *claim: object) -> Certificate:
    """The certificate of a formula with the names of its mistakes; the claim as the guest takes it."""
    return _named("named_formula", certificate, claim)


def named_program(certificate: Certificate, *claim: object) -> Certificate:
    """The certificate of a program with the names of its mistakes; the claim as the guest takes it."""
    return _named("named_program", certificate, claim)


def _named(how: str, certificate: Certificate, claim: tuple[object, ...]) -> Certificate:
    mistakes = guest("mistakes") if certificate.status == "refuted" else None
    made: Certificate = certificate if mistakes is None else getattr(mistakes, how)(certificate, *claim)
    return made
