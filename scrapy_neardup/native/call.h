/* Check the arguments of twins, and build their results. */

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "for little-endian machines; without this part everything works, less quickly"
#endif

#ifdef Py_LIMITED_API /* it is part of the stable ABI, but headers of Python 3.11 declare it only outside */
PyAPI_FUNC(int) _PyBytes_Resize(PyObject **, Py_ssize_t);
#endif

enum { MOST = 1 << 20 };

typedef struct {
    uint64_t name, bits;
} Row;

static const Py_ssize_t ROW = sizeof(Row);

typedef struct {
    Py_buffer data[4];
    Py_ssize_t sizes[4]; /* in items */
    Py_ssize_t numbers[2];
    void *room; /* freed when the call ends */
} Call;

typedef PyObject *(*Twin)(Call *);

static int fail(const char *message)
{
    PyErr_SetString(PyExc_ValueError, message);
    return 0;
}

/* Read one argument into the call. Return 0 with an error set if it is not of its kind.

Kinds: `b` bytes, `h` items of 8 bytes such as hashes, `n` a number from 0 to MOST. */
static int take(Call *call, PyObject *argument, char kind, int *buffers, int *numbers)
{
    if (kind == 'n') {
        Py_ssize_t number = PyLong_AsSsize_t(argument);
        call->numbers[(*numbers)++] = number;
        if (number == -1 && PyErr_Occurred())
            return 0;
        return (number >= 0 && number <= MOST) || fail("a number is too large, or below 0");
    }
    Py_buffer *data = &call->data[*buffers];
    if (PyObject_GetBuffer(argument, data, PyBUF_SIMPLE) < 0)
        return 0;
    Py_ssize_t size = kind == 'h' ? 8 : 1;
    call->sizes[(*buffers)++] = data->len / size;
    return data->len % size == 0 || fail("an array ends within an item");
}

/* Check the arguments against `kinds`, one letter each, and call a twin with them. */
static PyObject *run(Twin twin, const char *kinds, PyObject *const *args, Py_ssize_t count)
{
    Call call = {.room = NULL};
    int buffers = 0, numbers = 0, fits = count == (Py_ssize_t)strlen(kinds) || fail("another number of arguments");
    for (Py_ssize_t i = 0; fits && i < count; i++)
        fits = take(&call, args[i], kinds[i], &buffers, &numbers);
    PyObject *made = fits ? twin(&call) : NULL;
    PyMem_Free(call.room);
    while (buffers > 0)
        PyBuffer_Release(&call.data[--buffers]);
    return made;
}

/* Allocate zeroed memory for `rows` rows; NULL with an error set. At most once in a call. */
static Row *room(Call *call, Py_ssize_t rows)
{
    call->room = PyMem_Calloc((size_t)rows + 1, sizeof(Row));
    return call->room ? call->room : (Row *)PyErr_NoMemory();
}

static uint64_t load(const void *data, Py_ssize_t place)
{
    uint64_t value;
    memcpy(&value, (const char *)data + 8 * place, 8);
    return value;
}
