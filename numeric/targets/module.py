"""A program as a standalone module: imports, helpers, how arguments are taken, and the entry point.

The last function is the entry point; loaders of files rely on this. A function before it, `_checked`,
converts and checks the arguments, so that the entry point is mathematics alone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, TypeAlias

import sympy

from symad.core.dims import Dim, Shape, dim_symbols, format_shape
from symad.numeric.expressions.views import Shown, origins, shown_by
from symad.numeric.modules.module_text import Names, frame, one_line, returned, summary
from symad.numeric.passes.memory_layout.packed_entries import Pack
from symad.numeric.program.expressions import Compute, Expression, Value, is_number, parts, walk
from symad.numeric.program.program import Program
from symad.numeric.program.statements import every_statement
from symad.numeric.targets import helpers
from symad.numeric.targets.sizes import bound_in_turn, doubtful, size_bindings, size_checks
from symad.numeric.targets.statements import indented, lines_of
from symad.numeric.targets.target import NUMPY, NumPy
from symad.numeric.targets.writer import Writer
from symad.ops.basic.shaping import Broadcast
from symad.ops.basic.sources import ArrayConstant
from symad.ops.elementwise.selection import Select
from symad.ops.elementwise.undefined import Undefined


@dataclass(frozen=True)
class Arguments:
    """What the entry point of a module is called with.

    Attributes:
        names: the names of the arguments in the code.
        titles: the names that errors show.
        shapes: the shapes of the arguments.
        needed: what must not be negative, such as T − 2: NumPy would silently cut the array.
    """

    names: tuple[str, ...]
    titles: tuple[str, ...]
    shapes: tuple[Shape, ...]
    needed: tuple[Dim, ...]

    @cached_property
    def signature(self) -> str:
        """The names, as parameters or arguments."""
        return ", ".join(self.names)

    @cached_property
    def dims(self) -> list[sympy.Symbol]:
        """The symbols of the shapes, in the order in which they occur."""
        each = (s for shape in self.shapes for d in shape for s in sorted(dim_symbols([d]), key=str))
        return [*dict.fromkeys(each)]


Body: TypeAlias = "Callable[[], list[str]]"
"""Writes the body of the entry point, and returns its lines."""

Taking: TypeAlias = "Callable[[Arguments, Any, Body], tuple[list[str], list[str]]]"
"""The lines of a function that takes the arguments, and those of the entry point, which calls it."""


def print_module(
    program: Program, dtype: str, target: NumPy = NUMPY, kind: type[Writer] = Writer
) -> tuple[str, tuple[str, ...]]:
    """The name of the entry point and the source of the module; ``kind`` is the writer of the target."""
    writer = kind(target, dtype, Names())
    writer.imports.add(writer.library)
    every = [*program.results, *(e for s in every_statement(program.statements) for e in s.expressions)]
    if is_scalar(program):
        return written_module(program, writer, taking=points)
    sizes = doubtful(part.shape for e in every for part in walk(e))
    return written_module(replace(program, needed=(*program.needed, *sizes)), writer)


def written_module(
    program: Program,
    writer: Writer,
    titles: Sequence[object] = (),
    taking: Taking | None = None,
    body: Body | None = None,
) -> tuple[str, tuple[str, ...]]:
    """The name of the entry point and the source of the module: its header, each helper, and the rest.

    Args:
        program: the function.
        writer: writes its statements, and records what the module needs.
        titles: the names of the arguments in errors; by default those in the code.
        taking: writes how the arguments are taken; by default `arrays`.
        body: writes the body; by default the rules of `lines` do, and `result_texts`.
    """
    entry = writer.names.unique(program.name)
    names = tuple(map(writer.name, program.inputs))
    shapes = tuple([value.shape for value in program.inputs])
    call = Arguments(names, tuple(map(str, titles or names)), shapes, program.needed)

    def by_rules() -> list[str]:
        lines = lines_of(program.statements, writer)
        return [*lines, f"return {returned(program.structure, result_texts(program, writer))}"]

    checked, lines = (taking or arrays)(call, writer, body or by_rules)
    results = [result.shape for result in program.results]
    told = summary(program.labels, results, program.structure, zip(names, shapes, strict=True))
    function = [*writer.decorators(), f"def {entry}({call.signature}):", *indented([told, *lines])]
    blocks = [*writer.blocks(), checked, function]
    return entry, frame(program.name, writer.imports, writer.helpers.values(), blocks, writer.needs())


# ---- how arguments are taken ---------------------------------------------------------------------

Binding: TypeAlias = "tuple[sympy.Basic | None, str]"
"""A line, and the size that it binds; None for other lines."""


def arrays(call: Arguments, writer: Writer, body: Body) -> tuple[list[str], list[str]]:
    """Arrays of the right shapes: `_checked` converts them, and returns the sizes that are read."""
    if not call.names:
        return [], body()
    for symbol in call.dims:
        writer.dim_name(symbol)
    writer.sizes.clear()
    checking = _converted(call, writer)
    checking += [(None, line) for line in size_checks(call.needed, writer.dim)]
    around = {*writer.sizes}
    writer.sizes.clear()
    lines = body()
    known = ", ".join([*call.names, *(writer.dim_name(s) for s in call.dims if s in writer.sizes)])
    needed = [line for symbol, line in checking if symbol is None or symbol in around | writer.sizes]
    return _checked(call, [*needed, f"return {known}"]), [f"{known} = _checked({call.signature})", *lines]


def points(call: Arguments, writer: Writer, body: Body) -> tuple[list[str], list[str]]:
    """Numbers, or arrays of points that broadcast together."""
    writer.batch = call.names[0]
    lines = body()
    given = ", ".join(f'"{name}": {name}' for name in call.names)
    made = f"{writer.helper(helpers._points)}({{{given}}}, {writer.type_text})"
    return _checked(call, [f"return {made}"]), [f"{call.signature} = _checked({call.signature})", *lines]


def _checked(call: Arguments, lines: Sequence[str]) -> list[str]:
    told = '"""The arguments as arrays of the right shapes, and the dimensions."""'
    return [f"def _checked({call.signature}):", *indented([told, *lines])]


def _converted(call: Arguments, writer: Writer) -> list[Binding]:
    """Each argument as an array; a size is bound where it first occurs alone."""
    made: list[Binding] = []
    late: list[Binding] = []
    order = size_bindings(call.shapes, call.dims)
    bound: set[sympy.Basic] = set()
    given: set[int] = set()

    def plain(k: int) -> bool:
        return all(isinstance(d, (int, sympy.Symbol)) for d in call.shapes[k])

    for k in sorted(range(len(call.names)), key=lambda k: not plain(k)):
        given.add(k)
        shape = [d if isinstance(d, int) or d.free_symbols <= bound else None for d in call.shapes[k]]
        declared = f', "{one_line(format_shape(call.shapes[k]))}"' if None in shape else ""
        made.append((None, _check(call, k, shape, declared, writer)))
        now = bound_in_turn(order, bound, given)
        for b in now:
            text = b.text(f"{call.names[b.argument]}.shape[{b.axis}]", writer)
            made.append((b.symbol, f"{writer.names.of(b.symbol)} = {text}"))
        if shape.count(None) > sum(b.argument == k and b.slope == 1 and b.offset == 0 for b in now):
            late.append((None, _check(call, k, call.shapes[k], "", writer)))
    return [*made, *late]


def _check(call: Arguments, k: int, shape: Sequence[Dim | None], declared: str, writer: Writer) -> str:
    """The line that converts an argument; None in the shape stands for any length."""
    dims = ", ".join(str(d if d is None else writer.dim(d)) for d in shape) + "," * (len(shape) == 1)
    display = str(len(shape)) if shape and not any(d is not None for d in shape) else f"({dims})"
    name, title = call.names[k], one_line(call.titles[k])
    helper = writer.input_helper(k, writer.helper(helpers._array))
    return f'{name} = {helper}("{title}", {name}, {writer.input_type(k)}, {display}{declared})'


# ---- what is returned ----------------------------------------------------------------------------


def is_scalar(program: Program) -> bool:
    """Whether all values but packed results are numbers; such code also takes arrays of points."""
    every = [*program.results, *(e for s in every_statement(program.statements) for e in s.expressions)]
    inner = [p for e in every for part in ([e] if not _is_pack(e) else parts(e)) for p in walk(part)]
    return (
        bool(program.inputs) and not any(e.shape for e in inner) and not any(v.shape for v in program.inputs)
    )


def _is_pack(expression: Expression) -> bool:
    return isinstance(expression, Compute) and isinstance(expression.op, Pack)


def result_texts(program: Program, writer: Writer) -> list[str]:
    """The texts of the results."""
    return [
        _result(result, writer, *each) for result, each in zip(program.results, owned(program), strict=True)
    ]


def owned(program: Program, boxed: bool = False) -> list[tuple[list[Shown], bool]]:
    """For each result what it shows, and whether it must be copied, to have memory of its own.

    That is memory which no argument, no constant and no earlier result has. ``boxed``: whether numbers are
    arrays, too.
    """
    given, made = shown_by(program), list[tuple[list[Shown], bool]]()
    earlier: dict[Value | None, list[Shown]] = {}
    for result in program.results:
        sources = [*origins(result, given)]
        known = [one for one in sources if one.value is not None]
        met = any(not one.is_apart(other) for one in known for other in earlier.get(one.value, ()))
        borrowed = (boxed or bool(result.shape)) and any(_is_borrowed(one, program.inputs) for one in sources)
        made.append((sources, met or borrowed))
        for one in known:
            earlier.setdefault(one.value, []).append(one)
    return made


def _result(expression: Expression, writer: Writer, sources: Sequence[Shown], copied: bool) -> str:
    """The text of a result, which has NumPy's type and memory of its own."""
    text = writer.text(expression).text
    number = any(is_number(origin.made) and not _is_truth(origin.made) for origin in sources)
    if number and not expression.shape:
        if writer.batch:
            return f"np.full_like({writer.batch}, {text})[()]"
        return f"{writer.type_text}({text})" if is_number(expression) else text
    if not expression.shape and any(_is_boxed(origin.made) for origin in sources):
        return f"{text}[()]"
    return f"{text}.copy()" if copied else text


def _is_boxed(made: Expression) -> bool:
    """Whether NumPy gives an array without axes instead of a number."""
    return isinstance(made, Compute) and not made.shape and isinstance(made.op, (Select, Undefined))


def _is_borrowed(origin: Shown, inputs: Sequence[Value]) -> bool:
    """Whether the memory is that of an argument or a constant, or cannot be written to."""
    made = origin.made
    if isinstance(made, Compute) and isinstance(made.op, Broadcast):
        return not is_number(made.args[0])
    return origin.value in inputs or (isinstance(made, Compute) and isinstance(made.op, ArrayConstant))


def _is_truth(expression: Expression) -> bool:
    op = expression.op if isinstance(expression, Compute) else None
    return isinstance(getattr(op, "value", None), bool)
