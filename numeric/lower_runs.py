"""The native backend without compilation for each function: one compiled kernel that executes runs.

A run is one operation on many values that stand side by side; the kernel, compiled once for all
functions and kept on disk, loops over a run's places. Over batches it computes `LANES` points together.
"""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import sympy

from symad.errors import LoweringError
from symad.graph import Graph, pack
from symad.numeric import lower_numpy
from symad.numeric.c_program import output_scalars
from symad.numeric.compiling import compile_c
from symad.numeric.kernel import Kernel
from symad.numeric.lower_c import bound, check_sizes, pointer
from symad.numeric.passes import prepare
from symad.numeric.printers.c import HELPERS, MATH_H, OWN
from symad.numeric.runs import Plan, plan
from symad.numeric.scalar_program import is_scalar

LANES = 64
"""Points of a batch that are computed together."""

ARITHMETIC = {
    "add": "a + b",
    "subtract": "a - b",
    "multiply": "a*b",
    "divide": "a/b",
    "negative": "-a",
    "reciprocal": "1/a",
    "sqrt": "sqrt(a)",
    "power": "pow(a, b)",
    "maximum": "max_(a, b)",
    "minimum": "min_(a, b)",
    "less": "a < b",
    "less_equal": "a <= b",
    "equal": "a == b",
    "not_equal": "a != b",
    "logical_and": "a != 0 && b != 0",
    "logical_or": "a != 0 || b != 0",
    "logical_xor": "(a != 0) != (b != 0)",
    "logical_not": "a == 0",
    "where": "a != 0 ? b : c",
}
"""Operations on a, b, c in C."""


WHOLE = """\
/* values, runs, their number, places, x, its length, y, the places of the results, their number */
void symad_runs_bound(const int64_t *frame)
{
    double *v = (double *)(intptr_t)frame[0], *y = (double *)(intptr_t)frame[6];
    const double *x = (const double *)(intptr_t)frame[4];
    const int32_t *results = (const int32_t *)(intptr_t)frame[7];
    for (int64_t k = 0; k < frame[5]; ++k) v[k] = x[k];
    symad_runs(v, (const int64_t *)(intptr_t)frame[1], (size_t)frame[2], (const int32_t *)(intptr_t)frame[3]);
    for (int64_t k = 0; k < frame[8]; ++k) y[k] = v[results[k]];
}
"""


@cache
def forms() -> dict[Any, str]:
    """The C form of every operation and function, in the order of their codes."""
    found: dict[Any, str] = dict(ARITHMETIC)
    two = {sympy.atan2, sympy.Mod, sympy.Heaviside}
    for head, name in (MATH_H | OWN).items():
        binary = head in two or getattr(head, "__name__", "") == "logaddexp"
        found[head] = f"{name}(a, b)" if binary else f"{name}(a)"
    return found


@cache
def kernel_source() -> str:
    """The C source of the kernel: one loop for each operation, for one point and for lanes of points."""
    one, lanes = [], []
    for code, form in enumerate(forms().values()):
        names = [x for x in "abc" if _uses(form, x)]
        point = " ".join(f"const double {x} = v[{x}_[k]];" for x in names)
        lane = " ".join(f"const double {x} = v[(size_t){x}_[k]*{LANES} + l];" for x in names)
        one.append(f"        case {code}: for (size_t k = 0; k < n; ++k) {{ {point} y[k] = {form}; }} break;")
        lanes.append(
            f"        case {code}: for (size_t k = 0; k < n; ++k) for (size_t l = 0; l < {LANES}; ++l) "
            f"{{ {lane} y[k*{LANES} + l] = {form}; }} break;"
        )
    return "\n".join(
        [
            "#include <math.h>",
            "#include <stddef.h>",
            "#include <stdint.h>",
            HELPERS,
            *_function("symad_runs", one, "1"),
            *_function("symad_runs_lanes", lanes, str(LANES)),
            WHOLE,
        ]
    )


def _uses(form: str, name: str) -> bool:
    """Whether an operand occurs in a form by itself."""
    padded = f" {form} "
    return any(
        c == name and not (padded[k - 1].isalnum() or padded[k + 1].isalnum() or "_" in padded[k - 1 : k + 2])
        for k, c in enumerate(padded[:-1])
    )


def _function(name: str, cases: list[str], width: str) -> list[str]:
    return [
        f"void {name}(double *restrict v, const int64_t *runs, size_t count, const int32_t *places)",
        "{",
        "    for (size_t r = 0; r < count; ++r) {",
        "        const int64_t *run = runs + 4*r;  /* code, start, length, offset of the places */",
        "        const size_t n = (size_t)run[2];",
        f"        double *y = v + (size_t)run[1]*{width};",
        "        const int32_t *a_ = places + run[3], *b_ = a_ + n, *c_ = b_ + n;",
        "        (void)b_; (void)c_;",
        "        switch (run[0]) {",
        *cases,
        "        }",
        "    }",
        "}",
        "",
    ]


