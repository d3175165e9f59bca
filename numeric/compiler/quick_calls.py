"""Calls of compiled scalar functions whose arguments are read in C.

A call through Python costs some tens of microseconds for its arguments: each is made an array, shapes are
compared, columns laid out. Here floats, ints and float64 vectors go straight to the compiled function;
everything else takes the way through Python. Needs Python's headers, as `c_calls` does.
"""

from __future__ import annotations

import ctypes
import sys
import sysconfig
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from symad.core.graph import TupleOf
from symad.errors import LoweringError
from symad.numeric.compiler.c_calls import SHORT
from symad.numeric.compiler.c_compiler import NotCompiled, compile_c
from symad.numeric.scalars.flat_results import FlatResults

FEW_POINTS = 2000
"""Points up to which a batch is computed one point after the other; above, several at a time. From 1000 to
20000 points the two are equally fast for 10 to 60 operations (benchmarks/bench_small_batches.py)."""

FLOAT, FLOATS, ARRAY = 0, 1, 2
"""What a call at one point returns: a float, a tuple of floats, or what `finish` makes of a vector."""

SOURCE = """\
/* For %s. */
#include <Python.h>
#include <stdint.h>
#include <string.h>

typedef void (*compiled)(const double *, double *);
typedef void (*framed)(const int64_t *);

/* A frame holds the address of a function and behind it the function's own frame, with the vectors x and y.
   It is used by one call at a time: busy while Python's lock is given away. */
typedef struct {
    compiled function;
    const int64_t *frame;
    double *frame_x, *frame_y;
    int64_t inputs, outputs, operations, packed, returns, few, busy;
    PyObject *array_type, *new_vector, *finish, *new_rows, *finish_rows, *fallback, *many, *owner;
} Quick;

enum { SMALL = 24, SHORT = %d };

static int is_float64(const Py_buffer *view)
{
    return view->format != NULL && view->format[0] == 'd' && view->format[1] == 0 && view->ndim <= 1;
}

static PyObject *otherwise(const Quick *q, PyObject *const *args, Py_ssize_t count)
{
    return PyObject_Vectorcall(q->fallback, args, (size_t)count, NULL);
}

static int is_named(PyObject *names) { return names != NULL && PyTuple_GET_SIZE(names) > 0; }

/* Long computations let other threads of Python work. */
static PyThreadState *unlocked(const Quick *q, Py_ssize_t points)
{
    return q->operations > SHORT/(points + 1) ? PyEval_SaveThread() : NULL;
}

static void compute(const Quick *q, const double *x, double *y)
{
    if (q->frame == NULL) { q->function(x, y); return; }
    memcpy(q->frame_x, x, (size_t)q->inputs*sizeof *x);
    ((framed)(intptr_t)q->frame[0])(q->frame + 1);
    memcpy(y, q->frame_y, (size_t)q->outputs*sizeof *y);
}

static void run(Quick *q, const double *x, double *y)
{
    PyThreadState *state;
    q->busy = 1;
    state = unlocked(q, 1);
    compute(q, x, y);
    if (state != NULL) PyEval_RestoreThread(state);
    q->busy = 0;
}

/* The values of made, a float64 array of a size that was asked for. */
static int memory(PyObject *made, Py_buffer *view)
{
    return made == NULL || PyObject_GetBuffer(made, view, PyBUF_WRITABLE | PyBUF_C_CONTIGUOUS) ? -1 : 0;
}

static PyObject *finished(PyObject *finish, PyObject *made)
{
    PyObject *result;
    if (finish == Py_None) return made;
    result = PyObject_CallOneArg(finish, made);
    Py_DECREF(made);
    return result;
}

static PyObject *vector_result(Quick *q, const double *x)
{
    PyObject *made = PyObject_CallNoArgs(q->new_vector);
    Py_buffer view;
    if (memory(made, &view)) { Py_XDECREF(made); return NULL; }
    run(q, x, view.buf);
    PyBuffer_Release(&view);
    return finished(q->finish, made);
}

static PyObject *at_point(Quick *q, const double *x)
{
    double some[SMALL], *y = some;
    PyObject *result;
    if (q->returns == 2) return vector_result(q, x);
    if (q->outputs > SMALL) y = PyMem_Malloc((size_t)q->outputs*sizeof *y);
    if (y == NULL) return PyErr_NoMemory();
    run(q, x, y);
    if (q->returns == 0) result = PyFloat_FromDouble(y[0]);
    else {
        result = PyTuple_New((Py_ssize_t)q->outputs);
        for (int64_t k = 0; result != NULL && k < q->outputs; ++k) {
            PyObject *value = PyFloat_FromDouble(y[k]);
            if (value == NULL) Py_CLEAR(result);
            else PyTuple_SET_ITEM(result, (Py_ssize_t)k, value);
        }
    }
    if (y != some) PyMem_Free(y);
    return result;
}

/* Rows (outputs, points); inputs that are numbers have a stride of 0. */
static PyObject *at_points(
    Quick *q, double *x, char **data, const Py_ssize_t *strides, Py_ssize_t points)
{
    PyObject *number = PyLong_FromSsize_t(points), *made = NULL;
    double some[SMALL], *y = some;
    Py_buffer view;
    if (number == NULL) return NULL;
    made = PyObject_CallOneArg(q->new_rows, number);
    Py_DECREF(number);
    if (memory(made, &view)) { Py_XDECREF(made); return NULL; }
    if (q->outputs > SMALL && (y = PyMem_Malloc((size_t)q->outputs*sizeof *y)) == NULL) {
        PyBuffer_Release(&view);
        Py_DECREF(made);
        return PyErr_NoMemory();
    }
    double *rows = view.buf;
    q->busy = 1;
    PyThreadState *state = unlocked(q, points);
    for (Py_ssize_t p = 0; p < points; ++p) {
        for (int64_t k = 0; k < q->inputs; ++k)
            if (data[k] != NULL) x[k] = *(const double *)(data[k] + p*strides[k]);
        compute(q, x, y);
        for (int64_t k = 0; k < q->outputs; ++k) rows[k*points + p] = y[k];
    }
    if (state != NULL) PyEval_RestoreThread(state);
    q->busy = 0;
    if (y != some) PyMem_Free(y);
    PyBuffer_Release(&view);
    return finished(q->finish_rows, made);
}

/* Many points go to a function of the addresses of all inputs, each with its values side by side. */
static PyObject *at_many(const Quick *q, char **data, Py_ssize_t points)
{
    PyObject *text = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)(q->inputs*8)), *result;
    if (text == NULL) return NULL;
    int64_t *addresses = (int64_t *)(void *)PyBytes_AS_STRING(text);
    for (int64_t k = 0; k < q->inputs; ++k) addresses[k] = (int64_t)(intptr_t)data[k];
    result = PyObject_CallFunction(q->many, "On", text, points);
    Py_DECREF(text);
    return result;
}

static PyObject *call_packed(Quick *q, PyObject *const *args, Py_ssize_t count)
{
    Py_buffer view;
    PyObject *result = NULL;
    if (count != 1 || (PyObject *)Py_TYPE(args[0]) != q->array_type) return otherwise(q, args, count);
    if (PyObject_GetBuffer(args[0], &view, PyBUF_FORMAT | PyBUF_C_CONTIGUOUS)) {
        PyErr_Clear();
        return otherwise(q, args, count);
    }
    const int good = is_float64(&view) && view.ndim == 1 && view.shape[0] == q->inputs;
    if (good) result = at_point(q, view.buf);
    PyBuffer_Release(&view);
    return good ? result : otherwise(q, args, count);
}

static PyObject *call(PyObject *self, PyObject *const *args, Py_ssize_t count, PyObject *names)
{
    Quick *q = PyCapsule_GetPointer(self, NULL);
    if (q == NULL) return NULL;
    if (is_named(names)) return PyObject_Vectorcall(q->fallback, args, (size_t)count, names);
    if (q->frame != NULL && q->busy) return otherwise(q, args, count);
    if (q->packed) return call_packed(q, args, count);
    if (count != q->inputs) return otherwise(q, args, count);
    struct {
        double x[SMALL];
        char *data[SMALL];
        Py_ssize_t strides[SMALL];
        Py_buffer views[SMALL];
    } small;
    double *x = small.x;
    char **data = small.data;
    Py_ssize_t *strides = small.strides, points = -1, held = 0, columns = 0;
    Py_buffer *views = small.views;
    void *large = NULL;
    int good = 1;
    PyObject *result = NULL;
    if (count > SMALL) {
        const size_t n = (size_t)count;
        large = PyMem_Malloc(n*(sizeof *x + sizeof *data + sizeof *strides + sizeof *views));
        if (large == NULL) return PyErr_NoMemory();
        views = large;
        x = (double *)(views + n);
        data = (char **)(x + n);
        strides = (Py_ssize_t *)(data + n);
    }
    for (Py_ssize_t k = 0; good && k < count; ++k) {
        PyObject *arg = args[k];
        data[k] = NULL;
        if (PyFloat_Check(arg)) x[k] = PyFloat_AS_DOUBLE(arg);
        else if (PyLong_CheckExact(arg)) {
            x[k] = PyLong_AsDouble(arg);
            if (x[k] == -1.0 && PyErr_Occurred()) good = 0;
        }
        else if ((PyObject *)Py_TYPE(arg) == q->array_type) {
            Py_buffer *view = views + held;
            if (PyObject_GetBuffer(arg, view, PyBUF_FORMAT | PyBUF_STRIDES)) { good = 0; break; }
            ++held;
            if (!is_float64(view)) good = 0;
            else if (view->ndim == 0) x[k] = *(const double *)view->buf;
            else if (points >= 0 && view->shape[0] != points) good = 0;
            else {
                points = view->shape[0];
                data[k] = view->buf;
                strides[k] = view->strides[0];
                columns += strides[k] == sizeof(double);
            }
        }
        else good = 0;
    }
    PyErr_Clear();
    if (good && points <= q->few)
        result = points < 0 ? at_point(q, x) : at_points(q, x, data, strides, points);
    else if (good && columns == count && q->many != Py_None) result = at_many(q, data, points);
    else good = 0;
    if (result == Py_NotImplemented) { Py_CLEAR(result); good = 0; }
    for (Py_ssize_t k = 0; k < held; ++k) PyBuffer_Release(views + k);
    PyMem_Free(large);
    return good ? result : otherwise(q, args, count);
}

static PyMethodDef method = {
    "compiled", (PyCFunction)(void (*)(void))call, METH_FASTCALL | METH_KEYWORDS,
    "A compiled function of points and batches."
};

static PyObject **objects(Quick *q, int k)
{
    PyObject **all[] = {
        &q->array_type, &q->new_vector, &q->finish, &q->new_rows, &q->finish_rows, &q->fallback, &q->many,
        &q->owner
    };
    return all[k];
}

static void release(PyObject *capsule)
{
    Quick *q = PyCapsule_GetPointer(capsule, NULL);
    for (int k = 0; k < 8; ++k) Py_DECREF(*objects(q, k));
    PyMem_Free(q);
}

/* numbers: the function, or the frame with its x and y; inputs, outputs, operations, packed, returns, few;
   then the objects, a tuple of 8 */
PyObject *symad_quick(const int64_t *numbers, PyObject *given)
{
    Quick *q = PyMem_Malloc(sizeof *q);
    PyObject *capsule, *made;
    if (q == NULL) return PyErr_NoMemory();
    q->function = (compiled)(intptr_t)numbers[0];
    q->frame = (const int64_t *)(intptr_t)numbers[1];
    q->frame_x = (double *)(intptr_t)numbers[2];
    q->frame_y = (double *)(intptr_t)numbers[3];
    q->inputs = numbers[4];
    q->outputs = numbers[5];
    q->operations = numbers[6];
    q->packed = numbers[7];
    q->returns = numbers[8];
    q->few = numbers[9];
    q->busy = 0;
    for (int k = 0; k < 8; ++k) *objects(q, k) = Py_NewRef(PyTuple_GET_ITEM(given, k));
    capsule = PyCapsule_New(q, NULL, release);
    if (capsule == NULL) return NULL;
    made = PyCFunction_New(&method, capsule);
    Py_DECREF(capsule);
    return made;
}
"""


