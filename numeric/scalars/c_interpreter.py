"""The C source of the interpreter of runs, which is compiled once for all functions.

A run is a row (code, start, length, offset): one operation whose ``length`` results are stored from place
``start`` on; the places of its operands are listed from ``offset`` on. Three loops execute runs: at one
point, at `LANES` points together, and on rows of any number of lanes beside scalars. For arithmetic,
operands that are slices or one repeated value have separate codes, whose loops need no places and become
vector code.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import product

import numpy as np
import sympy
from sympy.codegen.cfunctions import hypot
from sympy.codegen.numpy_nodes import logaddexp

from symad.core.arrays import Array
from symad.numeric.compiler.c_templates import filled
from symad.numeric.numpy_arrays.scalars.level_runs import LevelRun, OpName
from symad.numeric.scalars.lanes import JOINED
from symad.numeric.targets.c_functions import (
    HELPERS,
    PACKED,
    SCALAR_C,
    NotInC,
    helper_source,
    own_name,
    scalar_name,
)
from symad.sympy_functions.scalar_functions import xlogy

LANES = 128
"""The number of points of a batch that are computed together."""

PARTS = 4
"""A row is prefetched from memory in this many parts, each by another run, if there are enough runs."""

PAST_CACHES = 2**18
"""The number of result numbers from which results bypass the caches: 2 MiB, a core's second-level cache.
Cache lines that are written whole then need not be read first."""

BLOCK = 8
"""Packs of one function are padded to multiples of this; so much room is needed after the last value."""

MIN_SLICED_RUN = 4
"""Shorter runs read their operands by places, even if these are slices.

Slices take 1.48 of the time for 3 operations, 0.83 for 4, 0.59 for 8 (bench_scalar_thresholds.py, "slices").
"""

ARITHMETIC = {
    "add": "{a} + {b}",
    "subtract": "{a} - {b}",
    "multiply": "{a}*{b}",
    "divide": "{a}/{b}",
    "negative": "-{a}",
    "reciprocal": "1/{a}",
    "sqrt": "sqrt({a})",
    "power": "pow({a}, {b})",
    "maximum": "max_({a}, {b})",
    "minimum": "min_({a}, {b})",
    "less": "{a} < {b}",
    "less_equal": "{a} <= {b}",
    "equal": "{a} == {b}",
    "not_equal": "{a} != {b}",
    "logical_and": "{a} != 0 && {b} != 0",
    "logical_or": "{a} != 0 || {b} != 0",
    "logical_xor": "({a} != 0) != ({b} != 0)",
    "logical_not": "{a} == 0",
    "where": "{a} != 0 ? {b} : {c}",
    **JOINED,
}
"""The operations on a, b, c as C templates."""

ONE, THREE = {"negative", "reciprocal", "sqrt", "logical_not"}, {"where", *JOINED}
"""Operations with one operand, and with three; the others have two."""

SIMPLE = ("add", "subtract", "multiply", "divide", "negative", "reciprocal", "sqrt")
"""Operations with a separate loop for each kind of operands."""

HEAD = """\
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#ifdef __GNUC__
#define FETCH(place) __builtin_prefetch(place)
#else
#define FETCH(place) (void)(place)
#endif
#ifdef __SSE2__
#include <immintrin.h>
#endif
#if defined __AVX512F__ && defined __GNUC__ && !defined __clang__
#pragma GCC target("prefer-vector-width=512")
#endif
"""

EACH = """\
/* results and operands of a run are different values */
#define EACH _Pragma("GCC ivdep")
"""

POINT = """\
static void execute(double *restrict v, const int64_t *runs, int64_t count, const int32_t *places)
{
    for (int64_t r = 0; r < count; ++r) {
        const int64_t *run = runs + 4*r;
        const size_t n = (size_t)run[2], full = (n + %d) & ~(size_t)%d;
        double *y = v + run[1];
        const int32_t *a_ = places + run[3], *b_ = a_ + n, *c_ = b_ + n;
        (void)b_; (void)c_;
        switch (run[0]) {
%s
        }
    }
}

