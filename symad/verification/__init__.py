"""Certificates: what is known about a derivative or an equality, and how well.

`check` certifies symad's own derivatives, `verify` somebody's formula or code, `equal` any two
expressions. Five levels, never blurred: proved (a proof, which `symad.verification.checker` replays where it
has rules), tested (identity test in random prime fields, with a bound), measured (agrees wherever it was
tried), refuted (a witness), undecided (what was tried).
"""

from __future__ import annotations

from symad.verification.budget import Budget
from symad.verification.certificate import recheck, report, storage  # noqa: F401  (register themselves)
from symad.verification.certificate.certificate import Certificate, RefutedError
from symad.verification.equality import equal
from symad.verification.own import check
from symad.verification.random_fields import fixed_samples  # noqa: F401  (registers itself)
from symad.verification.users import verify

__all__ = ["Budget", "Certificate", "RefutedError", "check", "equal", "verify"]
