"""Coefficients of power series for ops with a better rule than the pushforward: sums over products.

For y = a b:       y_k = Σ_{j=0}^k a_j b_{k−j};
for y = n / d:     y_k = (n_k − Σ_{j=1}^k d_j y_{k−j})/d_0;
for A y = b:       y_k = A_0⁻¹ (b_k − Σ_{j=1}^k A_j y_{k−j});
for y = √x:        y_k = (x_k − Σ_{j=1}^{k−1} y_j y_{k−j})/(2 y_0);
for y = xᵖ:        y_k = Σ_{j=1}^k (p j − k + j) x_j y_{k−j}/(k x_0), and repeated products for p = 2, 3, ...

The series of a scan is one more scan, whose state is all its coefficients. Source: Griewank & Walther,
"Evaluating Derivatives" (2008), table 13.1 and proposition 13.1.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction

from symad.core.graph import ZERO, Node, Op, Tangent, rebuild
from symad.core.questions import jvp, series
from symad.higher_order.scan import Scan, parts, previous_states
from symad.higher_order.scan import scan as scan_nodes
from symad.ops.arrays.stacking import stack, take
from symad.ops.basic.arithmetic import (
    Mul,
    add_tangents,
    div,
    mul,
    neg,
    signed_product,
    tangent_of_shape,
)
from symad.ops.basic.contraction import Einsum, contract, matmul
from symad.ops.basic.sources import constant, constant_value, fresh_input
from symad.ops.elementwise.powers import Pow
from symad.ops.elementwise.selection import Condition, Select
from symad.ops.linalg.cholesky import TriangularSolve, _triangle
from symad.ops.linalg.solve_det import Solve
from symad.transforms.series import Coefficients
from symad.transforms.tangents import dense

Series = list[Tangent]


def product(a: Series, b: Series, times: Callable[[Node, Node], Node] = mul) -> Series:
    """Cauchy's product, to the order of both; for a square each mixed term is computed once."""
    made: Series = []
    for k in range(len(a)):
        square = a is b or a == b
        pairs = [(a[j], b[k - j]) for j in range((k + 1) // 2 if square else k + 1)]
        terms = [times(x, y) for x, y in pairs if isinstance(x, Node) and isinstance(y, Node)]
        if square:
            terms = [mul(constant(2), term) for term in terms]
            middle = a[k // 2]
            if k % 2 == 0 and isinstance(middle, Node):
                terms.append(times(middle, middle))
        made.append(add_tangents(terms))
    return made


def quotient(n: Series, d: Series) -> Series:
    """n / d."""
    made: Series = []
    (first, *rest) = d
    assert isinstance(first, Node)
    for k, top in enumerate(n):
        sums = [_minus(rest[j - 1], made[k - j]) for j in range(1, k + 1)]
        total = add_tangents([top, *sums])
        made.append(div(total, first) if isinstance(total, Node) else ZERO)
    return made


def _minus(a: Tangent, b: Tangent) -> Tangent:
    return neg(mul(a, b)) if isinstance(a, Node) and isinstance(b, Node) else ZERO


def up_to(x: Node, k: int, coefficient: Coefficients) -> Series:
    """x_0, ..., x_k."""
    return [coefficient(x, j) for j in range(k + 1)]


def _moves(x: Series) -> bool:
    return any(isinstance(part, Node) for part in x[1:])


@series.dispatch
def mul_series(op: Mul, y: Node, k: int, coefficient: Coefficients) -> Tangent:
    """Factors that do not depend on t are one number; the others are multiplied and divided one by one."""
    fixed: list[tuple[int, Node]] = []
    over: Series = []
    under: Series = []
    for power_, x in zip(op.powers, y.args, strict=True):
        found = up_to(x, k, coefficient)
        if not isinstance(found[0], Node):
            return ZERO
        if not _moves(found):
            fixed.append((power_, found[0]))
        elif power_ == 1:
            over = product(over, found) if over else found
        else:
            under = product(under, found) if under else found
    if not over and not under:
        return ZERO
    made = over or [constant(1), *[ZERO] * k]
    made = quotient(made, under) if under else made
    last = made[k]
    if not isinstance(last, Node):
        return ZERO
    return tangent_of_shape(signed_product([*fixed, (1, last)]) if fixed else last, y.shape)


@series.dispatch
def pow_series(op: Pow, y: Node, k: int, coefficient: Coefficients) -> Tangent:
    """The coefficient for a constant exponent; otherwise the pushforward is used."""
    base, exponent = y.args
    p, x = constant_value(exponent), up_to(base, k, coefficient)
    if not isinstance(p, (int, float, Fraction)) or isinstance(p, bool):
        y_dot = coefficient.dot(y)
        made = coefficient(y_dot, k - 1) if isinstance(y_dot, Node) else ZERO
        return mul(constant(Fraction(1, k)), made) if isinstance(made, Node) else ZERO
    if isinstance(p, int) and p > 0:
        return tangent_of_shape(_whole_power(x, p)[k], y.shape)
    own = up_to(y, k - 1, coefficient)
    first, value = x[0], own[0]
    assert isinstance(first, Node)
    assert isinstance(value, Node)
    if p == Fraction(1, 2):
        terms = [_minus(own[j], own[k - j]) for j in range(1, k)]
        total = add_tangents([x[k], *terms])
        return div(total, mul(constant(2), value)) if isinstance(total, Node) else ZERO
    factors = [p * j - k + j for j in range(1, k + 1)]
    terms = [
        mul(constant(c), xj, yj)
        for c, xj, yj in zip(factors, x[1:], reversed(own), strict=True)
        if isinstance(xj, Node) and isinstance(yj, Node)
    ]
    total = add_tangents(terms)
    return div(total, mul(constant(k), first)) if isinstance(total, Node) else ZERO


def _whole_power(x: Series, p: int) -> Series:
    """The p-th power by squarings."""
    made: Series | None = None
    while True:
        if p & 1:
            made = x if made is None else product(made, x)
        p >>= 1
        if not p:
            return made if made is not None else x
        x = product(x, x)


@series.dispatch
def condition_series(op: Condition, y: Node, k: int, coefficient: Coefficients) -> Tangent:
    """0: conditions are constant."""
    return ZERO


@series.dispatch
def select_series(op: Select, y: Node, k: int, coefficient: Coefficients) -> Tangent:
    """The rule is linear in the two operands."""
    found = tuple(coefficient(a, k) for a in y.args[1:])
    return jvp(op, y, (ZERO, *found)) if any(isinstance(p, Node) for p in found) else ZERO


@series.dispatch
def einsum_series(op: Einsum, y: Node, k: int, coefficient: Coefficients) -> Tangent:
    """Σ over k = j_1 + ... + j_n of the contraction of these coefficients."""
    found = [up_to(a, k, coefficient) for a in y.args]
    terms = []
    for places in compositions(k, [k if _moves(x) else 0 for x in found]):
        chosen = [c for x, j in zip(found, places, strict=True) if isinstance(c := x[j], Node)]
        if len(chosen) == len(found):
            terms.append(contract(op.inputs, op.output, *chosen))
    return add_tangents(terms)


def compositions(total: int, most: Sequence[int]) -> Iterator[tuple[int, ...]]:
    """All (j_1, ..., j_n) with the sum ``total`` and 0 ≤ j_i ≤ most_i."""
    if len(most) == 1:
        if total <= most[0]:
            yield (total,)
        return
    for j in range(min(total, most[0]) + 1):
        for rest in compositions(total - j, most[1:]):
            yield (j, *rest)


@series.dispatch
def solve_series(op: Solve, y: Node, k: int, coefficient: Coefficients) -> Tangent:
    """A_0 y_k = b_k − Σ A_j y_{k−j}."""
    return _solved(op, y, k, coefficient, matmul)


@series.dispatch
def triangular_solve_series(op: TriangularSolve, y: Node, k: int, coefficient: Coefficients) -> Tangent:
    """The same with the triangle of A."""
    return _solved(op, y, k, coefficient, lambda a, x: matmul(_triangle(a, op.lower), x))


def _solved(
    op: Op, y: Node, k: int, coefficient: Coefficients, times: Callable[[Node, Node], Node]
) -> Tangent:
    a, b = (up_to(x, k, coefficient) for x in y.args)
    own = up_to(y, k - 1, coefficient)
    terms: list[Tangent] = [b[k]]
    for j in range(1, k + 1):
        left, right = a[j], own[k - j]
        if isinstance(left, Node) and isinstance(right, Node):
            terms.append(neg(times(left, right)))
    total = add_tangents(terms)
    first = a[0]
    assert isinstance(first, Node)
    return Node.of(op, (first, total)) if isinstance(total, Node) else ZERO


@series.dispatch
def scan_series(op: Scan, y: Node, k: int, coefficient: Coefficients) -> Tangent:
    """c_k of all steps, from a scan whose state is (c_1, ..., c_K) and whose step is that of the series.

    While the derivative is still being built, only the orders up to k are known; otherwise all are computed
    at once.
    """
    order = k if y in coefficient.derived or y in coefficient.virtual else coefficient.order
    if (y, order) not in coefficient.scans:
        found = [up_to(a, order, coefficient) for a in y.args]
        coefficient.scans[y, order] = _scan_of_series(op, y, order, found)
    return take(coefficient.scans[y, order], 1, k - 1)


def _scan_of_series(op: Scan, y: Node, order: int, found: Sequence[Series]) -> Node:
    value = Node.of(op, tuple(part[0] for part in found if isinstance(part[0], Node)))
    initial, xs, constants = parts(op, value.args)
    local = op.body.input_nodes
    slices = range(1, 1 + op.slices)
    moving = [(i, j) for i in slices for j in range(1, order + 1) if isinstance(found[i][j], Node)]
    start = stack([dense(c, initial) for c in found[0][1:]])

    def body(state: Node, c: Node, c_new: Node, *rest: Node) -> Node:
        x, x_parts = rest[: op.slices], dict(zip(moving, rest[op.slices :], strict=True))
        values: dict[Node, Node] = {}
        given: dict[Node, list[Tangent]] = {}
        for i, node in enumerate(local):
            series_of: list[Tangent] = []
            for j in range(1, order + 1):
                known = found[i][j]  # of constants
                if i <= op.slices:
                    known = x_parts.get((i, j), ZERO) if i else take(state, 0, j - 1)
                # placeholders: coefficients may contain inputs of an enclosing body
                if isinstance(known, Node):
                    fresh = fresh_input(known.shape)
                    values[fresh] = known
                    series_of.append(fresh)
                else:
                    series_of.append(ZERO)
            if any(isinstance(s, Node) for s in series_of):
                given[node] = series_of
        inner = Coefficients(order, given)
        output = op.body.output_nodes[0]
        inner.compute((output, j) for j in range(1, order + 1))
        made = stack([dense(inner(output, j), output) for j in range(1, order + 1)])
        values |= {output: c_new} | dict(zip(local, (c, *x, *constants), strict=True))
        return rebuild([made], values)[0]

    parts_of_xs = [part for i, j in moving if isinstance(part := found[i][j], Node)]
    return scan_nodes(body, start, [previous_states(value), value, *xs, *parts_of_xs])
