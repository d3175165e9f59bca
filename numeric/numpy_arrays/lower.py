"""The NumPy backend: scalar graphs as straight-line code, array graphs as array statements."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

import sympy

from symad.core.graph import Graph
from symad.numeric.kernel import Kernel, compile_source
from symad.numeric.numpy_arrays import expressions, kernels, loop_statements  # noqa: F401  (register answers)
from symad.numeric.numpy_arrays.numpy_writer import NumPyWriter
from symad.numeric.numpy_arrays.scalars.numpy_runs import print_scalars
from symad.numeric.numpy_arrays.writer import ArrayWriter
from symad.numeric.passes import prepare
from symad.numeric.passes.memory_layout.packed_entries import is_scalar, is_straight
from symad.numeric.passes.ranges import in_range, norms
from symad.numeric.pipelines import (
    ARRAY_GRAPH,
    BLOCK_GRAPH,
    NUMPY_GRAPH,
    PassReport,
    ProgramPass,
    array_program,
    functions,
    run_graph_passes,
)
from symad.numeric.program.expressions import Value
from symad.numeric.scheduling.plans import Plans
from symad.numeric.scheduling.roles import Roles, roles_of
from symad.numeric.targets.module import written_module
from symad.numeric.targets.sizes import doubtful, needed_sizes

MIN_FREED_ELEMENTS = 2**14
"""The smallest number of elements of an array that is freed as soon as it is not needed.

To free arrays of 2**10 to 2**20 elements takes no time (bench_thresholds.py, "freed"); the number bounds how
many lines of code free memory.
"""


def lower(graph: Graph, dtype: str, packed: bool, report: list[PassReport] | None = None) -> Kernel:
    """Print and compile a graph for NumPy; each pass appends a line to ``report``."""
    straight = is_straight(graph)
    with roles_of(graph, inner=False).followed() as roles:
        prepared = graph if straight else run_graph_passes(graph, ARRAY_GRAPH, report)
        if straight or is_scalar(prepared):
            name, source = print_scalars(prepared, dtype, packed, roles, report)
            return compile_source(name, source, packed)
        last = (*norms(dtype), *BLOCK_GRAPH, *NUMPY_GRAPH, *in_range(dtype))
        made = run_graph_passes(prepared, last, report)
    writer = NumPyWriter(made, dtype, plans(passes, dtype, roles))
    return compile_source(*print_array_module(made, writer, needed_sizes(graph), report))


def print_array_module(
    graph: Graph, writer: ArrayWriter, needed: Sequence[sympy.Expr], report: list[PassReport] | None
) -> tuple[str, tuple[str, ...]]:
    """The entry point's name, and the parts of the source, of a graph after all graph passes.

    Sizes that are ``needed`` must not be negative, see `needed_sizes`.
    """
    program = writer.begun(graph, report)
    writer.kinds |= dict.fromkeys(program.inputs, writer.dtype)
    sizes = (*needed, *doubtful(node.shape for node in graph.nodes))
    return written_module(replace(program, needed=sizes), writer, graph.inputs)


def plans(
    made: Callable[[str, Plans, Sequence[Value | None]], tuple[ProgramPass, ...]], dtype: str, roles: Roles
) -> Plans:
    """The plans of a module whose programs go through the passes ``made``."""
    return Plans(partial(made, dtype), roles, MIN_FREED_ELEMENTS)


def passes(dtype: str, plans: Plans, places: Sequence[Value | None]) -> tuple[ProgramPass, ...]:
    """The passes on the program of a block, whose results are written to given places."""
    return array_program(dtype, plans, places, functions(plans.step, prepare, sparse=True))
