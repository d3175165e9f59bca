"""Earlier names of arguments, which still work and say so."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar, cast

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
