"""The native backend: scalar graphs as compiled C, called through ctypes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property, partial
from typing import Any, TypeAlias

import numpy as np
import sympy

from symad.core.arrays import ArrayLike
from symad.core.contents import inner_graphs
from symad.core.dims import is_concrete, size
from symad.core.graph import Graph, Node
from symad.core.identifiers import identifier
from symad.core.questions import evaluate, flops
from symad.core.structures import TupleOf
from symad.derivatives.vmap import vmap
from symad.errors import LoweringError
from symad.numeric.compiled_arrays import lower as lower_arrays
from symad.numeric.compiler.c_calls import CFunction, bound, check_sizes
from symad.numeric.compiler.c_compiler import compile_c, compiler, native_options
from symad.numeric.compiler.c_header import CallLayout, layout_of, print_header
from symad.numeric.entries.in_scalars import TooManyOperations, in_scalars
from symad.numeric.kernel import Kernel
from symad.numeric.numpy_arrays import lower as lower_numpy
from symad.numeric.numpy_arrays.memory_reuse import new_array
from symad.numeric.numpy_arrays.scalars.level_runs import SHORT_POWERS
from symad.numeric.passes import prepare
from symad.numeric.passes.memory_layout.packed_entries import is_scalar, output_scalars
from symad.numeric.pipelines import C_PROGRAM, PassReport, run_program_passes
from symad.numeric.scalars import lower_runs
from symad.numeric.scalars.lower_runs import Scalars, scalars
from symad.numeric.scalars.quick_calls import (
    LONG_FUNCTION,
    MIN_LANES,
    MIN_LANES_IF_LONG,
    NEVER,
    Binder,
    FlatResults,
    python_function,
    quick_call,
    returns_truth,
)
from symad.numeric.scheduling.roles import NO_ROLES, roles_of
from symad.numeric.scheduling.schedule import schedule
from symad.numeric.targets.c_functions import PACKED, SCALAR_C, NotInC
from symad.numeric.targets.c_module import c_name, print_c_module
from symad.ops.basic.sources import ArrayConstant, Input, Source, constant_value
from symad.ops.elementwise.apply import Apply
from symad.ops.elementwise.powers import Pow
from symad.ops.linalg.cholesky import Cholesky
from symad.ops.linalg.solve_det import Solve
from symad.ops.sparse.csr import CompressedRows

# ---- batches: interpreted runs, or array code for large batches with slow functions --------------

# Both read and write memory once, and stay in the first-level cache in between. Runs call the C library once
# for each value of functions that are not in `PACKED`; array code computes several values of most at once.


WORTH_COMPILING = 4_000_000
"""Operations times points of a call from which array code is compiled: runs then take 5 ms or more, and array
code takes a fifth to a half of that. The decision depends on the call alone, never on earlier calls, so that
equal calls give equal bits."""

MAX_BATCHED = 2_000
"""The most operations of a function that is compiled; compiling then takes about a second.

Origin: it bounds the time of compilation.
"""

AS_FAST = {
    *PACKED, sympy.Abs, sympy.sign, sympy.floor, sympy.ceiling, sympy.Max, sympy.Min, sympy.Mod,
    sympy.Heaviside, sympy.erf, sympy.loggamma,
}  # fmt: skip
"""Functions for which runs are as fast as array code or faster: the packed ones, those that take a few
instructions, and two that array code also calls value by value."""


@dataclass(frozen=True)
class Batches:
    """A prepared graph of scalars, evaluated at many points.

    Raises:
        NotCompiled: by every method, if no C compiler works.
    """

    graph: Graph

    @cached_property
    def runs(self) -> Scalars:
        """The runs, planned for the first batch."""
        return scalars(self.graph)

    @cached_property
    def arrays(self) -> Kernel:
        """The compiled array code; each input and each result is one array (points,)."""
        outputs = output_scalars(self.graph)
        flat = Graph(self.graph.input_nodes, outputs, TupleOf((None,) * len(outputs)), self.graph.name)
        return lower_arrays.lower(vmap(flat), "float64")

    def at_points(self, columns: Sequence[np.ndarray]) -> np.ndarray:
        """Results (results, points) of contiguous inputs, each with the values at all points."""
        points = columns[0].size
        if not self._is_large(points):
            return self.runs.at_points(columns)
        rows = self.arrays.function(*(column.reshape(points) for column in columns))
        if not any(output.shape for output in self.graph.output_nodes):
            return rows
        joined = new_array()((len(rows), points), np.float64)
        return np.stack(rows, out=joined)

    @cached_property
    def most(self) -> int:
        """The largest number of points for which runs are as fast."""
        operations = len(self.graph.nodes)
        if operations > MAX_BATCHED or not any(map(_is_slow, self.graph.nodes)):
            return NEVER
        return (WORTH_COMPILING - 1) // max(operations, 1)

    def _is_large(self, points: int) -> bool:
        return points > self.most


def _is_slow(node: Node) -> bool:
    """Whether runs call the C library for a node, value by value."""
    if isinstance(node.op, Pow):
        exponent = constant_value(node.args[1])
        return isinstance(exponent, float) or exponent not in SHORT_POWERS
    return isinstance(node.op, Apply) and node.op.head not in AS_FAST


# ---- functions of few numbers in arrays ----------------------------------------------------------


MAX_ENTRIES = 64
"""The most elements of all arguments and results together.

