"""Calls of compiled scalar functions: arguments read in C or in Python, and results from one flat vector.

A call through Python costs some tens of microseconds for its arguments: each is made an array, shapes are
compared, columns are arranged. Here floats, ints and float64 vectors go straight to the compiled function;
all other arguments take the way through Python. Python's headers are needed, as in `c_calls`; NumPy's, which
come with it, make reading faster.
"""

from __future__ import annotations

import ctypes
import sys
import sysconfig
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, cached_property, partial
from itertools import accumulate, pairwise
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from symad.core.arrays import Array, ArrayLike
from symad.core.graph import Graph, Node, TupleOf, pack
from symad.errors import LoweringError
from symad.numeric.compiler.c_calls import MAX_LOCKED, CFunction, c_text
from symad.numeric.compiler.c_compiler import NotCompiled, compile_c, warn_once
from symad.numeric.kernel import Kernel
from symad.numeric.numpy_arrays.memory_reuse import new_array
from symad.ops.elementwise.selection import Condition
from symad.ops.sparse.csr import CompressedRows

if TYPE_CHECKING:
    from scipy.sparse import csr_array

    from symad.core.structures import Structure


# ---- results of compiled scalar code -------------------------------------------------------------


def returns_truth(graph: Graph, packed: bool) -> bool:
    """Whether a result is a truth value, which a vector of numbers cannot hold; packed ones are numbers."""
    return not packed and any(isinstance(output.op, Condition) for output in graph.output_nodes)


@dataclass(frozen=True)
class FlatResults:
    """The outputs of a graph in one vector, one output after the other."""

    structure: Structure
    shapes: tuple[tuple[int, ...], ...]
    matrices: tuple[csr_array | None, ...]
    """For each sparse output the matrix of zeros whose copies are results; None for other outputs."""

    @classmethod
    def of(cls, graph: Graph) -> FlatResults:
        """The places of a graph's outputs."""
        matrices = tuple(_matrix(output) for output in graph.output_nodes)
        shapes = tuple(
            tuple(int(d) for d in output.shape) if matrix is None else (int(matrix.nnz),)
            for output, matrix in zip(graph.output_nodes, matrices, strict=True)
        )
        return cls(graph.structure, shapes, matrices)

    @cached_property
    def places(self) -> tuple[tuple[slice, tuple[int, ...], csr_array | None], ...]:
        """For each output: its slice of the vector, its shape, and its matrix of zeros."""
        ends = list(accumulate(map(prod, self.shapes), initial=0))
        spans = (slice(*span) for span in pairwise(ends))
        return tuple(zip(spans, self.shapes, self.matrices, strict=True))

    @cached_property
    def total(self) -> int:
        """The length of the vector."""
        return sum(map(prod, self.shapes))

    @cached_property
    def whole(self) -> tuple[int, ...] | None:
        """The shape of the result if it is one dense array; else None."""
        one = self.structure is None and bool(self.shapes[0]) and self.matrices[0] is None
        return self.shapes[0] if one else None

    @cached_property
    def is_flat_tuple(self) -> bool:
        """Whether the result is a tuple of the outputs."""
        structure = self.structure
        return isinstance(structure, TupleOf) and all(item is None for item in structure.items)

    def split(self, flat: np.ndarray) -> Any:
        """The outputs at one point, from the vector (total,)."""
        if self.whole is not None:
            return flat.reshape(self.whole)
        parts: list[np.ndarray | csr_array] = []
        for place, shape, matrix in self.places:
            if matrix is not None:
                parts.append(_filled(flat[place], matrix))
            elif not shape:
                parts.append(flat.item(place.start))
            else:
                parts.append(flat[place] if len(shape) == 1 else flat[place].reshape(shape))
        return tuple(parts) if self.is_flat_tuple else pack(self.structure, parts)

    def at_points(self, rows: np.ndarray, batch: tuple[int, ...]) -> Any:
        """The outputs at a batch of points, from rows (total, points): one row for each element."""
        parts: list[np.ndarray | csr_array] = []
        for place, shape, matrix in self.places:
            if not shape:
                parts.append(rows[place.start].reshape(batch))
                continue
            part = np.moveaxis(rows[place].reshape(prod(shape), *batch), 0, -1)
            parts.append(part.reshape(*batch, *shape) if matrix is None else _filled(part, matrix))
        return pack(self.structure, parts)


