"""The domain of a claim: a condition on the inputs, as SymPy or as a Python function of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import sympy

from symad.core.graph import Graph, Node, TupleOf
from symad.errors import SymadError, TraceError
from symad.ops.arrays.reduction import product
from symad.ops.arrays.shaping import broadcast_to
from symad.ops.arrays.sources import constant
from symad.ops.elementwise.selection import compare, select
from symad.tracing import as_graph, trace
from symad.transforms.values import unchecked
from symad.verification.equality import with_inputs_of
from symad.verification.measuring.hostile_points import FloatPoint


def condition_of(graph: Graph, where: Any) -> Node:
    """1 where a condition holds and 0 elsewhere, as a scalar node; see `read_condition`."""
    node = read_condition(graph, where)
    for _ in node.shape:
        node = product(node)
    return node


def read_condition(graph: Graph, where: Any) -> Node:
    """1 where a condition holds and 0 elsewhere, for each of its elements, on the inputs of a graph.

    Args:
        graph: whose inputs the condition is about.
        where: a SymPy condition, or a function of all inputs in their order; of an array all elements count.

    Raises:
        TraceError: it is no condition on these inputs.
    """
    if isinstance(where, (bool, sympy.logic.boolalg.BooleanAtom)):
        raise TraceError(f"verify: where={where} is no condition on {', '.join(map(str, graph.inputs))}")
    if isinstance(where, sympy.Basic):
        read = as_graph(sympy.Piecewise((1, where), (0, True)))
    elif callable(where):
        read = trace(lambda *values: np.where(where(*values), 1, 0), list(graph.inputs))
    else:
        raise TraceError(f"verify: where= is a SymPy condition or a function of the inputs, not {where!r}")
    foreign = [s for s in with_inputs_of(graph, read).inputs if s not in graph.inputs]
    if foreign:
        raise TraceError(
            f"verify: where= is about {', '.join(map(str, foreign))}, but the inputs are "
            f"{', '.join(map(str, graph.inputs))}"
        )
    return with_inputs_of(graph, read).output_nodes[0]


def restricted(graph: Graph, condition: Node) -> Graph:
    """The graph where the condition holds, and 0 elsewhere."""
    holds = compare(">", condition, constant(0))
    outputs = [
        select(broadcast_to(holds, y.shape), y, broadcast_to(constant(0), y.shape))
        if y.shape
        else select(holds, y, constant(0))
        for y in graph.output_nodes
    ]
    return Graph(graph.input_nodes, tuple(outputs), TupleOf((None,) * len(outputs)), graph.name)


def inside_of(condition: Node) -> Callable[[FloatPoint], bool]:
    """Whether a point lies in the domain."""

    def inside(point: FloatPoint) -> bool:
        try:
            (value,) = unchecked((condition,), point)
        except (SymadError, ArithmeticError, ValueError):
            return False
        return bool(np.all(np.asarray(value, dtype=float) > 0))

    return inside
