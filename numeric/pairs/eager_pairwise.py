"""Kernel sums over all pairs of two point sets in NumPy, block by block.

a_i = Σ_j f(x_i, y_j, θ) b_j, or the log-sum-exp or softmax-weighted mean with f as the logits, and
the cotangents of x, y, b and θ, without the N×M matrix: memory beyond arguments and results is a
few blocks of pairs (Charlier et al. 2021, JMLR 22(74), for the family of reductions).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import sympy as sp

from symad.errors import ShapeError
from symad.numeric.pairs.pair_functions import PairFunction, trace_pair
from symad.numeric.pairs.pair_terms import Term
from symad.numeric.pairs.stable_sympy import Program, program

Array = Any
REDUCTIONS = ("sum", "logsumexp", "softmax")


@dataclass(frozen=True)
class PairCotangents:
    """Cotangents of the points, of b (None if it was not given) and of every parameter."""

    x: Array
    y: Array
    b: Array | None
    params: dict[str, Array]


def pairwise(
    f: Callable[..., Any] | sp.Basic,
    x: Array,
    y: Array,
    b: Array | None = None,
    *,
    reduce: str = "sum",
    params: Mapping[str, Any] | None = None,
    return_lse: bool = False,
    block: int = 512,
) -> Any:
    """Reduce f(x_i, y_j, θ) over j, weighted by b_j, for every i.

    With k_ij = f(x_i, y_j, θ): "sum" gives a_i = Σ_j k_ij b_j; "logsumexp" gives
    L_i = log Σ_j b_j exp(k_ij) with b_j > 0; "softmax" gives
    a_i = Σ_j b_j exp(k_ij) / Σ_j exp(k_ij).

    Args:
        f: f(x, y, **params) -> SymPy expression, called once with D×1 matrices of symbols; or an
            expression in MatrixSymbols or IndexedBases named x and y.
        x: points (N, D).
        y: points (M, D).
        b: (M,) or (M, E); ones if not given ("sum", "logsumexp"). "logsumexp" takes (M,).
        reduce: "sum", "logsumexp" or "softmax".
        params: numbers or vectors by name.
        return_lse: with "softmax", also return L_i = log Σ_j exp(k_ij).
        block: rows and columns of a block of pairs.

    Returns:
        (N,) or (N, E), as b; (N,) for "logsumexp".

    Raises:
        ShapeError: the shapes do not fit.
        TypeError: an argument is not a NumPy array, or the dtypes differ.
        TraceError: f uses unknown symbols.
    """
    problem = PairProblem.make(f, x, y, b, reduce, params, block)
    out, lse = problem.forward()
    return (out, lse) if return_lse and reduce == "softmax" else out


def pairwise_vjp(
    f: Callable[..., Any] | sp.Basic,
    x: Array,
    y: Array,
    b: Array | None,
    out: Array,
    out_bar: Array,
    *,
    lse: Array | None = None,
    reduce: str = "sum",
    params: Mapping[str, Any] | None = None,
    block: int = 512,
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
        block: rows and columns of a block of pairs.
    """
    problem = PairProblem.make(f, x, y, b, reduce, params, block)
    return problem.backward(out, out_bar, lse)


