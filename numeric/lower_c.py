"""The native backend: scalar graphs as compiled C, called through ctypes."""

from __future__ import annotations

import copy
import ctypes
import threading
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from symad.errors import LoweringError
from symad.graph import Graph, Node, pack
from symad.numeric import lower_numpy
from symad.numeric.c_program import output_scalars, print_c, print_header
from symad.numeric.calling import bound
from symad.numeric.compiling import compile_c
from symad.numeric.kernel import Kernel
from symad.numeric.native import lower_arrays
from symad.numeric.passes import prepare
from symad.numeric.scalar_program import is_scalar
from symad.ops.sparse import CompressedRows

Binder = Callable[[Any, Any], Callable[[], None]]


def lower(graph: Graph, dtype: str, packed: bool) -> Kernel:
    """Print, compile and bind a scalar graph; without a compiler its NumPy form runs.

    Raises:
        LoweringError: the graph holds arrays, the dtype is not float64, or a function is not in C.
    """
    prepared = prepare(graph)
    if not is_scalar(prepared):
        return lower_arrays.lower(graph, dtype, packed)
    if dtype != "float64":
        raise LoweringError(f"backend 'c' takes scalar graphs in float64, not {dtype}; use backend='numpy'")
    name, source = print_c(prepared)
    plain = lower_numpy.lower(graph, dtype, packed)
    library = compile_c(source)
    if library is None:
        return replace(plain, c_source=source, c_header=print_header(name))
    native = _binder(prepared, getattr(library, f"{name}_bound"))
    function = _bind(prepared, getattr(library, f"{name}_batch"), native, plain.function, packed)
    return replace(plain, function=function, c_source=source, c_header=print_header(name), native=native)


def check_sizes(x: Any, y: Any, inputs: int, outputs: int) -> None:
    """Raises ValueError unless the bound vectors have the sizes of inputs and results."""
    if x.shape != (inputs,) or y.shape != (outputs,):
        raise ValueError(f"bind: x must have {inputs} elements and y {outputs}, not {len(x)} and {len(y)}")


def _binder(graph: Graph, one: Any) -> Binder:
    inputs, outputs = len(graph.input_nodes), len(output_scalars(graph))

    def bind(x: Any, y: Any) -> Callable[[], None]:
        check_sizes(x, y, inputs, outputs)
        return bound(one, [x, y], len(graph.nodes))

    return bind


def _bind(
    graph: Graph, many: Any, bind: Binder, plain: Callable[..., Any], packed: bool
) -> Callable[..., Any]:
    """A Python function that calls the compiled one; odd arguments go to the NumPy form."""
    count = len(graph.input_nodes)
    structures = [_structure(output) for output in graph.output_nodes]
    shapes = [
        tuple(output.shape) if structure is None else (structure.nnz,)
        for output, structure in zip(graph.output_nodes, structures, strict=True)
    ]
    sizes = [int(np.prod(shape)) for shape in shapes]
    total = len(output_scalars(graph))
    many.argtypes = (ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t)
    many.restype = None

    def split(flat: Any, lead: tuple[int, ...]) -> Any:
        parts, offset = [], 0
        for shape, size, structure in zip(shapes, sizes, structures, strict=True):
            part = flat[..., offset : offset + size].reshape(lead + shape)
            if structure is not None:
                part = _on_structure(part, structure)
            parts.append(part if np.ndim(part) else float(part))
            offset += size
        return pack(graph.structure, parts)

    here = threading.local()  # each thread has vectors of its own, whose addresses are known

    def flat_call(vector: Any) -> Any:
        values = np.asarray(vector)
        if values.shape != (count,) or values.dtype.kind not in "fiub":
            return plain(vector)
        try:
            x, y, run = here.call
        except AttributeError:
            x, y = np.empty(count), np.empty(total)
            here.call = x, y, run = x, y, bind(x, y)
        x[...] = values
        run()
        result = y.copy()
        return result if structures[0] is None else _on_structure(result, structures[0])

    def call(*values: Any) -> Any:
        if len(values) != count:
            return plain(*values)  # which raises Python's own error with the names
        arrays = [np.asarray(v) for v in values]
        if any(a.dtype.kind not in "fiub" for a in arrays):
            return plain(*values)
        lead = np.broadcast_shapes(*[a.shape for a in arrays]) if arrays else ()
        points = np.empty((*lead, count))
        for k, array in enumerate(arrays):
            points[..., k] = array
        result = np.empty((*lead, total))
        many(points.ctypes.data, result.ctypes.data, int(np.prod(lead)))
        return split(result, lead)

    return flat_call if packed else call


def _structure(output: Node) -> Any:
    """The matrix of zeros that a sparse output is copied from; None for other outputs."""
    op = output.op
    if not isinstance(op, CompressedRows):
        return None
    from scipy.sparse import csr_array

    matrix = csr_array((np.zeros(len(op.columns)), op.columns, op.rows), shape=op.shape)
    matrix.has_canonical_format = True
    return matrix


def _on_structure(entries: Any, structure: Any) -> Any:
    """A sparse matrix from its entries (nnz,), dense ones (..., m, n) from entries (..., nnz)."""
    if entries.ndim == 1:
        matrix = copy.copy(structure)
        matrix.data = entries
        return matrix
    dense = np.zeros((*entries.shape[:-1], *structure.shape))
    dense[(..., *structure.tocoo().coords)] = entries
    return dense
