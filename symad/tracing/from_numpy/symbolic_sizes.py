"""NumPy's constructors of arrays whose sizes are symbols: np.eye(n), np.zeros(x.shape), np.arange(n).

NumPy does not dispatch on the arguments of these functions, so they are replaced while a function is traced
(`symad.tracing.from_numpy.making`). The replacements accept the dimensions of traced values; if ``like=`` is
a traced value, they also handle sizes that are numbers.

Compiled code of NumPy, such as np.random.rand, calls np.empty itself and does not check that the result is an
array. So np.empty is not replaced, and the other replacements act only if the calling Python code names them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import FrameType
from typing import TYPE_CHECKING, Any

import numpy as np
import sympy

from symad.core.dims import Dim, as_dim, plus
from symad.core.expressions import as_sympy
from symad.errors import TraceError
from symad.ops.basic.shaping import broadcast_to
from symad.ops.basic.sources import eye as identity_node
from symad.ops.basic.sources import iota
from symad.tracing.from_numpy.options import bound
from symad.tracing.proxies.proxy import Proxy
from symad.tracing.proxies.wrapped import number

if TYPE_CHECKING:
    from symad.core.arrays import Array, ArrayLike, Sizes


def is_symbolic(value: ArrayLike) -> bool:
    """True if a size, or one of a shape, is an expression and not a number."""
    if isinstance(value, (tuple, list)):
        return any(map(is_symbolic, value))
    return isinstance(value, sympy.Expr) and not value.is_number


def _dim(size: Sizes) -> Dim:
    """A size.

    Raises:
        TraceError: it is not an integer, such as n/2, or it is negative.
    """
    value = as_sympy(size)
    whole = value.xreplace({s: sympy.Dummy(integer=True) for s in value.free_symbols})
    if not whole.is_integer or value.is_negative:
        raise TraceError(f"{size} is not a size: sizes are integers ≥ 0; quotients round down by //")
    return as_dim(value)


def full(shape: Sizes, fill_value: ArrayLike) -> Proxy:
    """One value everywhere, or an array repeated along leading axes."""
    sizes = shape if isinstance(shape, (tuple, list)) else (shape,)
    return Proxy(broadcast_to(number(fill_value), tuple(map(_dim, sizes))))


def zeros(shape: Sizes) -> Proxy:
    """Zeros."""
    return full(shape, 0)


def ones(shape: Sizes) -> Proxy:
    """Ones."""
    return full(shape, 1)


def empty(shape: Sizes) -> Proxy:
    """Refused: uninitialized memory is not a function of the inputs.

    Raises:
        TraceError: always.
    """
    raise TraceError(
        f"np.empty of the symbolic size {shape}, also within functions of np.random: use np.zeros, and "
        "functions.rand or functions.randn for random numbers"
    )


def _offsets(rows: Dim, columns: Dim | None) -> Proxy:
    """j − i of a matrix: (rows, columns)."""
    across, down = Proxy(iota(_dim(rows if columns is None else columns))), Proxy(iota(_dim(rows)))
    return across[None, :] - down[:, None]


def eye(N: Dim, M: Dim | None = None, k: int = 0) -> Array:
    """Ones on the k-th diagonal."""
    if k == 0 and (M is None or _dim(M) == _dim(N)):
        return identity(N)
    return np.where(_offsets(N, M) == k, 1, 0)


def identity(n: Dim) -> Proxy:
    """The identity matrix."""
    return Proxy(identity_node(_dim(n)))


def tri(N: Dim, M: Dim | None = None, k: int = 0) -> np.ndarray:
    """Ones on and below the k-th diagonal."""
    return np.where(_offsets(N, M) <= k, 1, 0)


def arange(start_or_stop: Dim, stop: Dim | None = None, step: Dim = 1) -> Array:
    """start, start + 1, ..., stop − 1."""
    start, end = (0, start_or_stop) if stop is None else (start_or_stop, stop)
    if step not in (1, None):
        raise TraceError(f"np.arange up to a symbolic size takes step=1, not {step!r}: multiply the result")
    return np.add(Proxy(iota(_dim(plus(end, -start)))), number_of(start))


def linspace(start: Dim, stop: Dim, num: Dim = 50, endpoint: bool = True) -> Array:
    """``num`` equidistant numbers from start to stop, along a new first axis."""
    count = _dim(num)
    steps = sympy.Max(count - 1, 1) if endpoint else count
    numbers = Proxy(iota(count))
    axes = max(np.ndim(start), np.ndim(stop))
    return start + numbers.reshape((count, *(1,) * axes)) * ((stop - start) / number_of(steps))


def number_of(size: Sizes) -> Proxy:
    """A size as a traced number."""
    return Proxy(number(size))


ANSWERS: Mapping[Callable[..., Any], Callable[..., Any]] = {
    np.zeros: zeros,
    np.empty: empty,
    np.ones: ones,
    np.full: full,
    np.eye: eye,
    np.identity: identity,
    np.tri: tri,
    np.arange: arange,
    np.linspace: linspace,
}


def of_symbolic_size(
    original: Callable[..., Any], args: tuple[ArrayLike, ...], options: Mapping[str, Any], frame: FrameType
) -> Any:
    """The array that a constructor of NumPy makes for a calling frame; None if no size is a symbol.

    Raises:
        TraceError: a size is not an integer, an option is not supported, ``step`` of np.arange, or np.empty.
    """
    wanted = isinstance(options.get("like"), Proxy)
    if not wanted and not any(map(is_symbolic, (*args, *options.values()))):
        return None
    if original is not np.empty and original.__name__ not in frame.f_code.co_names:
        return None
    given = {k: v for k, v in options.items() if k != "like"}
    answer = ANSWERS[original]
    positional, named = bound(original, answer, f"np.{original.__name__}", args, given, True)
    return answer(*positional, **named)
