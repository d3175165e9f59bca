"""Functions of SymPy that have an implementation in Python: what they compute is traced."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from symad.core.graph import Graph, Node
from symad.errors import SymadError
from symad.tracing.inlining import inline
from symad.tracing.proxy import Proxy
from symad.tracing.wrapped import as_node


def implemented(head: Any, args: tuple[Node, ...]) -> Node | None:
    """The node of an implementation that is arithmetic or NumPy's functions; None for other ones."""
    graph = _graph_of(head, len(args))
    if graph is None:
        return None
    made: Any = inline(graph, [Proxy(a) for a in args])
    node: Node = as_node(made)
    return node


@lru_cache(maxsize=256)
def _graph_of(head: Any, count: int) -> Graph | None:
    """The graph of an implementation of numbers; None where it cannot be traced."""
    from symad.tracing.run_on_proxies import trace_function

    try:
        graph = trace_function(head._imp_, [()] * count)
    except (SymadError, TypeError, ValueError, AttributeError):
        return None  # compiled, or branching on data: it is called as it is
    return graph if graph.structure is None and not graph.output_nodes[0].shape else None
