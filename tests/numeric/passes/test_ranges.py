"""Integrals, sums and products whose bounds are arguments: against mpmath and SymPy."""

import json
import pickle
import runpy
from fractions import Fraction

import mpmath
import numpy as np
import pytest
import sympy as sp

import symad
from symad.errors import SavingError
from symad.numeric import lower
from symad.saving.save_load import dumps, loads

x, y, p = sp.symbols("x y p", real=True)
i, j, n, m = sp.symbols("i j n m", integer=True)
a = sp.IndexedBase("a")
bell = sp.Integral(sp.exp(-p * x**2), (x, y, sp.oo))
series = sp.Sum(x**i / i**2, (i, m, n))
factors = sp.Product(1 + x / i, (i, m, n))


def by_mpmath(function, point, order):
    with mpmath.workdps(50):
        return float(mpmath.diff(function, tuple(map(mpmath.mpf, point)), order))


REFERENCES = {
    "integral": (
        bell, [y, p], (0.3, 0.7),
        lambda y, p: mpmath.sqrt(mpmath.pi / p) / 2 * mpmath.erfc(mpmath.sqrt(p) * y),
    ),
    "singular at an end": (
        sp.Integral(sp.log(x) * sp.exp(-p * x), (x, 0, 1)), [p], (0.7,),
        lambda p: mpmath.quad(lambda s: mpmath.log(s) * mpmath.exp(-p * s), [0, 1]),
    ),
    "double integral": (
        sp.Integral(sp.exp(-p * x * y), (x, 0, y), (y, 0, 1)), [p], (1.3,),
        lambda p: mpmath.quad(lambda s: (1 - mpmath.exp(-p * s * s)) / (p * s), [0, 1]),
    ),
    "both bounds": (
        sp.Integral(sp.sin(p * x), (x, y, p)), [y, p], (0.3, 1.7),
        lambda y, p: (mpmath.cos(p * y) - mpmath.cos(p * p)) / p,
    ),
}  # fmt: skip


@pytest.mark.parametrize("backend", ["numpy", "c", "runs"])
@pytest.mark.parametrize("case", REFERENCES)
def test_integrals(case, backend):
    expression, inputs, point, reference = REFERENCES[case]
    zero = (0,) * len(point)
    value = lower(expression, backend, inputs=inputs)(*point)
    assert value == pytest.approx(by_mpmath(reference, point, zero), rel=1e-12)
    slopes = lower(symad.gradient(expression, inputs, inputs=inputs), backend)(*point)
    for k, slope in enumerate(slopes):
        order = tuple(int(k == other) for other in range(len(point)))
        assert slope == pytest.approx(by_mpmath(reference, point, order), rel=1e-11)


def test_second_derivatives_of_integrals():
    found = symad.hessian(bell, inputs=[y, p])(0.3, 0.7)
    reference = REFERENCES["integral"][3]
    orders = [[(2, 0), (1, 1)], [(1, 1), (0, 2)]]
    wanted = [[by_mpmath(reference, (0.3, 0.7), order) for order in row] for row in orders]
    np.testing.assert_allclose(found, wanted, rtol=1e-10)


def test_what_does_not_converge_has_no_value():
    kernel = lower(sp.Integral(1 / x**p, (x, 0, 1)), inputs=[p])
    assert kernel(0.5) == pytest.approx(2, rel=1e-10)
    assert np.isnan(kernel(1.0))
    odd = lower(sp.Integral(x**3, (x, -y, y)), inputs=[y])
    assert odd(2.0) == pytest.approx(0, abs=1e-12)


@pytest.mark.parametrize("backend", ["numpy", "c"])
@pytest.mark.parametrize("expression", [series, factors], ids=["sum", "product"])
@pytest.mark.parametrize("bounds", [(1, 6), (2, 2), (3, 2), (7, 2)], ids=str)
def test_sums_and_products(expression, bounds, backend):
    """Ranges that are empty or run backwards mean what SymPy makes of them."""
    written = expression.subs(dict(zip((m, n), bounds, strict=True))).doit()
    point = (0.3, *map(float, bounds))
    value = lower(expression, backend, inputs=[x, m, n])(*point)
    assert value == pytest.approx(float(written.subs(x, 0.3)), rel=1e-14)
    slope, *others = lower(symad.gradient(expression, inputs=[x, m, n]), backend)(*point)
    assert slope == pytest.approx(float(written.diff(x).subs(x, 0.3)), rel=1e-13)
    assert others == [0, 0]


def test_a_product_with_a_factor_of_zero():
    expression = sp.Product(x - i, (i, 1, n))
    written = sp.prod([x - k for k in range(1, 6)])
    for order in (1, 2):
        derivative = symad.gradient(expression, inputs=[x, n], wrt=x)
        wanted = written.diff(x, order).subs(x, 3)
        graph = derivative if order == 1 else symad.gradient(derivative, wrt="x")
        assert lower(graph)(3.0, 5) == pytest.approx(float(wanted), rel=1e-13)


def test_nested_ranges():
    expression = sp.Sum(sp.Sum(x ** (i * j), (j, 0, i)), (i, 0, n))
    wanted = sum(x ** (k * h) for k in range(5) for h in range(k + 1))
    assert lower(expression, inputs=[x, n])(0.7, 4) == pytest.approx(float(wanted.subs(x, 0.7)), rel=1e-14)
    slope = lower(symad.gradient(expression, x, inputs=[x, n]))(0.7, 4)
    assert slope == pytest.approx(float(wanted.diff(x).subs(x, 0.7)), rel=1e-14)


