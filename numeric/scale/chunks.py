"""The data of a distributed function: NumPy arrays cut into rows, or Dask arrays; they are checked first."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, TypeAlias
from uuid import uuid4

import numpy as np
import sympy

from symad.core.arrays import Array
from symad.core.dims import solve_dims
from symad.core.graph import Graph
from symad.errors import EvaluationError, ShapeError
from symad.evaluation.evaluate import refuse_masked
from symad.splitting.plan import Cut

if TYPE_CHECKING:
    from symad.core.arrays import ArrayLike

CHUNK_BYTES = 2**23
"""The default size of a part of NumPy arrays. It does not depend on the number of workers."""


@dataclass(frozen=True)
class ShapeOnly:
    """An array whose shape alone is known."""

    shape: tuple[int, ...]
    dtype: ClassVar[np.dtype[np.float64]] = np.dtype(np.float64)

    @property
    def nbytes(self) -> int:
        """The bytes that the array would take."""
        return int(np.prod(self.shape, dtype=np.int64)) * self.dtype.itemsize


class DaskArray(Protocol):
    """The attributes of a Dask array that are read: its shape and its chunks."""

    @property
    def shape(self) -> tuple[int, ...]:
        """The lengths of the axes; NaN if Dask does not know one."""

    @property
    def chunks(self) -> tuple[tuple[int, ...], ...]:
        """For each axis, the lengths of its chunks."""


Data: TypeAlias = "np.ndarray | DaskArray"
"""An array that is cut: a NumPy or Dask array."""


@dataclass(frozen=True)
class Chunks:
    """The data, cut into parts.

    Attributes:
        lengths: the lengths of the parts along the split axis.
        values: the values of all inputs; None for inputs that hold data.
        data: the array of each input that is cut.
        cut: the axes along which inputs are cut.
        lazy: whether some of the data are Dask arrays.
        sizes: the values of the function's symbolic dimensions.
    """

    lengths: tuple[int, ...]
    values: tuple[Any, ...]
    data: tuple[Data, ...]
    cut: Cut
    lazy: bool
    sizes: Mapping[sympy.Symbol, int]

    @property
    def edges(self) -> list[int]:
        """The positions where the parts begin, and the end."""
        return np.cumsum((0, *self.lengths)).tolist()

    def blocks(self) -> list[tuple[Any, ...]]:
        """The data of each part: views of NumPy arrays, or Dask's delayed blocks."""
        delayed = _delayed_blocks([array for array in self.data if is_dask(array)])
        edges = self.edges
        columns = [
            delayed.pop(0) if is_dask(array) else _views(array, axis, edges)
            for array, (_, axis) in zip(self.data, self.cut.axes, strict=True)
        ]
        return list(zip(*columns, strict=True))

    def block_shapes(self) -> list[tuple[tuple[int, ...], ...]]:
        """The shapes of the data of each part, according to Dask."""
        pairs = list(zip(self.data, self.cut.axes, strict=True))
        return [
            tuple((*np.shape(a)[:axis], length, *np.shape(a)[axis + 1 :]) for a, (_, axis) in pairs)
            for length in self.lengths
        ]


def is_dask(value: ArrayLike) -> bool:
    """Whether a value is a Dask array; Dask is not loaded for the test."""
    return hasattr(value, "__dask_graph__") and hasattr(value, "chunks")


def _delayed_blocks(arrays: Sequence[Any]) -> list[list[Any]]:
    """The blocks of each array; all are optimized together, so that Dask reads shared sources once."""
    if not arrays:
        return []
    from dask.core import flatten
    from dask.delayed import Delayed
    from dask.highlevelgraph import HighLevelGraph

    keys = [list(flatten(array.__dask_keys__())) for array in arrays]
    merged = HighLevelGraph.merge(*(array.__dask_graph__() for array in arrays))
    tasks = arrays[0].__dask_optimize__(merged, [key for some in keys for key in some])
    name = f"symad-data-{uuid4().hex}"
    graph = HighLevelGraph.from_collections(name, tasks, dependencies=())
    return [[Delayed(key, graph, layer=name) for key in some] for some in keys]


def _views(array: Any, axis: int, edges: Sequence[int]) -> list[Array]:
    lead = (slice(None),) * axis
    return [array[(*lead, slice(a, b))] for a, b in pairwise(edges)]