def lower(graph: Graph, dtype: str, packed: bool) -> Kernel:
    """Plan the runs of a scalar graph; without a compiler its NumPy form runs.

    Raises:
        LoweringError: the graph holds arrays, the dtype is not float64, or a function is not in C.
    """
    prepared = prepare(graph)
    if not is_scalar(prepared) or dtype != "float64":
        what = f"dtype {dtype}" if dtype != "float64" else "arrays inside the graph"
        raise LoweringError(f"backend 'runs' takes scalar graphs in float64, not {what}; use backend='numpy'")
    plain = lower_numpy.lower(graph, dtype, packed)
    made = plan(prepared, output_scalars(prepared))
    codes = {form: k for k, form in enumerate(forms())}
    for run in made.runs:
        if run.function not in codes:
            name = getattr(run.function, "__name__", run.function)
            raise LoweringError(f"{name} is not in C's math.h; backend='numpy' has it")
    library = compile_c(kernel_source(), ("-O3", "-march=native"))
    if library is None:
        return plain
    function, native = _bind(prepared, made, codes, library, plain.function, packed)
    return replace(plain, function=function, native=native)


def _bind(
    graph: Graph, made: Plan, codes: dict[Any, int], library: Any, plain: Callable[..., Any], packed: bool
) -> tuple[Callable[..., Any], Callable[[Any, Any], Callable[[], None]]]:
    """A Python function that executes the runs, and its binder; odd arguments go to the NumPy form."""
    offsets = np.cumsum([0, *(run.count * len(run.operands) for run in made.runs)])
    table = np.array(
        [[codes[r.function], r.start, r.count, o] for r, o in zip(made.runs, offsets, strict=False)], np.int64
    ).reshape(-1, 4)
    places = np.concatenate([np.zeros(0), *(p for run in made.runs for p in run.operands)]).astype(np.int32)
    shapes = [tuple(int(d) for d in o.shape) for o in graph.output_nodes]
    counts = [int(np.prod(s)) for s in shapes]
    constants = np.array(made.constants)
    first = made.inputs + len(constants)
    one, lanes = library.symad_runs, library.symad_runs_lanes
    for function in (one, lanes):
        function.argtypes = (ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p)
        function.restype = None
    # pointers made like this keep their arrays alive
    table_at, places_at = pointer(table), pointer(places)
    runs = len(table)
    wanted = made.results.astype(np.int32)
    whole = library.symad_runs_bound
    whole.restype = None

    here = threading.local()  # each thread has values of its own, used again from call to call

    def at_point(values: Any) -> Any:
        try:
            v, at = here.point
        except AttributeError:
            v = np.empty(made.size)
            v[made.inputs : first] = constants
            at = pointer(v)
            here.point = v, at
        v[: made.inputs] = values
        one(at, table_at, runs, places_at)
        return v.take(made.results)

    def at_points(columns: Any) -> Any:
        """Results (outputs, points) of inputs (inputs, points)."""
        points = columns.shape[1]
        results = np.empty((len(made.results), points))
        v = np.empty((made.size, LANES))
        v[made.inputs : first] = constants[:, None]
        for k in range(0, points, LANES):
            some = columns[:, k : k + LANES]
            v[: made.inputs, : some.shape[1]] = some
            v[: made.inputs, some.shape[1] :] = some[:, :1]
            lanes(v.ctypes.data, table_at, runs, places_at)
            results[:, k : k + LANES] = v[made.results, : some.shape[1]]
        return results

    def split(flat: Any) -> Any:
        parts, offset = [], 0
        for shape, count in zip(shapes, counts, strict=True):
            part = flat[..., offset : offset + count].reshape(flat.shape[:-1] + shape)
            parts.append(part if part.ndim else float(part))
            offset += count
        return pack(graph.structure, parts)

    def call(*values: Any) -> Any:
        arrays = [np.asarray(v) for v in values]
        if len(values) != made.inputs or any(a.dtype.kind not in "fiub" for a in arrays):
            return plain(*values)  # which raises the error with the names
        batch = np.broadcast_shapes(*[a.shape for a in arrays]) if arrays else ()
        if not batch:
            return split(at_point([float(a) for a in arrays]))
        columns = np.stack([np.broadcast_to(a, batch).ravel() for a in arrays]).astype(np.float64)
        return split(at_points(columns).T.reshape(*batch, -1))

    def packed_call(vector: Any) -> Any:
        values = np.asarray(vector, dtype=np.float64)
        return at_point(values) if values.shape == (made.inputs,) else plain(vector)

    def bind(x: Any, y: Any) -> Callable[[], None]:
        check_sizes(x, y, made.inputs, len(made.results))
        v = np.empty(made.size)
        v[made.inputs : first] = constants
        parts = [v, table, len(table), places, x, len(x), y, wanted, len(y)]
        return bound(whole, parts)

    return (packed_call if packed else call), bind
