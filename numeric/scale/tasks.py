"""The tasks of a worker: evaluating a kernel on one part of the data, and merging the values of two parts."""

from __future__ import annotations

import math
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

import symad
from symad.core.arrays import Array
from symad.errors import ShapeError, SymadError
from symad.numeric.kernel import Kernel
from symad.numeric.lowering import again
from symad.numeric.scale.rows import RowStore
from symad.splitting.plan import Piece, Values, finish, merge, start


class ChunkError(SymadError, RuntimeError):
    """A part of the data could not be computed; the message says which, where, and why."""

    def __init__(self, function: str, chunk: int, worker: str, cause: str) -> None:
        """``chunk`` counts from 0 along the split axis; −1 if it is not known."""
        where = f"chunk {chunk}" if chunk >= 0 else "a chunk"
        super().__init__(f"{function}: {where}, {worker}: {cause}")
        self.function, self.chunk, self.worker, self.cause = function, chunk, worker, cause

    def __reduce__(self) -> tuple[type[ChunkError], tuple[object, ...]]:
        return ChunkError, (self.function, self.chunk, self.worker, self.cause)


@dataclass(frozen=True)
class Job:
    """The information that every worker needs once: the kernel as text, and the rules.

    Attributes:
        name: the name of the function, for messages.
        graph: the saved text of the graph of one part.
        backend: the backend for `symad.numeric.lower`.
        dtype: the dtype for `symad.numeric.lower`.
        pieces: the rules that combine its values.
        names: the names of its inputs.
        cut: the positions of the inputs that hold data.
        check: whether NaN in the data is an error.
        version: the version of symad that made the job.
    """

    name: str
    graph: str
    backend: str
    dtype: str
    pieces: tuple[Piece, ...]
    names: tuple[str, ...]
    cut: tuple[int, ...]
    check: bool
    version: str = symad.__version__

    @property
    def kernel(self) -> Kernel:
        """The lowered function of one part, made once in every process."""
        return _kernel(self.graph, self.backend, self.dtype)

    def store(self, lengths: Sequence[int]) -> RowStore:
        """The store of the rows of all parts, in one process."""
        return RowStore(self.pieces, lengths)

    def begin(self, found: Values) -> Values:
        """The values of one part, ready to merge."""
        return start(self.pieces, found)

    def join(self, left: Values, right: Values) -> Values:
        """The values of two neighboring parts, merged."""
        return merge(self.pieces, left, right)

    def end(self, values: Values) -> Values:
        """The combined values."""
        return finish(self.pieces, values)


@dataclass(frozen=True)
class FactorJob(Job):
    """Residuals r and their Jacobian J, of which the triangular factor R of [J r] alone is kept.

    The factor of the parts' factors, one below the other, is the factor of the whole (Demmel, Grigori,
    Hoemmen, Langou 2012).
    """

    def store(self, lengths: Sequence[int]) -> RowStore:
        """A store of no rows, because factors are merged."""
        return RowStore((), lengths)

    def begin(self, found: Values) -> Values:
        """The factor R of one part; the Jacobian is the last value."""
        *residuals, jacobian = found
        r = np.concatenate([np.ravel(part) for part in residuals])
        return (np.linalg.qr(np.column_stack([jacobian, r]), mode="r"),)

    def join(self, left: Values, right: Values) -> Values:
        """The factor R of both parts together."""
        return (np.linalg.qr(np.concatenate([left[0], right[0]]), mode="r"),)

    def end(self, values: Values) -> Values:
        """The factor R of all parts."""
        return values


@lru_cache(maxsize=64)
def _kernel(text: str, backend: str, dtype: str) -> Kernel:
    return again(text, backend, dtype, ())


def part(
    job: Job,
    chunk: int,
    shared: Sequence[Array | None],
    *blocks: Array,
    shapes: Sequence[tuple[int, ...]] = (),
) -> Values:
    """The values of one part, ready to merge.

    Args:
        job: the function.
        chunk: the number of the part.
        shared: the values of all inputs; None for data.
        blocks: the data of this part, in the order of ``job.cut``.
        shapes: the shapes of the blocks according to Dask; empty for views of arrays.

    Raises:
        ChunkError: any error that occurred here.
    """
    try:
        if job.version != symad.__version__:
            raise SymadError(
                f"symad {symad.__version__} is installed there, but {job.version} where it was sent"
            )
        for position, block, shape in zip(job.cut, blocks, shapes, strict=False):
            if np.shape(block) != tuple(shape):
                raise ShapeError(
                    f"{job.names[position]} has the shape {np.shape(block)} in this chunk, where Dask was "
                    f"told {tuple(shape)}: give chunks= to the function that made it"
                )
        values: list[Any] = list(shared)
        for position, block in zip(job.cut, blocks, strict=True):
            values[position] = block
        if job.backend == "cupy":
            found = _on_device(job.kernel, values)
        else:  # NumPy sums an unaligned array, such as one from a network message, in another order
            values = [v if _is_plain(v) else np.require(v, requirements=("C", "A")) for v in values]
            found = job.kernel(*values)
        if job.check:
            _refuse_nan(job, values, found)
        return job.begin(found)
    except Exception as error:
        raise ChunkError(job.name, chunk, _here(), f"{type(error).__name__}: {error}") from error


def _is_plain(value: Array) -> bool:
    return isinstance(value, np.ndarray) and value.flags.c_contiguous and value.flags.aligned


def _on_device(kernel: Kernel, values: Sequence[Array]) -> Values:
    """A CuPy kernel on arrays of the host or the device; its results are copied to the host."""
    cupy = sys.modules["cupy"]  # the kernel has loaded it
    return tuple(map(cupy.asnumpy, kernel(*map(cupy.asarray, values))))


def _refuse_nan(job: Job, values: Sequence[Array], found: Sequence[Array | float]) -> None:
    """Raise an error if a result is NaN because the data contain NaN."""
    arrays = (np.asarray(v) for v in found if not hasattr(v, "indptr"))
    if not any(math.isnan(np.minimum.reduce(v, axis=None)) for v in arrays if v.size):
        return
    for position in job.cut:
        value = values[position]
        wrong = np.isnan(np.asarray(value.get() if hasattr(value, "get") else value, dtype=np.float64))
        if wrong.any():
            place = ", ".join(str(int(k)) for k in np.argwhere(wrong)[0])
            raise ValueError(
                f"{job.names[position]} has {int(wrong.sum())} NaN in this chunk, the first at [{place}]: "
                "drop or fill them, or say nan='propagate'"
            )


def _here() -> str:
    """The name of the worker in its cluster, or the process."""
    try:
        from distributed import get_worker

        return f"worker {get_worker().address}"
    except (ImportError, ValueError):
        return f"process {os.getpid()}"


def joined(job: Job, left: Values, right: Values) -> Values:
    """The values of two neighboring parts, merged."""
    return job.join(left, right)


def finished(job: Job, values: Values) -> Values:
    """The combined values."""
    return job.end(values)
