"""Sums over all pairs of two point sets, for NumPy arrays: the op is lowered by `symad.numeric.lower`.

The op (`symad.fused.pair_sum`) is built anew in each call. Its code is cached by the shapes, the formula
of the pair function and the dtype, and never by the Python function, whose closure may change. It passes
over blocks of rows (`symad.numeric.numpy_arrays.pairs.pair_sum_printer`), without the matrix of pairs. Plain
sums over many pairs of NumPy arrays are compiled if there is a C compiler.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import sympy as sp

from symad.core.expressions import Formula
from symad.core.graph import Node
from symad.errors import ShapeError
from symad.fused.pair_sum import NUMBER, PairSum, PairSumCotangent, in_part
from symad.numeric.compiler.c_compiler import search
from symad.numeric.eager.calls import COMPILED, NUMPY, Library, called, inputs_of
from symad.numeric.pairs.pair_functions import expression_of, trace_pair

Array = Any
REDUCTIONS = ("sum", "logsumexp", "softmax")

MIN_COMPILED_PAIRS = 1_000_000
"""The number of pairs from which sums are compiled: blocks then take about 8 ms, compiled code 2 ms
(benchmarks/arrays/bench_pairwise.py). This depends on the call alone, so that equal calls give equal bits."""


@dataclass(frozen=True)
class PairCotangents:
    """Cotangents of the points, of b (None without b), and of every parameter."""

    x: Array
    y: Array
    b: Array | None
    params: dict[str, Array]


def pairwise(
    f: Callable[..., object] | sp.Basic,
    x: Array,
    y: Array,
    b: Array | None = None,
    *,
    reduce: str = "sum",
    params: Mapping[str, Array] | None = None,
    return_lse: bool = False,
) -> Any:
    """Reduce f(x_i, y_j, θ) over j, weighted by b_j, for every i.

    With k_ij = f(x_i, y_j, θ): "sum" gives a_i = Σ_j k_ij b_j; "logsumexp" gives
    L_i = log Σ_j b_j exp(k_ij) with b_j > 0; "softmax" gives
    a_i = Σ_j b_j exp(k_ij) / Σ_j exp(k_ij).

    Args:
        f: f(x, y, **params) -> SymPy expression, called with D×1 matrices of symbols; or an
            expression in MatrixSymbols or IndexedBases named x and y.
        x: points (N, D).
        y: points (M, D).
        b: (M,) or (M, E); ones if not given ("sum", "logsumexp"). "logsumexp" takes (M,).
        reduce: "sum", "logsumexp" or "softmax".
        params: numbers or vectors by name.
        return_lse: with "softmax", also return L_i = log Σ_j exp(k_ij).

    Returns:
        (N,) or (N, E), as b; (N,) for "logsumexp".

    Raises:
        ShapeError: the shapes do not fit.
        TypeError: an argument is not a NumPy array, or the dtypes differ.
        TraceError: f uses unknown symbols.

    Example:
        >>> import numpy as np, sympy
        >>> from symad.numeric import pairwise
        >>> points = np.array([[0.0], [1.0]])
        >>> pairwise(lambda x, y: (x[0] - y[0]) ** 2, points, points)
        array([1., 1.])
    """
    return reduced(NUMPY, f, x, y, b, reduce, params, return_lse)


def reduced(
    library: Library,
    f: Callable[..., object] | sp.Basic,
    x: Array,
    y: Array,
    b: Array | None,
    reduce: str,
    params: Mapping[str, Array] | None,
    return_lse: bool,
) -> Any:
    """`pairwise` on the arrays of a library."""
    call = _PairwiseCall.make(library, f, x, y, b, reduce, params)
    both = return_lse and reduce == "softmax"
    nodes = call.nodes
    outputs = tuple(in_part(call.op, PairSum, part, nodes) for part in ((0, 1) if both else (0,)))
    found = called(nodes, outputs, str(x.dtype), call.values, call.fastest(library))
    out = call.shaped(found[0])
    return (out, found[1]) if both else out


def pairwise_vjp(
    f: Callable[..., object] | sp.Basic,
    x: Array,
    y: Array,
    b: Array | None,
    out: Array,
    out_bar: Array,
    *,
    lse: Array | None = None,
    reduce: str = "sum",
    params: Mapping[str, Array] | None = None,
) -> PairCotangents:
    """Cotangents of x, y, b and θ from those of `pairwise`'s result, in one pass over the pairs.

    x̄_i = Σ_j c_ij ∂f/∂x(x_i, y_j) and likewise ȳ_j and θ̄, where c_ij is ⟨ā_i, b_j⟩ for "sum",
    L̄_i b_j exp(k_ij − L_i) for "logsumexp" and P_ij ⟨ā_i, b_j − a_i⟩ for "softmax",
    P_ij = exp(k_ij − L_i).

    Args:
        f: the pair function, as for `pairwise`; likewise every argument not named here.
        x: points (N, D).
        y: points (M, D).
        b: (M,), (M, E) or None.
        out: the result of `pairwise`.
        out_bar: its cotangent, in its shape.
        lse: the log-sum-exps that `pairwise` returned; needed for "softmax".
        reduce: "sum", "logsumexp" or "softmax".
        params: numbers or vectors by name.

    Raises:
        ShapeError: a result or cotangent does not have the shape of this sum's, or lse is missing.
    """
    return cotangents(NUMPY, f, x, y, b, out, out_bar, lse, reduce, params)


def cotangents(
    library: Library,
    f: Callable[..., object] | sp.Basic,
    x: Array,
    y: Array,
    b: Array | None,
    out: Array,
    out_bar: Array,
    lse: Array | None,
    reduce: str,
    params: Mapping[str, Array] | None,
) -> PairCotangents:
    """`pairwise_vjp` on the arrays of a library."""
    call = _PairwiseCall.make(library, f, x, y, b, reduce, params)
    expected = (len(x),) if b is None or call.is_column else (len(x), b.shape[1])
    for name, array in (("out", out), ("out_bar", out_bar)):
        if np.shape(array) != expected:
            raise ShapeError(f"{name} has shape {np.shape(array)}; this sum's is {expected}")
    if reduce == "softmax" and lse is None:
        raise ShapeError("the softmax cotangent needs lse; get it with return_lse=True")
    rows = (len(x), call.values[2].shape[1])
    more: dict[str, Any] = {"out_bar": out_bar.reshape(rows), "out": out.reshape(rows)}
    if reduce == "softmax":
        more["lse"] = lse
    inner = call.nodes
    nodes: tuple[Node, ...] = (*inner, *inputs_of({n: np.shape(a) for n, a in more.items()}, inner))
    outputs = tuple(in_part(call.op, PairSumCotangent, part, nodes) for part in range(call.op.inner))
    bars = called(nodes, outputs, str(x.dtype), (*call.values, *more.values()), call.fastest(library))
    given = None if b is None else bars[2].reshape(b.shape)
    likes = zip(call.params.items(), bars[3:], strict=True)
    return PairCotangents(bars[0], bars[1], given, {name: _like(bar, a) for (name, a), bar in likes})


def _like(bar: Array, value: Array | float) -> Array:
    """A parameter's cotangent in the dtype of the parameter."""
    dtype = value.dtype if hasattr(value, "dtype") else np.asarray(value).dtype
    return bar.astype(dtype if dtype.kind == "f" else np.float64, copy=False)


