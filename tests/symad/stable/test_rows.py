"""Every row of the tables is equal to what it replaces, with its condition, by the library's own checker."""

import math
from fractions import Fraction
from typing import Any

import mpmath
import numpy as np
import pytest
import sympy as sp
from sympy.codegen.cfunctions import expm1, hypot

import symad
from benchmarks.scalar.bench_lost_bits import FORMULAS
from symad.core.graph import Graph, Node
from symad.ops.basic.arithmetic import Add, add, div, mul, neg, signed_product, signed_sum, sub
from symad.ops.basic.sources import constant, input_node
from symad.ops.elementwise.apply import apply
from symad.ops.elementwise.powers import power
from symad.stable import stabilize
from symad.stable.normal_forms import Forms, head_of, total
from symad.stable.rows import (
    ARGUMENTS,
    COMPLEMENTS,
    EXPONENTIALS_OF,
    LOGARITHMS_OF,
    NEAR_ONE,
    PRODUCTS,
    REFLECTIONS,
    Row,
    formulas,
    guarded,
)
from symad.stable.secants import GAUSS, SECANTS, growth, power_secant, sine_of_difference
from symad.stable.steps import MAX_INSIDE, _expanded

A, U, V = (input_node(sp.Symbol(name, real=True)) for name in "auv")
TESTED = {
    "log": "logarithms of products",
    "csc": "half angles",
    "hypot": "square roots",
    "sin": "half angles",
    "cos": "half angles",
    "sec": "half angles",
    "7/5": "logarithms of products",
    "erfc": "roots of π",
}
"""Rows whose equality is tested at random points modulo primes, since no proof is known."""


def status(made: Node, written: Node) -> str:
    return symad.equal(Graph((A, U, V), (made,)), Graph((A, U, V), (written,))).status


def sides(row: Row, *given: Node) -> tuple[Node, Node]:
    """The row with its condition, and what it replaces."""
    written = row.written(*formulas(*given[:2])).node
    return guarded(row, given, written), written


def expected(name: str) -> tuple[str, ...]:
    return ("proved", "tested") if name in TESTED else ("proved",)


INTEGRALS = (sp.erf, sp.erfc, sp.loggamma)
"""Rows by Gauss's rule: no identities; `test_integrals` bounds the remainder."""

BY_SLOPES = (sp.atan, sp.atanh)
"""Both sides have the slopes of the difference, and are 0 for u = v: the region is connected to that."""

BY_ROOTS = (sp.asin, sp.acos, sp.asinh, sp.acosh)
"""Proved for arguments whose roots √(1 ± u²) are rational: u = 2p/(1 + p²), (p ± 1/p)/2."""

IN_PARTS = INTEGRALS + BY_SLOPES + BY_ROOTS


@pytest.mark.parametrize("head", [h for h in SECANTS if h not in IN_PARTS], ids=str)
def test_differences_of_a_function(head: Any) -> None:
    first = (constant(1),) if head is hypot else ()
    made, written = sides(SECANTS[head], U, V, sub(U, V))
    assert written is sub(apply(head, *first, U), apply(head, *first, V))
    found = status(made, written)
    if found == "tested" and head is sp.cot:  # a condition of the row makes it a case by case proof
        found = status(SECANTS[head].result(*formulas(U, V, sub(U, V))).node, written)
    assert found in expected(str(head))


@pytest.mark.parametrize("head", [sp.sin, sp.cos, sp.tan], ids=str)
@pytest.mark.parametrize("first", [True, False])
def test_differences_from_the_argument_that_is_no_sum(head: Any, first: bool) -> None:
    u, v, d = (add(V, A), V, A) if first else (V, add(V, A), neg(A))
    written = sub(apply(head, u), apply(head, v))
    made = guarded(SECANTS[head], (u, v, d), written)
    assert status(made, written) in ("proved", "tested")
    for point in ((0.3, 0.0, 1000.1), (-1e-9, 0.0, 477.3), (1e-3, 0.0, -3e5)):
        with mpmath.workdps(40):
            exact = sp.lambdify(
                sp.symbols("a v"), head(sum(sp.symbols("a v"))) - head(sp.Symbol("v")), "mpmath"
            )
            right = exact(mpmath.mpf(point[0]), mpmath.mpf(point[2])) * (1 if first else -1)
        assert float(Graph((A, U, V), (made,))(*point)) == pytest.approx(float(right), rel=2e-15)


