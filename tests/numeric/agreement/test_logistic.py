"""Derivatives of 1/(1 + exp(−x)) in compiled code: every digit, and no NaN where exp overflows."""

import mpmath
import numpy as np
import pytest
import sympy as sp
from sympy.abc import x, y

import symad
from symad.numeric import lower
from symad.numeric.compiler.c_compiler import compiler
from symad.ops.elementwise.apply import Apply
from symad.stable import stabilize

with sp.evaluate(False):
    SIGMA = 1 / (1 + sp.exp(-x))
    FUNCTIONS = {
        "alone": SIGMA + 0 * y,
        "in products and sums": sp.tanh(y * SIGMA) * SIGMA + SIGMA * y,
        "of a product": sp.sin(1 / (1 + sp.exp(x * y))) * y,
    }


@pytest.mark.skipif(compiler() is None, reason="no C compiler")
@pytest.mark.parametrize("backend", ["c", "runs"])
@pytest.mark.parametrize("derived", [symad.gradient, symad.hessian])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_derivatives_have_all_digits_everywhere(name: str, derived: object, backend: str) -> None:
    graph = derived(FUNCTIONS[name], (x, y))  # type: ignore[operator]
    kernel = lower(graph, backend=backend)
    for point in [(-800.0, 1.0), (800.0, 0.2), (-40.0, 0.5), (40.0, 0.5), (0.3, 0.7), (-300.0, -3.0)]:
        with mpmath.workdps(400):
            expected = np.array(graph(*map(mpmath.mpf, point)), dtype=float)
        got = np.array(kernel(*point))
        assert np.all(np.abs(got - expected) <= 5e-14 * np.abs(expected) + 1e-300), point


def test_no_quotient_and_no_overflowing_exponential_is_left() -> None:
    graph = stabilize(symad.gradient(FUNCTIONS["in products and sums"], (x, y)))
    heads = {n.op.head.__name__ for n in graph.nodes if isinstance(n.op, Apply)}
    assert heads == {"sigmoid", "sech", "tanh"}


def test_a_quotient_of_another_sum() -> None:
    graph = symad.trace(sp.exp(x) * y + 1 / (2 + sp.exp(x)), (x, y))
    for point in [(-800.0, 1.0), (40.0, 0.5), (709.0, 0.0), (800.0, 0.0)]:
        with mpmath.workdps(400):
            expected = float(graph(*map(mpmath.mpf, point)))
        if point[0] < 709.5:
            assert float(graph(*point)) == pytest.approx(expected, rel=1e-13)
