"""Matrix functions of symad, and matrices that users define by their elements, to nodes.

A user's own MatrixExpr has an ``_entry`` method. The element at two bound indices is traced as an array over
them, so sizes may stay symbols.
"""

from __future__ import annotations

import sympy
from sympy.matrices.expressions.matexpr import MatrixExpr

from symad.core.dims import as_shape
from symad.core.graph import Node
from symad.core.questions import Nodes
from symad.errors import TraceError
from symad.ops.arrays.gathering import gather
from symad.ops.arrays.softmax import log_softmax, logsumexp, softmax
from symad.ops.basic.shaping import broadcast_to, flatten, reshape
from symad.sympy_functions.matrix_functions import (
    LogSumExpAlong,
    Lookup,
    MatrixLogSoftmax,
    MatrixLogSumExp,
    MatrixSoftmax,
)
from symad.tracing.cheapest_contraction import aligned
from symad.tracing.error_names import describe
from symad.tracing.from_sympy.bound_indices import IndexScope
from symad.tracing.index_ranges import IndexRange
from symad.tracing.walk import Tracer, lift, operands


def _axes(expression: sympy.Basic) -> tuple[int, ...] | None:
    return None if expression.axis is None else (expression.axis,)


@operands.register(MatrixSoftmax)
@operands.register(MatrixLogSoftmax)
@operands.register(LogSumExpAlong)
@operands.register(MatrixLogSumExp)
def matrix_operands(expression: sympy.Basic, tracer: Tracer) -> tuple[sympy.Basic, ...]:
    """The matrix; the axis is a number."""
    return (expression.matrix,)


@lift.register(MatrixSoftmax)
def softmax_lift(expression: MatrixSoftmax, args: Nodes, tracer: Tracer) -> Node:
    """One fused op."""
    return softmax(args[0], _axes(expression))


@lift.register(MatrixLogSoftmax)
def log_softmax_lift(expression: MatrixLogSoftmax, args: Nodes, tracer: Tracer) -> Node:
    """One fused op."""
    return log_softmax(args[0], _axes(expression))


@lift.register(MatrixLogSumExp)
def logsumexp_lift(expression: MatrixLogSumExp, args: Nodes, tracer: Tracer) -> Node:
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


@operands.register(MatrixExpr)
def entries_operands(expression: MatrixExpr, tracer: Tracer) -> tuple[sympy.MatrixExpr | sympy.Expr, ...]:
    """None if the elements are traced; for other classes their arguments."""
    return () if lift.dispatch(type(expression)) is entries_lift else expression.args


@lift.register(MatrixExpr)
def entries_lift(expression: MatrixExpr, args: Nodes, tracer: Tracer) -> Node:
    """The array of expression[i, j] over all i and j."""
    shape = as_shape(expression.shape)
    indices = [sympy.Dummy(name, integer=True) for name in ("i", "j")]
    try:
        entry = expression[tuple(indices)]
    except NotImplementedError:
        name = type(expression).__name__
        raise TraceError(
            f"{describe(expression)}: the class {name} is not known and does not say what its "
            f"elements are; define {name}._entry(self, i, j)"
        ) from None
    zero = sympy.S.Zero
    last = [sympy.sympify(d, strict=True) - 1 for d in shape]
    ranges = [IndexRange(i, zero, end) for i, end in zip(indices, last, strict=True)]
    scope = IndexScope(tracer, ranges)
    return broadcast_to(aligned(scope.value(entry), indices, scope.sizes), shape)
