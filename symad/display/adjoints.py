"""The derivatives of each step as formulas, such as ``S̄ = P ⊙ (P̄ − Σ P ⊙ P̄ by rows)``.

The formulas are the programs of `local_derivatives`, which the transformations make,
written by `typesetting`: no rule stands here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias

from symad.core.graph import Node
from symad.display.local_derivatives import OF_VALUE
from symad.display.naming import Names
from symad.display.recurrences import Recurrences, Values
from symad.display.typesetting.derivation import written
from symad.display.typesetting.pieces import Atom, Piece, accented, name_of_input, total, write
from symad.display.typesetting.rules import typeset
from symad.ops.basic.sources import Input

Groups: TypeAlias = "Sequence[tuple[str, Values]]"
"""For each group of a program of `local_derivatives` the letter of its values, and the values."""

MAX_FORMULA = 400
"""Characters of LaTeX of a formula; a longer one is not read by anybody, and its op is named instead."""

DOTTED = {"ṙ": "r", "ṡ": "s"}


class Notation:
    """The names of states, tangents and adjoints as LaTeX, and the formulas between them."""

    def __init__(self, runs: Recurrences, names: Names) -> None:
        self.runs, self.names = runs, names

    def latex(self, letter: str, node: Node) -> str:
        r"""``s_{3}``, ``t'_{3}``, ``\dot{r}_{3}``; a state of several inputs is the input's name."""
        index = self.names.index[node]
        if letter == "s" and isinstance(node.op, Input) and not index.isdigit():
            return name_of_input(node.op.symbol)
        below = index if index.isdigit() else name_of_input(node.op.symbol)  # type: ignore[attr-defined]  # an Input
        base = letter.removesuffix("'")
        base = accented(r"\dot", DOTTED[base]) if base in DOTTED else base
        return f"{base}'_{{{below}}}" if letter.endswith("'") else f"{base}_{{{below}}}"

    def piece(self, letter: str, node: Node) -> Piece:
        """The name as a piece of a formula; a number is itself."""
        if node in self.names.literals:
            return typeset(node.op, node, ())
        return Atom(self.latex(letter, node))

    def state(self, node: Node) -> str:
        """A step in terms of its arguments; an input as its name."""
        if isinstance(node.op, Input):
            return name_of_input(node.op.symbol)
        return write(typeset(node.op, node, [self.piece("s", a) for a in node.args]))

    def outputs(self, kind: str, node: Node, groups: Groups) -> list[Piece]:
        """The outputs of a program of `local_derivatives` at a node.

        Values that are missing from ``groups`` are zero.
        """
        free = self.runs.free(node)
        holders = [[node] if k in OF_VALUE.get(kind, ()) else free for k in range(len(groups))]
        present = [[values.get(n) for n in held] for held, (_, values) in zip(holders, groups, strict=True)]
        program = self.runs.program(kind, node, *present)
        pieces: dict[Node, Piece] = {program.y: self.piece("s", node)}
        pieces |= {slot: self.piece("s", a) for slot, a in zip(program.args, free, strict=True)}
        for slots, held, (letter, _) in zip(program.groups, holders, groups, strict=True):
            pieces |= {
                slot: self.piece(letter, n)
                for slot, n in zip(slots, held, strict=True)
                if isinstance(slot, Node)
            }
        return [self._bounded(o, node, pieces) for o in program.outputs]

    def _bounded(self, output: object, node: Node, pieces: Mapping[Node, Piece]) -> Piece:
        if not isinstance(output, Node):
            return Atom("0")
        made = written(output, pieces)
        if len(write(made)) > MAX_FORMULA:
            return Atom(rf"\text{{by the rule of {type(node.op).__name__}}}")
        return made

    def over_uses(self, letter: str, node: Node, kind: str, groups: Groups, half: int = 0) -> Piece:
        """An adjoint as the sum over the uses of a node; ``half`` 1 for the second of a dual program."""
        terms: list[Piece] = []
        for user in self.runs.order:
            free = self.runs.free(user)
            if node not in free or not any(user in groups[k][1] for k in OF_VALUE[kind]):
                continue
            bars = self.outputs(kind, user, groups)[half * len(free) :]
            terms += [bar for a, bar in zip(free, bars, strict=False) if a is node and bar != Atom("0")]
        if not terms:
            return Atom("")
        return total([1] * len(terms), terms, [bool(node.shape)] * len(terms))
