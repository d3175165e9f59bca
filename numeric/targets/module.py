"""A program as a standalone module: imports, helpers, and the entry point.

The last function is the entry point; loaders of files rely on this. One helper before it converts and
checks the arguments.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias

import sympy

from symad.core.dims import Dim, Shape, dim_symbols, format_shape
from symad.core.graph import Structure, TupleOf
from symad.numeric.expressions.numbers import is_number
from symad.numeric.expressions.views import viewed
from symad.numeric.modules.module_text import kind_of, one_line, pack_text
from symad.numeric.modules.names import Names
from symad.numeric.modules.size_checks import doubtful, size_checks
from symad.numeric.passes.memory_layout.packed_entries import Pack
from symad.numeric.program.expressions import Compute, Expression, Read, Value, parts, walk
from symad.numeric.program.program import Program
from symad.numeric.program.statements import Assign, every_statement
from symad.numeric.targets import helpers
from symad.numeric.targets.size_bindings import bound_in_turn, size_bindings
from symad.numeric.targets.statements import indented, lines_of
from symad.numeric.targets.target import NUMPY, NumPy
from symad.numeric.targets.writer import Writer
from symad.ops.basic.shaping import Broadcast
from symad.ops.basic.sources import ArrayConstant
from symad.ops.elementwise.selection import Select
from symad.ops.elementwise.undefined import Undefined


def print_module(
    program: Program, dtype: str, target: NumPy = NUMPY, kind: type[Writer] = Writer
) -> tuple[str, str]:
    """The name of the entry point and the source of the module; ``kind`` is the writer of the target."""
    names = Names()
    entry = names.unique(program.name)
    writer = kind(target, dtype, names)
    writer.imports.add(writer.library)
    inputs = [writer.name(value) for value in program.inputs]
    scalar = is_scalar(program)
    writer.batch = inputs[0] if scalar else ""
    dims = [
        *dict.fromkeys(s for v in program.inputs for d in v.shape for s in sorted(dim_symbols([d]), key=str))
    ]
    for symbol in dims:
        writer.dim_name(symbol)
    writer.sizes.clear()
    checking = _checked(program, inputs, dims, writer)
    around, writer.sizes = writer.sizes, set()
    body = [*lines_of(program.statements, writer), f"return {_returned(program, writer)}"]
    known = ", ".join([*inputs, *(writer.dim_name(s) for s in dims if s in writer.sizes)])
    checked = [line for symbol, line in checking if symbol is None or symbol in around | writer.sizes]
    if inputs:
        body.insert(0, f"{known} = _checked({', '.join(inputs)})")
        checked += [] if scalar else [f"    return {known}"]
    function = [f"def {entry}({', '.join(inputs)}):", *indented([docstring(program, writer), *body])]
    if scalar and writer.quiet:
        function = [writer.quiet, *function]
    blocks = [
        [
            f'"""{one_line(program.name)}, printed by symad. Needs {libraries(writer)}."""',
            "",
            *sorted(writer.imports),
        ],
        [f"{name} = {text}" for text, name in writer.constants.items()],
        *([source] for source in writer.helpers.values()),
        checked,
        function,
    ]
    return entry, "\n\n\n".join("\n".join(block) for block in blocks if block) + "\n"


def is_scalar(program: Program) -> bool:
    """Whether all values but packed results are numbers; such code also takes arrays of points."""
    every = [*program.results, *(e for s in every_statement(program.statements) for e in s.expressions)]
    inner = [p for e in every for part in ([e] if not _is_pack(e) else parts(e)) for p in walk(part)]
    return (
        bool(program.inputs) and not any(e.shape for e in inner) and not any(v.shape for v in program.inputs)
    )


def _is_pack(expression: Expression) -> bool:
    return isinstance(expression, Compute) and isinstance(expression.op, Pack)


def libraries(writer: Writer) -> str:
    return "NumPy and SciPy" if writer.needs_scipy else "NumPy"


def docstring(program: Program, writer: Writer) -> str:
    """The results and the shapes of the arguments, as a docstring of one line."""
    labels = program.labels or [""] * len(program.results)
    shown = [label or kind_of(r.shape) for label, r in zip(labels, program.results, strict=False)]
    results = _results_text(shown, program.structure)
    shapes = [f"{writer.name(v)} {format_shape(v.shape)}" for v in program.inputs if v.shape]
    arguments = f"; {', '.join(shapes)}" if shapes else ""
    return f'"""{one_line(results + arguments)}."""'


def _results_text(shown: Sequence[str], structure: Structure) -> str:
    text = ", ".join(shown[:MAX_RESULTS_SHOWN]) + (", ..." if len(shown) > MAX_RESULTS_SHOWN else "")
    return f"({text})" if isinstance(structure, TupleOf) else text


MAX_RESULTS_SHOWN = 8
"""The docstring names at most this many results.

