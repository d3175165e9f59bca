"""The line of the user's code in which an event happened, for messages."""

from __future__ import annotations

import linecache
import sys
import traceback
from pathlib import Path
from types import FrameType

LIBRARIES = frozenset(
    (
        *("symad", "numpy", "scipy", "sympy", "mpmath", "plum", "beartype", "networkx", "flint"),
        *("contextlib", "functools", "threading"),
    )
)
"""Packages whose code is not the user's; other installed packages are treated like the user's own code."""


def scipys_call() -> str:
    """The function of SciPy that is running; empty if there is none."""
    frame: FrameType | None = sys._getframe(1)
    found = ""
    while frame is not None:
        found = _name_in_scipy(frame) or found
        frame = frame.f_back
    return found


def scipys_call_in(error: BaseException) -> str:
    """The first function of SciPy in the traceback of an error; empty if there is none."""
    frames = (frame for frame, _ in traceback.walk_tb(error.__traceback__))
    return next(filter(None, map(_name_in_scipy, frames)), "")


def _name_in_scipy(frame: FrameType) -> str:
    """The function that a frame runs, such as scipy.special.polygamma; empty if it is not of SciPy."""
    module = str(frame.f_globals.get("__name__", ""))
    return f"{'.'.join(module.split('.')[:2])}.{frame.f_code.co_name}" if module.startswith("scipy.") else ""


def is_scipys_code(frame: FrameType) -> bool:
    """True if a frame belongs to SciPy."""
    return bool(_name_in_scipy(frame))


def is_users_code(frame: FrameType) -> bool:
    """True if a frame belongs neither to symad nor to a library below it."""
    return str(frame.f_globals.get("__name__", "")).partition(".")[0] not in LIBRARIES


def users_line() -> str:
    """The innermost line outside of symad and the libraries below it, as " (model.py, line 3: ...)"."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        if told := _line(frame, frame.f_lineno):
            return told
        frame = frame.f_back
    return ""


def users_line_in(error: BaseException) -> str:
    """The innermost line of the user's code in the traceback of an error, as `users_line` writes it."""
    lines = [_line(frame, number) for frame, number in traceback.walk_tb(error.__traceback__)]
    return next(filter(None, reversed(lines)), "")


def _line(frame: FrameType, number: int) -> str:
    """A line of the user's code; empty if it is none."""
    path = frame.f_code.co_filename
    if path.startswith("<") or not is_users_code(frame):
        return ""
    text = linecache.getline(path, number, frame.f_globals).strip()
    return f" ({Path(path).name}, line {number}{': ' + text if text else ''})"
