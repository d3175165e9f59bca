"""symad's own matrix functions to nodes."""

from __future__ import annotations

import sympy

from symad.core.graph import Node
from symad.core.questions import Nodes
from symad.ops.arrays.gathering import gather
from symad.ops.arrays.softmax import log_softmax, logsumexp, softmax
from symad.ops.basic.shaping import flatten, reshape
from symad.sympy_functions.matrix_functions import LogSoftmax, LogSumExp, LogSumExpAlong, Lookup, Softmax
from symad.tracing.walk import Tracer, lift, operands


def _axes(expression: sympy.Basic) -> tuple[int, ...] | None:
    return None if expression.axis is None else (expression.axis,)


@operands.register(Softmax)
@operands.register(LogSoftmax)
@operands.register(LogSumExpAlong)
@operands.register(LogSumExp)
def matrix_operands(expression: sympy.Basic, tracer: Tracer) -> tuple[sympy.Basic, ...]:
    """The matrix; the axis is a number."""
    return (expression.matrix,)


@lift.register(Softmax)
def softmax_lift(expression: Softmax, args: Nodes, tracer: Tracer) -> Node:
    """One fused op."""
    return softmax(args[0], _axes(expression))


@lift.register(LogSoftmax)
def log_softmax_lift(expression: LogSoftmax, args: Nodes, tracer: Tracer) -> Node:
    """One fused op."""
    return log_softmax(args[0], _axes(expression))


@lift.register(LogSumExp)
def logsumexp_lift(expression: LogSumExp, args: Nodes, tracer: Tracer) -> Node:
    """One fused op over all entries."""
    return logsumexp(args[0])


@lift.register(LogSumExpAlong)
def logsumexp_along_lift(expression: LogSumExpAlong, args: Nodes, tracer: Tracer) -> Node:
    """One fused op; the reduced axis is kept with length 1."""
    (x,) = args
    kept = tuple(1 if k == expression.axis else dim for k, dim in enumerate(x.shape))
    return reshape(logsumexp(x, _axes(expression)), kept)


@lift.register(Lookup)
def lookup_lift(expression: Lookup, args: Nodes, tracer: Tracer) -> Node:
    """Gathered rows."""
    table, indices = args
    return gather(table, flatten(indices))