@dataclass(frozen=True)
class _PairwiseCall:
    """One call: the op, its arguments by name, and whether b is a vector or missing."""

    op: PairSum
    values: tuple[Array, ...]
    params: Mapping[str, Array]
    is_column: bool

    @staticmethod
    def make(
        library: Library,
        f: Callable[..., object] | sp.Basic,
        x: Array,
        y: Array,
        b: Array | None,
        reduce: str,
        params: Mapping[str, Array] | None,
    ) -> _PairwiseCall:
        """Check the arguments, and trace f with symbols."""
        check_points(library.xp.ndarray, x, y, b, reduce, library.name)
        params = dict(params or {})
        for name, value in params.items():
            if getattr(value, "shape", ()) and not isinstance(value, library.xp.ndarray):
                raise TypeError(
                    f"parameter {name} is a {type(value).__module__}.{type(value).__name__}; give a number "
                    f"or a {library.xp.__name__} array, like x and y"
                )
        sizes = parameter_sizes(params)
        expression = expression_of(f, x.shape[1], sizes)
        trace_pair(expression, x.shape[1], sizes)  # raises an error that names unknown symbols
        lengths = tuple((name, NUMBER if size is None else size) for name, size in sizes.items())
        weights = library.xp.ones((len(y), 1), x.dtype) if b is None else b.reshape(len(y), -1)
        op = PairSum(Formula(expression), lengths, reduce, 0)
        return _PairwiseCall(op, (x, y, weights, *params.values()), params, b is None or b.ndim == 1)

    def fastest(self, library: Library) -> Library:
        """The library to compute with: compiled code if it pays, without a warning if it is not possible."""
        x, y, *_ = self.values
        worth = library is NUMPY and self.op.reduce == "sum" and len(x) * len(y) >= MIN_COMPILED_PAIRS
        return COMPILED if worth and search()[0] is not None else library

    @property
    def nodes(self) -> tuple[Node, ...]:
        """The arguments as inputs; a parameter may have the name b."""
        x, y, b, *params = map(np.shape, self.values)
        points = inputs_of({"x": x, "y": y, "b": b})
        return (*points, *inputs_of(dict(zip(self.params, params, strict=True)), points))

    def shaped(self, array: Array) -> Array:
        """An array (N, E) in the shape that b implies: (N,) for a vector b or no b."""
        return array[:, 0] if self.is_column else array


