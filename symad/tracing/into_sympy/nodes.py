"""Nodes back to SymPy: the expression of a graph's outputs, structure kept as it was traced.

Each op proposes the SymPy form of its node. The form of an array is taken only if tracing it gives
that very node again; otherwise, and where SymPy has no word for the op, the op itself is wrapped
(`symad.tracing.into_sympy.op_expressions`). So tracing what comes out computes what went in, by construction.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import sympy

from symad.core.dims import Shape, dim_symbols
from symad.core.graph import Graph, Node, pack, topological
from symad.core.questions import sympy_form
from symad.ops.arrays.sources import Dimension, Input
from symad.ops.elementwise.arithmetic import ElementwiseOp
from symad.ops.loops.captured import check_closed
from symad.tracing.into_sympy.op_expressions import opaque
from symad.tracing.walk import Tracer


def to_sympy(graph: Graph) -> Any:
    """The SymPy object of a graph: an expression, matrix or array, or a tuple or dict of them.

    ``trace(to_sympy(g))`` computes the same function; for a graph traced from SymPy it is the same
    graph. Nothing is re-evaluated by SymPy on the way.
    """
    check_closed(graph, "the SymPy form")
    return pack(graph.structure, nodes_to_sympy(graph.output_nodes))


def nodes_to_sympy(outputs: Sequence[Node]) -> list[Any]:
    """The SymPy expressions of some nodes."""
    order = topological(outputs)
    tracer = _tracer_of(order)
    forms: dict[Node, Any] = {}
    for node in order:
        parts = tuple([forms[a] for a in node.args])
        form = _form(node, parts, tracer)
        if form is None:
            form = opaque(node, parts)
        hash(form)  # level by level: SymPy's own hashing recurses
        forms[node] = form
        tracer.assume(form, node)
    return [forms[o] for o in outputs]


def _tracer_of(order: Sequence[Node]) -> Tracer:
    """A tracer in which the symbols of these nodes mean what they mean there."""
    inputs = [node.op for node in order if isinstance(node.op, Input)]
    dims: set[Any] = set().union(*(dim_symbols(op.shape) for op in inputs))
    for node in order:
        if isinstance(node.op, Dimension):
            dims |= node.op.expression.free_symbols
    return Tracer(dims, {op.symbol: op.shape for op in inputs})


REFUSALS = (TypeError, ValueError, AttributeError, LookupError, NotImplementedError, RecursionError)
"""How SymPy's constructors, and our own checks, decline."""


def _form(node: Node, parts: tuple[Any, ...], tracer: Tracer) -> Any:
    """The first form proposed that is right, or None. Forms of numbers need no check."""
    checked = bool(node.shape) or any(a.shape for a in node.args)
    for propose in (sympy_form, elementwise_form):
        try:
            form = propose(node.op, node, parts)
            if form is not None and (not checked or tracer.trace(form) is node):
                return form
        except REFUSALS:
            continue
    return None


def elementwise_form(op: Any, node: Node, parts: tuple[Any, ...]) -> Any:
    """A Lambda over the elements, where an elementwise op has one array among its arguments."""
    if not isinstance(op, ElementwiseOp) or len({a for a in node.args if a.shape}) != 1:
        return None
    return _arrays().over_elements(op, node, parts)


def array_add(shape: Shape, signs: Sequence[int], terms: Sequence[Any]) -> Any:
    """The signed sum of the terms."""
    if shape:
        return _arrays().add(shape, signs, terms)
    signed = [_negated(term) if sign == -1 else term for sign, term in zip(signs, terms, strict=True)]
    return signed[0] if len(signed) == 1 else sympy.Add(*signed, evaluate=False)


def _negated(form: Any) -> Any:
    """−form without distributing over a sum."""
    if isinstance(form, sympy.Number):
        return -form
    if isinstance(form, sympy.Mul) and isinstance(form.args[0], sympy.Number):
        return sympy.Mul(-form.args[0], *form.args[1:], evaluate=False)
    if isinstance(form, sympy.Mul):
        return sympy.Mul(sympy.S.NegativeOne, *form.args, evaluate=False)
    return sympy.Mul(sympy.S.NegativeOne, form, evaluate=False)


def array_mul(shape: Shape, coefficient: Any, powers: Sequence[int], factors: Sequence[Any]) -> Any:
    """The product of factors to powers ±1, with a rational coefficient in front."""
    if shape:
        return _arrays().mul(shape, coefficient, powers, factors)
    signed = [inverted(f) if power == -1 else f for power, f in zip(powers, factors, strict=True)]
    if coefficient != 1:
        signed.insert(0, coefficient)
    return signed[0] if len(signed) == 1 else sympy.Mul(*signed, evaluate=False)


def inverted(form: Any) -> Any:
    """1/form of a number; a power with a number exponent gets the negated exponent."""
    if isinstance(form, sympy.Pow) and isinstance(form.exp, sympy.Number):
        return sympy.Pow(form.base, -form.exp, evaluate=False)
    return sympy.Pow(form, sympy.S.NegativeOne, evaluate=False)


def array_pow(shape: Shape, base: Any, exponent: Any) -> Any:
    """The power."""
    return _arrays().pow(shape, base, exponent) if shape else sympy.Pow(base, exponent, evaluate=False)


def array_apply(shape: Shape, head: Any, forms: Sequence[Any]) -> Any:
    """The function, unevaluated; of arrays it is left to `elementwise_form`."""
    if shape:
        return None
    try:
        return head(*forms, evaluate=False)
    except TypeError:  # a head that takes no such argument
        return head(*forms)


def array_select(shape: Shape, condition: Any, a: Any, b: Any) -> Any:
    """A Piecewise; one in the last branch is flattened into it.

    SymPy folds a Piecewise inside a condition outwards, also out of a Lambda, where it is wrong: such a
    selection stands for itself.
    """
    if shape or condition.has(sympy.Piecewise):
        return None
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
    """A reduction by Max or Min: SymPy has none."""
    return None


def array_product(op: Any, y: Node, forms: Sequence[Any]) -> Any:
    """A reduction by multiplication: SymPy has none."""
    return None


def array_linalg(op: Any, y: Node, forms: Sequence[Any]) -> Any:
    """A linear-algebra op."""
    return _arrays().linalg(op, y, forms)


def array_constant_form(array: Any) -> Any:
    """A constant array; None where it is too large to be written out."""
    return _arrays().constant(array)


def definition_to_sympy(y: Node, forms: Sequence[Any]) -> Any:
    """A fused op that has no SymPy class stands for itself, so that tracing gives it back fused."""
    return None


def _arrays() -> Any:
    from symad.tracing.into_sympy import arrays

    return arrays
