"""Models, one in each file, as SymPy mathematics: the function, its loss, its parameters.

`layers` is the start: what networks are built of. `sequences` has recurrent and autoregressive models,
`transformers` attention, `generative` VAE, GAN, diffusion and kernels. A model's functions return SymPy
expressions in symbols whose sizes may be symbols too; `symad.trace`, `symad.gradient`, `symad.check` and
`symad.numeric.lower` accept them directly.
"""

from __future__ import annotations

from symad.models import costs
from symad.models.generative import (
    autoencoder,
    diffusion,
    divergences,
    gan,
    gaussian_process,
    kernels,
    measures,
    named_kernels,
    sampling,
    vae,
)
from symad.models.layers import (
    activations,
    convolution,
    convolutional,
    feedforward,
    gated,
    linear_unit,
    losses,
    margin_losses,
    maximum,
    neural_ode,
    normalization,
    parameters,
    pointwise_losses,
    regression,
    residual,
    reversible,
    scalar_products,
    soft,
    two_layer,
)
from symad.models.sequences import (
    alignment,
    ar,
    arma,
    arx,
    ctc,
    deer,
    dynamics,
    embedding,
    encoder_decoder,
    lstm,
    neural_ar,
    ngram,
    recurrent,
    rnn,
    state_space,
    tcn,
    tokenization,
)
from symad.models.transformers import (
    adaptation,
    attention,
    encoder_decoder_transformer,
    encoder_only,
    generation,
    positions,
    presets,
    state_dicts,
    tasks,
    transformer,
)

# fmt: off
__all__ = [
    "activations", "adaptation", "alignment", "ar", "arma", "arx", "attention", "autoencoder", "convolution",
    "convolutional", "costs", "ctc", "deer", "diffusion", "divergences", "dynamics", "embedding",
    "encoder_decoder", "encoder_decoder_transformer", "encoder_only", "feedforward", "gan", "gated",
    "gaussian_process", "generation", "kernels", "linear_unit", "losses", "lstm", "margin_losses", "maximum",
    "measures", "named_kernels", "neural_ar", "neural_ode", "ngram", "normalization", "parameters",
    "pointwise_losses", "positions", "presets", "recurrent", "regression", "residual", "reversible", "rnn",
    "sampling", "scalar_products", "soft", "state_dicts", "state_space", "tasks", "tcn", "tokenization",
    "transformer", "two_layer", "vae",
]
