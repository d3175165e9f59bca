"""Values used under conditions: tangents are masked exactly where they may be undefined."""

import numpy as np
import pytest
import sympy as sp

import symad
from symad.derivatives.hessian import MODES
from symad.numeric import lower

x = sp.Symbol("x", real=True)


def test_a_contraction_used_under_a_condition_on_its_elements():
    def masked(a, b):
        return np.where(np.tril(np.ones((2, 2))) > 0, a @ b, 0.0)

    a, b = np.array([[1.0, 2, 3], [4, 5, 6]]), np.array([[1.0, 0], [2, 1], [0, 3]])
    found = symad.jacobian(symad.trace(masked, [(2, 3), (3, 2)]), "a")(a, b)
    expected = np.zeros((2, 2, 2, 3))
    expected[0, 0, 0], expected[1, 0, 1], expected[1, 1, 1] = b[:, 0], b[:, 0], b[:, 1]
    np.testing.assert_array_equal(found, expected.reshape(4, 6))


PIECES = {
    "one": (sp.Piecewise((x**2, x > 0)), {-1.0: None, 2.0: (4, 4, 2)}),
    "two": (sp.Piecewise((x**2, x > 1), (x**3, x > 0)), {-1.0: None, 0.5: (0.125, 0.75, 3), 2.0: (4, 4, 2)}),
    "a constant": (sp.Piecewise((x**2, x > 1), (5, x > 0)), {-1.0: None, 0.5: (5, 0, 0), 2.0: (4, 4, 2)}),
    "inside": (
        sp.Piecewise((sp.Piecewise((x**2, x > 0)), x < 3), (x, True)),
        {-1.0: None, 1.0: (1, 2, 2), 4.0: (4, 1, 0)},
    ),
    "a line": (sp.Piecewise((x, x > 0)), {-1.0: None, 2.0: (2, 1, 0)}),
    "a number": (sp.Piecewise((1, x > 0)), {-1.0: None, 2.0: (1, 0, 0)}),
    "two numbers": (sp.Piecewise((1, x > 1), (2, x > 0)), {-1.0: None, 0.5: (2, 0, 0), 2.0: (1, 0, 0)}),
    "a logarithm": (sp.Piecewise((sp.log(x), x > 1), (x, x < 0)), {0.5: None, 0.0: None, -1.0: (-1, 1, 0)}),
    "a factor": (x * sp.Piecewise((x**2, x > 0)) + x, {-1.0: None, 1.0: (2, 4, 6)}),
}


def lowered(graph, backend):
    if backend == "plain":
        return lower(graph, style="plain")
    return graph if backend == "graph" else lower(graph, backend)


@pytest.mark.sample(4)
@pytest.mark.parametrize("backend", ["graph", "numpy", "c", "plain"])
@pytest.mark.parametrize("name", PIECES)
def test_undefined_regions_stay_undefined(name: str, backend: str) -> None:
    f, points = PIECES[name]
    graphs = [symad.trace(f), symad.gradient(f, x), symad.gradient(f, x, mode="forward")]
    graphs += [symad.hessian(f, mode=mode) for mode in MODES]
    for point, right in points.items():
        value, slope, curvature = right or (np.nan,) * 3
        for graph, expected in zip(graphs, [value, slope, slope, *[curvature] * 4], strict=True):
            made = lowered(graph, backend)(point)
            np.testing.assert_array_equal(np.ravel(made)[0], expected)
    assert symad.check(f).status in ("proved", "tested")


def test_slopes_by_what_only_a_condition_holds_are_undefined_too():
    y = sp.Symbol("y", real=True)
    f = sp.Piecewise((y**2, x > 1), (5, x > 0))
    for wrt in ([x, y], [y], [x]):
        for mode in ("reverse", "forward"):
            graph = symad.gradient(symad.trace(f, inputs=[x, y]), wrt, mode=mode)
            assert np.isnan(graph(-1.0, 3.0)).all()
            assert np.isnan(lower(graph)(-1.0, 3.0)).all()
            assert np.isfinite(graph(0.5, 3.0)).all()
    second = symad.hessian(f, mode="reverse-over-reverse")
    assert np.isnan(second(-1.0, 3.0)).all()
    np.testing.assert_array_equal(second(2.0, 3.0), [[0, 0], [0, 2]])


def test_undefined_regions_of_array_elements():
    a, i = sp.IndexedBase("a", real=True), sp.Symbol("i", integer=True)
    total = sp.Sum(sp.Piecewise((a[i] ** 2, a[i] > 0)), (i, 0, 2))
    graph = symad.trace(total, inputs=[a])
    slopes = symad.gradient(graph, wrt=0)
    for f in (slopes, lower(slopes), lower(slopes, style="plain"), lower(slopes, "c")):
        np.testing.assert_array_equal(f(np.array([1.0, -1.0, 2.0])), [2.0, np.nan, 4.0])


def test_dual_and_exact_numbers_have_no_value_there_either():
    from fractions import Fraction

    import mpmath

    from symad.errors import EvaluationError

    graph = symad.trace(sp.Piecewise((x**2, x > 0)))
    assert graph(Fraction(1, 3)) == Fraction(1, 9)
    with pytest.raises(EvaluationError, match="undefined"):
        graph(Fraction(-1, 3))
    assert mpmath.isnan(graph(mpmath.mpf(-1)))
    made = graph(symad.Dual(-1.0, 1.0))
    assert np.isnan(made.value) and np.isnan(made.tangent)
