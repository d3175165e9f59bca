"""Proofs as data, and the checker: claims and steps in, a number of steps or a refusal out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Any, NamedTuple, TypeAlias

from symad.core.graph import Node
from symad.verification.checker.claims import Derivative, sides, sides_for_all_sizes
from symad.verification.checker.networks import Networks
from symad.verification.checker.rules import Values
from symad.verification.checker.terms import Refused, Term, Terms
from symad.verification.checker.writing_out import Writing

Goal: TypeAlias = "tuple[int, int, int]"
"""Which element of which output of which claim."""

DAMAGE = (TypeError, ValueError, ArithmeticError, LookupError, AttributeError, RecursionError, MemoryError)
"""What Python says of data that are no proof."""


class Claim(NamedTuple):
    """Outputs of a graph, and the derivative that they are claimed to be."""

    derivative: Derivative
    outputs: tuple[Node, ...]


@dataclass(frozen=True)
class Proof:
    """Steps for some goals, as plain data that JSON can hold.

    ``claims`` are the numbers of the claims that are written out, in this order. With the way "elements",
    ``steps`` are [number of the term, rule, data]; with the way "networks", the goals are outputs for all
    sizes, and the steps are [number of the question, answer]. ``digest`` is a checksum for those who keep
    proofs; the checker does not need it.
    """

    claims: tuple[int, ...]
    goals: tuple[Goal, ...]
    steps: tuple[Any, ...] = field(repr=False)
    digest: int = 0
    way: str = "elements"


class Board:
    """The claims of one proof written out: the terms of both sides of each goal."""

    def __init__(self, claims: Sequence[Claim], chosen: Sequence[int]) -> None:
        """Raises `Refused` if a claim cannot be written out."""
        self.writing, self.goals = Writing(Terms()), dict[Goal, tuple[Term, Term]]()
        for k in chosen:
            outputs = claims[k].outputs
            places = [(k, o, e) for o, node in enumerate(outputs) for e in range(prod(node.shape))]
            self.goals |= zip(places, sides(claims[k].derivative, outputs, self.writing), strict=True)


def replay(claims: Sequence[Claim], proof: Proof) -> int:
    """How many steps prove the goals of a proof.

    Raises:
        Refused: a step is wrong, or missing, or is used nowhere, or a goal does not follow.
    """
    try:
        return _replayed(claims, proof)
    except DAMAGE as problem:
        raise Refused(f"the proof is damaged: {problem}") from None


def _replayed(claims: Sequence[Claim], proof: Proof) -> int:
    machine: Values | Networks
    if proof.way == "networks":
        machine, writing = Networks(dict(proof.steps)), Writing(Terms(), symbolic=True)
        pairs = [sides_for_all_sizes(*claims[k], o, writing) for k, o, _ in proof.goals if min(k, o) >= 0]
    else:
        steps: dict[int, list[Any]] = {}
        for number, rule, data in proof.steps:
            steps.setdefault(number, []).append((rule, data))
        board, machine = Board(claims, proof.claims), Values(steps)
        pairs = [board.goals[goal] for goal in proof.goals]
    for goal, pair in zip(proof.goals, pairs, strict=True):
        if not machine.equal(*pair):
            raise Refused(f"goal {list(goal)} does not follow")
    if machine.unused:
        raise Refused(f"step {min(machine.unused)} is used nowhere")
    return machine.count + len(proof.goals)
