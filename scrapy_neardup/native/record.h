/* Make the records of texts, and compare their sketches. `fingerprints/record.py` has the layout and the sources. */

enum { WIDTH = 3, BINS = 512, FIGURES = 16, BANDS = 12, ROWS = 2, LEXICONS = 64, MIN_TERMS = 8, PADDING = 64 };
enum { EXACT = 1, SIMHASH = 2, SHINGLE = 4 };

static const uint64_t MULTIPLIER = UINT64_C(0x9E3779B97F4A7C15);

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
    char *made;
} Source;

typedef struct {
    const char *terms, *starts; /* ascending hashes, and for each value of their first bits the first of them */
    Py_ssize_t count;
    int shift, digests, parts;
    uint64_t salts[3]; /* of the keys of exact, imatch, shingle */
} Wanted;

/* Memory for one text, reused for the next. */
typedef struct {
    Row *words, *distinct;
    uint64_t *set, seed;
    uint32_t *counts, *slots, found;
    uint16_t *figures;
    unsigned char *lines;
    Py_ssize_t room;
} Scratch;

/* hashes.mix */
static uint64_t mix(uint64_t value)
{
    value = (value ^ value >> 32) * UINT64_C(0xD6E8FEB86659FD93);
    return value ^ value >> 32;
}

static uint64_t hashed(const char *data, Py_ssize_t size)
{
    return murmur(data, size, size).name;
}

/* record.key_of */
static uint64_t key(uint64_t value, uint64_t salt)
{
    return (value ^ salt) * MULTIPLIER;
}

static void give_back(Scratch *s)
{
    free(s->words), free(s->distinct), free(s->set), free(s->counts), free(s->slots), free(s->figures), free(s->lines);
}

/* Make room for a text. Every second byte may be a word, and half of the slots stay empty. */
static int make_room(Scratch *s, Py_ssize_t size)
{
    if (s->words != NULL && s->room >= size)
        return 1;
    size_t words = (size_t)size / 2 + 2, slots = 32;
    while (slots < 4 * words)
        slots *= 2;
    give_back(s);
    s->words = malloc(words * sizeof(Row));
    s->distinct = malloc(words * sizeof(Row));
    s->set = malloc(slots * sizeof(uint64_t));
    s->counts = malloc(words * sizeof(uint32_t));
    s->slots = malloc(slots * sizeof(uint32_t));
    s->figures = malloc(words * sizeof(uint16_t));
    s->lines = malloc((size_t)size + PADDING);
    s->room = size;
    s->seed = (uint64_t)(uintptr_t)s->words * MULTIPLIER | 1;
    return s->words && s->distinct && s->set && s->counts && s->slots && s->figures && s->lines;
}

/* The first slot to look in. Nobody can know the seed, so no text can be made to fill few slots. */
static uint32_t slot(uint64_t hash, uint32_t mask, const Scratch *s)
{
    return (uint32_t)(hash * s->seed >> 32) & mask;
}

/* words.word_lines and hashes.hash_lines. Also keep the first bits of the hashes of figures. */
static uint32_t find_words(const unsigned char *text, Py_ssize_t *size, Scratch *s)
{
    const unsigned char *end = text + *size;
    unsigned char *out = s->lines, *start = out;
    uint32_t count = 0;
    for (s->found = 0; text < end; text++) {
        while (text < end && (*out = LETTERS[*text]) != '\n')
            out++, text++;
        if (out == start)
            continue;
        s->words[count] = murmur((const char *)start, out - start, PADDING);
        if (*start >= '0' && *start <= '9')
            s->figures[s->found++] = (uint16_t)(s->words[count].name >> 48);
        count++;
        *out++ = '\n';
        start = out;
    }
    *size = count ? out - s->lines - 1 : 0;
    return count;
}

/* hashes.counted, in the order of first occurrences */
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

/* Move the counts from lanes of eight bits to `ones`, and clear the lanes. Lane n of sums[shift] counts bit
8 * n + shift. */
static void spill(uint64_t sums[8], uint64_t ones[64])
{
    for (int bit = 0; bit < 64; bit++)
        ones[bit] += sums[bit % 8] >> (bit / 8 * 8) & 255;
    memset(sums, 0, 8 * sizeof(uint64_t));
}

/* simhash.simhash_counted */
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

/* imatch.Terms.among, for one hash */
static int is_term(uint64_t hash, const Wanted *wanted)
{
    uint32_t range[2];
    memcpy(range, wanted->starts + sizeof(uint32_t) * (size_t)(hash >> wanted->shift), sizeof range);
    for (Py_ssize_t at = range[0]; at < range[1] && at < wanted->count; at++)
        if (load(wanted->terms, at) == hash)
            return 1;
    return 0;
}

