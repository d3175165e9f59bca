"""SymPy expressions in a traced Python function; symbols in them stand for traced scalars."""

from __future__ import annotations

import sympy

from symad.core.graph import Node, rebuild
from symad.core.questions import Nodes
from symad.errors import TraceError
from symad.higher_order.captured import Captured
from symad.ops.basic.sources import input_node
from symad.tracing.inputs import find_inputs
from symad.tracing.proxies.sessions import SESSION, symbol_node
from symad.tracing.proxies.wrapped import Traced, node_of_expression, number
from symad.tracing.walk import Tracer, lift, operands


@node_of_expression.register(sympy.Basic)
@node_of_expression.register(sympy.MatrixBase)
def node_of_any_expression(expression: sympy.Basic | sympy.MatrixBase) -> Node:
    """A SymPy expression in inputs, dimensions and traced scalars.

    Raises:
        TraceError: a symbol in it is neither an input nor a dimension.
    """
    dims = SESSION.get().dims
    symbols = [s for s in find_inputs([expression]).symbols if not isinstance(s, Traced) and s not in dims]
    known = {s: node for s in symbols if (node := symbol_node(s)) is not None}
    unknown = [s for s in symbols if s not in known]
    if unknown:
        raise TraceError(
            f"the function uses the SymPy symbol {unknown[0]}, which is not one of its inputs; pass "
            "it in inputs and use the parameter"
        )
    shapes = {s: node.shape for s, node in known.items()}
    node = Tracer(dims, shapes).trace(expression)
    outer = {input_node(s, shapes[s]): n for s, n in known.items() if isinstance(n.op, Captured)}
    return rebuild([node], outer)[0] if outer else node


@operands.register(Traced)
def traced_operands(expression: Traced, tracer: Tracer) -> tuple[sympy.Basic, ...]:
    """None: the symbol stands for a node."""
    return ()


@lift.register(Traced)
def traced_lift(expression: Traced, args: Nodes, tracer: Tracer) -> Node:
    """The node for which the symbol stands."""
    return number(expression.proxy)
