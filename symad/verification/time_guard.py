"""Interrupts a computation at any point when memory or the requested wall-clock time is used up.

The loops that do the work count it (`budget`). Memory cannot be predicted, and a limit of time has to hold
everywhere. So a second thread watches both, and raises `OutOfBudget` in the first (CPython's
`PyThreadState_SetAsyncExc`). A single call into compiled code is not interrupted: the error is raised when
it returns.
"""

from __future__ import annotations

import ctypes
import sys
import threading
from collections.abc import Callable
from types import TracebackType
from typing import TypeVar

from symad.verification.budget import Meter, OutOfBudget

GRACE = 0.25
"""Seconds after the limit of time in which the loops may still stop by themselves."""

AGAIN = 0.5
"""Seconds after which an interruption is repeated, if the computation has continued."""


class OutOfTime(OutOfBudget):
    """Raised from another thread, which can give no arguments."""

    def __init__(self, message: str = "the time or memory allowed was used up") -> None:
        """``message`` is the text for users."""
        super().__init__(message)


class Guard:
    """Interrupts the thread that enters it when its memory, or a limit of its time, is used up."""

    def __init__(self, meter: Meter) -> None:
        """``meter`` has the limits."""
        self.meter = meter
        self._lock = threading.Lock()
        self._left = threading.Event()
        self._thread = 0
        self._sent = False

    def __enter__(self) -> Guard:
        self._thread = threading.get_ident()
        threading.Thread(target=self._watch, name="symad budget", daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self._leave()
        except OutOfTime:  # sent at the last moment
            self._leave()

    def _leave(self) -> None:
        with self._lock:
            self._left.set()
        if self._sent:  # an interruption that is still pending is raised, and caught, in this loop
            for _ in range(10):
                pass

    def _watch(self) -> None:
        before = resident_memory()
        while not self._left.wait(0.05):
            limit = self.meter.budget.seconds
            late = limit is not None and self.meter.seconds > limit + GRACE
            large = before and resident_memory() - before > self.meter.budget.memory
            if not (late or large):
                continue
            with self._lock:
                if self._left.is_set():
                    return
                self.meter.stopped = "memory" if large and not late else "time"
                self._sent = True
                _interrupt(self._thread, OutOfTime)
            if self._left.wait(AGAIN):
                return


def _interrupt(thread: int, error: type[BaseException]) -> None:
    """Raise an error in a thread as soon as it runs Python code again.

    NULL, which withdraws an error, would leave the interpreter checking for it: that is slow, and CPython
    3.11 hangs then under a profiler.
    """
    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), ctypes.py_object(error))


def resident_memory() -> int:
    """The resident memory of this process in bytes; 0 where the system does not report it."""
    if not sys.platform.startswith("linux"):
        return 0
    try:
        with open("/proc/self/statm", encoding="ascii") as file:
            return int(file.read().split()[1]) * 4096
    except (OSError, ValueError, IndexError):
        return 0


T = TypeVar("T")


def within(meter: Meter, compute: Callable[[], T], otherwise: T) -> T:
    """The result of a computation, or ``otherwise`` if it uses up the budget."""
    try:
        meter.spend(0)
        with Guard(meter):
            return compute()
    except OutOfBudget:
        return otherwise
    except Exception:
        if meter.stopped:  # other code has turned an interruption into its own error
            return otherwise
        raise


def in_time(meter: Meter, compute: Callable[[], T], otherwise: T) -> T:
    """The same for words about a verdict: they count no steps, and have what is left of a limit of time."""
    return within(Meter(meter.budget, start=meter.start), compute, otherwise)
