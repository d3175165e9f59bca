"""Values that are read once are written where they are read, as long as a line stays readable.

Views are written where they are read however often. Values that a person has a name for keep their line.
"""

from __future__ import annotations

from symad.numeric.passes.memory_layout.packed_entries import Pack
from symad.numeric.program.expressions import (
    Compute,
    Expression,
    Index,
    Read,
    Value,
    rewrite,
    values_read,
    walk,
)
from symad.numeric.program.loops import Carried, Loop
from symad.numeric.program.program import Program
from symad.numeric.program.statements import Assign, Block, Statement, change_blocks, every_statement
from symad.numeric.program.uses import Uses, uses_of
from symad.numeric.program_passes.numbers import is_number
from symad.numeric.program_passes.views import is_view, joined, viewed
from symad.ops.arrays.contraction import Einsum
from symad.ops.arrays.shaping import Broadcast, Reshape, Slice
from symad.ops.arrays.sources import Source
from symad.ops.arrays.stacking import Concatenate, Stack
from symad.ops.elementwise.arithmetic import ElementwiseOp
from symad.ops.fused.softmax import ExponentialOp, SoftmaxTangent

MAX_OPERATIONS_A_LINE = 5
"""Operations that one line holds. By eye: the listings of docs/listings.md read well so."""

MAX_READS_A_LINE = 7
"""Names in one line, for the same reason."""


def inline(program: Program) -> Program:
    """The program with such values written where they are read."""
    uses = uses_of(program)
    shown = {v for result in program.results for v in values_read(result)}
    made = change_blocks(program.statements, lambda block: _Block(block, uses, shown).done())
    return program.with_statements(made)


def operations(expression: Expression) -> int:
    """How many operations a reader sees; views and constants do not count."""
    counted = [e for e in walk(expression) if isinstance(e, Compute) and not is_view(e)]
    return sum(max(1, len(e.args) - 1) for e in counted if not isinstance(e.op, Source))


def reads(expression: Expression) -> int:
    """How many names a reader sees."""
    return sum(isinstance(e, Read) for e in walk(expression))


def fits(expression: Expression) -> bool:
    """Whether an expression is no more than a line."""
    return operations(expression) <= MAX_OPERATIONS_A_LINE and reads(expression) <= MAX_READS_A_LINE


