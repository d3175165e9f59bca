"""Sums along axes of arrays as matrix products with a vector of ones.

NumPy adds the rows of a matrix one by one, and the elements of short rows in one call for each row. BLAS
reads the matrix once, as fast as the memory allows: on a few hundred rows it is two to five times faster.
Products with 1 are exact, and infinities and NaN are kept.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from symad.core.dims import size
from symad.numeric.program.expressions import Expression
from symad.numeric.targets.target import MatrixProduct, Text

if TYPE_CHECKING:
    from symad.core.dims import Shape
    from symad.numeric.numpy_arrays.writer import ArrayWriter

MAX_ROW_ELEMENTS = 4096
"""Elements of a row up to which BLAS sums it. NumPy sums longer rows pairwise: more exactly, and as fast.

Sums of 2**18 elements after a tanh take 0.66 of the time for rows of 16, 0.9 for 256, 0.95 for 4096, 1.0
for 65,536 (bench_thresholds.py, "row sums").
"""

ONES = """@functools.lru_cache(8)
def _ones(size, dtype):
    return np.ones(size, dtype)
"""


def sum_as_product(
    arg: Expression, text: Text, axes: tuple[int, ...], writer: ArrayWriter
) -> MatrixProduct | None:
    """The sum of an array of floats over its first axes or its last axes; None for other sums."""
    rank, count = len(arg.shape), len(axes)
    if count == rank or not writer.is_name(text.text) or writer.kind(arg) != writer.dtype:
        return None
    if axes == tuple(range(count)):
        summed, kept = arg.shape[:count], arg.shape[count:]
        factors = _ones(summed, writer), _reshaped(text, summed, kept, writer)
    elif axes == tuple(range(rank - count, rank)):
        summed, kept = arg.shape[rank - count :], arg.shape[: rank - count]
        if not isinstance(size(summed), int) or size(summed) > MAX_ROW_ELEMENTS:
            return None
        factors = _reshaped(text, kept, summed, writer), _ones(summed, writer)
    else:
        return None
    after = "" if len(kept) == 1 else f".reshape({', '.join(map(writer.dim, kept))})"
    return MatrixProduct(*factors, after)


def _ones(shape: Shape, writer: ArrayWriter) -> str:
    """A vector of ones: a constant of the module, or cached by length if the length is a dimension."""
    length = size(shape)
    if isinstance(length, int):
        return writer.shared(f"{writer.np}.ones({length}, dtype={writer.type_text})", "ones")
    writer.imports.add("import functools")
    return f"{writer.helper('_ones', ONES)}({writer.dim(length)}, {writer.type_text})"


def _reshaped(text: Text, rows: Shape, columns: Shape, writer: ArrayWriter) -> str:
    """An array as a matrix: the axes ``rows`` joined to one, then the axes ``columns``."""
    if len(rows) == len(columns) == 1:
        return text.text
    return f"{text}.reshape({writer.dim(size(rows))}, {writer.dim(size(columns))})"
