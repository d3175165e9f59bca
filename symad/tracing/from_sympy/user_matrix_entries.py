"""Matrices that are defined by their elements: a user's own MatrixExpr with an ``_entry`` method.

The element at two bound indices is traced as an array over them, so sizes may stay symbols.
"""

from __future__ import annotations

import sympy
from sympy.matrices.expressions.matexpr import MatrixExpr

from symad.core.dims import as_shape
from symad.core.graph import Node
from symad.core.questions import Nodes
from symad.errors import TraceError
from symad.ops.basic.shaping import broadcast_to
from symad.tracing.cheapest_contraction import aligned
from symad.tracing.error_names import describe
from symad.tracing.from_sympy.bound_indices import IndexScope
from symad.tracing.index_ranges import IndexRange
from symad.tracing.walk import Tracer, lift, operands


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
