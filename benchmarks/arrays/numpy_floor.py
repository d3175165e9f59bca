"""The least work of NumPy code for a model: its matrix products, functions and elementwise operations.

Each is run alone, in the shapes of the graph and at every step of a loop, into existing memory: there are no
allocations, no copies, no views, and no Python between the calls except a loop over them. A function such as
erfc or σ is one call of exp, the fastest function; an elementwise operation is one multiplication of arrays,
which are in the cache if they fit.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from symad.core.graph import Graph
from symad.higher_order.scan import LoopOp
from symad.ops.arrays.softmax import Softmax
from symad.ops.basic.arithmetic import Add, Mul
from symad.ops.basic.contraction import Einsum
from symad.ops.elementwise.apply import Apply
from symad.ops.elementwise.powers import Pow

Product = tuple[int, int, int, int]
"""A stack of matrix products: their number, rows, columns, and terms of each sum."""

Run = Callable[[], Any]


def steps_of(graph: Graph) -> list[tuple[Any, int]]:
    """All nodes, with the number of evaluations: nodes in loops count once per step, each loop once."""
    found = []
    seen = set()
    for node in graph.nodes:
        if isinstance(node.op, LoopOp):
            body: Any = node.op.body
            if (body, node.args) not in seen:  # each result of a loop is a node
                seen.add((body, node.args))
                found += [(inner, node.shape[0] * count) for inner, count in steps_of(body)]
        else:
            found.append((node, 1))
    return found


def products(graph: Graph) -> list[Product]:
    """All matrix products of a graph."""
    found: list[Product] = []
    for node, times in steps_of(graph):
        op: Any = node.op
        if isinstance(op, Einsum) and len(node.args) == 2 and set(op.inputs[0]) - set(op.output):
            pairs = zip(op.inputs, node.args, strict=True)
            sizes = {label: d for part, a in pairs for label, d in zip(part, a.shape, strict=True)}
            left, right, out = (set(part) for part in (*op.inputs, op.output))
            groups = (left & right & out, left - right, right - left, left & right - out)
            found += times * [tuple(math.prod(sizes[x] for x in group) for group in groups)]
    return found


def functions(graph: Graph) -> list[tuple[int, ...]]:
    """The shapes of all arrays that are functions (exp, tanh, erf, ...) of others."""
    kinds = (Apply, Softmax)
    return [n.shape for n, times in steps_of(graph) if isinstance(n.op, kinds) for _ in range(times)]


def elementwise(graph: Graph) -> list[tuple[int, ...]]:
    """The shapes of all sums, products and powers of arrays, with two operands at a time."""
    found = []
    for node, times in steps_of(graph):
        if isinstance(node.op, (Add, Mul, Pow)) and node.shape:
            found += times * max(len(node.args) - 1, 1) * [node.shape]
    return found


def flops(shapes: list[Product]) -> float:
    """The floating-point operations of some products."""
    return 2.0 * sum(math.prod(shape) for shape in shapes)


def products_alone(shapes: list[Product], dtype: str, multiply: Callable[..., Any]) -> Run:
    """The products alone, on arrays of their own."""
    rng = np.random.default_rng(0)
    made: dict[Product, Any] = {}
    for shape in shapes:
        if shape not in made:
            count, rows, columns, terms = shape
            operands = [(count, rows, terms), (count, terms, columns)]
            made[shape] = [rng.normal(size=s).astype(dtype) for s in (*operands, (count, rows, columns))]

    def run() -> None:
        for shape in shapes:
            multiply(*made[shape])

    return run


def ufuncs_alone(graph: Graph, dtype: str) -> tuple[Run, Run]:
    """One call of exp for each function of a graph, and one of multiply for each elementwise operation."""
    one, two = functions(graph), elementwise(graph)
    made = {shape: [np.full(shape, 0.5, dtype) for _ in range(3)] for shape in {*one, *two}}

    def apply() -> None:
        for shape in one:
            a, _, out = made[shape]
            np.exp(a, out)

    def multiply() -> None:
        for shape in two:
            np.multiply(*made[shape])

    return apply, multiply
