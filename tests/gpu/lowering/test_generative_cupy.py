"""Generative models, processes, regressions and residual networks in CuPy code, against NumPy code."""

from __future__ import annotations

import numpy as np
import pytest
import sympy

import symad
from symad.models.generative import gaussian_process, kernels
from symad.models.generative.autoencoder import Autoencoder, LinearAutoencoder
from symad.models.generative.diffusion import Diffusion
from symad.models.generative.gan import GAN
from symad.models.generative.vae import VAE
from symad.models.layers import regression
from symad.models.layers.parameters import trace_model
from symad.models.layers.residual import ResNet
from tests.gpu.cupy_agreement import WHERE, agree

RNG = np.random.default_rng(21)


def normal(*shape):
    return RNG.normal(size=shape)


PIXELS = RNG.uniform(0.1, 0.9, (5, 6))
CONTEST = GAN(3, 2, (4,), (4,), penalty=0.5)
CASES = {
    "vae": (VAE(6, 5, 2), "loss", (PIXELS, normal(5, 2))),
    "vae of classes": (VAE(6, 5, 2, 3), "loss", (PIXELS, normal(5, 2), np.eye(3)[[0, 1, 2, 0, 1]])),
    "linear autoencoder": (LinearAutoencoder(6, 2), "loss", (normal(5, 6),)),
    "autoencoder": (Autoencoder((6, 4, 2)), "loss", (PIXELS,)),
    "diffusion": (
        Diffusion(2, (8, 8), 4), "loss", (normal(5, 2), normal(5, 2), RNG.uniform(0.1, 0.9, 5), normal(5, 4)),
    ),
    "critic": (CONTEST, "critic_loss", (normal(5, 3), normal(5, 2), RNG.uniform(size=5))),
    "generator": (CONTEST, "generator_loss", (normal(5, 2),)),
    "resnet": (ResNet(3, 4, 5, 2, 3), "loss", (normal(5, 3), normal(5, 2))),
    "resnet, recomputed": (
        ResNet(3, 4, 5, 2, 4, memory="recompute"), "loss", (normal(5, 3), normal(5, 2)),
    ),
}  # fmt: skip


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
