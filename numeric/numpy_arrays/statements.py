"""The statements of array programs as lines of Python, for speed: results in the memory where they stay."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeAlias

from symad.core.graph import Op
from symad.core.questions import question
from symad.numeric.numpy_arrays.elementwise_statements import elementwise_line
from symad.numeric.numpy_arrays.memory_reuse import allocation, recycled_product
from symad.numeric.numpy_arrays.writer import ArrayWriter, part_of
from symad.numeric.program.expressions import Compute, Index, Read, Value, op_in
from symad.numeric.program.loops import Blocks, DefineFunction
from symad.numeric.program.statements import (
    Allocate,
    Assign,
    Free,
    Scatter,
    Together,
)
from symad.numeric.scheduling.plans import number_of
from symad.numeric.targets.linear_algebra import contraction
from symad.numeric.targets.statements import Lines, indented, lines, lines_of
from symad.numeric.targets.target import MatrixProduct
from symad.ops.arrays.gathering import Gather
from symad.ops.basic.contraction import Einsum
from symad.ops.basic.shaping import Broadcast
from symad.ops.basic.sources import ArrayConstant, Constant, Dimension

Made: TypeAlias = "tuple[Assign, ...]"
KernelLines: TypeAlias = "list[str] | None"


@question
def kernel_lines(op: Op, writer: ArrayWriter, made: Made) -> Any:
    """The lines of all results of an op that is a function of the module; None for other ops."""


@kernel_lines.dispatch
def no_kernel(op: Op, writer: ArrayWriter, made: Made) -> KernelLines:
    return None


def computed(made: Sequence[Assign]) -> Compute:
    """The expression of the first result of an op."""
    found = made[0].expression
    assert isinstance(found, Compute)
    return found


@lines.dispatch
def together_lines(statement: Together, writer: ArrayWriter) -> Lines:
    """One function for all results, or the assignments one by one."""
    made = statement.assignments
    found = kernel_lines(computed(made).op, writer, made)
    return found if found is not None else [line for one in made for line in lines(one, writer)]


@lines.dispatch
def assign_lines(statement: Assign, writer: ArrayWriter) -> Lines:
    """A value, written over another one where the program says so."""
    value, expression, over = statement.value, statement.expression, statement.over
    writer.at, writer.over = value, over
    if isinstance(expression, Compute):
        node = writer.plans.nodes.get(value)
        if node is not None and node.op.stored and over is None:
            return []  # readers write it
        found = kernel_lines(expression.op, writer, (statement,))
        if found is not None:
            return found
    writer.note(value, expression, over)
    if over in writer.rooms and isinstance(expression, (Read, Index)):
        return [writer.copied(value, over, writer.text(expression).text)]
    if isinstance(expression, Read):
        writer.keep_name(value, expression.value)
        return []
    if part_of(expression) is not None and (isinstance(expression, Index) or value not in writer.plans.nodes):
        return view_lines(statement, writer)
    assert isinstance(expression, Compute)
    if isinstance(expression.op, Dimension) and over is None:
        writer.named[value] = writer.operand(expression)
        return []
    if isinstance(expression.op, Gather) and value not in writer.plans.nodes:
        return gathered_lines(statement, writer)
    line = elementwise_line(statement, writer)
    if line is None and isinstance(expression.op, Einsum):
        line = product_line(statement, writer)
    if line is not None:
        return [line]
    return computed_lines(statement, expression, writer)


def computed_lines(statement: Assign, expression: Compute, writer: ArrayWriter) -> list[str]:
    """A new array or number; it is copied to its place if it has one."""
    value, over = statement.value, statement.over
    if over in writer.rooms and repeats_rows(expression):
        text = writer.text(expression.args[0]).text
    else:
        text = writer.text(expression).text
    if writer.dtype == "float32" and not value.shape and is_number(expression):
        text = f"{writer.np}.float32({text})"  # NumPy's functions of Python's numbers are in double precision
    needed, writer.before = writer.before, []
    if over in writer.rooms:
        return [*needed, writer.copied(value, over, text)]
    return [*needed, f"{writer.name_for(value)} = {text}"]


def repeats_rows(expression: Compute) -> bool:
    """Whether NumPy itself repeats the argument of a broadcast along leading axes, or a number."""
    op, rank = expression.op, len(expression.shape)
    if not isinstance(op, Broadcast):
        return False
    axes = op.axes
    return axes == tuple(range(rank - len(axes), rank))


def is_number(expression: Compute) -> bool:
    """Whether an op acts on constants alone."""
    return bool(expression.args) and all(isinstance(op_in(a), Constant) for a in expression.args)


def view_lines(statement: Assign, writer: ArrayWriter) -> list[str]:
    """The line that names a view; a view whose text is written only once has no name."""
    value, expression = statement.value, statement.expression
    part = part_of(expression)
    assert part is not None
    text = writer.text(part).text
    if not writer.is_name(text):  # a part of all elements is the array itself
        writer.parts_of[text] = writer.text(part.array).text, len(writer.places(part))
    if part is not expression:
        text = f"{text}.reshape({writer.dims(expression.shape)})"
    if value in writer.plans.nodes:
        return [f"{writer.name_for(value)} = {text}"]
    if value.named:
        name = writer.named[value] = writer.fresh(value.stem)
        writer.stems[value] = value.stem
        return [f"{name} = {text}"]
    writer.named[value] = text
    if value not in writer.used_again and (part is expression or value in writer.copied_to):
        return []
    name = writer.named[value] = writer.fresh()
    writer.views.append(name)
    return [f"{name} = {text}"]


def gathered_lines(statement: Assign, writer: ArrayWriter) -> list[str]:
    """The statements that gather elements of an array; scattered reads are faster than scattered writes."""
    table, index = computed([statement]).args
    op = op_in(index)
    assert isinstance(op, ArrayConstant)
    flat = table.args[0] if isinstance(table, Compute) else None
    values = writer.operand(table) if flat is None else f"{writer.np}.ravel({writer.operand(flat)})"
    opened = allocation(Allocate(statement.value, kept=statement.kept), writer)
    name = writer.name_for(statement.value)
    return [f"{name} = {opened}", writer.taken_line(values, op.array, name)]


# ---- products ------------------------------------------------------------------------------------


def product_line(statement: Assign, writer: ArrayWriter) -> str | None:
    """The statement of a matrix product, in a given array, recycled memory or new memory; None for others."""
    value, found, over = statement.value, computed([statement]), statement.over
    assert isinstance(found.op, Einsum)
    product = contraction(found.op, found, tuple(writer.text(a) for a in found.args), writer)
    if not isinstance(product, MatrixProduct):
        return None
    sides = (product.left, product.right)
    plain = not product.after and all(writer.is_name(side) or side in writer.transposes for side in sides)
    place = writer.named[over] if over is not None and over in writer.rooms else None
    small = plain and all(0 < len(a.shape) < 3 for a in (found, *found.args))
    if writer.depth and small and (place is not None or not statement.kept):
        call = f"{product.left}.dot({product.right}"  # less overhead for a call than matmul
        if place is None:
            return f"{writer.name_for(value)} = {call})"
        if _takes_product(place, found, writer):
            return f"{call}, {writer.keep_name(value, over)})"
    if place is not None:
        if plain:
            return writer.product_into(product, writer.keep_name(value, over))
        return writer.copied(value, over, writer.product_text(product))
    text = recycled_product(found.shape, product, writer) if statement.kept else writer.product_text(product)
    return f"{writer.name_for(value)} = {text}"


def _takes_product(place: str, found: Compute, writer: ArrayWriter) -> bool:
    """Whether ``dot`` can write to a place: a contiguous array of the dtype that its result would have."""
    array, axes = writer.parts_of.get(place, (place, 0))
    if array not in writer.whole or axes > 1:
        return False
    return all(writer.kind(a) == writer.dtype for a in found.args)


# ---- memory --------------------------------------------------------------------------------------


@lines.dispatch
def allocate_array(statement: Allocate, writer: ArrayWriter) -> Lines:
    text = allocation(statement, writer)
    writer.kinds[statement.value] = writer.dtype
    return [f"{writer.name_for(statement.value)} = {text}"]


@lines.dispatch
def scatter_lines(statement: Scatter, writer: ArrayWriter) -> Lines:
    """The statement that assigns to elements of an array, or adds to them."""
    made = statement.expression
    text = writer.text(made).text
    if len(made.shape) > 1:
        text = f"{writer.np}.ravel({text})"
    op = statement.places.op
    assert isinstance(op, ArrayConstant)
    index = writer.index_of(op.array, bool(made.shape))
    return [f"{writer.name(statement.array)}[{index}] {'+=' if statement.adds else '='} {text}"]


@lines.dispatch
def free_lines(statement: Free, writer: ArrayWriter) -> Lines:
    """The lines that free memory: of the variables that loops left, and of values that end."""
    ending = set()
    for value in statement.values:
        end: Value | None = value
        while end is not None:
            ending.add(writer.named.get(end))
            end = writer.earlier.get(end)
    freed = sorted((n for n in ending if n in writer.numbered), key=lambda n: writer.numbered[n])
    rows, writer.rows = list(dict.fromkeys(writer.rows)), []
    made = [f"{' = '.join(rows)} = None"] if rows else []  # not del: without steps, none is assigned
    return [*made, *([f"del {', '.join(freed)}"] if freed else [])]


# ---- bodies --------------------------------------------------------------------------------------


@contextmanager
def inside(writer: ArrayWriter, given: Iterable[Value], repeated: bool = True) -> Iterator[list[str]]:
    """The body of a loop or function; the list receives the names of large arrays that it assigned."""
    around = writer.inner, writer.views
    kept: list[str] = []
    writer.inner, writer.views = [], []
    writer.nesting, writer.depth = writer.nesting + 1, writer.depth + repeated
    with writer.entered(given):
        yield kept
    kept += [name for name, shape in writer.inner if writer.is_worth_freeing(shape)] + writer.views
    writer.nesting, writer.depth = writer.nesting - 1, writer.depth - repeated
    writer.inner, writer.views = around


@lines.dispatch
def array_blocks_lines(statement: Blocks, writer: ArrayWriter) -> Lines:
    """A loop over blocks of rows."""
    height, length = statement.height, writer.dim(statement.length)
    start, part = writer.value_name("start"), writer.value_name("part")
    stop = writer.symbols[statement.stop] = writer.value_name("stop")
    for fixed in statement.fixed:
        writer.named[fixed.value] = writer.operand(fixed.expression)
        writer.kinds[fixed.value] = writer.kind(fixed.expression)
    sums = [writer.name(added.value) for added in statement.added]
    first, rooms = [], []
    for one in statement.parts:
        seen = f"{writer.operand(one.array)}[{_index(part, one.axis, stop, one.column)}]"
        is_room = one.value in writer.rooms
        name = writer.named[one.value] = writer.value_name("new" if is_room else "v")
        writer.kinds[one.value] = writer.kind(one.array)
        rooms += [name] if is_room else []
        first.append(f"{name} = {seen}{'.reshape(-1)' if one.flat else ''}")
    rows = writer.symbols[statement.rows] = writer.value_name("rows")
    around = writer.sizes, writer.bounds
    writer.sizes, writer.bounds = set(), {statement.rows: height}
    if isinstance(statement.length, int):
        writer.bounds = {**writer.bounds, statement.stop: statement.length}
    given = [*(f.value for f in statement.fixed), *(one.value for one in statement.parts)]
    with inside(writer, given) as kept:
        body = lines_of(statement.body, writer)
        texts = [writer.text(added.expression).text for added in statement.added]
    if not writer.nesting:
        writer.rows += [*rooms, *kept]
    reads_rows = statement.rows in writer.sizes
    writer.sizes, writer.bounds = writer.sizes | around[0], around[1]
    if reads_rows:
        first.insert(0, f"{rows} = min({height}, {length} - {start})")
    columns = [*(one.column for one in statement.parts), *(added.column for added in statement.added)]
    if any(column is not None for column in columns):
        first.insert(0, f"{stop} = min({start} + {height}, {length})")
    for added, total, text in zip(statement.added, sums, texts, strict=True):
        seen = "" if added.column is None else f"[{_index(part, None, stop, added.column)}]"
        body.append(f"{total}{seen} += {text}")
    head = f"for {start} in range(0, {length}, {height}):"
    return [head, *indented([f"{part} = slice({start}, {start} + {height})", *first, *body])]


def _index(part: str, axis: int | None, stop: str, column: int | None) -> str:
    """The index of a block: its rows along one axis, the elements before ``stop`` along another."""
    last = max(a for a in (axis, column) if a is not None)
    return ", ".join(part if k == axis else f":{stop}" if k == column else ":" for k in range(last + 1))


@lines.dispatch
def function_lines(statement: DefineFunction, writer: ArrayWriter) -> Lines:
    """A function inside the module's function."""
    name = writer.value_name(statement.value.stem)
    writer.functions[statement.value] = name, statement
    parameters = [writer.value_name(value.stem) for value in statement.parameters]
    for fixed in statement.fixed:
        writer.named[fixed.value] = writer.typed(fixed.expression)
    writer.named |= dict(zip(statement.parameters, parameters, strict=True))
    first, around = [], writer.symbols.copy()
    if statement.steps is not None:
        pairs = zip(statement.parameters, parameters, strict=True)
        moving = next(text for value, text in pairs if value.shape[:1] == (statement.steps,))
        writer.symbols[statement.steps] = writer.value_name("steps")
        first = [f"{writer.symbols[statement.steps]} = {moving}.shape[0]"]
    given = [*statement.parameters, *(fixed.value for fixed in statement.fixed)] or [statement.value]
    with inside(writer, given, statement.repeated):
        body = [*first, *lines_of(statement.body, writer)]
        made = [
            f"{writer.operand(result)}.copy()" if copied else writer.typed(result)
            for result, copied in zip(statement.results, statement.copied, strict=True)
        ]
    writer.symbols |= around  # a function around this one may call the same length otherwise
    comma = "," if len(made) == 1 and statement.value.stem == "pull" else ""
    return [f"def {name}({', '.join(parameters)}):", *indented([*body, f"return {', '.join(made)}{comma}"])]


def results_by_number(made: Sequence[Assign]) -> dict[int, Value]:
    """The values of a statement by their numbers among the results of its op."""
    return {number_of(op_in(one.expression)): one.value for one in made}