def _matrix(output: Node) -> csr_array | None:
    """The matrix of zeros that a sparse output is copied from; None for other outputs."""
    op = output.op
    if not isinstance(op, CompressedRows):
        return None
    from scipy.sparse import csr_array

    matrix = csr_array((np.zeros(len(op.columns)), op.columns, op.rows), shape=op.shape)
    matrix.has_canonical_format = True
    matrix.indices.flags.writeable = matrix.indptr.flags.writeable = False  # all results share them
    return matrix


def _filled(entries: np.ndarray, matrix: csr_array) -> csr_array | np.ndarray:
    """A sparse matrix from entries (nnz,), or dense matrices (..., m, n) from entries (..., nnz)."""
    if entries.ndim == 1:
        made = object.__new__(type(matrix))
        vars(made).update(vars(matrix), data=entries)  # like copy.copy, in a fifth of its time
        return made
    dense = np.zeros((*entries.shape[:-1], *matrix.shape))
    places = matrix.tocoo()
    dense[..., places.row, places.col] = entries
    return dense


MIN_LANES, MIN_LANES_IF_LONG, LONG_FUNCTION, NEVER = 40, 257, 2000, 2**62
"""Points from which several at a time are faster than one by one (25 to 36 for 5 to 60 operations, by
benchmarks/scalar/bench_small_batches.py); the same for functions of more than ``LONG_FUNCTION`` operations,
whose plan costs as much as some hundred calls, 20 µs per operation; and a number that is never reached."""

ROWS, POINTS, SEPARATE = 0, 1, 2
"""The layout of a batch's results: a row for each number, an array per point, or an array per number."""

MIN_BLOCK_BYTES = 1 << 20
"""From this many bytes on, all results of a batch are one block of memory, which is reused.

Ten results take 1.3 of the time in a block of 20 KiB, 1.0 in one of 640 KiB, 0.92 in one of 1.3 MB, 0.86 in
one of 10 MB (bench_scalar_thresholds.py, "block").
"""

FLOAT, FLOATS, ARRAY = 0, 1, 2
"""The result of a call at one point: a float, a tuple of floats, or the result of `finish` on a vector."""


READERS = "read_by_numpy.h", "read_by_buffers.h"
"""Two readers of arrays, the faster one first."""

NO_QUICK_CALLS = "each call of a compiled scalar function takes some 10 µs more, for arguments read in Python"


@cache
def _maker() -> Any:
    """The compiled function that makes calls; None, with one warning, without Python's headers.

    NumPy's headers make it faster by too little for a word where they are missing or of no use.
    """
    missing = Path(sysconfig.get_paths()["include"]) / "Python.h"
    if not missing.exists():
        warn_once(NO_QUICK_CALLS, f"{missing} is missing; Debian has it in python3-dev")
        return None
    library = None
    for reader in READERS:
        try:
            library = _library(reader)
            break
        except LoweringError as error:
            refused = str(error)
    else:
        warn_once(NO_QUICK_CALLS, refused[-200:])
    if library is None:  # no compiler works, which was said
        return None
    maker = ctypes.PyDLL(library._name, handle=library._handle).symad_quick
    maker.argtypes = (ctypes.c_void_p, ctypes.py_object)
    maker.restype = ctypes.py_object
    return maker


