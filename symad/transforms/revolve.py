"""Reverse mode through a long chain that keeps some states: which states, and the order of the steps.

The code is plain Python and NumPy, because graph evaluation runs these functions and generated code contains
their text. For s_k = f(s_{k−1}), k = 1..n, a segment is the steps between two kept states. Source of the
binomial schedule: Griewank and Walther, "Algorithm 799: revolve" (2000).
"""

from collections.abc import Callable, Sequence
from math import comb
from typing import Any

import numpy as np

from symad.core.arrays import Array


def beta(slots: int, repeats: int) -> int:
    """β(s, r) = C(s + r, s): the longest chain that s slots reverse with r repetitions."""
    return comb(slots + repeats, slots) if repeats >= 0 else 0


def repetitions(length: int, slots: int) -> int:
    """The minimum r with β(s, r) ≥ n."""
    repeats = 0
    while beta(slots, repeats) < length:
        repeats += 1
    return repeats


def split(length: int, free: int) -> int:
    """The position of the next state to keep, with ``free`` more slots, for the minimum number of steps."""
    slots = free + 1
    repeats = repetitions(length, slots)
    return min(beta(slots, repeats - 1), length - beta(slots - 1, repeats - 1))


def places(length: int, distance: int, slots: int) -> list[int]:
    """The ends of the segments: every ``distance``-th state, or the states kept first by ``slots`` slots."""
    if distance:
        return [min(k + distance, length) for k in range(0, length, distance)] or [0]
    found, free = [0], slots - 1
    while length - found[-1] > 1 and free:
        found.append(found[-1] + split(length - found[-1], free))
        free -= 1
    return [*found[1:], length]


def advance(
    step: "Callable[..., Array]", state: "Array", xs: "tuple[Array, ...]", start: int, stop: int
) -> "Array":
    """The state after the steps start + 1, ..., stop."""
    for t in range(start, stop):
        state = step(state, *[x[t] for x in xs])
    return state


def keep_states(
    step: "Callable[..., Array]", state: "Array", xs: "tuple[Array, ...]", stops: "Sequence[int]"
) -> Any:
    """The states at these positions, along axis 0."""
    kept, start = None, 0
    for k, stop in enumerate(stops):
        state = advance(step, state, xs, start, stop)
        if kept is None:
            first = np.asarray(state)
            kept = np.empty((len(stops), *first.shape), dtype=first.dtype)
        kept[k], start = state, stop
    return kept


def reverse_chain(
    step: "Callable[..., Array]",
    pulled: "Callable[..., Sequence[Array]]",
    xs: "tuple[Array, ...]",
    states: "Sequence[Array]",
    stops: "Sequence[int]",
    slots: int,
    bar: "Array",
    history: bool,
    outs: "Sequence[tuple[np.ndarray, bool]]",
) -> "Array":
    """The cotangent of s_0; those of the inputs of steps and of constants are written into ``outs``.

    ``pulled(state, x[first:last]..., bar)`` pulls back through a segment from its first state;
    ``states`` are s_0 and the kept ones, at 0 and at the ``stops``. Segments are pulled back as a whole if
    ``slots`` is 0, otherwise step by step: each is split at a kept state, as long as slots are free.
    The kept states stay until the end, so the states alive are at most twice the number of slots.
    """
    carry: Any = None if history else bar
    starts = [0, *stops[:-1]]
    for k in range(len(stops) - 1, -1, -1):
        stack = [(starts[k], states[k], stops[k], slots - 1 - k)]
        while stack:
            first, state, last, free = stack.pop()
            if last - first > 1 and slots:
                middle = first + split(last - first, free) if free else last - 1
                stack.append((first, state, middle, free))
                stack.append((middle, advance(step, state, xs, first, middle), last, max(free - 1, 0)))
                continue
            if last == first:
                continue
            coming = bar[first:last] if history else carry
            if history and carry is not None:
                coming = coming.copy()
                coming[-1] += carry
            carry, *parts = pulled(state, *[x[first:last] for x in xs], coming)
            for (out, per_step), part in zip(outs, parts, strict=True):
                if per_step:
                    out[first:last] = part
                else:
                    out[...] += part
    return carry
