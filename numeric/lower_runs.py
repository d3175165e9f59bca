"""The native backend without compilation for each function: one compiled kernel that executes runs.

A run is one operation on many values that stand side by side; the kernel, compiled once for all
functions and kept on disk, loops over a run's places. Over batches it computes `LANES` points together.
"""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache
from itertools import product
from typing import Any

import numpy as np
import sympy

from symad.errors import LoweringError
from symad.graph import Graph, pack
from symad.numeric import lower_numpy
from symad.numeric.c_program import output_scalars
from symad.numeric.calling import bound, pointer
from symad.numeric.compiling import compile_c
from symad.numeric.kernel import Kernel
from symad.numeric.lanes import lane_plan
from symad.numeric.lower_c import check_sizes
from symad.numeric.passes import prepare
from symad.numeric.printers.c import HELPERS, MATH_H, OWN
from symad.numeric.runs import Plan, Run, plan
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


WIDE = """\
/* scalars, rows, lanes, runs, their number, places, x, its length, y, the places of the results, their
   number, the number of scalars that runs compute, and those runs: their number and their places */
void symad_runs_wide(const int64_t *frame)
{
    double *s = (double *)(intptr_t)frame[0], *w = (double *)(intptr_t)frame[1];
    const int64_t L = frame[2], *runs = (const int64_t *)(intptr_t)frame[3];
    const int32_t *places = (const int32_t *)(intptr_t)frame[5];
    const double *x = (const double *)(intptr_t)frame[6];
    double *result = (double *)(intptr_t)frame[8];
    const int32_t *results = (const int32_t *)(intptr_t)frame[9];
    const int64_t whole = frame[11]*L;
    for (int64_t k = 0; k < frame[7]; ++k) s[k] = x[k];
    symad_runs(s, (const int64_t *)(intptr_t)frame[12], (size_t)frame[13],
               (const int32_t *)(intptr_t)frame[14]);
    for (int64_t r = 0; r < frame[4]; ++r) {
        const int64_t *run = runs + 4*r, n = run[2];
        const int32_t *A = places + run[3], *B = A + n, *C = B + n;
        (void)B; (void)C;
        for (int64_t k = 0; k < n; ++k) {
            double *restrict y = w + (run[1] + k)*L;
            switch (run[0]) {
%s
            }
        }
    }
    for (int64_t k = 0; k < frame[10]; ++k)
        result[k] = results[k] < whole ? w[results[k]] : s[results[k] - whole];
}
"""

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


OPTIONS = ("-ftree-vectorize", "-march=native")
"""For the compiler of the kernel: it is compiled once on every machine."""


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
            WIDE % "\n".join(_wide_cases()),
        ]
    )


def _wide_cases() -> list[str]:
    """The operations on lanes; an operand is a row, or a scalar for all lanes.

    Arithmetic has a loop for each kind of operands, so that the compiler uses vector instructions.
    """
    cases = []
    for code, (function, form) in enumerate(forms().items()):
        names = [x for x in "abc" if _uses(form, x)]
        if function in ("add", "subtract", "multiply", "divide", "negative", "reciprocal", "sqrt"):
            kinds = product((True, False), repeat=len(names))
            text = " else ".join(_wide_loop(form, dict(zip(names, rows, strict=True))) for rows in kinds)
        else:
            text = _strided_loop(form, names)
        cases.append(f"            case {code}: {text} break;")
    return cases


def _wide_loop(form: str, rows: dict[str, bool]) -> str:
    """A loop for operands that are rows or scalars, and the test for that."""
    tests = " && ".join(f"{x.upper()}[k] {'>=' if row else '<'} 0" for x, row in rows.items())
    given = [
        f"const double *{x}_ = w + {x.upper()}[k]*L;"
        if row
        else f"const double {x} = s[-1 - {x.upper()}[k]];"
        for x, row in rows.items()
    ]
    reads = " ".join(f"const double {x} = {x}_[l];" for x, row in rows.items() if row)
    loop = f"for (int64_t l = 0; l < L; ++l) {{ {reads} y[l] = {form}; }}"
    return f"if ({tests}) {{ {' '.join(given)} {loop} }}"


