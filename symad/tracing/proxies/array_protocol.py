"""What Python and NumPy ask of an array, as traced values answer it: operations, conversions, shared memory.

A traced value (`symad.tracing.proxies.proxy.Proxy`) delegates these operations. The rules of
`symad.tracing.from_numpy` construct traced values, so they are in a higher layer and are registered here.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import singledispatch
from typing import TYPE_CHECKING, Any, NoReturn, TypeAlias

import numpy as np

from symad.core.dims import format_shape
from symad.errors import TraceError
from symad.ops.basic.sources import constant_value
from symad.tracing.proxies.sessions import SESSION
from symad.tracing.proxies.wrapped import Wrapped
from symad.tracing.users_line import library_call, users_line

if TYPE_CHECKING:
    from symad.core.arrays import ArrayLike, Index


Function: TypeAlias = Callable[..., Any]
"""A function of NumPy, or its implementation for traced values."""

FUNCTIONS: dict[Function, Function] = {}
"""NumPy's functions on proxies; `symad.tracing.from_numpy.registry` fills it."""

REPLACED: dict[Function, Function] = {}
"""NumPy's functions whose places others take while a function is traced, by the others."""

UFUNCS: dict[np.ufunc | None, Function] = {}
"""NumPy's and SciPy's ufuncs on nodes; `symad.tracing.from_numpy.ufuncs` fills it."""

METHODS = frozenset(
    (
        *("sum", "prod", "mean", "var", "std", "max", "min", "all", "any", "cumsum", "cumprod"),
        *("dot", "trace", "diagonal", "clip", "take", "repeat", "round", "nonzero"),
        *("swapaxes", "squeeze"),
        *("argmax", "argmin", "argsort", "ptp"),
    )
)
"""Array methods that are the NumPy functions of the same names."""


def function_of_numpy(name: str) -> Function:
    """The function of NumPy of this name, also while another one takes its place."""
    found: Function = getattr(np, name)
    return REPLACED.get(found, found)


def _no_rule(array: ArrayLike, question: str) -> NoReturn:
    raise NotImplementedError(f"{type(array).__name__} has no rule for {question}")


@singledispatch
def read_elements(array: ArrayLike, key: Index) -> Any:
    """``array[key]``."""
    _no_rule(array, "array[key]")


@singledispatch
def write_elements(array: ArrayLike, key: Index, value: ArrayLike) -> None:
    """``array[key] = value``."""
    _no_rule(array, "array[key] = value")


@singledispatch
def call_function(
    array: ArrayLike, function: Function, args: tuple[ArrayLike, ...], options: dict[str, Any]
) -> Any:
    """``function(*args, **options)`` for a function of NumPy of which ``array`` is an argument."""
    _no_rule(array, "NumPy's functions")


@singledispatch
def call_ufunc(
    array: ArrayLike, ufunc: np.ufunc, method: str, inputs: tuple[ArrayLike, ...], options: dict[str, Any]
) -> Any:
    """A method of a ufunc, such as ``__call__`` or ``reduce``, of which ``array`` is an input."""
    _no_rule(array, "NumPy's ufuncs")


# ---- conversions to a number: errors that say what to do ------------------------------------------


class Valueless(Wrapped):
    """An object that stands for a node, and has no value while a function is traced."""

    __slots__ = ()

    def _no_value(self, what: str, advice: str) -> NoReturn:
        if call := library_call():
            advice += (
                f"; {call} is not made for traced values: symad.functions has logsumexp, softmax, "
                "log_softmax, solve_triangular and cho_solve"
            )
        raise TraceError(
            f"{what} of a traced value of shape {format_shape(self._value.shape)}{users_line()}: it has no "
            f"value while the function is traced; {advice}"
        )

    def __bool__(self) -> bool:
        value = constant_value(self._node)
        if value is not None:
            return bool(value)
        self._no_value(
            "the truth value",
            "replace an if, and, or, not, min or max that depends on data by np.where(condition, a, b), "
            "np.logical_and, np.minimum or np.maximum, and give functions of NumPy arrays, not lists",
        )

    @classmethod
    def __torch_function__(cls, function: object, *args: object, **options: object) -> NoReturn:
        name = getattr(function, "__name__", str(function))
        raise TraceError(
            f"{name} of PyTorch was called with a traced value; use NumPy's functions and those of "
            "symad.functions, or read a module of PyTorch by symad.torch.from_torch"
        )

    def __float__(self) -> float:
        self._no_value("float()", "use NumPy's functions instead of those of math")

    def __int__(self) -> int:
        self._no_value("int()", "use np.floor, or pass the number as a constant instead of an input")

    def __complex__(self) -> complex:
        self._no_value("complex()", "symad works over the real numbers")

    def __index__(self) -> int:
        self._no_value("an integer", "index arrays by x[k] with a traced k, not lists or range()")

    def __round__(self, digits: int | None = None) -> NoReturn:
        self._no_value("round()", "rounding has no useful derivative; use np.floor(x + 0.5)")


# ---- memory that NumPy's values would share: an assignment to such a value is refused --------------


VIEW = "a view"
"""`Wrapped._views` of a reshaped form of another value; other values store their reshaped forms there."""


def check_owned(y: Wrapped, what: str) -> None:
    """Refuse an assignment that in NumPy would change other values as well.

    Args:
        y: the value that is assigned to.
        what: the operation, for the message.

    Raises:
        TraceError: y is a reshaped or transposed form of another value, such a form of y is in use, or y
            belongs to another function.
    """
    views = getattr(y, "_views", None)
    if y._owner is not SESSION.get():
        reason = f"belongs to {y._owner.title}, around the function or step in which it is assigned to"
    elif views is VIEW:
        reason = "may be a view of another one, whose elements would change in NumPy as well"
    elif any(view() is not None for view in views or ()):
        reason = "has a view in use (a reshaped or transposed form), which would change in NumPy as well"
    else:
        return
    raise TraceError(
        f"{what} a traced value of shape {format_shape(y._value.shape)}{users_line()}: the "
        f"value {reason}; assign to a copy: y = y.copy()"
    )
