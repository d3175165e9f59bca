"""Functions of few numbers in arrays, as compiled scalars: a call costs less than one NumPy function.

The arrays are written out in scalars, and one C function computes all results. Its arguments are read in C
where they are float64 arrays of the right shapes; others are converted in Python, or go to the NumPy form,
whose errors name them.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import cache, partial
from typing import Any

import numpy as np

from symad.core.contents import inner_graphs
from symad.core.dims import is_concrete, size
from symad.core.graph import Graph, Node
from symad.core.questions import flops
from symad.errors import LoweringError
from symad.numeric.compiler.c_calls import bound
from symad.numeric.compiler.c_compiler import compile_c, compiler, native_options
from symad.numeric.compiler.c_layout import layout_of
from symad.numeric.entries.in_scalars import in_scalars
from symad.numeric.kernel import Kernel
from symad.numeric.modules.names import identifier
from symad.numeric.numpy_arrays import lower as lower_numpy
from symad.numeric.passes import prepare
from symad.numeric.pipelines import PassReport
from symad.numeric.scalars.flat_results import FlatResults, returns_truth
from symad.numeric.scalars.quick_calls import quick_call
from symad.numeric.targets.c_functions import NotInC
from symad.numeric.targets.c_module import c_name
from symad.ops.arrays.gathering import Gather, ScatterAdd
from symad.ops.basic.sources import ArrayConstant
from symad.ops.sparse.csr import CompressedRows

MAX_ENTRIES = 64
"""The most elements of all arguments and results together.

Origin: it bounds the length of the C function.
"""

MAX_OPERATIONS = 400
"""The most operations of such a function.

Origin: gcc 12 compiles 4,000 operations a second at -O1, so that this bounds it to 0.1 s.
"""


def is_small(graph: Graph) -> bool:
    """Whether a graph computes few numbers: few elements, few operations, no loops, and no index to check."""
    if not all(is_concrete(node.shape) for node in (*graph.input_nodes, *graph.nodes)):
        return False
    if sum(map(_stored, (*graph.input_nodes, *graph.output_nodes))) > MAX_ENTRIES:
        return False
    work = sum(max(int(flops(node.op, node)), _stored(node)) for node in graph.nodes)
    return work <= MAX_OPERATIONS and not any(inner_graphs(n.op) or _looks_up(n) for n in graph.nodes)


def _stored(node: Node) -> int:
    """The number of elements of an array; of a sparse matrix, of those that it stores."""
    return len(node.op.columns) if isinstance(node.op, CompressedRows) else int(size(node.shape))


def _looks_up(node: Node) -> bool:
    """Whether an index is computed: NumPy raises an error if it is out of range."""
    if not isinstance(node.op, (Gather, ScatterAdd)):
        return False
    return not isinstance(node.args[isinstance(node.op, Gather)].op, ArrayConstant)


def lower_small(
    graph: Graph, print_c: Callable[..., str], report: list[PassReport] | None = None
) -> Kernel | None:
    """The kernel of a graph with array inputs, in float64; None if it has no form in scalars or in C."""
    if compiler() is None or not is_small(graph):
        return None
    try:
        prepared = prepare(in_scalars(graph, MAX_OPERATIONS, report))
        name = c_name(prepared.name)
        source = print_c(prepared, layout_of(prepared.input_nodes, prepared), name, report)
    except (LoweringError, NotInC):
        return None
    library = None if returns_truth(prepared, False) else compile_c(source, native_options())
    if library is None:
        return None
    results, shapes = FlatResults.of(prepared), [tuple(map(int, n.shape)) for n in graph.input_nodes]
    inputs = len(prepared.input_nodes)
    plain = cache(partial(lower_numpy.lower, graph, "float64", False))
    here = threading.local()  # each thread has its own vectors, which its calls reuse

    def at_point(values: list[np.ndarray]) -> np.ndarray:
        if not hasattr(here, "call"):
            x, y = np.zeros(inputs), np.zeros(results.total)
            here.call = x, y, bound(getattr(library, f"{name}_bound"), [x, y], len(prepared.nodes))
        x, y, run = here.call
        x[...] = np.concatenate([np.ravel(v) for v in values]) if values else ()
        run()
        copy: np.ndarray = y.copy()
        return copy

    def function(*values: Any) -> Any:
        arrays = [np.asarray(v) for v in values]
        if [a.shape for a in arrays] != shapes or any(a.dtype.kind not in "fiub" for a in arrays):
            return plain().function(*values)  # it raises the error with the names
        return results.split(at_point(arrays))

    def quick(otherwise: Callable[..., Any], packed: bool = False) -> Callable[..., Any]:
        one, given = getattr(library, name), () if packed else shapes
        return quick_call(one, results, inputs, len(prepared.nodes), packed, otherwise, None, shapes=given)

    title, vector = identifier(graph.name), partial(quick, packed=True)
    return Kernel(title, "", function, {}, source, plain=plain, quick=quick, one_vector=vector)
