"""The operations of NumPy's code on an array, declared for traced values.

A traced value (`symad.tracing.proxies.proxy.Proxy`) delegates these operations. The rules of
`symad.tracing.from_numpy` construct traced values, so they are in a higher layer and are registered here.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import singledispatch
from typing import TYPE_CHECKING, Any, NoReturn, TypeAlias

import numpy as np

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
