"""The NumPy backend: scalar graphs as straight-line code, array graphs as array statements.

What NumPy computes faster in another way is written so: sums along axes are products with a vector of ones,
and systems of two to four equations are arithmetic of Python's numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import sympy

from symad.core.contents import holds
from symad.core.dims import size
from symad.core.graph import Graph, Node, Op
from symad.higher_order.remat import Fallback
from symad.numeric.kernel import Kernel, compile_source
from symad.numeric.numpy_arrays import kernels, loop_statements  # noqa: F401  (register answers)
from symad.numeric.numpy_arrays.expressions import by_definition
from symad.numeric.numpy_arrays.scalars.numpy_runs import print_scalars
from symad.numeric.numpy_arrays.writer import ArrayWriter, Fast
from symad.numeric.passes import prepare
from symad.numeric.passes.memory_layout.memory_spans import works_in_gaps
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
from symad.numeric.program.expressions import Compute, Expression, Value
from symad.numeric.scheduling.plans import Plans
from symad.numeric.scheduling.roles import Roles, roles_of
from symad.numeric.targets.linear_algebra import write_call
from symad.numeric.targets.module import written_module
from symad.numeric.targets.scalars import Written, write
from symad.numeric.targets.sizes import doubtful, needed_sizes
from symad.numeric.targets.target import MatrixProduct, Text, Texts
from symad.ops.basic.sources import constant_value
from symad.ops.elementwise.selection import Select
from symad.ops.linalg.solve_det import Solve

if TYPE_CHECKING:
    from symad.core.dims import Shape


# ---- sums along axes of arrays as matrix products with a vector of ones --------------------------

# NumPy adds the rows of a matrix one by one, and the elements of short rows in one call for each row. BLAS
# reads the matrix once, as fast as the memory allows: on a few hundred rows it is two to five times faster.
# Products with 1 are exact, and infinities and NaN are kept.


MAX_ROW_ELEMENTS = 4096
"""Elements of a row up to which BLAS sums it. NumPy sums longer rows pairwise: more exactly, and as fast.

Sums of 2**18 elements after a tanh take 0.66 of the time for rows of 16, 0.9 for 256, 0.95 for 4096, 1.0
for 65,536 (bench_thresholds.py, "row sums").
"""

ONES = """@functools.lru_cache(8)
def _ones(size, dtype):
    return np.ones(size, dtype)
"""


def sum_as_product(
    arg: Expression, text: Text, axes: tuple[int, ...], writer: ArrayWriter
) -> MatrixProduct | None:
    """The sum of an array of floats over its first axes or its last axes; None for other sums."""
    rank, count = len(arg.shape), len(axes)
    if count == rank or not writer.is_name(text.text) or writer.kind(arg) != writer.dtype:
        return None
    if axes == tuple(range(count)):
        summed, kept = arg.shape[:count], arg.shape[count:]
        factors = _ones(summed, writer), _reshaped(text, summed, kept, writer)
    elif axes == tuple(range(rank - count, rank)):
        summed, kept = arg.shape[rank - count :], arg.shape[: rank - count]
        if not isinstance(size(summed), int) or size(summed) > MAX_ROW_ELEMENTS:
            return None
        factors = _reshaped(text, kept, summed, writer), _ones(summed, writer)
    else:
        return None
    after = "" if len(kept) == 1 else f".reshape({', '.join(map(writer.dim, kept))})"
    return MatrixProduct(*factors, after)


def _ones(shape: Shape, writer: ArrayWriter) -> str:
    """A vector of ones: a constant of the module, or cached by length if the length is a dimension."""
    length = size(shape)
    if isinstance(length, int):
        return writer.shared(f"{writer.np}.ones({length}, dtype={writer.type_text})", "ones")
    writer.imports.add("import functools")
    return f"{writer.helper('_ones', ONES)}({writer.dim(length)}, {writer.type_text})"


def _reshaped(text: Text, rows: Shape, columns: Shape, writer: ArrayWriter) -> str:
    """An array as a matrix: the axes ``rows`` joined to one, then the axes ``columns``."""
    if len(rows) == len(columns) == 1:
        return text.text
    return f"{text}.reshape({writer.dim(size(rows))}, {writer.dim(size(columns))})"


class NumPyWriter(ArrayWriter):
    """Writes NumPy modules, in which some sums are matrix products."""

    def decorators(self) -> list[str]:
        """The decorator that turns off NumPy's warnings where the values that cause them are not used."""
        if holds(self.graph, Fallback):
            return [f'@{self.np}.errstate(all="ignore")  # of numbers that are scaled then']
        nodes = self.graph.nodes if holds(self.graph, Select) else ()
        if any(isinstance(n.op, Select) and not _is_indicator(n) for n in nodes):
            return [f'@{self.np}.errstate(all="ignore")  # of branches that are not taken']
        if works_in_gaps(self.graph):
            return [f'@{self.np}.errstate(all="ignore")  # of elements between those that are read']
        overflows = "_sigmoid" in self.helpers  # exp overflows where the sigmoid is 0
        return [f'@{self.np}.errstate(over="ignore")'] if overflows else []

    def without_rule(self, op: Op) -> Text:
        """See `Writer.without_rule`; the op is written by its definition."""
        return by_definition(op, self)

    def sum_over(self, node: Compute, arg: Text, axes: tuple[int, ...]) -> Text | MatrixProduct:
        """See `Writer.sum_over`; a product with a vector of ones where that is faster."""
        return sum_as_product(node.args[0], arg, axes, self) or super().sum_over(node, arg, axes)


