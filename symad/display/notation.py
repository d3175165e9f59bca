"""The names of values, and the derivatives of each step as formulas: ``P ⊙ (P̄ − Σ P ⊙ P̄ by rows)``.

The formulas are the local programs of `recurrences`, which the transformations make,
written by `typesetting`: no rule stands here.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TypeAlias

from symad.core.graph import Graph, Node
from symad.display.picture import states
from symad.display.reading import plain
from symad.display.recurrences import OF_VALUE, Recurrences, Values
from symad.display.tables import Math
from symad.display.typesetting.derivation import rule_name, written
from symad.display.typesetting.pieces import LatexAtom, Piece, accented, name_of, name_of_input, total, write
from symad.display.typesetting.rules import typeset
from symad.higher_order.scan import Scan

Groups: TypeAlias = "Sequence[tuple[str, Values]]"
"""For each group of a `LocalProgram` the letter of its values, and the values."""

MAX_FORMULA = 400
"""Characters of LaTeX of a formula; a longer one is not read by anybody, and its op is named instead."""

DOTTED = {"ṙ": "r", "ṡ": "s"}
BARS = {"t": r"\dot", "r": r"\bar"}
PAIR = {"p": 1, "q": 2}


def read(latex: str) -> Math:
    """A formula, as text and in LaTeX."""
    return Math(plain(latex), latex)


class Notation:
    """The names of values, and the formulas between them.

    States are s_0 = x for a single input, then s_1, s_2, ...; of several inputs each keeps its name. Numbers
    are written inline. Tangents t_k and adjoints r_k have the index of the state, and so have the adjoints
    (r_k)_1 and (r_k)_2 of reverse over forward. Where there are arrays, values have the names of the user's
    variables, and their tangents and adjoints have a dot or a bar.
    """

    def __init__(self, runs: Recurrences, graph: Graph) -> None:
        self.runs = runs
        self.index = states(runs.order, graph.input_nodes)
        self.rows = [n for n in runs.order if not n.op.literal]
        self.arrays = any(n.shape for n in self.rows)
        self.every: Values = dict.fromkeys(runs.order, 1)
        inputs = {n: name_of_input(s) for n, s in zip(graph.input_nodes, graph.inputs, strict=True)}
        self.named = inputs if self.arrays or len(inputs) > 1 else {}
        if self.arrays:
            held = Counter(v.name for v in graph.variables if v.scope is None)
            taken = {str(s) for s in graph.inputs}
            self.named |= {
                v.node: name_of(v.name)
                for v in graph.variables
                if v.scope is None and held[v.name] == 1 and v.name not in taken and v.node not in inputs
            }

    def latex(self, letter: str, node: Node) -> str:
        r"""``s_{3}``, ``t'_{3}``, ``\dot{r}_{3}``, ``\bar{P}``."""
        own = self.named.get(node)
        if letter == "s":
            return own or f"s_{{{self.index[node]}}}"
        if letter in PAIR:
            return f"(r_{{{own or self.index[node]}}})_{{{PAIR[letter]}}}"
        if own and self.arrays and letter in BARS:
            return accented(BARS[letter], own)
        base = letter.removesuffix("'")
        base = accented(r"\dot", DOTTED[base]) if base in DOTTED else base
        return f"{base}{chr(39) * letter.endswith(chr(39))}_{{{own or self.index[node]}}}"

    def math(self, letter: str, node: Node) -> Math:
        """The name, as text and typeset."""
        return read(self.latex(letter, node))

    def piece(self, letter: str, node: Node) -> Piece:
        """The name as a piece of a formula; a number is itself."""
        return typeset(node.op, node, ()) if node.op.literal else LatexAtom(self.latex(letter, node))

    def state(self, node: Node) -> str:
        """A step in terms of its arguments; an input as its name."""
        return write(typeset(node.op, node, [self.piece("s", a) for a in node.args]))

    def tangent(self, node: Node) -> str:
        """t_k in terms of the tangents of the arguments; empty for inputs, conditions and constants."""
        if not node.args or node not in self.runs.real:
            return ""
        return write(self.outputs("tangent", node, [("t", self.every)])[0])

    def adjoint(self, node: Node) -> str:
        """r_k as the sum over the uses of s_k."""
        if node is self.runs.output:
            return "1"
        return write(self.over_uses(node, "bars", [("r", self.every)]))

    def rules(self, node: Node) -> str:
        """The rules of the uses of a node."""
        users = [u for u in self.runs.order if u in self.runs.real and node in self.runs.free(u)]
        return "; ".join(dict.fromkeys(rule_name(u.op, u) for u in users))

    def outputs(self, kind: str, node: Node, groups: Groups) -> list[Piece]:
        """The outputs of a `LocalProgram` at a node.

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
            return LatexAtom("0")
        if isinstance(node.op, Scan):
            return LatexAtom(r"\text{by the steps of the loop}")
        made = written(output, pieces)
        if len(write(made)) > MAX_FORMULA:
            return LatexAtom(rf"\text{{by the rule of {type(node.op).__name__}}}")
        return made

    def over_uses(self, node: Node, kind: str, groups: Groups, half: int = 0) -> Piece:
        """An adjoint as the sum over the uses of a node; ``half`` 1 for the second of a dual program."""
        terms: list[Piece] = []
        for user in self.runs.order:
            free = self.runs.free(user)
            if node not in free or not any(user in groups[k][1] for k in OF_VALUE[kind]):
                continue
            bars = self.outputs(kind, user, groups)[half * len(free) :]
            terms += [bar for a, bar in zip(free, bars, strict=False) if a is node and bar != LatexAtom("0")]
        if not terms:
            return LatexAtom("0")
        made = total([1] * len(terms), terms, [bool(node.shape)] * len(terms))
        long = len(write(made)) > MAX_FORMULA
        return LatexAtom(rf"\text{{a sum over {len(terms)} uses}}") if long and len(terms) > 1 else made
