"""CuPy as an array library of the printers."""

from __future__ import annotations

from dataclasses import dataclass

from symad.numeric.backends import ArrayLibrary

DTYPES = ("float64", "float32", "float16", "bfloat16")
HALVES = ("float16", "bfloat16")


@dataclass(frozen=True)
class CuPy(ArrayLibrary):
    """CuPy on a CUDA device."""

    def type_text(self, dtype: str) -> str:
        """The text of an element type; bfloat16 is the only one from another module."""
        return "ml_dtypes.bfloat16" if dtype == "bfloat16" else super().type_text(dtype)

    def imports(self, dtype: str) -> set[str]:
        """The imports that code for a type needs."""
        made = {f"import {self.module} as {self.prefix}"}
        return made | {"import ml_dtypes"} if dtype == "bfloat16" else made


CUPY = CuPy("cupy", "cupy", "cp")


def real_type(dtype: str) -> str:
    """The C type in which values of a dtype are computed; float for the half precisions."""
    return "double" if dtype == "float64" else "float"
