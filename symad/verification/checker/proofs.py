"""Proofs as data, and the checker: claims and steps in, a number of steps or a refusal out."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias
from zlib import crc32

from symad.core.graph import Node
from symad.verification.checker import polynomials as poly
from symad.verification.checker.claims import Derivative, derivative_terms
from symad.verification.checker.network_rules import network_sides
from symad.verification.checker.networks import Networks
from symad.verification.checker.polynomials import Poly
from symad.verification.checker.quotients import Quotient
from symad.verification.checker.rules import Step, Values
from symad.verification.checker.terms import Refused, Term, Terms
from symad.verification.checker.writing_out import Array, write_out

Json: TypeAlias = Any
Goal: TypeAlias = "tuple[int, int, int]"
"""Which element of which output of which claim."""


@dataclass(frozen=True)
class Claim:
    """Outputs of a graph, and the derivative that they are claimed to be."""

    derivative: Derivative
    outputs: tuple[Node, ...]


@dataclass(frozen=True)
class Proof:
    """Steps for some goals, as plain data that JSON can hold.

    ``claims`` are the numbers of the claims that are written out, in this order; ``steps`` are
    [number of the term, rule, data]. ``digest`` is a checksum of goals and steps, which finds damage.
    """

    claims: tuple[int, ...]
    goals: tuple[Goal, ...]
    steps: tuple[Json, ...] = field(repr=False)
    digest: int = 0
    way: str = "elements"
    """"elements": written out; "networks": for all sizes, a goal for each output, and the steps are
    [number of the question, answer]."""


class Board:
    """The claims of one proof written out: the terms of both sides."""

    def __init__(self, claims: Sequence[Claim], chosen: Sequence[int]) -> None:
        """Raises `Refused` if a claim cannot be written out."""
        self.terms = Terms()
        self.known: dict[Node, Array] = {}
        self.sides: dict[int, list[tuple[list[Term], list[Term]]]] = {}
        for k in chosen:
            claim = claims[k]
            left = derivative_terms(claim.derivative, self.known, self.terms)
            right = [list(a.flat) for a in write_out(claim.outputs, self.known, self.terms)]
            if [len(part) for part in left] != [len(part) for part in right]:
                raise Refused("the claim has parts of other sizes than the derivative")
            self.sides[k] = list(zip(left, right, strict=True))

    def goal(self, goal: Goal) -> tuple[Term, Term]:
        """The two sides of a goal."""
        claim, output, element = goal
        left, right = self.sides[claim][output]
        return left[element], right[element]


def replay(claims: Sequence[Claim], proof: Proof) -> int:
    """How many steps prove the goals of a proof.

    Raises:
        Refused: a step is wrong, or missing, or is used nowhere, or a goal does not follow.
    """
    try:
        return _replayed(claims, proof)
    except (TypeError, ValueError, KeyError, IndexError, AttributeError, OverflowError) as problem:
        raise Refused(f"the proof is damaged: {problem}") from None


def digest_of(goals: Sequence[Goal], steps: Sequence[Json]) -> int:
    """A checksum of goals and steps."""
    return crc32(json.dumps([goals, steps]).encode())


def _replayed(claims: Sequence[Claim], proof: Proof) -> int:
    if digest_of(proof.goals, proof.steps) != proof.digest:
        raise Refused("a step was changed: the proof has another checksum")
    if any(min(goal) < 0 for goal in proof.goals):
        raise Refused("a goal has a negative number")
    if proof.way == "networks":
        return _replayed_for_all_sizes(claims, proof)
    steps: dict[int, list[Step]] = {}
    for number, rule, data in proof.steps:
        steps.setdefault(number, []).append((rule, read_data(rule, data)))
    board = Board(claims, proof.claims)
    values = Values(board.terms, steps)
    for goal in proof.goals:
        if not values.equal(*board.goal(goal)):
            raise Refused(f"goal {list(goal)} does not follow")
    if values.unused:
        raise Refused(f"step {min(values.unused)} is used nowhere")
    return values.count + len(proof.goals)


def _replayed_for_all_sizes(claims: Sequence[Claim], proof: Proof) -> int:
    net = Networks(dict(proof.steps))
    for k, output, _ in proof.goals:
        if not net.equal(*network_sides(net, claims[k].derivative, claims[k].outputs, output)):
            raise Refused(f"output {output} of claim {k} does not follow")
    if net.unused:
        raise Refused(f"step {min(net.unused)} is used nowhere")
    return net.questions + len(net.forms)


# ---- the data of steps: a polynomial is [[c, [[generator, exponent], ...]], ...], a quotient is
# [numerator, number, [[factor, multiplicity], ...]], and sums and factors are [[k, quotient], ...]


def read_poly(saved: Json) -> Poly:
    """The polynomial that was written."""
    made = {poly.monomial_of((int(k), int(e)) for k, e in powers): int(c) for c, powers in saved}
    if len(made) != len(saved) or not all(made.values()):
        raise Refused("a polynomial is not in normal form")
    return made


def read_value(saved: Json) -> Quotient:
    """The quotient that was written."""
    over, scale, under = saved
    factors = {frozenset(read_poly(f).items()): int(m) for f, m in under}
    if int(scale) < 1 or any(m < 1 or not f for f, m in factors.items()):
        raise Refused("a quotient is not in normal form")
    return Quotient(read_poly(over), int(scale), factors)


def read_data(rule: str, data: Json) -> Any:
    """The data of a step that was written."""
    if rule in ("sum", "factors"):
        return [(int(k), read_value(a)) for k, a in data]
    if rule == "refine":
        return (read_value(data[0]), int(data[1]))
    return read_value(data) if rule == "abs" else data
