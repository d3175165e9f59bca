"""Recurrences in traced functions: ``scan(step, initial, inputs)`` returns all states.

The step is traced once, for any number of steps; see `symad.higher_order.scan`. Several states are
stored in one flat array inside the loop, and are returned as they were given.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from symad.core.arrays import Array, ArrayLike
from symad.core.dims import Shape, plus, same_shape, size
from symad.core.elsewhere import told_arguments
from symad.core.given import check_callable, real_array
from symad.core.graph import Node
from symad.core.signatures import Memory
from symad.errors import DerivativeError, ShapeError
from symad.higher_order.checkpointed_chain import chain
from symad.higher_order.scan import scan as scan_nodes
from symad.ops.arrays.stacking import concatenate, stack, take
from symad.ops.basic.shaping import cut, reshape
from symad.tracing.proxies.proxy import Proxy
from symad.tracing.proxies.sessions import body as body_session
from symad.tracing.proxies.wrapped import number


@told_arguments()
def scan(step: Callable[..., Any], initial: Any, inputs: Any, memory: Memory = "all") -> Any:
    """All states c_1, ..., c_T of the recurrence c_t = step(c_{t−1}, x_t).

    Args:
        step: from a state and one step's input to the next state, of the same shape.
        initial: c_0, an array or a tuple of arrays.
        inputs: an array (T, ...) or a tuple of such; the step gets its t-th element(s).
        memory: what reverse mode keeps of the steps. "all": every value that their derivatives read.
            Otherwise the states alone; the steps are run again in segments of one step ("recompute"), of k
            steps (an int) or of √T steps ("sqrt"). If only the last state is needed, `fold` also
            keeps fewer states.

    Returns:
        The states with a leading axis T, in the form of ``initial``: an array, or a tuple of arrays. With
        symbolic T the values exist for T = 0 as well, the derivatives for T ≥ 1.

    Raises:
        ShapeError: no inputs, inputs of different length, or a state that changes its shape.
        DerivativeError: there is no such policy.

    Example:
        >>> import numpy as np, symad
        >>> def sums(u):
        ...     return symad.functions.scan(lambda s, t: s + t, 0.0, u)
        >>> symad.trace(sums, [(4,)])(np.ones(4))
        array([1., 2., 3., 4.])
    """
    return _run(step, initial, inputs, memory, True)


@told_arguments()
def fold(step: Callable[..., Any], initial: Array, inputs: Any, memory: Memory = "all") -> Any:
    """The last state c_T of the recurrence c_t = step(c_{t−1}, x_t), in the form of ``initial``.

    A sum over steps, such as a loss, can be a part of the state. With symbolic T, calls need T ≥ 1.

    Args:
        step: see `scan`.
        initial: see `scan`.
        inputs: see `scan`.
        memory: which states reverse mode keeps; the other steps are run again. "all" keeps every value that
            a derivative reads, "recompute" all states, an int k every k-th, "sqrt" every √T-th, "binomial"
            about 2 log2 T states and ("binomial", c) c states, with the minimum number of repeated steps
            (Griewank and Walther 2000). `symad.memory_plan` returns the cost of a policy.

    Returns:
        c_T: an array, or a tuple of arrays.

    Raises:
        ShapeError: no inputs, inputs of different length, or a state that changes its shape.
        DerivativeError: there is no such policy.

    Example:
        >>> import numpy as np, symad
        >>> def horner(x, a):
        ...     return symad.functions.fold(lambda s, c: s * x + c, 0.0, a)
        >>> slope = symad.gradient(symad.trace(horner, [(), (3,)]), "x")
        >>> float(slope(2.0, np.array([1.0, 0.0, 5.0])))
        4.0
    """
    return _run(step, initial, inputs, memory, False)


def _run(step: Callable[..., Any], initial: Any, inputs: Any, memory: Memory, history: bool) -> Any:
    policy, kept = as_policy(memory)
    xs = tuple(inputs) if isinstance(inputs, (tuple, list)) else (inputs,)
    asked = "scan" if history else "fold"
    check_callable(asked, "step", step, "state", "inputs of the step")
    several = isinstance(initial, (tuple, list))
    starts = tuple(initial) if several else (initial,)
    _check_arrays(asked, starts, xs)
    if not _is_traced((initial, *xs)) and not _uses_traced(step, initial, inputs):
        return _scan_arrays(step, initial, inputs, history)
    states = tuple(number(c) for c in starts)
    shapes = [state.shape for state in states]

    def body(packed: Node, *x: Node) -> Node:
        with body_session(f"a step of {asked}"):
            state = [Proxy(c) for c in _unpack(packed, shapes, several)]
            moving = [Proxy(v) for v in x]
            made = step(
                tuple(state) if several else state[0],
                tuple(moving) if isinstance(inputs, (tuple, list)) else moving[0],
            )
            _check_pair(asked, made, shapes, several)
            parts = [number(c) for c in (made if several else (made,))]
        _check(asked, [part.shape for part in parts], shapes)
        return _pack(parts, several)

    found = _steps(body, _pack(states, several), [number(x) for x in xs], (policy, kept), history)
    if not several:
        return Proxy(found)
    parts = _parts(found, shapes, 1) if history else _unpack(found, shapes, several)
    return tuple(Proxy(part) for part in parts)


def _check_arrays(asked: str, starts: Sequence[ArrayLike], xs: Sequence[ArrayLike]) -> None:
    for part in starts:
        real_array(asked, "initial", part)
    for part in xs:
        if not np.shape(real_array(asked, "inputs", part)):
            raise ShapeError(f"{asked}: inputs={part!r} has no axis of steps; give an array (T, ...)")


def _steps(
    body: Callable[..., Node], first: Node, xs: list[Node], policy: tuple[str, int], history: bool
) -> Node:
    """All states, or the last one, which is the first where there are no steps."""
    if policy[0] != "all":
        return chain(body, first, xs, *policy, history)
    if not history and xs[0].shape[0] == 0:
        return first
    states = scan_nodes(body, first, xs)
    return states if history else take(states, 0, plus(xs[0].shape[0], -1))


def as_policy(memory: Any) -> tuple[str, int]:
    """A memory policy as its name and its parameter.

    Raises:
        DerivativeError: there is no such policy.
    """
    name, k = memory if isinstance(memory, tuple) and len(memory) == 2 else (memory, 0)
    if isinstance(name, int) and not isinstance(name, bool) and k == 0:
        name, k = "every", name
    elif name == "every" or (k != 0 and name != "binomial"):
        name = None
    if isinstance(name, (Proxy, np.ndarray)):
        raise DerivativeError("memory is an array; several inputs of a step are given as one tuple (xs, ys)")
    if name not in POLICIES or not isinstance(k, int) or k < (name == "every"):
        raise DerivativeError(
            f"memory={memory!r} is not 'all', 'recompute', a positive number of steps, 'sqrt', 'binomial' or "
            "('binomial', number of states)"
        )
    return name, k


POLICIES = ("all", "recompute", "every", "sqrt", "binomial")


def _is_traced(values: Sequence[object]) -> bool:
    return any(isinstance(v, Proxy) or (isinstance(v, (tuple, list)) and _is_traced(v)) for v in values)


def _check_pair(asked: str, made: object, shapes: Sequence[Shape], several: bool) -> None:
    """Refuse (state, output), which a step returns in JAX, where it cannot be a state."""
    if isinstance(made, tuple) and len(made) == 2:
        nested = several and isinstance(made[0], (tuple, list))
        if nested or (not several and (made[1] is None or not same_shape(shapes[0][:1], (2,)))):
            raise ShapeError(
                f"{asked}: the step returns a pair, as (state, output) in JAX; here it returns the next "
                "state alone, and scan gives all of them: make the output a part of the state, or compute it "
                "from the states"
            )


def _check(asked: str, found: Sequence[Shape], shapes: Sequence[Shape]) -> None:
    if len(found) != len(shapes) or not all(map(same_shape, found, shapes)):
        told = ", ".join(map(str, found))
        raise ShapeError(
            f"{asked}: the state has shapes {', '.join(map(str, shapes))}, but the step gives {told}"
        )


def _alike(shapes: Sequence[Shape]) -> bool:
    """True if all states have one shape: they are stacked; others are flattened and concatenated."""
    return all(same_shape(s, shapes[0]) for s in shapes)


def _pack(parts: Sequence[Node], several: bool) -> Node:
    if not several:
        return parts[0]
    if _alike([p.shape for p in parts]):
        return stack(parts)
    return concatenate([reshape(p, (size(p.shape),)) for p in parts])


def _unpack(packed: Node, shapes: Sequence[Shape], several: bool) -> list[Node]:
    if not several:
        return [packed]
    return _parts(packed, shapes, 0)


def _parts(packed: Node, shapes: Sequence[Shape], axis: int) -> list[Node]:
    """What `_pack` has joined, along an axis."""
    if _alike(shapes):
        return [take(packed, axis, k) for k in range(len(shapes))]
    return cut(packed, shapes, axis)


def _uses_traced(step: Callable[..., Array], initial: ArrayLike, inputs: Array | Sequence[Array]) -> bool:
    """True if a step uses traced values of an enclosing function; determined by running the first step."""
    several = isinstance(inputs, (tuple, list))
    if not all(map(len, inputs if several else (inputs,))):
        return False
    return _is_traced((step(initial, tuple(x[0] for x in inputs) if several else inputs[0]),))


def _scan_arrays(step: Callable[..., Array], initial: Any, inputs: Any, whole: bool) -> Any:
    """The same function on arrays: a plain loop."""
    several = isinstance(initial, (tuple, list))
    xs = tuple(inputs) if isinstance(inputs, (tuple, list)) else (inputs,)
    state, history = initial, []
    shapes = [np.shape(part) for part in (initial if several else (initial,))]
    for moving in zip(*xs, strict=True):
        state = step(state, moving if isinstance(inputs, (tuple, list)) else moving[0])
        _check_pair("scan" if whole else "fold", state, shapes, several)
        if whole:
            history.append(tuple(np.asarray(c) for c in state) if several else np.asarray(state))
    if not whole:
        return state
    if several:
        return tuple(np.stack(part) for part in zip(*history, strict=True))
    return np.stack(history)
