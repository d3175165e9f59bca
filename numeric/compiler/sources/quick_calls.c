/* Calls whose arguments are read in C; see symad.numeric.scalars.quick_calls. A reader stands before it. */
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
    int64_t inputs, outputs, operations, packed, returns, layout, few, least, most, large, busy;
    int64_t *lanes;
    int64_t planned, lanes_busy, arguments;
    const int64_t *shapes;  /* of each argument the number of axes, then their lengths; NULL: numbers */
    PyObject *array_type, *new_vector, *finish, *new_rows, *finish_rows, *fallback, *plan, *owner,
        *new_block;
} Quick;

enum { SMALL = 24, BLOCK = 512 };
enum { ROWS, POINTS, SEPARATE };

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

/* The results of a batch: number k at point p is to[k][p*step]. Large ones are one block of memory. */
typedef struct {
    PyObject *made;
    double **to, *some[SMALL];
    Py_ssize_t step;
    int large;
} Results;

/* The values of a float64 array that is new. */
static int values_of(PyObject *array, double **values)
{
    Py_buffer view;
    if (memory(array, &view)) return -1;
    *values = view.buf;
    PyBuffer_Release(&view);
    return 0;
}

static int new_results(const Quick *q, Py_ssize_t points, Results *r)
{
    const Py_ssize_t count = (Py_ssize_t)q->outputs;
    PyObject *number = PyLong_FromSsize_t(points);
    double *values = NULL;
    int failed = number == NULL;
    r->to = r->some;
    r->made = NULL;
    r->step = q->layout == POINTS ? count : 1;
    r->large = points >= q->large;
    if (!failed && count > SMALL && (r->to = PyMem_Malloc((size_t)count*sizeof *r->to)) == NULL) {
        r->to = r->some;
        PyErr_NoMemory();
        failed = 1;
    }
    if (!failed && q->layout == SEPARATE && !r->large) {
        r->made = PyTuple_New(count);
        failed = r->made == NULL;
        for (Py_ssize_t k = 0; !failed && k < count; ++k) {
            PyObject *row = PyObject_CallOneArg(q->new_rows, number);
            failed = values_of(row, r->to + k);
            if (row != NULL) PyTuple_SET_ITEM(r->made, k, row);
        }
    }
    else if (!failed) {
        r->made = PyObject_CallOneArg(r->large ? q->new_block : q->new_rows, number);
        failed = values_of(r->made, &values);
        for (Py_ssize_t k = 0; !failed && k < count; ++k)
            r->to[k] = values + (q->layout == POINTS ? k : k*points);
    }
    Py_XDECREF(number);
    if (failed) Py_CLEAR(r->made);
    return failed ? -1 : 0;
}

static PyObject *results_of(const Quick *q, Results *r)
{
    if (r->to != r->some) PyMem_Free(r->to);
    if (r->made != NULL && r->large && q->layout == SEPARATE) {
        PyObject *block = r->made;
        r->made = PySequence_Tuple(block);
        Py_DECREF(block);
    }
    return r->made == NULL || q->layout != ROWS ? r->made : finished(q->finish_rows, r->made);
}

/* One point after the other; inputs that are numbers have no data. */
static PyObject *at_points(
    Quick *q, double *x, char **data, const Py_ssize_t *strides, Py_ssize_t points)
{
    double some[SMALL], *y = some;
    Results r;
    if (new_results(q, points, &r)) return results_of(q, &r);
    if (q->outputs > SMALL && (y = PyMem_Malloc((size_t)q->outputs*sizeof *y)) == NULL) {
        Py_CLEAR(r.made);
        PyErr_NoMemory();
        return results_of(q, &r);
    }
    q->busy = 1;
    PyThreadState *state = unlocked(q, points);
    for (Py_ssize_t p = 0; p < points; ++p) {
        for (int64_t k = 0; k < q->inputs; ++k)
            if (data[k] != NULL) x[k] = *(const double *)(data[k] + p*strides[k]);
        compute(q, x, y);
        for (int64_t k = 0; k < q->outputs; ++k) r.to[k][p*r.step] = y[k];
    }
    if (state != NULL) PyEval_RestoreThread(state);
    q->busy = 0;
    if (y != some) PyMem_Free(y);
    return results_of(q, &r);
}

