/* Read attributes from the markup of a page. */

static int is_blank(unsigned char byte)
{
    return byte == ' ' || (byte >= '\t' && byte <= '\r' && byte != '\v');
}

/* Return whether the attribute name that ends at `end`, before the equals sign, is `class`. */
static int ends_class(const unsigned char *page, Py_ssize_t begin, Py_ssize_t end)
{
    while (end > begin && is_blank(page[end - 1]))
        end--;
    if (end - begin < 6 || !is_blank(page[end - 6]))
        return 0;
    for (int i = 0; i < 5; i++)
        if ((page[end - 5 + i] | 32) != "class"[i])
            return 0;
    return 1;
}

/* Return the end of the value that begins at `begin`; -1 for none. Move `begin` past blanks and an opening quote. */
static Py_ssize_t value_end(const unsigned char *page, Py_ssize_t size, Py_ssize_t *begin)
{
    while (*begin < size && is_blank(page[*begin]))
        (*begin)++;
    Py_ssize_t end = *begin;
    if (end == size || page[end] == '\\') /* escaped markup within a script */
        return -1;
    if (page[end] == '"' || page[end] == '\'') {
        const unsigned char *quote = memchr(page + end + 1, page[end], (size_t)(size - end - 1));
        (*begin)++;
        return quote ? quote - page : -1;
    }
    while (end < size && page[end] != '>' && !is_blank(page[end]))
        end++;
    return end;
}

/* html._class_lines */
static PyObject *class_lines(Call *call)
{
    const unsigned char *page = call->data[0].buf, *sign;
    Py_ssize_t size = call->sizes[0], made = 0, past = 0;
    PyObject *lines = PyBytes_FromStringAndSize(NULL, size);
    char *out = lines ? PyBytes_AsString(lines) : NULL;
    for (Py_ssize_t i = 0; lines && (sign = memchr(page + i, '=', (size_t)(size - i))) != NULL;) {
        i = sign - page + 1;
        Py_ssize_t begin = i, end = ends_class(page, past, i - 1) ? value_end(page, size, &begin) : -1;
        if (end <= begin)
            continue; /* no value, or an empty one */
        for (Py_ssize_t at = begin; at < end; at++)
            out[made++] = (char)(page[at] == '\n' ? ' ' : page[at]);
        out[made++] = '\n';
        past = i = end;
    }
    if (lines != NULL)
        _PyBytes_Resize(&lines, made);
    return lines;
}