Origin: it bounds the length of a docstring.
"""


def _returned(program: Program, writer: Writer) -> str:
    """The text of the results; a flat tuple has no parentheses."""
    made = {s.value: s.expression for s in program.statements if isinstance(s, Assign)}
    shown: set[Value] = set()
    texts = [_result(r, writer, program, made, shown) for r in program.results]
    structure = program.structure
    flat = isinstance(structure, TupleOf) and len(texts) > 1 and all(item is None for item in structure.items)
    return ", ".join(texts) if flat else pack_text(structure, texts)


def _result(
    expression: Expression,
    writer: Writer,
    program: Program,
    made: Mapping[Value, Expression],
    shown: set[Value],
) -> str:
    """The text of a result, which has NumPy's type and memory of its own.

    A result shares no memory with arguments, constants or earlier results. ``shown`` are the values whose
    memory earlier results show; the value of this result is added.
    """
    text = writer.text(expression).text
    if is_number(expression) and not _is_truth(expression):
        if writer.batch:
            return f"np.full_like({writer.batch}, {text})[()]"
        return f"np.{writer.dtype}({text})"
    value = _memory(expression, made)
    twice = value in shown
    if value is not None:
        shown.add(value)
    borrowed = twice or (_is_borrowed(expression, program, made) and expression.shape)
    if not expression.shape and _is_boxed(expression, made):
        return f"{text}[()]"
    return f"{text}.copy()" if borrowed else text


def _is_boxed(expression: Expression, made: Mapping[Value, Expression]) -> bool:
    """Whether NumPy gives an array without axes instead of a number."""
    while isinstance(expression, Read) and expression.value in made:
        expression = made[expression.value]
    return isinstance(expression, Compute) and isinstance(expression.op, (Select, Undefined))


def _memory(expression: Expression, made: Mapping[Value, Expression]) -> Value | None:
    """The value whose memory an expression shows; None if the expression makes memory of its own."""
    found, inner = None, viewed(expression)
    while isinstance(inner, Read):
        found = inner.value
        inner = viewed(made[found]) if found in made else expression
        if inner is expression:
            break
    return found


def _is_truth(expression: Expression) -> bool:
    op = expression.op if isinstance(expression, Compute) else None
    return isinstance(getattr(op, "value", None), bool)


def _is_borrowed(expression: Expression, program: Program, made: Mapping[Value, Expression]) -> bool:
    """Whether an expression shows the memory of an argument or a constant, or cannot be written to."""
    inner = viewed(expression)
    while isinstance(inner, Read) and inner.value in made:
        inner = viewed(made[inner.value])
    if isinstance(inner, Compute) and isinstance(inner.op, Broadcast):
        return not is_number(inner.args[0])
    if isinstance(inner, Read):
        return inner.value in program.inputs
    return isinstance(inner, Compute) and isinstance(inner.op, ArrayConstant)


# ---- arguments ----------------------------------------------------------------------------------


Binding: TypeAlias = tuple[sympy.Basic | None, str]
"""A line, and the dimension that it binds; None for other lines."""


def _checked(
    program: Program, inputs: Sequence[str], dims: Sequence[sympy.Symbol], writer: Writer
) -> list[Binding]:
    """The helper that converts and checks the arguments, and binds the dimensions.

    For arrays, its last line is missing: it returns the arguments, and the dimensions that the body reads.
    """
    if not inputs:
        return []
    if is_scalar(program):
        points = writer.helper(helpers._points)
        made = ", ".join(f'"{name}": {name}' for name in inputs)
        lines: list[Binding] = [(None, f"return {points}({{{made}}}, np.{writer.dtype})")]
    else:
        lines = _converted(program.inputs, inputs, dims, writer)
        lines += [(None, line) for line in _sizes(program, writer)]
    summary = '"""The arguments as arrays of the right shapes, and the dimensions."""'
    head = [f"def _checked({', '.join(inputs)}):", f"    {summary}"]
    return [*((None, line) for line in head), *((symbol, f"    {line}") for symbol, line in lines)]


def _converted(
    values: Sequence[Value], names: Sequence[str], dims: Sequence[sympy.Symbol], writer: Writer
) -> list[Binding]:
    """Each argument as an array; a dimension is bound where it first occurs alone."""
    made: list[Binding] = []
    order = size_bindings([value.shape for value in values], dims)
    helper = writer.helper(helpers._array)
    waiting = sorted(enumerate(values), key=lambda pair: any(not _is_plain(d) for d in pair[1].shape))
    bound: set[sympy.Basic] = set()
    given: set[int] = set()
    late: list[Binding] = []

    def check(name: str, shape: Sequence[Dim | None], declared: str = "") -> Binding:
        display = ", ".join(str(d if d is None else writer.dim(d)) for d in shape) + "," * (len(shape) == 1)
        return None, f'{name} = {helper}("{name}", {name}, np.{writer.dtype}, ({display}){declared})'

    for k, value in waiting:
        given.add(k)
        shape = [d if isinstance(d, int) or d.free_symbols <= bound else None for d in value.shape]
        made.append(
            check(names[k], shape, f', "{one_line(format_shape(value.shape))}"' if None in shape else "")
        )
        now = bound_in_turn(order, bound, given)
        for b in now:
            text = b.text(f"{names[b.argument]}.shape[{b.axis}]", writer)
            made.append((b.symbol, f"{writer.names.of(b.symbol)} = {text}"))
        if shape.count(None) > sum(b.argument == k and b.slope == 1 and b.offset == 0 for b in now):
            late.append(check(names[k], value.shape))
    return [*made, *late]


def _is_plain(dim: Dim) -> bool:
    return isinstance(dim, (int, sympy.Symbol))


def _sizes(program: Program, writer: Writer) -> list[str]:
    """Checks that no dimension such as T − 2 is negative: NumPy would silently cut the array."""
    sizes = (*program.needed, *doubtful(e.shape for e in _every_expression(program)))
    return size_checks(sizes, writer.dim)


def _every_expression(program: Program) -> list[Expression]:
    outer = [e for s in every_statement(program.statements) for e in s.expressions]
    return [part for e in (*outer, *program.results) for part in walk(e)]


def _tuple(shape: Shape, writer: Writer) -> str:
    return f"({''.join(f'{writer.dim(d)}, ' for d in shape)})"
