"""A pair of expressions that are, by construction, equal, or different on an open set."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import symad


def by_equal(pair: Pair, seed: int) -> Any:
    """The certificate of the claim that both sides are equal."""
    return symad.equal(pair.left, pair.right, seed=seed)


@dataclass(frozen=True)
class Pair:
    """The question to the verifier, and the right answer."""

    family: str
    left: Any
    right: Any
    equal: bool
    text: str
    hard: bool = False
    """True if the sides are equal by a rare identity: the verdict may be undecided, and not refuted."""
    ask: Callable[[Pair, int], Any] = by_equal
    """The call that makes the certificate, with a seed."""


Maker = Callable[[random.Random], "Pair | None"]
"""Makes a random pair of one family; None if the pair is not usable."""