@pytest.mark.parametrize("head", BY_SLOPES, ids=str)
def test_differences_by_slopes(head: Any) -> None:
    u, v = sp.symbols("u v", real=True)
    sign = 1 if head is sp.atan else -1
    made = head((u - v) / (1 + sign * u * v))
    for s, slope in ((u, 1 / (1 + sign * u**2)), (v, -1 / (1 + sign * v**2))):
        assert symad.verify(made, s, gradient=slope).status == "proved"
    assert made.subs(u, v) == 0
    form = SECANTS[head].result(*formulas(U, V, sub(U, V))).node
    quotient = div(sub(U, V), add(constant(1), mul(constant(sign), U, V)))
    assert status(form, apply(head, quotient)) in ("proved", "tested")


def test_arguments_with_rational_roots() -> None:
    """sin(α − β) by sines and cosines; exp(α − β) − 1 by hyperbolic ones."""
    p, q = formulas(U, V)
    sines, cosines = [2 * x / (1 + x * x) for x in (p, q)], [(1 - x * x) / (1 + x * x) for x in (p, q)]
    made = sine_of_difference(*sines, sines[0] - sines[1], *cosines)
    written = sines[0] * cosines[1] - sines[1] * cosines[0]
    assert status(made.node, written.node) == "proved"
    for sign in (1, -1):
        u, v = ((x - sign / x) / 2 for x in (p, q))
        h, k = ((x + sign / x) / 2 for x in (p, q))
        assert status(growth(u, v, u - v, h, k).node, (p / q - 1).node) == "proved"


POINTS = [(3.0, -3.9), (-3.0, 3.9), (2.0, -0.5), (0.3, 0.2), (-0.4, -0.41), (1e-9, 1.001e-9), (0.7, -0.2)]
POINTS += [(s * a, s * (a + d)) for a in (0.2, 0.8, 1.7, 6.0) for d in (1e-12, -1e-6, 0.01) for s in (1, -1)]


@pytest.mark.parametrize("head", BY_SLOPES + BY_ROOTS + INTEGRALS, ids=str)
def test_conditions_of_rows(head: Any) -> None:
    """Values beside numbers of 60 digits, on both sides of the conditions."""
    exact = sp.lambdify(sp.Symbol("x"), head(sp.Symbol("x")), "mpmath")
    graph = Graph((U, V), (sides(SECANTS[head], U, V, sub(U, V))[0],))
    for u, v in POINTS:
        if head is sp.loggamma and min(u, v) < 0:
            continue
        with mpmath.workdps(60):
            right, largest = exact(mpmath.mpf(u)) - exact(mpmath.mpf(v)), abs(exact(mpmath.mpf(v)))
        if isinstance(right, mpmath.mpf):
            close = abs(u - v) < abs(v) / 8
            scale = abs(right) if close else largest + abs(right)
            assert abs(float(graph(u, v)) - right) <= 1e-14 * scale, (u, v)


@pytest.mark.parametrize("size", [0.0, 0.5, 3.0, 20.0])
def test_the_remainder_of_integrals_of_the_normal_density(size: float) -> None:
    """Gauss's rule with n points errs by at most 64/15 M ρ^(−2n)/(1 − ρ^(−2)), M the maximum on an ellipse.

    Here f(z) = exp(−(m + h z)²), |z| ≤ (ρ + 1/ρ)/2, and |h| (1 + |m|) ≤ 3/32 up to a factor of 1 + |h|.
    Source: Trefethen, "Approximation Theory and Approximation Practice" (2013), theorem 19.3.
    """
    n, h = len(GAUSS), 0.1875 / 2 / (1 + size) * 1.2

    def relative(rho: float) -> float:
        z = (rho + 1 / rho) / 2
        highest = math.exp(2 * size * h * z + (h * z) ** 2)  # over exp(−m²)
        least = 2 * math.exp(-2 * size * h - h * h)
        return 64 / 15 * highest * rho ** (-2 * n) / (1 - rho**-2) / least

    assert min(relative(rho) for rho in (10.0, 20.0, 30.0, 40.0, 60.0)) < 2.0**-53


