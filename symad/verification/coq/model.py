"""What a certificate of `symad.check` is about."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from symad.core.graph import Graph


@dataclass(frozen=True)
class Model:
    """The object as it was given, its graph, and the inputs by which it is differentiated."""

    given: Any
    graph: Graph
    wrt: tuple[Any, ...]

    def __reduce__(self) -> Any:
        """A Python function may not travel to another process; its graph says what was given."""
        given = self.graph if callable(self.given) else self.given
        return Model, (given, self.graph, self.wrt)
