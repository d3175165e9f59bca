"""Audits: what libraries claim about values and derivatives, compared with formulas.

Start with `claims`: a claim is a formula and a function of a library. Each other file declares the claims of
one package; `running` establishes them, one process for each package. ``symad audit`` is the command.
"""

from __future__ import annotations

from symad.audits.claims import Claim, Row, group
from symad.audits.running import audit

__all__ = ["Claim", "Row", "audit", "group"]
