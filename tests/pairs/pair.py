"""Two things that are known to be equal, or known to differ on an open set, by how they were made."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Pair:
    """What `symad.equal` is asked about, and the answer."""

    family: str
    left: Any
    right: Any
    equal: bool
    text: str
    hard: bool = False
    """Equal by an identity that no verifier has to know: it may stay undecided, not be refuted."""


Maker = Callable[[random.Random], "Pair | None"]
"""A random pair of one family; None where what was made is of no use."""
