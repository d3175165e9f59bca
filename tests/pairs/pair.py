"""A pair of expressions that are, by construction, equal, or different on an open set."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import symad


def by_equal(pair: Pair, seed: int) -> Any:
    """Whether both sides are equal."""
    return symad.equal(pair.left, pair.right, seed=seed)


@dataclass(frozen=True)
class Pair:
    """What the verifier is asked about, and the answer."""

    family: str
    left: Any
    right: Any
    equal: bool
    text: str
    hard: bool = False
    """Equal by an identity that no verifier has to know: it may stay undecided, not be refuted."""
    ask: Callable[[Pair, int], Any] = by_equal
    """What is asked, with a seed: a certificate."""


Maker = Callable[[random.Random], "Pair | None"]
"""A random pair of one family; None where what was made is of no use."""