def _library(reader: str) -> ctypes.CDLL | None:
    """The library of calls with a reader of arrays, a file; None if nothing can be compiled.

    Raises:
        LoweringError: the compiler refuses the reader, as it does where NumPy's headers are missing.
    """
    options = ["-std=c11", f"-I{sysconfig.get_paths()['include']}"]
    options += ["-undefined", "dynamic_lookup"] if sys.platform == "darwin" else []
    interpreter = sysconfig.get_config_var("EXT_SUFFIX")
    if reader != READERS[-1]:
        options += [f"-I{np.get_include()}", "-Werror=implicit-function-declaration"]
        interpreter += f" and NumPy {np.__version__}"
    return compile_c(c_text(interpreter, reader, "quick_calls.c"), [*options, f"-DSHORT={MAX_LOCKED}"])


@dataclass(frozen=True)
class Framed:
    """A compiled function with a frame that holds its vectors of inputs and results.

    Attributes:
        frame: a frame from `symad.numeric.compiler.c_calls.frame_of`.
        x: (inputs,), stored in the frame.
        y: (results,), stored in the frame.
        parts: the other objects whose addresses are in the frame.
    """

    frame: np.ndarray
    x: np.ndarray
    y: np.ndarray
    parts: Sequence[int | np.ndarray]


Lanes = Callable[[], "Framed | None"]
"""Plans the computation of several points at a time; None if that cannot be compiled."""


