"""The checker: what alone says `proved` of the claims that it covers.

It imports the graph's nodes and the classes of the ops, and nothing else of symad. Read it in this order:
`terms`, `functions` (the table), `writing_out` (graphs as terms), `quotients` (arithmetic), `rules`,
`networks` (for all sizes), `proofs` (what is claimed, and the replay).
"""

from symad.verification.checker.proofs import Claim, Derivative, Proof, replay
from symad.verification.checker.terms import Refused

__all__ = ["Claim", "Derivative", "Proof", "Refused", "replay"]
