"""Models whose kernel launches are counted, each as (function of the parameters and data, shapes, data)."""

from __future__ import annotations

import numpy as np

from symad.models.generative.diffusion import Diffusion
from symad.models.generative.gan import GAN
from symad.models.generative.vae import VAE
from symad.models.layers.convolutional import Classifier
from symad.models.layers.feedforward import FeedForward
from symad.models.layers.gated import FeedForwardBlock
from symad.models.layers.normalization import layer_norm
from symad.models.sequences.lstm import LSTM
from symad.models.sequences.recurrent import Recurrent
from symad.models.sequences.rnn import RNN
from symad.models.transformers.attention import MultiHead, causal_mask
from symad.models.transformers.transformer import Transformer

RNG = np.random.default_rng(2)
STEPS = 100


def normal(*shape):
    return RNG.normal(size=shape)


def of(model, loss, *data):
    return getattr(model, loss), model.shapes, data


def language(layers, **switches):
    tokens = RNG.integers(0, 50, (2, 2, 6))
    return of(Transformer(50, 6, 16, layers, 2, **switches), "loss", tokens[0], tokens[1])


HEADS, FORWARD = MultiHead(16, 2), FeedForwardBlock(16, 32)
NORMS = {f"{name}{k}": (16,) for k in (1, 2) for name in ("gamma", "beta")}


def block(p, x):
    """The mean square of the output of one transformer block with norms before its layers."""
    x = x + HEADS.apply(p, layer_norm(x, p["gamma1"], p["beta1"]), mask=causal_mask(x.shape[-2]))
    x = x + FORWARD.apply(p, layer_norm(x, p["gamma2"], p["beta2"]))
    return np.mean(x**2)


def recurrent(kind):
    """The mean squared error of the outputs of a layer in PyTorch's form."""
    layer = Recurrent(kind, 3, 8)

    def loss(p, x, y):
        return np.mean((layer.apply(p, x)[0] - y) ** 2)

    return loss, layer.shapes, (normal(STEPS, 4, 3), normal(STEPS, 4, 8))


CONTEST = GAN(3, 2, (4,), (4,))
CASES = {
    "lstm, 100 steps": of(LSTM(3, 8, 2, 1), "loss", normal(STEPS, 4, 3), normal(STEPS, 4, 2)),
    "lstm of PyTorch": recurrent("lstm"),
    "gru of PyTorch": recurrent("gru"),
    "rnn of PyTorch": recurrent("rnn"),
    "rnn, 100 steps": of(RNN(3, 8, 2), "loss", normal(STEPS, 3), normal(STEPS, 2)),
    "feedforward": of(FeedForward((3, 16, 16, 2), "gelu"), "loss", normal(5, 3), normal(5, 2)),
    "classifier": of(FeedForward((3, 16, 4)), "classification_loss", normal(5, 3), RNG.integers(0, 4, 5)),
    "images": of(Classifier(8, 1, 2, 3), "loss", normal(2, 8, 8, 1), np.array([0, 2])),
    "transformer block": (block, HEADS.shapes | FORWARD.shapes | NORMS, (normal(2, 6, 16),)),
    "language model, 1 layer": language(1),
    "language model, 2 layers": language(2),
    "language model, rotary": language(1, position="rotary", norm="rms", block="swiglu"),
    "language model, alibi": language(1, position="alibi"),
    "vae": of(VAE(6, 5, 2), "loss", RNG.uniform(0.1, 0.9, (5, 6)), normal(5, 2)),
    "gan, critic": of(CONTEST, "critic_loss", normal(5, 3), normal(5, 2), RNG.uniform(size=5)),
    "gan, generator": of(CONTEST, "generator_loss", normal(5, 2)),
    "ddpm": of(
        Diffusion(2, (8, 8), 4), "loss", normal(5, 2), normal(5, 2), RNG.uniform(0.1, 0.9, 5), normal(5, 4)
    ),
}
