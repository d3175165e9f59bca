"""The native backend: scalar graphs as compiled C, called through ctypes."""

from __future__ import annotations

import copy
import ctypes
import threading
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from symad.errors import LoweringError
from symad.graph import Graph, Node, pack
from symad.numeric import lower_numpy
from symad.numeric.c_program import output_scalars, print_c, print_header
from symad.numeric.compiling import compile_c
from symad.numeric.kernel import Kernel
from symad.numeric.passes import prepare
from symad.numeric.scalar_program import is_scalar
from symad.ops.sparse import CompressedRows

DOUBLE = ctypes.POINTER(ctypes.c_double)


def lower(graph: Graph, dtype: str, packed: bool) -> Kernel:
    """Print, compile and bind a scalar graph; without a compiler its NumPy form runs.

    Raises:
        LoweringError: the graph holds arrays, the dtype is not float64, or a function is not in C.
    """
    prepared = prepare(graph)
    if not is_scalar(prepared) or dtype != "float64":
        what = f"dtype {dtype}" if dtype != "float64" else "arrays inside the graph"
        raise LoweringError(f"backend 'c' takes scalar graphs in float64, not {what}; use backend='numpy'")
    name, source = print_c(prepared)
    plain = lower_numpy.lower(graph, dtype, packed)
    library = compile_c(source)
    if library is None:
        return replace(plain, c_source=source, c_header=print_header(name))
    function = _bind(prepared, name, library, plain.function, packed)
    sizes = len(prepared.input_nodes), len(output_scalars(prepared))
    native = _binder(getattr(library, f"{name}_bound"), *sizes)
    return replace(plain, function=function, c_source=source, c_header=print_header(name), native=native)


def pointer(array: Any) -> Any:
    """The address of an array, which it keeps alive."""
    return array.ctypes.data_as(ctypes.c_void_p)


def check_sizes(x: Any, y: Any, inputs: int, outputs: int) -> None:
    """Raises ValueError unless the bound vectors have the sizes of inputs and results."""
    if x.shape != (inputs,) or y.shape != (outputs,):
        raise ValueError(f"bind: x must have {inputs} elements and y {outputs}, not {len(x)} and {len(y)}")


def _binder(one: Any, inputs: int, outputs: int) -> Callable[[Any, Any], Callable[[], None]]:
    def bind(x: Any, y: Any) -> Callable[[], None]:
        check_sizes(x, y, inputs, outputs)
        return bound(one, [x, y])

    return bind


def bound(function: Any, parts: Sequence[Any]) -> Callable[[], None]:
    """A compiled function of one frame: the addresses of arrays, and lengths. One argument is quickest."""
    frame = np.array([p if isinstance(p, int) else p.ctypes.data for p in parts], dtype=np.int64)
    function.restype = None
    call = partial(function, pointer(frame))
    vars(call)["parts"] = parts  # the arrays live as long as the call that holds their addresses
    return call


def _bind(
    graph: Graph, name: str, library: ctypes.CDLL, plain: Callable[..., Any], packed: bool
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
    one, many = getattr(library, name), getattr(library, f"{name}_batch")
    one.argtypes = (ctypes.c_void_p, ctypes.c_void_p)
    many.argtypes = (ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t)
    one.restype = many.restype = None

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
            run = partial(one, pointer(x), pointer(y))
            here.call = x, y, run
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
