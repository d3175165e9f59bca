"""Certificates: what is known about a derivative or an equality, and on what evidence.

`check` certifies symad's own derivatives, `verify` somebody's formula or code, `equal` any two
expressions. A certificate has one of five levels: proved (by a proof, which `symad.verification.checker`
replays where it has rules), tested (by an identity test in random prime fields, with an error bound),
measured (both sides agree at all points that were tried), refuted (by a witness), undecided (with a list of
what was tried).
"""

from __future__ import annotations

from symad.verification import recheck  # noqa: F401  (register themselves)
from symad.verification.budget import Budget
from symad.verification.certificate import report, storage  # noqa: F401  (register themselves)
from symad.verification.certificate.certificate import Certificate, RefutedError
from symad.verification.own import check
from symad.verification.users import equal, verify

__all__ = ["Budget", "Certificate", "RefutedError", "check", "equal", "verify"]
