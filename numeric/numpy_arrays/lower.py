"""The NumPy backend: scalar graphs as straight-line code, array graphs as array statements."""

from __future__ import annotations

from symad.core.graph import Graph
from symad.numeric.backends import NUMPY
from symad.numeric.kernel import Kernel, compile_source
from symad.numeric.modules.size_checks import needed_sizes
from symad.numeric.numpy_arrays.in_place_printer import InPlacePrinter
from symad.numeric.numpy_arrays.module import print_array_module
from symad.numeric.numpy_arrays.ops import mosaic  # noqa: F401  (register answers)
from symad.numeric.numpy_arrays.scalars.lower_python import print_scalars
from symad.numeric.passes.memory_layout.packed_entries import is_scalar, is_straight
from symad.numeric.pipelines import (
    ARRAY_GRAPH,
    BLOCK_GRAPH,
    NUMPY_GRAPH,
    PassReport,
    in_range,
    run_graph_passes,
)
from symad.numeric.scheduling.roles import roles_of


def lower(graph: Graph, dtype: str, packed: bool, report: list[PassReport] | None = None) -> Kernel:
    """Print and compile a graph for NumPy; each pass appends a line to ``report``."""
    straight = is_straight(graph)
    with roles_of(graph, inner=False).followed() as roles:
        prepared = graph if straight else run_graph_passes(graph, ARRAY_GRAPH, report)
        if straight or is_scalar(prepared):
            name, source = print_scalars(prepared, dtype, packed, roles, report)
            return compile_source(name, source, packed)
        made = run_graph_passes(prepared, (*BLOCK_GRAPH, *NUMPY_GRAPH, *in_range(dtype)), report)
    needed = needed_sizes(graph)
    return compile_source(*print_array_module(made, NUMPY, dtype, InPlacePrinter, roles, needed, report))
