"""Undefined functions of SymPy: inputs such as q(t), or functions with an implementation in Python."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

from sympy.core.function import AppliedUndef

from symad.core.graph import Graph, Node
from symad.core.questions import Nodes
from symad.errors import SymadError
from symad.facts.functions import fact
from symad.ops.basic.sources import input_node
from symad.ops.elementwise.apply import SLOPES, apply
from symad.tracing.inlining import inline
from symad.tracing.input_symbols import is_function_input
from symad.tracing.proxies.proxy import Proxy
from symad.tracing.proxies.wrapped import as_node
from symad.tracing.run_on_proxies import trace_function
from symad.tracing.walk import Tracer, lift

if TYPE_CHECKING:
    import sympy


@lift.register(AppliedUndef)
def undefined_lift(expression: AppliedUndef, args: Nodes, tracer: Tracer) -> Node:
    """An input, unless the function was registered or carries an implementation."""
    if is_function_input(expression):
        return input_node(expression)
    head = expression.func
    made = None
    if hasattr(head, "_imp_") and head not in SLOPES and not fact(head).users:
        made = implemented(head, args)
    return apply(head, *args) if made is None else made


def implemented(head: Any, args: tuple[Node, ...]) -> Node | None:
    """The node of an implementation that consists of arithmetic or NumPy's functions; None for others."""
    graph = _graph_of(head, len(args))
    if graph is None:
        return None
    made = inline(graph, [Proxy(a) for a in args])
    return as_node(made)


@lru_cache(maxsize=256)
def _graph_of(head: type[sympy.Basic], count: int) -> Graph | None:
    """The graph of an implementation on numbers; None if it cannot be traced."""
    try:
        graph = trace_function(head._imp_, [()] * count)
    except (SymadError, TypeError, ValueError, AttributeError):
        return None  # compiled, or branching on data: it is called at run time
    return graph if graph.structure is None and not graph.output_nodes[0].shape else None
