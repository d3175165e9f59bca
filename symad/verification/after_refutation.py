"""What follows a refutation: the guest that names mistakes, if it is there, says which one it is."""

from __future__ import annotations

from symad.guests import guest
from symad.verification.budget import Meter
from symad.verification.certificate.certificate import Certificate
from symad.verification.time_guard import in_time


def named_formula(certificate: Certificate, meter: Meter, *claim: object) -> Certificate:
    """The certificate of a formula with the names of its mistakes; the claim as the guest takes it."""
    return _named("named_formula", certificate, meter, claim)


def named_program(certificate: Certificate, meter: Meter, *claim: object) -> Certificate:
    """The certificate of a program with the names of its mistakes; the claim as the guest takes it."""
    return _named("named_program", certificate, meter, claim)


def _named(how: str, certificate: Certificate, meter: Meter, claim: tuple[object, ...]) -> Certificate:
    """With the names that are found in the time that is left, if there is a limit of it."""
    mistakes = guest("mistakes") if certificate.status == "refuted" else None
    if mistakes is None:
        return certificate
    made: Certificate = in_time(meter, lambda: getattr(mistakes, how)(certificate, *claim), certificate)
    return made
