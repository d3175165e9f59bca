"""Scalar programs with lanes: scalars computed once, and vectors of one length L beside them.

So come dense Hessians of scalar functions: every tangent is a vector with one lane for each direction, and
the values it is multiplied by are scalars. At the end the vectors are put together to a matrix; that part
only moves elements, and is known in advance as the places where the elements stand.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from symad.errors import LoweringError
from symad.graph import Graph, Node, topological
from symad.numeric.runs import Plan, Run, Steps, placed
from symad.ops.arithmetic import ElementwiseOp
from symad.ops.contraction import Einsum
from symad.ops.elementwise import Apply
from symad.ops.shaping import Broadcast, Concatenate, Reshape, Slice, Stack
from symad.ops.sources import Input
from symad.questions import evaluate

Array = np.ndarray[Any, Any]

BLOCK = 8
"""Rows are filled up to whole blocks of lanes, as vector instructions take them."""

MOVING = (Reshape, Slice, Concatenate, Stack, Broadcast)
"""Ops that only move elements."""


@dataclass(frozen=True)
class LanePlan:
    """A plan for scalars, and runs over rows of L lanes.

    An operand p of ``runs`` is row p if p ≥ 0, else scalar −1 − p. The rows begin with ``given``.
    ``places`` are the elements of all outputs: of the rows, flat, and after them of the scalars.
    """

    scalars: Plan
    lanes: int
    given: Array
    runs: tuple[Run, ...]
    rows: int
    places: Array


def lane_plan(graph: Graph) -> LanePlan:
    """The lanes of a graph whose inputs are scalars.

    Raises:
        LoweringError: the graph has arrays other than lanes, or an op that is not made of functions of
            scalars.
    """
    order = topological(graph.output_nodes)
    if graph.dims or any(n.shape for n in graph.input_nodes) or not graph.input_nodes:
        raise LoweringError("the graph has inputs that are not scalars")
    fixed = _fixed(order)
    lanes = {n for n in order if n.shape and n not in fixed and isinstance(n.op, (ElementwiseOp, Apply))}
    sizes = {n.shape for n in lanes}
    if len(sizes) != 1 or len(next(iter(sizes))) != 1:
        raise LoweringError("the graph has arrays that are not lanes of one length")
    ((width,),) = sizes
    scalar_steps = Steps()
    number = {node: scalar_steps.value(("input", k)) for k, node in enumerate(graph.input_nodes)}
    for node in order:
        if not node.shape and node not in number:
            number[node] = scalar_steps.node(node, [number[a] for a in node.args])
    scalar = placed(scalar_steps, list(number.values()), len(graph.input_nodes))
    at = dict(zip(number, scalar.results.tolist(), strict=True))

    steps, inputs = Steps(), list(dict.fromkeys(_source(a) for n in lanes for a in n.args if a not in lanes))
    known = {node: steps.value(("input", k)) for k, node in enumerate(inputs)}
    for node in order:
        if node in lanes:
            known[node] = steps.node(node, [known[a if a in lanes else _source(a)] for a in node.args])
    results = list(lanes)
    plan = placed(steps, [known[n] for n in results], len(inputs))
    given = [n for n in inputs if n.shape]
    if any(n not in fixed for n in given):
        raise LoweringError("the graph has arrays that are not lanes of one length")
    row = {n: k for k, n in enumerate(given)}
    scalar, code = _with_constants(scalar, plan, [row.get(n, -1 - at.get(n, 0)) for n in inputs], len(given))
    runs = tuple(Run(r.function, int(code[r.start]), tuple(code[o] for o in r.operands)) for r in plan.runs)
    rows = len(given) + plan.size - plan.inputs - len(plan.constants)
    row |= dict(zip(results, code[plan.results].tolist(), strict=True))
    stride = -(-width // BLOCK) * BLOCK
    places = _places(graph, order, row, at, fixed, rows, width, stride)
    table = np.zeros((len(given), stride))
    for k, n in enumerate(given):
        table[k, :width] = fixed[n]
    return LanePlan(scalar, stride, table, runs, rows, places)


def _source(node: Node) -> Node:
    """A scalar that is repeated over the lanes, or the node itself."""
    return node.args[0] if isinstance(node.op, Broadcast) and not node.args[0].shape else node


def _fixed(order: Sequence[Node]) -> dict[Node, Array]:
    """The arrays that depend on no input."""
    moving: set[Node] = set()
    found: dict[Node, Array] = {}
    for node in order:
        if isinstance(node.op, Input) or any(a in moving for a in node.args):
            moving.add(node)
        else:
            found[node] = np.asarray(evaluate(node.op, tuple(found[a] for a in node.args)), dtype=float)
    return {n: value for n, value in found.items() if n.shape}


def _with_constants(scalar: Plan, lanes: Plan, inputs: Sequence[int], given: int) -> tuple[Plan, Array]:
    """The scalars with the numbers that the lanes use, and the code of every place of the lanes."""
    first = lanes.inputs + len(lanes.constants)
    code = np.empty(lanes.size, dtype=np.int64)
    code[: lanes.inputs] = inputs
    code[lanes.inputs : first] = -1 - (scalar.size + np.arange(len(lanes.constants)))
    code[first:] = given + np.arange(lanes.size - first)
    return Plan(
        scalar.inputs, scalar.constants, scalar.runs, scalar.size, scalar.results, lanes.constants
    ), code


def _places(
    graph: Graph, order: Sequence[Node], row: dict[Node, int], at: dict[Node, int],
    fixed: dict[Node, Array], rows: int, width: int, stride: int,
) -> Array:  # fmt: skip
    """Where the elements of the outputs stand: the moving of elements, done with their places."""
    known: dict[Node, Array] = {n: k * stride + np.arange(width) for n, k in row.items()}
    known |= {n: np.asarray(rows * stride + k) for n, k in at.items()}
    for node in order:
        if node in known or node in fixed or not node.shape:
            continue
        permutes = isinstance(node.op, Einsum) and len(node.args) == 1
        if not (isinstance(node.op, MOVING) or permutes) or any(a not in known for a in node.args):
            raise LoweringError(f"the op {type(node.op).__name__} puts no lanes together")
        known[node] = np.asarray(evaluate(node.op, tuple(known[a] for a in node.args))).astype(np.int64)
    missing = [o for o in graph.output_nodes if o not in known]
    if missing:
        raise LoweringError("an output does not depend on the inputs")
    return np.concatenate([known[o].ravel() for o in graph.output_nodes])
