"""Where in the user's code something happened, for messages."""

from __future__ import annotations

import linecache
import sys
from pathlib import Path

import numpy as np
import sympy

OWN = Path(__file__).parent
LIBRARIES = {str(Path(file).parents[1]) for file in (np.__file__, sympy.__file__)} | {
    str(OWN), str(OWN.parent / "numeric"), str(OWN.parent / "gpu")
}  # fmt: skip
"""Folders of code that is not the user's."""


def scipys_call() -> str:
    """The function of SciPy in whose code this happens; empty if there is none."""
    frame, found = sys._getframe(1), ""
    while frame is not None:
        module = str(frame.f_globals.get("__name__", ""))
        if module.startswith("scipy."):
            found = f"{'.'.join(module.split('.')[:2])}.{frame.f_code.co_name}"
        frame = frame.f_back  # type: ignore[assignment]
    return found


def users_line() -> str:
    """The innermost line that is not of symad or of a library below it, as " (model.py, line 3: ...)"."""
    frame = sys._getframe(1)
    while frame is not None:
        path = frame.f_code.co_filename
        if not path.startswith("<") and not any(path.startswith(folder) for folder in LIBRARIES):
            text = linecache.getline(path, frame.f_lineno, frame.f_globals).strip()
            return f" ({Path(path).name}, line {frame.f_lineno}{': ' + text if text else ''})"
        frame = frame.f_back  # type: ignore[assignment]
    return ""
