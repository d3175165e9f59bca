"""Array graphs written out element by element, where they are small.

Two sums over the same products agree term by term only when both are written out: an exponent x̂ W is
one argument to exp, while that of s x W + (1 − s) g W falls apart into known ones.

Of some arrays each element is one function of the elements in its place, and one of them stands for all:
f(x_i) = g(x_i) for all i follows from f(x) = g(x), and Σ f(x_i) X_ij = Σ g(x_i) X_ij from the same, whatever
the sizes are. The signs of one element are few, those of an array are not. Each input has one place: x_i and
x_j are equal for i = j, where functions that are equal at almost all points may differ.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import prod

import numpy as np
import sympy

from symad.core.arrays import Array
from symad.core.graph import Node, topological
from symad.errors import SymadError
from symad.evaluation.node_numbers import NodeNumber
from symad.numbers.values import unchecked
from symad.ops.arrays.reduction import Product
from symad.ops.arrays.stacking import element
from symad.ops.basic.arithmetic import Add, ElementwiseOp, Mul
from symad.ops.basic.contraction import Einsum, permutes
from symad.ops.basic.shaping import Broadcast, Reshape
from symad.ops.basic.sources import Input, constant, constant_value, input_node, symbol_of
from symad.ops.elementwise.selection import Compare, Select, select
from symad.verification.rewriting.rewrite import expand_definitions

MAX_OPERATIONS, MAX_ELEMENTS = 3000, 64
"""The maximum numbers of scalar operations of graphs, and elements of outputs, that are written out."""


def flat_elements(node: Node) -> list[Node]:
    """The elements of a node of known sizes, as scalar nodes in row-major order."""
    return [element(node, *index) if index else node for index in np.ndindex(*node.shape)]


def as_numbers(node: Node) -> Array | NodeNumber:
    """A node of known sizes as an array of scalar nodes that are numbers."""
    numbers = np.empty(prod(node.shape), dtype=object)
    numbers[:] = [NodeNumber(e) for e in flat_elements(node)]
    return numbers.reshape(node.shape) if node.shape else numbers[0]


def scalar_operations(outputs: Sequence[Node]) -> int:
    """Roughly the number of scalar operations of some nodes."""
    total = 0
    for node in topological(outputs):
        if node.args:
            own = prod(node.shape) if all(isinstance(d, int) for d in node.shape) else 1 << 40
            widest = max(prod(a.shape) for a in node.args) if own < 1 << 40 else 1
            total += max(own, widest)
    return total


def by_elements(outputs: Sequence[Node], more: int = 1) -> list[list[Node]] | None:
    """The elements of each output as scalar nodes; None where there are no arrays, or too large ones.

    The limits count so many times.
    """
    outputs = expand_definitions(outputs)
    nodes = topological(outputs)
    if not any(n.shape for n in nodes) or max(prod(o.shape) for o in outputs) > more * MAX_ELEMENTS:
        return None
    if scalar_operations(outputs) > more * MAX_OPERATIONS:
        return None
    point = {n: as_numbers(n) for n in nodes if isinstance(n.op, Input)}
    try:
        values = unchecked(outputs, point)
        return [[_scalar(v) for v in np.asarray(value, dtype=object).ravel()] for value in values]
    except (SymadError, TypeError, ValueError, AttributeError):
        return None


def _scalar(value: NodeNumber | int) -> Node:
    return value.node if isinstance(value, NodeNumber) else constant(value)


# ---- arrays of which each element is one function of the elements in its place -------------------


Axes = tuple[int, ...]
"""For each axis of a node the axis of the whole array; −1 for axes of length 1."""

PROMISES = (
    "positive", "negative", "nonnegative", "nonpositive", "nonzero", "zero",
    "integer", "even", "odd", "prime",
)  # fmt: skip


class Apart(Exception):
    """No element stands for all."""


def by_one_element(outputs: Sequence[Node]) -> list[Node] | None:
    """Two scalars: if they are equal, so are two arrays or sums. None where no element stands for all."""
    return one_element_of(*expand_definitions(outputs))


def one_element_of(a: Node, b: Node) -> list[Node] | None:
    """The same for nodes without fused ops."""
    a, b = _inside(a, b)
    if not a.shape or 0 in a.shape or a.shape != b.shape:
        return None
    a, b = _where(a, b)
    try:
        _places([a, b])
        return _scalars([a, b])
    except Apart:
        return None


def _inside(a: Node, b: Node) -> tuple[Node, Node]:
    """What two sums, or products with the same factors, differ in: they are defined only where this is."""
    while a.op == b.op and isinstance(a.op, (Add, Mul, Einsum)) and len(a.args) == len(b.args):
        differing = [(p, q) for p, q in zip(a.args, b.args, strict=True) if p is not q]
        if len(differing) != 1 or differing[0][0].shape != differing[0][1].shape:
            break
        ((a, b),) = differing
    return a, b


def _where(a: Node, b: Node) -> tuple[Node, Node]:
    """Two arrays where all elements of a condition hold, and 0 elsewhere: more is claimed where one holds."""
    if isinstance(a.op, Select) and isinstance(b.op, Select) and a.args[::2] == b.args[::2]:
        one = _of_all(a.args[0])
        if one is not None and one.shape == a.shape:
            return select(one, *a.args[1:]), select(one, *b.args[1:])
    return a, b


def _of_all(condition: Node) -> Node | None:
    """The conditions of single elements, of the condition that all hold, as `condition_of` makes it."""
    while isinstance(condition.op, Broadcast):
        condition = condition.args[0]
    if not isinstance(condition.op, Compare) or condition.op.relation != "<":
        return None
    zero, array = condition.args
    if constant_value(zero) != 0:
        return None
    while isinstance(array.op, Product) or permutes(array.op):
        array = array.args[0]
    if not isinstance(array.op, Select):
        return None
    one, other = (branch.args[0] if isinstance(branch.op, Broadcast) else branch for branch in array.args[1:])
    return array.args[0] if (constant_value(one), constant_value(other)) == (1, 0) else None


def _places(ends: Sequence[Node]) -> None:
    """Raises `Apart` if an array is read along other axes elsewhere, or not element by element."""
    axes = {end: _named(end, range(len(end.shape))) for end in ends}
    for node in reversed(topological(ends)):
        if node.shape and node not in axes:
            raise Apart
        for arg, at in _arguments(node, axes.get(node, ())):
            if arg.shape and axes.setdefault(arg, at) != at:
                raise Apart


def _arguments(node: Node, at: Axes) -> Iterator[tuple[Node, Axes]]:
    """The arguments of a node, with their axes."""
    if isinstance(node.op, ElementwiseOp):
        if any(arg.shape not in ((), node.shape) for arg in node.args):
            raise Apart
        yield from ((arg, at if arg.shape else ()) for arg in node.args)
    elif isinstance(node.op, Broadcast):
        yield node.args[0], _named(node.args[0], [at[k] for k in node.op.axes])
    elif isinstance(node.op, Reshape):
        yield node.args[0], _without_ones(node, at)
    elif permutes(node.op):
        order = node.op.output
        yield node.args[0], tuple(at[order.index(label)] for label in node.op.inputs[0])
    elif node.args and any(part.shape for part in (node, *node.args)):
        raise Apart


def _without_ones(node: Node, at: Axes) -> Axes:
    """The axes of an array that is reshaped: axes of length 1 alone may come and go."""
    old, long = node.args[0].shape, iter([k for k in at if k >= 0])
    if [d for d in old if d != 1] != [d for d in node.shape if d != 1]:
        raise Apart
    return tuple(-1 if d == 1 else next(long) for d in old)


def _named(node: Node, axes: Sequence[int]) -> Axes:
    return tuple(-1 if d == 1 else k for d, k in zip(node.shape, axes, strict=True))


def _scalars(ends: Sequence[Node]) -> list[Node]:
    """One element of arrays, as a function of one element of each input."""
    made: dict[Node, Node] = {}
    for node in topological(ends):
        args = tuple([made[a] for a in node.args])
        if isinstance(node.op, Input) and node.shape:
            made[node] = _one_of(node)
        elif not node.args or not node.shape or isinstance(node.op, ElementwiseOp):
            if node.shape and not node.args:
                raise Apart  # numbers in places
            made[node] = node.over(args)
        else:
            (made[node],) = args
    return [made[end] for end in ends]


def _one_of(node: Node) -> Node:
    """An input that stands for an element of an array."""
    symbol = symbol_of(node)
    promises = {k: True for k in PROMISES if getattr(symbol, f"is_{k}", None) is True}
    return input_node(sympy.Dummy(str(symbol), real=True, **promises))