class _Block:
    """One block, statement by statement; what may be written later waits."""

    def __init__(self, block: Block, uses: Uses, shown: set[Value]) -> None:
        self.uses = uses
        self.shown = shown
        self.block = block
        self.waiting: dict[Value, Expression] = {}
        self.made: list[Statement] = []

    def done(self) -> Block:
        """The block with all that could be inlined in it."""
        inner = [e for s in self.block for deeper in every_statement(s.block) for e in deeper.expressions]
        nested = {v for e in inner for v in values_read(e)}
        for statement in self.block:
            if isinstance(statement, Assign):
                expression = self.filled(statement.expression)
                if self.may_wait(statement.value, expression, nested):
                    self.waiting[statement.value] = expression
                else:
                    self.made.append(Assign(statement.value, expression))
                continue
            statement = next_in_place(statement, self.uses) if isinstance(statement, Loop) else statement
            made = statement.with_expressions(self.filled)
            self.flush_changed(statement)
            self.made.append(made)
        for value in list(self.waiting):
            self.flush(value)
        return tuple(self.made)

    def may_wait(self, value: Value, expression: Expression, nested: set[Value]) -> bool:
        """Whether a value need not have a line of its own."""
        if value.named or value in self.shown or value in nested:
            return False
        if costs_nothing(expression):
            return True
        return self.uses.alone(value)

    def filled(self, expression: Expression) -> Expression:
        """The expression with waiting values written into it, innermost first, while it stays a line."""

        def fill(part: Expression) -> Expression:
            if not isinstance(part, Compute):
                return part
            return _with_args(part, tuple(self.opened(arg, part) for arg in part.args))

        made = rewrite(expression, fill)
        if isinstance(made, Read) and made.value in self.waiting:
            found = self.waiting[made.value]
            if self.uses.alone(made.value):
                del self.waiting[made.value]
            return found
        made = self.rows(made)
        self.flush_read(made)
        return made

    def rows(self, expression: Expression) -> Expression:
        """Rows of waiting views."""

        def fill(part: Expression) -> Expression:
            inner = part.array if isinstance(part, Index) else None
            if (
                isinstance(part, Index)
                and isinstance(inner, Read)
                and is_view(self.waiting.get(inner.value, inner))
            ):
                return joined(Index(self.waiting[inner.value], part.places))
            return part

        return rewrite(expression, fill)

    def opened(self, arg: Expression, user: Compute) -> Expression:
        """An argument, or what it stands for if that fits into its user."""
        if not isinstance(arg, Read) or arg.value not in self.waiting:
            return arg
        inner = self.waiting[arg.value]
        if costs_nothing(inner):
            return inner
        others = [a for a in user.args if a is not arg]
        whole = Compute(user.op, (inner, *others), user.shape)
        if inlines(inner) and accepts(user, inner) and fits(whole):
            del self.waiting[arg.value]
            return inner
        return arg

    def flush(self, value: Value) -> None:
        """Give a waiting value its own line after all."""
        expression = self.waiting.pop(value)
        self.flush_read(expression)
        self.made.append(Assign(value, expression))

    def flush_read(self, expression: Expression) -> None:
        """Give lines of their own to the waiting values that an expression reads, in the order of reading."""
        for value in dict.fromkeys(values_read(expression)):
            if value in self.waiting:
                self.flush(value)

    def flush_changed(self, statement: Statement) -> None:
        """Values that read what a statement changes are computed before it."""
        inner = (statement, *every_statement(statement.block))
        changed = {v for s in inner for v in s.writes}
        for value, expression in list(self.waiting.items()):
            if value in self.waiting and changed & set(values_read(expression)):
                self.flush(value)


def next_in_place(loop: Loop, uses: Uses) -> Loop:
    """A loop whose carried values are computed where they are replaced, at the end of the body."""
    body, carried = list(loop.body), []
    for c in loop.carried:
        found = next((s for s in body if isinstance(s, Assign) and c.next == Read(s.value)), None)
        if found is not None and not found.value.named and uses.alone(found.value):
            later = body[body.index(found) + 1 :]
            changed = {v for s in later for inner in (s, *every_statement(s.block)) for v in inner.writes}
            if not changed & set(values_read(found.expression)):
                body.remove(found)
                c = Carried(c.value, c.initial, found.expression)
        carried.append(c)
    return Loop(loop.index, loop.count, loop.backwards, tuple(carried), tuple(body))


def _with_args(part: Compute, args: tuple[Expression, ...]) -> Compute:
    return part if args == part.args else Compute(part.op, args, part.shape)


def costs_nothing(expression: Expression) -> bool:
    """Whether an expression may stand wherever it is read: a view of a name, or a short number such as √d."""
    if is_number(expression):
        return operations(expression) <= 2
    return is_view(expression) and isinstance(viewed(expression), Read)


def inlines(expression: Expression) -> bool:
    """Whether an operation reads well inside of another."""
    if not isinstance(expression, Compute):
        return True
    return isinstance(expression.op, (ElementwiseOp, Einsum, Broadcast, Slice, Reshape, Source))


def accepts(user: Compute, inner: Expression) -> bool:
    """Whether an operation reads well with another inside: sums in products, products in functions."""
    if isinstance(user.op, ElementwiseOp):
        return True
    if isinstance(user.op, SoftmaxTangent):  # which is written with both of its arguments twice
        return False
    return (
        isinstance(user.op, (Einsum, ExponentialOp, Slice, Reshape, Broadcast, Concatenate, Stack, Pack))
        and operations(inner) <= 3
    )
