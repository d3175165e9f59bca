"""Graphs of scalars as NumPy modules: straight-line Python, or a statement for each run of equal operations.

Python needs 11-15 ns for an operation of straight-line code. NumPy needs about 0.6 µs for a statement and
3 ns for each element, so that long runs are faster.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import sympy

from symad.core.graph import Graph, Node
from symad.errors import LoweringError
from symad.numeric.modules.module_text import Names, frame, pack_text, summary
from symad.numeric.numpy_arrays.scalars.level_runs import LevelRun, VectorPlan, plan
from symad.numeric.passes.memory_layout.packed_entries import SparsePack, output_scalars
from symad.numeric.passes.ranges import in_range, norms
from symad.numeric.pipelines import (
    SCALAR_GRAPH,
    SCALAR_PROGRAM,
    PassReport,
    run_graph_passes,
    run_program_passes,
)
from symad.numeric.program.program import Program
from symad.numeric.scheduling.roles import Roles
from symad.numeric.scheduling.schedule import schedule
from symad.numeric.targets.constants import integers_text, nested_text
from symad.numeric.targets.scalar_module import print_scalar_module
from symad.numeric.targets.target import NUMPY, LibraryFunction
from symad.numeric.targets.writer import Writer
from symad.ops.basic.arithmetic import ElementwiseOp
from symad.ops.elementwise.apply import Apply
from symad.sympy_functions.scalar_functions import sigmoid

OWN = "symad.special"

MIN_OPERATIONS, MIN_RUN_LENGTH = 300, 80
"""Runs pay from `MIN_OPERATIONS` operations on, plus `MIN_RUN_LENGTH` operations for each run."""

CACHE_NUMBERS, MIN_POINTS = 2**18, 32
"""Numbers that a core's second-level cache holds; the fewest points that are computed together."""

ENTRY = '''def _runs(columns):
    """The results from the inputs, each as rows of an array."""
    v = np.empty(({size}, *columns.shape[1:]), dtype=np.{dtype})
    v[:{inputs}] = columns
    v[{inputs}:{first}] = CONSTANTS.reshape(-1, *[1]*(columns.ndim - 1))
{body}
    return v[RESULTS]


def _results(columns):
    """The results; for batches {points} points at a time, whose values stay in the cache."""
    if columns.ndim == 1:
        return _runs(columns)
    flat = columns.reshape({inputs}, -1)
    made = np.empty((len(RESULTS), flat.shape[1]), dtype=np.{dtype})
    for k in range(0, flat.shape[1], {points}):
        made[:, k:k + {points}] = _runs(flat[:, k:k + {points}])
    return made.reshape(-1, *columns.shape[1:])


def _columns(values):
    if {{float}}.issuperset(map(type, values)):
        return np.array(values, dtype=np.{dtype})
    arrays = [np.asarray(v) for v in values]
    for name, array in zip(_NAMES, arrays):
        if array.dtype.kind not in "fiub":
            raise TypeError(f"{{name}} must hold real numbers, not {{array.dtype}}")
    batch = np.broadcast_shapes(*[array.shape for array in arrays])
    columns = np.empty((len(arrays), *batch), dtype=np.{dtype})
    for k, array in enumerate(arrays):
        columns[k] = array
    return columns


def _shaped(entries, shape):
    if entries.ndim == 1:
        return entries.reshape(shape)
    entries = np.moveaxis(entries, 0, -1)
    return entries.reshape(entries.shape[:-1] + shape)
'''


class _RunWriter(Writer):
    """Writes the operands of runs, and the index arrays that they need."""

    def chosen(self, places: np.ndarray) -> str:
        """A slice if the places are regular, else the name of an index array."""
        first, count = int(places[0]), len(places)
        step = int(places[1]) - first if count > 1 else 1
        if step > 0 and (np.diff(places) == step).all():
            stop = first + step * (count - 1) + 1
            return f"{first}:{stop}" + (f":{step}" if step > 1 else "")
        if (places == first).all():
            return f"{first}:{first + 1}"
        return self.shared(self.array(places), "places")

    def array(self, places: np.ndarray) -> str:
        """The text of an index array."""
        return integers_text(places, "np.intp", self) or f"np.array({places.tolist()}, dtype=np.intp)"


def print_runs_module(graph: Graph, dtype: str, packed: bool) -> tuple[str, tuple[str, ...]] | None:
    """The entry point's name and the source of the module; None if straight-line code is faster."""
    if not _may_pay(graph):
        return None
    outputs = output_scalars(graph)
    try:
        made = plan(graph, outputs)
    except LoweringError:
        return None
    count = sum(run.count for run in made.runs)
    if count < MIN_OPERATIONS + MIN_RUN_LENGTH * len(made.runs) or not made.inputs:
        return None
    if any(isinstance(o.op, SparsePack) for o in graph.output_nodes):
        return None
    if any(function_of(run.function) is None for run in made.runs):
        return None
    return _module(graph, made, dtype, packed)


