"""CUDA: the CuPy backend and the hand-written kernels. CuPy is imported on first use, not here."""

if __name__ != "symad.gpu":  # the checkout also shows this folder as a top-level package
    raise ImportError("import symad.gpu, not gpu: a second copy would register rules twice")

from typing import TYPE_CHECKING

from symad.numeric.faces import offer

if TYPE_CHECKING:
    from symad.gpu.attention import attention
    from symad.gpu.options import options
    from symad.gpu.pairwise import pairwise

__all__ = ["attention", "options", "pairwise"]

offer(__name__, __all__)
