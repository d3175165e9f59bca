"""Loops with one matrix product a step stay loops; loops that become one kernel: `test_recurrences`."""

import numpy as np
import pytest
import sympy as sp

import symad
from symad import functions
from symad.models.layers.parameters import trace_model
from symad.models.sequences.lstm import LSTM
from tests.gpu.cupy_agreement import agree

pytestmark = pytest.mark.thorough


def steps(source):
    """The bodies of the loops over time, as lists of lines."""
    lines = source[source.rindex("\ndef ") :].split("\n")
    loops, inside = [], False
    for line in lines:
        if line.startswith("    for "):
            loops.append([])
            inside = True
        elif inside and line.startswith("        "):
            loops[-1].append(line.strip())
        else:
            inside = False
    return loops


def products(loop):
    return sum(line.count("_product(") for line in loop)


def test_matrices_of_their_own_are_one_product_each():
    """Loops that are no kernels launch each product of a step by itself."""
    def f(a, b, c, x):
        def step(h, u):  # with a softmax it stays a loop
            return np.tanh(a @ h + u) * np.exp(-((b @ h) ** 2)) + functions.softmax(c @ h)

        return (functions.scan(step, np.ones(4), x) ** 2).sum()

    shapes = [(4, 4), (4, 4), (4, 4), (6, 4)]
    values = [0.4 * np.random.default_rng(2).normal(size=s) for s in shapes]
    both = symad.value_and_gradient(symad.trace(f, shapes))
    kernel = agree(both, values, rtol=1e-11)
    assert [products(loop) for loop in steps(kernel.source)] == [3, 3]


def test_lengths_that_are_symbols():
    T = sp.Symbol("T", integer=True, positive=True)
    model = LSTM(2, 3, 1, 1)
    graph = trace_model(model.loss, model.shapes, (T, 2), (T, 1))
    rng = np.random.default_rng(3)
    values = [0.5 * rng.normal(size=s) for s in (*model.shapes.values(), (4, 2), (4, 1))]
    agree(symad.value_and_gradient(graph, list(model.shapes)), values, rtol=1e-11)
