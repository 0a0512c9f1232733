/* The compiled part: C twins of Python functions, faster, and with results equal to the last bit.

The comment above each function names its twin, whose docstring has the purpose and the source. Integers have 64 bits,
in the layout of numpy arrays.

No state is kept between calls, and arguments are not modified. Memory that is read need not be aligned. No other thread
may change the arguments during a call. `sign` releases the lock of Python, so that other threads run meanwhile. No
format of arguments has a `#`. With one, a file that Python 3.13 built would fail in 3.11, which may load it too. */

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

/* Find rows in a sorted array of entries. An entry is a posting of 36 bits and a slot of 28: see row_index.py. */

enum { SLOT_BITS = 28, BLOCK_BITS = 16, BLOCKS = 4, REST_BITS = 45, CROWD = 1024 };

static const uint64_t NEAR = UINT64_C(1) << 63, SLOT = (UINT64_C(1) << SLOT_BITS) - 1;

/* What is looked up now, for the question at a position. */
typedef struct {
    uint64_t posting, key, most, simhash, distance, question;
} Probe;

/* A row that was found: by a key or, if `key` is 0, by a SimHash at the distance `far`. */
typedef struct {
    uint64_t question, key, slot, far;
} Hit;

typedef struct {
    const void *entries, *simhashes;
    Py_ssize_t all, slots; /* their numbers */
    Hit *hits;
    Py_ssize_t count, room;
} Search;

/* Return the place of the first entry from `start` to `end` that is not below a value. */
static Py_ssize_t bisect(const void *entries, Py_ssize_t start, Py_ssize_t end, uint64_t value)
{
    while (start < end) {
        Py_ssize_t middle = start + (end - start) / 2;
        if (load(entries, middle) < value)
            start = middle + 1;
        else
            end = middle;
    }
    return start;
}

/* Return the number of bits that are 1. */
static int ones_in(uint64_t bits)
{
    bits -= bits >> 1 & UINT64_C(0x5555555555555555);
    bits = (bits & UINT64_C(0x3333333333333333)) + (bits >> 2 & UINT64_C(0x3333333333333333));
    return (int)(((bits + (bits >> 4)) & UINT64_C(0x0F0F0F0F0F0F0F0F)) * UINT64_C(0x0101010101010101) >> 56);
}

/* Add a hit. Return 0 with an error set if memory is lacking. */
static int push(Search *search, Hit hit)
{
    if (search->count == search->room) {
        Hit *grown = PyMem_Realloc(search->hits, (size_t)(2 * search->room + 64) * sizeof(Hit));
        if (grown == NULL)
            return PyErr_NoMemory() != NULL;
        search->hits = grown;
        search->room = 2 * search->room + 64;
    }
    search->hits[search->count++] = hit;
    return 1;
}

/* Return whether a hit is nearer than another, or as near and older. */
static int is_before(Hit one, Hit other)
{
    return one.far < other.far || (one.far == other.far && one.slot < other.slot);
}

/* Add a hit to the hits from `begin` on. These stay sorted, and the nearest `most` of them are kept. */
static int push_nearest(Search *search, Py_ssize_t begin, uint64_t most, Hit hit)
{
    Hit *all = search->hits;
    if ((uint64_t)(search->count - begin) >= most) {
        if (!most || !is_before(hit, all[search->count - 1]))
            return 1;
        search->count--;
    }
    if (!push(search, hit))
        return 0;
    all = search->hits;
    Py_ssize_t at = search->count - 1;
    for (; at > begin && is_before(hit, all[at - 1]); at--)
        all[at] = all[at - 1];
    all[at] = hit;
    return 1;
}

/* Add the newest rows of a key, whose entries are from `start` to `end`. */
static int find_key(Search *search, const Probe *asked, Py_ssize_t start, Py_ssize_t end)
{
    if ((uint64_t)(end - start) > asked->most)
        start = end - (Py_ssize_t)asked->most;
    for (; start < end; start++) {
        uint64_t slot = load(search->entries, start) & SLOT;
        if (slot < (uint64_t)search->slots && !push(search, (Hit){asked->question, asked->key, slot, 0}))
            return 0;
    }
    return 1;
}

/* Add the rows nearest to a SimHash, whose entries are from `start` to `end`. */
static int find_near(Search *search, const Probe *asked, Py_ssize_t start, Py_ssize_t end)
{
    uint64_t turned = rotated(asked->simhash, BLOCK_BITS * (int)(asked->posting >> 61 & 3)), far;
    uint64_t own = asked->posting >> 61 << 61 | turned >> 31 << SLOT_BITS, slots = (uint64_t)search->slots;
    Py_ssize_t crowd = (Py_ssize_t)(slots >> 14) > CROWD ? (Py_ssize_t)(slots >> 14) : CROWD, begin = search->count;
    Py_ssize_t at = bisect(search->entries, start, end, asked->posting | SLOT);
    end = end - at > crowd ? at + crowd : end;
    for (start = at - start > crowd ? at - crowd : start; start < end; start++) {
        uint64_t entry = load(search->entries, start), slot = entry & SLOT;
        if ((uint64_t)ones_in((entry ^ own) >> SLOT_BITS) > asked->distance || slot >= slots)
            continue; /* passes over most entries without reading the whole SimHash */
        far = (uint64_t)ones_in(load(search->simhashes, (Py_ssize_t)slot) ^ asked->simhash);
        Hit hit = {asked->question, 0, slot, far};
        if (far <= asked->distance && !push_nearest(search, begin, asked->most, hit))
            return 0;
    }
    return 1;
}

