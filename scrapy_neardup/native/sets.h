/* Sets of hashes, as sorted arrays. */

enum { FEW = 32 };

static const uint64_t MULTIPLIER = UINT64_C(0x9E3779B97F4A7C15);

/* Sort rows that are nearly sorted by name. Stop and return 0 after too many moves, so that the time stays linear. */
static int insertion_sort(Row *rows, Py_ssize_t count)
{
    Py_ssize_t moves = 0;
    for (Py_ssize_t i = 1, at; i < count && moves <= FEW * count; i++) {
        Row row = rows[i];
        for (at = i; at > 0 && rows[at - 1].name > row.name; at--)
            rows[at] = rows[at - 1];
        rows[at] = row;
        moves += i - at;
    }
    return moves <= FEW * count;
}

/* Sort rows by eight bits of their names, from bit `shift` up. The sort is stable. */
static void sort_by_byte(Row *rows, Row *spare, Py_ssize_t count, int shift)
{
    Py_ssize_t places[257] = {0};
    for (Py_ssize_t i = 0; i < count; i++)
        places[(rows[i].name >> shift & 255) + 1]++;
    for (int byte = 0; byte < 256; byte++)
        places[byte + 1] += places[byte];
    for (Py_ssize_t i = 0; i < count; i++)
        spare[places[rows[i].name >> shift & 255]++] = rows[i];
    memcpy(rows, spare, (size_t)count * sizeof(Row));
}

/* Sort rows by name. `spare` has room for as many rows. Hashes are nearly sorted after a sort by their first bits, and
an insertion sort does the rest. Names that are not random are sorted by all bits. */
static void sort(Row *rows, Row *spare, Py_ssize_t count)
{
    int shift = count < FEW ? 64 : count < 4096 ? 48 : 40;
    for (int byte = shift; byte < 64; byte += 8)
        sort_by_byte(rows, spare, count, byte);
    if (!insertion_sort(rows, count))
        for (int byte = 0; byte < 64; byte += 8)
            sort_by_byte(rows, spare, count, byte);
}

/* Return a sorted copy of the rows in the first argument, with room for as many rows after it. */
static Row *sorted(Call *call)
{
    Py_ssize_t count = call->sizes[0];
    Row *rows = room(call, 2 * count);
    if (rows != NULL) {
        memcpy(rows, call->data[0].buf, (size_t)count * sizeof(Row));
        sort(rows, rows + count, count);
    }
    return rows;
}

/* hashes.mix */
static uint64_t mix(uint64_t value)
{
    value = (value ^ value >> 32) * UINT64_C(0xD6E8FEB86659FD93);
    return value ^ value >> 32;
}

/* hashes.counted */
static PyObject *counted(Call *call)
{
    Py_ssize_t count = call->sizes[0], distinct = 0;
    Row *rows = sorted(call);
    if (rows == NULL)
        return NULL;
    int64_t *counts = (int64_t *)(rows + count);
    for (Py_ssize_t i = 0; i < count; i++) {
        if (distinct == 0 || rows[i].name != rows[distinct - 1].name) {
            rows[distinct] = rows[i];
            counts[distinct++] = 0;
        }
        counts[distinct - 1]++;
    }
    return Py_BuildValue("y#y#", rows, distinct * ROW, counts, distinct * 8);
}

/* hashes.shingle_hashes, for the run that begins at `start` */
static uint64_t shingle(const Call *call, Py_ssize_t start, Py_ssize_t width)
{
    uint64_t value = name(call, start);
    for (Py_ssize_t i = start + 1; i < start + width; i++)
        value = mix(value) * MULTIPLIER + name(call, i);
    return mix(value);
}

/* hashes.shingles */
static PyObject *shingles(Call *call)
{
    Py_ssize_t tokens = call->sizes[0], width = call->numbers[0] < tokens ? call->numbers[0] : tokens;
    Py_ssize_t count = width ? tokens - width + 1 : 0, distinct = 0;
    Row *runs = room(call, 2 * count);
    if (runs == NULL || (call->numbers[0] == 0 && !fail("a shingle has at least one token")))
        return NULL;
    for (Py_ssize_t i = 0; i < count; i++)
        runs[i].name = shingle(call, i, width);
    sort(runs, runs + count, count);
    uint64_t *names = &runs[count].name;
    for (Py_ssize_t i = 0; i < count; i++)
        if (distinct == 0 || runs[i].name != names[distinct - 1])
            names[distinct++] = runs[i].name;
    return PyBytes_FromStringAndSize((char *)names, 8 * distinct);
}

/* Return whether a hash is among `count` ascending hashes. */
static int is_among(uint64_t hash, const void *hashes, Py_ssize_t count)
{
    Py_ssize_t low = 0, half;
    for (; (half = count / 2) > 0; count -= half) /* without branches, which would be unpredictable */
        low += load(hashes, low + half) <= hash ? half : 0;
    return count > 0 && load(hashes, low) == hash;
}

/* hashes.HashSet.among */
static PyObject *among(Call *call)
{
    const char *rows = call->data[0].buf, *heads = call->data[2].buf;
    Py_ssize_t size = 0;
    int shift = 63;
    while (shift > 40 && (Py_ssize_t)1 << (64 - shift) < call->sizes[2])
        shift--;
    if ((Py_ssize_t)1 << (64 - shift) != call->sizes[2] && !fail("heads are no power of two"))
        return NULL;
    PyObject *made = PyBytes_FromStringAndSize(NULL, call->sizes[0] * ROW);
    char *out = made ? PyBytes_AsString(made) : NULL;
    for (Py_ssize_t i = 0; made != NULL && i < call->sizes[0]; i++)
        if (heads[name(call, i) >> shift] && is_among(name(call, i), call->data[1].buf, call->sizes[1])) {
            memcpy(out + size, rows + i * ROW, sizeof(Row));
            size += ROW;
        }
    if (made != NULL)
        _PyBytes_Resize(&made, size);
    return made;
}
