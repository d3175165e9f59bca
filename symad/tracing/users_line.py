"""The line of the user's code in which an event happened, and what errors in a traced function mean."""

from __future__ import annotations

import dis
import itertools
import linecache
import re
import sys
import traceback
from pathlib import Path
from types import FrameType

from symad.errors import TraceError

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


# ---- errors in a traced function ----------------------------------------------------------------


def tell(name: str, error: Exception) -> None:
    """Raise an error that says what another one means in a traced function, if it is not the user's own.

    Raises:
        TraceError: the error is one of `OF_ERRORS`, or comes from a call.
    """
    told, line = str(error).replace("'Proxy'", "a traced value"), users_line_in(error)
    read = f"{error} {error.__cause__ or ''}"
    for kind, pattern, advice in OF_ERRORS:
        if isinstance(error, kind) and re.search(pattern, read, re.DOTALL):
            raise TraceError(advice.format(name=name, line=line, told=told)) from error
    of_numbers = not isinstance(error, (AttributeError, RuntimeError)) and error.__cause__ is None
    if of_numbers and is_of_a_call(error):
        raise TraceError(
            f"{name} fails{line}: {told}; call {name} with arrays of numbers: what fails there too is no "
            "matter of tracing"
        ) from error


OF_ERRORS: tuple[tuple[type[Exception], str, str], ...] = (
    (
        RecursionError, "",
        "the recursion does not end while {name} is traced{line}: a list contains itself, or a function "
        "calls itself until a condition holds that depends on data",
    ),
    (
        ValueError, "setting an array element.* traced value",
        "{name} writes a traced value into a NumPy array, or makes a NumPy number of it{line}; collect the "
        "values in a list and use np.stack(list) or np.array(list), or fill np.zeros_like(x) of a traced x, "
        "instead of filling an array",
    ),
    (
        IndexError, "only integers, slices",
        "{name} indexes a NumPy array by a traced array{line}; use functions.lookup(array, index)",
    ),
    (
        ValueError, "inhomogeneous shape",
        "{name} makes an array of entries of different shapes{line}: {told}; use np.concatenate for vectors "
        "of different lengths",
    ),
    (
        TypeError,
        "interpreted as an integer|expected a sequence of integers|Cannot convert expression to float",
        "{name} calls a function that takes sizes as numbers with one that is a symbol, perhaps "
        "x.shape[0]{line}; instead of a loop over range(x.shape[0]) write sums of arrays, functions.scan or "
        "functions.fold; np.zeros, np.ones, np.full, np.eye, np.identity, np.tri, np.arange and np.linspace "
        "take symbols; or trace it with shapes that are numbers ({told})",
    ),
    (
        TypeError, "truth value of Relational",
        "{name} decides by a comparison of SymPy expressions{line}, perhaps of a symbolic dimension "
        "x.shape[0]: its truth depends on the values of a call; use sympy.Min, sympy.Max or sympy.Piecewise, "
        "np.where for traced values, or shapes that are numbers ({told})",
    ),
    (
        TypeError, "ufunc.*(not supported for the input types|'O')",
        "{name} calls a function of compiled code with an array of traced numbers, as np.array and "
        "np.asarray make them; give it the traced value itself, or use NumPy's functions ({told})",
    ),
    (
        TypeError, r"Cannot cast array data from dtype\('O'\)",
        "{name} calls compiled code with a traced value{line}, which has no number yet: use NumPy's "
        "functions, and functions.rand or functions.randn for random numbers",
    ),
    (
        TypeError, "(?=.*Proxy'>).*(valid JAX type|ndarray or scalar arguments)",
        "{name} calls a function of JAX with a traced value; use NumPy's functions and those of "
        "symad.functions, or make a JAX function of a graph by symad.jax.as_function ({told})",
    ),
    (
        TypeError, "ufunc.*no callable",
        "{name} applies a NumPy function to a SymPy expression, perhaps to a symbolic dimension such as "
        "x.shape[0]; use SymPy's function there, as in sympy.sqrt(x.shape[0]) ({told})",
    ),
)  # fmt: skip
"""The kind of an error, what it says, as a pattern, and the message in its place."""


def refuse_library(name: str, error: Exception) -> None:
    """Raise the error that a function of a library does not support traced values, if an error is from one.

    Raises:
        TraceError: it comes from one.
    """
    if not isinstance(error.__cause__, TraceError) and (call := library_call_in(error)):
        own = str(error).replace("<class 'symad.tracing.proxies.proxy.Proxy'>", "a traced value")
        table = "; df.to_numpy() is the array of a DataFrame" if call.startswith("pandas.") else ""
        raise TraceError(
            f"{name} calls {call}{users_line_in(error)}, which computes with arrays of numbers and is not "
            "made for traced values; use NumPy's functions and arrays, the ufuncs of scipy.special, "
            f"symad.functions, or symad.register_function{table} ({own})"
        ) from error
