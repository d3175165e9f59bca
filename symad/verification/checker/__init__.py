"""The checker: what alone says `proved` of the claims that it covers.

It imports the graph's nodes and the classes of the ops, and nothing else of symad. Read it in this order:
`terms` (scalar terms), `writing_out` (graphs as terms, one rule for each op), `functions` (the table of
functions), `derivatives` (the chain rule), `polynomials` and `quotients` (arithmetic), `rules` (the rules of
a proof), `claims` and `proofs` (what is proved, and the replay).
"""

from __future__ import annotations

from symad.verification.checker.claims import Derivative
from symad.verification.checker.proofs import Claim, Proof, replay
from symad.verification.checker.terms import Refused

__all__ = ["Claim", "Derivative", "Proof", "Refused", "replay"]
