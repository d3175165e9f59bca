"""Scalar function bodies applied to arrays: a Lambda over the elements of a matrix.

The body is traced once, as a scalar graph in its bound symbols, and then the bound symbols are
replaced by arrays: elementwise ops act on each element, all other ops are batched.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import sympy

from symad.core.graph import Node, rebuild, topological
from symad.errors import TraceError
from symad.ops.basic.arithmetic import ElementwiseOp
from symad.ops.basic.shaping import broadcast_to, flatten, reshape
from symad.ops.basic.sources import input_node
from symad.tracing.walk import Tracer


def apply_lambda(function: sympy.Lambda, arrays: Sequence[Node], tracer: Tracer) -> Node:
    """``function`` of the elements of some arrays of one shape.

    Raises:
        TraceError: the function takes another number of arguments.
    """
    variables = function.variables
    if len(variables) != len(arrays):
        raise TraceError(f"{function} takes {len(variables)} arguments, but is applied to {len(arrays)}")
    body = function.expr
    taken = [v for v in variables if v in tracer.dims]
    if taken:  # the bound symbol hides a dimension of the same name
        fresh = {v: sympy.Dummy(v.name, real=True) for v in taken}
        body, variables = body.xreplace(fresh), [fresh.get(v, v) for v in variables]
    node = tracer.trace(body)
    return substitute(node, dict(zip(map(input_node, variables), arrays, strict=True)))


def substitute(body: Node, replaced: Mapping[Node, Node]) -> Node:
    """A scalar node with some scalar inputs replaced by arrays of one shape, element by element."""
    shape = next(iter(replaced.values())).shape
    reached = set(replaced)
    elementwise = True
    for node in topological([body]):
        if node not in reached and any(a in reached for a in node.args):
            reached.add(node)
            elementwise = elementwise and isinstance(node.op, ElementwiseOp)
    if elementwise:
        return broadcast_to(rebuild((body,), replaced)[0], shape)
    return _batched(body, replaced)


def _batched(body: Node, replaced: Mapping[Node, Node]) -> Node:
    """The node with the elements as a batch, for ops that are not elementwise."""
    from symad.core.dims import size
    from symad.transforms.batches import batch_outputs

    shape = next(iter(replaced.values())).shape
    rows = {node: flatten(array) for node, array in replaced.items()}
    return reshape(batch_outputs((body,), rows, size(shape))[0], shape)
