"""The line of the user's code in which an event happened, for messages."""

from __future__ import annotations

import dis
import itertools
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


OF_SPARSE_ARRAYS = "symad.tracing.from_numpy.scipy_sparse"
"""The module of the functions that replace methods of SciPy's sparse arrays; its errors name them."""


NUMBERS_ALONE = ("scipy", "pandas", "sklearn", "statsmodels")
"""Libraries whose functions compute with arrays of numbers, and say nothing of use about traced values."""


def library_call() -> str:
    """The function of such a library that is running; empty if there is none."""
    frame: FrameType | None = sys._getframe(1)
    found = ""
    while frame is not None:
        found = _name_in_library(frame) or found
        frame = frame.f_back
    return found


def library_call_in(error: BaseException) -> str:
    """The first function of a library in the traceback of an error; empty if there is none.

    It is empty as well if the error comes from symad's replacement for the function.
    """
    frames = [frame for frame, _ in traceback.walk_tb(error.__traceback__)]
    if any(frame.f_globals.get("__name__") == OF_SPARSE_ARRAYS for frame in frames):
        return ""
    return next(filter(None, map(_name_in_library, frames)), "")


def _name_in_library(frame: FrameType) -> str:
    """The function that a frame runs, as scipy.special.polygamma or pandas.Series; empty for other code."""
    library, *modules = str(frame.f_globals.get("__name__", "")).split(".")
    if library not in NUMBERS_ALONE or not modules:
        return ""
    name, object_ = frame.f_code.co_name, frame.f_locals.get("self")
    if library == "scipy" or object_ is None:
        return f"{library}.{modules[0]}.{name}"
    return f"{library}.{type(object_).__name__}" + ("" if name == "__init__" else f".{name}")


def is_scipys_code(frame: FrameType) -> bool:
    """True if a frame belongs to SciPy, except for its sparse arrays, which hold numbers alone."""
    name = _name_in_library(frame)
    return name.startswith("scipy.") and not name.startswith("scipy.sparse")


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
    lines = list(traceback.walk_tb(error.__traceback__))[::-1]
    lines.sort(key=lambda line: bool(_name_in_library(line[0])))  # a line of pandas only if there is no other
    return next(filter(None, itertools.starmap(_line, lines)), "")


def is_of_a_call(error: BaseException) -> bool:
    """True if a call, an operator or an index of the user's code failed in Python or in NumPy.

    It is false for errors that the user's code or symad raises, and for those of other libraries.
    """
    last = error.__traceback__
    while last is not None and last.tb_next is not None:
        last = last.tb_next
    if last is None:
        return False
    frame, place = last.tb_frame, last.tb_lasti
    if not is_users_code(frame):
        return str(frame.f_globals.get("__name__", "")).partition(".")[0] == "numpy"
    steps = dis.get_instructions(frame.f_code)
    return not any(step.offset == place and "RAISE" in step.opname for step in steps)


def _line(frame: FrameType, number: int) -> str:
    """A line of the user's code; empty if it is none."""
    path = frame.f_code.co_filename
    text = linecache.getline(path, number, frame.f_globals).strip()
    if not is_users_code(frame) or (path.startswith("<") and not text):
        return ""
    if path.startswith("<"):  # of a console, which has no file
        return f" (line {number}: {text})"
    return f" ({Path(path).name}, line {number}{': ' + text if text else ''})"
