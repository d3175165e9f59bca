"""Nodes back to SymPy: the expressions of a graph's outputs, with the structure that was traced.

Each op proposes the SymPy form of its node. The form of an array is used only if tracing it gives
the same node again; otherwise, and if SymPy has no class for the op, the op itself is wrapped
(`symad.tracing.into_sympy.op_expressions`). So the result, traced again, computes the same function by
construction.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from math import isfinite
from typing import TYPE_CHECKING, Any

import sympy

from symad.core.contents import in_bodies
from symad.core.dims import dim_symbols
from symad.core.graph import Graph, Node, pack, rebuild, topological
from symad.core.questions import sympy_form
from symad.errors import TraceError
from symad.higher_order.captured import check_closed
from symad.ops.basic.arithmetic import ElementwiseOp
from symad.ops.basic.sources import Constant, Dimension, Input, constant
from symad.tracing.into_sympy import arrays
from symad.tracing.into_sympy.op_expressions import opaque
from symad.tracing.walk import Tracer

if TYPE_CHECKING:
    from symad.core.graph import Op


def to_sympy(graph: Graph) -> Any:
    """The SymPy object of a graph: an expression, matrix or array, or a tuple or dict of them.

    ``trace(to_sympy(g))`` computes the same function; for a graph traced from SymPy it is the same
    graph. Nothing is re-evaluated by SymPy on the way.

    Returns:
        An expression, a matrix, an array, or a tuple or dict of them.

    Raises:
        TraceError: ``graph`` is no graph, or uses values of a function that is being traced.

    Example:
        >>> import sympy, symad
        >>> x = sympy.Symbol("x", real=True)
        >>> symad.to_sympy(symad.gradient(x**3))
        3*x**2
    """
    if not isinstance(graph, Graph):
        raise TraceError(
            f"to_sympy was given a {type(graph).__name__}; it takes a graph, as symad.trace makes it, and "
            "SymPy expressions are what it returns"
        )
    check_closed(graph, "the SymPy form")
    return pack(graph.structure, nodes_to_sympy(graph.output_nodes))


def nodes_to_sympy(outputs: Sequence[Node]) -> list[sympy.Basic]:
    """The SymPy expressions of some nodes."""
    order = topological(outputs)
    tracer = _tracer_of(order)
    forms: dict[Node, sympy.Basic] = {}
    for node in order:
        parts = tuple([forms[a] for a in node.args])
        form = _form(node, parts, tracer)
        if form is None:
            form = opaque(node, parts)
        hash(form)  # level by level: SymPy's own hashing recurses
        forms[node] = form
        tracer.assume(form, node)
    return [forms[o] for o in outputs]


def with_exact_floats(outputs: Sequence[Node] | Graph) -> tuple[Node, ...]:
    """The outputs with floats as the rationals they are, in bodies too: SymPy rounds products of Floats."""

    def exact(node: Node, args: tuple[Node, ...]) -> Node:
        if isinstance(node.op, Constant) and isinstance(node.op.value, float) and isfinite(node.op.value):
            return constant(Fraction(node.op.value))
        op = in_bodies(node.op, with_exact_floats)
        return node if op is node.op and args == node.args else Node.of(op, args)

    return rebuild(outputs, {}, exact)


def _tracer_of(order: Sequence[Node]) -> Tracer:
    """A tracer in which symbols have the same meaning as in these nodes."""
    inputs = [node.op for node in order if isinstance(node.op, Input)]
    dims: set[sympy.Symbol] = set().union(*(dim_symbols(op.shape) for op in inputs))
    for node in order:
        if isinstance(node.op, Dimension):
            dims |= node.op.expression.free_symbols
    return Tracer(dims, {op.symbol: op.shape for op in inputs})


REFUSALS = (TypeError, ValueError, AttributeError, LookupError, NotImplementedError, RecursionError)
"""The errors by which SymPy's constructors, and our own checks, refuse a form."""


def _form(node: Node, parts: tuple[sympy.Basic, ...], tracer: Tracer) -> sympy.Basic | None:
    """The first correct form that is proposed, or None. Forms of numbers need no check."""
    checked = bool(node.shape) or any(a.shape for a in node.args)
    for propose in (sympy_form, elementwise_form):
        try:
            form = propose(node.op, node, parts)
            if form is not None and (not checked or tracer.trace(form) is node):
                return form
        except REFUSALS:
            continue
    return None


def elementwise_form(op: Op, node: Node, parts: tuple[sympy.Basic, ...]) -> sympy.Basic | None:
    """A Lambda over the elements, if an elementwise op has one array among its arguments."""
    if not isinstance(op, ElementwiseOp) or len({a for a in node.args if a.shape}) != 1:
        return None
    return arrays.over_elements(op, node, parts)