@dataclass(frozen=True)
class PairProblem:
    """One kernel sum: the traced function, its arguments, and b as an (M, E) array."""

    function: PairFunction
    x: Array
    y: Array
    b: Array
    given: Array | None
    reduce: str
    params: Mapping[str, Any]
    block: int

    @staticmethod
    def make(
        f: Any,
        x: Array,
        y: Array,
        b: Array | None,
        reduce: str,
        params: Mapping[str, Any] | None,
        block: int,
    ) -> PairProblem:
        """Check the arguments and trace f."""
        if block < 1:
            raise ShapeError(f"block must be at least 1, not {block}")
        check_points(np.ndarray, x, y, b, reduce)
        sizes = parameter_sizes(params)
        function = trace_pair(f, x.shape[1], sizes)
        weights = np.ones((len(y), 1), x.dtype) if b is None else b.reshape(len(y), -1)
        return PairProblem(function, x, y, weights, b, reduce, params or {}, block)

    @cached_property
    def entries(self) -> list[float]:
        """The packed parameter vector."""
        return [
            float(e)
            for p in self.function.parameters
            for e in np.ravel(np.asarray(self.params[p.name]))
        ]

    @cached_property
    def symbols(self) -> tuple[sp.Symbol, ...]:
        """Arguments of the outer programs: sums, loose components of x and y, parameter entries."""
        f = self.function
        loose = [s for k in f.loose for s in (f.x[k], f.y[k])]
        return (*(s.symbol for s in f.sums), *loose, *f.entries)

    def arguments(self, rows: slice, columns: slice) -> list[Array]:
        """The values of `symbols` on one block of pairs."""
        x, y = self.x[rows], self.y[columns]
        sums = [self.terms[r].total(x, y) for r in range(len(self.function.sums))]
        loose = [v for k in self.function.loose for v in (x[:, k, None], y[None, :, k])]
        return [*sums, *loose, *self.entries]

    @cached_property
    def terms(self) -> list[Term]:
        """The sums over components, ready to evaluate."""
        return [Term(self.function, r, self.entries) for r in range(len(self.function.sums))]

    def blocks(self) -> Iterator[tuple[slice, slice]]:
        """Row blocks, and within each the column blocks."""
        for i in range(0, len(self.x), self.block):
            for j in range(0, len(self.y), self.block):
                yield slice(i, i + self.block), slice(j, j + self.block)

    def logits(self, outer: Program, rows: slice, columns: slice) -> list[Array]:
        """The outer expressions on one block, each of its full shape."""
        shape = (len(self.x[rows]), len(self.y[columns]))
        found = outer(*self.arguments(rows, columns))
        return [np.broadcast_to(np.asarray(v, self.x.dtype), shape) for v in found]

    def forward(self) -> tuple[Array, Array | None]:
        """(result, log-sum-exps or None)."""
        outer = program([self.function.outer], self.symbols)
        sums = np.zeros((len(self.x), self.b.shape[1]), self.x.dtype)
        highest = np.full(len(self.x), -np.inf, self.x.dtype)
        total = np.zeros(len(self.x), self.x.dtype)
        for rows, columns in self.blocks():
            (k,) = self.logits(outer, rows, columns)
            weights = self.b[columns]
            if self.reduce == "sum":
                sums[rows] += k @ weights
                continue
            top = np.maximum(highest[rows], k.max(axis=1, initial=-np.inf))
            shift = np.where(np.isneginf(top), 0, top)
            p, keep = np.exp(k - shift[:, None]), np.exp(highest[rows] - shift)
            sums[rows] = keep[:, None] * sums[rows] + p @ weights
            total[rows] = keep * total[rows] + p.sum(axis=1)
            highest[rows] = top
        if self.reduce == "sum":
            return self.shaped(sums), None
        with np.errstate(divide="ignore", invalid="ignore"):
            if self.reduce == "logsumexp":
                return highest + np.log(sums[:, 0]), None
            return self.shaped(sums / total[:, None]), highest + np.log(total)

    def shaped(self, array: Array) -> Array:
        """(N, E) as the caller's b asks: (N,) for a vector or no b."""
        return array[:, 0] if self.given is None or self.given.ndim == 1 else array

    def backward(self, out: Array, out_bar: Array, lse: Array | None) -> PairCotangents:
        """Cotangents from one pass over the blocks."""
        out, out_bar = (np.asarray(a, self.x.dtype) for a in (out, out_bar))
        expected = self.shaped(np.empty((len(self.x), self.b.shape[1]))).shape
        for name, array in (("out", out), ("out_bar", out_bar)):
            if array.shape != expected:
                raise ShapeError(f"{name} has shape {array.shape}; this sum's is {expected}")
        if self.reduce == "softmax" and lse is None:
            raise ShapeError("the softmax cotangent needs lse; get it with return_lse=True")
        level = {"sum": None, "logsumexp": out, "softmax": lse}[self.reduce]
        sums = _Cotangents(self)
        rows_bar = out_bar.reshape(len(self.x), -1)
        delta = (rows_bar * out.reshape(rows_bar.shape)).sum(axis=1)
        b_bar = np.zeros_like(self.b)
        for rows, columns in self.blocks():
            arguments = self.arguments(rows, columns)
            shape = (len(self.x[rows]), len(self.y[columns]))
            found = sums.outer(*arguments)
            k, *partials = (np.broadcast_to(np.asarray(v, self.x.dtype), shape) for v in found)
            weight = k if level is None else np.exp(k - level[rows, None])
            b_bar[columns] += weight.T @ rows_bar[rows]
            c = rows_bar[rows] @ self.b[columns].T
            if self.reduce == "softmax":
                c = c - delta[rows, None]
            if level is not None:
                c = c * weight
            sums.add(rows, columns, c, partials)
        given = None if self.given is None else b_bar.reshape(self.given.shape)
        return PairCotangents(sums.x, sums.y, given, sums.parameters())


class _Cotangents:
    """Accumulates x̄, ȳ and θ̄ from blocks of c_ij."""

    def __init__(self, problem: PairProblem) -> None:
        f = problem.function
        self.problem = problem
        self.x, self.y = np.zeros_like(problem.x), np.zeros_like(problem.y)
        self.theta = dict.fromkeys(f.entries, 0.0)
        loose = [s for k in f.loose for s in (f.x[k], f.y[k])]
        self.symbols = [*(s.symbol for s in f.sums), *loose, *f.entries]
        partials = [f.outer_partial(s) for s in self.symbols]
        self.outer = program([f.outer, *partials], problem.symbols)

    def add(self, rows: slice, columns: slice, c: Array, partials: list[Array]) -> None:
        """Add c_ij ∂f of one block."""
        f, p = self.problem.function, self.problem
        weighted = dict(zip(self.symbols, partials, strict=True))
        for term, part in zip(p.terms, f.sums, strict=True):
            cotangent = c * weighted[part.symbol]
            x_bar, y_bar, entries = term.cotangents(cotangent, p.x[rows], p.y[columns])
            self.x[rows] += x_bar
            self.y[columns] += y_bar
            for symbol, value in entries.items():
                self.theta[symbol] += value
        for k in f.loose:
            self.x[rows, k] += (c * weighted[f.x[k]]).sum(axis=1)
            self.y[columns, k] += (c * weighted[f.y[k]]).sum(axis=0)
        for symbol in f.entries:
            self.theta[symbol] += float(np.sum(c * weighted[symbol], dtype=np.float64))

    def parameters(self) -> dict[str, Array]:
        """θ̄ by name, in the shape and dtype of each parameter."""
        result = {}
        for p in self.problem.function.parameters:
            like = np.asarray(self.problem.params[p.name])
            dtype = like.dtype if like.dtype.kind == "f" else np.float64
            values = np.array([self.theta[s] for s in p.symbols], dtype)
            result[p.name] = values.reshape(like.shape)
        return result


def parameter_sizes(params: Mapping[str, Any] | None) -> dict[str, int | None]:
    """Length of every parameter vector, None for numbers.

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
    """Check arrays of one kind, one real dtype, and fitting shapes.

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
