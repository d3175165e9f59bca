"""The arguments of a module of arrays: converted, with the sizes that their shapes fix, and checked.

A function of the module, `_checked`, does this for the entry point, whose body then is mathematics alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TypeAlias

import sympy

from symad.core.dims import Dim, Shape, dim_symbols, format_shape
from symad.numeric.modules.module_text import one_line
from symad.numeric.targets import helpers
from symad.numeric.targets.sizes import bound_in_turn, size_bindings, size_checks
from symad.numeric.targets.statements import indented
from symad.numeric.targets.writer import Writer

Binding: TypeAlias = "tuple[sympy.Basic | None, str]"
"""A line, and the size that it binds; None for other lines."""


def arguments(
    names: Sequence[str],
    titles: Sequence[str],
    shapes: Sequence[Shape],
    sizes: Iterable[sympy.Expr],
    writer: Writer,
    body: Callable[[], list[str]],
) -> tuple[list[str], list[str]]:
    """The lines of `_checked`, and those of ``body`` after its call.

    Args:
        names: the names of the arguments in the code.
        titles: the names that errors show.
        shapes: the shapes of the arguments.
        sizes: what must not be negative, such as T − 2: NumPy would silently cut the array.
        writer: the writer of the module; it notes the sizes that are read.
        body: writes the body; `_checked` returns the sizes that this reads.
    """
    if not names:
        return [], body()
    dims = [*dict.fromkeys(s for shape in shapes for d in shape for s in sorted(dim_symbols([d]), key=str))]
    for symbol in dims:
        writer.dim_name(symbol)
    writer.sizes.clear()
    checking = _converted(names, titles, shapes, dims, writer)
    checking += [(None, line) for line in size_checks(sizes, writer.dim)]
    around = {*writer.sizes}
    writer.sizes.clear()
    lines = body()
    known = [*names, *(writer.dim_name(s) for s in dims if s in writer.sizes)]
    needed = [line for symbol, line in checking if symbol is None or symbol in around | writer.sizes]
    call = f"{', '.join(known)} = _checked({', '.join(names)})"
    return _function(names, [*needed, f"return {', '.join(known)}"]), [call, *lines]


def points(names: Sequence[str], writer: Writer, body: list[str]) -> tuple[list[str], list[str]]:
    """The same for numbers, or arrays of points that broadcast together."""
    given = ", ".join(f'"{name}": {name}' for name in names)
    made = f"{writer.helper(helpers._points)}({{{given}}}, {writer.type_text})"
    call = f"{', '.join(names)} = _checked({', '.join(names)})"
    return _function(names, [f"return {made}"]), [call, *body]


def _function(names: Sequence[str], lines: Sequence[str]) -> list[str]:
    told = '"""The arguments as arrays of the right shapes, and the dimensions."""'
    return [f"def _checked({', '.join(names)}):", *indented([told, *lines])]


def _converted(
    names: Sequence[str],
    titles: Sequence[str],
    shapes: Sequence[Shape],
    dims: Sequence[sympy.Symbol],
    writer: Writer,
) -> list[Binding]:
    """Each argument as an array; a size is bound where it first occurs alone."""
    made: list[Binding] = []
    late: list[Binding] = []
    order = size_bindings(shapes, dims)
    bound: set[sympy.Basic] = set()
    given: set[int] = set()
    for k in sorted(range(len(names)), key=lambda k: any(not _is_plain(d) for d in shapes[k])):
        given.add(k)
        shape = [d if isinstance(d, int) or d.free_symbols <= bound else None for d in shapes[k]]
        declared = f', "{one_line(format_shape(shapes[k]))}"' if None in shape else ""
        made.append((None, _check(names[k], titles[k], shape, declared, writer)))
        now = bound_in_turn(order, bound, given)
        for b in now:
            text = b.text(f"{names[b.argument]}.shape[{b.axis}]", writer)
            made.append((b.symbol, f"{writer.names.of(b.symbol)} = {text}"))
        if shape.count(None) > sum(b.argument == k and b.slope == 1 and b.offset == 0 for b in now):
            late.append((None, _check(names[k], titles[k], shapes[k], "", writer)))
    return [*made, *late]


def _check(name: str, title: str, shape: Sequence[Dim | None], declared: str, writer: Writer) -> str:
    """The line that converts an argument; None in the shape stands for any length."""
    dims = ", ".join(str(d if d is None else writer.dim(d)) for d in shape) + "," * (len(shape) == 1)
    display = str(len(shape)) if shape and not any(d is not None for d in shape) else f"({dims})"
    helper = writer.helper(helpers._array)
    return f'{name} = {helper}("{one_line(title)}", {name}, {writer.type_text}, {display}{declared})'


def _is_plain(dim: Dim) -> bool:
    return isinstance(dim, (int, sympy.Symbol))
