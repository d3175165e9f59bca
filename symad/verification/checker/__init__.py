"""The checker: what alone says `proved` of the claims that it covers.

It imports the graph's nodes and the classes of the ops, and nothing else of symad. Read it in this order: `terms`,
`functions` (the table), `writing_out` (graphs as terms), `claims` (the chain rule, and what is claimed),
`polynomials` and `quotients` (arithmetic), `rules`, `networks` (for all sizes), `proofs` (the replay).
"""

from symad.verification.checker.claims import Derivative
from symad.verification.checker.proofs import Claim, Proof, replay
from symad.verification.checker.terms import Refused

__all__ = ["Claim", "Derivative", "Proof", "Refused", "replay"]
