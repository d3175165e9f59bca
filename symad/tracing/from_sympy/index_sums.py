"""Sums and products with indices, kept as arrays.

Under bound indices every subexpression is an array with one axis for each index that it depends on
(`bound_indices`). A sum of products is a contraction, cheapest pair first; other sums reduce an axis. Bounds
that depend on an outer index become masks. No expression is expanded element by element.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import sympy
from sympy.matrices.expressions.matexpr import MatrixElement
from sympy.tensor.array.expressions.array_expressions import ArrayElement

from symad.core.graph import Node
from symad.core.questions import Nodes
from symad.errors import TraceError
from symad.ops.arrays.reduction import product
from symad.ops.basic.arithmetic import add, mul
from symad.ops.basic.sources import constant, dimension, eye, input_node
from symad.ops.elementwise.powers import power
from symad.ops.elementwise.selection import equal, indicator, logic, select
from symad.tracing.cheapest_contraction import Labeled, contract_all
from symad.tracing.error_names import is_array
from symad.tracing.from_sympy.bound_indices import IndexScope, parts, read
from symad.tracing.from_sympy.index_reads import load
from symad.tracing.from_sympy.range_sums import ELEMENTS, nested_ranges, parts_of_arrays, unknown_symbols
from symad.tracing.index_ranges import IndexRange, ranges_of
from symad.tracing.input_symbols import InferredBase
from symad.tracing.walk import Tracer, lift, operands

# ---- expressions under indices ------------------------------------------------------------------


def _nothing(expression: sympy.Basic, scope: IndexScope) -> tuple[sympy.Basic, ...]:
    return ()


for _class in (sympy.Indexed, MatrixElement, ArrayElement, sympy.Sum, sympy.Product):
    parts.register(_class, _nothing)


@read.register(sympy.Symbol)
@read.register(sympy.Idx)
def symbol_read(expression: sympy.Basic, args: tuple[Labeled, ...], scope: IndexScope) -> Labeled:
    """For a bound index its values; for any other symbol its node."""
    if expression in scope.sizes:
        return scope.index_value(expression)
    return Labeled(lift(expression, (), scope.tracer))


@read.register(sympy.Indexed)
def indexed_read(expression: sympy.Indexed, args: tuple[Labeled, ...], scope: IndexScope) -> Labeled:
    """Elements of a base."""
    return load(scope, scope.tracer.trace(expression.base), expression, expression.indices)


@read.register(MatrixElement)
def matrix_element_read(expression: MatrixElement, args: tuple[Labeled, ...], scope: IndexScope) -> Labeled:
    """Elements of a matrix expression."""
    return load(scope, scope.tracer.trace(expression.parent), expression, (expression.i, expression.j))


@read.register(ArrayElement)
def array_element_read(expression: ArrayElement, args: tuple[Labeled, ...], scope: IndexScope) -> Labeled:
    """Elements of an array expression."""
    return load(scope, scope.tracer.trace(expression.name), expression, expression.indices)


@parts.register(sympy.Piecewise)
def piecewise_parts(expression: sympy.Piecewise, scope: IndexScope) -> tuple[sympy.Basic, ...]:
    """Under indices only the conditions: a branch may read out of range where it is not taken."""
    if not scope.ranges:
        return operands(expression, scope.tracer)
    return tuple(condition for _, condition in expression.args)


@read.register(sympy.Piecewise)
def piecewise_read(expression: sympy.Piecewise, args: tuple[Labeled, ...], scope: IndexScope) -> Labeled:
    """The value of the first pair whose condition holds."""
    if scope.ranges:
        inner = scope.behind_conditions()
        values = [inner.value(value) for value, _ in expression.args]
        args = tuple(part for pair in zip(values, args, strict=True) for part in pair)
    return scope.elementwise(lambda *nodes: lift(expression, nodes, scope.tracer), *args)


# ---- sums ---------------------------------------------------------------------------------------


@read.register(sympy.Sum)
def sum_read(expression: sympy.Sum, args: tuple[Labeled, ...], scope: IndexScope) -> Labeled:
    """Σ over the indices of the sum."""
    ranges = ranges_of(expression, scope.ranges)
    if is_array(expression.function):
        return _sum_of_arrays(expression, ranges, scope)
    inner = scope.inside(ranges)
    masks = inner.masks(ranges)
    over = [r.index for r in ranges]
    terms = sympy.Add.make_args(expression.function)
    if masks:
        return _masked_sum(inner, terms, over, masks)
    factors = [_factors(inner, term) for term in terms]
    labels = inner.joint([f for part in factors for f in part])
    if len(terms) > 1 and all(f.labels in ((), labels) for part in factors for f in part):
        body = inner.elementwise(add, *(inner.elementwise(mul, *part) for part in factors))
        return _contracted(inner, [body], over)
    made = [_contracted(inner, part, over, term) for part, term in zip(factors, terms, strict=True)]
    return inner.elementwise(add, *made)


def _factors(scope: IndexScope, term: sympy.Basic) -> list[Labeled]:
    """The arrays whose product is a term; a square counts as two factors."""
    found: list[Labeled] = []
    for factor in sympy.Mul.make_args(term):
        if factor.is_Pow and factor.exp == 2:
            base = scope.value(factor.base)
            found += [base, base] if base.labels else [scope.value(factor)]
        else:
            found.append(scope.value(factor))
    return found


def _contracted(
    scope: IndexScope, factors: Sequence[Labeled], over: Sequence[sympy.Basic], term: sympy.Expr | None = None
) -> Labeled:
    """Σ over some indices of a product; for an index that no factor has, times the number of its values."""
    renamed, rest = _joined(scope, term, over)
    if renamed:
        factors = _factors(scope, rest)
        factors = [Labeled(f.node, tuple(renamed.get(x, x) for x in f.labels)) for f in factors]
        over = [x for x in over if x not in renamed]
    labels = scope.joint(factors)
    missing = [Labeled(dimension(scope.sizes[x])) for x in over if x not in labels]
    output = tuple(x for x in labels if x not in over)
    node = contract_all([*missing, *factors], output)
    return Labeled(node, output if node.shape else ())


def _joined(
    scope: IndexScope, term: sympy.Expr | None, over: Sequence[sympy.Basic]
) -> tuple[dict[sympy.Basic, sympy.Basic], sympy.Basic]:
    """Summed indices that a KroneckerDelta identifies with others of the same range; the other factors."""
    renamed: dict[sympy.Basic, sympy.Basic] = {}
    rest = []
    for factor in sympy.Mul.make_args(term) if term is not None else ():
        if isinstance(factor, sympy.KroneckerDelta):
            i, j = (renamed.get(x, x) for x in factor.args[:2])
            gone, kept = (j, i) if j in over else (i, j)
            same = i in scope.sizes and j in scope.sizes and i != j
            if same and gone in over and scope.boxes_agree(i, j):
                renamed = {**{x: kept if y == gone else y for x, y in renamed.items()}, gone: kept}
                continue
        rest.append(factor)
    return renamed, sympy.Mul(*rest, evaluate=False) if len(rest) != 1 else rest[0]


def _masked_sum(
    scope: IndexScope, terms: Sequence[sympy.Basic], over: Sequence[sympy.Basic], masks: Sequence[Labeled]
) -> Labeled:
    """The sum in which indices without mask are summed first, the others under their masks."""
    mask = scope.elementwise(partial(logic, "and"), *masks)
    first = [x for x in over if x not in mask.labels]
    made = [_contracted(scope, _factors(scope, term), first) for term in terms]
    body = scope.elementwise(add, *made)
    kept = scope.elementwise(lambda m, b: select(m, b, constant(0)), mask, body)
    return _contracted(scope, [kept], [x for x in over if x not in first])


def _sum_of_arrays(expression: sympy.Sum, ranges: Sequence[IndexRange], scope: IndexScope) -> Labeled:
    """A sum of matrices over one index with known bounds, unrolled.

    Raises:
        TraceError: the bounds are symbols, or an outer index is bound.
    """
    (r, *others) = ranges
    if others or scope.ranges or not (r.low.is_Integer and r.high.is_Integer):
        raise TraceError(
            f"{expression} sums matrices; that needs one index with numbers as bounds, or sum the elements"
        )
    terms = [
        expression.function.xreplace({r.index: sympy.Integer(k)}) for k in range(int(r.low), int(r.high) + 1)
    ]
    return Labeled(add(*map(scope.tracer.trace, terms)))


# ---- products and deltas ------------------------------------------------------------------------


@read.register(sympy.Product)
def product_read(expression: sympy.Product, args: tuple[Labeled, ...], scope: IndexScope) -> Labeled:
    """Π over the indices of the product."""
    ranges = ranges_of(expression, scope.ranges)
    inner = scope.inside(ranges)
    over = [r.index for r in ranges]
    body = inner.value(expression.function)
    masks = inner.masks(ranges)
    if masks:
        mask = inner.elementwise(partial(logic, "and"), *masks)
        body = inner.elementwise(lambda m, b: select(m, b, constant(1)), mask, body)
    node, labels = body.node, list(body.labels)
    for index in over:
        if index in labels:
            node = product(node, labels.index(index))
            labels.remove(index)
        else:
            node = power(node, dimension(inner.sizes[index]))
    return Labeled(node, tuple(labels))


@read.register(sympy.KroneckerDelta)
def delta_read(expression: sympy.KroneckerDelta, args: tuple[Labeled, ...], scope: IndexScope) -> Labeled:
    """1 where both indices agree; the identity matrix for two indices of one range."""
    i, j = expression.args[:2]
    if i in scope.sizes and j in scope.sizes and scope.boxes_agree(i, j):
        return Labeled(eye(scope.sizes[i]), (i, j))
    return scope.elementwise(lambda a, b: indicator(equal(a, b)), *args[:2])


# ---- at the top -----------------------------------------------------------------------------------


def _no_operands(expression: sympy.Basic, tracer: Tracer) -> tuple[sympy.Basic, ...]:
    return ()


def closed_lift(expression: sympy.Basic, args: Nodes, tracer: Tracer) -> Node:
    """An expression with indices in which every index is bound."""
    return read(expression, (), IndexScope(tracer)).node


@lift.register(sympy.Sum)
@lift.register(sympy.Product)
def sum_lift(expression: sympy.Basic, args: Nodes, tracer: Tracer) -> Node:
    """Arrays; if bounds are arguments, the part of the arrays that they select, or a loop."""
    ranges = [r for part in expression.atoms(sympy.Sum, sympy.Product) for r in ranges_of(part, ())]
    if any(unknown_symbols(bound, tracer, ranges) for r in ranges for bound in (r.low, r.high)):
        if not expression.has(*ELEMENTS):
            return nested_ranges(expression, tracer)
        return tracer.trace(parts_of_arrays(expression, tracer, ranges))
    return closed_lift(expression, args, tracer)


for _class in (sympy.Sum, sympy.Product, sympy.Indexed):
    operands.register(_class, _no_operands)

lift.register(sympy.Indexed, closed_lift)

operands.register(sympy.IndexedBase, _no_operands)
operands.register(sympy.Idx, _no_operands)


@lift.register(sympy.IndexedBase)
def base_lift(expression: sympy.IndexedBase, args: Nodes, tracer: Tracer) -> Node:
    """The whole array."""
    return input_node(expression, tracer.shapes[expression])


@lift.register(InferredBase)
def inferred_lift(expression: InferredBase, args: Nodes, tracer: Tracer) -> Node:
    """The whole array of the base in its declared form."""
    return input_node(expression.declared, tracer.shapes[expression.declared])


@lift.register(sympy.Idx)
def idx_lift(expression: sympy.Idx, args: Nodes, tracer: Tracer) -> Node:
    """Refused: an index outside of its sum."""
    raise TraceError(f"the index {expression} is free; sum over it with Sum(..., ({expression}, 0, n - 1))")


@lift.register(sympy.KroneckerDelta)
def delta_lift(expression: sympy.KroneckerDelta, args: Nodes, tracer: Tracer) -> Node:
    """1 where both numbers agree."""
    return indicator(equal(args[0], args[1]))
