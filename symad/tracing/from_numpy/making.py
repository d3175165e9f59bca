"""NumPy's constructors while a function is traced, and the few other functions that use no protocol.

``np.asarray``, ``np.array`` and ``np.isscalar`` do not dispatch on their arguments, as other functions of
NumPy do; ``np.zeros`` and similar functions have no argument to dispatch on; lists of traced values take
part in no protocol (`symad.tracing.from_numpy.lists`). While a function is traced they are replaced in the
module numpy: for traced values the functions below compute the result, arrays that the user's code makes may
be filled with traced values (`symad.tracing.elements.filled`), and sizes may be symbols
(the second part of this file). Every other call is passed to NumPy's function. So are seeds that
NumPy makes itself, which is told (`symad.tracing.random_draws`).

No other part of symad modifies another module. The names in the traced function could be replaced instead
(`symad.tracing.names`), but methods of models and functions of libraries refer to NumPy by their own names,
and most of them begin with ``np.asarray(x)``. The result of a call depends on its arguments and on the
context in which it runs (`symad.tracing.proxies.sessions` is a context variable), so threads that trace
nothing get the same results as without symad. The replacements are counted over all threads: the first
trace installs them, the last one removes them, however it ends. The child of a fork has none unless the
thread that forked was tracing. NumPy's own protocols do not suffice: ``like=`` dispatches these functions,
but users' code does not give it, and arrays hold traced values only if the user asks for dtype=object.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache, wraps
from threading import Lock
from types import FrameType, ModuleType
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import sympy

from symad.core.arrays import Array
from symad.core.dims import Dim, as_dim, plus
from symad.core.expressions import as_sympy
from symad.core.process import hold_while_forking
from symad.errors import SymadError, TraceError
from symad.ops.basic.shaping import broadcast_to
from symad.ops.basic.sources import eye as identity_node
from symad.ops.basic.sources import iota
from symad.tracing.elements.filled import Filled, holds_traced, refilled, unfilled
from symad.tracing.from_numpy import lists, scipy_sparse, scipy_stats
from symad.tracing.from_numpy.options import bound
from symad.tracing.inlining import inline
from symad.tracing.proxies.proxy import Proxy
from symad.tracing.proxies.sessions import WHILE_TRACING, is_tracing
from symad.tracing.proxies.wrapped import as_node, number
from symad.tracing.random_draws import noting
from symad.tracing.run_on_proxies import trace_function
from symad.tracing.users_line import is_scipys_code, is_users_code, users_line

if TYPE_CHECKING:
    from symad.core.arrays import ArrayLike, Sizes


# ---- arrays whose sizes are symbols: np.eye(n), np.zeros(x.shape), np.arange(n) -------------------

# The replacements accept the dimensions of traced values; if like= is a traced value, they also handle
# sizes that are numbers. Compiled code of NumPy, such as np.random.rand, calls np.empty itself and does not
# check that the result is an array. So np.empty is not replaced, and the other replacements act only if the
# calling Python code names them.


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
        TraceError: a size is not an integer, or is traced; np.empty; an option, as ``step`` of np.arange.
    """
    name = original.__name__
    sizes = {"arange": args, "linspace": (*args[2:3], options.get("num"))}.get(name, args[:1])
    if any(isinstance(size, Proxy) for size in sizes):
        raise TraceError(
            f"np.{name} of a traced size{users_line()}: the length of an array cannot depend on data; give a "
            "number, a symbol or x.shape[0]"
        )
    wanted = isinstance(options.get("like"), Proxy)
    if not wanted and not any(map(is_symbolic, (*args, *options.values()))):
        return None
    if original is not np.empty and name not in frame.f_code.co_names:
        return None
    given = {k: v for k, v in options.items() if k != "like"}
    answer = ANSWERS[original]
    positional, named = bound(original, answer, f"np.{name}", args, given, True)
    return answer(*positional, **named)


Function: TypeAlias = Callable[..., Any]
Place: TypeAlias = ModuleType | type
"""A module or a class, whose functions are replaced."""


def _converter(original: Function, copies: bool) -> Function:
    """np.asarray or np.array: traced values stay traced, lists of them are stacked."""

    @wraps(original)
    def convert(*args: Any, **options: Any) -> Any:
        value = args[0] if args else options.get("a", options.get("object"))
        if isinstance(value, Filled) and value._traced is None:
            plain = original(*args, **options)
            same = plain.shape == value.shape and np.may_share_memory(plain, value)
            return value if same else refilled(plain)
        if not holds_traced(value):
            return original(*args, **options)
        dtype = args[1] if len(args) > 1 else options.get("dtype")
        if dtype is not None and np.dtype(dtype) == object:
            return original(*args, **options)
        found = unfilled(value)
        if not isinstance(found, Proxy):
            try:
                found = Proxy(as_node(found))
            except (SymadError, TypeError, ValueError):  # not all entries are numbers of one shape
                return original(*args, **options)
        elif copies and options.get("copy", True) is not False:
            found = found.copy()
        if dtype is not None:
            found = found.astype(dtype)
        missing = options.get("ndmin", 0) - found.ndim
        return found if missing <= 0 else found.reshape((1,) * missing + tuple(found.shape))

    return convert


def _maker(original: Function) -> Function:
    """np.zeros and similar: arrays of floats from the user's code, which may be filled with traced values."""
    empty = original is np.empty

    @wraps(original)
    def make(*args: Any, **options: Any) -> Any:
        if not is_tracing() or not (is_users_code(frame := sys._getframe(1)) or is_scipys_code(frame)):
            return original(*args, **options)
        if (sized := of_symbolic_size(original, args, options, frame)) is not None:
            return sized
        if holds_traced(args):  # np.full(shape, traced)
            return Proxy(as_node(np.broadcast_to(options.get("fill_value", args[-1]), args[0])))
        made = _plain(original, args, options)
        if empty and made.dtype.kind == "f":
            made.fill(0)  # uninitialized memory is not a function of the inputs
        return refilled(made)

    return make


