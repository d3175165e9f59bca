"""The checker: what alone says `proved` of the claims that it covers.

It imports the graph's nodes and the classes of the ops, and nothing else of symad. Read it in this order:
`terms`, `writing_out` (graphs as terms, one rule for each op), `functions` (the table of functions), `claims`
(the chain rule, and what is claimed), `polynomials` and `quotients` (arithmetic), `rules` (the rules of a
proof), `networks` and `network_rules` (the same for all sizes), `proofs` (the replay).
"""

from symad.verification.checker.claims import Derivative
from symad.verification.checker.proofs import Claim, Proof, replay
from symad.verification.checker.terms import Refused

__all__ = ["Claim", "Derivative", "Proof", "Refused", "replay"]