Origin: it bounds the length of the C function.
"""

MAX_SMALL_OPERATIONS = 400
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
    return work <= MAX_SMALL_OPERATIONS and not any(inner_graphs(n.op) or _looks_up(n) for n in graph.nodes)


def _stored(node: Node) -> int:
    """The number of elements of an array; of a sparse matrix, of those that it stores."""
    return len(node.op.columns) if isinstance(node.op, CompressedRows) else int(size(node.shape))


def _looks_up(node: Node) -> bool:
    """Whether an index is computed: NumPy raises an error if it is out of range."""
    return any(not isinstance(node.args[k].op, ArrayConstant) for k in node.op.row_numbers)


MAX_DATA = 64
"""The most entries other than 0 of a constant array in a function of numbers that is written out in scalars.

Origin: it bounds what may be a matrix of coefficients. Other arrays are data, which compiled loops read.
"""

MAX_WRITTEN_OUT = 200_000
"""The most operations of a function of numbers whose arrays are written out in scalars; otherwise NumPy
computes the arrays.

Origin: writing out takes 20 µs an operation, so that this bounds it to 4 s.
"""

MAX_COMPILED = 16_000
"""The most operations of such a function that are compiled; the kernel of backend "runs" executes more.

Origin: gcc 12 compiles 4,000 operations a second at -O1, so that this bounds it to 4 s. The Jacobian of M⁻¹F
for 11 links has 38,000: compiled, in 20 s, it takes 21 µs, by "runs" 39, in NumPy 2,300.
"""

MAX_OPERATIONS = 100_000
"""The most operations of a compiled function; larger ones are executed by the kernel of backend "runs".

