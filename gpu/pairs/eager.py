"""Kernel sums over all pairs of two point sets on the GPU, never forming the matrix of pairs.

The same reductions and cotangents as `symad.numeric.pairwise`, on CuPy arrays: one pass for the
value, one over rows for x̄ and the parameters', one over columns for ȳ and b̄. Sums are taken in a
fixed order, so results are the same bits from run to run.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import sympy as sp

from symad.errors import ShapeError
from symad.gpu.compile import Machine, check_device, kernel_text, machine
from symad.gpu.pairs.kernel_text import THREADS, PairPlan, Shape, pair_text, plan
from symad.gpu.sympy_to_cuda.printer import Style
from symad.numeric.pairs.eager_pairwise import PairCotangents, check_points, parameter_sizes
from symad.numeric.pairs.eager_pairwise import pairwise as cpu_pairwise
from symad.numeric.pairs.eager_pairwise import pairwise_vjp as cpu_pairwise_vjp
from symad.numeric.pairs.pair_functions import PairFunction, expression_of, trace_pair

Array = Any
_WORKSPACE = 2**26  # numbers that the parts of a split pass may take
_WAVES = 4  # blocks per multiprocessor slot that a pass should have, to even out its end


def pairwise(
    f: Callable[..., Any] | sp.Basic,
    x: Array,
    y: Array,
    b: Array | None = None,
    *,
    reduce: str = "sum",
    params: Mapping[str, Any] | None = None,
    return_lse: bool = False,
    fast: bool = False,
) -> Any:
    """Reduce f(x_i, y_j, θ) over j, weighted by b_j, for every i.

    With k_ij = f(x_i, y_j, θ): "sum" gives a_i = Σ_j k_ij b_j; "logsumexp" gives
    L_i = log Σ_j b_j exp(k_ij) with b_j > 0; "softmax" gives
    a_i = Σ_j b_j exp(k_ij) / Σ_j exp(k_ij).

    Args:
        f: f(x, y, **params) -> SymPy expression, called with D×1 matrices of symbols; or an
            expression in MatrixSymbols or IndexedBases named x and y. Kernels are compiled once
            for each formula.
        x: points (N, D), D ≤ 128: CuPy arrays of float32 or float64 (or NumPy arrays, all of
            them, which go to `symad.numeric.pairwise`).
        y: points (M, D).
        b: (M,) or (M, E); ones if not given. "logsumexp" takes (M,).
        reduce: "sum", "logsumexp" or "softmax".
        params: numbers or CuPy vectors by name.
        return_lse: with "softmax", also return L_i = log Σ_j exp(k_ij).
        fast: allow approximate instructions (tanh, absolute error about 5e-4).

    Returns:
        (N,) or (N, E), as b; (N,) for "logsumexp". float32 exponentials have a relative error of
        about |k| 2⁻²⁴.

    Raises:
        ShapeError: the shapes do not fit, or D > 128.
        TypeError: arrays of different libraries or dtypes.
        TraceError: f uses unknown symbols.
        GpuError: there is no usable GPU.
    """
    if _all_numpy(x, y, b):
        return cpu_pairwise(f, x, y, b, reduce=reduce, params=params, return_lse=return_lse)
    out, lse = PairCall.make(machine(), f, x, y, b, reduce, params, fast).forward()
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
    fast: bool = False,
) -> PairCotangents:
    """Cotangents of x, y, b and θ from those of `pairwise`'s result, in two passes over the pairs.

    Args:
        f: the pair function, as for `pairwise`; likewise every argument not named here.
        x: points (N, D).
        y: points (M, D).
        b: (M,), (M, E) or None.
        out: the result of `pairwise`.
        out_bar: its cotangent, in its shape.
        lse: the log-sum-exps that `pairwise` returned; needed for "softmax".
        reduce: "sum", "logsumexp" or "softmax".
        params: numbers or CuPy vectors by name.
        fast: as for `pairwise`.
    """
    if _all_numpy(x, y, b):
        return cpu_pairwise_vjp(f, x, y, b, out, out_bar, lse=lse, reduce=reduce, params=params)
    call = PairCall.make(machine(), f, x, y, b, reduce, params, fast)
    return call.backward(out, out_bar, lse)


@dataclass(frozen=True)
class PairCall:
    """One kernel sum on a machine, with b as an (M, E) array."""

    machine: Machine
    function: PairFunction
    sizes: PairPlan
    module: Any
    x: Array
    y: Array
    b: Array
    given: Array | None
    reduce: str
    params: Mapping[str, Any]

    @staticmethod
    def make(
        machine: Machine,
        f: Any,
        x: Array,
        y: Array,
        b: Array | None,
        reduce: str,
        params: Mapping[str, Any] | None,
        fast: bool = False,
    ) -> PairCall:
        """Trace f and compile its kernels, which are kept for the next call with the same formula."""
        xp = machine.xp
        check_points(xp.ndarray, x, y, b, reduce, "gpu")
        check_device(xp, x=x, y=y, b=b)
        if x.shape[1] > 128:
            raise ShapeError(f"points have {x.shape[1]} components; the kernels take at most 128")
        if max(len(x), len(y)) >= 2**31:
            raise ShapeError("the kernels take fewer than 2³¹ points")
        params = dict(params or {})
        for name, value in params.items():
            if hasattr(value, "shape") and value.shape and not isinstance(value, xp.ndarray):
                raise TypeError(
                    f"parameter {name} is a {type(value).__module__}.{type(value).__name__}; "
                    f"give a number or a {xp.__name__} array, like x and y"
                )
        weights = xp.ones((len(y), 1), x.dtype) if b is None else b.reshape(len(y), -1)
        real = "float" if x.dtype == np.float32 else "double"
        items = tuple(parameter_sizes(params).items())
        expression = expression_of(f, x.shape[1], dict(items))
        function, sizes, text = _compile(expression, x.shape[1], items, weights.shape[1], reduce, real, fast)
        x, y, weights = (xp.ascontiguousarray(a) for a in (x, y, weights))
        module = machine.load(text)
        return PairCall(machine, function, sizes, module, x, y, weights, b, reduce, params)

    @property
    def entries(self) -> Array:
        """The packed parameter vector on the device, at least one entry long."""
        xp, dtype = self.machine.xp, self.x.dtype
        parts = [xp.asarray(self.params[p.name], dtype=dtype).reshape(-1)
                 for p in self.function.parameters]  # fmt: skip
        return xp.concatenate(parts) if parts else xp.zeros(1, dtype)

    @property
    def chunks(self) -> int:
        """Launch chunks of payload columns."""
        return -(-int(self.b.shape[1]) // self.sizes.columns)

    def grid(self, owned: int, streamed: int, shape: Shape) -> tuple[int, int, int]:
        """(blocks of owned points, parts of the stream, chunks of columns) of a pass."""
        blocks = -(-owned // shape.points)
        wanted = -(-self.machine.processors * 8 * _WAVES // (blocks * self.chunks))
        tiles = -(-streamed // self.sizes.tile)
        room = _WORKSPACE // (owned * max(self.function.dimension, self.b.shape[1]))
        return (blocks, max(1, min(wanted, tiles, room, 1024)), self.chunks)

    def launch(self, name: str, grid: tuple[int, int, int], *args: Any) -> None:
        """Run one kernel."""
        shared = self.sizes.shared_bytes(self.function.dimension, self.x.dtype.itemsize)
        sized = [np.int32(a) if isinstance(a, int) else a for a in args]
        self.module.get_function(name)(grid, (THREADS,), tuple(sized), shared_mem=shared)

    def combine(self, parts: Array) -> Array:
        """Σ over the leading axis in its order."""
        if len(parts) == 1:
            return parts[0]
        out = self.machine.xp.empty(parts.shape[1:], parts.dtype)
        blocks = -(-out.size // THREADS)
        self.launch("pair_combine", (blocks, 1, 1), parts, out, np.int64(out.size), len(parts))
        return out

    def forward(self) -> tuple[Array, Array | None]:
        """(result, log-sum-exps or None)."""
        xp, dtype = self.machine.xp, self.x.dtype
        (n, m), columns = (len(self.x), len(self.y)), self.b.shape[1]
        if n == 0 or m == 0:
            empty = xp.full(n, -np.inf, dtype)
            if self.reduce == "logsumexp":
                return empty, None
            fill = 0.0 if self.reduce == "sum" else np.nan
            return self.shaped(xp.full((n, columns), fill, dtype)), empty
        grid = self.grid(n, m, self.sizes.forward)
        parts = xp.empty((grid[1], n, columns), dtype)
        levels = xp.empty((grid[1], n, 2) if self.reduce != "sum" else 1, dtype)
        self.launch("pair_forward", grid, self.x, self.y, self.b, self.entries, parts, levels,
                    n, m, columns)  # fmt: skip
        if self.reduce == "sum":
            return self.shaped(self.combine(parts)), None
        out, lse = xp.empty((n, columns), dtype), xp.empty(n, dtype)
        blocks = (-(-n // THREADS), 1, 1)
        self.launch("pair_combine_levels", blocks, parts, levels, out, lse, n, columns, grid[1])
        return (out[:, 0], None) if self.reduce == "logsumexp" else (self.shaped(out), lse)

    def shaped(self, array: Array) -> Array:
        """(N, E) as the caller's b asks: (N,) for a vector or no b."""
        return array[:, 0] if self.given is None or self.given.ndim == 1 else array

    def backward(self, out: Array, out_bar: Array, lse: Array | None) -> PairCotangents:
        """Cotangents from a pass over rows and a pass over columns."""
        xp, dtype = self.machine.xp, self.x.dtype
        n, m, columns = len(self.x), len(self.y), self.b.shape[1]
        expected = (n,) if self.given is None or self.given.ndim == 1 else (n, columns)
        wanted = {"out": (out, expected), "out_bar": (out_bar, expected)}
        if self.reduce == "softmax":
            wanted["lse"] = (lse, (n,))
        for name, (array, shape) in wanted.items():
            if not isinstance(array, xp.ndarray) or array.shape != shape or array.dtype != dtype:
                raise ShapeError(
                    f"{name} is {getattr(array, 'dtype', type(array))} of shape "
                    f"{getattr(array, 'shape', None)}; this sum needs {dtype} of shape {shape}"
                )
        rows_bar = xp.ascontiguousarray(out_bar.reshape(n, columns))
        stats = xp.zeros(1, dtype)
        if self.reduce != "sum":
            delta = (rows_bar * out.reshape(n, columns)).sum(axis=1)
            stats = xp.stack([out if self.reduce == "logsumexp" else lse, delta], axis=1)
        if n == 0 or m == 0:
            x_bar, y_bar, b_bar = (xp.zeros_like(a) for a in (self.x, self.y, self.b))
            sums = xp.zeros(len(self.function.entries), dtype)
        else:
            x_bar, sums = self.rows(rows_bar, stats)
            y_bar, b_bar = self.columns(rows_bar, stats)
        given = None if self.given is None else b_bar.reshape(self.given.shape)
        return PairCotangents(x_bar, y_bar, given, self.parameters(sums))

    def rows(self, rows_bar: Array, stats: Array) -> tuple[Array, Array]:
        """x̄ and the packed parameters' cotangents."""
        xp, (n, d) = self.machine.xp, self.x.shape
        grid = self.grid(n, len(self.y), self.sizes.backward)
        parts = xp.empty((grid[1] * grid[2], n, d), self.x.dtype)
        entries = max(len(self.function.entries), 1)
        sums = xp.empty((grid[0] * grid[1] * grid[2], entries), self.x.dtype)
        self.launch("pair_backward_rows", grid, self.x, self.y, self.b, rows_bar, stats,
                    self.entries, parts, sums, n, len(self.y), self.b.shape[1])  # fmt: skip
        packed = sums.sum(axis=0) if self.function.entries else sums[0, :0]
        return self.combine(parts), packed

    def columns(self, rows_bar: Array, stats: Array) -> tuple[Array, Array]:
        """ȳ and b̄."""
        xp, (m, d) = self.machine.xp, self.y.shape
        grid = self.grid(m, len(self.x), self.sizes.backward)
        parts = xp.empty((grid[1] * grid[2], m, d), self.x.dtype)
        b_parts = xp.empty((grid[1], m, self.b.shape[1]), self.x.dtype)
        self.launch("pair_backward_columns", grid, self.x, self.y, self.b, rows_bar, stats,
                    self.entries, parts, b_parts, len(self.x), m, self.b.shape[1])  # fmt: skip
        return self.combine(parts), self.combine(b_parts)

    def parameters(self, packed: Array) -> dict[str, Array]:
        """The packed cotangents by name, in the shape of each parameter."""
        result, start = {}, 0
        for p in self.function.parameters:
            stop = start + len(p.symbols)
            result[p.name] = packed[start] if p.size is None else packed[start:stop]
            start = stop
        return result


@lru_cache(maxsize=128)
def _compile(
    f: Any,
    dimension: int,
    sizes: tuple[tuple[str, int | None], ...],
    columns: int,
    reduce: str,
    real: str,
    fast: bool,
) -> tuple[PairFunction, PairPlan, str]:
    """The traced function, its plan and the whole source text of its module."""
    function = trace_pair(f, dimension, dict(sizes))
    chosen = plan(function, columns, real)
    text = pair_text(function, chosen, reduce, Style(real, fast))
    begin = f"#define SYMAD_REAL {real}\n{kernel_text('prims.h')}"
    return function, chosen, begin + text + kernel_text("pair_sum.cu")


def _all_numpy(*arrays: Array | None) -> bool:
    return all(a is None or isinstance(a, np.ndarray) for a in arrays)