/* imatch.imatch. Write no key if there are too few terms. */
static void imatch(uint32_t distinct, const Wanted *wanted, const Scratch *s, uint64_t *keys)
{
    uint64_t sums[1 + LEXICONS] = {0}, terms = 0;
    for (uint32_t i = 0; i < distinct; i++) {
        if (!is_term(s->distinct[i].name, wanted))
            continue;
        terms++;
        uint64_t mixed = mix(s->distinct[i].name * MULTIPLIER);
        for (uint64_t lexicon = 0; lexicon < (uint64_t)wanted->digests; lexicon++)
            if (lexicon == 0 || mix(s->distinct[i].bits ^ lexicon * MULTIPLIER) >= UINT64_C(5) << 60)
                sums[lexicon] += mixed;
    }
    if (terms >= MIN_TERMS && 20 * terms >= distinct)
        for (int lexicon = 0; lexicon < wanted->digests; lexicon++)
            keys[lexicon] = key(sums[lexicon], wanted->salts[1]);
}

static void keep_least(uint64_t *least, uint64_t hash)
{
    *least = *least && *least < hash ? *least : hash;
}

/* hashes.shingles and minhash.minima, for the codes and for the keys. Return the number of distinct shingles. */
static uint32_t shingles(uint32_t tokens, uint32_t mask, uint64_t *bins, uint64_t *smallest, Scratch *s)
{
    uint32_t width = tokens < WIDTH ? tokens : WIDTH, distinct = 0;
    memset(s->set, 0, (mask + (size_t)1) * sizeof(uint64_t));
    for (uint32_t i = 0; i + width <= tokens; i++) {
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

/* minhash.super_shingles */
static void super_shingles(const uint64_t *smallest, uint64_t salt, uint64_t *keys)
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
        keys[band] = key(mix(made), salt);
    }
}

/* sketch.figures_of: sort out equal figures by one bit for each value. */
static void sample_figures(const Scratch *s, Head *head)
{
    uint64_t seen[1024] = {0};
    for (uint32_t i = 0; i < s->found; i++)
        seen[s->figures[i] >> 6] |= UINT64_C(1) << (s->figures[i] & 63);
    for (int value = 0; s->found && value < 1 << 16; value += seen[value >> 6] ? 1 : 64) {
        if (!(seen[value >> 6] >> (value & 63) & 1) || head->figures++ >= FIGURES)
            continue;
        head->sample[2 * head->sampled] = (unsigned char)(value >> 8);
        head->sample[2 * head->sampled++ + 1] = (unsigned char)value;
    }
}

/* Fill in what is made of the words of a text. */
static void sign_words(Py_ssize_t size, const Wanted *wanted, Scratch *s, Head *head, uint64_t *keys)
{
    uint64_t bins[BINS] = {0}, smallest[BANDS * ROWS] = {0};
    uint32_t mask = 15;
    while (mask < 2 * head->tokens)
        mask = 2 * mask + 1;
    uint32_t distinct = head->has_simhash || wanted->digests ? count_words(head->tokens, mask, s) : 0;
    if (wanted->parts & EXACT)
        head->digest = hashed((char *)s->lines, size);
    head->simhash = head->has_simhash ? simhash(distinct, s) : 0;
    imatch(distinct, wanted, s, keys);
    head->shingles = shingles(head->tokens, mask, bins, smallest, s);
    if (wanted->parts & SHINGLE)
        super_shingles(smallest, wanted->salts[2], keys + wanted->digests);
    for (int bin = 0; bin < BINS; bin++)
        head->codes[bin] = (unsigned char)(bins[bin] ? bins[bin] % 255 + 1 : 0);
    sample_figures(s, head);
}

/* The hash of a record of a site: of the site, the facts and the text. */
static uint64_t identity(const Source *of, uint64_t digest)
{
    uint64_t value = mix(hashed(of->site, of->site_size)) * MULTIPLIER + hashed(of->facts, of->facts_size);
    return mix(mix(value) * MULTIPLIER + digest);
}

/* Write the record of a text. */
static void sign_one(const Source *of, const Wanted *wanted, Scratch *s)
{
    Head head = {0};
    uint64_t keys[1 + LEXICONS + BANDS] = {0};
    Py_ssize_t size = of->size, keys_size = 8 * (wanted->digests + (wanted->parts & SHINGLE ? BANDS : 0));
    head.tokens = find_words((const unsigned char *)of->text, &size, s);
    head.has_simhash = head.tokens > 0 && wanted->parts & SIMHASH;
    head.digests = (uint8_t)wanted->digests;
    head.bands = wanted->parts & SHINGLE ? BANDS : 0;
    head.facts = (uint32_t)of->facts_size;
    head.layout = of->layout;
    if (head.tokens > 0)
        sign_words(size, wanted, s, &head, keys);
    if (wanted->parts & EXACT && of->site_size && of->facts_size)
        head.identity = key(identity(of, head.digest), wanted->salts[0]);
    if (wanted->parts & EXACT && head.tokens > 0)
        head.digest = key(head.digest, wanted->salts[0]);
    memcpy(of->made, &head, sizeof head);
    memcpy(of->made + sizeof head, keys, (size_t)keys_size);
    memcpy(of->made + sizeof head + keys_size, of->facts, (size_t)of->facts_size);
}

