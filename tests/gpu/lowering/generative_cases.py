"""Generative models and regressions with losses and small data."""

from __future__ import annotations

import numpy as np

from symad.models.generative.autoencoder import Autoencoder, LinearAutoencoder
from symad.models.generative.diffusion import Diffusion
from symad.models.generative.gan import GAN
from symad.models.generative.vae import VAE
from symad.models.layers.residual import ResNet

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
