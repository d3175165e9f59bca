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
        path = frame.f_code.co_filename
        if not path.startswith("<") and is_users_code(frame):
            text = linecache.getline(path, frame.f_lineno, frame.f_globals).strip()
            return f" ({Path(path).name}, line {frame.f_lineno}{': ' + text if text else ''})"
        frame = frame.f_back
    return ""
