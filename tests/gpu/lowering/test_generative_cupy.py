"""Generative models, processes, regressions and residual networks in CuPy code, against NumPy code."""

from __future__ import annotations

import numpy as np
import pytest
import sympy

import symad
from symad.models.generative import gaussian_process, kernels
from symad.models.layers import regression
from symad.models.layers.parameters import trace_model
from tests.gpu.cupy_agreement import WHERE, agree
from tests.gpu.lowering.generative_cases import CASES, RNG, normal  # noqa: F401  (the numbers of each test are its own)


@pytest.mark.thorough
@pytest.mark.parametrize("where", WHERE)
@pytest.mark.parametrize("name", CASES)
def test_loss_and_gradients(name, where):
    model, loss, data = CASES[name]
    graph = trace_model(getattr(model, loss), model.shapes, *data)
    parameters = [0.5 * normal(*shape) for shape in model.shapes.values()]
    both = symad.value_and_gradient(graph, list(model.shapes))
    agree(both, [*parameters, *data], "float64", 1e-9, where)
    agree(both, [*parameters, *data], "float32", 2e-3, where)


@pytest.mark.parametrize("where", WHERE)
def test_gaussian_process(where):
    length = sympy.Symbol("length", positive=True)
    graph = gaussian_process.log_likelihood(sympy.exp(-kernels.r2 / (2 * length**2)))
    values = [np.array([0.1, -1.0]), normal(6, 2), normal(6)]
    agree(symad.value_and_gradient(graph), values, "float64", 1e-8, where)


@pytest.mark.parametrize("where", WHERE)
@pytest.mark.parametrize("loss", [regression.least_squares_loss, regression.logistic_loss])
def test_regressions(loss, where):
    graph = symad.value_and_gradient(symad.trace(loss()))
    sizes = {d: 4 + k for k, d in enumerate(sorted(graph.dims, key=str))}
    bound = graph.at(sizes)
    values = [0.5 + 0.1 * normal(*node.shape) for node in bound.input_nodes]
    agree(bound, values, "float64", 1e-10, where)
