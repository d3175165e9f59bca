/* Reads float64 arrays of at most one axis, or of a shape, in a few nanoseconds.

   It uses only the fields that NumPy 1.x and 2.x have in common. The macro for "aligned, in native byte order",
   PyArray_ISBEHAVED_RO, is none of them: since NumPy 2.5 it calls a function of another header, which needs
   NumPy's table of functions. */
#include <Python.h>
#include <stdint.h>
#include <string.h>

/* An array of one axis: where its values stand, how many, and bytes from one to the next. Of no axis: its
   length is -1. */
typedef struct { char *data; Py_ssize_t length, stride; } Vector;

#define NPY_NO_DEPRECATED_API NPY_1_7_API_VERSION
#include <numpy/ndarraytypes.h>

static int read_vector(PyObject *array, Py_buffer *views, Py_ssize_t *held, Vector *v)
{
    PyArrayObject *a = (PyArrayObject *)array;
    (void)views; (void)held;
    if (PyArray_TYPE(a) != NPY_DOUBLE || PyArray_NDIM(a) > 1) return 0;
    if (!PyArray_CHKFLAGS(a, NPY_ARRAY_ALIGNED) || PyArray_DESCR(a)->byteorder == NPY_OPPBYTE) return 0;
    v->data = PyArray_BYTES(a);
    v->length = PyArray_NDIM(a) ? (Py_ssize_t)PyArray_DIM(a, 0) : -1;
    v->stride = PyArray_NDIM(a) ? (Py_ssize_t)PyArray_STRIDE(a, 0) : 0;
    return 1;
}

static int read_shaped(PyObject *array, Py_buffer *view, int64_t axes, const int64_t *dims, double *x)
{
    PyArrayObject *a = (PyArrayObject *)array;
    const int flags = NPY_ARRAY_ALIGNED | NPY_ARRAY_C_CONTIGUOUS;
    size_t size = sizeof *x;
    (void)view;
    if (PyArray_TYPE(a) != NPY_DOUBLE || PyArray_NDIM(a) != axes || !PyArray_CHKFLAGS(a, flags)) return 0;
    if (PyArray_DESCR(a)->byteorder == NPY_OPPBYTE) return 0;
    for (int k = 0; k < axes; ++k) {
        if (PyArray_DIM(a, k) != dims[k]) return 0;
        size *= (size_t)dims[k];
    }
    memcpy(x, PyArray_BYTES(a), size);
    return 1;
}
