"""A checksum of proofs, which finds damage; what is right is decided by the checker alone."""

from __future__ import annotations

import json
from collections.abc import Sequence
from zlib import crc32

from symad.core.claims import Goal, Proof


def digest_of(goals: Sequence[Goal], steps: Sequence[object]) -> int:
    """A checksum of goals and steps."""
    return crc32(json.dumps([goals, steps]).encode())


def is_damaged(proof: Proof) -> bool:
    """Whether goals or steps are others than those of which the checksum was made."""
    return digest_of(proof.goals, proof.steps) != proof.digest
