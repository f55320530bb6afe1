/* words.c - what is said on stderr while '--progress json' makes JSON lines of it: each
 * line of it is one object.
 *
 * Whoever writes to the stream stderr, a script's print among them, then writes into
 * objects {"text": "..."}. What has more to say than a text is an object of its own. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "base/json.h"
#include "base/memfile.h"
#include "cli/cli.h"

static struct {
    pthread_mutex_t lock;              /* of the descriptor, and of `line` */
    FILE *stream;                      /* NULL: stderr is as ever */
    char line[4096];
    size_t n;
} words = { .lock = PTHREAD_MUTEX_INITIALIZER };

bool gp_says_json(void)
{
    return words.stream;
}

static void put(const char *text, size_t n)
{
    for (ssize_t k; n && (k = write(STDERR_FILENO, text, n)) > 0; text += k)
        n -= (size_t)k;
}

/* With the lock. */
static void put_line(void)
{
    gp_memfile m;
    size_t n = words.n;
    words.n = 0;                       /* without memory the words are lost */
    if (!n || !gp_memfile_open(&m))
        return;
    fputs("{\"text\": ", m.f);
    gp_json_quote(m.f, words.line, n);
    fputs("}\n", m.f);
    char *text = gp_memfile_close(&m, &n);
    if (text)
        put(text, n);
    free(text);
}

/* A line that is longer than the buffer becomes several. */
static ssize_t take(void *cookie, const char *text, size_t n)
{
    (void)cookie;
    pthread_mutex_lock(&words.lock);
    for (size_t i = 0; i < n; i++) {
        if (text[i] != '\n')
            words.line[words.n++] = text[i];
        if (text[i] == '\n' || words.n == sizeof words.line)
            put_line();
    }
    pthread_mutex_unlock(&words.lock);
    return (ssize_t)n;
}

void gp_say_json(void)
{
    FILE *f = fopencookie(NULL, "w", (cookie_io_functions_t){ .write = take });
    if (!f)
        return;
    setvbuf(f, NULL, _IOLBF, BUFSIZ);
    words.stream = stderr = f;         /* for good, as a script may keep it */
}

void gp_say_object(const char *text, size_t n)
{
    fflush(stderr);
    pthread_mutex_lock(&words.lock);
    put_line();
    put(text, n);
    pthread_mutex_unlock(&words.lock);
}

void gp_say_last(void)
{
    if (words.stream)
        gp_say_object("", 0);
}
