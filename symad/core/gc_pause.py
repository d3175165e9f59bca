"""Pausing the cyclic garbage collector, for all of symad, while a graph is built or modules load.

Graphs are trees of small immutable objects without cycles. A collection during the construction
traverses everything built so far again and again, and finds nothing. The collector belongs to the process, so
pauses are counted over all threads: the first turns the collector off, the last turns it on again, and only
if it was on before. A process that turned it off itself finds it off.
"""

from __future__ import annotations

import gc
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from threading import RLock, local
from typing import ParamSpec, TypeVar

from symad.core.forking import hold_while_forking

P = ParamSpec("P")
R = TypeVar("R")


class _Pauses:
    """The number of calls, in all threads, that need the collector paused."""

    def __init__(self) -> None:
        self.lock = RLock()  # a collection may begin another pause in the same thread
        self.count = 0
        self.was_on = False
        self.here = local()
        hold_while_forking(self.lock)
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self.forget_others)

    def begin(self) -> None:
        """Counts one more call; the first one turns the collector off."""
        with self.lock:
            if self.count == 0:
                self.was_on = gc.isenabled()
                gc.disable()
            self.count += 1
            self.here.count = getattr(self.here, "count", 0) + 1

    def end(self) -> None:
        """Counts one call less; the last one turns the collector on again if it was on."""
        with self.lock:
            self.count -= 1
            self.here.count -= 1
            if self.count == 0 and self.was_on:
                gc.enable()

    def forget_others(self) -> None:
        """Keeps only the pauses of this thread in the child of a fork: no other thread exists there."""
        self.count = getattr(self.here, "count", 0)
        if self.count == 0 and self.was_on:
            gc.enable()


_PAUSES = _Pauses()


@contextmanager
def loading() -> Iterator[None]:
    """Load modules, whose objects stay alive: the collector is paused, and afterwards counts them as old.

    Freezing and unfreezing moves them to the oldest generation without a traversal.
    """
    _PAUSES.begin()
    try:
        yield
    finally:
        if gc.get_freeze_count() == 0:  # what the process froze itself stays frozen
            gc.freeze()
            gc.unfreeze()
        _PAUSES.end()


def without_collecting(function: Callable[P, R]) -> Callable[P, R]:
    """The function, run with the garbage collector paused if it was running."""

    @wraps(function)
    def paused(*args: P.args, **kwargs: P.kwargs) -> R:
        _PAUSES.begin()
        try:
            return function(*args, **kwargs)
        finally:
            _PAUSES.end()

    return paused
