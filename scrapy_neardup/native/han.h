/* Cut Chinese into words, by a dictionary and a model of new words. */

typedef struct {
    double best; /* the log probability of the best cut from here to the end of the run */
    uint32_t size; /* characters of the best word that begins here */
    uint16_t name;
    uint8_t states; /* for each state, a bit that selects its predecessor in BEFORE; at the end, the chosen state */
} Place;

_Static_assert(sizeof(Place) <= sizeof(Row), "runs lie in room for rows");

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

static void put(Lines *lines, const unsigned char *text, Py_ssize_t size)
{
    memcpy(lines->bytes + lines->size, text, (size_t)size * 3);
    lines->size += size * 3;
    lines->bytes[lines->size++] = '\n';
}

/* States of a character: begin, end or middle of a word, or single. In alphabetical order, by which ties are broken. */
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
            sums[i & 1][state] = other >= one ? other : one; /* ties go to the last letter */
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

/* The end of jieba.Tokenizer.__cut_DAG, and jieba.finalseg.cut: new words among single characters. */
static void put_left_over(const Chinese *data, Place *run, Py_ssize_t size, const unsigned char *text, Lines *lines)
{
    int is_new = size > 1 && !is_word(&data->words, run, size);
    if (is_new)
        find_states(data->model, run, size);
    for (Py_ssize_t i = 0, begin = 0; i < size; i++) {
        if (!is_new || run[i].states == S)
            put(lines, text + 3 * i, 1);
        else if (run[i].states == B)
            begin = i;
        else if (run[i].states == E)
            put(lines, text + 3 * begin, i + 1 - begin);
    }
}

/* jieba.Tokenizer.__cut_DAG */
static void put_run(const Chinese *data, Place *run, Py_ssize_t size, const unsigned char *text, Lines *lines)
{
    Py_ssize_t start = 0;
    run[size].best = 0.0;
    for (Py_ssize_t at = size - 1; at >= 0; at--)
        best_end(data, run, size, at);
    for (Py_ssize_t at = 0; at < size; at += run[at].size)
        if (run[at].size > 1) {
            put_left_over(data, run + start, at - start, text + 3 * start, lines);
            put(lines, text + 3 * at, run[at].size);
            start = at + run[at].size;
        }
    put_left_over(data, run + start, size - start, text + 3 * start, lines);
}

/* Read the run of Han characters at the beginning of `text`. Return its number of characters. */
static Py_ssize_t take_run(const unsigned char *text, Py_ssize_t size, Place *run)
{
    Py_ssize_t count = 0;
    for (uint32_t name; size > 0 && (name = han(text, size)) < HAN; text += 3, size -= 3)
        run[count++].name = (uint16_t)name;
    return count;
}

/* Read the arguments after the text. Return 0 with an error set if their sizes do not fit together. */
static int take_chinese(const Call *call, Chinese *data)
{
    int bits = 1;
    while (bits < MOST_BITS && call->sizes[1] > HAN + ((Py_ssize_t)1 << bits))
        bits++;
    *data = (Chinese){dictionary_of(call->data[1].buf, bits), call->data[2].buf, call->data[3].buf,
                      (uint64_t)call->sizes[2]};
    return (call->sizes[1] == HAN + ((Py_ssize_t)1 << bits) && call->sizes[2] > PREFIX &&
            call->sizes[3] == 4 + 16 + 4 * HAN) ||
           fail("this is no dictionary with scores and a model");
}

/* Return whether a code point is common Chinese punctuation, which separates words whatever its neighbours. */
static int is_punctuation(uint32_t c)
{
    return (c >= 0xFF01 && c <= 0xFF0F) || (c >= 0xFF1A && c <= 0xFF20) || (c >= 0xFF3B && c <= 0xFF40) ||
           (c >= 0xFF5B && c <= 0xFF64) || (c >= 0x3000 && c <= 0x3003) || (c >= 0x3008 && c <= 0x3020) ||
           (c >= 0x2010 && c <= 0x2029 && c != 0x2017) || (c >= 0x202F && c <= 0x203D) || c == 0xA0 || c == 0xB7;
}

/* Decode the UTF-8 character of two or three bytes at `at`, and set `step` to its size; return 0 for any other. */
static uint32_t character(const unsigned char *at, Py_ssize_t size, Py_ssize_t *step)
{
    *step = at[0] >> 5 == 6 ? 2 : 3;
    if (*step > size || (*step == 3 && at[0] >> 4 != 14))
        return 0;
    return *step == 2 ? (at[0] & 31u) << 6 | (at[1] & 63u) : (at[0] & 15u) << 12 | (at[1] & 63u) << 6 | (at[2] & 63u);
}

/* The first step of tokens.token_lines. Return the text with blanks for punctuation; None for other text. */
static PyObject *plain_chinese(Call *call)
{
    const unsigned char *text = call->data[0].buf;
    PyObject *made = PyBytes_FromStringAndSize(NULL, call->sizes[0]);
    char *out = made ? PyBytes_AsString(made) : NULL;
    Py_ssize_t size = 0;
    for (Py_ssize_t i = 0, step = 1; made != NULL && i < call->sizes[0]; i += step, step = 1) {
        Py_ssize_t left = call->sizes[0] - i;
        if (text[i] < 0x80)
            out[size++] = (char)text[i];
        else if (han(text + i, left) < HAN) {
            memcpy(out + size, text + i, 3);
            size += step = 3;
        } else if (is_punctuation(character(text + i, left, &step)))
            out[size++] = ' ';
        else {
            Py_DECREF(made);
            Py_RETURN_NONE;
        }
    }
    if (made != NULL)
        _PyBytes_Resize(&made, size);
    return made;
}

/* tokens.by_jieba */
static PyObject *cut_lines(Call *call)
{
    const unsigned char *text = call->data[0].buf;
    Chinese data;
    Place *run = take_chinese(call, &data) ? (Place *)room(call, call->sizes[0] / 3 + 1) : NULL;
    /* In the worst case, three bytes of text become a word with a line end before and after it. */
    PyObject *made = run ? PyBytes_FromStringAndSize(NULL, 2 * call->sizes[0]) : NULL;
    if (made == NULL)
        return NULL;
    Lines lines = {(unsigned char *)PyBytes_AsString(made), 0, 0};
    for (Py_ssize_t i = 0, size; i < call->sizes[0]; i += size ? 3 * size : 1) {
        if ((size = take_run(text + i, call->sizes[0] - i, run)) > 0) {
            put_letter(&lines, '\n');
            put_run(&data, run, size, text + i, &lines);
        } else
            put_letter(&lines, LETTERS[text[i]]);
    }
    return ended(made, &lines);
}
