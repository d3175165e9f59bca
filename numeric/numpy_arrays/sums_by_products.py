"""Sums along axes of arrays as matrix products with ones.

NumPy adds the rows of a matrix one after the other, and the elements of short rows with a call for each row;
BLAS reads the matrix once, at the speed of memory: two to five times faster on a few hundred rows. Products
with 1 are exact, and infinities and NaN pass.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from symad.core.dims import size
from symad.core.graph import Node
from symad.numeric.numpy_arrays.texts import Name, is_name
from symad.numeric.targets.contractions import MatrixProduct

if TYPE_CHECKING:
    from symad.core.dims import Shape
    from symad.numeric.numpy_arrays.in_place_printer import InPlacePrinter
    from symad.numeric.numpy_arrays.printer import ArrayPrinter

LONGEST = 4096
"""Elements of a row above which NumPy's sum by halves is more exact than BLAS's, and as fast."""

ONES = '''@functools.lru_cache(8)
def _ones(size, dtype):
    return np.ones(size, dtype)
'''


def sum_as_product(arg: Node, axes: tuple[int, ...], printer: InPlacePrinter) -> MatrixProduct | None:
    """The sum over some axes of an array of floats, if they are its first or its last; else None."""
    text, rank, count = printer.text[arg], len(arg.shape), len(axes)
    if count == rank or not is_name(text) or not printer.holds_floats(arg):
        return None
    if axes == tuple(range(count)):
        summed, kept = arg.shape[:count], arg.shape[count:]
        factors = _ones(summed, printer), _reshaped(text, summed, kept, printer)
    elif axes == tuple(range(rank - count, rank)):
        summed, kept = arg.shape[rank - count :], arg.shape[: rank - count]
        if not isinstance(size(summed), int) or size(summed) > LONGEST:
            return None
        factors = _reshaped(text, kept, summed, printer), _ones(summed, printer)
    else:
        return None
    after = "" if len(kept) == 1 else f".reshape({', '.join(map(printer.bare, kept))})"
    return MatrixProduct(*factors, after)


def _ones(shape: Shape, printer: ArrayPrinter) -> str:
    """A vector of ones: a constant of the module, or kept for each length."""
    length = size(shape)
    if isinstance(length, int):
        made = f"{printer.np}.ones({length}, dtype={printer.type_text})"
        constant: Name = printer.constant_text(made, "ones")
        return constant
    printer.imports.add("import functools")
    return f"{printer.helper('_ones', ONES)}({printer.bare(length)}, {printer.type_text})"


def _reshaped(text: str, rows: Shape, columns: Shape, printer: ArrayPrinter) -> str:
    """A matrix: some axes joined, then the others."""
    if len(rows) == len(columns) == 1:
        return text
    return f"{text}.reshape({printer.bare(size(rows))}, {printer.bare(size(columns))})"
