"""Activations by name, for arrays and traced values.

tanh x; relu max(x, 0); sigmoid 1/(1 + e^{-x}); gelu x Φ(x); silu x σ(x); softplus log(1 + e^x);
leaky_relu x or a x where x < 0; elu x or α (eˣ − 1) where x < 0; mish x tanh(log(1 + eˣ)); gelu_tanh
x (1 + tanh(√(2/π) (x + 0.044715 x³)))/2, the gelu of GPT-2. Sources: Hendrycks & Gimpel (2016) for gelu,
Elfwing, Uchibe & Doya (2018) for silu, Maas, Hannun & Ng (2013) for leaky_relu, Clevert, Unterthiner &
Hochreiter (2016) for elu, Misra (2020) for mish.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from symad.core.arrays import Array
from symad.errors import SymadError
from symad.functions import gelu, relu, sigmoid, silu, softplus


def leaky_relu(x: Array, slope: Array | float = 0.01) -> Array:
    """x if x > 0, else a x."""
    return np.where(x > 0, x, slope * x)


def elu(x: Array, alpha: Array | float = 1.0) -> Array:
    """x if x > 0, else α (eˣ − 1); nothing overflows."""
    return np.where(x > 0, x, alpha * np.expm1(np.minimum(x, 0.0)))


def mish(x: Array) -> Array:
    """x tanh(log(1 + eˣ))."""
    return x * np.tanh(softplus(x))


def gelu_tanh(x: Array) -> Array:
    """x (1 + tanh(√(2/π) (x + 0.044715 x³)))/2."""
    return x * (1 + np.tanh(float(np.sqrt(2 / np.pi)) * (x + 0.044715 * x**3))) / 2


ACTIVATIONS: dict[str, Callable[[Array], Array]] = {
    "tanh": np.tanh,
    "relu": relu,
    "sigmoid": sigmoid,
    "gelu": gelu,
    "silu": silu,
    "softplus": softplus,
    "leaky_relu": leaky_relu,
    "elu": elu,
    "mish": mish,
    "gelu_tanh": gelu_tanh,
}


def activation(name: str) -> Callable[[Array], Array]:
    """The activation of that name.

    Raises:
        SymadError: there is no activation of that name.
    """
    if name not in ACTIVATIONS:
        raise SymadError(f"activation={name!r} is not one of {', '.join(ACTIVATIONS)}")
    return ACTIVATIONS[name]
