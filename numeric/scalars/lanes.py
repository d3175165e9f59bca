"""Scalar programs with lanes: scalars that are computed once, and vectors of one length L beside them.

Dense Hessians of scalar functions have this form: every tangent is a vector with one lane per direction, and
the values that multiply it are scalars. At the end the vectors are arranged into a matrix. That part only
moves elements, and is computed in advance as the places of the elements.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Container, Sequence
from dataclasses import dataclass, replace

import numpy as np

from symad.core.graph import Graph, Node
from symad.core.questions import evaluate
from symad.errors import LoweringError
from symad.numeric.numpy_arrays.scalars.level_runs import (
    LevelRun,
    NumberedSteps,
    VectorPlan,
    placed,
    steps_of,
)
from symad.ops.arrays.stacking import Concatenate, Stack
from symad.ops.basic.arithmetic import ElementwiseOp
from symad.ops.basic.contraction import Einsum
from symad.ops.basic.shaping import Broadcast, Reshape, Slice
from symad.ops.basic.sources import Input
from symad.ops.elementwise.apply import Apply
from symad.ops.sparse.csr import CompressedRows

# ---- pairs of operations as one: a product and a sum ---------------------------------------------

# The interpreter for many points then passes over three rows instead of four. The intermediate result is
# rounded as before.


JOINED = {
    "product_plus": "{a}*{b} + {c}",
    "product_minus": "{a}*{b} - {c}",
    "minus_product": "{c} - {a}*{b}",
    "product_of_three": "{a}*{b}*{c}",
    "sum_times": "({a} + {b})*{c}",
    "difference_times": "({a} - {b})*{c}",
}
"""The combined operations on a, b, c in C; a and b are the operands of the first operation."""

PAIRS = {
    ("multiply", "add", 0): "product_plus",
    ("multiply", "add", 1): "product_plus",
    ("multiply", "subtract", 0): "product_minus",
    ("multiply", "subtract", 1): "minus_product",
    ("multiply", "multiply", 0): "product_of_three",
    ("multiply", "multiply", 1): "product_of_three",
    ("add", "multiply", 0): "sum_times",
    ("add", "multiply", 1): "sum_times",
    ("subtract", "multiply", 0): "difference_times",
    ("subtract", "multiply", 1): "difference_times",
}
"""The first operation, the second, and the position of the first one's value among the second's operands."""


def joined(steps: NumberedSteps, wanted: Sequence[int]) -> tuple[NumberedSteps, list[int]]:
    """The operations with pairs combined, and the new numbers of the wanted operations."""
    operations = steps.operations
    uses = Counter(o for _, operands in operations for o in operands)
    uses.update(wanted)
    pairs: dict[int, tuple[str, tuple[int, ...]]] = {}
    gone: set[int] = set()
    for k, (second, operands) in enumerate(operations):
        for place, o in enumerate(operands):
            name = PAIRS.get((operations[o][0], second, place))
            if name is not None and uses[o] == 1 and o not in pairs:
                pairs[k] = name, (*operations[o][1], operands[1 - place])
                gone.add(o)
                break
    made, number = NumberedSteps(), dict[int, int]()
    for k, operation in enumerate(operations):
        if k not in gone:
            function, operands = pairs.get(k, operation)
            number[k] = made.value(function, *(number[o] for o in operands))
    return made, [number[k] for k in wanted]


Array = np.ndarray

BLOCK = 8
"""Rows are padded to multiples of this many lanes, as vector instructions need."""

MOVING = (Reshape, Slice, Concatenate, Stack, Broadcast)
"""Ops that only move elements."""


@dataclass(frozen=True)
class LanePlan:
    """A plan for scalars, and runs over rows of L lanes.

    An operand p of ``runs`` is row p if p ≥ 0, else scalar −1 − p. The rows begin with ``given``.
    ``places`` are the elements of all outputs: of the rows, flat, and after them of the scalars.
    """

    scalars: VectorPlan
    lanes: int
    given: Array
    runs: tuple[LevelRun, ...]
    rows: int
    places: Array


@dataclass(frozen=True)
class PointPlan:
    """A plan of scalar operations, one by one, on rows of points: rows of inputs, of constants, and others.

    ``results`` are the rows that hold outputs at the end. ``written`` gives for each run the output that it
    computes, or −1; the row of such an output may be reused. The other outputs keep their rows.
    """

    inputs: int
    constants: tuple[float, ...]
    runs: tuple[LevelRun, ...]
    rows: int
    results: Array
    written: Array


def point_plan(graph: Graph, outputs: Sequence[Node]) -> PointPlan:
    """The rows for many points of a graph of scalars."""
    steps, wanted = joined(*steps_of(graph, outputs))
    inputs = len(graph.input_nodes)
    given = inputs + sum(not operands and f[0] == "constant" for f, operands in steps.operations)
    first = {number: k for k, number in reversed(list(enumerate(wanted)))}
    again = {number for k, number in enumerate(wanted) if first[number] != k}
    runs, code, constants, rows = in_rows(steps, again, range(inputs), given, lambda k: inputs + k)
    written = [first.get(k, -1) for k, (_, operands) in enumerate(steps.operations) if operands]
    results = np.array([code[k] for k in wanted], dtype=np.int64)
    return PointPlan(inputs, constants, runs, rows, results, np.array(written, np.int32))


def lane_plan(graph: Graph) -> LanePlan:
    """The plan with lanes of a graph whose inputs are scalars.

    Raises:
        LoweringError: the graph has arrays other than lanes, or an op that is not a function of scalars.
    """
    order = graph.nodes
    if graph.dims or any(n.shape for n in graph.input_nodes) or not graph.input_nodes:
        raise LoweringError("the graph has inputs that are not scalars")
    fixed = _fixed(order)
    lanes, width = _lanes(order, fixed)
    scalar, at = _scalar_plan(graph)
    steps, inputs, known = _lane_steps(order, lanes)
    given = [n for n in inputs if n.shape]
    if any(n not in fixed for n in given):
        raise LoweringError("the graph has arrays that are not lanes of one length")
    row = {n: k for k, n in enumerate(given)}
    kept = [n for n in lanes if n in graph.output_nodes]
    kept += dict.fromkeys(a for n in order if n not in lanes for a in n.args if a in lanes)
    sources = [row.get(n, -1 - at.get(n, 0)) for n in inputs]

    def behind(k: int) -> int:
        """The code of a constant: constants follow all other scalars."""
        return -1 - (scalar.size + k)

    runs, code, extra, rows = in_rows(steps, {known[n] for n in kept}, sources, len(given), behind)
    row |= {n: code[known[n]] for n in kept}
    stride = -(-width // BLOCK) * BLOCK
    moving = [n for n in order if n in row or n not in lanes]
    places = _places(graph, moving, row, at, fixed, rows, width, stride)
    table = np.zeros((len(given), stride))
    for k, n in enumerate(given):
        table[k, :width] = fixed[n]
    return LanePlan(replace(scalar, extra=extra), stride, table, runs, rows, places)


def _lanes(order: Sequence[Node], fixed: Container[Node]) -> tuple[set[Node], int]:
    """The nodes that are computed in lanes, and their length."""
    lanes = {n for n in order if n.shape and n not in fixed and isinstance(n.op, (ElementwiseOp, Apply))}
    sizes = {n.shape for n in lanes}
    if len(sizes) != 1 or len(next(iter(sizes))) != 1:
        raise LoweringError("the graph has arrays that are not lanes of one length")
    ((width,),) = sizes
    return lanes, int(width)


def _lane_steps(order: Sequence[Node], lanes: set[Node]) -> tuple[NumberedSteps, list[Node], dict[Node, int]]:
    """The operations on lanes, what they read from outside, and the number of each value."""
    steps, inputs = (
        NumberedSteps(),
        list(dict.fromkeys(_source(a) for n in lanes for a in n.args if a not in lanes)),
    )
    known = {node: steps.value(("input", k)) for k, node in enumerate(inputs)}
    for node in order:
        if node in lanes:
            known[node] = steps.node(node, [known[a if a in lanes else _source(a)] for a in node.args])
    return steps, inputs, known


def _scalar_plan(graph: Graph) -> tuple[VectorPlan, dict[Node, int]]:
    """The plan of the scalars that come before the lanes, and the place of each."""
    steps = NumberedSteps()
    number = {node: steps.value(("input", k)) for k, node in enumerate(graph.input_nodes)}
    for node in graph.nodes:
        if not node.shape and node not in number:
            if any(a.shape for a in node.args):
                raise LoweringError(f"the op {type(node.op).__name__} makes a scalar from an array")
            number[node] = steps.node(node, [number[a] for a in node.args])
    scalar = placed(steps, list(number.values()), len(graph.input_nodes))
    return scalar, dict(zip(number, scalar.results.tolist(), strict=True))


def in_rows(
    steps: NumberedSteps, kept: set[int], sources: Sequence[int], given: int, constant: Callable[[int], int]
) -> tuple[tuple[LevelRun, ...], list[int], tuple[float, ...], int]:
    """The operations one by one on rows that are reused, so that few rows are in use and stay in the cache.

    Args:
        steps: the operations on lanes, operands first.
        kept: the numbers of the operations that are read at the end; the row of another operation that
            nothing reads is reused at once.
        sources: the codes of the inputs of ``steps``.
        given: the number of rows that are given.
        constant: gives the code of a constant, by its number.

    Returns:
        The runs, the code of every operation, the constants, and the number of rows.
    """
    last = {o: k for k, (_, operands) in enumerate(steps.operations) for o in operands}
    runs: list[LevelRun] = []
    code: list[int] = []
    extra: list[float] = []
    free: list[int] = []
    rows = given
    for k, (function, operands) in enumerate(steps.operations):
        if operands:
            if not free:
                free.append(rows)
                rows += 1
            code.append(free.pop())  # before operands are released, so that no result overwrites one of them
            runs.append(LevelRun(function, code[k], tuple(np.array([code[o]]) for o in operands)))
            gone = [o for o in set(operands) if last[o] == k and code[o] >= given and o not in kept]
            free += [code[o] for o in (*gone, *([k] if k not in last and k not in kept else ()))]
        elif function[0] == "input":
            code.append(sources[function[1]])
        else:
            code.append(constant(len(extra)))
            extra.append(float(np.frombuffer(function[1])[0]))
    return tuple(runs), code, tuple(extra), rows


def _source(node: Node) -> Node:
    """The scalar that a node broadcasts over the lanes, or the node itself."""
    return node.args[0] if isinstance(node.op, Broadcast) and not node.args[0].shape else node


def _fixed(order: Sequence[Node]) -> dict[Node, Array]:
    """The arrays that do not depend on any input."""
    moving: set[Node] = set()
    found: dict[Node, Array] = {}
    for node in order:
        if isinstance(node.op, CompressedRows):
            raise LoweringError("a result is a sparse matrix")
        if isinstance(node.op, Input) or any(a in moving for a in node.args):
            moving.add(node)
        else:
            found[node] = np.asarray(evaluate(node.op, tuple(found[a] for a in node.args)), dtype=float)
    return {n: value for n, value in found.items() if n.shape}


def _places(
    graph: Graph, order: Sequence[Node], row: dict[Node, int], at: dict[Node, int],
    fixed: dict[Node, Array], rows: int, width: int, stride: int,
) -> Array:  # fmt: skip
    """The places of the outputs' elements, found by applying the moving ops to arrays of places."""
    known: dict[Node, Array] = {n: k * stride + np.arange(width) for n, k in row.items()}
    known |= {n: np.asarray(rows * stride + k) for n, k in at.items()}
    for node in order:
        if node in known or node in fixed or not node.shape:
            continue
        permutes = isinstance(node.op, Einsum) and len(node.args) == 1
        if not (isinstance(node.op, MOVING) or permutes) or any(a not in known for a in node.args):
            raise LoweringError(f"the op {type(node.op).__name__} does not only move elements of lanes")
        known[node] = np.asarray(evaluate(node.op, tuple(known[a] for a in node.args))).astype(np.int64)
    missing = [o for o in graph.output_nodes if o not in known]
    if missing:
        raise LoweringError("an output does not depend on the inputs")
    return np.concatenate([known[o].ravel() for o in graph.output_nodes])
