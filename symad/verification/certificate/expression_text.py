"""Subexpressions of graphs as text, in the words of SymPy."""

from __future__ import annotations

from collections.abc import Sequence

import sympy
from sympy.matrices.expressions.applyfunc import ElementwiseApplyFunction
from sympy.printing.str import StrPrinter
from sympy.tensor.array.expressions import ArrayElementwiseApplyFunc, ArraySymbol

from symad.core.graph import Graph, Node, topological
from symad.errors import SymadError
from symad.ops.basic.sources import Input

SHORT = 300
"""Subexpressions of more nodes than this are described, not printed."""


WHOLE = (ElementwiseApplyFunction, ArrayElementwiseApplyFunc, sympy.MatrixSymbol, ArraySymbol)
"""Forms whose text needs no parentheses around it."""


class _ExpressionPrinter(StrPrinter):
    """SymPy's text, with sin(X) for the function sin applied to each element of X."""

    def _print_ElementwiseApplyFunction(self, form: sympy.Basic) -> str:  # SymPy's name
        function, array = form.args
        if not isinstance(function, sympy.Lambda):
            return f"{self._print(function)}({self._print(array)})"
        (element,), body = function.variables, function.expr
        alone = isinstance(body, sympy.Function)
        whole = self._print(array)
        if not (isinstance(array, WHOLE) or (alone and element in body.args)):
            whole = f"({whole})"
        text = self._print(body.xreplace({element: sympy.Dummy(whole)}))
        return text if alone else f"({text})"

    _print_ArrayElementwiseApplyFunc = _print_ElementwiseApplyFunction

    def _print_Dummy(self, form: sympy.Dummy) -> str:
        return str(form.name)


def text_of(node: Node) -> str:
    """A subexpression as SymPy prints it, unless it is long."""
    from symad.tracing.into_sympy.nodes import to_sympy

    order = topological([node])
    if len(order) <= SHORT and _written_size(order) <= SHORT:
        try:
            inputs = tuple(n for n in order if isinstance(n.op, Input))
            text = str(_ExpressionPrinter().doprint(_without_points(to_sympy(Graph(inputs, (node,))))))
            if len(text) <= SHORT:
                return text
        except (SymadError, TypeError, ValueError, NotImplementedError, AttributeError, RecursionError):
            pass  # SymPy has no form for it, or cannot print it: it is described
    return f"a {type(node.op).__name__} of {len(order)} nodes"


def _without_points(form: object) -> object:
    """An expression without branches for single points, where powers have rules of their own."""
    if not isinstance(form, sympy.Expr):
        return form
    return form.replace(
        lambda e: (
            isinstance(e, sympy.Piecewise) and isinstance(e.args[0].cond, sympy.Eq) and len(e.args) == 2
        ),
        lambda e: e.args[1].expr,
    )


def _written_size(order: Sequence[Node]) -> int:
    """The number of operations once shared parts are written out, at most one more than `SHORT`."""
    sizes: dict[Node, int] = {}
    for node in order:
        sizes[node] = min(1 + sum(sizes[a] for a in node.args), SHORT + 1)
    return sizes[order[-1]]
