/* Make fingerprints and sketches. */

static const uint64_t EACH_BYTE = UINT64_C(0x0101010101010101);

/* Move the counts from lanes of eight bits to `ones`, and clear the lanes. Lane n of sums[shift] counts bit
8 * n + shift. */
static void spill(uint64_t sums[8], uint64_t ones[64])
{
    for (int bit = 0; bit < 64; bit++)
        ones[bit] += sums[bit % 8] >> (bit / 8 * 8) & 255;
    memset(sums, 0, 8 * sizeof(uint64_t));
}

/* simhash.simhash_counted */
static PyObject *simhash(Call *call)
{
    uint64_t sums[8] = {0}, ones[64] = {0}, total = 0, made = 0, left = 255;
    if (call->sizes[0] != call->sizes[1] && !fail("there is not one count for each row"))
        return NULL;
    for (Py_ssize_t i = 0; i < call->sizes[0]; i++) {
        uint64_t weight = 0;
        for (uint64_t count = load(call->data[1].buf, i); count; count >>= 1)
            weight++;
        if (weight > left) {
            spill(sums, ones);
            left = 255;
        }
        left -= weight;
        total += weight;
        for (int shift = 0; shift < 8; shift++)
            sums[shift] += (name(call, i) >> shift & EACH_BYTE) * weight;
    }
    spill(sums, ones);
    for (int bit = 0; bit < 64; bit++)
        made |= (uint64_t)(ones[bit] > total / 2) << bit;
    return PyLong_FromUnsignedLongLong(made);
}

/* Write the names of the terms in a lexicon, big-endian. Return the number of bytes. Lexicon 0 has all terms. */
static Py_ssize_t kept(const Row *terms, Py_ssize_t count, uint64_t lexicon, char *out)
{
    const uint64_t salt = lexicon * MULTIPLIER, least = UINT64_C(5) << 60;
    Py_ssize_t size = 0;
    for (Py_ssize_t i = 0; i < count; i++) {
        for (int byte = 0; byte < 8; byte++)
            out[size + byte] = (char)(terms[i].name >> (56 - 8 * byte));
        size += lexicon == 0 || mix(terms[i].bits ^ salt) >= least ? 8 : 0;
    }
    return size;
}

/* imatch._names */
static PyObject *imatch_names(Call *call)
{
    Py_ssize_t count = call->sizes[0], lexicons = call->numbers[0];
    Row *terms = sorted(call);
    PyObject *made = terms ? PyTuple_New(lexicons + 1) : NULL;
    for (Py_ssize_t lexicon = 0; made != NULL && lexicon <= lexicons; lexicon++) {
        char *names = (char *)(terms + count);
        PyObject *bytes = PyBytes_FromStringAndSize(names, kept(terms, count, (uint64_t)lexicon, names));
        if (bytes == NULL)
            Py_CLEAR(made);
        else
            PyTuple_SetItem(made, lexicon, bytes);
    }
    return made;
}

/* minhash.minima. The memory after the minima has room for as many again. */
static uint64_t *minima(Call *call, Py_ssize_t bins)
{
    uint64_t *smallest = (uint64_t *)room(call, bins);
    if (smallest != NULL && (bins < 1 || bins > MOST) && !fail("there are no bins, or too many"))
        return NULL;
    for (Py_ssize_t i = call->sizes[0] - 1; smallest != NULL && i >= 0; i--) {
        uint64_t hash = load(call->data[0].buf, i);
        smallest[(hash >> 32) * (uint64_t)bins >> 32] = hash;
    }
    return smallest;
}

/* minhash._densified. Write the result after the minima. */
static void densify(uint64_t *smallest, Py_ssize_t bins)
{
    Py_ssize_t lender = 0;
    for (Py_ssize_t i = 2 * bins - 1; i >= 0; i--) { /* two passes, since the last bins borrow from the first */
        uint64_t value = smallest[i % bins], lent = smallest[lender % bins];
        if (value != 0)
            lender = i;
        smallest[bins + i % bins] = value || !lent ? value : mix(lent + (uint64_t)(lender - i) * MULTIPLIER);
    }
}

/* minhash.super_shingles */
static PyObject *super_shingles(Call *call)
{
    Py_ssize_t bands = call->numbers[0], rows = call->numbers[1];
    Py_ssize_t bins = bands && rows <= MOST / bands ? bands * rows : 0;
    uint64_t *smallest = minima(call, bins);
    if (smallest == NULL)
        return NULL;
    densify(smallest, bins);
    for (Py_ssize_t band = 0; band < bands; band++) {
        uint64_t key = (uint64_t)band;
        for (Py_ssize_t row = 0; row < rows; row++)
            key = mix(key) * MULTIPLIER + smallest[bins + band * rows + row];
        smallest[band] = mix(key);
    }
    return integers(smallest, call->sizes[0] ? bands : 0);
}

/* sketch.codes */
static PyObject *codes(Call *call)
{
    Py_ssize_t bins = call->numbers[0];
    const uint64_t *smallest = minima(call, bins);
    PyObject *made = smallest ? PyBytes_FromStringAndSize(NULL, bins) : NULL;
    char *out = made ? PyBytes_AsString(made) : NULL;
    for (Py_ssize_t bin = 0; made != NULL && bin < bins; bin++)
        out[bin] = (char)(smallest[bin] ? smallest[bin] % 255 + 1 : 0);
    return made;
}

/* sketch.overlap */
static PyObject *overlap(Call *call)
{
    const unsigned char *a = call->data[0].buf, *b = call->data[1].buf;
    int any = 0, both = 0, equal = 0;
    if (call->sizes[0] != call->sizes[1] && !fail("two sketches differ in length"))
        return NULL;
    for (Py_ssize_t i = 0; i < call->sizes[0]; i++) {
        any += (a[i] | b[i]) != 0;
        both += (a[i] != 0) & (b[i] != 0);
        equal += (a[i] != 0) & (a[i] == b[i]);
    }
    return Py_BuildValue("iii", any, both, equal);
}

/* Write the first 16 bits of the hash of each line that begins with a digit. Return the number of these lines. */
static Py_ssize_t find_figures(const Call *call, Row *found)
{
    const char *text = call->data[1].buf;
    Py_ssize_t size = call->sizes[1], count = 0, at = 0;
    for (Py_ssize_t i = 0; i < call->sizes[0]; i++, at = line_end(text, size, at) + 1)
        if (at < size && text[at] >= '0' && text[at] <= '9')
            found[count++].name = name(call, i) >> 48 << 48;
    return count;
}

/* sketch.figures_of */
static PyObject *figures_of(Call *call)
{
    Row *found = room(call, 2 * call->sizes[0]);
    int fits = call->sizes[0] == count_lines(call->data[1].buf, call->sizes[1]);
    if (found == NULL || (!fits && !fail("there is not one row for each line")))
        return NULL;
    Py_ssize_t count = find_figures(call, found), size = 0;
    sort(found, found + count, count);
    char *sample = (char *)(found + count);
    for (Py_ssize_t i = 0; i < count; i++)
        if (i == 0 || found[i].name != found[i - 1].name) {
            sample[size++] = (char)(found[i].name >> 56);
            sample[size++] = (char)(found[i].name >> 48);
        }
    return PyBytes_FromStringAndSize(sample, size);
}