/* Several points at a time, by a frame of symad_runs_points that is kept. What changes are the addresses of
   inputs (part 4) and results (part 6), each with its values side by side, and the points (part 9). */
static PyObject *at_lanes(
    Quick *q, const double *x, char **data, const Py_ssize_t *strides, Py_ssize_t points)
{
    int64_t *frame = q->lanes + 1;
    int64_t *where = (int64_t *)(intptr_t)frame[4], *to = (int64_t *)(intptr_t)frame[6];
    const Py_ssize_t count = (Py_ssize_t)q->outputs;
    Py_ssize_t copied = 0;
    Results r;
    if (new_results(q, points, &r)) return results_of(q, &r);
    const int direct = r.step == 1;
    for (int64_t k = 0; k < q->inputs; ++k) copied += data[k] == NULL || strides[k] != sizeof *x;
    const Py_ssize_t block = points < BLOCK || (direct && !copied) ? points : BLOCK;
    double *room = PyMem_Malloc((size_t)(copied + (direct ? 0 : count) + 1)*(size_t)block*sizeof *room);
    if (room == NULL) {
        Py_CLEAR(r.made);
        PyErr_NoMemory();
        return results_of(q, &r);
    }
    q->lanes_busy = 1;
    PyThreadState *state = unlocked(q, points);
    for (Py_ssize_t first = 0; first < points; first += block) {
        const Py_ssize_t some = points - first < block ? points - first : block;
        double *column = room;
        for (int64_t k = 0; k < q->inputs; ++k) {
            if (data[k] != NULL && strides[k] == sizeof *x) {
                where[k] = (int64_t)(intptr_t)(data[k] + first*strides[k]);
                continue;
            }
            for (Py_ssize_t p = 0; p < some; ++p)
                column[p] = data[k] == NULL ? x[k] : *(const double *)(data[k] + (first + p)*strides[k]);
            where[k] = (int64_t)(intptr_t)column;
            column += block;
        }
        for (Py_ssize_t k = 0; k < count; ++k)
            to[k] = (int64_t)(intptr_t)(direct ? r.to[k] + first : column + k*block);
        frame[9] = some;
        ((framed)(intptr_t)q->lanes[0])(frame);
        for (Py_ssize_t k = 0; !direct && k < count; ++k)
            for (Py_ssize_t p = 0; p < some; ++p) r.to[k][(first + p)*r.step] = column[k*block + p];
    }
    if (state != NULL) PyEval_RestoreThread(state);
    q->lanes_busy = 0;
    PyMem_Free(room);
    return results_of(q, &r);
}

/* Whether several points can be computed at a time: planned when the first such batch comes. */
static int has_lanes(Quick *q)
{
    if (!q->planned) {
        PyObject *address = PyObject_CallNoArgs(q->plan);
        if (address == NULL) return -1;
        q->lanes = PyLong_AsVoidPtr(address);
        Py_DECREF(address);
        q->planned = 1;
    }
    return q->lanes != NULL && !q->lanes_busy;
}

static PyObject *batch(Quick *q, double *x, char **data, const Py_ssize_t *strides, Py_ssize_t points)
{
    if (q->few < 0 || points > q->most) Py_RETURN_NOTIMPLEMENTED;
    if (points >= q->least) {
        const int found = has_lanes(q);
        if (found < 0) return NULL;
        if (found) return at_lanes(q, x, data, strides, points);
    }
    if (points > q->few) Py_RETURN_NOTIMPLEMENTED;
    return at_points(q, x, data, strides, points);
}

static PyObject *call_packed(Quick *q, PyObject *const *args, Py_ssize_t count)
{
    Py_buffer view;
    Py_ssize_t held = 0;
    Vector v;
    PyObject *result = NULL;
    if (count != 1 || (PyObject *)Py_TYPE(args[0]) != q->array_type) return otherwise(q, args, count);
    const int good = read_vector(args[0], &view, &held, &v) && v.length == q->inputs
        && (v.stride == sizeof(double) || v.length == 1);
    if (good) result = at_point(q, (const double *)v.data);
    else PyErr_Clear();
    if (held) PyBuffer_Release(&view);
    return good ? result : otherwise(q, args, count);
}

