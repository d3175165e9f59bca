"""The NumPy backend: scalar graphs as straight-line code, array graphs as array statements."""

from __future__ import annotations

from symad.graph import Graph
from symad.numeric.array_program import print_array_module
from symad.numeric.backends import NUMPY
from symad.numeric.kernel import Kernel, compile_source
from symad.numeric.passes import prepare
from symad.numeric.scalar_program import is_scalar, print_scalar_module


def lower(graph: Graph, dtype: str, packed: bool) -> Kernel:
    """Print and compile a graph for NumPy."""
    prepared = prepare(graph)
    print_module = print_scalar_module if is_scalar(prepared) else print_array_module
    name, source = print_module(prepared, NUMPY, dtype, packed)
    return compile_source(name, source)
