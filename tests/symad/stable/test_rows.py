"""Every row of the tables is equal to what it replaces, with its condition, by the library's own checker."""

from fractions import Fraction
from typing import Any

import mpmath
import pytest
import sympy as sp
from sympy.codegen.cfunctions import expm1

import symad
from benchmarks.scalar.bench_lost_bits import FORMULAS
from symad.core.graph import Graph, Node
from symad.ops.basic.arithmetic import Add, add, mul, neg, signed_product, signed_sum, sub
from symad.ops.basic.sources import constant, input_node
from symad.ops.elementwise.apply import apply
from symad.ops.elementwise.powers import power
from symad.stable import stabilize
from symad.stable.formulas import Formula
from symad.stable.products import PRODUCTS, Product
from symad.stable.secants import COMPLEMENTS, REFLECTIONS, SECANTS, guarded, power_secant

A, U, V = (input_node(sp.Symbol(name, real=True)) for name in "auv")
TESTED = {
    "log": "logarithms of products",
    "sin": "half angles",
    "cos": "half angles",
    "sec": "half angles",
    "7/5": "logarithms of products",
    "erfc": "roots of π",
}
"""Rows whose equality is tested at random points modulo primes, since no proof is known."""


def status(made: Node, written: Node) -> str:
    return symad.equal(Graph((A, U, V), (made,)), Graph((A, U, V), (written,))).status


def expected(name: str) -> tuple[str, ...]:
    return ("proved", "tested") if name in TESTED else ("proved",)


@pytest.mark.parametrize("head", [h for h in SECANTS if h is not sp.atan], ids=str)
def test_differences_of_a_function(head: Any) -> None:
    written = sub(apply(head, U), apply(head, V))
    assert status(guarded(SECANTS[head], U, V, sub(U, V), written), written) in expected(str(head))


def test_the_difference_of_arctangents() -> None:
    """Its slopes are equal, and it is 0 for u = v, which the region 1 + u v > 0 is connected to."""
    u, v = sp.symbols("u v", real=True)
    made = sp.atan((u - v) / (1 + u * v))
    for s, slope in ((u, 1 / (1 + u**2)), (v, -1 / (1 + v**2))):
        assert symad.verify(made, s, gradient=slope).status == "proved"
    assert made.subs(u, v) == 0
    row = SECANTS[sp.atan]
    graph = Graph((U, V), (guarded(row, U, V, sub(U, V), sub(apply(sp.atan, U), apply(sp.atan, V))),))
    for p, q in ((3.0, -3.9), (-3.0, 3.9), (2.0, -0.5), (1e150, 1e149), (0.3, 0.2), (-4.0, -5.0), (0.0, 0.0)):
        with mpmath.workdps(400):
            right = float(mpmath.atan(p) - mpmath.atan(q))
        assert float(graph(p, q)) == pytest.approx(right, rel=1e-15, abs=1e-300)


@pytest.mark.parametrize("p", [Fraction(n, q) for n, q in ((1, 2), (1, 3), (3, 2), (5, 3), (7, 5))], ids=str)
def test_differences_of_powers(p: Fraction) -> None:
    written = sub(*(power(x, constant(p)) for x in (U, V)))
    assert status(guarded(power_secant(p), U, V, sub(U, V), written), written) in expected(str(p))


@pytest.mark.parametrize("head", COMPLEMENTS, ids=str)
def test_numbers_and_functions(head: Any) -> None:
    for row in COMPLEMENTS[head]:
        value = power(apply(head, U), constant(row.power))
        written = signed_sum([(1, constant(row.number)), (row.sign, value)])
        assert status(row.form(Formula(U)).node, written) in expected(str(head)), row


@pytest.mark.parametrize("head", REFLECTIONS, ids=str)
def test_reflections(head: Any) -> None:
    for row in REFLECTIONS[head]:
        written = signed_sum([(1, apply(head, U)), (row.sign, apply(head, neg(U)))])
        assert status(row.form(Formula(U)).node, written) == "proved", row


def arguments(row: Product) -> tuple[tuple[Node, ...], tuple[Node, ...]]:
    """Arguments that are related as the row needs."""
    tries = [(U, U), (neg(V), V), (mul(constant(2), V), V), (neg(power(V, constant(2))), V)]
    return next(((u,), (v,)) for u, v in tries if row.form((u,), (v,)) is not None)


GAMMA = {sp.lowergamma: (0, 1.5), sp.uppergamma: (1.5, mpmath.inf)}


@pytest.mark.parametrize("head", GAMMA, ids=str)
def test_quotients_of_gamma_functions(head: Any) -> None:
    """The definitions of gammainc and gammaincc."""
    (row,) = PRODUCTS[head]
    made = row.form((A, U), (A,))
    assert made is not None
    for a in (0.3, 1.0, 7.5):
        right = mpmath.gammainc(a, *GAMMA[head], regularized=True)
        assert float(Graph((A, U), (made,))(a, 1.5)) == pytest.approx(float(right), rel=1e-14)


@pytest.mark.parametrize("head", [h for h in PRODUCTS if h not in GAMMA], ids=str)
def test_products(head: Any) -> None:
    for row in PRODUCTS[head]:
        u, v = arguments(row)
        other = add(constant(1), apply(sp.exp, *v)) if row.other is Add else apply(row.other, *v)
        made, written = row.form(u, v), signed_product([(1, apply(head, *u)), (row.power, other)])
        assert made is not None
        assert status(made, written) in {*expected(str(head)), *expected(str(row.other))}, row


@pytest.mark.sample(without=("logs",))
@pytest.mark.parametrize("name", FORMULAS)
def test_formulas_are_equal_to_their_stable_forms(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The engine as a whole: pairs, common factors, conditions; without Taylor pieces, which are rounded."""
    monkeypatch.setattr("symad.stable.rules.without_cancellation", lambda *args: None)
    graph = symad.trace(FORMULAS[name].value)
    made = stabilize(graph)
    if name == "2atan":  # sums of arctangents are decided by their slopes
        graph, made = (symad.gradient(g) for g in (graph, made))
    assert symad.equal(made, graph).status in ("proved", "tested")


def test_what_is_not_a_pair_stays() -> None:
    """Two inputs have no difference, and exp(u) − 1 is not exp(u)."""
    x, y = sp.symbols("x y", real=True)
    for f in (sp.sin(x) - sp.sin(y), sp.exp(x) - sp.exp(y), sp.log(x) - sp.log(y), x + sp.sqrt(x) - y):
        graph = symad.trace(f)
        assert stabilize(graph).output_nodes == graph.output_nodes
    mixed = symad.trace(sp.exp(2 * x) - expm1(x))
    assert symad.equal(stabilize(mixed), mixed).status == "proved"