def quick_call(
    function: CFunction | Framed,
    results: FlatResults,
    inputs: int,
    operations: int,
    packed: bool,
    otherwise: Callable[..., Any],
    lanes: Lanes | None,
    least: int = NEVER,
    most: int = NEVER,
    shapes: Sequence[tuple[int, ...]] = (),
) -> Callable[..., Any]:
    """The Python function of a compiled one, with its arguments read in C where that is possible.

    Args:
        function: a ctypes function ``void f(const double *x, double *y)`` without state, or a `Framed`.
        results: the results in y.
        inputs: the number of entries of x.
        operations: the approximate number of operations of a call; long calls release Python's lock.
        packed: whether x itself is the argument.
        otherwise: the function for arguments that are neither numbers nor float64 vectors.
        lanes: computes several points at a time; without it batches go to ``otherwise``.
        least: the points from which several are computed at a time. If that cannot be compiled, any number is
            computed one by one, in 0.1 to 0.4 of NumPy's time.
        most: batches of more points than this go to ``otherwise``.
        shapes: the shapes of the arguments, if these are arrays whose elements are the inputs.
    """
    maker = _maker()
    if maker is None:
        return otherwise
    total = results.total
    scalars = not any(results.shapes) and all(m is None for m in results.matrices)
    one = scalars and results.structure is None
    flat = isinstance(results.structure, TupleOf) and all(item is None for item in results.structure.items)
    returns = ARRAY if not scalars or not (one or flat) else FLOAT if one else FLOATS
    shape = results.whole or (total,)
    finish = results.split if results.whole is None else None
    address = _address(function)
    batches, new_rows, finish_rows = _batches(results, scalars and (one or flat), one)
    new_block = _block(results, batches, one)
    few = NEVER if lanes is not None and total else -1
    rest = [inputs, total, operations, packed, returns, batches, few, least, most]
    rest.append(MIN_BLOCK_BYTES // (8 * max(total, 1)))
    table = np.array([number for shape in shapes for number in (len(shape), *shape)], np.int64)
    rest += [len(shapes), table.ctypes.data if shapes else 0]
    numbers = np.array([*address, *rest], np.int64)
    kept: list[Framed] = []
    plan = partial(_planned, lanes, kept)
    objects = (
        np.ndarray, lambda: np.empty(shape), finish, new_rows, finish_rows, otherwise, plan, 
        (function, kept, table), new_block,
    )  # fmt: skip
    made: Callable[..., Any] = maker(numbers.ctypes.data, objects)
    return made


def _address(function: CFunction | Framed) -> list[int]:
    """The addresses of a function, of its frame, and of the frame's vectors; 0 for those that it lacks."""
    if isinstance(function, Framed):
        return [0, function.frame.ctypes.data, function.x.ctypes.data, function.y.ctypes.data]
    return [ctypes.cast(function, ctypes.c_void_p).value or 0, 0, 0, 0]


def _planned(lanes: Lanes | None, kept: list[Framed]) -> int:
    """The address of the frame for several points at a time, which is kept; 0 if there is none."""
    found = lanes() if lanes is not None else None
    if found is None:
        return 0
    kept.append(found)
    return int(found.frame.ctypes.data)


def _batches(
    results: FlatResults, floats: bool, one: bool
) -> tuple[int, Callable[[int], np.ndarray], Callable[..., Any] | None]:
    """The layout of a batch's results, the function that allocates them, and the last step."""
    if floats:
        return (ROWS if one else SEPARATE), np.empty, None
    if results.whole is not None:
        inner = results.whole
        return POINTS, lambda points: np.empty((points, *inner)), None
    total = results.total
    finish = lambda rows: results.at_points(rows, rows.shape[1:])  # noqa: E731
    return ROWS, lambda points: np.empty((total, points)), finish


def _block(results: FlatResults, layout: int, one: bool) -> Callable[[int], np.ndarray]:
    """The function that allocates large results for a number of points."""
    new = new_array()
    if layout == POINTS:
        inner = results.whole or ()
        return lambda points: new((points, *inner), np.float64)
    rows = () if one and layout == ROWS else (results.total,)
    return lambda points: new((*rows, points), np.float64)


# ---- compiled scalar code as a Python function of points and batches -----------------------------


Binder = Callable[[np.ndarray, np.ndarray], Callable[[], None]]
"""Makes a call without arguments from two arrays: it reads inputs from the first, writes the second."""


def python_function(
    graph: Graph,
    bind: Binder,
    many: Callable[[Sequence[np.ndarray]], np.ndarray] | None,
    plain: Callable[[], Kernel],
    packed: bool,
    shapes: Sequence[tuple[int, ...]] = (),
) -> Callable[..., Any]:
    """The Python function of bound calls; arguments that these do not accept go to the NumPy form.

    ``shapes`` are those of the arguments, if these are arrays whose elements are the inputs of the graph.
    """
    results, inputs = FlatResults.of(graph), len(graph.input_nodes)
    given = [*shapes] or [()] * inputs
    here = threading.local()  # each thread has its own vectors, which its calls reuse

    def at_point(values: ArrayLike) -> np.ndarray:
        try:
            x, y, run = here.call
        except AttributeError:
            x, y = np.zeros(inputs), np.zeros(results.total)
            here.call = x, y, run = x, y, bind(x, y)
        x[...] = values
        run()
        return y.copy()

    def call(*values: Array | float) -> Any:
        arrays = [np.asarray(v) for v in values]
        if len(values) != len(given) or any(a.dtype.kind not in "fiub" for a in arrays):
            return plain().function(*values)  # it raises the error with the names
        if [a.shape for a in arrays] == given:
            one = np.concatenate([a.ravel() for a in arrays]) if shapes else [float(a) for a in arrays]
            return results.split(at_point(one))
        if many is None:
            return plain().function(*values)
        batch = np.broadcast_shapes(*{a.shape for a in arrays})
        try:
            computed = many([_column(a, batch) for a in arrays])
        except NotCompiled:  # the function itself was compiled before: the disk may be full now
            return plain().function(*values)
        return results.at_points(computed, batch)

    def packed_call(vector: ArrayLike) -> Any:
        values = np.asarray(vector)
        if values.shape != (inputs,) or values.dtype.kind not in "fiub":
            return plain().function(vector)
        return results.split(at_point(values))

    return packed_call if packed else call


def _column(array: np.ndarray, batch: tuple[int, ...]) -> np.ndarray:
    """The values of one input at all points as a contiguous array; without a copy if they are one."""
    if array.shape == batch and array.dtype == np.float64 and array.flags.c_contiguous:
        return array
    return np.ascontiguousarray(np.broadcast_to(array, batch), dtype=np.float64)
