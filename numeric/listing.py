"""The plain listing of a program: each line of code beside its formula in the symbols of the model."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import sympy

from symad.core.graph import Graph
from symad.core.identifiers import visible
from symad.display.latex import escaped, latex
from symad.display.typesetting import contractions  # noqa: F401  (register answers)
from symad.display.typesetting.graphs import Latex
from symad.display.typesetting.pieces import (
    Entries,
    LatexAtom,
    Piece,
    Summand,
    as_term,
    name_of,
    total,
    write,
)
from symad.display.typesetting.rules import Shaped, Shown, interval, subscript, typeset
from symad.numeric.modules.module_text import Names
from symad.numeric.passes.algebra.definitions import write_definitions
from symad.numeric.passes.memory_layout.packed_entries import Pack
from symad.numeric.plain import plain_program
from symad.numeric.program.expressions import (
    Compute,
    Expression,
    Index,
    NewAxis,
    Position,
    Read,
    StepNumber,
    Value,
)
from symad.numeric.program.loops import FindRoot, Loop
from symad.numeric.program.statements import Allocate, Assign, Block, Comment, Statement, Store
from symad.numeric.targets.module import is_scalar
from symad.numeric.targets.statements import lines
from symad.numeric.targets.target import NUMPY
from symad.numeric.targets.writer import Writer


@dataclass(frozen=True)
class ListingRow:
    """A line of code, its depth in nested loops, and its formula."""

    code: str
    formula: str
    depth: int = 0


@typeset.dispatch
def typeset_pack(op: Pack, node: Shaped, args: Any) -> Shown:
    """The entries at their positions."""
    return Entries(tuple(args), op.shape)


class Formulas:
    """Formulas of expressions, with the names that a writer of code gave to values."""

    def __init__(self, writer: Writer) -> None:
        """``writer`` must have given every value a name."""
        self.writer = writer

    def name(self, value: Value) -> LatexAtom:
        """The symbol of a value."""
        return LatexAtom(name_of(self.writer.name(value)))

    def piece(self, expression: Expression) -> Piece:
        """The piece of an expression."""
        if isinstance(expression, Read):
            return self.name(expression.value)
        if isinstance(expression, StepNumber):
            return LatexAtom(self.position(expression.position), loose=True)
        if isinstance(expression, Index):
            return self.part(expression)
        assert isinstance(expression, Compute)
        args = tuple([self.piece(a) for a in expression.args])
        made: Piece = typeset(expression.op, expression, args)
        return made

    def latex(self, expression: Expression) -> str:
        """The LaTeX of an expression."""
        return write(self.piece(expression))

    def part(self, expression: Index) -> Piece:
        """An element, a row or a part of an array; new axes are not shown."""
        lengths = iter(expression.array.shape)
        places = []
        for place in expression.places:
            if isinstance(place, NewAxis):
                continue
            length = next(lengths)
            if isinstance(place, Position):
                places.append(self.position(place))
            else:
                places.append(interval(place.start, place.count, place.step, length))
        while places and places[-1] == r"\cdot":
            places.pop()
        return subscript(self.piece(expression.array), places) if places else self.piece(expression.array)

    def position(self, position: Position) -> str:
        """A position on an axis: t, t+1, T-1-t."""
        offset = sympy.sympify(position.offset, strict=True)
        if position.index is None:
            return latex(offset)
        index = as_term(self.name(position.index), False)
        signed = Summand(index.coefficient * position.sign, index.numbers)
        if offset == 0:
            return write(signed)
        constant: Piece = (
            Summand(offset.p) if offset.is_Integer else LatexAtom(latex(offset), loose=not offset.is_Atom)
        )
        parts = (constant, signed) if position.sign < 0 else (signed, constant)
        return write(total((1, 1), parts, (False, False)))


def rows_of(graph: Graph) -> list[ListingRow]:
    """The rows of a graph's plain listing, results last."""
    program = plain_program(write_definitions(graph))
    names = Names()
    names.unique(program.name)
    writer = Writer(NUMPY, "float64", names)
    inputs = [writer.name(value) for value in program.inputs]
    writer.batch = inputs[0] if is_scalar(program) else ""
    formulas = Formulas(writer)
    made = list(block_rows(program.statements, writer, formulas, 0))
    results = [writer.text(r).text for r in program.results]
    pieces = [formulas.latex(r) for r in program.results]
    return [*made, ListingRow(f"return {', '.join(results)}", ",\\; ".join(pieces))]