/* Arguments of given shapes: their values side by side are x. */
static PyObject *call_shaped(Quick *q, PyObject *const *args, Py_ssize_t count)
{
    double some[SMALL], *x = some;
    const int64_t *shape = q->shapes;
    PyObject *result = NULL;
    int good = count == q->arguments;
    if (q->inputs > SMALL && (x = PyMem_Malloc((size_t)q->inputs*sizeof *x)) == NULL) return PyErr_NoMemory();
    double *to = x;
    for (Py_ssize_t k = 0; good && k < count; ++k) {
        const int64_t axes = *shape++;
        Py_buffer view;
        if (!axes && PyFloat_Check(args[k])) *to = PyFloat_AS_DOUBLE(args[k]);
        else if ((PyObject *)Py_TYPE(args[k]) != q->array_type) good = 0;
        else good = read_shaped(args[k], &view, axes, shape, to);
        int64_t size = 1;
        for (int64_t j = 0; j < axes; ++j) size *= *shape++;
        to += size;
    }
    if (good) result = at_point(q, x);
    else PyErr_Clear();
    if (x != some) PyMem_Free(x);
    return good ? result : otherwise(q, args, count);
}

static PyObject *call(PyObject *self, PyObject *const *args, Py_ssize_t count, PyObject *names)
{
    Quick *q = PyCapsule_GetPointer(self, NULL);
    if (q == NULL) return NULL;
    if (is_named(names)) return PyObject_Vectorcall(q->fallback, args, (size_t)count, names);
    if (q->frame != NULL && q->busy) return otherwise(q, args, count);
    if (q->packed) return call_packed(q, args, count);
    if (q->shapes != NULL) return call_shaped(q, args, count);
    if (count != q->inputs) return otherwise(q, args, count);
    struct {
        double x[SMALL];
        char *data[SMALL];
        Py_ssize_t strides[SMALL];
        Py_buffer views[SMALL];
    } small;
    double *x = small.x;
    char **data = small.data;
    Py_ssize_t *strides = small.strides, points = -1, held = 0;
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
            Vector v;
            if (!read_vector(arg, views, &held, &v)) good = 0;
            else if (v.length < 0) x[k] = *(const double *)v.data;
            else if (points >= 0 && v.length != points) good = 0;
            else {
                points = v.length;
                data[k] = v.data;
                strides[k] = v.stride;
            }
        }
        else good = 0;
    }
    PyErr_Clear();
    if (good) result = points < 0 ? at_point(q, x) : batch(q, x, data, strides, points);
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
        &q->array_type, &q->new_vector, &q->finish, &q->new_rows, &q->finish_rows, &q->fallback, &q->plan,
        &q->owner, &q->new_block
    };
    return all[k];
}

static void release(PyObject *capsule)
{
    Quick *q = PyCapsule_GetPointer(capsule, NULL);
    for (int k = 0; k < 9; ++k) Py_DECREF(*objects(q, k));
    PyMem_Free(q);
}

/* numbers: the function, or the frame with its x and y; inputs, outputs, operations, packed, returns, layout,
   few, least, most, large, the number of arguments and the address of their shapes; then the objects, a tuple
   of 9 */
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
    q->layout = numbers[9];
    q->few = numbers[10];
    q->least = numbers[11];
    q->most = numbers[12];
    q->large = numbers[13];
    q->arguments = numbers[14];
    q->shapes = (const int64_t *)(intptr_t)numbers[15];
    q->busy = q->planned = q->lanes_busy = 0;
    q->lanes = NULL;
    for (int k = 0; k < 9; ++k) *objects(q, k) = Py_NewRef(PyTuple_GET_ITEM(given, k));
    capsule = PyCapsule_New(q, NULL, release);
    if (capsule == NULL) return NULL;
    made = PyCFunction_New(&method, capsule);
    Py_DECREF(capsule);
    return made;
}
