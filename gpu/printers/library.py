"""CuPy as an array library of the printers."""

from __future__ import annotations

from dataclasses import dataclass

from symad.numeric.backends import ArrayLibrary

DTYPES = ("float64", "float32", "float16", "bfloat16")
HALVES = ("float16", "bfloat16")


@dataclass(frozen=True)
class CuPy(ArrayLibrary):
    """CuPy on a CUDA device."""


CUPY = CuPy("cupy", "cupy", "cp")


def real_type(dtype: str) -> str:
    """The C type in which values of a dtype are computed: float for the half precisions."""
    return "double" if dtype == "float64" else "float"
