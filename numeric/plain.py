"""`style="plain"`: code to read, teach and check against, with one line for each mathematical step."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from symad.core.graph import Graph
from symad.errors import LoweringError
from symad.numeric.kernel import Kernel, compile_source
from symad.numeric.passes.ranges import in_range, norms
from symad.numeric.pipelines import (
    PLAIN_GRAPH,
    PLAIN_PROGRAM,
    PassReport,
    run_graph_passes,
    run_program_passes,
)
from symad.numeric.program.program import Program
from symad.numeric.scheduling.roles import roles_of
from symad.numeric.scheduling.schedule import schedule
from symad.numeric.targets import arrays, linear_algebra  # noqa: F401  (register answers)
from symad.numeric.targets.module import print_module
from symad.numeric.targets.sizes import needed_sizes
from symad.numeric.targets.statements import indented, lines_of
from symad.numeric.targets.writer import SOURCES, Writer
from symad.tracing.ranged import BY_FLOATS, Ranged

if TYPE_CHECKING:
    import sympy


def plain_program(graph: Graph, report: list[PassReport] | None = None, dtype: str = "float64") -> Program:
    """The program that the plain text prints."""
    notes = report if report is not None else []
    with roles_of(graph).followed() as roles:
        passes = (*PLAIN_GRAPH, *norms(dtype, checked=False), *in_range(dtype))
        prepared = run_graph_passes(graph, passes, notes)
    program = replace(schedule(prepared, roles.of_results(prepared)), needed=needed_sizes(graph))
    return run_program_passes(program, PLAIN_PROGRAM, notes)


def lower_plain(graph: Graph, dtype: str, report: list[PassReport] | None = None) -> Kernel:
    """A graph as plain NumPy code."""
    name, source = print_module(plain_program(graph, report, dtype), dtype)
    return compile_source(name, source)


# ---- sums, products and integrals as functions of a module ---------------------------------------


def ranged_source(head: type[sympy.Basic], name: str, writer: Writer) -> str:
    """A function of (low, high, parameters), with the function of its terms inside.

    Raises:
        LoweringError: the library is not NumPy.
    """
    if writer.np != "np":
        raise LoweringError(f"a {head.kind} whose range is only known in a call has no form for {writer.np}")
    program = plain_program(head.body)
    terms = writer.beside()
    variable, *parameters = map(terms.name, program.inputs)
    lines = lines_of(program.statements, terms)
    given = ", ".join(["low", "high", *parameters])
    return "\n".join([
        f"def {name}({given}):",
        f'    """The {head.kind} of the terms from low to high."""',
        f"    def term({', '.join([variable, *parameters])}):",
        *indented(indented([*lines, f"return {terms.text(program.results[0])}"])),
        "",
        f"    return {writer.helper(BY_FLOATS[head.kind])}(term, {given})",
    ])  # fmt: skip


SOURCES[Ranged] = ranged_source
