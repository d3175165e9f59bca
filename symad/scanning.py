"""Recurrences in traced functions: ``scan(step, initial, inputs)`` returns all states.

The step is traced once, whatever the number of steps; see `symad.ops.recurrence`. Several states are
kept in one flat array inside, and come back as they were given.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from symad.dims import Dim, Shape, plus, same_shape, size
from symad.errors import ShapeError
from symad.graph import Node
from symad.ops.recurrence import scan as scan_nodes
from symad.ops.shaping import concatenate, reshape, slice_axis
from symad.proxy import Proxy
from symad.wrapped import number


def scan(step: Callable[..., Any], initial: Any, inputs: Any) -> Any:
    """All states c_1, ..., c_T of the recurrence c_t = step(c_{t−1}, x_t).

    Args:
        step: from a state and one step's input to the next state, of the same shape.
        initial: c_0, an array or a tuple of arrays.
        inputs: an array (T, ...) or a tuple of such; the step gets its t-th element(s).

    Returns:
        The states with a leading axis T: an array, or a tuple of arrays, as ``initial`` is.

    Raises:
        ShapeError: no inputs, inputs of different length, or a state that changes its shape.
    """
    xs = tuple(inputs) if isinstance(inputs, (tuple, list)) else (inputs,)
    if not _is_traced((initial, *xs)):
        return _scan_arrays(step, initial, inputs)
    several = isinstance(initial, (tuple, list))
    states = tuple(number(c) for c in (initial if several else (initial,)))
    shapes = [state.shape for state in states]

    def body(packed: Node, *x: Node) -> Node:
        state = [Proxy(c) for c in _unpack(packed, shapes, several)]
        moving = [Proxy(v) for v in x]
        made = step(
            tuple(state) if several else state[0],
            tuple(moving) if isinstance(inputs, (tuple, list)) else moving[0],
        )
        parts = [number(c) for c in (made if several else (made,))]
        _check(parts, shapes)
        return _pack(parts, several)

    history = scan_nodes(body, _pack(states, several), [number(x) for x in xs])
    if not several:
        return Proxy(history)
    length = history.shape[0]
    return tuple(Proxy(part) for part in _columns(history, length, shapes))


def _is_traced(values: Sequence[Any]) -> bool:
    return any(isinstance(v, Proxy) or (isinstance(v, (tuple, list)) and _is_traced(v)) for v in values)


def _check(parts: Sequence[Node], shapes: Sequence[Shape]) -> None:
    if len(parts) != len(shapes) or not all(
        same_shape(p.shape, s) for p, s in zip(parts, shapes, strict=True)
    ):
        raise ShapeError(
            f"scan: the state has shapes {', '.join(map(str, shapes))}, but the step gives "
            f"{', '.join(str(p.shape) for p in parts)}"
        )


def _pack(parts: Sequence[Node], several: bool) -> Node:
    return concatenate([reshape(p, (size(p.shape),)) for p in parts]) if several else parts[0]


def _unpack(packed: Node, shapes: Sequence[Shape], several: bool) -> list[Node]:
    if not several:
        return [packed]
    parts: list[Node] = []
    offset: Dim = 0
    for shape in shapes:
        parts.append(reshape(slice_axis(packed, 0, offset, size(shape)), shape))
        offset = plus(offset, size(shape))
    return parts


def _columns(history: Node, length: Dim, shapes: Sequence[Shape]) -> list[Node]:
    parts: list[Node] = []
    offset: Dim = 0
    for shape in shapes:
        parts.append(reshape(slice_axis(history, 1, offset, size(shape)), (length, *shape)))
        offset = plus(offset, size(shape))
    return parts


def _scan_arrays(step: Callable[..., Any], initial: Any, inputs: Any) -> Any:
    """The same on arrays: a plain loop."""
    several = isinstance(initial, (tuple, list))
    xs = tuple(inputs) if isinstance(inputs, (tuple, list)) else (inputs,)
    state, history = initial, []
    for moving in zip(*xs, strict=True):
        state = step(state, moving if isinstance(inputs, (tuple, list)) else moving[0])
        history.append(tuple(np.asarray(c) for c in state) if several else np.asarray(state))
    if several:
        return tuple(np.stack(part) for part in zip(*history, strict=True))
    return np.stack(history)
