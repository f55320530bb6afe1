/* words.c - what is said on stderr while '--progress json' makes JSON lines of it: each
 * line of it is one object.
 *
 * Whoever writes to the stream stderr, a script's print among them, then writes into
 * objects {"text": "..."}. What has more to say than a text is an object of its own. All
 * memory is taken at the start: that there is none left can be said, too. */
#include <errno.h>
#include <pthread.h>
#include <unistd.h>
#include "base/json.h"
#include "cli/cli.h"

static struct {
    pthread_mutex_t lock;              /* of `object` and `line` */
    FILE *stream;                      /* stderr; NULL: that is as ever */
    FILE *object;                      /* ends in the descriptor */
    char line[4096];
    size_t n;
    char stream_buffer[BUFSIZ], object_buffer[2 * BUFSIZ];
} words = { .lock = PTHREAD_MUTEX_INITIALIZER };

bool gp_says_json(void)
{
    return words.stream;
}

bool gp_write_text(int fd, const char *text, size_t n)
{
    for (ssize_t k; n; n -= (size_t)k, text += k)
        if ((k = write(fd, text, n)) < 0 && errno == EINTR)
            k = 0;
        else if (k <= 0)
            return false;
    return true;
}

/* Nobody reads it any more, or its disk is full: then there is nowhere to say so. */
static ssize_t put(void *cookie, const char *text, size_t n)
{
    (void)cookie;
    (void)gp_write_text(STDERR_FILENO, text, n);
    return (ssize_t)n;
}

/* With the lock. */
static void put_line(void)
{
    if (!words.n)
        return;
    fputs("{\"text\": ", words.object);
    gp_json_quote(words.object, words.line, words.n);
    fputs("}\n", words.object);
    fflush(words.object);
    words.n = 0;
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

bool gp_say_json(void)
{
    words.object = fopencookie(NULL, "w", (cookie_io_functions_t){ .write = put });
    FILE *f = words.object ? fopencookie(NULL, "w", (cookie_io_functions_t){ .write = take }) : NULL;
    if (!f)
        return false;
    setvbuf(words.object, words.object_buffer, _IOFBF, sizeof words.object_buffer);
    setvbuf(f, words.stream_buffer, _IOLBF, sizeof words.stream_buffer);
    words.stream = stderr = f;         /* for good, as a script may keep it */
    return true;
}

FILE *gp_say_begin(void)
{
    fflush(stderr);
    pthread_mutex_lock(&words.lock);
    put_line();
    return words.object;
}

void gp_say_end(void)
{
    fflush(words.object);
    pthread_mutex_unlock(&words.lock);
}

void gp_say_last(void)
{
    if (words.stream) {
        gp_say_begin();
        gp_say_end();
    }
}
