"""Inlines values that are read once, as long as the line stays readable.

Views are inlined however often they are read. Named values keep their line.
"""

from __future__ import annotations

from symad.numeric.expressions.views import is_view, joined, unit_axes, viewed
from symad.numeric.passes.memory_layout.packed_entries import Pack
from symad.numeric.program.expressions import (
    Compute,
    Expression,
    Index,
    NewAxis,
    Read,
    Value,
    is_number,
    op_in,
    rewrite,
    values_read,
    walk,
)
from symad.numeric.program.loops import Carried, Loop
from symad.numeric.program.program import Program
from symad.numeric.program.statements import Assign, Block, Statement, change_blocks, every_statement
from symad.numeric.program.uses import Uses, uses_of
from symad.ops.arrays.softmax import ExponentialOp
from symad.ops.arrays.stacking import Concatenate, Stack
from symad.ops.basic.arithmetic import ElementwiseOp
from symad.ops.basic.contraction import Einsum
from symad.ops.basic.shaping import Broadcast, Reshape, Slice
from symad.ops.basic.sources import Source

MAX_OPERATIONS_A_LINE = 5
"""Operations in one line. Set by eye: with it, the listings of docs/listings.md read well."""

MAX_READS_A_LINE = 7
"""Reads of values in one line. Set by eye as well."""


def inline(program: Program) -> Program:
    """The program with values inlined."""
    uses = uses_of(program)
    shown = {v for result in program.results for v in values_read(result)}
    made = change_blocks(program.statements, lambda block: _InlinedBlock(block, uses, shown).done())
    return program.with_statements(made)


def operations(expression: Expression) -> int:
    """The number of operations in the text of an expression, without views and constants."""
    counted = [e for e in walk(expression) if isinstance(e, Compute) and not is_view(e)]
    return sum(max(1, len(e.args) - 1) for e in counted if not isinstance(e.op, Source))


def reads(expression: Expression) -> int:
    """The number of reads of values in the text of an expression."""
    return sum(isinstance(e, Read) for e in walk(expression))


def fits(expression: Expression) -> bool:
    """Whether an expression fits into one line."""
    return operations(expression) <= MAX_OPERATIONS_A_LINE and reads(expression) <= MAX_READS_A_LINE


class _InlinedBlock:
    """Inlines in one block, statement by statement. Values that may be inlined wait in ``waiting``."""

    def __init__(self, block: Block, uses: Uses, shown: set[Value]) -> None:
        self.uses = uses
        self.shown = shown
        self.block = block
        self.waiting: dict[Value, Expression] = {}
        self.made: list[Statement] = []

    def done(self) -> Block:
        """The block with values inlined."""
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
        """Whether a value may be inlined in a later statement."""
        if value.named or value in self.shown or value in nested:
            return False
        if costs_nothing(expression):
            return True
        return self.uses.alone(value)

    def filled(self, expression: Expression) -> Expression:
        """The expression with waiting values inlined, innermost first, as long as it fits into a line."""

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
        """The expression with indices of waiting views joined with these views."""

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
        """An argument, or its waiting expression if this can be inlined in ``user``."""
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
        """Give a waiting value a statement of its own."""
        expression = self.waiting.pop(value)
        self.flush_read(expression)
        self.made.append(Assign(value, expression))

    def flush_read(self, expression: Expression) -> None:
        """Give statements to the waiting values that an expression reads, in the order of the reads."""
        for value in dict.fromkeys(values_read(expression)):
            if value in self.waiting:
                self.flush(value)

    def flush_changed(self, statement: Statement) -> None:
        """Give statements to the waiting values that read a value which the next statement changes."""
        inner = (statement, *every_statement(statement.block))
        changed = {v for s in inner for v in s.writes}
        for value, expression in list(self.waiting.items()):
            if value in self.waiting and changed & set(values_read(expression)):
                self.flush(value)


def next_in_place(loop: Loop, uses: Uses) -> Loop:
    """The loop with its next values inlined, so that the end of the body computes them."""
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
    """Whether an expression may be inlined at every read: a view of a value, or a short number such as √d."""
    if is_number(expression):
        return operations(expression) <= 2
    return is_view(expression) and isinstance(viewed(expression), Read)


def inlines(expression: Expression) -> bool:
    """Whether an operation is readable inside of another one."""
    if not isinstance(expression, Compute):
        return True
    return isinstance(expression.op, (ElementwiseOp, Einsum, Broadcast, Slice, Reshape, Source))


def accepts(user: Compute, inner: Expression) -> bool:
    """Whether an operation is readable with another one inside: sums in products, products in functions."""
    if isinstance(user.op, ElementwiseOp):
        return True
    return (
        isinstance(user.op, (Einsum, ExponentialOp, Slice, Reshape, Broadcast, Concatenate, Stack, Pack))
        and operations(inner) <= 3
    )


# ---- aliases -------------------------------------------------------------------------------------


def drop_aliases(program: Program) -> Program:
    """The program without statements v = w. Readers of v read w."""
    same: dict[Value, Expression] = {}
    for statement in every_statement(program.statements):
        if isinstance(statement, Assign) and isinstance(statement.expression, Read):
            value = statement.expression.value
            same[statement.value] = same.get(value, statement.expression)
    if not same:
        return program

    def read(expression: Expression) -> Expression:
        return same.get(expression.value, expression) if isinstance(expression, Read) else expression

    def without(block: Block) -> Block:
        return tuple(s for s in block if not (isinstance(s, Assign) and s.value in same))

    made = program.with_expressions(lambda expression: rewrite(expression, read))
    return made.with_statements(change_blocks(made.statements, without))


# ---- slices of one position ----------------------------------------------------------------------


def join_slices(program: Program) -> Program:
    """The program whose slices are inside the reshapes that read them, if nothing else reads them."""
    pairs = ((made.value, made.expression) for made in program.assigned)
    slices = {value: made for value, made in pairs if isinstance(op_in(made), Slice)}
    if not slices:
        return program
    read = {v for r in program.results for v in values_read(r)}
    for statement in every_statement(program.statements):
        for expression in statement.expressions:
            if not _drops_axes(expression, slices):
                read.update(values_read(expression))
        if isinstance(statement, Assign) and statement.over is not None:
            read |= {statement.value, statement.over}
    inside = {Read(value): made for value, made in slices.items() if value not in read}

    def change(expression: Expression) -> Expression:
        if isinstance(expression, Compute) and expression.args and expression.args[0] in inside:
            return Compute(expression.op, (inside[expression.args[0]],), expression.shape)
        return expression

    kept = [s for s in program.statements if not (isinstance(s, Assign) and Read(s.value) in inside)]
    return program.with_statements(tuple(s.with_expressions(change) for s in kept))


def _drops_axes(expression: Expression, slices: dict[Value, Expression]) -> bool:
    """Whether an expression is a slice without some axes of length 1."""
    if not isinstance(expression, Compute) or not isinstance(expression.op, Reshape):
        return False
    (arg,) = expression.args
    kept = unit_axes(arg.shape, expression.shape) if isinstance(arg, Read) and arg.value in slices else None
    return kept is not None and not any(isinstance(place, NewAxis) for place in kept)
