/* The compiled part: C twins of Python functions, faster and with equal results to the last bit.

The comment above each twin names its Python function, whose docstring has the purpose and the source. Integers have 64
bits, in the layout of numpy arrays. A row is two integers, the hash of a token.

No state is kept between calls, and arguments are not modified. Memory that is read need not be aligned. No other thread
may change the arguments during a call. `sign` releases the lock of Python, so that other threads run meanwhile. */

#include "call.h"
#include "words.h"
#include "dictionary.h"
#include "han.h"
#include "record.h"
#include "postings.h"
#include "markup.h"

enum { VERSION = 9 }; /* raise it together with native.VERSION when a signature or a result changes */

#define CALLED(twin, kinds)                                                                 \
    static PyObject *call_##twin(PyObject *module, PyObject *const *args, Py_ssize_t count) \
    {                                                                                       \
        (void)module;                                                                       \
        return run(twin, kinds, args, count);                                               \
    }

CALLED(word_lines, "b")
CALLED(dictionary, "bn")
CALLED(cut_lines, "bhhh")
CALLED(plain_chinese, "b")
CALLED(hash_lines, "b")
CALLED(overlap, "bb")
CALLED(find, "hhh")
CALLED(class_lines, "b")

#define METHOD(twin) {#twin, (PyCFunction)(void (*)(void))call_##twin, METH_FASTCALL, NULL}

static PyMethodDef METHODS[] = {
    METHOD(word_lines), METHOD(dictionary), METHOD(cut_lines), METHOD(plain_chinese),
    METHOD(hash_lines), METHOD(overlap), METHOD(find), METHOD(class_lines), {"sign", sign, METH_VARARGS, NULL},
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
