"""Straight-line scalar code as a standalone module: the body, its two bindings, and the entry point.

`math` raises where IEEE arithmetic gives inf or nan; such points are passed to the NumPy binding, so that
results always have NumPy's semantics.
"""

from __future__ import annotations

from collections.abc import Sequence

from symad.numeric.modules.module_text import frame, returned, summary
from symad.numeric.modules.names import Names
from symad.numeric.program.program import Program
from symad.numeric.targets import scalar_helpers as helpers
from symad.numeric.targets.module import libraries
from symad.numeric.targets.point_and_batch import BINDINGS, BodyWriter
from symad.numeric.targets.statements import indented, lines_of


def print_scalar_module(program: Program, dtype: str, packed: bool) -> tuple[str, tuple[str, ...]]:
    """The entry point's name and the source of the module.

    Args:
        program: a program of scalars, with arrays of scalars among its results only.
        dtype: the type of batches, and of points not computed by `math`, which has doubles only.
        packed: whether the entry point takes all inputs as one vector x.
    """
    names = Names(BINDINGS)
    entry = names.unique(program.name)
    sides = {"point": 0} if dtype == "float64" or not program.inputs else {}
    sides |= {"batch": 1} if program.inputs else {}
    writer = BodyWriter(names, tuple(sides.values()))
    writer.module.unique(entry)
    writer.imports.add("import types")
    inputs = [writer.name(value) for value in program.inputs]
    body = lines_of(program.statements, writer)
    texts = [writer.text(result).text for result in program.results]
    body.append(f"return {returned(program.structure, texts)}")
    made = _entry(program, entry, inputs, dtype, packed, writer)
    if inputs or writer.bindings:
        writer.imports.add("import numpy as np")
    tables = {
        where: {name: pair[side] for name, pair in sorted(writer.bindings.items())}
        for where, side in sides.items()
    }
    blocks = [
        [f"{name} = {text}" for text, name in writer.constants.items()],
        [f"def _body({', '.join(inputs)}):", *indented(body)],
        [
            "# One body, two bindings: plain floats by math, arrays and exceptional points by NumPy.",
            *(
                f"_at_{name} = types.FunctionType(_body.__code__, {_display(table)})"
                for name, table in tables.items()
            ),
        ],
        made,
    ]
    return entry, frame(program.name, writer.imports, writer.helpers.values(), blocks, libraries(writer))


def _entry(
    program: Program, entry: str, inputs: Sequence[str], dtype: str, packed: bool, writer: BodyWriter
) -> list[str]:
    """The function that users call: it evaluates a point of floats directly, all else by `_evaluated`."""
    signature = ", ".join(inputs)
    results, shapes = [r.shape for r in program.results], [v.shape for v in program.inputs]
    told = summary(program.labels, results, program.structure, zip(inputs, shapes, strict=True))
    head = [f"def {entry}({'x' if packed else signature}):", f"    {told}"]
    if dtype == "float64" and writer.warns:
        head = ['@np.errstate(all="ignore")', *head]
    if not inputs:
        return [*head, "    return _at_point()"]
    double = dtype == "float64"
    ranks = tuple(len(result.shape) for result in program.results)
    shown = tuple(value.stem for value in program.inputs)
    values, call = f"({signature}{',' * (len(inputs) == 1)})", signature
    if packed:
        values, call = "x.tolist()" if double else "list(x)", "*x.tolist()"
        head += [
            f"    x = np.asarray(x, dtype=np.{dtype})",
            f"    if x.shape != ({len(inputs)},):",
            f'        raise ValueError(f"x must have shape ({len(inputs)},), not {{x.shape}}")',
        ]
    attempt = ["try:", f"    return _at_point({call})", "except (ArithmeticError, ValueError):", "    pass"]
    attempt = attempt if packed else [f"if {_all_floats(inputs)}:", *indented(attempt)]
    at_point = "_at_point" if double else "None"
    rest = f"_NAMES, {ranks}, {at_point}, _at_batch, np.{dtype}"
    return [
        f"_NAMES = {shown!r}",
        "",
        "",
        *head,
        *indented(attempt if double else []),
        f"    return {writer.helper(helpers._evaluated)}({values}, {rest})",
    ]


def _all_floats(inputs: Sequence[str]) -> str:
    """The condition that all arguments are floats; a set of the types takes longer for any number of them."""
    return " is ".join([*(f"type({name})" for name in inputs), "float"])


def _display(table: dict[str, str]) -> str:
    return "{" + ", ".join(f'"{name}": {text}' for name, text in table.items()) + "}"
