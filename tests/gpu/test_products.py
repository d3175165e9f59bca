"""Loops on the device: one product a step, and new states put together where they are kept."""

import numpy as np
import pytest
import sympy as sp

import symad
from symad import functions
from symad.models.layers.parameters import trace_model
from symad.models.sequences.lstm import LSTM
from symad.models.sequences.rnn import RNN
from tests.gpu.cupy_agreement import agree


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


def launches(loop):
    """Lines that do more than name a part of an array."""
    kinds = ("_product(", "_kernel_", "cp.stack", "cp.concatenate", " + ", " * ")
    return sum(any(kind in line for kind in kinds) for line in loop)


@pytest.mark.parametrize(("model", "most"), [(LSTM(3, 16, 2, 1), (3, 5)), (RNN(3, 16, 2), (2, 3))])
def test_a_step_has_one_product(model, most):
    shapes = (5, 4, 3), (5, 4, 2)
    graph = trace_model(model.loss, model.shapes, *shapes)
    both = symad.value_and_gradient(graph, list(model.shapes))
    rng = np.random.default_rng(0)
    values = [0.5 * rng.normal(size=s) for s in (*model.shapes.values(), *shapes)]
    kernel = agree(both, values, rtol=1e-11)
    forward, backward = steps(kernel.source)
    assert products(forward) == products(backward) == 1
    assert (launches(forward), launches(backward)) <= most
    agree(both, values, "float32", 1e-3)


def test_the_inputs_of_all_steps_go_through_one_product():
    model = LSTM(3, 16, 2, 1)
    graph = trace_model(model.loss, model.shapes, (5, 4, 3), (5, 4, 2))
    rng = np.random.default_rng(1)
    values = [0.5 * rng.normal(size=s) for s in (*model.shapes.values(), (5, 4, 3), (5, 4, 2))]
    source = agree(graph, values, rtol=1e-11).source
    before = source[source.rindex("\ndef ") : source.rindex("    for ")]
    assert before.count("_product(") == 1


def test_matrices_of_their_own_are_stacked_before_the_loop():
    def f(a, b, c, x):
        states = functions.scan(
            lambda h, u: np.tanh(a @ h + u) * np.exp(-((b @ h) ** 2)) + c @ h, np.ones(4), x
        )
        return (states**2).sum()

    shapes = [(4, 4), (4, 4), (4, 4), (6, 4)]
    values = [0.4 * np.random.default_rng(2).normal(size=s) for s in shapes]
    both = symad.value_and_gradient(symad.trace(f, shapes))
    kernel = agree(both, values, rtol=1e-11)
    assert [products(loop) for loop in steps(kernel.source)] == [1, 1]


def test_lengths_that_are_symbols():
    T = sp.Symbol("T", integer=True, positive=True)
    model = LSTM(2, 3, 1, 1)
    graph = trace_model(model.loss, model.shapes, (T, 2), (T, 1))
    rng = np.random.default_rng(3)
    values = [0.5 * rng.normal(size=s) for s in (*model.shapes.values(), (4, 2), (4, 1))]
    agree(symad.value_and_gradient(graph, list(model.shapes)), values, rtol=1e-11)
