"""NumPy's array functions on proxies: the dispatch of a call to its implementation.

The implementations are in `symad.tracing.from_numpy.functions`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from symad.core.arrays import Array, Axis
from symad.core.graph import Node
from symad.core.identifiers import counted
from symad.errors import ShapeError, TraceError
from symad.ops.basic import shaping
from symad.tracing.elements.chosen import Chosen
from symad.tracing.elements.filled import written
from symad.tracing.from_numpy.options import bound
from symad.tracing.proxies.array_protocol import FUNCTIONS, Function, call_function
from symad.tracing.proxies.proxy import Proxy
from symad.tracing.proxies.wrapped import as_node, number

if TYPE_CHECKING:
    from symad.core.arrays import ArrayLike

UNSUPPORTED = {
    "partition": "use np.sort",
    "argpartition": "use np.argsort",
    "unique": "the number of distinct elements depends on data; use np.sort",
    "array": "use np.stack or np.concatenate",
    "histogram": "counts have no derivative",
    "apply_along_axis": "use operations on whole axes, or symad.vmap",
    "put": "traced values never change; use np.where",
    "fill_diagonal": "traced values never change; use np.where(np.eye(n, dtype=bool), value, x)",
    "matrix_rank": "a rank has no derivative",
    "lstsq": "use symad.functions.lstsq(A, b), for independent columns or rows",
    "pinv": "use symad.functions.pinv(A), for independent columns or rows",
    "qr": "use symad.functions.qr(A), whose R has a positive diagonal",
    "eigvals": "eigenvalues may be complex; those of symmetric matrices are np.linalg.eigvalsh",
    "eig": "eigenvalues may be complex; those of symmetric matrices are np.linalg.eigh",
    "angle": "values are real; that of (x, y) is np.arctan2(y, x)",
    "copyto": "traced values never change; use np.where",
}


NO_FFT = "values are real; write sums of cosines and sines, or convolutions with np.convolve"

LAYOUT: set[Function] = set()
"""Functions whose ``order`` is a memory order, and does not move the elements."""


Answer = TypeVar("Answer", bound=Callable[..., object])


def implements(*functions: Function | None, layout: bool = False) -> Callable[[Answer], Answer]:
    """Register the implementation of some NumPy functions; None stands for one that this NumPy lacks.

    Its parameters are the options that it supports; see `symad.tracing.from_numpy.options`.
    """

    def register(answer: Answer) -> Answer:
        for function in filter(None, functions):
            FUNCTIONS[function] = answer
            if layout:
                LAYOUT.add(function)
        return answer

    return register


@call_function.register(Proxy)
def call_function_traced(
    array: Array, function: Function, args: tuple[ArrayLike, ...], options: dict[str, Any]
) -> Any:
    """A NumPy function on arguments that contain a proxy.

    Raises:
        TraceError: the function, or an option of it, is not supported; the message says what to use.
    """
    answer = FUNCTIONS.get(function)
    name = f"{function.__module__}.{function.__name__}".replace("numpy", "np", 1)
    if answer is None:
        advice = UNSUPPORTED.get(
            function.__name__,
            "write it with the operators, reductions and contractions of NumPy that are",
        )
        if name.startswith("np.fft."):
            advice = NO_FFT
        raise TraceError(f"{name} is not supported on traced values; {advice}")
    if any(isinstance(v, Chosen) for v in args):
        return NotImplemented
    if options.get("out") is not None:
        target = options["out"]
        found = function(*args, **{k: v for k, v in options.items() if k != "out"})
        return written(found, target if isinstance(target, tuple) else (target,))
    positional, named = bound(function, answer, name, args, options, function in LAYOUT)
    found = answer(*positional, **named)
    if function in VIEWS and args and isinstance(args[0], Proxy):
        several = isinstance(found, (list, tuple))
        views = [f if f is args[0] else args[0]._viewed(as_node(f)) for f in (found if several else [found])]
        return type(found)(views) if several else views[0]
    return found


VIEWS = {
    np.reshape, np.ravel, np.transpose, np.swapaxes, np.moveaxis, np.rollaxis, np.squeeze, np.expand_dims,
    np.diagonal, np.broadcast_to, np.split, np.array_split, np.hsplit, np.vsplit, np.dsplit, np.flip,
    np.fliplr, np.flipud, np.rot90, np.atleast_1d, np.atleast_2d, np.atleast_3d, np.real,
    np.ascontiguousarray,
}  # fmt: skip
"""Functions whose results may share the memory of their first argument in NumPy."""


def normal_axes(axis: Axis, rank: int) -> tuple[int, ...]:
    """An axis argument as non-negative axes; None means all.

    Raises:
        ShapeError: there is no such axis, or one is given twice.
    """
    if axis is None:
        return tuple(range(rank))
    axes = axis if isinstance(axis, (tuple, list, range)) else (axis,)
    for k in axes:
        if not isinstance(k, (int, np.integer)) or not -rank <= k < rank:
            raise ShapeError(f"axis={k!r}, but the traced value has {counted(rank, 'axis', 'axes')}")
    found = tuple(int(k) % rank for k in axes)
    if len(set(found)) < len(found):
        raise ShapeError(f"axes {tuple(axes)} of a traced value with {rank} axes name one axis twice")
    return found


def along(a: ArrayLike, axis: Axis) -> tuple[Node, int]:
    """The array and the axis; without an axis, the flattened array."""
    node = number(a)
    if axis is None:
        return shaping.flatten(node), 0
    return node, normal_axes(axis, len(node.shape))[0]
