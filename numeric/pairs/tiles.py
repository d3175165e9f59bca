"""Blocks of the pair plane: positions, array reads and score values on one block at a time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import sympy as sp

from symad.errors import ShapeError
from symad.numeric.pairs.mask_tiles import Tiling, classify
from symad.numeric.pairs.scores import LOOPS, B, H, I, J, Load, S, Score
from symad.numeric.pairs.stable_sympy import Program, program

Array = Any


@dataclass(frozen=True)
class Block:
    """Positions of one tile: b, h, i, j as integer arrays on axes 0, 1, 2, 3, and array reads."""

    rows: slice
    columns: slice
    values: dict[sp.Symbol, Array]


@dataclass(frozen=True)
class Plane:
    """A score function with the arrays it reads, over all pairs (b, h, i, j).

    Attributes:
        score: the traced score and mask.
        params: parameter values by name.
        tiling: sizes of the plane and of its tiles.
    """

    score: Score
    params: Mapping[str, Any]
    tiling: Tiling

    def __post_init__(self) -> None:
        sizes = {
            B: self.tiling.batch,
            H: self.tiling.heads,
            I: self.tiling.length_q,
            J: self.tiling.length_k,
        }
        for load in self.score.loads:
            shape = np.shape(self.params[load.name])
            for axis, index in enumerate(load.index):
                if index in sizes and shape[axis] < sizes[index]:
                    raise ShapeError(
                        f"{load.name}[{', '.join(map(str, load.index))}] needs at least "
                        f"{sizes[index]} entries on axis {axis}; {load.name} has shape {shape}"
                    )

    @cached_property
    def classes(self) -> Array:
        """EMPTY, PARTIAL or FULL per tile, axes (b, h, tile of i, tile of j)."""
        return classify(self.score, self.tiling, self.params)

    @cached_property
    def forward(self) -> Program:
        """(t, mask) of (s, b, h, i, j, scalars, reads)."""
        return self.program(self.score.value, self.score.mask)

    @cached_property
    def backward(self) -> Program:
        """(t, mask, ∂t/∂s, ∂t/∂θ of every differentiable symbol)."""
        partials = [self.score.partial(p) for p in self.score.differentiable]
        return self.program(self.score.value, self.score.mask, self.score.slope, *partials)

    @cached_property
    def symbols(self) -> tuple[sp.Symbol, ...]:
        """The arguments of every program of this plane."""
        scalars = [s for _, s in self.score.scalars]
        return (S, *LOOPS, *scalars, *(load.symbol for load in self.score.loads))

    def program(self, *exprs: sp.Basic) -> Program:
        """Compile expressions of the plane's symbols."""
        return program(exprs, self.symbols)

    def block(self, tile_i: int, tile_j: int) -> Block:
        """The positions and array reads of one tile.

        Raises:
            IndexError: an array read of a visible pair lies outside the array.
        """
        t = self.tiling
        rows = slice(tile_i * t.rows, min((tile_i + 1) * t.rows, t.length_q))
        columns = slice(tile_j * t.columns, min((tile_j + 1) * t.columns, t.length_k))
        values: dict[sp.Symbol, Array] = {
            B: np.arange(t.batch).reshape(-1, 1, 1, 1),
            H: np.arange(t.heads).reshape(1, -1, 1, 1),
            I: np.arange(rows.start, rows.stop).reshape(1, 1, -1, 1),
            J: np.arange(columns.start, columns.stop).reshape(1, 1, 1, -1),
        }
        values |= {s: self.params[n] for n, s in self.score.scalars}
        outside = []
        for load in self.score.loads:
            array = np.asarray(self.params[load.name])
            index, valid = self.index(load, values, array.shape)
            values[load.symbol] = array[index]
            outside.append((load, ~valid))
        for load, bad in outside:
            if bad.any():
                self._check_hidden(load, bad, values)
        return Block(rows, columns, values)

    def index(
        self, load: Load, values: Mapping[sp.Symbol, Array], shape: tuple[int, ...]
    ) -> tuple[tuple[Array, ...], Array]:
        """The positions an array read takes on a block, clipped, and where they are inside."""
        known = [s for s in self.symbols if s in values]
        found = program(load.index, known)(*[values[s] for s in known])
        inside = np.asarray(True)
        clipped = []
        for position, size in zip(found, shape, strict=True):
            position = np.asarray(position).astype(np.int64)
            inside = inside & (position >= 0) & (position < size)
            clipped.append(np.clip(position, 0, size - 1))
        return tuple(clipped), inside

    def _check_hidden(self, load: Load, bad: Array, values: Mapping[sp.Symbol, Array]) -> None:
        (mask,) = self.program(self.score.mask)(*[values.get(s, 0.0) for s in self.symbols])
        visible = np.asarray(mask) & bad
        if visible.any():
            names = ", ".join(map(str, load.index))
            where = np.argwhere(visible)[0]
            raise IndexError(
                f"{load.name}[{names}] is read outside its shape "
                f"{np.shape(self.params[load.name])} by a pair that the mask does not hide "
                f"(position {tuple(int(w) for w in where)} of a tile)"
            )

    def arguments(self, s: Array, block: Block) -> list[Array]:
        """The arguments of this plane's programs, for scaled scores ``s`` on ``block``."""
        return [s, *(block.values[symbol] for symbol in self.symbols[1:])]


class ParameterSums:
    """Cotangents of the parameters, summed tile by tile in a fixed order."""

    def __init__(self, plane: Plane) -> None:
        self.plane = plane
        real = [p.name for p in plane.score.parameters if not p.integer]
        self.sums = {n: np.zeros(np.shape(plane.params[n]), np.float64) for n in real}

    def add(self, block: Block, products: list[Array]) -> None:
        """Add t̄ ∂t/∂θ of one tile, each reduced over the loops its index does not hold."""
        score = self.plane.score
        names = {s: n for n, s in score.scalars}
        loads = {load.symbol: load for load in score.loads}
        for symbol, product in zip(score.differentiable, products, strict=True):
            if symbol in names:
                self.sums[names[symbol]] += product.sum(dtype=np.float64)
                continue
            load = loads[symbol]
            used = score.loops(sp.Tuple(*load.index))
            axes = tuple(a for a, loop in enumerate((B, H, I, J)) if loop not in used)
            reduced = product.sum(axis=axes, keepdims=True, dtype=np.float64)
            total = self.sums[load.name]
            index, _ = self.plane.index(load, block.values, total.shape)
            np.add.at(total, tuple(np.broadcast_to(e, reduced.shape) for e in index), reduced)

    def results(self) -> dict[str, Array]:
        """The sums, each in the dtype of its parameter."""
        given = self.plane.params
        return {n: v.astype(np.asarray(given[n]).dtype) for n, v in self.sums.items()}
