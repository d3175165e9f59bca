"""Lowering: derivative graphs to readable NumPy (and native) code, and running it."""

if __name__ != "symad.numeric":  # the checkout also shows this folder as a top-level package
    raise ImportError("import symad.numeric, not numeric: a second copy would register rules twice")

from symad.numeric.kernel import Kernel
from symad.numeric.lower import lower

__all__ = ["Kernel", "lower"]