/* values, runs, their number, places, x, its length, y, the places of the results, their number */
void symad_runs_bound(const int64_t *frame)
{
    double *v = (double *)(intptr_t)frame[0], *y = (double *)(intptr_t)frame[6];
    const int32_t *results = (const int32_t *)(intptr_t)frame[7];
    memcpy(v, (const double *)(intptr_t)frame[4], (size_t)frame[5]*sizeof *v);
    execute(v, (const int64_t *)(intptr_t)frame[1], frame[2], (const int32_t *)(intptr_t)frame[3]);
    for (int64_t k = 0; k < frame[8]; ++k) y[k] = v[results[k]];
}
"""

POINTS = """\
/* A row of results, on a cache line, to where it belongs: past the caches, if they are too many for them. */
static void put(double *to, const double *row, size_t n, int past)
{
    size_t l = 0;
#if defined __AVX512F__
    if (past && (uintptr_t)to %% 64 == 0)
        for (; l + 8 <= n; l += 8) _mm512_stream_pd(to + l, _mm512_load_pd(row + l));
#elif defined __SSE2__
    if (past && (uintptr_t)to %% 16 == 0)
        for (; l + 2 <= n; l += 2) _mm_stream_pd(to + l, _mm_load_pd(row + l));
#endif
    if (l < n) memcpy(to + l, row + l, (n - l)*sizeof *row);
}

/* blocks of eight lanes of each row; for each run the part of a row that is asked from memory for a later
   one, or -1, and the result that it computes, or -1 */
static void execute_lanes(double *const *rows, size_t blocks, const int64_t *runs, int64_t count,
                          const int32_t *places, const int32_t *ahead, size_t parts,
                          const int32_t *made,
                          double *const *y, size_t first, size_t some, int past)
{
    const size_t L = %d*blocks;
    for (int64_t r = 0; r < count; ++r) {
        if (ahead[r] >= 0) {
            const double *row = rows[(size_t)ahead[r]/parts] + (size_t)ahead[r]%%parts*8;
            for (size_t l = 0; l < L; l += 8*parts) FETCH(row + l);
        }
        const int64_t *run = runs + 4*r;
        const size_t n = (size_t)run[2];
        const int32_t *a_ = places + run[3], *b_ = a_ + n, *c_ = b_ + n;
        (void)b_; (void)c_;
        for (size_t k = 0; k < n; ++k) {
            double *restrict y = rows[(size_t)run[1] + k];
            switch (run[0]) {
%s
            }
        }
        if (made[r] >= 0) put(y[made[r]] + first, rows[run[1]], some, past);
    }
}

/* values, runs, their number, places, the addresses of inputs (points,), their number, the addresses of
   results (points,), their rows, their number, points, the addresses of all rows, their number; for each run
   the result that it computes, or -1, and the part of a row to fetch, or -1; the other results, their
   number, and the parts of a row. Inputs are read where they are; only points that fill no row are copied. Of
   more, the last are computed with some before them, once more and to the same bits. */
void symad_runs_points(const int64_t *frame)
{
    enum { LANES = %d };
    double *v = (double *)(intptr_t)frame[0], **rows = (double **)(intptr_t)frame[10];
    double *const *inputs = (double *const *)(intptr_t)frame[4];
    double *const *y = (double *const *)(intptr_t)frame[6];
    const int64_t points = frame[9];
    const int32_t *results = (const int32_t *)(intptr_t)frame[7];
    const int32_t *others = (const int32_t *)(intptr_t)frame[14];
    const int past = points*frame[8] > %d;
    for (int64_t k = 0; k < frame[11]; ++k) rows[k] = v + k*LANES;
    for (int64_t done = 0; done < points; done += LANES) {
        const int64_t whole = points >= LANES, some = whole ? LANES : points;
        const int64_t first = whole && points - done < LANES ? points - LANES : done;
        const size_t blocks = ((size_t)some + %d)/%d;
        for (int64_t k = 0; k < frame[5]; ++k) {
            double *x = inputs[k] + first;
            rows[k] = whole ? x : v + k*LANES;
            if (!whole) for (size_t l = 0; l < %d*blocks; ++l) rows[k][l] = x[(int64_t)l < some ? l : 0];
        }
        execute_lanes(rows, blocks, (const int64_t *)(intptr_t)frame[1], frame[2],
                      (const int32_t *)(intptr_t)frame[3], (const int32_t *)(intptr_t)frame[13],
                      (size_t)frame[16],
                      (const int32_t *)(intptr_t)frame[12], y, (size_t)first, (size_t)some, past);
        for (int64_t k = 0; k < frame[15]; ++k)
            memcpy(y[others[k]] + first, rows[results[others[k]]], (size_t)some*sizeof *v);
    }
#ifdef __SSE2__
    if (past) _mm_sfence();
#endif
}
"""

ROWS = """\
/* scalars, rows, lanes, runs, their number, places, x, its length, y, the places of the results, their
   number, the number of rows, and the runs of the scalars: they, their number and their places */
