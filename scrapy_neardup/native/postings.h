/* Find rows in a sorted array of entries. An entry is a posting of 36 bits and a slot of 28: see index/row_index.py. */

enum { SLOT_BITS = 28, BLOCK_BITS = 16, BLOCKS = 4, REST_BITS = 45, CROWD = 1024 };

static const uint64_t NEAR = UINT64_C(1) << 63, SLOT = (UINT64_C(1) << SLOT_BITS) - 1;

typedef struct {
    uint64_t posting, most, simhash, distance;
} Probe;

typedef struct {
    int64_t probe, slot, far;
} Hit;

typedef struct {
    Call *call; /* its room has the hits */
    Py_ssize_t count, room;
} Hits;

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
static int push(Hits *hits, Hit hit)
{
    if (hits->count == hits->room) {
        Hit *grown = PyMem_Realloc(hits->call->room, (size_t)(2 * hits->room + 64) * sizeof(Hit));
        if (grown == NULL)
            return PyErr_NoMemory() != NULL;
        hits->call->room = grown;
        hits->room = 2 * hits->room + 64;
    }
    ((Hit *)hits->call->room)[hits->count++] = hit;
    return 1;
}

/* Return whether a hit is nearer than another, or as near and older. */
static int is_before(Hit one, Hit other)
{
    return one.far < other.far || (one.far == other.far && one.slot < other.slot);
}

/* Add a hit among those from `begin` on, which are sorted and at most so many. */
static int push_nearest(Hits *hits, Py_ssize_t begin, uint64_t most, Hit hit)
{
    Hit *all = hits->call->room;
    if ((uint64_t)(hits->count - begin) >= most) {
        if (!most || !is_before(hit, all[hits->count - 1]))
            return 1;
        hits->count--;
    }
    if (!push(hits, hit))
        return 0;
    all = hits->call->room;
    Py_ssize_t at = hits->count - 1;
    for (; at > begin && is_before(hit, all[at - 1]); at--)
        all[at] = all[at - 1];
    all[at] = hit;
    return 1;
}

/* Add the newest rows of a key, whose entries are from `start` to `end`. */
static int find_key(Hits *hits, Py_ssize_t probe, const Probe *asked, Py_ssize_t start, Py_ssize_t end)
{
    Py_buffer *data = hits->call->data;
    if ((uint64_t)(end - start) > asked->most)
        start = end - (Py_ssize_t)asked->most;
    for (; start < end; start++) {
        uint64_t slot = load(data[0].buf, start) & SLOT;
        if (slot < (uint64_t)hits->call->sizes[1] && !push(hits, (Hit){probe, (int64_t)slot, 0}))
            return 0;
    }
    return 1;
}

/* Add the rows nearest to a SimHash, of those with entries from `start` to `end`. */
static int find_near(Hits *hits, Py_ssize_t probe, const Probe *asked, Py_ssize_t start, Py_ssize_t end)
{
    Py_buffer *data = hits->call->data;
    int turn = BLOCK_BITS * (int)(asked->posting >> 61 & 3);
    uint64_t turned = turn ? asked->simhash << turn | asked->simhash >> (64 - turn) : asked->simhash, far;
    uint64_t own = asked->posting >> 61 << 61 | turned >> 31 << SLOT_BITS, slots = (uint64_t)hits->call->sizes[1];
    Py_ssize_t crowd = (Py_ssize_t)(slots >> 14) > CROWD ? (Py_ssize_t)(slots >> 14) : CROWD, begin = hits->count;
    Py_ssize_t at = bisect(data[0].buf, start, end, asked->posting | SLOT);
    end = end - at > crowd ? at + crowd : end;
    for (start = at - start > crowd ? at - crowd : start; start < end; start++) {
        uint64_t entry = load(data[0].buf, start), slot = entry & SLOT;
        if ((uint64_t)ones_in((entry ^ own) >> SLOT_BITS) > asked->distance || slot >= slots)
            continue; /* most entries, without a look at the whole SimHash */
        far = (uint64_t)ones_in(load(data[1].buf, (Py_ssize_t)slot) ^ asked->simhash);
        Hit hit = {probe, (int64_t)slot, (int64_t)far};
        if (far <= asked->distance && !push_nearest(hits, begin, asked->most, hit))
            return 0;
    }
    return 1;
}

/* Add the rows that a probe finds by one posting. */
static int find_posting(Hits *hits, Py_ssize_t probe, const Probe *asked)
{
    const void *entries = hits->call->data[0].buf;
    uint64_t rest = asked->posting & NEAR ? (UINT64_C(1) << REST_BITS) - 1 : SLOT, last = asked->posting | rest;
    Py_ssize_t start = bisect(entries, 0, hits->call->sizes[0], asked->posting & ~rest), end;
    if (start == hits->call->sizes[0] || load(entries, start) > last)
        return 1; /* most keys are not found */
    end = bisect(entries, start, hits->call->sizes[0], last); /* no level is so full that it has this slot */
    return (asked->posting & NEAR ? find_near : find_key)(hits, probe, asked, start, end);
}

/* Return the next larger number with as many bits that are 1. */
static uint64_t next_flip(uint64_t flip)
{
    uint64_t lowest = flip & (~flip + 1), carried = flip + lowest;
    return ((carried ^ flip) >> 2) / lowest | carried;
}

/* Add the rows with a near SimHash: by its blocks, and by those that differ in a few bits (row_index.near_postings). */
static int find_all_near(Hits *hits, Py_ssize_t probe, Probe asked)
{
    int64_t bits = (int64_t)(asked.distance < 64 ? asked.distance : 64) - (BLOCKS - 1);
    int64_t least = bits < 0 ? -1 : bits / BLOCKS, more = bits - BLOCKS * least;
    for (int64_t block = 0; block < BLOCKS; block++) {
        int turn = BLOCK_BITS * (int)block;
        uint64_t turned = turn ? asked.simhash << turn | asked.simhash >> (64 - turn) : asked.simhash;
        uint64_t own = NEAR | (uint64_t)block << 61 | turned >> 31 << SLOT_BITS;
        for (int64_t count = 0; count <= least + (block < more); count++)
            for (uint64_t flip = (UINT64_C(1) << count) - 1; flip >> BLOCK_BITS == 0; flip = next_flip(flip)) {
                asked.posting = own ^ flip << REST_BITS;
                if (!find_posting(hits, probe, &asked))
                    return 0;
                if (!flip)
                    break;
            }
    }
    return 1;
}

/* row_index._find */
static PyObject *find(Call *call)
{
    Hits hits = {call, 0, 0};
    for (Py_ssize_t probe = 0; probe < call->sizes[2] / 4; probe++) {
        Probe asked;
        memcpy(&asked, (const char *)call->data[2].buf + probe * (Py_ssize_t)sizeof(Probe), sizeof(Probe));
        if (!(asked.posting & NEAR ? find_all_near(&hits, probe, asked) : find_posting(&hits, probe, &asked)))
            return NULL;
    }
    return PyBytes_FromStringAndSize(call->room, hits.count * (Py_ssize_t)sizeof(Hit));
}