def block_rows(block: Block, writer: Writer, formulas: Formulas, depth: int) -> Iterator[ListingRow]:
    """The rows of statements, in order."""
    for statement in block:
        if not isinstance(statement, (Comment, Allocate)):
            yield from statement_rows(statement, writer, formulas, depth)


def statement_rows(
    statement: Statement, writer: Writer, formulas: Formulas, depth: int
) -> Iterator[ListingRow]:
    """The rows of one statement."""
    if isinstance(statement, Loop):
        yield from loop_rows(statement, writer, formulas, depth)
        return
    *_, code = lines(statement, writer)
    if isinstance(statement, Assign):
        text = f"{formulas.name(statement.value).latex} = {formulas.latex(statement.expression)}"
    elif isinstance(statement, Store):
        place = subscript(formulas.name(statement.array), [formulas.position(statement.position)])
        text = f"{write(place)} = {formulas.latex(statement.expression)}"
    elif isinstance(statement, FindRoot):
        unknown, value = formulas.name(statement.unknown).latex, formulas.name(statement.value).latex
        yield from block_rows(statement.body, writer, formulas, depth + 1)
        text = rf"{value} = {unknown} \text{{ with }} {formulas.latex(statement.residual)} = 0"
    else:
        text = ""
    yield ListingRow(code, text, depth)


def loop_rows(loop: Loop, writer: Writer, formulas: Formulas, depth: int) -> Iterator[ListingRow]:
    """The rows of a loop: initial values, steps, and the values that each step replaces."""
    for c in loop.carried:
        name = formulas.name(c.value).latex
        code = f"{writer.name(c.value)} = {writer.text(c.initial)}"
        yield ListingRow(code, rf"{name} \leftarrow {formulas.latex(c.initial)}", depth)
    with writer.index(loop.index) as index:
        steps = f"range({writer.dim(loop.count)})"
        ends = ["0", latex(sympy.sympify(loop.count - 1, strict=True))]
        first, last = ends[::-1] if loop.backwards else ends
        code = f"for {index} in {f'reversed({steps})' if loop.backwards else steps}:"
        yield ListingRow(code, rf"{name_of(index)} = {first}, \dots, {last}", depth)
        yield from block_rows(loop.body, writer, formulas, depth + 1)
        for c in loop.carried:
            if c.next != Read(c.value):
                name = formulas.name(c.value).latex
                code = f"{writer.name(c.value)} = {writer.text(c.next)}"
                yield ListingRow(code, rf"{name} \leftarrow {formulas.latex(c.next)}", depth + 1)


# ---- setting --------------------------------------------------------------------------------------


def to_markdown(graph: Graph) -> str:
    """A Markdown table of code and formulas."""
    table = ["| code | formula |", "|:--|:--|"]
    for row in rows_of(graph):
        code = f"{' ' * 2 * row.depth}{row.code}".replace("|", "\\|")
        quotes = "``" if "`" in code else "`"
        formula = row.formula.replace("|", r"\vert ")
        table.append(f"| {indent(row)}{quotes}{code.strip()}{quotes} | ${formula}$ |")
    return visible("\n".join(table) + "\n")


def indent(row: ListingRow) -> str:
    """Spaces in front of the lines of a loop."""
    return "&emsp;" * row.depth


def to_latex(graph: Graph) -> Latex:
    """A LaTeX tabular of code and formulas; it needs the package amsmath only."""
    body = [rf"{_code(row)} & $\displaystyle {row.formula}$ \\" for row in rows_of(graph)]
    return Latex("\n".join([r"\begin{tabular}{ll}", *map(visible, body), r"\end{tabular}"]))


def _code(row: ListingRow) -> str:
    space = rf"\hspace*{{{row.depth}em}}" if row.depth else ""
    return rf"{space}\texttt{{{escaped(row.code)}}}"
