"""Products of constant sparse matrices of SciPy with traced values.

The product y = A x is y_i = Σ_j a_ij x_j over the stored entries alone: the elements x_j are gathered,
multiplied by the entries, and added up by rows. Its derivatives have the pattern of A.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import cache, wraps
from typing import TYPE_CHECKING, Any, NoReturn, TypeAlias

import numpy as np

from symad.core.dims import format_shape, same_dim
from symad.core.graph import Node
from symad.errors import ShapeError, TraceError
from symad.ops.arrays.gathering import ScatterAdd, gather
from symad.ops.basic.arithmetic import mul
from symad.ops.basic.shaping import broadcast_axes, reshape
from symad.ops.basic.sources import array_constant
from symad.tracing.elements.filled import holds_traced, unfilled
from symad.tracing.proxies.proxy import Proxy
from symad.tracing.proxies.wrapped import number
from symad.tracing.users_line import users_line

if TYPE_CHECKING:
    from scipy.sparse import sparray

    from symad.core.arrays import ArrayLike

Method: TypeAlias = Callable[..., Any]


def sparse_product(a: sparray, x: Node) -> Node:
    """A x for a sparse matrix of numbers (m, n) and x (n,) or (n, k).

    Raises:
        ShapeError: the shapes do not fit.
    """
    if not 1 <= len(x.shape) <= 2 or not same_dim(x.shape[0], a.shape[-1]):
        raise ShapeError(
            f"the product of a sparse matrix of shape {format_shape(a.shape)} and a traced value of shape "
            f"{format_shape(x.shape)}{users_line()}: SciPy takes vectors and matrices whose length is the "
            "number of columns"
        )
    entries = a.tocoo()
    entries.sum_duplicates()
    terms = gather(x, array_constant(entries.col.astype(np.int64)))
    factors = array_constant(np.asarray(entries.data))
    if len(x.shape) == 2:
        factors = broadcast_axes(factors, terms.shape, (0,))
    rows = entries.row if len(a.shape) == 2 else np.zeros(entries.nnz)
    length = int(a.shape[0]) if len(a.shape) == 2 else 1
    y = Node.of(ScatterAdd(length), (array_constant(rows.astype(np.int64)), mul(factors, terms)))
    return y if len(a.shape) == 2 else reshape(y, y.shape[1:])


@cache
def _product(original: Method) -> Method:
    """The method behind ``A @ x``, ``A.dot(x)``, and ``A * x`` of matrices."""

    @wraps(original)
    def product(self: Any, other: ArrayLike) -> Any:
        if not holds_traced(other):
            return original(self, unfilled(other))
        x = number(unfilled(other))
        return Proxy(sparse_product(self, x)) if x.shape else _refuse(self)

    return product


@cache
def _refused(original: Method) -> Method:
    """A method whose result is sparse."""

    @wraps(original)
    def multiply(self: Any, other: ArrayLike, *args: Any) -> Any:
        return _refuse(self) if holds_traced(other) else original(self, unfilled(other), *args)

    return multiply


def _refuse(a: sparray) -> NoReturn:
    raise TraceError(
        f"the elementwise product of a sparse array of shape {format_shape(a.shape)} and a traced value"
        f"{users_line()} would be a sparse array of traced values; use A @ x for the product of matrices, or "
        "A.toarray() * x"
    )


PRODUCTS = ("_matmul_dispatch", "_mul_dispatch")
"""The method that ``@``, ``dot``, and ``*`` of matrices call, under the names that SciPy has given it."""


def replacements() -> list[tuple[type, dict[str, Method]]]:
    """The classes of sparse arrays, each with the methods that it defines and their replacements."""
    base = getattr(sys.modules.get("scipy.sparse._base"), "_spbase", None)
    waiting, found = [] if base is None else [base], {}
    while waiting:
        kind = waiting.pop()
        waiting += kind.__subclasses__()
        ways = dict.fromkeys(PRODUCTS, _product) | {"multiply": _refused}
        if kind is base:  # classes of matrices have products of their own under these names
            ways |= dict.fromkeys(("__mul__", "__rmul__"), _refused)
        found[kind] = {name: way(vars(kind)[name]) for name, way in ways.items() if name in vars(kind)}
    return list(found.items())
