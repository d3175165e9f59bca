"""Statements as lines of Python."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from symad.core.questions import question
from symad.errors import LoweringError
from symad.numeric.modules.module_text import one_line
from symad.numeric.program.expressions import (
    Compute,
    Expression,
    Index,
    Place,
    Position,
    Read,
    Span,
    Value,
    is_number,
    literal,
    values_read,
)
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
from symad.numeric.targets.scalars import Written, exponent_of, write
from symad.numeric.targets.target import Level, Target, Text, Texts
from symad.numeric.targets.writer import Writer
from symad.ops.basic.arithmetic import Mul
from symad.ops.basic.contraction import Einsum
from symad.ops.elementwise.apply import Apply
from symad.ops.elementwise.powers import Pow

# ---- expressions as mathematics, for comments ----------------------------------------------------

# Formulas are a target like the others, with rules of their own for products and functions. An op without a
# rule gets no comment.


@dataclass(frozen=True)
class MathText(Target):
    """Mathematics for readers, in one line of text."""


FORMULA = MathText("formula", {}, "∞", "nan")

MAX_FORMULAS = 3
"""A comment shows at most this many recurrences of a loop; more would not be easier to read than the code.

Origin: it bounds the length of a comment.
"""

MAX_LENGTH = 100
"""The longest comment, in characters.

Origin: it bounds the length of a line.
"""


def recurrence(loop: Loop, writer: Writer) -> list[str]:
    """A comment with the recurrences of a loop; none if it is too long, or an op has no formula."""
    stored = [(s.array, s.position, s.expression) for s in loop.body if isinstance(s, Store)]
    if len(stored) < len(loop.body) or not 0 < len(stored) + len(loop.carried) <= MAX_FORMULAS:
        return []
    mathematics = FormulaWriter(writer)
    try:
        lines = [f"{mathematics.element(v, (p,))} = {mathematics.text(e)}" for v, p, e in stored]
        lines += [f"{writer.name(c.value)} = {mathematics.text(c.next)}" for c in loop.carried]
    except LoweringError:
        return []
    ends = ["0", writer.dim(loop.count - 1)]
    first, last = ends[::-1] if loop.backwards else ends
    text = f"{',   '.join(lines)},   {writer.name(loop.index)} = {first} … {last}"
    return ["", f"# {one_line(text)}"] if len(text) <= MAX_LENGTH else []


class FormulaWriter(Writer):
    """Writes formulas with the names of another writer."""

    def __init__(self, writer: Writer) -> None:
        super().__init__(FORMULA, writer.dtype, writer.names)
        self.named = writer.named

    def text(self, expression: Expression) -> Text:
        """The formula of an expression; elements of arrays have their indices as subscripts."""
        if isinstance(expression, Index) and isinstance(expression.array, Read):
            return Text(self.element(expression.array.value, expression.places))
        if isinstance(expression, Index):
            raise LoweringError("an element of what has no name")
        return super().text(expression)

    def element(self, value: Value, places: Sequence[Place]) -> str:
        """An element such as ``h_t``, ``h_{t+1}`` or ``h_{t,0}``.

        Raises:
            LoweringError: the places are a part of the array, not an element or a row.
        """
        positions = [p for p in places if isinstance(p, Position)]
        rest = list(zip(places[len(positions) :], value.shape[len(positions) :], strict=False))
        if not all(isinstance(p, Span) and p.is_whole(length) for p, length in rest):
            raise LoweringError("a part of an array")
        below = ",".join(self.below(p) for p in positions)
        return f"{self.name(value)}_{below if len(below) == 1 else f'{{{below}}}'}"

    def below(self, position: Position) -> str:
        """A position as a subscript, without spaces."""
        offset = self.dim(position.offset)
        if position.index is None:
            return offset
        name = self.name(position.index)
        if position.sign < 0:
            return f"{offset}-{name}"
        return name if position.offset == 0 else f"{name}+{offset}"


@write.dispatch
def write_product(op: Mul, target: MathText, node: Compute, args: Texts, writer: Writer) -> Written:
    over = [a.inside(Level.SIGN) for p, a in zip(op.powers, args, strict=True) if p == 1]
    under = [a.inside(Level.POWER) for p, a in zip(op.powers, args, strict=True) if p == -1]
    return Text("/".join([" ".join(over) or "1", *under]), Level.PRODUCT)


@write.dispatch
def write_power(op: Pow, target: MathText, node: Compute, args: Texts, writer: Writer) -> Written:
    raised = {2: "²", 3: "³"}.get(exponent_of(node), f"^{args[1].inside(Level.ATOM)}")
    return Text(f"{args[0].inside(Level.ATOM)}{raised}", Level.POWER)


@write.dispatch
def write_function(op: Apply, target: MathText, node: Compute, args: Texts, writer: Writer) -> Written:
    return Text(f"{op.head.__name__}({', '.join(a.text for a in args)})")


@write.dispatch
def write_matrix_product(op: Einsum, target: MathText, node: Compute, args: Texts, writer: Writer) -> Written:
    """W h, Wᵀ h or hᵀ h; other contractions have no short formula."""
    if len(op.inputs) != 2 or any(len(set(labels)) != len(labels) for labels in op.inputs):
        raise LoweringError("no product of two matrices")
    left, right = op.inputs
    summed = [label for label in left if label in right and label not in op.output]
    rows, columns = ([x for x in labels if x not in summed] for labels in (left, right))
    if len(summed) != 1 or len(left) > 2 or len(right) > 2 or [*rows, *columns] != list(op.output):
        raise LoweringError("no product of two matrices")
    first = args[0].inside(Level.ATOM) + ("ᵀ" if left[-1] != summed[0] or not op.output else "")
    second = args[1].inside(Level.ATOM) + ("ᵀ" if right[0] != summed[0] else "")
    return Text(f"{first} {second}", Level.PRODUCT)


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
