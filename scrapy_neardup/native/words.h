/* Split text into words, and hash them. */

static unsigned char LETTERS[256]; /* each byte in lower case; a line end for bytes outside words */

static void set_letters(void)
{
    for (int c = 0; c < 256; c++) {
        int is_capital = c >= 'A' && c <= 'Z', is_small = c >= 'a' && c <= 'z', is_digit = c >= '0' && c <= '9';
        LETTERS[c] = (unsigned char)(is_capital ? c + 'a' - 'A' : is_small || is_digit || c > 127 ? c : '\n');
    }
}

/* Output lines. `was_letter`: the last word has no line end yet. */
typedef struct {
    unsigned char *bytes;
    Py_ssize_t size;
    int was_letter;
} Lines;

static void put_letter(Lines *lines, unsigned char letter)
{
    int is_letter = letter != '\n';
    lines->bytes[lines->size] = letter;
    lines->size += is_letter | lines->was_letter; /* only the first of several separators is kept */
    lines->was_letter = is_letter;
}

/* Shrink `made` to its lines, without a final line end. */
static PyObject *ended(PyObject *made, const Lines *lines)
{
    _PyBytes_Resize(&made, lines->size - (lines->size > 0 && !lines->was_letter));
    return made;
}

/* tokens.word_lines */
static PyObject *word_lines(Call *call)
{
    const unsigned char *text = call->data[0].buf;
    PyObject *made = PyBytes_FromStringAndSize(NULL, call->sizes[0]);
    if (made == NULL)
        return NULL;
    Lines lines = {(unsigned char *)PyBytes_AsString(made), 0, 0};
    for (Py_ssize_t i = 0; i < call->sizes[0]; i++)
        put_letter(&lines, LETTERS[text[i]]);
    return ended(made, &lines);
}

static uint64_t rotated(uint64_t value, int by)
{
    return value << by | value >> (64 - by);
}

static uint64_t murmur_end(uint64_t value)
{
    value = (value ^ value >> 33) * UINT64_C(0xFF51AFD7ED558CCD);
    value = (value ^ value >> 33) * UINT64_C(0xC4CEB9FE1A85EC53);
    return value ^ value >> 33;
}

/* Load 0 to 15 bytes into two integers, padded with 0. `readable` is the number of bytes that may be read. */
static Row load_few(const char *data, Py_ssize_t size, Py_ssize_t readable)
{
    Row row = {0, 0};
    if (readable < ROW) {
        memcpy(&row, data, (size_t)size);
        return row;
    }
    memcpy(&row, data, sizeof(Row)); /* faster than reading the exact size */
    row.name &= size < 8 ? (UINT64_C(1) << 8 * size) - 1 : ~UINT64_C(0);
    row.bits &= size < 8 ? 0 : (UINT64_C(1) << 8 * (size - 8)) - 1;
    return row;
}

/* mmh3.hash_bytes: MurmurHash3, x64, 128 bits, seed 0. By Austin Appleby, in the public domain. */
static Row murmur(const char *data, Py_ssize_t size, Py_ssize_t readable)
{
    const uint64_t one = UINT64_C(0x87C37B91114253D5), two = UINT64_C(0x4CF5AD432745937F);
    Py_ssize_t whole = size / ROW * ROW;
    Row hash = {0, 0}, rest = load_few(data + whole, size - whole, readable - whole);
    for (Py_ssize_t i = 0; i < whole; i += ROW) {
        hash.name ^= rotated(load(data + i, 0) * one, 31) * two;
        hash.name = (rotated(hash.name, 27) + hash.bits) * 5 + 0x52DCE729;
        hash.bits ^= rotated(load(data + i, 1) * two, 33) * one;
        hash.bits = (rotated(hash.bits, 31) + hash.name) * 5 + 0x38495AB5;
    }
    hash.name ^= rotated(rest.name * one, 31) * two ^ (uint64_t)size;
    hash.bits ^= rotated(rest.bits * two, 33) * one ^ (uint64_t)size;
    hash.name += hash.bits;
    hash.bits += hash.name;
    hash.name = murmur_end(hash.name);
    hash.bits = murmur_end(hash.bits);
    hash.name += hash.bits;
    hash.bits += hash.name;
    return hash;
}

static Py_ssize_t count_lines(const char *text, Py_ssize_t size)
{
    Py_ssize_t count = size > 0;
    for (Py_ssize_t i = 0; i < size; i++)
        count += text[i] == '\n';
    return count;
}

/* Return the end of the line that contains `at`. */
static Py_ssize_t line_end(const char *text, Py_ssize_t size, Py_ssize_t at)
{
    const char *end = memchr(text + at, '\n', (size_t)(size - at));
    return end ? end - text : size;
}

/* hashes.hash_lines */
static PyObject *hash_lines(Call *call)
{
    const char *text = call->data[0].buf;
    Py_ssize_t size = call->sizes[0], count = count_lines(text, size);
    PyObject *made = PyBytes_FromStringAndSize(NULL, count * ROW);
    char *out = made ? PyBytes_AsString(made) : NULL;
    for (Py_ssize_t i = 0, at = 0, end; made != NULL && i < count; i++, at = end + 1) {
        end = line_end(text, size, at);
        Row hash = murmur(text + at, end - at, size - at);
        memcpy(out + i * ROW, &hash, sizeof(Row));
    }
    return made;
}
