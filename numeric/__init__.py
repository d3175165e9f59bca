"""Lowering: derivative graphs to readable NumPy (and native) code, and running it."""

if __name__ != "symad.numeric":  # the checkout also shows this folder as a top-level package
    raise ImportError("import symad.numeric, not numeric: a second copy would register rules twice")

from typing import TYPE_CHECKING

from symad.numeric.faces import offer
from symad.numeric.kernel import Kernel
from symad.numeric.lower import lower

if TYPE_CHECKING:
    from symad.numeric.attention import attention
    from symad.numeric.given import given
    from symad.numeric.least_squares import least_squares
    from symad.numeric.minimize import minimize
    from symad.numeric.pairwise import pairwise

__all__ = ["Kernel", "attention", "given", "least_squares", "lower", "minimize", "pairwise"]

# `lower` too: its module has its name, and importing that module again must not hide it.
offer(__name__, ("attention", "given", "least_squares", "lower", "minimize", "pairwise"))
