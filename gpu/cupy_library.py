"""CuPy as an array library of the printers: its types, as text and in C."""

from __future__ import annotations

from dataclasses import dataclass

from symad.numeric.numpy_arrays.writer import Fast
from symad.numeric.targets.target import NUMPY

DTYPES = ("float64", "float32", "float16", "bfloat16")
HALVES = ("float16", "bfloat16")


@dataclass(frozen=True)
class OnDevice(Fast):
    """CuPy: every value but numbers known on the host is an array on the device."""


CUPY = OnDevice("cupy", NUMPY.functions, "cp.inf", "cp.nan", np="cp")
IMPORT = "import cupy as cp"


def type_text(dtype: str) -> str:
    """The text of an element type; bfloat16 is the only one from another module."""
    return "ml_dtypes.bfloat16" if dtype == "bfloat16" else f"cp.{dtype}"


def imports(dtype: str) -> set[str]:
    """The imports that code for a type needs."""
    return {IMPORT, "import ml_dtypes"} if dtype == "bfloat16" else {IMPORT}


def real_type(dtype: str) -> str:
    """The C type in which values of a dtype are computed; float for the half precisions."""
    return "double" if dtype == "float64" else "float"
