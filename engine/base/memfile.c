/* memfile.c - a stream whose text stays in memory, see memfile.h. */
#include <stdlib.h>
#include <string.h>
#include "base/memfile.h"

/* Room for a NUL behind the text, too. */
static ssize_t append(void *cookie, const char *text, size_t n)
{
    gp_memfile *m = cookie;
    if (m->cap - m->n <= n) {
        size_t cap = 2 * m->cap > m->n + n + 1 ? 2 * m->cap : m->n + n + 1;
        char *more = m->bad ? NULL : realloc(m->text, cap);
        if (!more) {
            m->bad = true;
            return 0;
        }
        m->text = more, m->cap = cap;
    }
    memcpy(m->text + m->n, text, n);
    m->n += n;
    return (ssize_t)n;
}

bool gp_memfile_open(gp_memfile *m)
{
    *m = (gp_memfile){ .cap = 256 };
    m->text = malloc(m->cap);
    m->f = m->text ? fopencookie(m, "w", (cookie_io_functions_t){ .write = append }) : NULL;
    if (!m->f)
        free(m->text);
    return m->f;
}

char *gp_memfile_close(gp_memfile *m, size_t *n)
{
    bool bad = ferror(m->f);
    if (fclose(m->f) || bad || m->bad) {
        free(m->text);
        return NULL;
    }
    m->text[m->n] = 0;
    *n = m->n;
    return m->text;
}
