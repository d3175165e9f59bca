"""Activations by name, for arrays and traced values.

tanh x; relu max(x, 0); sigmoid 1/(1 + e^{-x}); gelu x Φ(x); silu x σ(x); softplus log(1 + e^x).
Sources: Hendrycks & Gimpel (2016) for gelu, Elfwing, Uchibe & Doya (2018) for silu.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from symad.errors import SymadError
from symad.functions import gelu, relu, sigmoid, silu, softplus

ACTIVATIONS: dict[str, Callable[[Any], Any]] = {
    "tanh": np.tanh,
    "relu": relu,
    "sigmoid": sigmoid,
    "gelu": gelu,
    "silu": silu,
    "softplus": softplus,
}


def activation(name: str) -> Callable[[Any], Any]:
    """The activation of that name.

    Raises:
        SymadError: there is none of that name.
    """
    if name not in ACTIVATIONS:
        raise SymadError(f"activation={name!r} is not one of {', '.join(ACTIVATIONS)}")
    return ACTIVATIONS[name]
