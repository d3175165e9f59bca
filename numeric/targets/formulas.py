"""Expressions as mathematics, for comments: h_{t+1} = tanh(W h_t + b).

Formulas are a target like the others, with rules of their own for products and functions. An op without a
rule gets no comment.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

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
)
from symad.numeric.program.loops import Loop
from symad.numeric.program.statements import Store
from symad.numeric.targets.scalars import Written, exponent_of, write
from symad.numeric.targets.target import Level, Target, Text, Texts
from symad.numeric.targets.writer import Writer
from symad.ops.basic.arithmetic import Mul
from symad.ops.basic.contraction import Einsum
from symad.ops.elementwise.apply import Apply
from symad.ops.elementwise.powers import Pow


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
