"""The checker: what alone says `proved` of the claims that it covers. It imports the graph's nodes and ops.

Read: terms, functions, writing_out, quotients, rules, networks, proofs.
"""

from symad.verification.checker.proofs import Claim, Derivative, Proof, replay
from symad.verification.checker.terms import Refused

__all__ = ["Claim", "Derivative", "Proof", "Refused", "replay"]
