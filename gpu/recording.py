"""Device work with one launch per call: it is recorded as a CUDA graph, and replayed.

    kernel = symad.gpu.recorded(symad.value_and_gradient(loss))
    for batch in data:
        value, *gradients = kernel(*parameters, *batch)     # copies, one launch, copies

The first call runs kernel by kernel, which compiles the kernels and allocates their memory. The second call
is recorded. It and all later calls are one launch, plus copies of the arguments to the arrays that the graph
reads, and of the results from the arrays that it writes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from symad.core.graph import Graph
from symad.errors import EvaluationError, ShapeError
from symad.gpu.compile import GpuError, Machine, explained, machine
from symad.gpu.lower import look_at_indices
from symad.gpu.settings import options
from symad.numeric.lowering import lower

Array = Any


def recorded(graph: Graph, dtype: str = "float32") -> Callable[..., Any]:
    """The function of a graph on the current device; from the second call on, a call is one launch.

    Args:
        graph: the function to compute; the shapes of the first call's arguments hold for all calls.
        dtype: the dtype of the computation, as for `lower`.

    Returns:
        A function of device arrays with the results of `lower`. Matrix products use symad's own kernels,
        because CuPy does not allow cuBLAS calls to be recorded.

    Raises:
        GpuError: there is no usable GPU, or its compute capability is below 8.0.

    Example:
        >>> import cupy as cp, symad, symad.gpu
        >>> double = symad.gpu.recorded(symad.trace(lambda x: 2 * x, [(3,)]))
        >>> [double(k * cp.ones(3, "float32")).get().tolist() for k in (1, 2)]
        [[2.0, 2.0, 2.0], [4.0, 4.0, 4.0]]
    """
    where = machine()
    check_recordable(where)
    with options(capture=True):
        kernel = lower(graph, backend="cupy", dtype=dtype)
    made = Recording(where, kernel, [str(s) for s in graph.inputs], dtype, graph.name)

    def call(*arguments: Any) -> Any:
        return made(arguments)

    return call


def check_recordable(where: Machine) -> None:
    """Check that the device supports recorded code.

    Raises:
        GpuError: the compute capability is below 8.0.
    """
    if where.capability < (8, 0):
        found = ".".join(map(str, where.capability))
        raise GpuError(f"recorded code needs compute capability 8.0, not {found}: use capture=False")


class Recording:
    """A function of arrays that is run once, recorded in the second call, and replayed from then on."""

    def __init__(
        self,
        where: Machine,
        work: Callable[..., Any],
        names: Sequence[str],
        dtype: str,
        what: str,
        capture: bool = True,
    ) -> None:
        """Record ``work``, a function of arrays with these names.

        Args:
            where: the device.
            work: a function that launches kernels and returns arrays, in tuples and dicts.
            names: the names of its arguments, for errors.
            dtype: the dtype to which arguments other than integers are converted.
            what: the name of the function.
            capture: whether to record; otherwise each call launches kernel by kernel, for any shapes.
        """
        self._cp, self._work, self._names, self._dtype, self._what = where.xp, work, names, dtype, what
        self._capture = capture
        self.pool = self._cp.cuda.MemoryPool()
        self._stream = self._cp.cuda.Stream(non_blocking=True)
        self._kept: list[Array] | None = None
        self._graph: Any = None
        self._found: Any = None

    def __call__(self, values: Sequence[Array]) -> Any:
        """The results, in copies that later calls do not overwrite.

        Raises:
            EvaluationError: the number of arguments is wrong.
            ShapeError: a shape differs from the first call's, and the function is recorded.
            TypeError: an array is not on the device.
            IndexError: an index of this or an earlier call was out of range (see `check_indices`).
            GpuError: the function does something that cannot be recorded.
        """
        arrays = self._checked(values)
        with explained(self._what):
            found = self._run(arrays)
        look_at_indices()
        return found

    def _run(self, arrays: list[Array]) -> Any:
        current = self._cp.cuda.get_current_stream()
        self._stream.wait_event(current.record())
        with self._stream, self._cp.cuda.using_allocator(self.pool.malloc):
            kept = self._filled(arrays)
            if self._found is None or not self._capture:
                self._found = self._work(*kept)
            else:
                if self._graph is None:
                    self._graph = self._record(kept)
                self._graph.launch()
            found = _each(self._found, lambda a: a.copy())
        current.wait_event(self._stream.record())
        return found

    def _checked(self, values: Sequence[Array]) -> list[Array]:
        if len(values) != len(self._names):
            raise EvaluationError(
                f"{len(values)} arrays for {self._what}, whose data are {', '.join(self._names) or 'none'}"
            )
        arrays = [self._on_device(name, value) for name, value in zip(self._names, values, strict=True)]
        for name, array, kept in zip(self._names, arrays, self._kept or arrays, strict=True):
            if array.shape != kept.shape and self._capture:
                raise ShapeError(
                    f"{name} has shape {array.shape}, but {self._what} is recorded for {kept.shape}: "
                    "record it again for other shapes, or give capture=False"
                )
            if array.dtype.kind not in "iub" and kept.dtype.kind in "iub":
                kinds = f"has dtype {array.dtype}, but {self._what} was begun with {kept.dtype}"
                raise TypeError(f"{name} {kinds}")
        return arrays

    def _on_device(self, name: str, value: Array) -> Array:
        if isinstance(value, self._cp.ndarray):
            return value
        if hasattr(value, "__dlpack__") and value.__dlpack_device__()[0] in (2, 13):
            return self._cp.from_dlpack(value.detach() if getattr(value, "requires_grad", False) else value)
        if hasattr(value, "__cuda_array_interface__"):
            return self._cp.asarray(value)
        raise TypeError(
            f"{name} is a {type(value).__module__}.{type(value).__name__}; give arrays on the device"
        )

    def _filled(self, arrays: list[Array]) -> list[Array]:
        """The arguments, copied to the arrays that the recorded kernels read."""
        if self._kept is None or any(a.shape != b.shape for a, b in zip(arrays, self._kept, strict=True)):
            kinds = [np.int64 if a.dtype.kind in "iub" else np.dtype(self._dtype) for a in arrays]
            self._kept = [self._cp.empty(a.shape, kind) for a, kind in zip(arrays, kinds, strict=True)]
        for kept, array in zip(self._kept, arrays, strict=True):
            kept[...] = array
        return self._kept

    def _record(self, kept: list[Array]) -> Any:
        """The CUDA graph of a call, which writes its results to the arrays of the first recorded call."""
        self._stream.begin_capture()
        try:
            for to, made in zip(_leaves(self._found), _leaves(self._work(*kept)), strict=True):
                to[...] = made
        except BaseException as error:
            self._end_broken_capture()
            if isinstance(error, (NotImplementedError, self._cp.cuda.runtime.CUDARuntimeError)):
                raise GpuError(
                    f"{self._what} cannot be recorded as a CUDA graph ({error}); give capture=False"
                ) from error
            raise
        return self._stream.end_capture()

    def _end_broken_capture(self) -> None:
        try:
            self._stream.end_capture()
        except self._cp.cuda.runtime.CUDARuntimeError:  # the recording has become invalid before
            return


def _each(found: Any, function: Callable[[Array], Any]) -> Any:
    """The result with a function applied to each of its arrays."""
    if isinstance(found, dict):
        return {name: _each(part, function) for name, part in found.items()}
    return tuple(_each(part, function) for part in found) if isinstance(found, tuple) else function(found)


def _leaves(found: Any) -> list[Array]:
    """The arrays of a result, in order."""
    arrays: list[Array] = []
    _each(found, arrays.append)
    return arrays
