"""Backends: the targets that graphs are printed for, loaded by name on first use."""

from __future__ import annotations

import importlib

from symad.core.identifiers import not_one_of
from symad.errors import LoweringError

BACKENDS = {
    "numpy": "symad.numeric.numpy_arrays.lower",
    "c": "symad.numeric.scalars.lower_c",
    "runs": "symad.numeric.scalars.lower_runs",
    "cupy": "symad.gpu.lower",
}
"""Backend name -> module with a function ``lower(graph, dtype, packed) -> Kernel``.

With ``packed`` the kernel of a scalar graph may take all inputs in one vector; its field ``packed`` says so.
"""


def load_backend(name: str) -> object:
    """The module of a backend.

    Raises:
        LoweringError: there is no backend of this name, or it is not installed.
    """
    if name not in BACKENDS:
        raise LoweringError(not_one_of("backend", name, BACKENDS))
    try:
        return importlib.import_module(BACKENDS[name])
    except ModuleNotFoundError as error:
        raise LoweringError(
            f"backend {name!r} is not available here ({error}); backend='numpy' is"
        ) from error
