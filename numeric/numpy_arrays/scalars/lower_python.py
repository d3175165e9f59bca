"""Graphs of scalars as NumPy modules: straight-line Python, or array statements for many equal operations."""

from __future__ import annotations

from symad.core.graph import Graph
from symad.numeric.numpy_arrays.scalars.numpy_runs import print_runs_module
from symad.numeric.passes.ranges import in_range, norms
from symad.numeric.pipelines import (
    SCALAR_GRAPH,
    SCALAR_PROGRAM,
    PassReport,
    run_graph_passes,
    run_program_passes,
)
from symad.numeric.program.program import Program
from symad.numeric.scheduling.roles import Roles
from symad.numeric.scheduling.schedule import schedule
from symad.numeric.targets.scalar_module import print_scalar_module


def print_scalars(
    graph: Graph, dtype: str, packed: bool, roles: Roles, report: list[PassReport] | None = None
) -> tuple[str, tuple[str, ...]]:
    """The entry point's name and the source of the module; each pass adds a line to ``report``."""
    prepared = run_graph_passes(graph, (*SCALAR_GRAPH, *norms(dtype), *in_range(dtype)), report)
    in_runs = print_runs_module(prepared, dtype, packed)
    return in_runs or print_scalar_module(scalar_program(prepared, roles, report), dtype, packed)


def scalar_program(prepared: Graph, roles: Roles, report: list[PassReport] | None = None) -> Program:
    """The program of a graph after `SCALAR_GRAPH`."""
    program = schedule(prepared, roles.of_results(prepared))
    return run_program_passes(program, SCALAR_PROGRAM, report, check=False)
