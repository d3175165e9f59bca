"""The walk from SymPy objects to nodes: each distinct subexpression once, without recursion.

A tracer asks two questions about every SymPy class: `operands`, the subexpressions that are traced
first, and `lift`, the node of an expression from the nodes of its operands. The answers are in
the files of this package, one for each family of SymPy classes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache, singledispatch
from typing import Any

import sympy

from symad.core.dims import Shape
from symad.core.graph import Node
from symad.core.questions import Nodes
from symad.errors import OutsideError, TraceError


class Tracer:
    """The state of one trace: the dimensions, the shapes of inputs, and the nodes found so far."""

    def __init__(
        self, dims: Iterable[sympy.Symbol] = (), shapes: Mapping[sympy.Basic, Shape] | None = None
    ) -> None:
        """``dims``: the dimension symbols. ``shapes``: the shapes of inputs whose symbols declare none."""
        self.dims = frozenset(dims)
        self.shapes = dict(shapes or {})
        self.places: frozenset[sympy.Basic] = frozenset()
        """Symbols that are arguments; an index may contain them, as a position known at run time."""
        self._nodes: dict[int, Node] = {}
        self._alive: list[Any] = []

    def assume(self, expression: sympy.Basic, node: Node) -> None:
        """Use ``node`` as the node of this object, without tracing it."""
        self._nodes[id(expression)] = node
        self._alive.append(expression)

    def trace(self, expression: sympy.Basic) -> Node:
        """The node of an expression."""
        nodes = self._nodes
        parts_of, node_of = cache(operands.dispatch), cache(lift.dispatch)  # looked up for every expression
        stack: list[tuple[sympy.Basic, tuple[sympy.Basic, ...] | None]] = [(expression, None)]
        while stack:
            current, below = stack.pop()
            key = id(current)
            if key in nodes:
                continue
            if below is None:
                below = parts_of(current.__class__)(current, self)
                missing = [(o, None) for o in reversed(below) if id(o) not in nodes]
                if missing:
                    stack.append((current, below))
                    stack.extend(missing)
                    continue
            args = tuple([nodes[id(o)] for o in below])
            node = node_of(current.__class__)(current, args, self)
            nodes[key] = node
            self._alive.append((current, below))  # ids stay valid while the objects live
        return nodes[id(expression)]


@singledispatch
def operands(expression: sympy.Basic, tracer: Tracer) -> tuple[sympy.Basic, ...]:
    """The subexpressions whose nodes `lift` needs.

    Dispatched by functools: SymPy's classes print in a way that plum refuses as type hints.
    """
    return getattr(expression, "args", ())


@singledispatch
def lift(expression: sympy.Basic, args: Nodes, tracer: Tracer) -> Node:
    """The node of a SymPy expression, from the nodes of its operands."""
    outside = isinstance(expression, sympy.Basic)  # such as random symbols, sets, roots of polynomials
    raise (OutsideError if outside else TraceError)(
        f"{expression} of type {type(expression).__name__} cannot be traced; trace takes real SymPy "
        "expressions, matrices, arrays, lists, tuples or dicts of them, and Python functions"
    )
