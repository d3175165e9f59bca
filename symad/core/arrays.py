"""The array interface of models and rules: arrays of NumPy, and traced values with the same methods."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from types import EllipsisType
from typing import Any, Protocol, TypeAlias

import numpy as np
import sympy

from symad.core.dims import Dim, Shape


class Array(Protocol):
    """An operand of models and rules: a NumPy array, traced value, or array of exact or symbolic numbers."""

    @property
    def shape(self) -> Shape:
        """The lengths of the axes; those of a traced value may be SymPy expressions."""

    @property
    def ndim(self) -> int:
        """The number of axes."""

    @property
    def size(self) -> Dim:
        """The number of elements."""

    @property
    def dtype(self) -> Any:
        """The type of the elements."""

    @property
    def T(self) -> Array:
        """The axes in reverse order."""

    @property
    def reshape(self) -> Callable[..., Array]:
        """The elements under another shape."""

    @property
    def sum(self) -> Callable[..., Any]:
        """Sums over axes."""

    @property
    def mean(self) -> Callable[..., Any]:
        """Means over axes."""

    @property
    def argmax(self) -> Callable[..., Any]:
        """Positions of the largest elements."""

    def tolist(self) -> Any:
        """The elements in nested lists; an array without axes gives its element."""

    def copy(self) -> Array:
        """A copy that shares no memory."""

    def __array__(self) -> np.ndarray: ...
    def __float__(self) -> float: ...
    def __iter__(self) -> Iterator[Any]: ...
    def __len__(self) -> int: ...
    def __getitem__(self, index: Any, /) -> Any: ...
    def __add__(self, other: Any, /) -> Array: ...
    def __radd__(self, other: Any, /) -> Array: ...
    def __sub__(self, other: Any, /) -> Array: ...
    def __rsub__(self, other: Any, /) -> Array: ...
    def __mul__(self, other: Any, /) -> Array: ...
    def __rmul__(self, other: Any, /) -> Array: ...
    def __truediv__(self, other: Any, /) -> Array: ...
    def __rtruediv__(self, other: Any, /) -> Array: ...
    def __matmul__(self, other: Any, /) -> Array: ...
    def __rmatmul__(self, other: Any, /) -> Array: ...
    def __pow__(self, other: Any, /) -> Array: ...
    def __rpow__(self, other: Any, /) -> Array: ...
    def __lt__(self, other: Any, /) -> Array: ...
    def __le__(self, other: Any, /) -> Array: ...
    def __gt__(self, other: Any, /) -> Array: ...
    def __ge__(self, other: Any, /) -> Array: ...
    def __neg__(self) -> Array: ...
    def __abs__(self) -> Array: ...


ArrayLike: TypeAlias = "Array | complex | Fraction | sympy.Basic | Sequence[ArrayLike]"
"""Values that can become an array: numbers, arrays, and nested lists of them."""

Number: TypeAlias = "Array | float | Fraction | sympy.Expr"
"""Values on which graphs are evaluated: numbers of any kind (mpmath, `Dual`, ...), or arrays of them."""

Axis: TypeAlias = "int | Sequence[int] | None"
"""An axis, several, or None: all axes, or the default of the NumPy function."""

Index: TypeAlias = "ArrayLike | slice | EllipsisType | tuple[Index, ...] | None"
"""The index expression between the brackets of an array."""

Sizes: TypeAlias = "Dim | Array | Sequence[Dim]"
"""A shape as functions of NumPy take it."""