@pytest.mark.parametrize("p", [Fraction(n, q) for n, q in ((1, 2), (1, 3), (3, 2), (5, 3), (7, 5))], ids=str)
def test_differences_of_powers(p: Fraction) -> None:
    made, written = sides(power_secant(p), U, V, sub(U, V))
    assert written is sub(*(power(x, constant(p)) for x in (U, V)))
    assert status(made, written) in expected(str(p))


GAMMA = {sp.lowergamma: (0, 1.5), sp.uppergamma: (1.5, mpmath.inf)}
ROWS = {
    f"{name} {head}": rows
    for name, table in (("beside", COMPLEMENTS), ("sum", REFLECTIONS), ("product", PRODUCTS))
    for head, rows in table.items()
    if head not in GAMMA
}


@pytest.mark.parametrize("name", ROWS)
def test_sums_and_products(name: str) -> None:
    for row in ROWS[name]:
        heads = name.split()[-1], str(row.pattern.other)
        assert status(*sides(row, U)) in {name for head in heads for name in expected(head)}, row


def test_engines_read_what_is_written() -> None:
    """The patterns by which rows are found, made again from their parts."""
    for rows in (*COMPLEMENTS.values(), *REFLECTIONS.values(), *PRODUCTS.values()):
        for row in rows:
            p = row.pattern
            if p.other is None:
                again = signed_sum([(1, constant(p.number)), (p.sign, power(p.first, constant(p.power)))])
            else:
                assert p.second is not None
                join = signed_sum if row in REFLECTIONS.get(head_of(p.first), ()) else signed_product
                again = join([(1, p.first), (p.power, p.second)])
            given = row.written(*formulas(*ARGUMENTS[: row.count])).node
            assert float(Graph(ARGUMENTS, (again,))(0.3, 0.7)) == float(Graph(ARGUMENTS, (given,))(0.3, 0.7))


@pytest.mark.parametrize("head", NEAR_ONE, ids=str)
def test_functions_near_one(head: Any) -> None:
    """By numbers of 60 digits: the half angle is no rational identity; on both sides of conditions."""
    made = Graph((U,), (NEAR_ONE[head].result(*formulas(U)).node,))
    exact = sp.lambdify(sp.Symbol("x"), head(1 + sp.Symbol("x")), "mpmath")
    for r in (1e-300, 1e-12, 0.3, 0.99, 1.01, 1.9):
        for value in (r, -r):
            with mpmath.workdps(360):
                right = exact(mpmath.mpf(value))
            if isinstance(right, mpmath.mpf):
                assert float(made(value)) == pytest.approx(float(right), rel=1e-15), value


@pytest.mark.parametrize("head", LOGARITHMS_OF, ids=str)
def test_logarithms_of_functions(head: Any) -> None:
    """The exponential of a row is the function."""
    if head is sp.erfc:  # by numbers of 30 digits
        made = Graph((U,), (LOGARITHMS_OF[head].result(*formulas(U)).node,))
        for u in (-3.0, 0.2, 0.49, 0.51, 5.0, 40.0):
            with mpmath.workdps(30):
                right = mpmath.log(mpmath.erfc(u))
            assert float(made(u)) == pytest.approx(float(right), rel=1e-15)
    else:
        assert status(apply(sp.exp, LOGARITHMS_OF[head].result(*formulas(U)).node), apply(head, U)) in (
            "proved",
            "tested",
        )


@pytest.mark.parametrize("head", EXPONENTIALS_OF, ids=str)
def test_factors_of_functions_over_sums(head: Any) -> None:
    """s exp(L) is the function: sinh(u) and exp(u) − 1."""
    assert status(*sides(EXPONENTIALS_OF[head], U)) in ("proved", "tested")


