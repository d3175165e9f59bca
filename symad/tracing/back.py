"""Nodes back to SymPy: the expression of a graph's outputs, structure kept as it was traced."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import sympy

from symad.dims import Shape
from symad.graph import Graph, Node, pack, topological
from symad.questions import sympy_form


def to_sympy(graph: Graph) -> Any:
    """The SymPy object of a graph: an expression, matrix or array, or a tuple or dict of them.

    ``trace(to_sympy(g))`` computes the same function; for a graph traced from SymPy it is the same
    graph. Nothing is re-evaluated by SymPy on the way.
    """
    return pack(graph.structure, nodes_to_sympy(graph.output_nodes))


def nodes_to_sympy(outputs: Sequence[Node]) -> list[Any]:
    """The SymPy expressions of some nodes."""
    forms: dict[Node, Any] = {}
    for node in topological(outputs):
        forms[node] = sympy_form(node.op, node, tuple([forms[a] for a in node.args]))
    return [forms[o] for o in outputs]


def array_add(shape: Shape, terms: Sequence[Any]) -> Any:
    """The sum of the terms."""
    if shape:
        return _arrays().add(shape, terms)
    return terms[0] if len(terms) == 1 else sympy.Add(*terms, evaluate=False)


def array_mul(shape: Shape, coefficient: Any, factors: Sequence[Any]) -> Any:
    """The product with a rational coefficient in front."""
    if shape:
        return _arrays().mul(shape, coefficient, factors)
    if coefficient != 1:
        factors = [coefficient, *factors]
    return factors[0] if len(factors) == 1 else sympy.Mul(*factors, evaluate=False)


def array_pow(shape: Shape, base: Any, exponent: Any) -> Any:
    """The power."""
    return _arrays().pow(shape, base, exponent) if shape else sympy.Pow(base, exponent, evaluate=False)


def array_apply(shape: Shape, head: Any, forms: Sequence[Any]) -> Any:
    """The function, unevaluated."""
    return _arrays().apply(shape, head, forms) if shape else head(*forms, evaluate=False)


def array_select(shape: Shape, condition: Any, a: Any, b: Any) -> Any:
    """A Piecewise; one in the last branch is flattened into it."""
    if shape:
        return _arrays().select(shape, condition, a, b)
    rest = list(b.args) if isinstance(b, sympy.Piecewise) else [(b, True)]
    if b is sympy.nan:
        rest = []
    return sympy.Piecewise((a, condition), *rest, evaluate=False)


def array_einsum(op: Any, y: Node, forms: Sequence[Any]) -> Any:
    """A contraction."""
    return _arrays().einsum(op, y, forms)


def array_shaping(op: Any, y: Node, forms: Sequence[Any]) -> Any:
    """Moved elements."""
    return _arrays().shaping(op, y, forms)


def array_extreme(op: Any, y: Node, forms: Sequence[Any]) -> Any:
    """A reduction by Max or Min."""
    return _arrays().extreme(op, y, forms)


def array_product(op: Any, y: Node, forms: Sequence[Any]) -> Any:
    """A reduction by multiplication."""
    return _arrays().product(op, y, forms)


def array_linalg(op: Any, y: Node, forms: Sequence[Any]) -> Any:
    """A linear-algebra op."""
    return _arrays().linalg(op, y, forms)


def _arrays() -> Any:
    from symad.tracing import back_arrays

    return back_arrays
