/* A frame holds the address of a function, and behind it the function's own frame. */
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
