"""Standalone C: a file and its header, for scalar graphs and for array graphs written out in scalars."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import sympy

from symad.core.dims import bind
from symad.core.graph import Graph
from symad.core.signatures import Traceable
from symad.errors import LoweringError
from symad.higher_order.captured import check_closed
from symad.numeric.compiler.c_header import checked_c_name, layout_of, print_header
from symad.numeric.entries.in_scalars import MAX_OPERATIONS, in_scalars
from symad.numeric.entry_point import plain_results
from symad.numeric.modules.module_text import one_line
from symad.numeric.passes import prepare
from symad.numeric.passes.algebra.definitions import write_definitions
from symad.numeric.passes.memory_layout.packed_entries import is_scalar
from symad.numeric.pipelines import PassReport
from symad.numeric.scalars.lower_c import print_c
from symad.numeric.scheduling.roles import roles_of
from symad.numeric.targets.c_module import c_name
from symad.numeric.targets.sizes import needed_sizes, numbers_of, symbolic_sizes
from symad.saving.atomic_files import write_text
from symad.tracing import as_graph

if TYPE_CHECKING:
    from symad.core.signatures import Inputs


@dataclass(frozen=True)
class CFile:
    """A function in C99, in double precision."""

    name: str
    """The name of the C function; ``name_args``, ``name_batch`` and ``name_bound`` are its variants."""
    source: str
    header: str

    def save(self, path: str | Path) -> None:
        """Write the source to a path that ends in .c, and the header next to it.

        Raises:
            LoweringError: the path does not end in .c.
        """
        if Path(path).suffix != ".c":
            raise LoweringError(f"{path}: C is saved under a name that ends in .c, with its header beside it")
        write_text(path, self.source)
        write_text(Path(path).with_suffix(".h"), self.header)


def c_file(
    f: Traceable,
    sizes: Mapping[sympy.Symbol | str, int] | None = None,
    inputs: Inputs | None = None,
    limit: int = MAX_OPERATIONS,
    log: Callable[[str], None] | None = None,
    name: str | None = None,
) -> CFile:
    """``f`` as standalone C: for microcontrollers, other languages, simulators.

    Arrays are written out in scalars, so that all sizes must be numbers and the code has no loops; linear
    systems are solved by elimination with partial pivoting. Where NumPy raises an error in a call, as for a
    singular matrix or an index out of range, the result here is NaN.

    Args:
        f: a function, in any form that `symad.trace` takes.
        sizes: numbers for symbolic sizes, by symbol or by name, such as ``{"n": 4}``.
        inputs: order and grouping of the arguments, as in `symad.trace`.
        limit: the most scalar operations that arrays may be written out in.
        log: a function that is called with a line for each pass.
        name: the name of the function in C, from which those of its variants and of the constants in the
            header are made; by default ``symad_`` and the name of ``f``. Functions of one program need
            different names.

    Returns:
        A `CFile` with ``source`` and ``header``, and ``save(path)``, which writes both.

    Raises:
        LoweringError: the name is not one for a function in C and C++; a size is not known; C lacks
            a function; an op cannot be written in scalars (eigenvalues, an implicit equation, random
            numbers); there are more operations than the limit.

    Example:
        >>> import sympy
        >>> from symad.numeric import c_file
        >>> x, y = sympy.symbols("x y", real=True)
        >>> "double" in c_file(sympy.sqrt(x**2 + y**2)).source
        True
    """
    whole = as_graph(f, None, inputs)
    check_closed(whole, "c_file")
    title = c_name(whole.name) if name is None else checked_c_name(name)
    report: list[PassReport] = []
    labels = roles_of(whole, inner=False).labels
    numbers = all_numbers(whole, sizes or {})
    arguments = whole.grouping
    graph = write_definitions(plain_results(whole.at(numbers).ungrouped()))
    scalars = prepare(graph, "float64")
    if not is_scalar(scalars):
        scalars = prepare(in_scalars(graph, limit, report), "float64")
    layout = layout_of(graph.input_nodes, scalars, labels, numbers, arguments)
    source = print_c(scalars, layout, title, report)
    if log is not None:
        for line in report:
            log(str(line))
    return CFile(title, "\n".join(map(_folded, source.split("\n"))), print_header(title, layout, source))


def _folded(line: str) -> str:
    """A line of C on lines of at most 100 characters; text and what the preprocessor reads stay."""
    if len(line) <= 100 or line.startswith("#") or line.endswith("\\") or '"' in line or "//" in line:
        return line
    below = " " * (len(line) - len(line.lstrip()) + 4)
    return textwrap.fill(line, 100, subsequent_indent=below, break_long_words=False, break_on_hyphens=False)


def all_numbers(
    graph: Graph, sizes: Mapping[sympy.Symbol | str, int], call: str = ""
) -> dict[sympy.Symbol, int]:
    """The numbers of all symbolic sizes; ``call`` is what gives them, in errors.

    Raises:
        LoweringError: a size has no number, or a number for which arrays are too short.
    """
    found = numbers_of(graph, sizes)
    missing = [one_line(symbol) for symbol in symbolic_sizes(graph) if symbol not in found]
    if missing:
        given = ", ".join(f'"{name}": 4' for name in missing)
        raise LoweringError(
            f"{'CUDA' if call else 'C'} that stands alone needs a number for each size, but {graph.name} "
            f"leaves {', '.join(missing)} open; give {call or f'c_file(f, sizes={{{given}}})'}, or --sizes "
            f"{' '.join(f'{name}=4' for name in missing)}"
        )
    short = [need for need in needed_sizes(graph) if bind(need, found) < 0]
    if short:
        at = ", ".join(f"{one_line(symbol)} = {number}" for symbol, number in found.items())
        raise LoweringError(f"{graph.name} has no value at {at}: {one_line(short[0])} is negative there")
    return found
