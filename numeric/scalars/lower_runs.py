"""The native backend without compilation for each function: one compiled kernel that executes runs.

The kernel of `c_interpreter` is compiled once for all functions, and kept on disk. For batches it computes
several points together. Dense Hessians are rows of lanes beside scalars.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from ctypes import CDLL
from dataclasses import dataclass
from functools import cache, cached_property, partial
from typing import Any

import numpy as np

from symad.core.graph import Graph
from symad.core.identifiers import identifier
from symad.errors import LoweringError
from symad.numeric.compiler.c_calls import CFunction, aligned_zeros, bound, bound_frame, check_sizes, frame_of
from symad.numeric.compiler.c_compiler import NotCompiled, compile_c, native_options
from symad.numeric.kernel import Kernel
from symad.numeric.numpy_arrays import lower as lower_numpy
from symad.numeric.numpy_arrays.memory_reuse import new_array
from symad.numeric.numpy_arrays.scalars.level_runs import LevelRun, VectorPlan, plan
from symad.numeric.passes import prepare
from symad.numeric.passes.memory_layout.packed_entries import is_scalar, output_scalars
from symad.numeric.scalars.c_interpreter import BLOCK, LANES, PARTS, check_runs, kernel_source, tables
from symad.numeric.scalars.lanes import LanePlan, PointPlan, lane_plan, point_plan
from symad.numeric.scalars.quick_calls import (
    LONG_FUNCTION,
    FlatResults,
    Framed,
    python_function,
    quick_call,
    returns_truth,
)
from symad.numeric.targets.c_functions import NotInC

AHEAD = 24
"""The number of runs between the prefetch of a row from memory and its use: about 600 ns."""

NEAR = 4
"""The smallest number of runs between a prefetch and its use; with fewer, the row would arrive later than
without the prefetch."""

MIN_POINTS, MIN_POINTS_IF_LONG = 8, 64
"""The number of points from which several are computed at a time; the same for functions of more than
`LONG_FUNCTION` operations, whose plan takes 8 µs for each operation.

With 64 operations, several at a time take 1.08 of the time at 4 points, 0.69 at 8, 0.49 at 16; with 1,000
operations 1.50, 0.83 and 0.52 (bench_scalar_thresholds.py, "lanes"). With 4,000 and 16,000 operations they
take 0.20 of the time at 64 points, where the plan pays after 500 to 1,000 calls; at 16 points after 4,000.
"""

POINTS_PART = 9
"""The position of the number of points in the frame of ``symad_runs_points``."""


def lower(graph: Graph, dtype: str, packed: bool) -> Kernel:
    """Plan the runs of a scalar graph.

    The NumPy form is used if there is no compiler, if C lacks a function (Bessel functions, polygamma, ...),
    or if a result is a truth value.

    Raises:
        LoweringError: the graph holds arrays, or the dtype is not float64.
    """
    prepared = prepare(graph, dtype)
    if dtype != "float64":
        raise LoweringError(
            f"backend 'runs' (for large scalar functions) takes float64, not {dtype}; use backend='numpy'"
        )
    library = _library()
    plain = cache(partial(lower_numpy.lower, graph, dtype, packed))
    try:
        found = _compiled(prepared, library)
    except NotInC:
        found = None
    if library is None or found is None or returns_truth(prepared, packed):
        return plain()
    runs, operations = found
    many = runs.at_points if isinstance(runs, Scalars) else None
    function = python_function(prepared, runs.bind, many, plain, packed)
    quick = partial(_quick, runs, prepared, operations, packed)
    return Kernel(
        identifier(graph.name), "", function, packed=packed, native=runs.bind, plain=plain, quick=quick
    )


def _compiled(prepared: Graph, library: Any) -> tuple[Scalars | LaneRows, int]:
    """The runs, and the approximate number of their operations.

    Raises:
        NotInC: C lacks a function.
    """
    if is_scalar(prepared):
        made = plan(prepared, output_scalars(prepared))
        check_runs(made.runs)
        return Scalars(prepared, made, library), made.size
    rows = _lanes(prepared)
    check_runs((*rows.scalars.runs, *rows.runs))
    return LaneRows(rows, library), rows.rows * rows.lanes


def _library() -> CDLL | None:
    return compile_c(kernel_source(), native_options())


def scalars(prepared: Graph) -> Scalars:
    """The runs of a scalar graph.

    Raises:
        NotCompiled: no C compiler works.
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
    plan: VectorPlan
    library: Any

    @cached_property
    def points(self) -> tuple[PointPlan, np.ndarray, np.ndarray, np.ndarray, int]:
        """Tables for many points, with rows that are reused, so that few rows stay in the cache."""
        made = point_plan(self.graph, output_scalars(self.graph))
        return made, *tables(made.runs, slices=False), *fetched_ahead(made.runs, made.inputs)

    def parts(self, x: np.ndarray, y: np.ndarray) -> list[int | np.ndarray]:
        """The frame of a call at one point."""
        made = self.plan
        table, places = tables(made.runs)
        return [
            _values(made), table, len(table), places, x, len(x), y, made.results.astype(np.int32), len(y)
        ]  # fmt: skip

    @property
    def function(self) -> CFunction:
        """The function of a call at one point."""
        found: CFunction = self.library.symad_runs_bound
        return found

    def bind(self, x: np.ndarray, y: np.ndarray) -> Callable[[], None]:
        """A call at one point, bound to x (inputs,) and y (results,)."""
        check_sizes(x, y, self.plan.inputs, len(self.plan.results))
        return bound(self.function, self.parts(x, y), self.plan.size)

    def at_points(self, columns: Sequence[np.ndarray]) -> np.ndarray:
        """Results (results, points) of contiguous inputs, each with the values at all points."""
        points = columns[0].size
        made = new_array()((len(self.plan.results), points), np.float64)
        try:
            framed, run = self.idle.pop()
        except IndexError:  # other threads use all of them
            framed = self.lanes()
            run = bound_frame(self.library.symad_runs_points, framed.frame, framed.parts)
        framed.x[:] = [c.__array_interface__["data"][0] for c in columns]
        framed.y[:] = made.ctypes.data + made.strides[0] * np.arange(len(made))
        framed.frame[1 + POINTS_PART] = points
        run()
        self.idle.append((framed, run))
        return made

    @cached_property
    def idle(self) -> list[tuple[Framed, Callable[[], None]]]:
        """Frames for many points that no call uses now; at most one for each thread that has called."""
        return []

    def lanes(self) -> Framed:
        """A call at several points, with rows of its own; addresses, results and points are set later."""
        made, table, places, ahead, parts = self.points
        v = aligned_zeros(made.rows, LANES)
        v[made.inputs : made.inputs + len(made.constants)] = np.array(made.constants)[:, None]
        wanted = made.results.astype(np.int32)
        where, to = np.zeros(made.inputs, np.int64), np.zeros(len(wanted), np.int64)
        others = np.setdiff1d(np.arange(len(wanted), dtype=np.int32), made.written)
        frame: list[int | np.ndarray] = [
            v, table, len(table), places, where, made.inputs, to, wanted, len(wanted), 0,
            np.zeros(made.rows, np.int64), made.rows, made.written, ahead, others, len(others), parts,
        ]  # fmt: skip
        return Framed(frame_of(self.library.symad_runs_points, frame), where, to, frame)


