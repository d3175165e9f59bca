"""NumPy and SciPy functions on traced values.

`registry` finds the implementations, `options` refuses unsupported options; `functions` and `ufuncs` hold the
implementations, `making` those of NumPy's constructors. Importing this package registers all.
"""

from symad.tracing.elements import assigning
from symad.tracing.from_numpy import fourier, making, registry, ufuncs
from symad.tracing.from_numpy.functions import (
    assembling,
    curves,
    finite_and_close,
    joining,
    linalg,
    ordering,
    products,
    reductions,
    shapes,
    statistics,
)

__all__ = [
    "assembling", "assigning", "curves", "finite_and_close", "fourier", "joining", "linalg", "making",
    "ordering", "products", "reductions", "registry", "shapes", "statistics",
    "ufuncs",
]  # fmt: skip
