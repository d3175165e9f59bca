"""Calls into compiled code that cost less than the code does.

A call through ctypes takes a third of a microsecond, as long as a hundred operations. Where Python's
headers are installed, a few lines of C are compiled once, which make a Python function of a compiled
function and the frame of its arguments: a call takes a tenth of that. Elsewhere ctypes calls.
"""

from __future__ import annotations

import ctypes
import sys
import sysconfig
from collections.abc import Callable, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from symad.core.arrays import Array
from symad.errors import LoweringError
from symad.numeric.compiler.c_compiler import compile_c

SHORT = 20_000
"""Operations up to which a call keeps Python's lock: to give it away and take it back costs as much."""

SOURCE = """\
/* For %s. A frame holds the address of a function, and behind it the function's own frame. */
#include <Python.h>
#include <stdint.h>

typedef void (*compiled)(const int64_t *);

static PyObject *call(PyObject *self, PyObject *unused)
{
    const int64_t *frame = PyCapsule_GetPointer(self, NULL);
    (void)unused;
    if (frame == NULL) return NULL;
    ((compiled)(intptr_t)frame[0])(frame + 1);
    Py_RETURN_NONE;
}

static PyObject *call_unlocked(PyObject *self, PyObject *unused)
{
    const int64_t *frame = PyCapsule_GetPointer(self, NULL);
    (void)unused;
    if (frame == NULL) return NULL;
    Py_BEGIN_ALLOW_THREADS
    ((compiled)(intptr_t)frame[0])(frame + 1);
    Py_END_ALLOW_THREADS
    Py_RETURN_NONE;
}

static PyMethodDef methods[2] = {
    {"compiled", call, METH_NOARGS, "Execute a compiled function on the arrays it is bound to."},
    {"compiled", call_unlocked, METH_NOARGS, "Execute a compiled function on the arrays it is bound to."},
};

static void release(PyObject *capsule) { Py_XDECREF((PyObject *)PyCapsule_GetContext(capsule)); }

/* A function without arguments, which keeps the owner of the frame alive. */
PyObject *symad_bind(int64_t frame, PyObject *owner, int64_t unlocked)
{
    PyObject *capsule = PyCapsule_New((void *)(intptr_t)frame, NULL, release), *made;
    if (capsule == NULL) return NULL;
    Py_INCREF(owner);
    PyCapsule_SetContext(capsule, owner);
    made = PyCFunction_New(&methods[unlocked != 0], capsule);
    Py_DECREF(capsule);
    return made;
}
"""


@cache
def _binder() -> Any:
    """The compiled function that binds; None where there is no compiler or Python's headers are missing."""
    include = Path(sysconfig.get_paths()["include"])
    if not (include / "Python.h").exists():
        return None
    late = ["-undefined", "dynamic_lookup"] if sys.platform == "darwin" else []
    try:
        library = compile_c(
            SOURCE % sysconfig.get_config_var("EXT_SUFFIX"), ["-std=c11", f"-I{include}", *late]
        )
    except LoweringError:
        return None
    if library is None:
        return None
    binder = ctypes.PyDLL(library._name, handle=library._handle).symad_bind  # it needs Python's lock
    binder.argtypes = (ctypes.c_int64, ctypes.py_object, ctypes.c_int64)
    binder.restype = ctypes.py_object
    return binder


CFunction: TypeAlias = "ctypes._NamedFuncPointer"
"""A function of a library that ctypes has loaded."""


def pointer(array: np.ndarray) -> ctypes.c_void_p:
    """The address of an array, which it keeps alive."""
    return array.ctypes.data_as(ctypes.c_void_p)


def aligned_zeros(*shape: int) -> np.ndarray:
    """A float64 array of zeros that begins with a cache line: vector instructions read no two lines."""
    count = int(np.prod(shape))
    room = np.zeros(count + 8)
    skipped = -room.ctypes.data % 64 // 8
    return room[skipped : skipped + count].reshape(shape)


def check_sizes(x: Array, y: Array, inputs: int, outputs: int) -> None:
    """Raises ValueError unless the bound vectors have the sizes of inputs and results."""
    if x.shape != (inputs,) or y.shape != (outputs,):
        raise ValueError(f"bind: x must have {inputs} elements and y {outputs}, not {len(x)} and {len(y)}")


def frame_of(function: CFunction, parts: Sequence[int | np.ndarray]) -> np.ndarray:
    """The address of a compiled function and its frame behind it, as a vector of 64-bit integers."""
    address = ctypes.cast(function, ctypes.c_void_p).value
    numbers = [p if isinstance(p, int) else p.ctypes.data for p in parts]
    return np.array([address, *numbers], dtype=np.int64)


def bound(
    function: CFunction, parts: Sequence[int | np.ndarray], operations: int = SHORT + 1
) -> Callable[[], None]:
    """A compiled function of one frame, bound to it: a Python function without arguments.

    Args:
        function: of ctypes; its argument is the address of a frame of 64-bit integers.
        parts: what the frame holds: arrays, by their addresses, and lengths. They live as long as the
            result does.
        operations: about how many a call executes; short calls keep Python's lock.
    """
    return bound_frame(function, frame_of(function, parts), parts, operations)


def bound_frame(
    function: CFunction, frame: np.ndarray, parts: Sequence[int | np.ndarray], operations: int = SHORT + 1
) -> Callable[[], None]:
    """The same of a frame that is there, whose numbers may change between calls.

    Args:
        function: of ctypes; its argument is the address of the frame.
        frame: of `frame_of`.
        parts: as in `bound`.
        operations: as in `bound`.
    """
    binder = _binder()
    if binder is not None:
        made: Callable[[], None] = binder(frame.ctypes.data, (frame, parts, function), operations > SHORT)
        return made
    function.restype = None
    call = partial(function, pointer(frame[1:]))
    vars(call)["parts"] = parts  # the arrays live as long as the call that holds their addresses
    return call
