"""Locks during a fork of the process.

The child of a fork has only the thread that forked. A lock that another thread holds would stay held in the
child for ever: one of ours, one of an import, or one of plum and beartype, which look up rules when a generic
function is first called.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from types import FrameType
from typing import Protocol


class Lock(Protocol):
    """A lock of the module threading."""

    def acquire(self) -> bool:
        """Acquire it, or wait."""

    def release(self) -> None:
        """Release it."""


_locks: list[Lock] = []


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
