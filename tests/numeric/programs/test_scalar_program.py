"""The text of straight-line scalar code: values that are read once are inlined, others have names."""

import re
from itertools import pairwise

import numpy as np
import pytest
import sympy as sp
from sympy.abc import x, y, z

import symad
from symad.numeric import lower
from symad.sympy_functions.scalar_functions import gelu, logcosh, relu, silu, softplus


def body(f: object) -> str:
    """The source of the function `_body`."""
    source = lower(f).source
    return source[source.index("def _body") : source.index("# One body")]


def test_values_used_once_are_written_where_they_are_used() -> None:
    text = body(sp.sin(x * y) + sp.exp(z) / 3)
    assert text.count(" = ") == 1 and "sin(x*y)" in text


def test_a_base_that_is_multiplied_by_itself_is_computed_once() -> None:
    text = body((x + y) ** 3 + sp.sqrt(1 + z) ** 3)
    assert len(re.findall(r"x \+ y|y \+ x", text)) == 1 and text.count("1.0 + z") == 1
    values = 0.3, 0.4, 2.0
    assert lower((x + y) ** 3 + sp.sqrt(1 + z) ** 3)(*values) == pytest.approx(0.343 + 27**0.5, rel=1e-15)


def test_integers_are_written_as_floats_and_long_expressions_get_names() -> None:
    assert "2.0*x" in body(2 * x * sp.sin(y))
    chain = x
    for k in range(200):
        chain = sp.sin(chain * sp.Float(k + 0.5), evaluate=False)
    longest = max(len(line) for line in body(chain).splitlines())
    assert longest < 200
    expected = 0.7
    for k in range(200):
        expected = float(np.sin(expected * (k + 0.5)))
    assert lower(chain)(0.7) == pytest.approx(expected, rel=1e-12)


@pytest.mark.thorough
def test_many_scalars_from_runs_are_floats_at_a_point_and_arrays_over_a_batch() -> None:
    xs = sp.symbols("x:400", real=True)
    terms = [100 * (b - a**2) ** 2 + (1 - a) ** 2 for a, b in pairwise(xs)]
    kernel = lower(symad.gradient(sp.Add(*terms), xs))
    assert "_results(" in kernel.source
    point = np.linspace(-1, 1, 400)
    inner = 200 * (point[1:-1] - point[:-2] ** 2) - 2 * (1 - point[1:-1])
    inner -= 400 * point[1:-1] * (point[2:] - point[1:-1] ** 2)
    single = kernel(*point.tolist())
    assert all(type(v) is float for v in single) and np.allclose(single[1:-1], inner, rtol=1e-12)
    assert np.allclose(kernel(*map(np.float64, point))[1:-1], inner, rtol=1e-12)
    many = kernel(*np.stack([point, point], axis=1))
    assert many[1].shape == (2,) and np.allclose(np.stack(many[1:-1])[:, 1], inner, rtol=1e-12)
    across = kernel(*np.repeat(point[:, None], 700, axis=1))  # more points than one piece
    assert np.array_equal(across[5], np.full(700, single[5])) and across[1].shape == (700,)
    single_precision = lower(symad.gradient(sp.Add(*terms), xs), dtype="float32")(*point.tolist())
    assert type(single_precision[3]) is np.float32


AT_A_POINT = {
    **{f: f(x) for f in (sp.sec, sp.csc, sp.cot, sp.sech, sp.csch, sp.coth, sp.asech, sp.asec, sp.acot)},
    **{f: f(x) for f in (sp.erf, sp.erfc, sp.gamma, sp.sinc)},
    relu: sp.Max(x, 0),
    silu: x / (1 + sp.exp(-x)),
    softplus: sp.log(1 + sp.exp(x)),
    gelu: x * sp.erfc(-x / sp.sqrt(2)) / 2,
    logcosh: sp.log(sp.cosh(x)),
}
"""Functions with their definitions."""


@pytest.mark.parametrize("head", AT_A_POINT)
def test_a_point_needs_no_function_of_numpy(head) -> None:
    kernel = lower(head(x))
    (bound,) = (line for line in kernel.source.splitlines() if line.startswith("_at_point"))
    assert "np." not in bound and "scipy" not in bound
    for value in (0.75, -0.75, 5.5, -5.5, 1.25):
        exact = AT_A_POINT[head].subs(x, sp.Rational(value)).evalf(30)
        if exact.is_real and exact.is_finite:
            assert kernel(value) == pytest.approx(float(exact), rel=1e-14)
            np.testing.assert_allclose(kernel(np.array([value])), [float(exact)], rtol=1e-14)


def test_where_a_point_overflows_numpy_answers() -> None:
    assert lower(sp.sech(x))(800.0) == 0.0
    assert lower(silu(x))(-800.0) == 0.0
    assert lower(sp.gamma(x))(200.0) == np.inf
    assert lower(sp.csc(x))(0.0) == np.inf
    assert np.isnan(lower(relu(x))(np.nan)) and np.isnan(lower(softplus(x))(np.nan))
