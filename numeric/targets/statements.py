"""Statements as lines of Python."""

from __future__ import annotations

from typing import Any, TypeAlias

from symad.core.questions import question
from symad.numeric.expressions.numbers import is_number, literal
from symad.numeric.program.expressions import Expression, Read, Value, values_read
from symad.numeric.program.loops import FindRoot, Loop
from symad.numeric.program.statements import (
    Allocate,
    Assign,
    Block,
    Comment,
    Statement,
    Store,
    every_statement,
)
from symad.numeric.targets import helpers
from symad.numeric.targets.formulas import recurrence
from symad.numeric.targets.target import Level, Text
from symad.numeric.targets.writer import Writer

Lines: TypeAlias = "list[str]"


def lines_of(block: Block, writer: Writer) -> list[str]:
    """The lines of a block; between two lines there is at most one empty line."""
    made: list[str] = []
    for statement in block:
        made += (line for line in lines(statement, writer) if line or (made and made[-1]))
    return made if not made or made[-1] else made[:-1]


def indented(block: list[str]) -> list[str]:
    """Lines inside a loop or a function."""
    return [f"    {line}" if line else "" for line in block]


@question
def lines(statement: Statement, writer: Writer) -> Any:
    """The lines of one statement."""


@lines.dispatch
def comment_lines(statement: Comment, writer: Writer) -> Lines:
    """A comment after an empty line, so that blocks stand out."""
    return ["", f"# {statement.text}"]


@lines.dispatch
def assign_lines(statement: Assign, writer: Writer) -> Lines:
    expression = writer.text(statement.expression)
    return [f"{writer.name(statement.value)} = {expression}"]


@lines.dispatch
def allocate_lines(statement: Allocate, writer: Writer) -> Lines:
    made = "zeros" if statement.zeros else "empty"
    shape = writer.shape(statement.value.shape)
    return [f"{writer.name(statement.value)} = np.{made}({shape}{writer.float_type()})"]


@lines.dispatch
def store_lines(statement: Store, writer: Writer) -> Lines:
    place = writer.position(statement.position)
    return [f"{writer.name(statement.array)}[{place}] = {writer.text(statement.expression)}"]


@lines.dispatch
def loop_lines(statement: Loop, writer: Writer) -> Lines:
    """Initial values, the body, next values; next values that depend on each other share one line."""
    made = [f"{writer.name(c.value)} = {_state(c.initial, writer)}" for c in statement.carried]
    steps = f"range({writer.dim(statement.count)})"
    with writer.index(statement.index) as index:
        comment = recurrence(statement, writer)
        body = lines_of(statement.body, writer)
        body += _replaced(statement, writer)
    over = f"reversed({steps})" if statement.backwards else steps
    counter = index if statement.index in _positions_read(statement) else "_"
    return [*comment, *made, f"for {counter} in {over}:", *indented(body or ["pass"]), ""]


def _positions_read(statement: Loop) -> set[Value | None]:
    """The values that the body of a loop reads, and the indices of its stores."""
    inner = [*every_statement(statement.body)]
    read = {v for s in inner for e in s.expressions for v in values_read(e)}
    read |= {v for c in statement.carried for v in values_read(c.next)}
    return {*read, *(s.position.index for s in inner if isinstance(s, Store))}


def _replaced(statement: Loop, writer: Writer) -> list[str]:
    moving = [c for c in statement.carried if c.next != Read(c.value)]
    values = [c.value for c in moving]
    read_later = [set(values_read(c.next)) for c in moving]
    tangled = any(v in later for k, v in enumerate(values) for later in read_later[k + 1 :])
    names = [writer.name(v) for v in values]
    texts = [_state(c.next, writer) for c in moving]
    if tangled:
        return [f"{', '.join(names)} = {', '.join(t.inside(Level.CONDITION) for t in texts)}"]
    return [f"{name} = {text}" for name, text in zip(names, texts, strict=True)]


def _state(expression: Expression, writer: Writer) -> Text:
    """A state of a loop; a number has the dtype, which results have that show it."""
    text = writer.text(expression)
    number = is_number(expression) and not isinstance(literal(expression), bool)
    return Text(f"{writer.type_text}({text})") if number else text


@lines.dispatch
def root_lines(statement: FindRoot, writer: Writer) -> Lines:
    """The residual and its derivative as a function, then Newton's method for it."""
    function = writer.names.unique("equations")
    unknown = writer.name(statement.unknown)
    body = lines_of(statement.body, writer)
    result = f"return {writer.text(statement.residual)}, {writer.text(statement.slope)}"
    newton = writer.helper(helpers._newton)
    return [
        f"def {function}({unknown}):",
        *indented([*body, result]),
        f"{writer.name(statement.value)} = {newton}({function}, {writer.text(statement.guess)})",
    ]