@cache
def _maker() -> Any:
    """The compiled function that makes calls; None without a compiler or Python's headers."""
    include = Path(sysconfig.get_paths()["include"])
    if not (include / "Python.h").exists():
        return None
    late = ["-undefined", "dynamic_lookup"] if sys.platform == "darwin" else []
    try:
        library = compile_c(
            SOURCE % (sysconfig.get_config_var("EXT_SUFFIX"), SHORT), ["-std=c11", f"-I{include}", *late]
        )
    except LoweringError:
        return None
    if library is None:
        return None
    maker: Any = ctypes.PyDLL(library._name, handle=library._handle).symad_quick
    maker.argtypes = (ctypes.c_void_p, ctypes.py_object)
    maker.restype = ctypes.py_object
    return maker


@dataclass(frozen=True)
class Framed:
    """A compiled function of a frame that holds its vectors of inputs and results.

    Attributes:
        frame: of `symad.numeric.compiler.c_calls.frame_of`.
        x: (inputs,), in the frame.
        y: (results,), in the frame.
        parts: what else the frame has the addresses of.
    """

    frame: Any
    x: Any
    y: Any
    parts: Any


Many = Callable[[Any, int], Any]
"""Takes the addresses of all inputs' columns and the number of points; returns rows (results, points)."""


