"""Derivatives printed in the literature against symad's, in float64, and exactly in Fractions.

SymPy evaluates the printed side on explicit rational matrices; symad has no part in that.
"""

from fractions import Fraction

import numpy as np
import pytest
import sympy

import symad
from tests.known.matrix_identities import IDENTITIES, MISPRINTS

NAMES = [f"{case.equation.split(',')[0]}: {case.name}" for case in IDENTITIES]


def rational_matrix(symbol):
    """A fixed rational matrix of its own for each symbol; square ones are far from singular."""
    rows, columns = map(int, symbol.shape)
    seed = sum(map(ord, symbol.name))
    return sympy.ImmutableDenseMatrix(
        rows,
        columns,
        lambda i, j: (
            sympy.Rational((7 * i + 11 * j + 13 * seed + 5 * i * j) % 17 - 8, 6)
            + (4 if i == j else 0)
        ),
    )


def point_of(graph):
    """The values of a graph's inputs."""
    return [
        sympy.Rational(1, 3) if isinstance(s, sympy.Symbol) else rational_matrix(s)
        for s in graph.inputs
    ]


def explicit(claimed, graph):
    """The claimed derivative by SymPy's own matrix arithmetic."""
    values = dict(zip(graph.inputs, point_of(graph), strict=True))
    result = claimed.subs(values).doit()
    return sympy.Matrix(result) if getattr(result, "is_Matrix", False) else sympy.Matrix([[result]])


def derivative(case):
    """Our derivative, as a graph."""
    make = {"gradient": symad.gradient, "jacobian": symad.jacobian, "hessian": symad.hessian}
    return make[case.kind](case.expression, case.wrt)


def as_array(value, dtype):
    return np.array(sympy.Matrix(value).tolist(), dtype=dtype)


def fractions_of(matrix):
    rows = [[Fraction(int(v.p), int(v.q)) for v in row] for row in sympy.Matrix(matrix).tolist()]
    return np.array(rows, dtype=object)


@pytest.mark.parametrize("case", IDENTITIES, ids=NAMES)
def test_the_printed_derivative_in_floats(case):
    graph = derivative(case)
    values = [
        float(v) if isinstance(v, sympy.Rational) else as_array(v, float) for v in point_of(graph)
    ]
    expected = as_array(explicit(case.claimed, graph).evalf(30), float)
    got = np.asarray(graph(*values)).reshape(expected.shape)
    np.testing.assert_allclose(got, expected, rtol=1e-11, atol=1e-11 * np.abs(expected).max())


@pytest.mark.parametrize(
    "case",
    [case for case in IDENTITIES if case.rational],
    ids=[name for name, case in zip(NAMES, IDENTITIES, strict=True) if case.rational],
)
def test_the_printed_derivative_exactly(case):
    graph = derivative(case)
    values = [
        Fraction(int(v.p), int(v.q)) if isinstance(v, sympy.Rational) else fractions_of(v)
        for v in point_of(graph)
    ]
    expected = fractions_of(explicit(case.claimed, graph))
    got = np.asarray(graph(*values), dtype=object).reshape(expected.shape)
    assert np.array_equal(got, expected)


@pytest.mark.parametrize("case", IDENTITIES, ids=NAMES)
def test_the_claims_are_traced_as_well(case):
    """Our evaluation of the claimed side is SymPy's: the front door reads every claim right."""
    graph = symad.trace(case.claimed, inputs=None)
    expected = as_array(explicit(case.claimed, graph).evalf(30), float)
    values = [
        float(v) if isinstance(v, sympy.Rational) else as_array(v, float) for v in point_of(graph)
    ]
    got = np.asarray(graph(*values)).reshape(expected.shape)
    np.testing.assert_allclose(got, expected, rtol=1e-11, atol=1e-11 * np.abs(expected).max())


@pytest.mark.parametrize("case", MISPRINTS, ids=lambda case: case.equation)
def test_misprints_are_told_apart(case):
    """These comparisons can fail: claims that are printed and false differ from our derivative."""
    graph = derivative(case)
    values = [fractions_of(v) for v in point_of(graph)]
    assert not np.array_equal(graph(*values), fractions_of(explicit(case.claimed, graph)))
