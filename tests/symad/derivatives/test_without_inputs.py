"""Derivatives by no inputs: matrices without columns, empty tuples, by the graph and by code."""

import numpy as np
import pytest

import symad
from symad.numeric import lower

two = symad.trace(lambda x: np.stack([x * 2.0, np.sin(x)]), [()])
one = symad.trace(lambda x: x * 2.0, [()])
constant = symad.trace(lambda: np.sum(np.ones(3)), [])


def forms(graph, *values):
    """The value by the graph, and by each way to print it."""
    yield graph(*values)
    for options in ({}, {"backend": "c"}, {"style": "plain"}):
        yield lower(graph, **options)(*values)


@pytest.mark.parametrize("mode", ["auto", "forward", "reverse"])
def test_jacobians_have_no_columns(mode):
    assert [np.shape(v) for v in forms(symad.jacobian(two, [], mode=mode), 1.0)] == [(2, 0)] * 4
    assert [np.shape(v) for v in forms(symad.jacobian(constant, mode=mode))] == [(1, 0)] * 4


@pytest.mark.parametrize(
    "mode", ["forward-over-reverse", "forward-over-forward", "reverse-over-forward", "reverse-over-reverse"]
)
def test_hessians_are_empty(mode):
    assert [np.shape(v) for v in forms(symad.hessian(one, [], mode=mode), 1.0)] == [(0, 0)] * 4
    assert [np.shape(v) for v in forms(symad.hessian(constant, mode=mode))] == [(0, 0)] * 4


@pytest.mark.thorough
def test_gradients_and_products_are_empty_tuples():
    assert [*forms(symad.gradient(constant))] == [()] * 4
    assert [*forms(symad.gradient(one, []), 1.0)] == [()] * 4
    assert [*forms(symad.hvp(one, []), 1.0)] == [()] * 4
    for value in forms(symad.value_and_gradient(one, []), 1.0):
        assert len(value) == 1 and value[0] == 2.0
