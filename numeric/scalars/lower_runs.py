"""The native backend without compilation for each function: one compiled kernel that executes runs.

The kernel, compiled once for all functions and kept on disk, is that of `runs_kernel`. Over batches it
computes several points together; dense Hessians are rows of lanes beside scalars.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, cached_property, partial
from typing import Any

import numpy as np

from symad.core.graph import Graph
from symad.errors import LoweringError
from symad.numeric.compiler.c_calls import aligned_zeros, bound, check_sizes
from symad.numeric.compiler.c_compiler import NotCompiled, compile_c, native_options
from symad.numeric.kernel import Kernel
from symad.numeric.modules.names import identifier
from symad.numeric.numpy_arrays import lower as lower_numpy
from symad.numeric.numpy_arrays.memory_reuse import new_array
from symad.numeric.passes import prepare
from symad.numeric.passes.memory_layout.packed_entries import is_scalar, output_scalars
from symad.numeric.scalars.c_interpreter import BLOCK, LANES, check_runs, kernel_source, tables
from symad.numeric.scalars.lanes import LanePlan, PointPlan, lane_plan, point_plan
from symad.numeric.scalars.level_runs import Plan, plan
from symad.numeric.scalars.python_binding import Binder, python_function
from symad.numeric.targets.c_functions import NotInC
from symad.stable import with_logistic


def lower(graph: Graph, dtype: str, packed: bool) -> Kernel:
    """Plan the runs of a scalar graph.

    Without a compiler, and where C lacks a function (Bessel functions, polygamma, ...), the NumPy form runs.

    Raises:
        LoweringError: the graph holds arrays, or the dtype is not float64.
    """
    prepared = prepare(with_logistic(graph))
    if dtype != "float64":
        raise LoweringError(f"backend 'runs' takes graphs in float64, not dtype {dtype}; use backend='numpy'")
    library = _library()
    plain = cache(partial(lower_numpy.lower, graph, dtype, packed))
    try:
        found = _compiled(prepared, library)
    except NotInC:
        found = None
    if library is None or found is None:
        return plain()
    native, many = found
    function = python_function(prepared, native, many, plain, packed)
    return Kernel(identifier(graph.name), "", function, packed=packed, native=native, plain=plain)


def _compiled(prepared: Graph, library: Any) -> tuple[Binder, Callable[[Sequence[Any]], Any] | None]:
    """The call at one point, and that at many if there is one.

    Raises:
        NotInC: a function that C has not.
    """
    if is_scalar(prepared):
        made = plan(prepared, output_scalars(prepared))
        check_runs(made.runs)
        runs = Scalars(prepared, made, library)
        return runs.bind, runs.at_points
    rows = _lanes(prepared)
    check_runs((*rows.scalars.runs, *rows.runs))
    return Rows(rows, library).bind, None


def _library() -> Any:
    return compile_c(kernel_source(), native_options())


def scalars(prepared: Graph) -> Scalars:
    """The runs of a scalar graph.

    Raises:
        NotCompiled: there is no compiler that works.
    """
    library = _library()
    if library is None:
        raise NotCompiled
    return Scalars(prepared, plan(prepared, output_scalars(prepared)), library)


def _lanes(graph: Graph) -> LanePlan:
    try:
        return lane_plan(graph)
    except LoweringError as error:
        raise LoweringError(
            f"backend 'runs' takes graphs of scalars, and dense Hessians of such ({error}), not arrays "
            "inside the graph; use backend='numpy'"
        ) from error


@dataclass(frozen=True)
class Scalars:
    """The runs of a plan, and the library that executes them."""

    graph: Graph
    plan: Plan
    library: Any

    @cached_property
    def points(self) -> tuple[PointPlan, Any, Any]:
        """For many points: rows that are used again, so that few stay in the cache; as tables."""
        made = point_plan(self.graph, output_scalars(self.graph))
        return made, *tables(made.runs, slices=False)

    def bind(self, x: Any, y: Any) -> Callable[[], None]:
        """A call at one point: x (inputs,), y (results,)."""
        made = self.plan
        check_sizes(x, y, made.inputs, len(made.results))
        v = _values(made)
        table, places = tables(made.runs)
        parts = [v, table, len(table), places, x, len(x), y, made.results.astype(np.int32), len(y)]
        return bound(self.library.symad_runs_bound, parts, made.size)

    def at_points(self, columns: Sequence[Any]) -> Any:
        """Results (results, points) of contiguous inputs, each with the values at all points."""
        (made, table, places), points = self.points, columns[0].size
        where = np.array([c.__array_interface__["data"][0] for c in columns], dtype=np.int64)
        results = new_array()((len(made.results), points), np.float64)
        v = aligned_zeros(made.rows, LANES)
        v[made.inputs : made.inputs + len(made.constants)] = np.array(made.constants)[:, None]
        wanted = made.results.astype(np.int32)
        parts = [v, table, len(table), places, where, made.inputs, results, wanted, len(wanted), points]
        bound(self.library.symad_runs_points, parts)()
        return results


def _values(made: Plan) -> Any:
    """The vector of all values with the constants in their places, and room for a block behind it."""
    v = aligned_zeros(made.size + len(made.extra) + BLOCK)
    v[made.inputs : made.inputs + len(made.constants)] = made.constants
    v[made.size : made.size + len(made.extra)] = made.extra
    return v


@dataclass(frozen=True)
class Rows:
    """Runs over rows of lanes, and the library that executes them."""

    plan: LanePlan
    library: Any

    def bind(self, x: Any, y: Any) -> Callable[[], None]:
        """A call at one point: x (inputs,), y (results,)."""
        made = self.plan
        check_sizes(x, y, made.scalars.inputs, len(made.places))
        s, w = _values(made.scalars), aligned_zeros(made.rows, made.lanes)
        w[: len(made.given)] = made.given
        table, places = tables(made.runs, slices=False)
        inner, inner_places = tables(made.scalars.runs)
        wanted = made.places.astype(np.int32)
        parts = [s, w, made.lanes, table, len(table), places, x, len(x), y, wanted, len(y), made.rows]
        parts += [inner, len(inner), inner_places]
        return bound(self.library.symad_runs_rows, parts, made.rows * made.lanes)