/* Read the sources, and add an empty record for each to the list. Return 0 with an error set if one is invalid. */
static int read_sources(PyObject *given, const Wanted *wanted, Source *sources, PyObject *made)
{
    Py_ssize_t fixed = (Py_ssize_t)sizeof(Head) + 8 * (wanted->digests + (wanted->parts & SHINGLE ? BANDS : 0));
    for (Py_ssize_t i = 0; i < PyList_Size(given); i++) {
        Source *of = &sources[i];
        if (!PyTuple_Check(PyList_GetItem(given, i)) && !PyErr_Format(PyExc_TypeError, "a source is a tuple"))
            return 0;
        if (!PyArg_ParseTuple(PyList_GetItem(given, i), "y#y#y#K", &of->text, &of->size, &of->site, &of->site_size,
                              &of->facts, &of->facts_size, &of->layout))
            return 0;
        if ((of->size >= INT32_MAX || of->facts_size >= INT32_MAX) && !fail("a text is too large"))
            return 0;
        PyObject *record = PyBytes_FromStringAndSize(NULL, fixed + of->facts_size);
        if (record == NULL || PyList_SetItem(made, i, record) < 0)
            return 0;
        of->made = PyBytes_AsString(record);
    }
    return 1;
}

/* Make the records of some sources. Other threads of Python run meanwhile. */
static int sign_all(const Source *sources, Py_ssize_t count, const Wanted *wanted)
{
    Scratch scratch = {0};
    int fits = 1;
    Py_BEGIN_ALLOW_THREADS
    for (Py_ssize_t i = 0; fits && i < count; i++)
        if ((fits = make_room(&scratch, sources[i].size)))
            sign_one(&sources[i], wanted, &scratch);
    give_back(&scratch);
    Py_END_ALLOW_THREADS
    return fits || (PyErr_NoMemory(), 0);
}

/* Return the list of the records, which nobody else may change meanwhile. */
static PyObject *signed_list(PyObject *given, const Wanted *wanted)
{
    Py_ssize_t count = PyList_Size(given);
    Source *sources = PyMem_Calloc((size_t)count + 1, sizeof(Source));
    PyObject *made = PyList_New(count);
    if (sources == NULL || made == NULL || !read_sources(given, wanted, sources, made) ||
        !sign_all(sources, count, wanted)) {
        Py_CLEAR(made);
        if (!PyErr_Occurred())
            PyErr_NoMemory();
    }
    PyMem_Free(sources);
    return made;
}

/* Set what is derived from the arguments. Return 0 with an error set if they do not fit. */
static int set_wanted(Wanted *wanted, const Py_buffer *terms, const Py_buffer *starts)
{
    wanted->terms = terms->buf;
    wanted->starts = starts->buf;
    wanted->count = terms->len / 8;
    wanted->salts[0] = hashed("exact", 5);
    wanted->salts[1] = hashed("imatch", 6);
    wanted->salts[2] = hashed("shingle", 7);
    for (wanted->shift = 63; wanted->shift > 40; wanted->shift--)
        if (((Py_ssize_t)1 << (64 - wanted->shift)) + 1 == starts->len / 4)
            break;
    int is_whole = terms->len % 8 == 0 && starts->len % 4 == 0;
    int fits = ((Py_ssize_t)1 << (64 - wanted->shift)) + 1 == starts->len / 4;
    int is_few = wanted->digests >= 0 && wanted->digests <= 1 + LEXICONS;
    return (is_whole && fits && is_few) || fail("the terms or the number of lexicons do not fit");
}

/* record.make: sign(sources, terms, starts, digests, parts) */
static PyObject *sign(PyObject *module, PyObject *args)
{
    PyObject *given, *made = NULL;
    Py_buffer terms, starts;
    Wanted wanted;
    (void)module;
    if (!PyArg_ParseTuple(args, "O!y*y*ii", &PyList_Type, &given, &terms, &starts, &wanted.digests, &wanted.parts))
        return NULL;
    if (set_wanted(&wanted, &terms, &starts))
        made = signed_list(given, &wanted);
    PyBuffer_Release(&terms);
    PyBuffer_Release(&starts);
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
