"""What alone says `proved`. Read: terms, functions, writing_out, quotients, rules, networks, proofs."""

from symad.verification.checker.proofs import Claim, Derivative, Proof, replay
from symad.verification.checker.terms import Refused

__all__ = ["Claim", "Derivative", "Proof", "Refused", "replay"]
