"""Arguments that users give: real numbers, or an error with the argument's name; their earlier names."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Iterable
from functools import wraps
from inspect import signature
from numbers import Real
from types import FunctionType
from typing import Any, TypeGuard, TypeVar, cast

import numpy as np
import sympy

from symad.core.arrays import Array
from symad.core.identifiers import brief
from symad.errors import TraceError

WANTED = "give real numbers, arrays of them, SymPy expressions or traced values"


def real_array(function: str, argument: str, value: object) -> Array:
    """The value as an array of real numbers; traced values and SymPy's objects as they are.

    Arrays of objects may hold real numbers of Python, NumPy, SymPy and mpmath, and traced values.

    Raises:
        TraceError: text, bytes, dates, complex numbers, None, nested lists of unequal lengths, or other
            objects.
    """
    if _is_symbolic(value):
        return value
    array = value if isinstance(value, np.ndarray) else _as_array(function, argument, value)
    kind = array.dtype.kind
    if kind in "fiub" or (kind == "V" and array.dtype.type is not np.void):  # bfloat16 is of kind V
        return array
    if kind == "O":
        wrong = [e for e in array.flat if not _is_real(e)]
        if not wrong:
            return array
        holds = f"holds {brief(wrong[0])} of type {type(wrong[0]).__name__}"
    elif isinstance(value, np.ndarray):
        holds = f"is an array of {array.dtype}{'; symad works over the real numbers' if kind == 'c' else ''}"
    else:
        holds = f"is {brief(value)} of type {type(value).__name__}"
    raise TraceError(f"{function}: {argument} {holds}; {WANTED}")


def numbers_only(function: str, call: Callable[..., Array], **arguments: object) -> Array:
    """``call`` of real arrays; an error of NumPy or SciPy about objects is told as a `TraceError`."""
    arrays = {name: real_array(function, name, value) for name, value in arguments.items()}
    objects = [n for n, a in arrays.items() if isinstance(a, np.ndarray) and a.dtype.hasobject]
    others = [name for name, value in arrays.items() if not isinstance(value, np.ndarray)]
    if not objects and not others:
        return call(*arrays.values())
    try:
        return call(*arrays.values())
    except (AttributeError, TypeError) as error:
        name = (objects or others)[0]
        raise TraceError(
            f"{function}: {name} holds {brief(arguments[name])}, and other arguments are arrays; give arrays "
            "of floating-point numbers, or use the function in a traced function"
        ) from error


def check_callable(function: str, argument: str, value: object, *takes: str) -> None:
    """Refuse what is no function, and a Python function that cannot be called with the values ``takes``.

    Raises:
        TraceError: the value cannot be called, or not with so many arguments.
    """
    if isinstance(value, FunctionType) and takes:
        try:
            signature(value).bind(*takes)
        except TypeError as error:
            raise TraceError(
                f"{function}: {argument} is {value.__name__}{signature(value)}: {error}; give a function of "
                f"({', '.join(takes)})"
            ) from None
    if not callable(value) or isinstance(value, type):
        raise TraceError(
            f"{function}: {argument} is {brief(value)} of type {type(value).__name__}; give a function"
        )


def sequence_of_arrays(function: str, value: object) -> list[Array]:
    """The arrays of a sequence of arrays.

    Raises:
        TraceError: the value is no sequence.
    """
    if isinstance(value, (str, bytes, np.generic)) or not isinstance(value, Iterable):
        raise TraceError(
            f"{function} takes a sequence of arrays, not {brief(value)} of type {type(value).__name__}"
        )
    if isinstance(value, np.ndarray) and not value.ndim:
        raise TraceError(f"{function} takes a sequence of arrays, not an array without axes")
    return list(value)


def _is_symbolic(value: object) -> TypeGuard[Array]:
    """Whether a value is traced, a dual number or SymPy's: these have answers of their own."""
    if isinstance(value, (np.ndarray, np.generic)):
        return False
    return hasattr(type(value), "__array_ufunc__") or isinstance(
        value, (sympy.Basic, sympy.MatrixBase, sympy.NDimArray)
    )


def _is_real(value: object) -> bool:
    if isinstance(value, np.generic):
        return value.dtype.kind in "fiub"
    return isinstance(value, Real) or _is_symbolic(value)  # decimal.Decimal is not a Real


def _as_array(function: str, argument: str, value: object) -> np.ndarray:
    try:
        return np.asarray(value)
    except ValueError:
        raise TraceError(
            f"{function}: {argument} is {brief(value)}, a nested list of unequal lengths; {WANTED}"
        ) from None


T = TypeVar("T")


def renamed(**names: str) -> Callable[[T], T]:
    """Lets a function or a class take arguments by earlier names, with a warning.

    Args:
        names: the name of today for each earlier one.

    Example:
        >>> @renamed(colour="color")
        ... def paint(color):
        ...     return color
        >>> paint(color="red")
        'red'
    """

    def decorate(thing: T) -> T:
        made: Any = thing
        if isinstance(thing, type):
            made.__init__ = _taking(made.__init__, names, made.__name__)
        else:
            made = _taking(made, names, made.__name__)
        return cast(T, made)

    return decorate


def earlier_names(module: str, **names: str) -> Callable[[str], Any]:
    """A ``__getattr__`` for a module whose names have changed: it answers the earlier ones, with a warning.

    Args:
        module: its ``__name__``.
        names: the name of today for each earlier one.
    """

    def ask(name: str) -> Any:
        if name not in names:
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        warnings.warn(f"{module}.{name} is {names[name]} now", FutureWarning, stacklevel=2)
        return getattr(sys.modules[module], names[name])

    return ask


def _taking(function: Any, names: dict[str, str], title: str) -> Any:
    """The function, which takes the earlier names too.

    Raises:
        TypeError: an argument is given by both names.
    """

    @wraps(function)
    def call(*arguments: Any, **options: Any) -> Any:
        for earlier in names.keys() & options.keys():
            now = names[earlier]
            if now in options:
                raise TypeError(f"{title}: {earlier} is the earlier name of {now}; give {now} alone")
            warnings.warn(f"{title}: {earlier}= is {now}= now", FutureWarning, stacklevel=2)
            options[now] = options.pop(earlier)
        return function(*arguments, **options)

    return call
