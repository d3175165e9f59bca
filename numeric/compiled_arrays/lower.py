"""Backend "c" for array graphs: NumPy modules with compiled kernels."""

from __future__ import annotations

from dataclasses import replace

from symad.core.graph import Graph
from symad.numeric.box import box_in_words
from symad.numeric.compiled_arrays import kernels  # noqa: F401  (registers answers)
from symad.numeric.compiled_arrays.choose_kernels import fuse
from symad.numeric.compiled_arrays.writer import NativeWriter
from symad.numeric.compiler.c_compiler import NotCompiled, compiler
from symad.numeric.kernel import Kernel, compile_source
from symad.numeric.modules.module_text import one_line
from symad.numeric.numpy_arrays import lower as lower_numpy
from symad.numeric.passes.ranges import in_range, norms
from symad.numeric.pipelines import BLOCK_GRAPH, COMPILED_GRAPH, KERNEL_GRAPH
from symad.numeric.scheduling.roles import roles_of
from symad.numeric.stages import PassReport, in_order, run_graph_passes
from symad.numeric.targets.sizes import needed_sizes

LOOPS_ALONE = """\
/* The loops of {name}, printed by symad{box}. Its Python file calls them, and NumPy between them.
   Functions of scalars are printed as C that stands alone. */
"""


def lower(graph: Graph, dtype: str, report: list[PassReport] | None = None) -> Kernel:
    """Print and compile a graph; if no compiler works, its NumPy form is used.

    The passes for NumPy that compute whole arrays are left out where a compiled loop or chain reads its
    operands piece by piece: gates as contiguous memory, biases as weights, functions before slices.
    """
    if compiler() is None:
        return lower_numpy.lower(graph, dtype, False, report)
    passes = in_order((*COMPILED_GRAPH, *norms(dtype), *BLOCK_GRAPH, *KERNEL_GRAPH, *in_range(dtype)))
    with roles_of(graph, inner=False).followed() as roles:
        fused = fuse(run_graph_passes(graph, passes, report), dtype)
    writer = NativeWriter(fused, dtype, roles)
    name, source = lower_numpy.print_array_module(fused, writer, needed_sizes(graph), report)
    loops = LOOPS_ALONE.format(name=name, box=one_line(box_in_words())) + writer.c_source
    try:
        return replace(compile_source(name, source), c_source=loops)
    except NotCompiled:
        return replace(lower_numpy.lower(graph, dtype, False, report), c_source=loops)
