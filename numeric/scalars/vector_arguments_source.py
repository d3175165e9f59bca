"""The C source that reads float64 arrays of at most one axis, or of a shape, for `quick_calls`.

With NumPy's headers this takes a few nanoseconds. Without them, Python's buffer protocol gives the same
information, but NumPy builds a new description of the array for each buffer, which takes 150 ns.

The reader uses only the fields that NumPy 1.x and 2.x have in common. The macro for "aligned, in native byte
order", ``PyArray_ISBEHAVED_RO``, is none of them: since NumPy 2.5 it calls a function of another header,
which needs NumPy's table of functions.
"""

VECTOR = """\
/* An array of one axis: where its values stand, how many, and bytes from one to the next. Of no axis: its
   length is -1. */
typedef struct { char *data; Py_ssize_t length, stride; } Vector;
"""

BY_NUMPY = (
    VECTOR
    + """
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
"""
)

BY_BUFFERS = (
    VECTOR
    + """
static int read_vector(PyObject *array, Py_buffer *views, Py_ssize_t *held, Vector *v)
{
    Py_buffer *view = views + *held;
    if (PyObject_GetBuffer(array, view, PyBUF_FORMAT | PyBUF_STRIDES)) return 0;
    ++*held;
    if (view->format == NULL || view->format[0] != 'd' || view->format[1] != 0 || view->ndim > 1) return 0;
    v->data = view->buf;
    v->length = view->ndim ? view->shape[0] : -1;
    v->stride = view->ndim ? view->strides[0] : 0;
    return 1;
}

static int read_shaped(PyObject *array, Py_buffer *view, int64_t axes, const int64_t *dims, double *x)
{
    if (PyObject_GetBuffer(array, view, PyBUF_FORMAT | PyBUF_C_CONTIGUOUS)) return 0;
    int good = view->format != NULL && view->format[0] == 'd' && view->format[1] == 0 && view->ndim == axes;
    for (int k = 0; good && k < axes; ++k) good = view->shape[k] == dims[k];
    if (good) memcpy(x, view->buf, (size_t)view->len);
    PyBuffer_Release(view);
    return good;
}
"""
)
