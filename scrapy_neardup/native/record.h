/* Make the records of texts, and compare their sketches. `fingerprints/record.py` has the layout and the sources. */

enum { WIDTH = 3, BINS = 512, FIGURES = 16, BANDS = 12, ROWS = 2, LEXICONS = 64, MIN_TERMS = 8, FIRST = 15 };
enum { EXACT = 1, SIMHASH = 2, SHINGLE = 4, PADDING = 64 };

static unsigned char LETTERS[256]; /* each byte in lower case; a line end for bytes outside words */

static void set_letters(void)
{
    for (int c = 0; c < 256; c++) {
        int is_capital = c >= 'A' && c <= 'Z', is_small = c >= 'a' && c <= 'z', is_digit = c >= '0' && c <= '9';
        LETTERS[c] = (unsigned char)(is_capital ? c + 'a' - 'A' : is_small || is_digit || c > 127 ? c : '\n');
    }
}

static const uint64_t MULTIPLIER = UINT64_C(0x9E3779B97F4A7C15);

typedef struct {
    uint64_t name, bits;
} Row; /* the two halves of the hash of a token */

typedef struct {
    uint32_t tokens, shingles, figures;
    uint8_t sampled, has_simhash, digests, bands;
    uint32_t facts, own;
    uint64_t digest, identity, simhash, layout;
    unsigned char sample[2 * FIGURES], codes[BINS];
} Head;

typedef struct {
    const char *text, *site, *facts;
    Py_ssize_t size, site_size, facts_size;
    unsigned long long layout;
    char *made; /* the record */
} Source;

typedef struct {
    Py_buffer terms, starts; /* as in hashes.Terms */
    int digests, parts;
} Wanted;

/* Memory for one text, reused for the next. The pointers lead into one block. */
typedef struct {
    uint64_t *set, figures[1024], seed; /* figures: one bit for each value of 16 bits */
    Row *words, *distinct;
    uint32_t *counts, *slots;
    unsigned char *lines;
    size_t room;
} Scratch;

/* hashes.mix */
static uint64_t mix(uint64_t value)
{
    value = (value ^ value >> 32) * UINT64_C(0xD6E8FEB86659FD93);
    return value ^ value >> 32;
}

