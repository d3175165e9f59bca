"""Score functions and masks as CUDA C text for the attention kernels, and their gradients back.

`compile_score` turns a traced `Score` into the text that gpu/kernels/README.md describes: value,
∂t/∂s and the partial of every differentiable parameter read, with every subexpression computed
where it changes: once per block (b, h), per query row, per key column, or per pair. Cotangents of
parameter reads come back from the kernels summed over whole rows, columns or diagonals, in a fixed
order; `CompiledScore.gradients` gathers them into the parameters, again in a fixed order.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import sympy as sp

from symad.errors import ShapeError
from symad.gpu.attention_kernels.score_layout import CHUNK, extreme_key, tiled_axis
from symad.gpu.attention_kernels.score_text import macros, score_text
from symad.gpu.compile import Machine
from symad.gpu.passes.segment_sums import add_laid_out, segment_sum
from symad.gpu.sympy_to_cuda.printer import Style
from symad.numeric.pairs.intervals import ArrayBounds, Interval, evaluate
from symad.numeric.pairs.scores import LOOPS, B, H, I, J, Load, Reduction, Score
from symad.numeric.pairs.stable_sympy import program

Array = Any


@dataclass(frozen=True)
class CompiledScore:
    """The C text of one score function and mask, and the way of its arguments and gradients.

    Attributes:
        score: the traced functions.
        text: the C text; it needs ``macros`` and prims.h before it.
        rows: symbols whose cotangents come back summed over keys; likewise `columns` over rows,
            `diagonals` along i − j, and `pairs` not summed.
        macros: #define lines of SCORE_ROWS and the other traits.
        layout: the C layout of ScoreArgs.
        real: "float" or "double".
    """

    score: Score
    text: str
    rows: tuple[sp.Symbol, ...]
    columns: tuple[sp.Symbol, ...]
    diagonals: tuple[sp.Symbol, ...]
    pairs: tuple[sp.Symbol, ...]
    macros: str
    layout: np.dtype[Any]
    real: str

    @property
    def dtype(self) -> Any:
        """The NumPy type of `real`."""
        return np.float32 if self.real == "float" else np.float64

    def convert(self, params: Mapping[str, Any], xp: Any) -> dict[str, Any]:
        """The parameters as the kernels read them: contiguous arrays of ``xp``, Python numbers.

        Real arrays take the kernels' real type, integers become int32. Adds the minima and maxima
        of arrays that the mask reads. The result must live until the kernel has run.

        Raises:
            TypeError: an array is not of the library ``xp``.
        """
        ready: dict[str, Any] = {}
        for p in self.score.parameters:
            value = params[p.name]
            if p.ndim == 0:
                ready[p.name] = int(value) if p.integer else float(value)
                continue
            if not isinstance(value, xp.ndarray):
                raise TypeError(
                    f"parameter {p.name} is a {type(value).__module__}.{type(value).__name__}; "
                    f"give a {xp.__name__} array, like q, k and v"
                )
            dtype = np.int32 if p.integer else self.dtype
            if p.integer and value.dtype.itemsize > 4 and value.size:
                _check_int32(p.name, value)
            ready[p.name] = xp.ascontiguousarray(value, dtype=dtype)
        for load in self.score.reads(self.score.mask):
            ready |= _extremes(load, ready[load.name])
        return ready

    def check(
        self, params: Mapping[str, Any], batch: int, heads: int, length_q: int, length_k: int
    ) -> None:
        """Check every array index against the array's shape, by intervals.

        Where a mask may hide the pairs that would read outside, kernels clamp the index instead.

        Raises:
            ShapeError: an array is too small for the loops that index it.
        """
        sizes = {B: batch, H: heads, I: length_q, J: length_k}
        known: dict[sp.Basic, Any] = {
            loop: Interval(0, max(size - 1, 0)) for loop, size in sizes.items()
        }
        for load in self.score.loads:
            shape = params[load.name].shape
            for axis, index in enumerate(load.index):
                if not index.free_symbols <= set(LOOPS):
                    continue
                found = evaluate(index, known, ArrayBounds)
                hidden = self.score.mask != sp.true and index not in sizes
                if not hidden and (found.low < 0 or found.high >= shape[axis]):
                    names = ", ".join(map(str, load.index))
                    raise ShapeError(
                        f"{load.name}[{names}] reads entries {found.low} to {found.high} of axis "
                        f"{axis}; {load.name} has shape {shape}"
                    )

    def arguments(self, params: Mapping[str, Any]) -> Array:
        """ScoreArgs for converted parameters: a structured NumPy array of shape (1,)."""
        result = np.zeros(1, self.layout)
        for name in self.layout.names or ():
            kind, _, key = name.partition("_")
            if kind == "unused":
                continue
            if kind == "n":
                axis, _, key = key.partition("_")
                result[name] = params[key].shape[int(axis)]
            else:
                value = params[key] if kind in "pv" else params[f"{kind} {key}"]
                result[name] = _pointer(value) if hasattr(value, "dtype") else value
        return result

    def gradients(
        self,
        rows: Array | None,
        columns: Array | None,
        diagonals: Array | None,
        pairs: Array | None,
        params: Mapping[str, Any],
        length_k: int,
        machine: Machine | None = None,
    ) -> dict[str, Array]:
        """Cotangents of the real parameters from the kernels' sums.

        Args:
            rows: (R, B, H, N) sums over keys, in the order of `rows`; None if there are none.
            columns: (C, B, H, M) sums over queries.
            diagonals: (D, B, H, N+M−1) sums along i − j = index − (M−1).
            pairs: (P, B, H, N, M) unsummed.
            params: the converted parameters.
            length_k: M.
            machine: where the sums lie; None for NumPy arrays.

        Returns:
            An array of each real parameter's shape by name; zero where the score ignores it.
        """
        groups = (self.rows, self.columns, self.diagonals, self.pairs)
        sums: list[tuple[sp.Symbol, Array]] = []
        for group, values in zip(groups, (rows, columns, diagonals, pairs), strict=True):
            given = () if values is None else values
            if len(given) < len(group):
                missing = ", ".join(s.name for s in group)
                raise ShapeError(f"the kernels gave no sums for {missing}")
            sums += zip(group, given, strict=False)
        arrays = [v for v in (rows, columns, diagonals, pairs, *params.values()) if _is_array(v)]
        xp = _library(arrays[0]) if arrays else np
        real = [p for p in self.score.parameters if not p.integer]
        totals = {
            p.name: xp.zeros(params[p.name].shape if p.ndim else (), self.dtype) for p in real
        }
        names = {s: n for n, s in self.score.scalars}
        loads = {load.symbol: load for load in self.score.loads}
        for symbol, values in sums:
            if symbol in names:
                totals[names[symbol]] = totals[names[symbol]] + values.sum()
            else:
                load = loads[symbol]
                axes = self.places(load)
                if axes is not None:
                    add_laid_out(totals[load.name], values, axes)
                    continue
                places = self._places(load, values.shape, params, length_k, xp)
                _add_at(totals[load.name], places, values, xp, machine)
        return totals

    def summed(self, load: Load) -> Reduction:
        """How the kernels sum the cotangents of an array read."""
        pair = load.symbol in self.pairs  # also where diagonal sums were not asked for
        return Reduction.PAIR if pair else self.score.reduction(load.symbol)

    def places(self, load: Load) -> list[tuple[int | None, int]] | None:
        """Where an array is read, if no two entries of a sum read one place (see `add_laid_out`)."""
        reduction = self.summed(load)
        if reduction is Reduction.DIAGONAL:
            return None
        axes = {B: 0, H: 1, J: 3 if reduction is Reduction.PAIR else 2, I: 2}
        loops = [e for e in load.index if e in axes]
        if len(set(loops)) < len(loops) or not all(e in axes or e.is_Integer for e in load.index):
            return None
        return [(axes[e], 0) if e in axes else (None, int(e)) for e in load.index]

    def _places(
        self, load: Load, shape: tuple[int, ...], params: Any, length_k: int, xp: Any
    ) -> list[Array]:
        """Where ``load`` reads, for every entry of a sum of that shape: one array per axis."""

        def along(axis: int) -> Array:
            points = xp.arange(shape[axis])
            return points.reshape([-1 if a == axis else 1 for a in range(len(shape))])

        known: dict[sp.Symbol, Any] = {B: along(0), H: along(1)}
        reduction = self.summed(load)
        if reduction in (Reduction.ROW, Reduction.ALL, Reduction.PAIR):
            known[I] = along(2)
        if reduction is Reduction.COLUMN:
            known[J] = along(2)
        if reduction is Reduction.PAIR:
            known[J] = along(3)
        if reduction is Reduction.DIAGONAL:
            known |= {I: along(2) - (length_k - 1), J: 0}
        known |= {s: params[n] for n, s in self.score.scalars}
        for read in self.score.reads(*load.index):
            known[read.symbol] = params[read.name][tuple(_index(read, params, known, xp))]
        return _index(load, params, known, xp)


def _is_array(value: Any) -> bool:
    return getattr(value, "ndim", 0) > 0


def _library(array: Any) -> Any:
    """The array library of ``array``: NumPy, or CuPy without importing it here."""
    if isinstance(array, np.ndarray):
        return np
    import cupy

    return cupy.get_array_module(array)


def _check_int32(name: str, value: Array) -> None:
    low, high = int(value.min()), int(value.max())
    if low < -(2**31) or high >= 2**31:
        raise ShapeError(f"parameter {name} holds {low} to {high}; kernels take 32-bit integers")


def _pointer(array: Array) -> int:
    return int(array.ctypes.data if isinstance(array, np.ndarray) else array.data.ptr)


def _extremes(load: Load, array: Array) -> dict[str, Array]:
    """Minima and maxima of a mask's array, per `CHUNK` entries of its tiled axis, or of all."""
    axis, key = tiled_axis(load), extreme_key(load)
    if key is None:
        return {}
    if axis is None:
        return {f"lo {key}": array.min().reshape(1), f"hi {key}": array.max().reshape(1)}
    xp = _library(array)
    last = xp.moveaxis(array, axis, -1)
    filler = xp.repeat(last[..., -1:], -last.shape[-1] % CHUNK, axis=-1)
    chunks = xp.concatenate([last, filler], axis=-1).reshape(*last.shape[:-1], -1, CHUNK)
    ends = {"lo": chunks.min(axis=-1), "hi": chunks.max(axis=-1)}
    return {
        f"{end} {key}": xp.ascontiguousarray(xp.moveaxis(values, -1, axis))
        for end, values in ends.items()
    }