def parameter_sizes(params: Mapping[str, Array] | None) -> dict[str, int | None]:
    """The length of every parameter vector; None for numbers.

    Raises:
        ShapeError: a parameter has more than one axis.
        TypeError: a parameter is not real.
    """
    sizes: dict[str, int | None] = {}
    for name, value in (params or {}).items():
        array = value if hasattr(value, "dtype") else np.asarray(value)
        if array.dtype.kind not in "iuf":
            raise TypeError(f"parameter {name} has dtype {array.dtype}; give real numbers")
        if array.ndim > 1:
            raise ShapeError(f"parameter {name} has shape {array.shape}; give a number or a vector")
        sizes[name] = array.shape[0] if array.ndim else None
    return sizes


def check_points(
    kind: type, x: Array, y: Array, b: Array | None, reduce: str, library: str = "numeric"
) -> None:
    """Check that the arrays are of one library and one real dtype, and that their shapes fit.

    Raises:
        TypeError: an argument is of another array library, or the dtypes differ or are not real.
        ShapeError: the shapes do not fit.
        ValueError: an unknown reduction.
    """
    if reduce not in REDUCTIONS:
        raise ValueError(f"reduce is {reduce!r}; use one of {', '.join(REDUCTIONS)}")
    arrays = {"x": x, "y": y} | ({} if b is None else {"b": b})
    for name, array in arrays.items():
        if not isinstance(array, kind):
            raise TypeError(
                f"{name} is a {type(array).__module__}.{type(array).__name__}, but "
                f"symad.{library}.pairwise takes {kind.__module__}.{kind.__name__} for x, y and b"
            )
    dtypes = {n: a.dtype for n, a in arrays.items()}
    shown = ", ".join(f"{n} {a.dtype}{list(a.shape)}" for n, a in arrays.items())
    if len(set(dtypes.values())) > 1 or x.dtype not in (np.float32, np.float64):
        raise TypeError(f"given {shown}; use float32 or float64, the same for all")
    if x.ndim != 2 or y.ndim != 2 or x.shape[1] != y.shape[1] or x.shape[1] == 0:
        raise ShapeError(f"given {shown}; x must be (N, D) and y (M, D) with the same D ≥ 1")
    if b is None:
        if reduce == "softmax":
            raise ShapeError("the softmax-weighted mean needs b, of shape (M,) or (M, E)")
        return
    if b.ndim not in (1, 2) or b.shape[0] != y.shape[0] or 0 in b.shape[1:]:
        raise ShapeError(f"given {shown}; b must be (M,) or (M, E) with the M of y")
    if reduce == "logsumexp" and b.ndim != 1:
        raise ShapeError(f"given {shown}; logsumexp takes weights b of shape (M,)")