static uint64_t rotated(uint64_t value, int by)
{
    return value << by | value >> (-by & 63);
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
    if (readable < (Py_ssize_t)sizeof(Row)) {
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
    Py_ssize_t whole = size / 16 * 16;
    Row hash = {0, 0}, rest = load_few(data + whole, size - whole, readable - whole);
    for (Py_ssize_t i = 0; i < whole; i += 16) {
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

static uint64_t hashed(const char *data, Py_ssize_t size)
{
    return murmur(data, size, size).name;
}

/* record.keys_of */
static uint64_t key(uint64_t value, const char *detector)
{
    return (value ^ hashed(detector, (Py_ssize_t)strlen(detector))) * MULTIPLIER;
}

/* Make room for a text; return 0 if memory is lacking. Every second byte may be a word; half of the slots stay free. */
static int make_room(Scratch *s, Py_ssize_t size)
{
    size_t words = (size_t)size / 2 + 2, room = 32;
    while (room < 4 * words)
        room *= 2;
    if (s->room >= room)
        return 1;
    free(s->set);
    s->room = (s->set = malloc(22 * room + PADDING)) ? room : 0;
    s->words = (Row *)(s->set + room);
    s->distinct = s->words + room / 4;
    s->slots = (uint32_t *)(s->distinct + room / 4);
    s->counts = s->slots + room;
    s->lines = (unsigned char *)(s->counts + room / 4);
    s->seed = (uint64_t)(uintptr_t)s->set * MULTIPLIER | 1;
    return s->set != NULL;
}

/* Return the first slot to look in. The seed is secret, so nobody can write a text whose words all share few slots. */
static uint32_t slot(uint64_t hash, uint32_t mask, const Scratch *s)
{
    return (uint32_t)(hash * s->seed >> 32) & mask;
}

/* tokens.word_lines and hashes.hash_tokens. Also notes the first 16 bits of the hash of each figure. */
static uint32_t find_words(const unsigned char *text, Py_ssize_t *size, Scratch *s)
{
    const unsigned char *end = text + *size;
    unsigned char *out = s->lines, *start = out;
    uint32_t count = 0;
    for (; text < end; text++) {
        while (text < end && (*out = LETTERS[*text]) != '\n')
            out++, text++;
        if (out == start)
            continue;
        uint64_t name = (s->words[count++] = murmur((const char *)start, out - start, PADDING)).name;
        if (*start >= '0' && *start <= '9')
            s->figures[name >> 54] |= UINT64_C(1) << (name >> 48 & 63);
        *out++ = '\n';
        start = out;
    }
    *size = count ? out - s->lines - 1 : 0;
    return count;
}

/* hashes.counted, in the order in which the words first occur */
static uint32_t count_words(uint32_t tokens, uint32_t mask, Scratch *s)
{
    uint32_t distinct = 0;
    memset(s->slots, 0, (mask + (size_t)1) * sizeof(uint32_t));
    for (uint32_t i = 0; i < tokens; i++) {
        uint32_t at = slot(s->words[i].name, mask, s);
        while (s->slots[at] && s->distinct[s->slots[at] - 1].name != s->words[i].name)
            at = (at + 1) & mask;
        if (!s->slots[at]) {
            s->distinct[distinct] = s->words[i];
            s->counts[distinct] = 0;
            s->slots[at] = ++distinct;
        }
        s->counts[s->slots[at] - 1]++;
    }
    return distinct;
}

/* Add the counts in lanes of eight bits to `ones`, and clear the lanes. Lane n of sums[shift] counts bit
8 * n + shift. */
static void spill(uint64_t sums[8], uint64_t ones[64])
{
    for (int bit = 0; bit < 64; bit++)
        ones[bit] += sums[bit % 8] >> (bit / 8 * 8) & 255;
    memset(sums, 0, 8 * sizeof(uint64_t));
}

/* hashes.simhash */
static uint64_t simhash(uint32_t distinct, const Scratch *s)
{
    const uint64_t each_byte = UINT64_C(0x0101010101010101);
    uint64_t sums[8] = {0}, ones[64] = {0}, total = 0, made = 0, left = 255;
    for (uint32_t i = 0; i < distinct; i++) {
        uint64_t weight = 0;
        for (uint32_t count = s->counts[i]; count; count >>= 1)
            weight++;
        if (weight > left) {
            spill(sums, ones);
            left = 255;
        }
        left -= weight;
        total += weight;
        for (int shift = 0; shift < 8; shift++)
            sums[shift] += (s->distinct[i].name >> shift & each_byte) * weight;
    }
    spill(sums, ones);
    for (int bit = 0; bit < 64; bit++)
        made |= (uint64_t)(ones[bit] > total / 2) << bit;
    return made;
}

/* hashes.Terms.among, for one hash */
static int is_term(uint64_t hash, const Wanted *wanted)
{
    uint32_t range[2];
    memcpy(range, (const char *)wanted->starts.buf + sizeof(uint32_t) * (hash >> (64 - FIRST)), sizeof range);
    for (Py_ssize_t at = range[0]; at < range[1] && at < wanted->terms.len / 8; at++)
        if (load(wanted->terms.buf, at) == hash)
            return 1;
    return 0;
}

/* hashes.imatch. Write no key if there are too few terms. */
static void imatch(uint32_t distinct, const Wanted *wanted, const Scratch *s, uint64_t *keys)
{
    uint64_t sums[1 + LEXICONS] = {0}, terms = 0, lexicons = (uint64_t)wanted->digests;
    for (uint32_t i = 0; i < distinct; i++) {
        if (!is_term(s->distinct[i].name, wanted))
            continue;
        terms++;
        for (uint64_t lexicon = 0; lexicon < lexicons; lexicon++)
            if (lexicon == 0 || mix(s->distinct[i].bits ^ lexicon * MULTIPLIER) >= UINT64_C(5) << 60)
                sums[lexicon] += mix(s->distinct[i].name * MULTIPLIER);
    }
    for (uint64_t lexicon = 0; terms >= MIN_TERMS && 20 * terms >= distinct && lexicon < lexicons; lexicon++)
        keys[lexicon] = key(sums[lexicon], "imatch");
}

static void keep_least(uint64_t *least, uint64_t hash)
{
    *least = *least && *least < hash ? *least : hash;
}

/* hashes.shingles; hashes.minima: `bins` for the codes, `smallest` for the keys. Return how many shingles differ. */
static uint32_t shingles(uint32_t tokens, uint32_t mask, uint64_t *bins, uint64_t *smallest, Scratch *s)
{
    uint32_t width = tokens < WIDTH ? tokens : WIDTH, distinct = 0;
    memset(s->set, 0, (mask + (size_t)1) * sizeof(uint64_t));
    for (uint32_t i = 0; width && i + width <= tokens; i++) {
        uint64_t hash = s->words[i].name;
        for (uint32_t next = 1; next < width; next++)
            hash = mix(hash) * MULTIPLIER + s->words[i + next].name;
        hash = mix(hash);
        uint32_t at = slot(hash, mask, s);
        while (s->set[at] && s->set[at] != hash)
            at = (at + 1) & mask;
        if (s->set[at] == hash)
            continue;
        s->set[at] = hash;
        distinct++;
        keep_least(&bins[(hash >> 32) * BINS >> 32], hash);
        keep_least(&smallest[(hash >> 32) * BANDS * ROWS >> 32], hash);
    }
    return distinct;
}

/* hashes.super_shingles */
static void super_shingles(const uint64_t *smallest, uint64_t *keys)
{
    uint64_t full[BANDS * ROWS];
    int bins = BANDS * ROWS, lender = 0;
    for (int i = 2 * bins - 1; i >= 0; i--) { /* two passes, since the last bins borrow from the first */
        uint64_t value = smallest[i % bins], lent = smallest[lender % bins];
        if (value != 0)
            lender = i;
        full[i % bins] = value || !lent ? value : mix(lent + (uint64_t)(lender - i) * MULTIPLIER);
    }
    for (int band = 0; band < BANDS; band++) {
        uint64_t made = (uint64_t)band;
        for (int row = 0; row < ROWS; row++)
            made = mix(made) * MULTIPLIER + full[band * ROWS + row];
        keys[band] = key(mix(made), "shingle");
    }
}

/* record.make_sketch, of figures */
static void sample_figures(const Scratch *s, Head *head)
{
    for (int value = 0; value < 1 << 16; value += s->figures[value >> 6] ? 1 : 64) {
        if (!(s->figures[value >> 6] >> (value & 63) & 1) || head->figures++ >= FIGURES)
            continue;
        head->sample[2 * head->sampled] = (unsigned char)(value >> 8);
        head->sample[2 * head->sampled++ + 1] = (unsigned char)value;
    }
}

/* Fill in what is made of the words of a text, if there are any. */
static void sign_words(const Source *of, const Wanted *wanted, Scratch *s, Head *head, uint64_t *keys)
{
    uint64_t bins[BINS] = {0}, smallest[BANDS * ROWS] = {0};
    Py_ssize_t size = of->size;
    uint32_t mask = 15;
    memset(s->figures, 0, sizeof s->figures);
    head->tokens = find_words((const unsigned char *)of->text, &size, s);
    while (mask < 2 * head->tokens)
        mask = 2 * mask + 1;
    uint32_t distinct = wanted->parts & SIMHASH || wanted->digests ? count_words(head->tokens, mask, s) : 0;
    head->shingles = shingles(head->tokens, mask, bins, smallest, s);
    head->has_simhash = head->tokens && wanted->parts & SIMHASH;
    head->simhash = head->has_simhash ? simhash(distinct, s) : 0;
    head->digest = head->tokens && wanted->parts & EXACT ? hashed((char *)s->lines, size) : 0;
    imatch(distinct, wanted, s, keys);
    if (head->tokens && wanted->parts & SHINGLE)
        super_shingles(smallest, keys + wanted->digests);
    for (int bin = 0; bin < BINS; bin++)
        head->codes[bin] = (unsigned char)(bins[bin] ? bins[bin] % 255 + 1 : 0);
    sample_figures(s, head);
}

/* Write the record of a text. */
static void sign_one(const Source *of, const Wanted *wanted, Scratch *s)
{
    Head head = {.digests = (uint8_t)wanted->digests, .bands = wanted->parts & SHINGLE ? BANDS : 0,
                 .facts = (uint32_t)of->facts_size, .layout = of->layout};
    uint64_t keys[1 + LEXICONS + BANDS] = {0};
    size_t size = 8 * (size_t)(head.digests + head.bands);
    sign_words(of, wanted, s, &head, keys);
    if (wanted->parts & EXACT && of->site_size && of->facts_size) { /* as in record._made */
        uint64_t value = mix(hashed(of->site, of->site_size)) * MULTIPLIER + hashed(of->facts, of->facts_size);
        head.identity = key(mix(mix(value) * MULTIPLIER + head.digest), "exact");
    }
    if (head.digest)
        head.digest = key(head.digest, "exact");
    memcpy(of->made, &head, sizeof head);
    memcpy(of->made + sizeof head, keys, size);
    memcpy(of->made + sizeof head + size, of->facts, (size_t)of->facts_size);
}

/* Read a source, and set a new record in the list. Return 0 with an error set if that is impossible. */
static int read_source(PyObject *given, Py_ssize_t at, const Wanted *wanted, Source *of, PyObject *made)
{
    PyObject *source = PyList_GetItem(given, at), *text, *site, *facts, *record = NULL;
    if (!PyTuple_Check(source))
        PyErr_SetString(PyExc_TypeError, "a source is a tuple");
    else if (PyArg_ParseTuple(source, "SSSK", &text, &site, &facts, &of->layout)) {
        of->text = PyBytes_AsString(text), of->size = PyBytes_Size(text);
        of->site = PyBytes_AsString(site), of->site_size = PyBytes_Size(site);
        of->facts = PyBytes_AsString(facts), of->facts_size = PyBytes_Size(facts);
        Py_ssize_t keys = wanted->digests + (wanted->parts & SHINGLE ? BANDS : 0);
        if ((of->size < INT32_MAX && of->facts_size < INT32_MAX) || fail("a text is too large"))
            record = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)sizeof(Head) + 8 * keys + of->facts_size);
    }
    of->made = record ? PyBytes_AsString(record) : NULL;
    return record && PyList_SetItem(made, at, record) == 0;
}

/* Return the list of the records. Other threads run while they are written. */
static PyObject *records(PyObject *given, const Wanted *wanted)
{
    Py_ssize_t count = PyList_Size(given);
    Source *sources = PyMem_Calloc((size_t)count + 1, sizeof(Source));
    PyObject *made = sources ? PyList_New(count) : PyErr_NoMemory();
    Scratch scratch = {0};
    int is_read = made != NULL, has_room = 1;
    for (Py_ssize_t i = 0; is_read && i < count; i++)
        is_read = read_source(given, i, wanted, &sources[i], made);
    Py_BEGIN_ALLOW_THREADS
    for (Py_ssize_t i = 0; is_read && has_room && i < count; i++)
        if ((has_room = make_room(&scratch, sources[i].size)))
            sign_one(&sources[i], wanted, &scratch);
    free(scratch.set);
    Py_END_ALLOW_THREADS
    PyMem_Free(sources);
    if (!has_room)
        PyErr_NoMemory();
    if (!is_read || !has_room)
        Py_CLEAR(made);
    return made;
}

/* record.make: sign(sources, terms, starts, digests, parts). Nobody else may change the list of sources meanwhile. */
static PyObject *sign(PyObject *Py_UNUSED(module), PyObject *args)
{
    PyObject *given, *made = NULL;
    Wanted of;
    if (!PyArg_ParseTuple(args, "O!y*y*ii", &PyList_Type, &given, &of.terms, &of.starts, &of.digests, &of.parts))
        return NULL;
    int fits = of.terms.len % 8 == 0 && of.starts.len == sizeof(uint32_t) * ((1 << FIRST) + 1);
    if ((fits && of.digests >= 0 && of.digests <= 1 + LEXICONS) || fail("the terms or the digests do not fit"))
        made = records(given, &of);
    PyBuffer_Release(&of.terms);
    PyBuffer_Release(&of.starts);
    return made;
}

/* Copy the codes of a sketch, with 0 for each that another has in its bin. Sketches equal to `twin` do not count. */
static void keep_own(unsigned char *own, PyObject *sketch, PyObject *twin, PyObject *others)
{
    const char *codes = PyBytes_AsString(sketch), *same = PyBytes_AsString(twin), *other = PyBytes_AsString(others);
    memcpy(own, codes, BINS);
    for (Py_ssize_t left = PyBytes_Size(others); left >= BINS; left -= BINS, other += BINS)
        if (memcmp(other, same, BINS))
            for (int i = 0; i < BINS; i++)
                own[i] = other[i] == codes[i] ? 0 : own[i];
}

/* record.overlap: overlap(a, b, others) */
static PyObject *overlap(PyObject *Py_UNUSED(module), PyObject *args)
{
    PyObject *a, *b, *others;
    unsigned char first[BINS], second[BINS];
    int one = 0, any = 0, both = 0, equal = 0;
    if (!PyArg_ParseTuple(args, "SSS", &a, &b, &others))
        return NULL;
    if (PyBytes_Size(a) != BINS || PyBytes_Size(b) != BINS || PyBytes_Size(others) % BINS)
        return fail("a sketch has another number of codes"), NULL;
    keep_own(first, a, b, others);
    keep_own(second, b, b, others);
    for (int i = 0; i < BINS; i++) {
        one += first[i] != 0;
        any += (first[i] | second[i]) != 0;
        both += (first[i] != 0) & (second[i] != 0);
        equal += (first[i] != 0) & (first[i] == second[i]);
    }
    return Py_BuildValue("iiii", one, any, both, equal);
}