def quick_call(
    function: Any,
    results: FlatResults,
    inputs: int,
    operations: int,
    packed: bool,
    otherwise: Callable[..., Any],
    many: Many | None = None,
    few: int = FEW_POINTS,
) -> Callable[..., Any]:
    """The Python function of a compiled one, with its arguments read in C where that is possible.

    Args:
        function: of ctypes, ``void f(const double *x, double *y)``, without state of its own; or `Framed`.
        results: what stands in y.
        inputs: how many numbers stand in x.
        operations: about how many a call executes; long calls release Python's lock.
        packed: whether x itself is the argument.
        otherwise: the function that takes what is neither a number nor a float64 vector.
        many: the function of more than ``few`` points; without it they go to ``otherwise``.
        few: the points that are computed one after the other.
    """
    maker = _maker()
    if maker is None:
        return otherwise
    total = results.total
    scalars = not any(results.shapes) and all(m is None for m in results.matrices)
    one = scalars and results.structure is None
    flat = isinstance(results.structure, TupleOf) and all(item is None for item in results.structure.items)
    returns = ARRAY if not scalars or not (one or flat) else FLOAT if one else FLOATS
    shape = results.whole or (total,)
    finish = results.split if results.whole is None else None
    if isinstance(function, Framed):
        address = [0, function.frame.ctypes.data, function.x.ctypes.data, function.y.ctypes.data]
    else:
        address = [ctypes.cast(function, ctypes.c_void_p).value or 0, 0, 0, 0]
    rest = [inputs, total, operations, packed, returns, few if total else -1]
    numbers = np.array([*address, *rest], np.int64)

    def batch(addresses: bytes, points: int) -> Any:
        assert many is not None
        try:
            rows = many(np.frombuffer(addresses, np.int64), points)
        except NotCompiled:
            return NotImplemented
        if finish_rows is tuple:
            return tuple(rows)
        return results.at_points(rows, (points,))

    new_rows: Callable[[int], Any]
    finish_rows: Callable[[Any], Any] | None
    if one:
        new_rows, finish_rows = np.empty, None
    elif scalars and flat:
        new_rows, finish_rows = (lambda points: np.empty((total, points))), tuple
    else:
        new_rows = lambda points: np.empty((total, points))  # noqa: E731
        finish_rows = lambda rows: results.at_points(rows, rows.shape[1:])  # noqa: E731
    objects = (
        np.ndarray, lambda: np.empty(shape), finish, new_rows, finish_rows, otherwise,
        None if many is None or not total else batch, function,
    )  # fmt: skip
    made: Callable[..., Any] = maker(numbers.ctypes.data, objects)
    return made
