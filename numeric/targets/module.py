"""A program as a standalone module: imports, helpers, and the entry point.

The last function is the entry point; loaders of files rely on this. One helper before it converts and
checks the arguments.
"""

from __future__ import annotations

from collections.abc import Mapping

from symad.numeric.expressions.numbers import is_number
from symad.numeric.expressions.views import viewed
from symad.numeric.modules.module_text import frame, returned, summary
from symad.numeric.modules.names import Names
from symad.numeric.modules.size_checks import doubtful
from symad.numeric.passes.memory_layout.packed_entries import Pack
from symad.numeric.program.expressions import Compute, Expression, Read, Value, parts, walk
from symad.numeric.program.program import Program
from symad.numeric.program.statements import Assign, every_statement
from symad.numeric.targets.arguments import arguments, points
from symad.numeric.targets.statements import indented, lines_of
from symad.numeric.targets.target import NUMPY, NumPy
from symad.numeric.targets.writer import Writer
from symad.ops.basic.shaping import Broadcast
from symad.ops.basic.sources import ArrayConstant
from symad.ops.elementwise.selection import Select
from symad.ops.elementwise.undefined import Undefined


def print_module(
    program: Program, dtype: str, target: NumPy = NUMPY, kind: type[Writer] = Writer
) -> tuple[str, tuple[str, ...]]:
    """The name of the entry point and the source of the module; ``kind`` is the writer of the target."""
    names = Names()
    entry = names.unique(program.name)
    writer = kind(target, dtype, names)
    writer.imports.add(writer.library)
    inputs = [writer.name(value) for value in program.inputs]
    scalar = is_scalar(program)
    writer.batch = inputs[0] if scalar else ""

    def body() -> list[str]:
        return [*lines_of(program.statements, writer), f"return {_returned(program, writer)}"]

    shapes = [value.shape for value in program.inputs]
    if scalar:
        checked, lines = points(inputs, writer, body())
    else:
        sizes = (*program.needed, *doubtful(e.shape for e in _every_expression(program)))
        checked, lines = arguments(inputs, inputs, shapes, sizes, writer, body)
    results = [r.shape for r in program.results]
    told = summary(program.labels, results, program.structure, zip(inputs, shapes, strict=True))
    function = [f"def {entry}({', '.join(inputs)}):", *indented([told, *lines])]
    if scalar and writer.quiet:
        function = [writer.quiet, *function]
    blocks = [[f"{name} = {text}" for text, name in writer.constants.items()], checked, function]
    return entry, frame(program.name, writer.imports, writer.helpers.values(), blocks, libraries(writer))


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
    """The libraries that a module needs, in words."""
    scipy, symad = (any(name in line for line in writer.imports) for name in ("scipy", "symad."))
    more = ["SciPy"] * (writer.needs_scipy or scipy) + ["symad"] * symad
    return " and ".join(["NumPy", *more])


def _returned(program: Program, writer: Writer) -> str:
    """The text of the results."""
    made = {s.value: s.expression for s in program.statements if isinstance(s, Assign)}
    shown: set[Value] = set()
    texts = [_result(r, writer, program, made, shown) for r in program.results]
    return returned(program.structure, texts)


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


def _every_expression(program: Program) -> list[Expression]:
    outer = [e for s in every_statement(program.statements) for e in s.expressions]
    return [part for e in (*outer, *program.results) for part in walk(e)]
