"""Constant factors are combined into one: fewer statements, the same values."""

from fractions import Fraction

import numpy as np
import pytest
import sympy

import symad
from symad.core.graph import Graph, TupleOf, topological
from symad.numeric.passes.algebra.factors import gather_factors, number_of
from symad.ops.basic.arithmetic import Mul, add, div, mul, neg, sub
from symad.ops.basic.shaping import slice_axes, slice_axis
from symad.ops.basic.sources import constant, input_node

N = 5
A, B = (input_node(sympy.IndexedBase(name, shape=(N,)), (N,)) for name in "ab")
S = input_node(sympy.Symbol("s", real=True))
POINT = (np.linspace(0.5, 2.0, N), np.linspace(-1.0, 3.0, N), 0.7)


def number(value):
    return constant(value)


CASES = {
    "nested products": mul(number(2), mul(number(100), mul(number(Fraction(1, 3)), A))),
    "a quotient of multiples": div(mul(number(2), A), mul(number(6), B)),
    "signs": mul(neg(A), neg(div(B, mul(number(-3), A)))),
    "a sum of equal multiples": sub(mul(number(4), A), mul(number(4), B)),
    "a sum of other multiples": sub(mul(number(4), A), mul(number(-3), B)),
    "a sum of negatives": sub(neg(A), mul(number(1), B)),
    "constants in a sum": add(number(3), mul(number(3), A), neg(B)),
    "a slice": mul(number(5), slice_axis(mul(number(2), A), 0, 1, 3)),
    "a scalar and a number": mul(number(3), mul(mul(number(2), S), A)),
    "floats": mul(number(0.1), mul(number(7.0), mul(A, number(3)))),
    "floats that would overflow": mul(number(1e150), mul(number(1e150), mul(number(1e-190), A))),
    "products in another order": sub(mul(A, B), mul(number(2), mul(B, A))),
    "quotients": add(*[div(x, add(number(2), A)) for x in (A, B, number(1), mul(A, B))]),
    "quotients of quotients": div(add(div(A, B), div(S, B), div(number(4), B)), div(A, B)),
}


@pytest.mark.parametrize("name", CASES)
def test_values_stay(name):
    graph = Graph((A, B, S), (CASES[name],))
    with np.errstate(all="ignore"):
        np.testing.assert_allclose(gather_factors(graph)(*POINT), graph(*POINT), rtol=1e-14)


def count(graph, op_class=Mul):
    return sum(isinstance(n.op, op_class) for n in topological(graph.output_nodes))


@pytest.mark.parametrize(
    ("name", "products"),
    [
        ("nested products", 1),
        ("a quotient of multiples", 2),
        ("a sum of equal multiples", 1),
        ("a slice", 1),
        ("products in another order", 2),
        ("quotients", 5),  # the reciprocal, and four products; A*B is one of them
    ],
)
def test_products_are_saved(name, products):
    made = gather_factors(Graph((A, B, S), (CASES[name],)))
    assert count(made) <= products


def test_a_number_joins_a_scalar_and_not_an_array():
    made = gather_factors(Graph((A, B, S), (CASES["a scalar and a number"],)))
    arrays = [n for n in topological(made.output_nodes) if isinstance(n.op, Mul) and n.shape]
    assert len(arrays) <= 2


def test_one_reciprocal_serves_three_quotients_and_not_two():
    d = add(number(2), A)
    for k, divisions in ((2, 2), (3, 1)):
        numerators = [A, B, mul(A, B)][:k]
        made = gather_factors(Graph((A, B), tuple(div(x, d) for x in numerators)))
        nodes = topological(made.output_nodes)
        assert sum(isinstance(n.op, Mul) and -1 in n.op.powers for n in nodes) == divisions


@pytest.mark.parametrize("value", [0, True, float("inf"), float("nan"), 1e300, 1e-300, Fraction(1, 10**9)])
def test_numbers_that_are_no_factors(value):
    assert number_of(constant(value)) is None


def test_the_chain_of_a_second_derivative_has_one_factor():
    graph = symad.trace(lambda x: 100 * np.sum((x[1:] - x[:-1] ** 2) ** 2), [(6,)])
    hessian = symad.hessian(graph, sparse=True)
    made = gather_factors(hessian)
    assert count(made) < count(hessian)
    point = np.linspace(-1, 2, 6)
    np.testing.assert_allclose(made(point).toarray(), hessian(point).toarray(), rtol=1e-14)


def test_a_multiple_and_its_reverse_are_one_product():
    """Loops that run backwards read the reverse of what other steps read as it is."""
    twice = mul(number(2), mul(A, B))
    backwards = slice_axes(twice, (N - 1,), (N,), (-1,))
    outputs = add(twice, S), add(backwards, S)
    made = gather_factors(Graph((A, B, S), outputs, TupleOf((None, None))))
    assert count(made) == 2
    a, b, s = POINT
    for found, expected in zip(made(*POINT), (2 * a * b + s, 2 * (a * b)[::-1] + s), strict=True):
        np.testing.assert_array_equal(found, expected)