def _may_pay(graph: Graph) -> bool:
    """Whether there may be enough operations per run, by a bound that is much cheaper than `plan`.

    There are no more operations than operands, and no fewer runs than operations in the longest chain.
    """
    level: dict[Node, int] = {}
    operands = highest = 0
    for node in graph.nodes:
        found = max([level[a] for a in node.args], default=0)
        if isinstance(node.op, (ElementwiseOp, Apply)):
            operands += len(node.args)
            found += 1
            highest = max(highest, found)
        level[node] = found
    return operands >= MIN_OPERATIONS + MIN_RUN_LENGTH * max(highest, 1)


def function_of(head: Any) -> LibraryFunction | None:
    """The ufunc of an operation or SymPy head, or a function of `symad.special` with one argument."""
    if isinstance(head, str):
        return LibraryFunction("numpy", head)
    if head is sigmoid:
        return LibraryFunction("scipy.special", "expit")
    found = NUMPY.functions.get(head)
    if found is None:
        return None
    one = getattr(head, "nargs", None) == sympy.FiniteSet(1)
    return found if found.module in ("numpy", "scipy.special") or (found.module == OWN and one) else None


def _module(graph: Graph, made: VectorPlan, dtype: str, packed: bool) -> tuple[str, tuple[str, ...]]:
    names = Names(("np", "CONSTANTS", "RESULTS"))
    entry = names.unique(graph.name)
    inputs = [names.of(symbol) for symbol in graph.inputs]
    writer = _RunWriter(NUMPY, dtype, names)
    writer.imports.add(writer.library)
    body = [_run_line(run, writer) for run in made.runs]
    first = made.inputs + len(made.constants)
    code = ENTRY.format(
        size=made.size,
        dtype=dtype,
        inputs=made.inputs,
        first=first,
        points=max(MIN_POINTS, CACHE_NUMBERS // made.size),
        body="\n".join(f"    {x}" for x in body),
    )
    constants = f"CONSTANTS = np.array({nested_text([*map(float, made.constants)], 'np')}, dtype=np.{dtype})"
    results = f"RESULTS = {writer.array(made.results)}"
    result = pack_text(graph.structure, _values(graph))
    if packed:
        signature = "x"
        unpacking = [
            f"columns = np.asarray(x, dtype=np.{dtype})",
            f"if columns.shape != ({made.inputs},):",
            f'    raise ValueError(f"x must have shape ({made.inputs},), not {{columns.shape}}")',
        ]
    else:
        signature = ", ".join(inputs)
        unpacking = [f"columns = _columns(({signature},))"]
    told = summary((), [node.shape for node in graph.output_nodes], graph.structure, ())
    function = [
        f"def {entry}({signature}):",
        f"    {told}",
        *(f"    {line}" for line in unpacking),
        '    with np.errstate(all="ignore"):',
        "        results = _results(columns)",
        *_scalars(graph, dtype),
        f"    return {result}",
    ]
    titles = f"_NAMES = {tuple(map(str, graph.inputs))!r}"
    shared = [f"{name} = {text}" for text, name in writer.constants.items()]
    blocks = [[*shared, constants, results, titles], [code.rstrip()], function]
    return entry, frame(graph.name, writer.imports, writer.helpers.values(), blocks, writer.needs())


def _scalars(graph: Graph, dtype: str) -> list[str]:
    """The statement that names the scalar results: floats at a point, arrays over a batch."""
    if all(output.shape for output in graph.output_nodes):
        return []
    single = "results.tolist() if results.ndim == 1 else results" if dtype == "float64" else "results"
    return [f"    scalars = {single}"]


def _values(graph: Graph) -> list[str]:
    """The texts of the outputs."""
    offset, values = 0, []
    for output in graph.output_nodes:
        size = int(np.prod(output.shape))
        if output.shape:
            shape = tuple(int(d) for d in output.shape)
            values.append(f"_shaped(results[{offset}:{offset + size}], {shape})")
        else:
            values.append(f"scalars[{offset}]")
        offset += size
    return values


def _run_line(run: LevelRun, writer: _RunWriter) -> str:
    operands = [f"v[{writer.chosen(places)}]" for places in run.operands]
    function = function_of(run.function)
    assert function is not None
    target, name = f"v[{run.start}:{run.start + run.count}]", writer.function(function)
    if function.name == "where":
        operands[0] += " != 0"
    if function.module == OWN or function.name == "where":
        return f"{target} = {name}({', '.join(operands)})"
    keyword = "out=" if function.name in ("maximum", "minimum") else ""
    return f"{name}({', '.join(operands)}, {keyword}{target})"


# ---- graphs of scalars as NumPy modules ----------------------------------------------------------


def print_scalars(
    graph: Graph, dtype: str, packed: bool, roles: Roles, report: list[PassReport] | None = None
) -> tuple[str, tuple[str, ...]]:
    """The entry point's name and the source of the module; each pass adds a line to ``report``."""
    prepared = run_graph_passes(graph, (*SCALAR_GRAPH, *norms(dtype), *in_range(dtype)), report)
    in_runs = print_runs_module(prepared, dtype, packed)
    return in_runs or print_scalar_module(scalar_program(prepared, roles, report), dtype, packed)


def scalar_program(prepared: Graph, roles: Roles, report: list[PassReport] | None = None) -> Program:
    """The program of a graph after `SCALAR_GRAPH`."""
    program = schedule(prepared, roles.of_results(prepared))
    return run_program_passes(program, SCALAR_PROGRAM, report, check=False)