def _index(load: Load, params: Any, known: Mapping[sp.Symbol, Any], xp: Any) -> list[Array]:
    """The positions ``load`` reads, clamped to the array."""
    symbols = list(known)
    found = program(load.index, symbols)(*[known[s] for s in symbols])
    shape = params[load.name].shape
    positions = [xp.asarray(v).astype(np.int64) for v in found]
    return [xp.clip(p, 0, size - 1) for p, size in zip(positions, shape, strict=True)]


def _add_at(
    total: Array, places: Sequence[Array], values: Array, xp: Any, machine: Machine | None
) -> None:
    """total[places] += values, equal places in a fixed order: the same bits every run."""
    shape = np.broadcast_shapes(*(p.shape for p in places))
    shape = (1,) * (values.ndim - len(shape)) + tuple(shape)
    summed = values.sum(axis=tuple(a for a, n in enumerate(shape) if n == 1), keepdims=True)
    linear = xp.zeros((), np.int64)
    for place, size in zip(places, total.shape, strict=True):
        linear = linear * size + place
    flat = xp.ascontiguousarray(xp.broadcast_to(linear, summed.shape)).reshape(-1)
    total += segment_sum(machine, flat, summed.reshape(-1), total.size).reshape(total.shape)


@lru_cache(maxsize=256)
def compile_score(
    score: Score, real: str = "float", fast: bool = False, diagonals: bool = True
) -> CompiledScore:
    """The C text of a traced score function and mask.

    Args:
        score: from `symad.numeric.pairs.scores.trace_score`.
        real: type of scores in the kernels, "float" or "double".
        fast: allow approximate instructions (tanh with an absolute error of about 5e-4).
        diagonals: whether the kernels sum along diagonals; otherwise these cotangents come back
            unsummed, at the cost of an N×M array each.

    Raises:
        LoweringError: the score uses a function without a CUDA form.
    """
    groups: dict[Reduction, list[sp.Symbol]] = {r: [] for r in Reduction}
    for symbol in score.differentiable:
        reduction = score.reduction(symbol)
        if reduction is Reduction.DIAGONAL and not diagonals:
            reduction = Reduction.PAIR
        groups[Reduction.ROW if reduction is Reduction.ALL else reduction].append(symbol)
    symbols = (
        tuple(groups[Reduction.ROW]),
        tuple(groups[Reduction.COLUMN]),
        tuple(groups[Reduction.DIAGONAL]),
        tuple(groups[Reduction.PAIR]),
    )
    text, layout = score_text(score, symbols, Style(real, fast))
    return CompiledScore(score, text, *symbols, macros(score, symbols), layout, real)
