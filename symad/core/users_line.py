"""Where in the user's code something happened, for messages."""

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
"""Packages of code that is not the user's; that of other installed packages is named like the user's own."""


def scipys_call() -> str:
    """The function of SciPy in whose code this happens; empty if there is none."""
    frame: FrameType | None = sys._getframe(1)
    found = ""
    while frame is not None:
        found = _name_in_scipy(frame) or found
        frame = frame.f_back
    return found


def scipys_call_in(error: BaseException) -> str:
    """The function of SciPy that was called first where an error comes from; empty if there is none."""
    frames = (frame for frame, _ in traceback.walk_tb(error.__traceback__))
    return next(filter(None, map(_name_in_scipy, frames)), "")


def _name_in_scipy(frame: FrameType) -> str:
    """The function that a frame runs, as scipy.special.polygamma; empty if it is none of SciPy."""
    module = str(frame.f_globals.get("__name__", ""))
    return f"{'.'.join(module.split('.')[:2])}.{frame.f_code.co_name}" if module.startswith("scipy.") else ""


def is_scipys_code(frame: FrameType) -> bool:
    """Whether a frame is one of SciPy."""
    return bool(_name_in_scipy(frame))


def is_users_code(frame: FrameType) -> bool:
    """Whether a frame is not one of symad or of a library below it."""
    return str(frame.f_globals.get("__name__", "")).partition(".")[0] not in LIBRARIES


def users_line() -> str:
    """The innermost line that is not of symad or of a library below it, as " (model.py, line 3: ...)"."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        path = frame.f_code.co_filename
        if not path.startswith("<") and is_users_code(frame):
            text = linecache.getline(path, frame.f_lineno, frame.f_globals).strip()
            return f" ({Path(path).name}, line {frame.f_lineno}{': ' + text if text else ''})"
        frame = frame.f_back
    return ""
