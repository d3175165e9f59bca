"""What belongs to the process: locks during a fork, the cyclic garbage collector, variables of a context.

The child of a fork has only the thread that forked. A lock that another thread holds would stay held in the
child for ever: one of ours, one of an import, or one of plum and beartype, which look up rules when a generic
function is first called.

Graphs are trees of small immutable objects without cycles. A collection during the construction traverses
everything built so far again and again, and finds nothing. So the collector pauses while a graph is built or
modules load; pauses are counted over all threads: the first turns the collector off, the last turns it on
again, and only if it was on before. A process that turned it off itself finds it off.
"""

from __future__ import annotations

import gc
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import wraps
from threading import RLock, local
from types import FrameType
from typing import ParamSpec, Protocol, TypeVar

P = ParamSpec("P")
R = TypeVar("R")


class Lock(Protocol):
    """A lock of the module threading."""

    def acquire(self) -> bool:
        """Acquire it, or wait."""

    def release(self) -> None:
        """Release it."""


_locks: list[Lock] = []


@contextmanager
def within(variable: ContextVar[R], value: R) -> Iterator[None]:
    """A context in which a variable has a value."""
    token = variable.set(value)
    try:
        yield
    finally:
        variable.reset(token)


def hold_while_forking(lock: Lock) -> None:
    """Let the process fork only while no other thread holds this lock; afterwards it is free in both."""
    _locks.append(lock)


LOOKING_UP = {"plum", "beartype", "typing", "inspect"}
"""Packages that run while rules are looked up; they have their own locks."""

ATTEMPTS, PAUSE = 300, 0.001
"""The number of further attempts, and the seconds between them; then the fork takes place anyway."""


def _before() -> None:
    """Acquire all locks, at a moment when no other thread imports a module or looks up a rule."""
    for _ in range(ATTEMPTS):
        _acquire()
        if not _others_hold_locks():
            return
        _release()
        time.sleep(PAUSE)
    _acquire()


def _acquire() -> None:
    for lock in _locks:
        lock.acquire()


def _release() -> None:
    for lock in reversed(_locks):
        lock.release()


def _others_hold_locks() -> bool:
    """True if another thread is in an import, or in a look-up that began in a call of ours."""
    me = threading.get_ident()
    frames = sys._current_frames()
    return any(_holds_locks(frame) for thread, frame in frames.items() if thread != me)


def _holds_locks(innermost: FrameType) -> bool:
    frame: FrameType | None = innermost
    called = True  # whether no frame of ours was met yet
    while frame is not None:
        package = str(frame.f_globals.get("__name__", "")).partition(".")[0]
        if package == "importlib" or (called and package in LOOKING_UP):
            return True
        called = called and package != "symad"
        frame = frame.f_back
    return False


if hasattr(os, "register_at_fork") and hasattr(sys, "_current_frames"):
    os.register_at_fork(before=_before, after_in_parent=_release, after_in_child=_release)


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
