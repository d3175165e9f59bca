"""The stand-in's cupy_backends, down to cuBLAS."""

from tests.gpu.cupy_standin import cublas

__all__ = ["cublas"]
