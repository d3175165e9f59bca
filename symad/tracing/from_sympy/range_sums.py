"""Integrals, and sums and products whose bounds are arguments, as functions of `symad.tracing.ranged`."""

from __future__ import annotations

from collections.abc import Sequence

import sympy
from sympy.matrices.expressions.matexpr import MatrixElement
from sympy.tensor.array.expressions.array_expressions import ArrayElement

from symad.core.dims import Shape
from symad.core.graph import Node
from symad.core.questions import Nodes
from symad.errors import OutsideError, TraceError
from symad.ops.basic.sources import constant, input_node
from symad.tracing.index_ranges import IndexRange, affine, at_least
from symad.tracing.ranged import ranged
from symad.tracing.walk import Tracer, lift, operands

ELEMENTS = (sympy.Indexed, MatrixElement, ArrayElement)
"""Expressions that are elements of arrays."""

KINDS = {sympy.Sum: "sum", sympy.Product: "product", sympy.Integral: "integral"}


def nested_ranges(expression: sympy.Basic, tracer: Tracer) -> Node:
    """The function of an integral, a sum or a product, the innermost limit first."""
    plain = {x: sympy.Symbol(x.label.name, integer=True) for x in _indices(expression)}
    if plain:
        expression = expression.xreplace(plain)
    node = tracer.trace(expression.function)
    for variable, *bounds in expression.limits:
        low, high = (_bound(b, tracer) for b in bounds)
        node = ranged(KINDS[expression.func], node, input_node(variable), low, high)
    return node


def _indices(expression: sympy.Basic) -> list[sympy.Basic]:
    return [limit[0] for limit in expression.limits if isinstance(limit[0], sympy.Idx)]


def _bound(bound: sympy.Expr, tracer: Tracer) -> Node:
    return constant(float(bound)) if bound.is_infinite and bound.is_number else tracer.trace(bound)


@operands.register(sympy.Integral)
def integral_operands(expression: sympy.Integral, tracer: Tracer) -> tuple[()]:
    """None: the integrand is traced with its variable bound."""
    return ()


@lift.register(sympy.Integral)
def integral_lift(expression: sympy.Integral, args: Nodes, tracer: Tracer) -> Node:
    """A function of the bounds and of the parameters of the integrand."""
    if any(len(limit) != 3 for limit in expression.limits):
        raise OutsideError(
            f"the integral {expression} has no bounds, and is not a function of numbers; call .doit(), or "
            "give (x, a, b)"
        )
    return nested_ranges(expression, tracer)


# ---- parts of arrays ----------------------------------------------------------------------------


def unknown_symbols(bound: sympy.Expr, tracer: Tracer, outer: Sequence[IndexRange]) -> set[sympy.Basic]:
    """The symbols of a bound that are neither dimensions nor outer indices, that is, arguments."""
    unknown = bound.free_symbols - tracer.dims
    return {s for s in unknown if not any(s in o.index.free_symbols for o in outer)}


def parts_of_arrays(expression: sympy.Basic, tracer: Tracer, indices: Sequence[IndexRange]) -> sympy.Basic:
    """Sums and products of array elements between two arguments: over the whole arrays, with 0 or 1 outside.

    The value is NaN if the range exceeds the arrays or its bounds are out of order.
    """

    def part(found: sympy.Basic) -> sympy.Basic:
        body, limits, inside = found.function, [], []
        for index, low, high in found.limits:
            if unknown_symbols(low, tracer, indices) or unknown_symbols(high, tracer, indices):
                first, last = _places(found, index, tracer)
                between = (index >= low) & (index <= high)
                body = sympy.Piecewise((body, between), (NEUTRAL[found.func], True))
                inside += [low >= first, high <= last, high >= low - 1]
                low, high = first, last
            limits.append((index, low, high))
        whole = found.func(body, *limits)
        return sympy.Piecewise((whole, sympy.And(*inside))) if inside else whole

    return expression.replace(lambda e: isinstance(e, (sympy.Sum, sympy.Product)), part)


NEUTRAL = {sympy.Sum: sympy.S.Zero, sympy.Product: sympy.S.One}


def _places(found: sympy.Basic, index: sympy.Expr, tracer: Tracer) -> tuple[sympy.Expr, sympy.Expr]:
    """The values of an index for which all elements that it selects exist.

    Raises:
        TraceError: the shapes of the arrays do not determine them.
    """
    ends: list[tuple[sympy.Expr, sympy.Expr]] = []
    for element in found.function.atoms(*ELEMENTS):
        for place, length in zip(*_axes(element, tracer), strict=True):
            if place.has(index):
                a, b = affine(place, index) or (sympy.S.Zero, sympy.S.Zero)
                if a not in (1, -1) or b.free_symbols - tracer.dims:
                    raise TraceError(
                        f"{found} has bounds that are arguments; in {element} a position must be "
                        f"±{index} plus a number"
                    )
                ends.append((-b, length - 1 - b) if a == 1 else (b - length + 1, b))
    if not ends:
        raise TraceError(
            f"{found} has bounds that are arguments, and elements of arrays that {index} does not select; "
            "take them out of it"
        )
    low, high = ends[0]
    for first, last in ends[1:]:
        low = _decided(found, low, first, at_least(first, low), at_least(low, first))
        high = _decided(found, high, last, at_least(high, last), at_least(last, high))
    return low, high


def _decided(
    found: sympy.Basic, old: sympy.Expr, new: sympy.Expr, takes_new: bool, takes_old: bool
) -> sympy.Expr:
    if not (takes_new or takes_old):
        raise TraceError(
            f"{found} has bounds that are arguments, and arrays whose lengths cannot be compared; declare "
            "their shapes"
        )
    return new if takes_new else old


def _axes(element: sympy.Basic, tracer: Tracer) -> tuple[Sequence[sympy.Expr], Shape]:
    """The indices of an element and the lengths of its axes."""
    if isinstance(element, sympy.Indexed):
        return element.indices, tracer.shapes.get(element.base, element.base.shape)
    if isinstance(element, MatrixElement):
        return (element.i, element.j), element.parent.shape
    return element.indices, element.name.shape