def chunks_of(graph: Graph, cut: Cut, values: Sequence[ArrayLike], rows: int | None) -> Chunks:
    """The values of all inputs, with the data cut into parts.

    Args:
        graph: the function, with one input for each value.
        cut: the axes along which inputs are cut.
        values: for data, Dask arrays or arrays of numbers; for other inputs, arrays of numbers.
        rows: the length of a part of NumPy arrays; by default parts have about 8 MiB.

    Raises:
        ShapeError: sizes do not fit, are unknown to Dask, or do not line up; a part is empty; Dask arrays are
            cut along other axes too; or an input that all parts need whole is a Dask array.
        EvaluationError: an array does not hold real numbers.
    """
    names = [argument.name for argument in graph.arguments]
    axes = dict(cut.axes)
    checked = [_checked(names[k], v, axes.get(k)) for k, v in enumerate(values)]
    shapes = zip(names, graph.input_nodes, checked, strict=True)
    sizes = solve_dims([(name, node.shape, tuple(np.shape(v))) for name, node, v in shapes])
    data = [checked[k] for k in axes]
    lengths = _lengths([names[k] for k in axes], data, list(axes.values()), sizes[cut.length], rows)
    kept = tuple(None if k in axes else v for k, v in enumerate(checked))
    return Chunks(lengths, kept, tuple(data), cut, any(map(is_dask, data)), sizes)


def _checked(name: str, value: Any, axis: int | None) -> Any:
    """A value that can be sent to workers; Dask arrays are inspected without being computed."""
    if is_dask(value):
        if axis is None:
            raise ShapeError(
                f"{name} is a Dask array, but all parts need the whole of it: compute it first, or name it "
                "in over"
            )
        check_lengths_known(name, value)
        for k, lengths in enumerate(value.chunks):
            if k != axis and len(lengths) > 1:
                raise ShapeError(
                    f"{name} is cut in {len(lengths)} chunks along axis {k} too: {name}.rechunk({{{k}: -1}})"
                )
    elif type(value).__module__.startswith("dask."):
        raise EvaluationError(f"{name} is a {type(value).__name__} of Dask: use to_dask_array(lengths=True)")
    elif isinstance(value, np.ma.MaskedArray):
        refuse_masked(name, value)
    elif not isinstance(value, ShapeOnly):
        value = np.asarray(value)
    if value.dtype.kind not in "biuf":
        raise EvaluationError(f"{name} has the dtype {value.dtype}; real numbers are needed")
    return value


def check_lengths_known(name: str, value: DaskArray) -> None:
    """Raises ShapeError if Dask does not know the lengths of an array's chunks, as after a selection."""
    if any(math.isnan(length) for lengths in value.chunks for length in lengths):
        raise ShapeError(
            f"{name} has chunks whose lengths Dask does not know: call {name}.compute_chunk_sizes(), or use "
            "to_dask_array(lengths=True)"
        )


def is_count(value: object) -> bool:
    """Whether a value is an integer ≥ 1, of Python or NumPy."""
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool) and int(value) >= 1


def _lengths(
    names: Sequence[str], data: Sequence[Any], axes: Sequence[int], total: int, rows: int | None
) -> tuple[int, ...]:
    """The lengths of the parts: those of the Dask arrays' chunks, which must agree, or equal lengths."""
    if total == 0:
        raise ShapeError(f"{', '.join(names)}: there are no rows")
    known = {name: a.chunks[axis] for name, a, axis in zip(names, data, axes, strict=True) if is_dask(a)}
    for name, lengths in known.items():
        first_name, first = next(iter(known.items()))
        if lengths != first:
            raise ShapeError(
                f"the chunks of {first_name} and {name} do not line up: {_short(first)} and "
                f"{_short(lengths)}; rechunk one of them like the other"
            )
        if 0 in lengths:
            raise ShapeError(f"chunk {lengths.index(0)} of {name} is empty")
    if known:
        return tuple(map(int, next(iter(known.values()))))
    parts = -(-sum(a.nbytes for a in data) // CHUNK_BYTES)
    size = int(rows or 0) or -(-total // max(min(parts, total), 1))
    return tuple(min(size, total - start) for start in range(0, total, size))


def _short(lengths: Sequence[int]) -> str:
    shown = ", ".join(map(str, lengths[:6]))
    return f"({shown}{', ...' if len(lengths) > 6 else ''})"
