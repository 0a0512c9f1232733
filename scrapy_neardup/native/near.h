/* The look-up of SimHashes that are near. */

static int count_bits(uint64_t value)
{
    value -= value >> 1 & UINT64_C(0x5555555555555555);
    value = (value & UINT64_C(0x3333333333333333)) + (value >> 2 & UINT64_C(0x3333333333333333));
    return (int)(((value + (value >> 4)) & UINT64_C(0x0F0F0F0F0F0F0F0F)) * EACH_BYTE >> 56);
}

/* Put a number at the end of a list; say whether that went well. */
static int put_number(PyObject *list, uint64_t value)
{
    PyObject *number = PyLong_FromUnsignedLongLong(value);
    int failed = number == NULL || PyList_Append(list, number) < 0;
    Py_XDECREF(number);
    return !failed;
}

/* flat._within */
static PyObject *within(Call *call)
{
    PyObject *made = call->sizes[1] == 1 || fail("there is not one value") ? PyList_New(0) : NULL;
    for (Py_ssize_t i = 0; made != NULL && i < call->sizes[0]; i++)
        if (count_bits(load(call->data[0].buf, i) ^ load(call->data[1].buf, 0)) <= (int)call->numbers[0] &&
            !put_number(made, (uint64_t)i))
            Py_CLEAR(made);
    return made;
}

/* Put the numbers of those in a bucket that are near enough at the end of a list; say whether that went well. */
static int put_near(PyObject *list, PyObject *bucket, uint64_t value, int distance)
{
    const char *entries = PyByteArray_AS_STRING(bucket);
    for (Py_ssize_t i = 0; i < PyByteArray_GET_SIZE(bucket) / ROW; i++)
        if (count_bits(load(entries, 2 * i) ^ value) <= distance && !put_number(list, load(entries, 2 * i + 1)))
            return 0;
    return 1;
}

/* Return the bucket that a probe leads to, NULL for none, or with an error set. */
static PyObject *probed(const Call *call, uint64_t probe, uint64_t value)
{
    PyObject *block = PyLong_FromUnsignedLongLong(probe ^ (value >> (probe >> 16) * 16 % 64 & 0xFFFF));
    PyObject *bucket = block ? PyDict_GetItemWithError(call->dict, block) : NULL;
    Py_XDECREF(block);
    if (bucket != NULL && !PyByteArray_Check(bucket))
        return fail("a bucket is no bytearray"), NULL;
    return bucket;
}

/* hamming._found */
static PyObject *near(Call *call)
{
    PyObject *made = call->sizes[0] == 1 || fail("there is not one value") ? PyList_New(0) : NULL;
    for (Py_ssize_t i = 0; made != NULL && i < call->sizes[1]; i++) {
        uint64_t value = load(call->data[0].buf, 0);
        PyObject *bucket = probed(call, load(call->data[1].buf, i), value);
        if (bucket ? !put_near(made, bucket, value, (int)call->numbers[0]) : PyErr_Occurred() != NULL)
            Py_CLEAR(made);
    }
    return made;
}
