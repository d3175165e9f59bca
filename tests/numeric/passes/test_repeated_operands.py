"""Statements in place must not overwrite an operand that a later step of the same node reads."""

import numpy as np
import pytest

import symad
from symad.numeric import lower

POINT = np.linspace(0.3, 2.1, 7)

CASES = {
    "a quotient by a square": lambda x: x / (1 + x**2) / (1 + x**2),
    "a cube of a new array": lambda x: np.sin(x) * np.sin(x) * np.sin(x),
    "one over an array twice": lambda x: 1 / np.exp(x) / np.exp(x),
    "a number and a square": lambda x: 3 * np.exp(x) * np.exp(x),
    "two ends of one array": lambda x: np.cos(x)[1:] * np.cos(x)[:-1] * x[1:],
    "a sum with repetition": lambda x: np.exp(x)[1:] - np.exp(x)[:-1] - 2 * np.exp(x)[1:],
    "an array and its reverse": lambda x: np.tanh(x) * x * np.tanh(x)[::-1],
}


@pytest.mark.parametrize("name", CASES)
def test_values_and_derivatives(name):
    f = CASES[name]
    graph = symad.trace(f, [(7,)])
    np.testing.assert_allclose(lower(graph)(POINT), f(POINT), rtol=1e-14)
    for derivative in (symad.jacobian(graph), symad.jacobian(graph, sparse=True)):
        value = lower(derivative)(POINT)
        dense = value.toarray() if hasattr(value, "toarray") else value
        step = 1e-6 * np.eye(7)
        difference = np.array([(f(POINT + e) - f(POINT - e)) / 2e-6 for e in step]).T
        np.testing.assert_allclose(dense, difference, rtol=1e-7, atol=1e-7)