def _strided_loop(form: str, names: list[str]) -> str:
    """A loop for operands of any kind: a scalar is a row with step 0."""
    given = " ".join(
        f"const int64_t {x}s = {x.upper()}[k] >= 0; "
        f"const double *{x}_ = {x}s ? w + {x.upper()}[k]*L : s - 1 - {x.upper()}[k];"
        for x in names
    )
    reads = " ".join(f"const double {x} = {x}_[l*{x}s];" for x in names)
    return f"{{ {given} for (int64_t l = 0; l < L; ++l) {{ {reads} y[l] = {form}; }} }}"


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
    if not is_scalar(prepared) and dtype == "float64":
        return _lower_lanes(prepared, graph, packed)
    if dtype != "float64":
        what = f"dtype {dtype}" if dtype != "float64" else "arrays inside the graph"
        raise LoweringError(f"backend 'runs' takes scalar graphs in float64, not {what}; use backend='numpy'")
    plain = lower_numpy.lower(graph, dtype, packed)
    made = plan(prepared, output_scalars(prepared))
    codes = _codes(made.runs)
    library = compile_c(kernel_source(), OPTIONS)
    if library is None:
        return plain
    function, native = _bind(prepared, made, codes, library, plain.function, packed)
    return replace(plain, function=function, native=native)


def _codes(runs: Sequence[Run]) -> dict[Any, int]:
    """The number of every operation.

    Raises:
        LoweringError: the runs use one that C has not.
    """
    codes = {form: k for k, form in enumerate(forms())}
    for run in runs:
        if run.function not in codes:
            name = getattr(run.function, "__name__", run.function)
            raise LoweringError(f"{name} is not in C's math.h; backend='numpy' has it")
    return codes


def _tables(runs: Sequence[Run], codes: dict[Any, int]) -> tuple[Any, Any]:
    """The runs as rows (code, start, length, offset), and the places of their operands."""
    offsets = np.cumsum([0, *(run.count * len(run.operands) for run in runs)])
    rows = [[codes[r.function], r.start, r.count, o] for r, o in zip(runs, offsets, strict=False)]
    places = np.concatenate([np.zeros(0), *(p for run in runs for p in run.operands)])
    return np.array(rows, np.int64).reshape(-1, 4), places.astype(np.int32)


def _lower_lanes(prepared: Graph, graph: Graph, packed: bool) -> Kernel:
    """A graph of scalars and lanes, such as a dense Hessian: one point at a time."""
    try:
        made = lane_plan(prepared)
    except LoweringError as error:
        raise LoweringError(
            f"backend 'runs' takes graphs of scalars, and dense Hessians of such ({error}), not arrays "
            "inside the graph; use backend='numpy'"
        ) from error
    codes = _codes((*made.scalars.runs, *made.runs))
    plain = lower_numpy.lower(graph, "float64", packed)
    library = compile_c(kernel_source(), OPTIONS)
    if library is None:
        return plain
    table, places = _tables(made.runs, codes)
    inner, inner_places = _tables(made.scalars.runs, codes)
    first = made.scalars.inputs + len(made.scalars.constants)
    wanted, whole = made.places.astype(np.int32), library.symad_runs_wide
    shapes = [tuple(int(d) for d in o.shape) for o in prepared.output_nodes]
    ends = np.cumsum([int(np.prod(s)) for s in shapes])[:-1]

    def bind(x: Any, y: Any) -> Callable[[], None]:
        check_sizes(x, y, made.scalars.inputs, len(wanted))
        s = np.zeros(made.scalars.size + len(made.scalars.extra))
        s[made.scalars.inputs : first] = made.scalars.constants
        s[made.scalars.size :] = made.scalars.extra
        w = np.zeros((made.rows, made.lanes))
        w[: len(made.given)] = made.given
        parts = [s, w, made.lanes, table, len(table), places, x, len(x), y, wanted, len(y), made.rows]
        return bound(whole, [*parts, inner, len(inner), inner_places], made.rows * made.lanes)

    here = threading.local()

    def flat(values: Any) -> Any:
        try:
            x, y, run = here.call
        except AttributeError:
            x, y = np.zeros(made.scalars.inputs), np.zeros(len(wanted))
            here.call = x, y, run = x, y, bind(x, y)
        x[...] = values
        run()
        return y.copy()

    def call(*values: Any) -> Any:
        if len(values) != made.scalars.inputs or any(np.ndim(v) for v in values):
            return plain.function(*values)
        parts = [p.reshape(s) for p, s in zip(np.split(flat(values), ends), shapes, strict=True)]
        return pack(prepared.structure, [p if p.ndim else float(p) for p in parts])

    def packed_call(vector: Any) -> Any:
        values = np.asarray(vector, dtype=np.float64)
        return flat(values) if values.shape == (made.scalars.inputs,) else plain.function(vector)

    return replace(plain, function=packed_call if packed else call, native=bind)


def _bind(
    graph: Graph, made: Plan, codes: dict[Any, int], library: Any, plain: Callable[..., Any], packed: bool
) -> tuple[Callable[..., Any], Callable[[Any, Any], Callable[[], None]]]:
    """A Python function that executes the runs, and its binder; odd arguments go to the NumPy form."""
    table, places = _tables(made.runs, codes)
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
        return bound(whole, parts, made.size)

    return (packed_call if packed else call), bind
