"""Pausing the cyclic garbage collector while a graph is built.

Graphs are trees of small immutable objects without cycles; collecting in the middle of building one
walks everything built so far again and again, and finds nothing.
"""

from __future__ import annotations

import gc
from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")


def without_collecting(function: Callable[P, R]) -> Callable[P, R]:
    """The function, run with the garbage collector paused if it was running."""

    @wraps(function)
    def paused(*args: P.args, **kwargs: P.kwargs) -> R:
        running = gc.isenabled()
        gc.disable()
        try:
            return function(*args, **kwargs)
        finally:
            if running:
                gc.enable()

    return paused
