/* Cut Chinese into words, by a dictionary and a model of new words.

The dictionary of Han words is a prefix tree in one array: an entry for each word and for each beginning of a word.

The name of a Han character is its position among the characters that jieba knows, from 0. The first HAN entries are the
prefixes of one character. The entries of longer prefixes form a hash table with open addressing. A key in it consists
of the entry of the prefix without its last character, and of the name of this character. So two prefixes never share an
entry.

An entry holds its key and, in its low SAYS_BITS bits, its value: 0 for an empty entry, PREFIX for a prefix that is not
a word, and more for a word. */

#include <float.h>
#include <math.h>

#if FLT_EVAL_METHOD != 0
#error "for machines that add doubles as Python does; without this part everything works, less quickly"
#endif

enum { HAN = 0x9FD5 - 0x4E00 + 1, HAN_BITS = 15, SAYS_BITS = 24, MOST_BITS = 24, PREFIX = 1 };

static const uint64_t SAYS = (UINT64_C(1) << SAYS_BITS) - 1;

typedef struct {
    char *entries;
    uint64_t mask; /* of the positions in the hash table, which begins after the first HAN entries */
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

/* Return the entry of a prefix that is longer by the character `by`; an empty entry if there is none. */
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

/* Return the end of the line that contains `at`. */
static Py_ssize_t line_end(const char *text, Py_ssize_t size, Py_ssize_t at)
{
    const char *end = memchr(text + at, '\n', (size_t)(size - at));
    return end ? end - text : size;
}

/* Add a word with the value `what`. Return the number of new entries. */
static Py_ssize_t add(Dictionary *words, const unsigned char *word, Py_ssize_t size, uint64_t what)
{
    for (Py_ssize_t i = 0; i < size; i += 3)
        if (han(word + i, size - i) == HAN)
            return 0; /* it is never looked up, since only runs of Han characters are cut */
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

/* Read the count of a word: digits up to a blank or the end of the line. Return -1 if it is no number or too large. */
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

/* Add the words of lines "WORD COUNT …". Return the sum of the counts; -1 for an invalid line or too many words. */
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

/* jieba.Tokenizer.gen_pfdict: dictionary(lines, bits). Return the array, in which the value of a word is its count + 1,
and the sum of all counts. */
static PyObject *dictionary(PyObject *Py_UNUSED(module), PyObject *args)
{
    PyObject *lines;
    int bits;
    if (!PyArg_ParseTuple(args, "Si", &lines, &bits))
        return NULL;
    if (bits < 1 || bits > MOST_BITS)
        return fail("an array can't be so small, or so large"), NULL;
    Py_ssize_t room = 8 * (HAN + ((Py_ssize_t)1 << bits));
    PyObject *made = PyBytes_FromStringAndSize(NULL, room);
    if (made == NULL)
        return NULL;
    memset(PyBytes_AsString(made), 0, (size_t)room);
    Dictionary words = dictionary_of(PyBytes_AsString(made), bits);
    int64_t all = add_lines(&words, (const unsigned char *)PyBytes_AsString(lines), PyBytes_Size(lines));
    if (all < 0) {
        Py_DECREF(made);
        return fail("these are no lines of words and counts, or too many"), NULL;
    }
    return Py_BuildValue("NL", made, (long long)all);
}

typedef struct {
    double best; /* the log probability of the best cut from here to the end of the run */
    uint32_t size; /* the number of characters of the best word that begins here */
    uint16_t name;
    uint8_t states; /* one bit for each state: its better predecessor in BEFORE; later replaced by the chosen state */
} Place;

typedef struct {
    Dictionary words;
    const char *scores, *model; /* doubles */
    uint64_t most; /* values of entries are below this */
} Chinese;

static double number(const char *doubles, uint64_t place)
{
    double value;
    memcpy(&value, doubles + 8 * place, 8);
    return value;
}

static double score(const Chinese *data, uint64_t what)
{
    return number(data->scores, what < data->most ? what : PREFIX);
}

/* jieba.Tokenizer.calc, for one position. Adds in jieba's order, so that the last digits are equal. */
static void best_end(const Chinese *data, Place *run, Py_ssize_t size, Py_ssize_t start)
{
    double most = -HUGE_VAL, sum;
    uint64_t entry = run[start].name, what;
    Py_ssize_t far = start + 1;
    for (Py_ssize_t end = start + 1; (what = says(&data->words, entry)) != 0; end++) {
        if (what > PREFIX && (sum = score(data, what) + run[end].best) >= most)
            most = sum, far = end;
        if (end == size)
            break;
        entry = followed(&data->words, entry, run[end].name);
    }
    run[start].best = most > -HUGE_VAL ? most : score(data, PREFIX) + run[start + 1].best;
    run[start].size = (uint32_t)(far - start);
}

static int is_word(const Dictionary *words, const Place *text, Py_ssize_t size)
{
    uint64_t entry = text[0].name;
    for (Py_ssize_t i = 1; i < size && says(words, entry) != 0; i++)
        entry = followed(words, entry, text[i].name);
    return says(words, entry) > PREFIX;
}

/* Write a word and a line end. Return the position after them. */
static char *put(char *out, const unsigned char *word, Py_ssize_t size)
{
    memcpy(out, word, 3 * (size_t)size);
    out[3 * size] = '\n';
    return out + 3 * size + 1;
}

/* States of a character: begin, end or middle of a word, or single. Of equally probable ones, the last letter wins. */
enum { B, E, M, S };

static const uint8_t BEFORE[4][2] = {{E, S}, {B, M}, {B, M}, {E, S}};

/* jieba.finalseg.viterbi. The model has the log probabilities of each first state (4), of each transition (16), and of
each character in each state. */
static void find_states(const char *model, Place *text, Py_ssize_t size)
{
    const char *after = model + 8 * 4, *with = after + 8 * 16;
    double sums[2][4];
    for (int state = 0; state < 4; state++)
        sums[0][state] = number(model, (uint64_t)state) + number(with, 4u * text[0].name + (unsigned)state);
    for (Py_ssize_t i = 1; i < size; i++) {
        const double *was = sums[~i & 1];
        text[i].states = 0;
        for (unsigned state = 0; state < 4; state++) {
            const uint8_t *before = BEFORE[state];
            double here = number(with, 4u * text[i].name + state);
            double one = was[before[0]] + number(after, 4u * before[0] + state) + here;
            double other = was[before[1]] + number(after, 4u * before[1] + state) + here;
            sums[i & 1][state] = other >= one ? other : one; /* the last letter wins */
            text[i].states |= (uint8_t)((other >= one) << state);
        }
    }
    const double *last = sums[(size - 1) & 1];
    uint8_t state = last[S] >= last[E] ? S : E;
    for (Py_ssize_t i = size - 1; i >= 0; i--) {
        uint8_t before = BEFORE[state][i ? text[i].states >> state & 1 : 0];
        text[i].states = state;
        state = before;
    }
}

/* The end of jieba.Tokenizer.__cut_DAG, and jieba.finalseg.cut: find new words in a row of single characters. */
static char *put_left_over(const Chinese *data, Place *run, Py_ssize_t size, const unsigned char *text, char *out)
{
    int is_new = size > 1 && !is_word(&data->words, run, size);
    if (is_new)
        find_states(data->model, run, size);
    for (Py_ssize_t i = 0, begin = 0; i < size; i++) {
        if (!is_new || run[i].states == S || run[i].states == B)
            begin = i;
        if (!is_new || run[i].states == S || run[i].states == E)
            out = put(out, text + 3 * begin, i + 1 - begin);
    }
    return out;
}

/* jieba.Tokenizer.__cut_DAG */
static char *put_run(const Chinese *data, Place *run, Py_ssize_t size, const unsigned char *text, char *out)
{
    Py_ssize_t start = 0;
    run[size].best = 0.0;
    for (Py_ssize_t at = size - 1; at >= 0; at--)
        best_end(data, run, size, at);
    for (Py_ssize_t at = 0; at < size; at += run[at].size)
        if (run[at].size > 1) {
            out = put_left_over(data, run + start, at - start, text + 3 * start, out);
            out = put(out, text + 3 * at, run[at].size);
            start = at + run[at].size;
        }
    return put_left_over(data, run + start, size - start, text + 3 * start, out);
}

/* Read the run of Han characters at the beginning of `text`. Return its number of characters. */
static Py_ssize_t take_run(const unsigned char *text, Py_ssize_t size, Place *run)
{
    Py_ssize_t count = 0;
    for (uint32_t name; size > 0 && (name = han(text, size)) < HAN; text += 3, size -= 3)
        run[count++].name = (uint16_t)name;
    return count;
}

/* Write each run of Han characters as words with line ends around them, and other text as it is. Return the end. */
static char *put_text(const Chinese *data, Place *run, const unsigned char *text, Py_ssize_t size, char *out)
{
    for (Py_ssize_t i = 0, count; i < size; i += count ? 3 * count : 1) {
        count = take_run(text + i, size - i, run);
        *out++ = count ? '\n' : (char)text[i];
        if (count)
            out = put_run(data, run, count, text + i, out);
    }
    return out;
}

/* tokens.by_jieba: cut(text, words, scores, model) */
static PyObject *cut(PyObject *Py_UNUSED(module), PyObject *args)
{
    PyObject *text, *words, *scores, *model;
    if (!PyArg_ParseTuple(args, "SSSS", &text, &words, &scores, &model))
        return NULL;
    Py_ssize_t size = PyBytes_Size(text), words_size = PyBytes_Size(words), scores_size = PyBytes_Size(scores), bits = 1;
    while (bits < MOST_BITS && words_size > 8 * (HAN + ((Py_ssize_t)1 << bits)))
        bits++;
    if (words_size != 8 * (HAN + ((Py_ssize_t)1 << bits)) || scores_size < 8 * (PREFIX + 1) || scores_size % 8 ||
        PyBytes_Size(model) != 8 * (4 + 16 + 4 * HAN))
        return fail("this is no dictionary with scores and a model"), NULL;
    Chinese data = {dictionary_of(PyBytes_AsString(words), (int)bits), PyBytes_AsString(scores),
                    PyBytes_AsString(model), (uint64_t)scores_size / 8};
    Place *run = PyMem_Malloc(((size_t)size / 3 + 2) * sizeof(Place));
    /* At worst, each three bytes are a word of their own, and the first of a run also has a line end before it. */
    PyObject *made = run ? PyBytes_FromStringAndSize(NULL, 2 * size) : PyErr_NoMemory();
    if (made != NULL) {
        char *out = PyBytes_AsString(made);
        _PyBytes_Resize(&made, put_text(&data, run, (const unsigned char *)PyBytes_AsString(text), size, out) - out);
    }
    PyMem_Free(run);
    return made;
}

/* tokens._foreign: foreign(text). Return a UTF-8 text without ASCII. Of the Han characters of jieba, keep the first. */
static PyObject *foreign(PyObject *Py_UNUSED(module), PyObject *args)
{
    PyObject *given;
    Py_ssize_t step, kept = 0, met = 0;
    if (!PyArg_ParseTuple(args, "S", &given))
        return NULL;
    const unsigned char *text = (const unsigned char *)PyBytes_AsString(given);
    Py_ssize_t size = PyBytes_Size(given);
    PyObject *made = PyBytes_FromStringAndSize(NULL, size);
    char *out = made ? PyBytes_AsString(made) : NULL;
    for (Py_ssize_t i = 0; made != NULL && i < size; i += step) {
        step = han(text + i, size - i) < HAN ? 3 : 1;
        if (text[i] < 0x80 || (step == 3 && met++))
            continue;
        memcpy(out + kept, text + i, (size_t)step);
        kept += step;
    }
    if (made != NULL)
        _PyBytes_Resize(&made, kept);
    return made;
}
