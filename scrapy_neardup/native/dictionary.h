/* A dictionary of Han words: a prefix tree in one array.

The name of a Han character is its position among the characters that jieba knows, from 0. The first HAN entries are the
prefixes of one character. The other entries form a hash table with open addressing. Its key is the entry of a prefix
and the name of the next character, so two prefixes never share an entry.

An entry holds its key, and a value in its low SAYS_BITS bits: 0 for an empty entry, PREFIX for a prefix that is not a
word, and more for a word. */

#include <float.h>
#include <math.h>

#if FLT_EVAL_METHOD != 0
#error "for machines that add doubles as Python does; without this part everything works, less quickly"
#endif

enum { HAN = 0x9FD5 - 0x4E00 + 1, HAN_BITS = 15, SAYS_BITS = 24, MOST_BITS = 24, PREFIX = 1 };

static const uint64_t SAYS = (UINT64_C(1) << SAYS_BITS) - 1;

typedef struct {
    char *entries;
    uint64_t mask; /* of the positions in the hash table, after the first HAN entries */
    int shift;
} Dictionary;

static Dictionary dictionary_of(char *entries, int bits)
{
    return (Dictionary){entries, (UINT64_C(1) << bits) - 1, 64 - bits};
}

/* Return the name of the UTF-8 character at `at`; HAN if jieba does not know it as a Han character. */
static uint32_t han(const unsigned char *at, Py_ssize_t size)
{
    if (at[0] < 0xE4 || at[0] > 0xE9 || size < 3 || at[1] >> 6 != 2 || at[2] >> 6 != 2)
        return HAN;
    uint32_t name = ((at[0] & 15u) << 12 | (at[1] & 63u) << 6 | (at[2] & 63u)) - 0x4E00;
    return name < HAN ? name : HAN;
}

/* Return the value of an entry. */
static uint64_t says(const Dictionary *words, uint64_t entry)
{
    return load(words->entries, (Py_ssize_t)entry) & SAYS;
}

/* Return the entry of a prefix with one more character, `by`; an empty entry if there is none. */
static uint64_t followed(const Dictionary *words, uint64_t entry, uint32_t by)
{
    uint64_t key = entry << HAN_BITS | by, at = key * UINT64_C(0x9E3779B97F4A7C15) >> words->shift;
    for (uint64_t tries = 0; tries < words->mask; tries++) { /* bounded, since a foreign array may be full */
        uint64_t found = load(words->entries, (Py_ssize_t)(HAN + at));
        if (found == 0 || found >> SAYS_BITS == key)
            break;
        at = (at + 1) & words->mask;
    }
    return HAN + at;
}

/* Add a word with the value `what`. Return the number of new entries. */
static Py_ssize_t add(Dictionary *words, const unsigned char *word, Py_ssize_t size, uint64_t what)
{
    for (Py_ssize_t i = 0; i < size; i += 3)
        if (han(word + i, size - i) == HAN)
            return 0; /* never looked up, since only runs of Han characters are cut */
    uint64_t entry = 0, key = 0;
    Py_ssize_t added = 0;
    for (Py_ssize_t i = 0; i < size; i += 3) {
        uint32_t name = han(word + i, size - i);
        key = i ? entry << HAN_BITS | name : 0;
        entry = i ? followed(words, entry, name) : name;
        int is_new = says(words, entry) == 0;
        if (is_new || i + 3 == size) {
            uint64_t made = key << SAYS_BITS | (i + 3 == size ? what : PREFIX);
            memcpy(words->entries + 8 * entry, &made, 8);
        }
        added += is_new;
    }
    return added;
}

/* Read the count of a word: digits up to a blank or the end of the line. Return -1 if it is invalid. */
static int64_t count_of(const unsigned char *line, Py_ssize_t size)
{
    int64_t count = -1;
    for (Py_ssize_t i = 0; i < size && line[i] != ' '; i++) {
        if (line[i] < '0' || line[i] > '9' || count >= (int64_t)(SAYS - 1) / 10)
            return -1;
        count = (count > 0 ? 10 * count : 0) + line[i] - '0';
    }
    return count;
}

/* Add the words of lines `WORD COUNT …`. Return the sum of the counts; -1 for an invalid line or too many words. */
static int64_t add_lines(Dictionary *words, const unsigned char *text, Py_ssize_t size)
{
    int64_t all = 0, count;
    Py_ssize_t room = (Py_ssize_t)(words->mask - words->mask / 4);
    for (Py_ssize_t at = 0, end, width; at < size; at = end + 1) {
        end = line_end((const char *)text, size, at);
        const unsigned char *blank = memchr(text + at, ' ', (size_t)(end - at));
        if (blank == NULL || (count = count_of(blank + 1, text + end - blank - 1)) < 0)
            return -1;
        width = blank - (text + at);
        if (width / 3 > room)
            return -1;
        room -= add(words, text + at, width, (uint64_t)count + PREFIX);
        all += count;
    }
    return all;
}

/* jieba.Tokenizer.gen_pfdict. Return the array, in which the value of a word is its count + 1, and the sum of all
counts. */
static PyObject *dictionary(Call *call)
{
    if (call->numbers[0] < 1 || call->numbers[0] > MOST_BITS)
        return fail("an array can't be so small, or so large"), NULL;
    Py_ssize_t size = 8 * (HAN + ((Py_ssize_t)1 << call->numbers[0]));
    PyObject *made = PyBytes_FromStringAndSize(NULL, size);
    if (made == NULL)
        return NULL;
    memset(PyBytes_AsString(made), 0, (size_t)size);
    Dictionary words = dictionary_of(PyBytes_AsString(made), (int)call->numbers[0]);
    int64_t all = add_lines(&words, call->data[0].buf, call->sizes[0]);
    if (all < 0) {
        Py_DECREF(made);
        return fail("these are no lines of words and counts, or too many"), NULL;
    }
    return Py_BuildValue("NL", made, (long long)all);
}
