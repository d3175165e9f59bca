"""Proofs as data, and the checker: claims and steps in, a number of steps or a refusal out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import islice
from math import prod
from typing import Any, TypeAlias

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


@dataclass(frozen=True)
class Claim:
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
    """The claims of one proof written out: the terms of both sides, element by element."""

    def __init__(self, claims: Sequence[Claim], chosen: Sequence[int]) -> None:
        """Raises `Refused` if a claim cannot be written out."""
        self.writing, self.sides = Writing(Terms()), dict[tuple[int, int], list[tuple[Term, Term]]]()
        for k in chosen:
            pairs = iter(sides(claims[k].derivative, claims[k].outputs, self.writing))
            for output, node in enumerate(claims[k].outputs):
                self.sides[k, output] = list(islice(pairs, prod(node.shape)))

    def goal(self, goal: Goal) -> tuple[Term, Term]:
        """The two sides of a goal."""
        return self.sides[goal[:2]][goal[2]]


def replay(claims: Sequence[Claim], proof: Proof) -> int:
    """How many steps prove the goals of a proof.

    Raises:
        Refused: a step is wrong, or missing, or is used nowhere, or a goal does not follow.
    """
    try:
        if min((n for goal in proof.goals for n in goal), default=0) < 0:
            raise Refused("a goal has a negative number")
        return (_for_all_sizes if proof.way == "networks" else _element_by_element)(claims, proof)
    except DAMAGE as problem:
        raise Refused(f"the proof is damaged: {problem}") from None


def _element_by_element(claims: Sequence[Claim], proof: Proof) -> int:
    steps: dict[int, list[Any]] = {}
    for number, rule, data in proof.steps:
        steps.setdefault(number, []).append((rule, data))
    board, values = Board(claims, proof.claims), Values(steps)
    for goal in proof.goals:
        if not values.equal(*board.goal(goal)):
            raise Refused(f"goal {list(goal)} does not follow")
    if values.unused:
        raise Refused(f"step {min(values.unused)} is used nowhere")
    return values.count + len(proof.goals)


def _for_all_sizes(claims: Sequence[Claim], proof: Proof) -> int:
    net, writing = Networks(dict(proof.steps)), Writing(Terms(), symbolic=True)
    for k, output, _ in proof.goals:
        pair = sides_for_all_sizes(claims[k].derivative, claims[k].outputs, output, writing)
        if not net.equal(*map(net.form, pair)):
            raise Refused(f"output {output} of claim {k} does not follow")
    if net.unused:
        raise Refused(f"step {min(net.unused)} is used nowhere")
    return net.questions + len(net.forms)
