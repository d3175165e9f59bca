"""The stand-in's cuBLAS: strided batches of matrix products on raw pointers, column-major as in cuBLAS.

The signature is that of cupy_backends/cuda/libs/cublas.pyx, line 1682 of 14.2.0 (1457 of 13.6.0); the
constants are those of cublas.pxd, lines 72-83.
"""

from __future__ import annotations

import ctypes

import numpy as np

from tests.gpu.cupy_standin import cuda
from tests.gpu.cupy_standin.array import refuse_capture

CUBLAS_COMPUTE_32F, CUBLAS_COMPUTE_64F, CUBLAS_COMPUTE_32F_FAST_TF32 = 68, 70, 77
CUBLAS_GEMM_DEFAULT = -1


class CUBLASError(RuntimeError):
    """A call that cuBLAS refuses."""


def _types():
    import ml_dtypes

    return {0: np.float32, 1: np.float64, 2: np.float16, 14: ml_dtypes.bfloat16}


def _matrices(pointer, kind, rows, columns, lead, step, count):
    """Column-major matrices at a pointer, as a view."""
    if lead < max(1, rows) or step < 0:
        raise CUBLASError(f"CUBLAS_STATUS_INVALID_VALUE: leading dimension {lead} of {rows} rows, {step}")
    dtype = np.dtype(_types()[kind])
    length = (count - 1) * step + (columns - 1) * lead + rows
    memory = np.frombuffer((ctypes.c_char * (length * dtype.itemsize)).from_address(pointer), dtype)
    strides = tuple(s * dtype.itemsize for s in (step, 1, lead))
    return np.lib.stride_tricks.as_strided(memory, (count, rows, columns), strides)


def _tf32(x):
    """Rounded to ten bits after the point."""
    return ((x.view(np.uint32) + np.uint32(0x1000)) & np.uint32(0xFFFFE000)).view(np.float32)


def gemmStridedBatchedEx(
    handle, transa, transb, m, n, k, alpha, A, Atype, lda, strideA, B, Btype, ldb, strideB, beta,
    C, Ctype, ldc, strideC, batchCount, computeType, algo,
):  # fmt: skip
    """C = op(A) op(B) for each of a batch, alpha being 1 and beta 0."""
    refuse_capture()
    cuda.counts["products"] += 1
    cuda.launched()
    if min(m, n, k, batchCount) < 1 or max(m, n, k, batchCount) >= 2**31:
        raise CUBLASError("CUBLAS_STATUS_INVALID_VALUE")
    wide = {CUBLAS_COMPUTE_64F: np.float64}.get(computeType, np.float32)
    if ({Atype, Btype, Ctype} & {1} and wide is np.float32) or len({Atype, Btype, Ctype}) > 1:
        raise CUBLASError("CUBLAS_STATUS_NOT_SUPPORTED")
    scalar = {np.float64: ctypes.c_double, np.float32: ctypes.c_float}[wide]
    assert (scalar.from_address(alpha).value, scalar.from_address(beta).value) == (1.0, 0.0)
    a = _matrices(A, Atype, *((k, m) if transa else (m, k)), lda, strideA, batchCount).astype(wide)
    b = _matrices(B, Btype, *((n, k) if transb else (k, n)), ldb, strideB, batchCount).astype(wide)
    if computeType == CUBLAS_COMPUTE_32F_FAST_TF32:
        a, b = _tf32(a), _tf32(b)
    a, b = (np.swapaxes(x, 1, 2) if turned else x for x, turned in ((a, transa), (b, transb)))
    c = _matrices(C, Ctype, m, n, ldc, strideC, batchCount)
    with np.errstate(all="ignore"):
        c[...] = (a @ b).astype(c.dtype)