@pytest.mark.parametrize("head", GAMMA, ids=str)
def test_quotients_of_gamma_functions(head: Any) -> None:
    """The definitions of gammainc and gammaincc."""
    (row,) = PRODUCTS[head]
    made = row.result(*formulas(A, U)).node
    for a in (0.3, 1.0, 7.5):
        right = mpmath.gammainc(a, *GAMMA[head], regularized=True)
        assert float(Graph((A, U), (made,))(a, 1.5)) == pytest.approx(float(right), rel=1e-14)


@pytest.mark.sample(without=("logs",))
@pytest.mark.parametrize("name", FORMULAS)
def test_formulas_are_equal_to_their_stable_forms(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The engine as a whole: pairs, common factors, conditions; without Taylor pieces, which are rounded."""
    monkeypatch.setattr("symad.stable.rules.without_cancellation", lambda *args: None)
    value = FORMULAS[name].value
    if name == "2nthrt":  # powers of products are compared for exponents that are numbers
        value = value.subs(sp.Symbol("n", real=True), sp.Rational(7, 5))
    graph = symad.trace(value)
    made = stabilize(graph)
    if name == "2atan":  # sums of arctangents are decided by their slopes
        graph, made = (symad.gradient(g) for g in (graph, made))
    assert symad.equal(made, graph).status in ("proved", "tested")


@pytest.mark.parametrize("signs", [(1, 1), (1, -1)])
def test_rules_divide_by_no_term_that_is_zero(signs: tuple[int, int]) -> None:
    """Slopes of arrays written out in scalars hold sums with a constant 0."""
    f = symad.trace(lambda x, y: x + y, [(), ()])
    x, y = f.input_nodes
    root = power(add(mul(x, x), y), constant(Fraction(1, 2)))
    beside = [Node.of(Add(signs), (constant(0), over)) for over in (div(x, root), div(y, root), add(x, y))]
    outputs = [*beside, *[sub(div(constant(1), total), constant(1)) for total in beside]]
    for output in outputs:
        graph = Graph(f.input_nodes, (output,), f.structure, "sum")
        np.testing.assert_allclose(stabilize(graph)(1.5, 2.0), graph(1.5, 2.0), rtol=1e-14)


@pytest.mark.parametrize("sign", [1, -1])
def test_numbers_beside_quotients_by_roots(sign: int) -> None:
    """1 ± x/√(x² + y) has a conjugate; for positive terms there is nothing to do."""
    x, y = sp.symbols("x y", positive=True)
    u = sp.Symbol("u", real=True)
    graph = symad.trace(1 + sign * u / sp.sqrt(u**2 + y))
    made = stabilize(graph)
    assert float(made(-sign * 1e9, 1.0)) == pytest.approx(5e-19, rel=1e-15)
    assert symad.equal(made, graph).status in ("proved", "tested")
    positive = symad.trace(1 + sp.sqrt(x) / sp.sqrt(x + y))
    assert stabilize(positive).output_nodes == positive.output_nodes


def test_what_is_not_a_pair_stays() -> None:
    """Two inputs have no difference, and exp(u) − 1 is not exp(u)."""
    x, y = sp.symbols("x y", real=True)
    for f in (sp.sin(x) - sp.sin(y), sp.exp(x) - sp.exp(y), sp.log(x) - sp.log(y), x + sp.sqrt(x) - y):
        graph = symad.trace(f)
        assert stabilize(graph).output_nodes == graph.output_nodes
    mixed = symad.trace(sp.exp(2 * x) - expm1(x))
    assert symad.equal(stabilize(mixed), mixed).status == "proved"


@pytest.mark.parametrize("count", [2, 3, 5, 8])
def test_no_factor_is_lost_where_products_of_sums_have_many_terms(count):
    inputs = [input_node(sp.Symbol(f"t{k}", real=True)) for k in range(count)]
    sums = [(add(*[mul(constant(k + 2 + j), n) for k, n in enumerate(inputs)]), 2) for j in range(3)]
    forms = Forms()
    made = _expanded(tuple(sums), 3, forms)
    assert len(made) >= min(count, MAX_INSIDE)
    point = [0.5 + k for k in range(count)]
    expected = 3 * math.prod(sum((k + 2 + j) * t for k, t in enumerate(point)) ** 2 for j in range(3))
    assert Graph(tuple(inputs), (total(made),))(*point) == pytest.approx(expected, rel=1e-12)
