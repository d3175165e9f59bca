"""Functions for models: on SymPy expressions, on NumPy arrays, and on the values of a traced function.

Scalar functions (`sigmoid`, `softplus`, `relu`, `silu`, `gelu`, `xlogy`, `log1p`, `expm1`, `logaddexp`,
`hypot`, `gammainc`, `gammaincc`, `hyp0f1`, `hyp1f1`, `hyp2f1`, `ive`, `log_ndtr`, `owens_t`, `voigt_profile`,
`stop_gradient`) act elementwise. Functions of whole arrays (`softmax`, `log_softmax`, `logsumexp`,
`concatenate`, `stack`, `lookup`) give matrix expressions for matrix expressions. `softmax` and `log_softmax`
run over the last axis by default, as in JAX; `logsumexp` over all elements, as sums do. Random
numbers (`rand`, `randn`, `key`, `split`, `fold_in`) are functions of a key.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import sympy

from symad.core.arrays import Array, ArrayLike, Axis
from symad.core.dims import Dim, Shape, as_dim
from symad.core.elsewhere import missing, told_arguments
from symad.core.given import numbers_only, real_array, sequence_of_arrays
from symad.derivatives.remat import remat
from symad.errors import ShapeError, TraceError
from symad.library.associative_scan import affine_scan, associative_scan
from symad.library.attention import attention
from symad.library.decompositions import cho_solve, expm, lstsq, lu, pinv, qr, solve_triangular, svd
from symad.library.pairwise import pairwise
from symad.library.random import fold_in, key, rand, randn, split
from symad.library.scan import fold, scan
from symad.library.user_functions import register_function
from symad.ops.arrays import softmax as fused
from symad.ops.arrays.gathering import as_indices, gather
from symad.ops.basic.shaping import reshape
from symad.ops.basic.sources import eye as identity
from symad.ops.basic.sources import iota
from symad.sympy_functions import matrix_functions
from symad.sympy_functions.probability import gammainc, gammaincc, ive, log_ndtr
from symad.sympy_functions.scalar_functions import (
    expm1,
    gelu,
    hypot,
    log1p,
    logaddexp,
    relu,
    sigmoid,
    silu,
    softplus,
    stop_gradient,
    xlogy,
)
from symad.sympy_functions.special_functions import hyp0f1, hyp1f1, hyp2f1, owens_t, voigt_profile
from symad.tracing.proxies.proxy import Proxy
from symad.tracing.proxies.wrapped import as_node, number

__all__ = [
    "affine_scan",
    "arange",
    "associative_scan",
    "attention",
    "cho_solve",
    "concatenate",
    "expm",
    "expm1",
    "eye",
    "fold",
    "fold_in",
    "gammainc",
    "gammaincc",
    "gelu",
    "hyp0f1",
    "hyp1f1",
    "hyp2f1",
    "hypot",
    "ive",
    "key",
    "log1p",
    "log_ndtr",
    "log_softmax",
    "logaddexp",
    "logsumexp",
    "lookup",
    "lstsq",
    "lu",
    "owens_t",
    "pairwise",
    "pinv",
    "qr",
    "rand",
    "randn",
    "register_function",
    "relu",
    "remat",
    "scan",
    "sigmoid",
    "silu",
    "softmax",
    "softplus",
    "solve_triangular",
    "split",
    "stack",
    "stop_gradient",
    "svd",
    "voigt_profile",
    "xlogy",
]


def __dir__() -> list[str]:
    """The public names, without the imports of this module."""
    return sorted({*__all__, *(name for name in globals() if name.startswith("__"))})


if not TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        raise missing("module 'symad.functions'", name, __all__)


@told_arguments()
def softmax(x: Array, axis: Axis = -1) -> Array:
    """exp(x) / Σ exp(x), the sum over ``axis`` (the last by default, None for all elements).

    In the shape of x. A matrix expression with one column, and a list of SymPy scalars, are vectors: the
    sum is over their elements.

    Returns:
        Positive numbers with the sum 1, in the shape of x, of the kind of the arguments: an array, a SymPy
        object or a traced value.

    Raises:
        ShapeError: there is no such axis.

    Example:
        >>> import numpy as np, symad
        >>> share = symad.trace(lambda z: symad.functions.softmax(z), [(2,)])
        >>> share(np.array([0.0, 0.0]))
        array([0.5, 0.5])
    """
    if isinstance(x, Proxy):
        return Proxy(fused.softmax(number(x), _axes(axis)))
    matrix = _as_matrix(x)
    if matrix is not None:
        return matrix_functions.MatrixSoftmax(matrix, _along(matrix, x, axis))
    from scipy.special import softmax as numeric

    return numbers_only("softmax", partial(numeric, axis=axis), x=x)


@told_arguments()
def log_softmax(x: Array, axis: Axis = -1) -> Array:
    """x − log Σ exp(x), the sum over ``axis``, as in `softmax`, in the shape of x.

    Returns:
        The logarithms of `softmax`, in the shape of x, of the kind of the arguments: an array, a SymPy
        object or a traced value.

    Raises:
        ShapeError: there is no such axis.

    Example:
        >>> log_softmax(np.array([0.0, np.log(3.0)])).round(6)
        array([-1.386294, -0.287682])
    """
    if isinstance(x, Proxy):
        return Proxy(fused.log_softmax(number(x), _axes(axis)))
    matrix = _as_matrix(x)
    if matrix is not None:
        return matrix_functions.MatrixLogSoftmax(matrix, _along(matrix, x, axis))
    from scipy.special import log_softmax as numeric

    return numbers_only("log_softmax", partial(numeric, axis=axis), x=x)


def _along(matrix: sympy.MatrixExpr, given: ArrayLike, axis: Axis) -> Axis:
    """The axis of a matrix for axis=-1: that of the elements for a vector, otherwise the second."""
    vector = isinstance(given, (list, tuple)) or matrix.shape[1] == 1
    return 0 if vector and axis == -1 else _matrix_axis(axis)


@told_arguments()
def logsumexp(x: Array, axis: Axis = None, keepdims: bool = False) -> Array:
    """log Σ exp(x) over ``axis`` (all elements by default).

    Of a matrix expression: a scalar, or with ``axis`` a row (axis 0) or column (axis 1) matrix.

    Returns:
        A number, or the shape of x without the axis (with length 1 there if ``keepdims``).

    Raises:
        ShapeError: there is no such axis (NumPy's AxisError for arrays).
        TraceError: ``x`` is neither real numbers, a matrix expression nor a traced value.

    Example:
        >>> import numpy as np, symad
        >>> total = symad.trace(lambda z: symad.functions.logsumexp(z), [(2,)])
        >>> float(total(np.array([1000.0, -1000.0])))
        1000.0
    """
    if isinstance(x, Proxy):
        node = number(x)
        y = fused.logsumexp(node, _axes(axis))
        return Proxy(reshape(y, _kept(node.shape, axis)) if keepdims else y)
    matrix = _as_matrix(x)
    if matrix is not None:
        if axis is None:
            return matrix_functions.MatrixLogSumExp(matrix)
        return matrix_functions.LogSumExpAlong(matrix, _matrix_axis(axis))
    from scipy.special import logsumexp as numeric

    return numbers_only("logsumexp", partial(numeric, axis=axis, keepdims=keepdims), x=x)


def _kept(shape: Shape, axis: Axis) -> Shape:
    axes = range(len(shape)) if axis is None else [k % len(shape) for k in _axes(axis) or ()]
    return tuple(1 if k in axes else dim for k, dim in enumerate(shape))


def _axes(axis: Any) -> tuple[int, ...] | None:
    axes = (axis,) if not isinstance(axis, (tuple, list)) else tuple(axis)
    for k in axes if axis is not None else ():
        if not isinstance(k, (int, np.integer)):
            raise ShapeError(f"axis={k!r} is no axis: give an integer, a tuple of integers, or None")
    return None if axis is None else tuple(map(int, axes))


def _matrix_axis(axis: Axis) -> Any:
    return axis % 2 if isinstance(axis, int) and -2 <= axis < 0 else axis


def _as_matrix(x: ArrayLike) -> sympy.MatrixExpr | None:
    """A matrix expression; a list of SymPy scalars is a column; None for anything numeric.

    Raises:
        TraceError: a SymPy object that is not a matrix.
    """
    if isinstance(x, sympy.MatrixExpr):
        return x
    if isinstance(x, sympy.MatrixBase):
        return sympy.ImmutableDenseMatrix(x)
    if isinstance(x, (list, tuple)) and any(isinstance(e, sympy.Basic) for e in x):
        return sympy.ImmutableDenseMatrix(len(x), 1, list(x))
    if isinstance(x, (sympy.Basic, sympy.NDimArray)):
        raise TraceError(
            f"{x} is not a matrix; give a matrix expression or a list of scalars, or trace a Python "
            "function of arrays"
        )
    return None


@told_arguments()
def concatenate(arrays: Sequence[Array], axis: int = 0) -> Any:
    """Arrays one after the other along an axis; for matrix expressions a BlockMatrix.

    Returns:
        An array or traced value with the sum of the lengths along the axis, or a matrix expression.

    Raises:
        ShapeError: the shapes of traced values do not fit, or there is no such axis.
        ValueError: the same for arrays, by NumPy, or there are no arrays.
        TraceError: an entry is neither real numbers, a matrix expression nor a traced value.

    Example:
        >>> concatenate([np.zeros(2), np.ones(1)])
        array([0., 0., 1.])
    """
    arrays = sequence_of_arrays("concatenate", arrays)
    matrices = [_as_matrix(a) for a in arrays]
    if any(m is None for m in matrices):
        return np.concatenate(_real("concatenate", arrays), axis=axis)
    axis = _matrix_axis(axis)
    if axis not in (0, 1):
        raise ShapeError(f"concatenate(axis={axis}): matrices have the axes 0 and 1")
    return sympy.BlockMatrix([[m] for m in matrices] if axis == 0 else [matrices])


@told_arguments()
def stack(arrays: Sequence[Any], axis: int = 0) -> Array:
    """Arrays of one shape along a new axis.

    SymPy scalars become an array; column vectors (n, 1) become the rows (axis 0) or columns (axis 1) of
    a matrix.

    Returns:
        An array or traced value with one axis more, or a matrix.

    Raises:
        ShapeError: matrix expressions that are not columns; the result would have three axes.

    Example:
        >>> stack([np.zeros(2), np.ones(2)])
        array([[0., 0.],
               [1., 1.]])
    """
    parts = sequence_of_arrays("stack", arrays)
    if all(isinstance(a, (sympy.MatrixExpr, sympy.MatrixBase)) for a in parts):
        if any(a.shape[1] != 1 for a in parts):
            shapes = ", ".join(str(a.shape) for a in parts)
            raise ShapeError(
                f"stack of matrices {shapes} would have three axes; stack column vectors, or concatenate"
            )
        rows = _matrix_axis(axis) == 0
        return concatenate([a.T for a in parts] if rows else parts, 0 if rows else 1)
    if any(isinstance(a, sympy.Basic) for a in parts) and not any(isinstance(a, Proxy) for a in parts):
        return sympy.ImmutableDenseNDimArray(parts)
    return np.stack(_real("stack", parts), axis=axis)


def _real(function: str, arrays: Sequence[Array]) -> list[Array]:
    return [real_array(function, f"array {k}", a) for k, a in enumerate(arrays)]


def lookup(table: Array, indices: ArrayLike) -> Any:
    """Rows of a table (an embedding): y[i..., :] = table[indices[i...], :].

    ``table`` has shape (rows, d) and ``indices`` integer values in 0 … rows − 1; unlike ``table[indices]``
    a negative index is not accepted, so that a wrong token is not read as a row from the end. The derivative
    adds into the rows that were used; the derivative by the indices is zero.

    Returns:
        (..., d), with the shape of the indices first.

    Raises:
        ShapeError: an index is not integral or out of range (IndexError in generated code).

    Example:
        >>> import numpy as np
        >>> lookup(np.array([[0.0, 1.0], [2.0, 3.0]]), np.array([1, 1, 0]))
        array([[2., 3.],
               [2., 3.],
               [0., 1.]])
    """
    if isinstance(table, (sympy.MatrixExpr, sympy.MatrixBase)):
        return matrix_functions.Lookup(_as_matrix(table), indices)
    if isinstance(table, Proxy) or isinstance(indices, Proxy):
        return Proxy(gather(number(table), as_node(indices)))
    rows = real_array("lookup", "table", table)
    return rows[as_indices(real_array("lookup", "indices", indices), len(rows))]


def eye(count: Dim) -> Array:
    """The identity matrix; its order may be a dimension symbol. An array, or a traced value.

    Returns:
        (count, count): an array, or for a symbolic order a traced value.

    Raises:
        ShapeError: ``count`` is neither an integer nor a SymPy expression of integers.
        ValueError: it is negative.

    Example:
        >>> eye(2)
        array([[1., 0.],
               [0., 1.]])
    """
    if isinstance(as_dim(count), int):
        return np.eye(as_dim(count))
    return Proxy(identity(count))


def arange(count: Dim) -> Any:
    """0, 1, ..., count − 1, for a count that may be a symbolic dimension such as ``x.shape[0]``.

    Returns:
        Integers (count,): an array, or for a symbolic count a traced value.

    Raises:
        ShapeError: ``count`` is neither an integer nor a SymPy expression of integers.

    Example:
        >>> arange(3)
        array([0, 1, 2])
    """
    dim = as_dim(count)
    return np.arange(dim) if isinstance(dim, int) else Proxy(iota(dim))
