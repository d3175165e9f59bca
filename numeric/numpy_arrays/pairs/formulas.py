"""Scalar formulas as statements on arrays, by the one printer of scalar expressions.

A value gets a name if a function computes it or if it is used more than once; sums and products are written
where they are used.
"""

from __future__ import annotations

from collections import Counter
from copy import copy
from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING

import sympy as sp

from symad.core.graph import Node, topological
from symad.numeric.expressions.folding import multiplied
from symad.numeric.pairs.scalar_formulas import ScalarFormulas, check_known
from symad.numeric.pairs.scores import LOOPS, Load, S, Score
from symad.numeric.pairs.stable_sympy import FloorDivide
from symad.numeric.program.expressions import Compute, Expression, Read, Value
from symad.numeric.targets.target import LibraryFunction, Text
from symad.ops.basic.arithmetic import Add, Mul
from symad.ops.basic.sources import Constant, constant, input_node
from symad.ops.elementwise.powers import Pow
from symad.ops.elementwise.selection import Condition

if TYPE_CHECKING:
    from symad.numeric.numpy_arrays.writer import ArrayWriter

REPEATING = {constant(3), constant(4), constant(Fraction(3, 2))}
"""Exponents of powers that are products, in which the base occurs more than once."""

INSIDE_OTHERS = (Add, Mul, Pow, Condition)
"""Ops that are written inside the expression that uses them, if there is one."""


class ExpressionText:
    """The statements of one generated function; `write` returns the texts of expressions."""

    def __init__(
        self, printer: ArrayWriter, taken: set[str], names: dict[sp.Symbol, str], levels: dict[sp.Symbol, int]
    ) -> None:
        """``names`` are the names of symbols; new names differ from those in ``taken``.

        ``levels`` orders the factors of products: large arrays, with the higher levels, come last.
        """
        self.printer = printer
        self.taken = taken
        self.lines: list[str] = []
        self.formulas = ScalarFormulas(levels)
        self.values: dict[Node, Expression] = {}
        self.writer, target = copy(printer), printer.target
        functions = {**target.functions, FloorDivide: LibraryFunction("numpy", "floor_divide")}
        self.writer.target = replace(target, functions=functions)
        for symbol, name in names.items():
            self.know(symbol, name)

    def know(self, symbol: sp.Symbol, name: str) -> None:
        """Use a text for a symbol."""
        value = Value("", ())
        self.writer.named[value] = name
        self.values[input_node(symbol)] = Read(value)

    def write(self, *expressions: sp.Basic) -> list[Text]:
        """The texts of the expressions once `lines` have run."""
        nodes = self.formulas.traced(expressions)
        check_known(nodes, self.values)
        order = topological(nodes)
        uses = Counter([*nodes, *(a for n in order for a in n.args)])
        uses.update(n.args[0] for n in order if isinstance(n.op, Pow) and n.args[1] in REPEATING)
        for node in order:
            if node not in self.values:
                self.values[node] = self._value(node, uses[node])
        return [self.writer.text(self.values[node]) for node in nodes]

    def _value(self, node: Node, uses: int) -> Expression:
        """The expression of a node in names, or its name."""
        made = multiplied(Compute(node.op, tuple(self.values[a] for a in node.args), ()))
        if isinstance(node.op, Constant) or (uses == 1 and isinstance(node.op, INSIDE_OTHERS)):
            return made
        value = Value("", ())
        self.writer.named[value] = self.keep(str(self.writer.text(made)))
        return Read(value)

    def keep(self, text: str) -> str:
        """The name of a value, whose statement is added."""
        number = len(self.lines) + 1
        while f"f{number}" in self.taken:
            number += 1
        name = f"f{number}"
        self.taken.add(name)
        self.lines.append(f"{name} = {text}")
        return name


class FormulaText(ExpressionText):
    """The statements for the formulas of a score, including their array reads."""

    def __init__(self, score: Score, printer: ArrayWriter, taken: set[str]) -> None:
        """``taken`` are the names of arguments, which new names must not repeat."""
        names = {s: str(s) for s in (S, *LOOPS)} | {symbol: name for name, symbol in score.scalars}
        levels = {S: 2} | {s: 1 for s in (*LOOPS, *(load.symbol for load in score.loads))}
        super().__init__(printer, taken, names, levels)
        self.score = score
        self.places: dict[sp.Symbol, list[str]] = {}

    def write(self, *expressions: sp.Basic) -> list[Text]:
        """The texts, after the array reads that the expressions depend on are written."""
        for load in self.score.reads(*expressions):
            self._read(load)
        return super().write(*expressions)

    def place(self, symbol: sp.Symbol) -> tuple[str, list[str]]:
        """The parameter that a differentiable symbol reads, and the texts of the read's indices."""
        for name, scalar in self.score.scalars:
            if scalar is symbol:
                return name, []
        load = next(r for r in self.score.loads if r.symbol is symbol)
        self._read(load)
        return load.name, self.places[symbol]

    def is_checked_by_numpy(self, index: sp.Expr) -> bool:
        """Whether an index needs no clipping: it is a number, or a position, and no pair is hidden."""
        return bool(index.is_Integer or (index in LOOPS and self.score.mask == sp.true))

    def _read(self, load: Load) -> None:
        """Write one array read; the position of a hidden pair may be outside, and is clipped."""
        if load.symbol in self.places:
            return
        np_, indices = self.printer.np, []
        for axis, index in enumerate(load.index):
            value = self.integers(index)
            last = f"{load.name}.shape[{axis}] - 1"
            plain = self.is_checked_by_numpy(index)
            indices.append(value if plain else self.keep(f"{np_}.clip({value}, 0, {last})"))
        self.places[load.symbol] = indices
        kept = f"{load.name}[{', '.join(indices)}]"
        integer = bool(load.symbol.is_integer)
        self.know(load.symbol, self.keep(f"{kept}.astype({np_}.int64)" if integer else kept))

    def integers(self, index: sp.Expr) -> str:
        """The text of an index; its value has an integer type."""
        (text,), (node,) = self.write(index), self.formulas.traced([index])
        if isinstance(node.op, Constant) or self.formulas.kinds[node] == "int":
            return str(text)
        return f"{self.printer.np}.asarray({text}).astype({self.printer.np}.int64)"
