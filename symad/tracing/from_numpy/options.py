"""Options of NumPy's functions: supported ones, those that only concern storage, and refused ones.

An implementation supports the options that are its parameters. Any other option is an error that names it,
unless its value is NumPy's default, or the option cannot change the numbers.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

import numpy as np

from symad.core.arrays import ArrayLike
from symad.core.elsewhere import option_here
from symad.errors import TraceError

STORAGE = frozenset(
    ("casting", "subok", "copy", "device", "like", "overwrite_input", "kind", "stable", "optimize")
)
"""Options that concern how numbers are stored or computed, for all their values.

Sorting is stable here, and symad chooses the order of products.
"""

LAYOUT = ("C", "K", "A", "F", None)
"""Memory orders, for functions in which they do not change the order of elements."""


def cannot_matter(name: str, value: object, default: object, layout: bool) -> bool:
    """True if an unsupported option does not change the numbers."""
    if value is None or value is np._NoValue or value is default or name in STORAGE:
        return True
    if name == "dtype":
        return _is_floating(value)
    if name == "order" and layout:
        return value in LAYOUT
    plain = (bool, int, float, str)
    return type(value) is type(default) and isinstance(value, plain) and value == default


def _is_floating(dtype: Any) -> bool:
    try:
        return np.dtype(dtype).kind == "f"
    except TypeError:
        return False


ADVICE = {
    "out": "traced values never change; use the result",
    "dtype": "values are real numbers, whose precision is chosen when a graph is lowered; use np.floor, "
    "np.where or comparisons for others",
    "where": "use np.where on the argument or the result",
}
"""The alternatives to unsupported options."""


def refuse(call: str, name: str, value: object) -> None:
    """Raise the error for an unsupported option.

    Raises:
        TraceError: always.
    """
    shown = repr(value) if isinstance(value, (bool, int, float, str, tuple, type)) else type(value).__name__
    raise TraceError(
        f"{call}(..., {name}={shown}) is not supported on traced values; {ADVICE.get(name, 'leave it out')}"
    )


@cache
def signature_of(function: Callable[..., Any]) -> inspect.Signature | None:
    """The signature of a function; None if Python does not know it (functions in C, before NumPy 2.4)."""
    try:
        return inspect.signature(function)
    except (TypeError, ValueError):
        return None


@cache
def _plain_calls(
    function: Callable[..., object], answer: Callable[..., object]
) -> tuple[tuple[str, ...], frozenset[str], frozenset[str]]:
    """The leading parameters that both have, the common keywords, and what a call has to give."""
    given, own = signature_of(function), signature_of(answer)
    if given is None or own is None or any(p.kind is p.VAR_POSITIONAL for p in given.parameters.values()):
        return (), frozenset(), frozenset({""})  # "" is never given
    leading = []
    for theirs, ours in zip(given.parameters.values(), own.parameters.values(), strict=False):
        same = theirs.name == ours.name and theirs.kind is theirs.POSITIONAL_OR_KEYWORD
        if not (same or theirs.kind is theirs.POSITIONAL_ONLY) or ours.kind is not ours.POSITIONAL_OR_KEYWORD:
            break
        leading.append(theirs.name)
    keywords = [
        {p.name for p in signature.parameters.values() if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)}
        for signature in (given, own)
    ]
    required = {p.name for p in given.parameters.values() if p.default is p.empty}
    return tuple(leading), frozenset(keywords[0] & keywords[1]), frozenset(required)


def _is_plain(
    function: Callable[..., object],
    answer: Callable[..., object],
    args: tuple[ArrayLike, ...],
    options: Mapping[str, ArrayLike],
) -> bool:
    """True if the implementation takes a call as it is; most calls are of this kind, and `bind` is slow."""
    leading, keywords, required = _plain_calls(function, answer)
    first = leading[: len(args)]
    return (
        len(args) <= len(leading)
        and required.issubset((*first, *options))
        and keywords.issuperset(options)
        and not any(name in options for name in first)
        and not any(value is np._NoValue for value in (*args, *options.values()))
    )


def bound(
    function: Callable[..., Any],
    answer: Callable[..., Any],
    call: str,
    args: tuple[ArrayLike, ...],
    options: Mapping[str, ArrayLike],
    layout: bool,
) -> tuple[list[ArrayLike], dict[str, ArrayLike]]:
    """The arguments for an implementation, from those of a call of the function; ``call`` is its name.

    Raises:
        TraceError: the arguments do not fit the function, or the implementation does not support an option.
    """
    if _is_plain(function, answer, args, options):
        return list(args), dict(options)
    own = signature_of(answer)
    assert own is not None  # a function in Python
    known, given = own.parameters, signature_of(function)
    if given is None:
        given = own
        options = {k: v for k, v in options.items() if _read(call, known, k, v, None, layout)}
    positional: list[ArrayLike] = []
    named: dict[str, ArrayLike] = {}
    try:
        arguments = given.bind(*args, **options).arguments
    except TypeError as error:
        hints = [f"; {hint}" for k in options if (hint := option_here(k, given.parameters))]
        raise TraceError(
            f"{call}: {error}; it takes {', '.join(given.parameters)}{''.join(hints)}"
        ) from None
    variadic = any(p.kind is p.VAR_POSITIONAL for p in given.parameters.values())
    for name, value in arguments.items():
        parameter = given.parameters[name]
        if parameter.kind is parameter.VAR_POSITIONAL:
            positional.extend(value)
        elif parameter.kind is parameter.VAR_KEYWORD:
            named.update({k: v for k, v in value.items() if _read(call, known, k, v, None, layout)})
        elif parameter.kind is parameter.POSITIONAL_ONLY or (
            variadic and parameter.kind is parameter.POSITIONAL_OR_KEYWORD
        ):
            positional.append(value)
        elif value is not np._NoValue and _read(call, known, name, value, parameter.default, layout):
            named[name] = value
    return positional, named


def _read(
    call: str, known: Mapping[str, inspect.Parameter], name: str, value: object, default: object, layout: bool
) -> bool:
    """True if an implementation supports an option; False if the option does not matter.

    Raises:
        TraceError: it is not supported, and may change the numbers.
    """
    if name in known:
        return True
    if not cannot_matter(name, value, default, layout):
        refuse(call, name, value)
    return False