def test_exact_numbers_arrays_and_files(tmp_path):
    graph = symad.trace(sp.Sum(x**i / i, (i, 1, n)), [x, n])
    assert graph(Fraction(1, 3), 4) == Fraction(131, 324)
    assert sp.expand(symad.to_sympy(graph).subs(n, 2).doit() - x - x**2 / 2) == 0
    kernel = lower(graph)
    found = kernel(np.array([0.5, 2.0]), np.array([2, 3]))
    np.testing.assert_allclose(found, [0.625, 2 + 2 + 8 / 3], rtol=1e-14)
    kernel.save(tmp_path / "series.py")
    assert runpy.run_path(str(tmp_path / "series.py"))["f"](0.5, 2) == 0.625
    with pytest.raises(ValueError, match="not whole"):
        lower(sp.Sum(x**i, (i, 1, y)), inputs=[x, y])(0.5, 2.5)


def test_parts_of_arrays():
    expression = sp.Sum(a[i] * x**i, (i, m, n))
    given = np.array([1.0, 2.0, 3.0, 4.0])
    kernel = lower(expression, inputs=[a, x, m, n])
    assert kernel(given, 0.5, 1, 2) == 2 * 0.5 + 3 * 0.25
    assert kernel(given, 0.5, 2, 1) == 0
    assert np.isnan(kernel(given, 0.5, 1, 4)) and np.isnan(kernel(given, 0.5, -1, 2))
    bars = lower(symad.gradient(expression, (a, x), inputs=[a, x, m, n]))(given, 0.5, 1, 2)
    np.testing.assert_allclose(bars[0], [0, 0.5, 0.25, 0])
    assert bars[1] == 2 + 2 * 3 * 0.5
    shifted = lower(sp.Product(a[i - 1], (i, m, n)), inputs=[a, m, n])
    assert shifted(given, 2, 4) == 24 and np.isnan(shifted(given, 0, 2))


def test_the_slope_of_one_element_at_a_place_that_is_an_argument():
    np.testing.assert_array_equal(lower(symad.gradient(a[n], a, inputs=[a, n]))(np.arange(3.0), 1), [0, 1, 0])


def test_derivatives_that_are_not_evaluated():
    kernel = lower(sp.Derivative(sp.sin(x * y), (x, 2), y, evaluate=False), inputs=[x, y])
    wanted = sp.diff(sp.sin(x * y), x, x, y).subs({x: 0.3, y: 0.7})
    assert kernel(0.3, 0.7) == pytest.approx(float(wanted), rel=1e-14)
    slope = lower(sp.Derivative(sp.zeta(x), x), inputs=[x])(3.0)
    assert slope == pytest.approx(float(mpmath.zeta(3, 1, 1)), rel=1e-12)


@pytest.mark.parametrize("expression", [bell, series, factors], ids=["integral", "sum", "product"])
def test_there_is_no_certificate(expression):
    for made in (
        symad.check(expression),
        symad.equal(expression, expression + 1),
        symad.verify(expression, sorted(expression.free_symbols, key=str)[0], gradient=expression),
    ):
        assert made.status == "undecided" and "numbers alone" in " ".join(str(made).split())


@pytest.mark.parametrize(
    ("expression", "inputs", "point"),
    [(bell, [y, p], (0.3, 0.7)), (series, [x, m, n], (0.4, 1, 9)), (factors, [x, m, n], (0.4, 1, 9))],
    ids=["integral", "sum", "product"],
)
def test_ranges_are_saved_and_pickled(expression, inputs, point):
    graph = symad.gradient(expression, inputs[0], inputs=inputs)
    expected = graph(*point)
    pickled = (pickle.loads(pickle.dumps(v)) for v in (graph, lower(graph)))
    for copied in (loads(dumps(graph)), *pickled):
        assert copied(*point) == pytest.approx(expected, rel=1e-12)
    again = symad.gradient(loads(dumps(graph)), str(inputs[0]))  # its derivatives are known, too
    assert again(*point) == pytest.approx(symad.gradient(graph, inputs[0])(*point), rel=1e-12)


@pytest.mark.parametrize("damage", ["kind", "no variable", "an array"])
def test_damaged_ranges_are_refused(damage):
    document = json.loads(dumps(symad.trace(series, inputs=[x, m, n])))
    (field,) = [f for node in document["nodes"] for f in node[1] if isinstance(f, list) and f[0] == "range"]
    if damage == "kind":
        field[1] = "eval"
    elif damage == "no variable":
        field[2]["inputs"] = []
    else:
        body = symad.trace(lambda v: v, [(3,)])
        field[2] = {k: v for k, v in json.loads(dumps(body)).items() if k not in ("format", "version")}
    with pytest.raises(SavingError):
        loads(json.dumps(document))


def test_an_exact_sum_is_not_written_out_when_it_is_long():
    (node,) = symad.trace(series, inputs=[x, m, n]).output_nodes
    half = sp.Rational(1, 2)
    assert node.op.head(1, 3, half) == half + half**2 / 4 + half**3 / 9
    assert not node.op.head(1, 10**12, half).is_Rational