void symad_runs_rows(const int64_t *frame)
{
    double *s = (double *)(intptr_t)frame[0], *w = (double *)(intptr_t)frame[1];
    const int64_t L = frame[2], *runs = (const int64_t *)(intptr_t)frame[3];
    const int32_t *places = (const int32_t *)(intptr_t)frame[5];
    double *result = (double *)(intptr_t)frame[8];
    const int32_t *results = (const int32_t *)(intptr_t)frame[9];
    const int64_t whole = frame[11]*L;
    memcpy(s, (const double *)(intptr_t)frame[6], (size_t)frame[7]*sizeof *s);
    execute(s, (const int64_t *)(intptr_t)frame[12], frame[13], (const int32_t *)(intptr_t)frame[14]);
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


@dataclass(frozen=True)
class Form:
    """An operation as a C template, and the letters of its operands."""

    template: str
    names: tuple[str, ...]

    def of(self, elements: Mapping[str, str]) -> str:
        """The operation on the given elements; other operands keep their letters."""
        return self.template.format(**{x: elements.get(x, x) for x in self.names})


@cache
def forms() -> dict[OpName, Form]:
    """The C form of every operation and function, in the order of their codes."""
    found: dict[OpName, Form] = {}
    for name, template in ARITHMETIC.items():
        found[name] = Form(template, ("a", "b", "c")[: 1 if name in ONE else 3 if name in THREE else 2])
    two = {sympy.atan2, sympy.Mod, sympy.Heaviside, sympy.jn, hypot, xlogy, logaddexp}
    for head, template in SCALAR_C.forms.items():
        found[head] = Form(filled(template, lambda name: "{a}" if name == "a" else scalar_name(name)), ("a",))
    for head, function in SCALAR_C.functions.items():
        if head in (sympy.Max, sympy.Min):
            continue
        name = own_name(function.name) if function.module else function.name
        binary = head in two
        found[head] = Form(f"{name}({{a}}, {{b}})" if binary else f"{name}({{a}})", ("a", "b")[: 1 + binary])
    return found


@cache
def codes() -> dict[tuple[OpName, tuple[str, ...]], int]:
    """The codes of all operations with operands by place, then of those with slices and single values."""
    found: dict[tuple[OpName, tuple[str, ...]], int] = {}
    for function, form in forms().items():
        found[function, ("places",) * len(form.names)] = len(found)
    for function in SIMPLE:
        for kinds in product(("slice", "one"), repeat=len(forms()[function].names)):
            if "slice" in kinds:
                found[function, kinds] = len(found)
    return found


def _elements(names: Iterable[str], index: str) -> dict[str, str]:
    """``a[index]`` for each letter."""
    return {x: f"{x}[{index}]" for x in names}


@cache
def kernel_source() -> str:
    """The file."""
    point = [_point_case(function, kinds) for function, kinds in codes()]
    lanes, rows = [], []
    for function, form in forms().items():
        names = form.names
        if function in PACKED:
            lanes.append(f"memcpy(y, rows[a_[k]], sizeof(double)*L); {PACKED[function]}_all(y, L);")
        else:
            given = " ".join(f"const double *{x} = rows[{x}_[k]];" for x in names)
            loop = f"EACH for (size_t l = 0; l < L; ++l) y[l] = {form.of(_elements(names, 'l'))};"
            lanes.append(f"{{ {given} {loop} }}")
        if function in SIMPLE:
            kinds = product((True, False), repeat=len(names))
            rows.append(" else ".join(_row_loop(form, dict(zip(names, k, strict=True))) for k in kinds))
        else:
            rows.append(_strided_loop(form))
    return "\n".join(
        [
            HEAD,
            EACH,
            helper_source([*HELPERS, *PACKED.values()]),
            POINT % (BLOCK - 1, BLOCK - 1, _switch(point)),
            POINTS % (BLOCK, _switch(lanes), LANES, PAST_CACHES, BLOCK - 1, BLOCK, BLOCK),
            ROWS % _switch(rows),
        ]
    )


def _switch(cases: list[str]) -> str:
    return "\n".join(f"            case {code}: {case} break;" for code, case in enumerate(cases))


def _point_case(function: OpName, kinds: tuple[str, ...]) -> str:
    """The loop over the places of a run, or over its slices."""
    if function in PACKED:
        return (
            "for (size_t k = 0; k < n; ++k) y[k] = v[a_[k]]; for (size_t k = n; k < full; ++k) y[k] = y[0]; "
            f"{PACKED[function]}_all(y, full);"
        )
    form = forms()[function]
    names = form.names
    if "places" in kinds:
        given = " ".join(f"const double {x} = v[{x}_[k]];" for x in names)
        return f"for (size_t k = 0; k < n; ++k) {{ {given} y[k] = {form.of({})}; }}"
    slices = [x for x, kind in zip(names, kinds, strict=True) if kind == "slice"]
    given = " ".join(
        f"const double *{x} = v + {x}_[0];" if x in slices else f"const double {x} = v[{x}_[0]];"
        for x in names
    )
    return f"{{ {given} EACH for (size_t k = 0; k < n; ++k) y[k] = {form.of(_elements(slices, 'k'))}; }}"


def _row_loop(form: Form, rows: dict[str, bool]) -> str:
    """The loop for one choice of rows and scalars as operands, and the test for that choice."""
    tests = " && ".join(f"{x.upper()}[k] {'>=' if row else '<'} 0" for x, row in rows.items())
    given = [
        f"const double *{x} = w + {x.upper()}[k]*L;" if row else f"const double {x} = s[-1 - {x.upper()}[k]];"
        for x, row in rows.items()
    ]
    body = form.of(_elements([x for x, row in rows.items() if row], "l"))
    return f"if ({tests}) {{ {' '.join(given)} EACH for (int64_t l = 0; l < L; ++l) y[l] = {body}; }}"


def _strided_loop(form: Form) -> str:
    """The loop for any operands: a scalar is a row with step 0."""
    given = " ".join(
        f"const int64_t {x}s = {x.upper()}[k] >= 0; "
        f"const double *{x}_ = {x}s ? w + {x.upper()}[k]*L : s - 1 - {x.upper()}[k];"
        for x in form.names
    )
    reads = " ".join(f"const double {x} = {x}_[l*{x}s];" for x in form.names)
    return f"{{ {given} for (int64_t l = 0; l < L; ++l) {{ {reads} y[l] = {form.of({})}; }} }}"


def check_runs(runs: Sequence[LevelRun]) -> None:
    """Raises NotInC if the runs use an operation that C lacks."""
    for run in runs:
        if run.function not in forms():
            raise NotInC(getattr(run.function, "__name__", str(run.function)))


def tables(runs: Sequence[LevelRun], slices: bool = True) -> tuple[np.ndarray, np.ndarray]:
    """The runs as rows (code, start, length, offset), and the places of their operands.

    ``slices``: whether slices and single values have codes of their own.
    """
    known = codes()
    offsets = np.cumsum([0, *(run.count * len(run.operands) for run in runs)])
    rows = []
    for run, offset in zip(runs, offsets, strict=False):
        kinds = ("places",) * len(run.operands)
        if slices and run.function in SIMPLE and run.count >= MIN_SLICED_RUN:
            kinds = tuple(_kind(places) for places in run.operands)
        code = known.get((run.function, kinds), known.get((run.function, ("places",) * len(kinds))))
        rows.append([code, run.start, run.count, offset])
    places = np.concatenate([np.zeros(0), *(p for run in runs for p in run.operands)])
    return np.array(rows, np.int64).reshape(-1, 4), places.astype(np.int32)


def _kind(places: Array) -> str:
    """The kind of some places: a slice, a single value, or any places."""
    step = places[1] - places[0]
    regular = step in (0, 1) and (np.diff(places) == step).all()
    return ("one", "slice")[step] if regular else "places"
