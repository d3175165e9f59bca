"""What is to be decided: pairs of nodes that are claimed to be equal."""

from __future__ import annotations

from dataclasses import dataclass

from symad.core.graph import Node
from symad.ops.basic.sources import symbol_of
from symad.verification.certificate.certificate import Comparison
from symad.verification.claimed_domain import restricted

MAX_SINGLE_ENTRIES = 1024
"""The maximum number of elements of an output with an entry for each; larger ones get one for the array."""


@dataclass(frozen=True)
class Pair:
    """One output of a comparison."""

    comparison: Comparison
    name: str
    left: Node
    right: Node
    place: tuple[int, int] = (0, 0)
    """The position of the comparison, and of its output."""
    function: tuple[Node, ...] = ()
    """The function that the left side is a derivative of, if it is one."""

    domain: Node | None = None
    """Positive where the claim is made; None for everywhere."""
    reading: tuple[Node, ...] = ()
    """Both sides as the identity test reads them inside of the domain, if others than they are."""

    @property
    def kind(self) -> str:
        """Which derivative of the function the left side is; "value" if it is none."""
        derivative = self.comparison.derivative
        return derivative.kind if derivative is not None and self.function else "value"

    @property
    def inputs(self) -> tuple[str, ...]:
        """The names of the inputs, in order."""
        return tuple(str(symbol_of(node)) for node in self.comparison.left.input_nodes)

    @property
    def asked(self) -> tuple[Node, Node]:
        """Both sides, as the identity test reads them: simpler ones if there are, 0 outside of the domain.

        They are equal where both sides are and the domain holds; whether that is anywhere, is not said.
        """
        left, right = self.reading or (self.left, self.right)
        if self.domain is not None:
            left, right = restricted((left, right), self.domain)
        return left, right


def is_fixed(node: Node) -> bool:
    """Whether the sizes of a node are numbers."""
    return all(isinstance(d, int) for d in node.shape)