def _is_indicator(node: Node) -> bool:
    """Whether a node is 1 where a condition holds and 0 elsewhere."""
    return [constant_value(a) for a in node.args[1:]] == [1, 0]



# ---- systems of two to four equations as arithmetic of Python's numbers --------------------------

# A call of ``np.linalg.solve`` takes 2.8 µs at these sizes. Written out, elimination takes 0.8 µs for two
# equations, 1.2 µs for three, 1.6 µs for the inverse of order three, 1.8 µs for four.


MAX_PRODUCTS = 80
"""A system (n, n) with k right sides is written out if n² (n + k) is at most this.

Origin: at 54 and 80 the code takes 0.55 and 0.62 of the time of LAPACK's call; at 128 and 150, 0.97 and 0.84,
and its text is 60 lines long.
"""


@write.dispatch
def write_fast_solve(op: Solve, target: Fast, node: Compute, args: Texts, writer: ArrayWriter) -> Written:
    shape = node.args[1].shape
    n, k = shape[-2:]
    small = isinstance(n, int) and isinstance(k, int) and n > 1 and k > 0 and n * n * (n + k) <= MAX_PRODUCTS
    if not small or len(shape) > 2 or len(node.args[0].shape) > 2 or target.np != "np":
        return write_call(op, target, node, args, writer)
    name = writer.helper(f"_solve_{n}_{k}", solve_text(n, k, writer.type_text))
    return Text(f"{name}({args[0]}, {args[1]})")


def solve_text(n: int, k: int, dtype: str) -> str:
    """The function that solves A x = B for A (n, n) and B (n, k), by elimination with the largest pivots.

    A pivot that is 0 is left to LAPACK, which raises LinAlgError.
    """
    a = [[f"a{i}{j}" for j in range(n)] for i in range(n)]
    b = [[f"b{i}{j}" for j in range(k)] for i in range(n)]
    lines = [f"{_rows(a)} = a.tolist()", f"{_rows(b)} = b.tolist()"]
    for p in range(n):
        for i in range(p + 1, n):
            here, there = a[p][p:] + b[p], a[i][p:] + b[i]
            lines.append(f"if abs({a[i][p]}) > abs({a[p][p]}):")
            lines.append(f"    {', '.join(here + there)} = {', '.join(there + here)}")
        for i in range(p + 1, n):
            lines.append(f"factor = {a[i][p]}/{a[p][p]}")
            pairs = zip(a[i][p + 1 :] + b[i], a[p][p + 1 :] + b[p], strict=True)
            lines += [f"{changed} -= factor*{pivot}" for changed, pivot in pairs]
    for p in reversed(range(n)):
        for j in range(k):
            known = "".join(f" - {a[p][q]}*{b[q][j]}" for q in range(p + 1, n))
            over = f"({b[p][j]}{known})" if known else b[p][j]
            lines.append(f"{b[p][j]} = {over}/{a[p][p]}")
    return "\n".join([
        f"def _solve_{n}_{k}(a, b):",
        f'    """The solution of {n} equations by elimination with the largest pivots."""',
        "    try:",
        *(f"        {line}" for line in lines),
        "    except ZeroDivisionError:",
        "        return np.linalg.solve(a, b)",
        f"    return np.array(({_rows(b)}), {dtype})",
    ])  # fmt: skip


def _rows(names: list[list[str]]) -> str:
    """Rows of names as nested tuples."""
    return ", ".join(f"({', '.join(row)}{',' * (len(row) == 1)})" for row in names)


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
