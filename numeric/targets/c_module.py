"""Scalar programs as one C99 file: a function for each part, and a workspace for values of earlier parts."""

from __future__ import annotations

from symad.core.dims import format_shape
from symad.core.identifiers import identifier
from symad.numeric.box import box_in_words
from symad.numeric.compiler.c_header import C_KEYWORDS, CallLayout, Slot, argument_function
from symad.numeric.compiler.c_templates import filled
from symad.numeric.modules.module_text import Names, one_line
from symad.numeric.program.expressions import Compute, Value, values_read
from symad.numeric.program.program import Program
from symad.numeric.program.statements import Assign, Block, Together
from symad.numeric.targets.c_functions import (
    HELPERS,
    MATH_H,
    OWN_MODULE,
    PACKED,
    SCALAR_C,
    helper_source,
    own_name,
    scalar_name,
)
from symad.numeric.targets.target import LibraryFunction
from symad.numeric.targets.writer import Writer
from symad.ops.elementwise.apply import Apply

BLOCK_LENGTH = 8
"""Functions evaluated together are padded to a multiple of this many arguments."""

MAX_INPUTS_NAMED = 40
"""The first comment of a file names at most this many inputs.

Origin: it bounds the length of a comment.
"""

RESERVED = C_KEYWORDS | {"x", "y", "w", "linux", "unix", "near", "far", "sqrt", "pow", *MATH_H.values()}
"""Names that no value may have: arguments, macros that compilers define, and functions that may be called."""


class CWriter(Writer):
    """Writes C, and records which of symad's functions it calls."""

    def __init__(self) -> None:
        super().__init__(SCALAR_C, "float64", Names(RESERVED))
        self.called: set[str] = set()

    def name(self, value: Value) -> str:
        """The name of a value: not in capitals, as macros are, and ASCII, which every compiler accepts."""
        if value not in self.named:
            plain = value.stem.isascii() and not value.stem.isupper()
            self.named[value] = self.names.unique(value.stem if plain and value.stem else "v")
        return self.named[value]

    def function(self, function: LibraryFunction) -> str:
        """The name of a function of math.h, or of one of symad's."""
        if function.module != OWN_MODULE:
            return str(function)
        self.called.add(function.name)
        return own_name(function.name)

    def filled(self, template: str, argument: str) -> str:
        """The template, filled with an argument."""

        def named(name: str) -> str:
            self.called.update({name} & {*HELPERS})
            return argument if name == "a" else scalar_name(name)

        return filled(template, named)


def c_name(name: str) -> str:
    """The C name of a function that is given none: no library has one like it."""
    return "symad_" + "".join(c if c.isascii() and c.isalnum() else "_" for c in identifier(name))


def print_c_module(program: Program, layout: CallLayout, name: str) -> str:
    """The source of a file: a program of parts, whose results are numbers, under the name of its function."""
    writer = CWriter()
    writer.named |= {value: f"x[{k}]" for k, value in enumerate(program.inputs)}
    signature = "const double *restrict x, double *restrict w, double *restrict y"
    functions: list[str] = []
    made_in, crossing = _parts(program)
    ready: list[list[int]] = [[] for _ in program.statements]
    for j, result in enumerate(program.results):
        ready[max((made_in.get(value, 0) for value in values_read(result)), default=0)].append(j)
    for k, part in enumerate(program.statements):
        body = _lines(part.block, writer, crossing)
        body += [f"y[{j}] = {writer.text(program.results[j])};" for j in ready[k]]
        functions += [f"static void part_{k}_({signature})", "{", "    (void)x; (void)w; (void)y;"]
        functions += [*(f"    {line}" for line in body), "}", ""]
        writer.named |= {v: f"w[{j}]" for v, j in crossing.items() if made_in[v] == k}
    calls = "\n".join(f"    part_{k}_(x, w, y);" for k in range(len(program.statements)))
    inputs, outputs, box = len(program.inputs), len(program.results), one_line(box_in_words())
    parts = [
        f"/* {one_line(program.name)}: x[{inputs}] -> y[{outputs}], printed by symad{box}.",
        "   Inputs in order: " + ", ".join(map(_titled, layout.inputs[:MAX_INPUTS_NAMED])),
        "*/",
        "#include <math.h>",
        "#include <stddef.h>",
        "#include <stdint.h>",
        "#include <string.h>",
        "",
        helper_source(writer.called),
        *functions,
        f"void {name}(const double *x, double *y)",
        "{",
        f"    double w[{max(len(crossing), 1)}];",
        calls,
        "}",
        "",
        f"void {name}_bound(const int64_t *frame)  /* the addresses of x and y */",
        "{",
        f"    {name}((const double *)(intptr_t)frame[0], (double *)(intptr_t)frame[1]);",
        "}",
        "",
        f"void {name}_batch(const double *x, double *y, size_t points)",
        "{",
        f"    for (size_t k = 0; k < points; ++k) {name}(x + k*{inputs}, y + k*{outputs});",
        "}",
        *(["", *argument_function(name, layout)] if layout.has_arguments else []),
    ]
    return "\n".join(parts) + "\n"


def _titled(place: Slot) -> str:
    """An input's name, with its shape."""
    return f"{place.title} {format_shape(place.shape)}" if place.shape else place.title


def _parts(program: Program) -> tuple[dict[Value, int], dict[Value, int]]:
    """The number of the part that makes each value, and the values that a later part reads, numbered."""
    made_in: dict[Value, int] = {}
    crossing: dict[Value, int] = {}
    if len(program.statements) == 1:
        return made_in, crossing
    for k, part in enumerate(program.statements):
        for statement in part.block:
            for expression in statement.expressions:
                for value in values_read(expression):
                    if made_in.get(value, k) != k:
                        crossing.setdefault(value, len(crossing))
            for value in statement.writes:
                made_in[value] = k
    return made_in, crossing


def _lines(block: Block, writer: CWriter, crossing: dict[Value, int]) -> list[str]:
    made = []
    for statement in block:
        if isinstance(statement, Assign):
            expression = writer.text(statement.expression)
            made.append(f"const double {writer.name(statement.value)} = {expression};")
        else:
            assert isinstance(statement, Together)
            made += _together(statement, writer)
        if crossing:
            made += [f"w[{crossing[v]}] = {writer.name(v)};" for v in statement.writes if v in crossing]
    return made


def _together(pack: Together, writer: CWriter) -> list[str]:
    """The arguments in an array, one call for all of them, and the values by name."""
    calls = [e for e in pack.expressions if isinstance(e, Compute)]
    op, count = calls[0].op, len(calls)
    assert isinstance(op, Apply)
    args = [writer.text(call.args[0]).text for call in calls]
    size = -(-count // BLOCK_LENGTH) * BLOCK_LENGTH
    filled = ", ".join([*args, *[args[0]] * (size - count)])
    name, function = writer.names.unique("p"), PACKED[op.head]
    writer.called.add(function)
    values = (f"const double {writer.name(v)} = {name}[{k}];" for k, v in enumerate(pack.writes))
    return [f"double {name}[{size}] = {{{filled}}};", f"{function}_all({name}, {size});", *values]
