"""A program as a standalone module: imports, helpers, and the entry point.

The last function is the entry point; loaders of files rely on this. One helper before it converts and
checks the arguments.
"""

from __future__ import annotations

from collections.abc import Sequence

from symad.numeric.expressions.numbers import is_number
from symad.numeric.expressions.views import Shown, origins, shown_by
from symad.numeric.modules.module_text import frame, returned, summary
from symad.numeric.modules.names import Names
from symad.numeric.passes.memory_layout.packed_entries import Pack
from symad.numeric.program.expressions import Compute, Expression, Value, parts, walk
from symad.numeric.program.program import Program
from symad.numeric.program.statements import every_statement
from symad.numeric.targets.arguments import arguments, points
from symad.numeric.targets.sizes import doubtful
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
    given = shown_by(program)
    shown: set[Value] = set()
    texts = [_result(r, writer, [*origins(r, given)], program.inputs, shown) for r in program.results]
    return returned(program.structure, texts)


def _result(
    expression: Expression,
    writer: Writer,
    sources: Sequence[Shown],
    inputs: Sequence[Value],
    shown: set[Value],
) -> str:
    """The text of a result, which has NumPy's type and memory of its own.

    A result shares no memory with arguments, constants or earlier results. ``shown`` are the values whose
    memory earlier results show; those of this result are added.
    """
    text = writer.text(expression).text
    number = any(is_number(origin.made) and not _is_truth(origin.made) for origin in sources)
    if number and not expression.shape:
        if writer.batch:
            return f"np.full_like({writer.batch}, {text})[()]"
        return f"np.{writer.dtype}({text})" if is_number(expression) else text
    values = {origin.value for origin in sources if origin.value is not None}
    borrowed = bool(values & shown) or (expression.shape and any(_is_borrowed(o, inputs) for o in sources))
    shown |= values
    if not expression.shape and any(_is_boxed(origin.made) for origin in sources):
        return f"{text}[()]"
    return f"{text}.copy()" if borrowed else text


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


def _every_expression(program: Program) -> list[Expression]:
    outer = [e for s in every_statement(program.statements) for e in s.expressions]
    return [part for e in (*outer, *program.results) for part in walk(e)]