Origin: it bounds the time of compilation, not that of calls.
"""


Call: TypeAlias = Callable[..., Any]


def lower(graph: Graph, dtype: str, packed: bool, report: list[PassReport] | None = None) -> Kernel:
    """Print, compile and bind a graph; a line for each pass is appended to ``report``.

    A graph of numbers whose arrays are matrices of formulas is written out in scalars, linear systems by
    elimination; others with arrays become NumPy code with compiled kernels.

    The NumPy form is used if there is no compiler, if C lacks a function (Bessel functions, polygamma, ...),
    or if a result is a truth value, because this C returns numbers only.

    Raises:
        LoweringError: the graph holds arrays, or the dtype is not float64.
    """
    if any(node.shape for node in graph.input_nodes):
        small = _small(graph, report) if dtype == "float64" else None
        return lower_arrays.lower(graph, dtype, report) if small is None else raising(small, graph)
    scalars, prepared = graph, prepare(graph, dtype)
    if not is_scalar(prepared):
        if dtype != "float64" or compiler() is None or not _has_small_arrays(graph):
            return lower_arrays.lower(graph, dtype, report)
        try:
            scalars = in_scalars(graph, MAX_WRITTEN_OUT, report)
            prepared = prepare(scalars, dtype)
        except TooManyOperations:  # kernels for chains of a few numbers would take minutes to compile
            return lower_numpy.lower(graph, dtype, packed, report)
        except LoweringError:  # an op has no form in scalars
            return lower_arrays.lower(graph, dtype, report)
    if dtype != "float64":
        raise LoweringError(f"backend 'c' takes scalar graphs in float64, not {dtype}; use backend='numpy'")
    plain = cache(partial(lower_numpy.lower, graph, dtype, packed))
    if scalars is not graph and len(prepared.nodes) > MAX_COMPILED:
        runs = lower_runs.lower(scalars, dtype, packed)
        return plain() if runs.native is None else raising(replace(runs, plain=plain), graph)
    labels, name = roles_of(graph, inner=False).labels, c_name(prepared.name)
    layout = layout_of(prepared.input_nodes, prepared, labels, arguments=graph.grouping)
    try:
        source = print_c(prepared, layout, name, report)
    except NotInC:
        return plain()
    header = print_header(name, layout, source)
    if len(prepared.nodes) > MAX_OPERATIONS:
        return replace(lower_runs.lower(graph, dtype, packed), c_source=source, c_header=header)
    made = _compiled(prepared, source, plain, packed)
    if made is None:
        return replace(plain(), c_source=source, c_header=header)
    made = replace(made, c_header=header)
    return made if scalars is graph else raising(made, graph)


def _small(graph: Graph, report: list[PassReport] | None) -> Kernel | None:
    """The kernel of a function of few numbers in arrays; None if it has no form in scalars or in C.

    Its arrays are written out in scalars, and one C function computes all results.
    """
    if compiler() is None or not is_small(graph):
        return None
    try:
        prepared = prepare(in_scalars(graph, MAX_SMALL_OPERATIONS, report), "float64")
        layout = layout_of(prepared.input_nodes, prepared)
        source = print_c(prepared, layout, c_name(prepared.name), report)
    except (LoweringError, NotInC):
        return None
    plain = cache(partial(lower_numpy.lower, graph, "float64", False))
    return _compiled(prepared, source, plain, False, [tuple(map(int, n.shape)) for n in graph.input_nodes])


def _compiled(
    prepared: Graph,
    source: str,
    plain: Callable[[], Kernel],
    packed: bool,
    shapes: Sequence[tuple[int, ...]] = (),
) -> Kernel | None:
    """The kernel of a C file; None if there is no compiler, or if a result is a truth value.

    ``shapes`` are those of the arguments, if these are arrays whose elements are the inputs.
    """
    library = None if returns_truth(prepared, packed) else compile_c(source, native_options())
    if library is None:
        return None
    one = getattr(library, c_name(prepared.name))
    native = _binder(prepared, getattr(library, f"{c_name(prepared.name)}_bound"))
    batches = None if shapes else Batches(prepared)
    many = None if batches is None else batches.at_points
    slow = python_function(prepared, native, many, plain, packed, shapes)
    results, inputs, operations = FlatResults.of(prepared), len(prepared.input_nodes), len(prepared.nodes)
    least = MIN_LANES if operations <= LONG_FUNCTION else MIN_LANES_IF_LONG

    def quick(otherwise: Call, packed: bool = packed) -> Call:
        known = results, inputs, operations, packed, otherwise
        if batches is None:
            return quick_call(one, *known, None, shapes=() if packed else shapes)
        return quick_call(one, *known, partial(lower_runs.lanes, lambda: batches.runs), least, batches.most)

    title, vector = identifier(prepared.name), partial(quick, packed=True)
    return Kernel(
        title, "", slow, {}, source, packed=packed, native=native, plain=plain, quick=quick, one_vector=vector
    )


def raising(kernel: Kernel, graph: Graph) -> Kernel:
    """The kernel with NumPy's errors for singular matrices, and for those that are not positive definite.

    Elimination in scalars gives NaN there, and so do calls at a batch of points. Where another order of
    rounding leaves a pivot other than 0, the result is NumPy's.
    """
    if not any(isinstance(node.op, (Solve, Cholesky)) for node in graph.nodes):
        return kernel
    plain, quick, fast = kernel.plain, kernel.quick, kernel.function
    batches = not kernel.packed and not any(node.shape for node in graph.input_nodes)
    assert plain is not None

    def function(*values: Any) -> object:
        found = fast(*values)
        at_points = batches and any(np.ndim(value) for value in values)
        if at_points or not _has_nan(found):
            return found
        if kernel.packed and not plain().packed:
            plain().function(*values[0])
            return found
        return plain().function(*values)

    def wrapped(otherwise: Call) -> Call:
        assert quick is not None
        quickly = quick(otherwise)

        def call(*values: ArrayLike, **named: ArrayLike) -> object:
            found = quickly(*values, **named)
            return otherwise(*values, **named) if _has_nan(found) else found

        return call

    return replace(kernel, function=function, quick=None if quick is None else wrapped, one_vector=None)


def _has_nan(result: object) -> bool:
    """Whether a number among the results of a call is NaN: the sum of squares is NaN then, and only then."""
    if isinstance(result, dict):
        return any(map(_has_nan, result.values()))
    if isinstance(result, (tuple, list)):
        return any(map(_has_nan, result))
    numbers = getattr(result, "data", ()) if hasattr(result, "indptr") else np.asarray(result)
    square = np.vdot(numbers, numbers)
    return bool(square != square)


def _has_small_arrays(graph: Graph) -> bool:
    """Whether arrays are made from numbers, as the matrices of a formula are: no data, no loops."""
    return not any(inner_graphs(node.op) or _is_data(node) for node in graph.nodes)


def _is_data(node: Node) -> bool:
    known = isinstance(node.op, Source) and not isinstance(node.op, Input) and bool(node.shape)
    return known and int(np.count_nonzero(evaluate(node.op, ()))) > MAX_DATA


def print_c(prepared: Graph, layout: CallLayout, name: str, report: list[PassReport] | None = None) -> str:
    """The source of the file of a scalar graph after the graph passes, with the C name of its function.

    Raises:
        NotInC: C lacks a function.
    """
    for node in prepared.nodes:
        if isinstance(node.op, Apply) and not SCALAR_C.has(node.op.head):
            raise NotInC(node.op.head.__name__)
    flat = Graph(prepared.input_nodes, output_scalars(prepared), None, prepared.name)
    program = run_program_passes(schedule(flat, NO_ROLES), C_PROGRAM, report, check=False)
    return print_c_module(program, layout, name)


def _binder(graph: Graph, one: CFunction) -> Binder:
    inputs, outputs = len(graph.input_nodes), len(output_scalars(graph))

    def bind(x: np.ndarray, y: np.ndarray) -> Callable[[], None]:
        check_sizes(x, y, inputs, outputs)
        return bound(one, [x, y], len(graph.nodes))

    return bind
