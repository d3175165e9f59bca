"""The data of an audit: claims, their groups, and the rows of its table."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from symad.core.arrays import ArrayLike
from symad.core.signatures import Traceable, Wrt


@dataclass(frozen=True)
class Claim:
    """The claim that a function of a library is a formula, or a derivative of it.

    Args:
        target: the library's name of the function, such as "links.Logit.deriv".
        kind: the role of the function: "value", "gradient", "jacobian", "hessian", "vjp" or "jvp", as in
            `symad.verify`.
        formula: f, a SymPy expression or a graph.
        function: the library's function, called with the inputs of f in their order.
        wrt: the inputs to differentiate by; all by default.
        options: further options of `symad.verify`.
        source: where the formula comes from: the library's documentation, a paper, or its own value code.
        known: what is known about a claim that fails: the defect, and where it is reported.
    """

    target: str
    kind: str
    formula: Traceable
    function: Callable[..., ArrayLike] = field(repr=False)
    wrt: Wrt | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    source: str = "documented formula"
    known: str = ""

    @property
    def words(self) -> str:
        """The claim in words."""
        what = {
            "value": "value", "gradient": "first derivative", "hessian": "second derivatives",
            "jvp": "product with the Jacobian", "vjp": "product with the transposed Jacobian",
        }  # fmt: skip
        return f"{what.get(self.kind, self.kind)} of the {self.source}"


@dataclass(frozen=True)
class Row:
    """The verdict on a claim."""

    package: str
    target: str
    claim: str
    verdict: str
    """A status of a certificate, or "failed": the target could not be examined."""
    where: str = ""
    """The point of the witness."""
    expected: str = ""
    found: str = ""
    error: str = ""
    """The error relative to the expected value."""
    confirmed: str = ""
    """The derivative there by 50-digit differentiation of the formula, if it confirms the verdict."""
    mistake: str = ""
    """What is wrong about the function, if the mistake has a name."""
    note: str = ""
    """What is known about the failure, or its reason."""
    seconds: float = 0.0


Group = Callable[[], Iterable[object]]
"""A function that yields claims; any other object that it yields becomes a row with an error."""

GROUPS: dict[str, list[Group]] = {}
"""The groups of claims of each package, in the order of their declaration."""


def group(package: str) -> Callable[[Group], Group]:
    """Register a function that yields claims about a package; a call of it imports the package."""

    def register(function: Group) -> Group:
        GROUPS.setdefault(package, []).append(function)
        return function

    return register
