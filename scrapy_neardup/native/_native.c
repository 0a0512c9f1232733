/* The compiled part: C twins of Python functions, faster, and with results equal to the last bit.

The comment above each function names its twin, whose docstring has the purpose and the source. Integers have 64 bits,
in the layout of numpy arrays.

No state is kept between calls, and arguments are not modified. Memory that is read need not be aligned. No other thread
may change the arguments during a call. `sign` releases the lock of Python, so that other threads run meanwhile. No
format of arguments has a `#`: built by Python 3.13, it would fail in 3.11, which may load the same file. */

#include <Python.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "for little-endian machines; without this part everything works, less quickly"
#endif

#ifdef Py_LIMITED_API /* the function is part of the stable ABI, but headers of Python 3.11 do not declare it there */
PyAPI_FUNC(int) _PyBytes_Resize(PyObject **, Py_ssize_t);
#endif

static int fail(const char *message)
{
    PyErr_SetString(PyExc_ValueError, message);
    return 0;
}

static uint64_t load(const void *data, Py_ssize_t place)
{
    uint64_t value;
    memcpy(&value, (const char *)data + 8 * place, 8);
    return value;
}

#include "chinese.h"
#include "record.h"
#include "postings.h"

enum { VERSION = 14 }; /* raise it together with native.VERSION when a signature or a result changes */

static PyMethodDef METHODS[] = {
    {"dictionary", dictionary, METH_VARARGS, NULL}, {"cut", cut, METH_VARARGS, NULL},
    {"sign", sign, METH_VARARGS, NULL}, {"overlap", overlap, METH_VARARGS, NULL},
    {"find", find, METH_VARARGS, NULL}, {"near", near, METH_VARARGS, NULL}, {"foreign", foreign, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static int set_up(PyObject *module)
{
    set_letters();
    return PyModule_AddIntConstant(module, "VERSION", VERSION);
}

static PyModuleDef_Slot SLOTS[] = {
    {Py_mod_exec, (void *)set_up},
#ifdef Py_mod_gil
    {Py_mod_gil, Py_MOD_GIL_NOT_USED},
#endif
    {0, NULL},
};

static PyModuleDef MODULE = {PyModuleDef_HEAD_INIT, .m_name = "_native", .m_methods = METHODS, .m_slots = SLOTS};

PyMODINIT_FUNC PyInit__native(void)
{
    return PyModuleDef_Init(&MODULE);
}
