"""The earlier name of `symad.numeric.training.optimizers`."""

import warnings
from typing import Any

from symad.numeric.training import optimizers


def __getattr__(name: str) -> Any:
    if name not in (*optimizers.__all__, "Optimiser"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    warnings.warn(
        "symad.numeric.training.optimisers is symad.numeric.training.optimizers now", FutureWarning, 2
    )
    earlier = {"Optimiser": "Optimizer"}
    return getattr(optimizers, earlier.get(name, name))