def fetched_ahead(runs: Sequence[LevelRun], inputs: int) -> tuple[np.ndarray, int]:
    """For each run, the part of an input's row to prefetch, or −1, and the number of parts of a row.

    A part is prefetched `AHEAD` runs before its first use.

    Part p of row r has number r·parts + p. Rows of many points are far apart in memory, so that the processor
    detects no stream. It would wait for each row, and also for too many cache lines requested at once.
    """
    parts = PARTS if len(runs) > (PARTS + 1) * inputs else 1
    ahead = np.full(len(runs), -1, np.int32)
    known: set[int] = set()
    free = 0  # the first run without a prefetch; each run prefetches one part, in the order of use
    for k, run in enumerate(runs):
        rows = {row for row in np.concatenate(run.operands).tolist() if row < inputs}
        for row in sorted(rows - known):
            at = max(k - AHEAD, free)
            if at + parts <= k - NEAR:
                ahead[at : at + parts] = row * parts + np.arange(parts)
                free = at + parts
        known |= rows
    return ahead, parts


def lanes(planned: Callable[[], Scalars]) -> Framed | None:
    """The call at several points of runs that are still to be planned; None without a compiler."""
    try:
        return planned().lanes()
    except NotCompiled:
        return None


def _values(made: VectorPlan) -> np.ndarray:
    """The vector of all values, with the constants in their places, and with room for a block after it."""
    v = aligned_zeros(made.size + len(made.extra) + BLOCK)
    v[made.inputs : made.inputs + len(made.constants)] = made.constants
    v[made.size : made.size + len(made.extra)] = made.extra
    return v


@dataclass(frozen=True)
class LaneRows:
    """Runs over rows of lanes, and the library that executes them."""

    plan: LanePlan
    library: Any

    @property
    def function(self) -> CFunction:
        """The function of a call at one point."""
        found: CFunction = self.library.symad_runs_rows
        return found

    def bind(self, x: np.ndarray, y: np.ndarray) -> Callable[[], None]:
        """A call at one point, bound to x (inputs,) and y (results,)."""
        made = self.plan
        check_sizes(x, y, made.scalars.inputs, len(made.places))
        return bound(self.function, self.parts(x, y), made.rows * made.lanes)

    def parts(self, x: np.ndarray, y: np.ndarray) -> list[int | np.ndarray]:
        """The frame of a call at one point."""
        made = self.plan
        s, w = _values(made.scalars), aligned_zeros(made.rows, made.lanes)
        w[: len(made.given)] = made.given
        table, places = tables(made.runs, slices=False)
        inner, inner_places = tables(made.scalars.runs)
        wanted = made.places.astype(np.int32)
        return [
            s, w, made.lanes, table, len(table), places, x, len(x), y, wanted, len(y), made.rows,
            inner, len(inner), inner_places,
        ]  # fmt: skip


def _quick(
    runs: Scalars | LaneRows, graph: Graph, operations: int, packed: bool, otherwise: Callable[..., Any]
) -> Callable[..., Any]:
    """The Python function, with its arguments read in C; batches of rows of lanes go to ``otherwise``."""
    results, inputs = FlatResults.of(graph), len(graph.input_nodes)
    x, y = np.zeros(inputs), np.zeros(results.total)
    parts = runs.parts(x, y)
    function = Framed(frame_of(runs.function, parts), x, y, parts)
    least = MIN_POINTS if operations <= LONG_FUNCTION else MIN_POINTS_IF_LONG
    lanes = runs.lanes if isinstance(runs, Scalars) else None
    return quick_call(function, results, inputs, operations, packed, otherwise, lanes, least)