def _sized(original: Function) -> Function:
    """np.eye and similar, for sizes that may be symbols."""

    @wraps(original)
    def make(*args: Any, **options: Any) -> Array:
        if not is_tracing():
            return original(*args, **options)
        sized = of_symbolic_size(original, args, options, sys._getframe(1))
        return _plain(original, args, options) if sized is None else sized

    return make


def _plain(original: Function, args: tuple[Any, ...], options: dict[str, Any]) -> Any:
    """An array of NumPy.

    Raises:
        TraceError: NumPy refuses the arguments, and none of them is an expression.
    """
    try:
        return original(*args, **options)
    except (TypeError, ValueError, ZeroDivisionError) as error:
        if isinstance(error, SymadError) or any(map(is_symbolic, (*args, *options.values()))):
            raise
        given = ", ".join([*map(repr, args), *(f"{k}={v!r}" for k, v in options.items())])
        raise TraceError(
            f"np.{original.__name__}({given}){users_line()}: {str(error).rstrip('.')}; a size is an integer "
            ">= 0, a symbol or x.shape[0]"
        ) from error


def _is_scalar(original: Function) -> Function:
    """np.isscalar: a traced value without axes counts as a number."""

    @wraps(original)
    def is_scalar(element: ArrayLike) -> bool:
        return not element.ndim if isinstance(element, Proxy) else bool(original(element))

    return is_scalar


def _vectorized(original: Function) -> Function:
    """Functions made by np.vectorize: the function of numbers is traced once and applied elementwise."""

    @wraps(original)
    def call(self: np.vectorize, *args: Array, **options: Array) -> Any:
        if not holds_traced(args) or options or self.signature is not None or self.excluded:
            return original(self, *args, **options)
        return inline(trace_function(self.pyfunc, [()] * len(args)), list(unfilled(args)))

    return call


REPLACED: tuple[tuple[Place, str, Function], ...] = (
    (np, "asarray", _converter(np.asarray, False)),
    (np, "asanyarray", _converter(np.asanyarray, False)),
    (np, "asarray_chkfinite", _converter(np.asarray_chkfinite, False)),
    (np, "array", _converter(np.array, True)),
    (np, "zeros", _maker(np.zeros)),
    (np, "ones", _maker(np.ones)),
    (np, "empty", _maker(np.empty)),
    (np, "full", _maker(np.full)),
    *((np, name, _sized(getattr(np, name))) for name in ("eye", "identity", "tri", "arange", "linspace")),
    (np, "isscalar", _is_scalar(np.isscalar)),
    (np.vectorize, "__call__", _vectorized(np.vectorize.__call__)),
    (np.random.bit_generator, "randbits", noting(vars(np.random.bit_generator)["randbits"])),
)
"""For each function its module, its name, and its replacement while a function is traced."""

_LOCK = Lock()
hold_while_forking(_LOCK)
_traces = 0
_originals: list[tuple[Place, dict[str, Function]]] = []
"""What was replaced: modules and classes, each with its functions by name."""


@contextmanager
def constructors_take_proxies() -> Iterator[None]:
    """A context in which NumPy's constructors accept traced values; see the top of this file."""
    global _traces
    counted = False
    try:  # around the replacing, too: an interrupt in the middle of it restores what was replaced
        with _LOCK:
            _traces, counted = _traces + 1, True
            if _traces == 1:
                for place, made in (*_in_numpy(), *_in_scipy()):
                    held = vars(place)
                    _originals.append((place, {name: held[name] for name in made}))
                    _put(place, made)
        yield
    finally:
        with _LOCK:
            _traces -= counted
            if _traces == 0:
                _restore()


def _restore() -> None:
    while _originals:
        _put(*_originals[-1])
        _originals.pop()


def _put(place: Place, functions: dict[str, Function]) -> None:
    """Give a module or a class other functions; those of a module all at once, as every trace does it."""
    if isinstance(place, ModuleType):
        vars(place).update(functions)
    else:
        for name, function in functions.items():
            setattr(place, name, function)


def _restore_in_child() -> None:
    """After a fork, unless the thread that forked traces a function: the child has none of the others."""
    global _traces
    if not is_tracing():
        _traces = 0
        _restore()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_restore_in_child)

WHILE_TRACING.append(constructors_take_proxies)


@cache
def _in_numpy() -> tuple[tuple[Place, dict[str, Function]], ...]:
    """The modules and classes of NumPy, each with its replacements by name."""
    found: dict[Place, dict[str, Function]] = {}
    for place, name, function in (*REPLACED, *lists.replacements()):
        found.setdefault(place, {})[name] = function
    return tuple(found.items())


def _in_scipy() -> list[tuple[Place, dict[str, Function]]]:
    """Classes of SciPy, and modules whose short formulas, such as that of polygamma, call NumPy's asarray."""
    found: list[tuple[Place, dict[str, Function]]] = []
    found += [*scipy_stats.replacements(), *scipy_sparse.replacements()]
    basic = sys.modules.get("scipy.special._basic")
    if basic is not None and hasattr(basic, "asarray"):
        found.append((basic, {"asarray": _SCIPYS_ASARRAY}))
    return found


_SCIPYS_ASARRAY = _converter(np.asarray, False)
