"""Checks whose errors name expressions as the user wrote them, unless these are huge."""

from __future__ import annotations

from collections.abc import Sequence

import sympy
from sympy.tensor.array.expressions.array_expressions import _ArrayExpr, _CodegenArrayAbstract

from symad.core.dims import format_shape, same_shape
from symad.core.graph import Node
from symad.core.questions import Nodes
from symad.errors import ShapeError, TraceError

MAX_SHOWN_NODES = 60
"""Larger expressions are not printed, because printing traverses the tree, not the DAG."""


def describe(expression: sympy.MatrixExpr) -> str:
    """The expression as text, or its class if it is large."""
    stack, seen = [expression], 0
    while stack:
        stack.extend(getattr(stack.pop(), "args", ()))
        seen += 1
        if seen > MAX_SHOWN_NODES:
            return f"a {type(expression).__name__}"
    return str(expression)


def describe_shapes(expressions: Sequence[sympy.Basic], nodes: Sequence[Node]) -> str:
    """``v (n, 1), A (n, n)``: each expression with its shape."""
    return ", ".join(
        f"{describe(e)} {format_shape(n.shape)}" for e, n in zip(expressions, nodes, strict=True)
    )


def check_one_shape(expression: sympy.Basic, parts: Sequence[sympy.Basic], nodes: Sequence[Node]) -> None:
    """Check that all parts with axes have one shape.

    Raises:
        ShapeError: two of them differ; the message names every part with its shape.
    """
    shapes = [node.shape for node in nodes if node.shape]
    if not all(same_shape(shapes[0], shape) for shape in shapes[1:]):
        raise ShapeError(
            f"{describe(expression)} needs parts of one shape, but they are {describe_shapes(parts, nodes)}"
        )


def is_array(expression: sympy.Basic) -> bool:
    """True if SymPy itself declares that an expression is a matrix or an array."""
    return getattr(expression, "is_Matrix", False) is True or isinstance(
        expression, (_ArrayExpr, _CodegenArrayAbstract, sympy.NDimArray)
    )


def _holds_array(expression: sympy.Expr) -> bool:
    """True if an expression is an array, or a sum or product with one, such as 2*T."""
    parts = [expression]
    while parts:
        part = parts.pop()
        if is_array(part):
            return True
        if isinstance(part, (sympy.Add, sympy.Mul)):
            parts.extend(part.args)
    return False


def check_scalars(expression: sympy.Basic, nodes: Nodes) -> None:
    """Refuse matrices in scalar functions and powers, which SymPy accepts although they have no meaning.

    Raises:
        TraceError: an argument is a matrix or an array; the message says how to apply the function to
            elements.
    """
    if not any(node.shape for node in nodes):
        return
    for part, node in zip(expression.args, nodes, strict=False):
        if node.shape and _holds_array(part):
            name = type(expression).__name__
            raise TraceError(
                f"{describe(expression)} applies {name} to numbers, but {describe(part)} has shape "
                f"{format_shape(node.shape)}. To work on each element use .applyfunc, "
                "HadamardPower or ArrayElementwiseApplyFunc; for the one element of a 1×1 matrix "
                "write it out, as in (v.T*v)[0, 0]"
            )
