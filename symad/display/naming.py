"""Names of states, tangents and adjoints, and the formulas between them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import sympy

from symad.core.graph import Node, rebuild
from symad.core.questions import sympy_form
from symad.display.formulas import expression, formula
from symad.display.labels import is_literal
from symad.display.latex import latex
from symad.display.local_derivatives import Program
from symad.display.picture import states
from symad.display.recurrences import Recurrences
from symad.display.tables import Math
from symad.ops.basic.sources import input_node
from symad.tracing.into_sympy.nodes import nodes_to_sympy


class Names:
    """The names of a graph's values: s_0 = x for a single input, otherwise inputs keep theirs.

    Then s_1, s_2, ... in order; t and r have the index of s, or the input's name. Numbers are
    written inline.
    """

    def __init__(self, runs: Recurrences, inputs: Sequence[Node]) -> None:
        self.runs = runs
        self.inputs = inputs
        self.literals = {n: sympy_form(n.op, n, ()) for n in runs.order if is_literal(n)}
        self.index = states(runs.order, inputs)
        self.rows = [n for n in runs.order if n not in self.literals]

    def of(self, letter: str, node: Node) -> sympy.Expr:
        """The symbol of a value: ``s_3``, ``t_3``, ``r_3``, or a literal number."""
        if node in self.literals:
            return self.literals[node]
        if letter == "s" and node in self.inputs and len(self.inputs) > 1:
            return sympy.Symbol(self.index[node], real=True)
        return sympy.Symbol(f"{letter}_{self.index[node]}", real=True)

    def math(self, letter: str, node: Node) -> Math:
        """The symbol, typeset."""
        return expression(self.of(letter, node))

    def state(self, node: Node) -> Math:
        """The formula of a state in terms of others."""
        return formula(node, [self.of("s", a) for a in node.args])

    def tangent(self, node: Node) -> Math:
        """t_k in terms of the tangents of the arguments."""
        free = self.runs.free(node)
        if not node.args or node not in self.runs.real:
            return Math("", "")
        if node.shape or any(a.shape for a in node.args):
            return Math("J t", "J t")
        program = self.runs.program("tangent", node, [1] * len(free))
        names = {g: self.of("t", a) for g, a in zip(program.groups[0], free, strict=True)}
        return expression(self._written(program, node, names)[0])

    def adjoint(self, node: Node) -> Math:
        """r_k as the sum over the uses of s_k."""
        if node is self.runs.output:
            return Math("1", "1")
        users = [n for n in self.runs.order if node in self.runs.free(n)]
        if node.shape or any(u.shape for u in users):
            names = [self.of("r", u) for u in users]
            return Math(
                "from " + ", ".join(map(str, names)),
                r"\text{from } " + ", ".join(map(latex, names)),
            )
        terms = []
        for user in users:
            program = self.runs.program("bars", user, [1])
            bars = self._written(program, user, {program.groups[0][0]: self.of("r", user)})
            pairs = zip(self.runs.free(user), bars, strict=True)
            terms += [bar for arg, bar in pairs if arg is node]
        return expression(sympy.Add(*terms))

    def _written(self, program: Program, node: Node, names: dict[Any, Any]) -> list[Any]:
        """The outputs of a program in terms of the names of its values."""
        value = input_node(sympy.Dummy(real=True))
        present = [o for o in program.outputs if isinstance(o, Node)]
        shown = iter(nodes_to_sympy(rebuild(present, {program.y: value})))
        table = {value: self.of("s", node), **names}
        args = zip(program.args, self.runs.free(node), strict=True)
        table.update({slot: self.of("s", a) for slot, a in args})
        symbols = {n.op.symbol: v for n, v in table.items()}
        return [
            next(shown).xreplace(symbols) if isinstance(o, Node) else sympy.S.Zero for o in program.outputs
        ]