/* Add the rows that a probe finds by one posting. */
static int find_posting(Search *search, const Probe *asked)
{
    const void *entries = search->entries;
    uint64_t rest = asked->posting & NEAR ? (UINT64_C(1) << REST_BITS) - 1 : SLOT, last = asked->posting | rest;
    Py_ssize_t start = bisect(entries, 0, search->all, asked->posting & ~rest), end;
    if (start == search->all || load(entries, start) > last)
        return 1; /* most keys are not found */
    end = bisect(entries, start, search->all, last); /* no entry is `last`: no level has so many rows */
    return (asked->posting & NEAR ? find_near : find_key)(search, asked, start, end);
}

/* Return the next larger number with as many bits that are 1. */
static uint64_t next_flip(uint64_t flip)
{
    uint64_t lowest = flip & (~flip + 1), carried = flip + lowest;
    return ((carried ^ flip) >> 2) / lowest | carried;
}

/* Add the rows with a near SimHash. Look up its blocks, and blocks with a few bits flipped (row_index.flips). */
static int find_all_near(Search *search, Probe asked)
{
    int64_t bits = (int64_t)(asked.distance < 64 ? asked.distance : 64) - (BLOCKS - 1);
    int64_t least = bits < 0 ? -1 : bits / BLOCKS, more = bits - BLOCKS * least;
    for (int64_t block = 0; block < BLOCKS; block++) {
        uint64_t turned = rotated(asked.simhash, BLOCK_BITS * (int)block);
        uint64_t own = NEAR | (uint64_t)block << 61 | turned >> 31 << SLOT_BITS;
        for (int64_t count = 0; count <= least + (block < more); count++)
            for (uint64_t flip = (UINT64_C(1) << count) - 1; flip >> BLOCK_BITS == 0; flip = next_flip(flip)) {
                asked.posting = own ^ flip << REST_BITS;
                if (!find_posting(search, &asked))
                    return 0;
                if (!flip)
                    break;
            }
    }
    return 1;
}

/* Add the rows that a question finds. Return 0 with an error set if `question` is invalid, or memory is lacking. */
static int find_all(Search *search, PyObject *question, Probe asked, uint64_t nearest)
{
    Py_buffer keys;
    PyObject *simhash;
    if (!PyTuple_Check(question) && !fail("a question is a tuple"))
        return 0;
    if (!PyArg_ParseTuple(question, "y*KOK", &keys, &asked.most, &simhash, &asked.distance))
        return 0;
    int goes_on = 1;
    for (Py_ssize_t at = 0; goes_on && at < keys.len / 8; at++) {
        asked.key = load(keys.buf, at);
        asked.posting = asked.key >> 29 << SLOT_BITS;
        goes_on = find_posting(search, &asked);
    }
    PyBuffer_Release(&keys);
    if (!goes_on || simhash == Py_None)
        return goes_on;
    asked.most = nearest;
    asked.simhash = PyLong_AsUnsignedLongLong(simhash);
    return !PyErr_Occurred() && find_all_near(search, asked);
}

/* row_index._near: near(simhashes, simhash, distance) */
static PyObject *near(PyObject *Py_UNUSED(module), PyObject *args)
{
    Py_buffer simhashes;
    unsigned long long simhash, distance;
    if (!PyArg_ParseTuple(args, "y*KK", &simhashes, &simhash, &distance))
        return NULL;
    PyObject *found = PyList_New(0);
    for (Py_ssize_t at = 0; found != NULL && at < simhashes.len / 8; at++) {
        unsigned long long far = (unsigned long long)ones_in(load(simhashes.buf, at) ^ simhash);
        PyObject *hit = far <= distance ? Py_BuildValue("nK", at, far) : NULL;
        if (far <= distance && (hit == NULL || PyList_Append(found, hit) < 0))
            Py_CLEAR(found);
        Py_XDECREF(hit);
    }
    PyBuffer_Release(&simhashes);
    return found;
}

/* row_index._find: find(entries, simhashes, questions, nearest) */
static PyObject *find(PyObject *Py_UNUSED(module), PyObject *args)
{
    Py_buffer entries, simhashes;
    PyObject *questions;
    unsigned long long nearest;
    if (!PyArg_ParseTuple(args, "y*y*O!K", &entries, &simhashes, &PyList_Type, &questions, &nearest))
        return NULL;
    Search search = {entries.buf, simhashes.buf, entries.len / 8, simhashes.len / 8, NULL, 0, 0};
    int goes_on = 1;
    for (Py_ssize_t at = 0; goes_on && at < PyList_Size(questions); at++)
        goes_on = find_all(&search, PyList_GetItem(questions, at), (Probe){.question = (uint64_t)at}, nearest);
    const char *made = (const char *)search.hits;
    PyObject *found = goes_on ? PyBytes_FromStringAndSize(made, search.count * (Py_ssize_t)sizeof(Hit)) : NULL;
    PyMem_Free(search.hits);
    PyBuffer_Release(&entries);
    PyBuffer_Release(&simhashes);
    return found;
}

/* The module */

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
