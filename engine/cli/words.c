/* words.c - what is said on stderr while '--progress json' makes JSON lines of it, each line of it one object, or while
 * '--service' makes lines of a log of it.
 *
 * Whoever writes to the stream stderr, a script's print among them, then writes into
 * objects {"text": "..."}. What has more to say than a text is an object of its own. All
 * memory is taken at the start: that there is none left can be said, too. */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include "base/json.h"
#include "cli/cli.h"

static struct {
    pthread_mutex_t lock;              /* of `object` and `line` */
    FILE *stream;                      /* stderr; NULL: that is as ever */
    enum { JSON, LOG, JOURNAL } form;  /* JOURNAL: the service manager's, which notes the time */
    gp_level level;                    /* of the last line of a log, which was ... */
    bool cut;                          /* ... too long for one: the rest is the next */
    FILE *object;                      /* ends in the descriptor */
    char line[4096];
    size_t n;
    char stream_buffer[BUFSIZ], object_buffer[2 * BUFSIZ];
} words = { .lock = PTHREAD_MUTEX_INITIALIZER };

bool gp_says_json(void)
{
    return words.stream && words.form == JSON;
}

/* All of it may be called by the handler of a signal, so no function of <time.h> that takes locks. */
const char *gp_log_begin(gp_level level, char buf[GP_LOG_BEGIN])
{
    static const char *const name[] = { "error", "warning", "info" };
    static const int priority[] = { 3, 4, 6 };          /* of syslog(3) */
    struct timespec now;
    *buf = 0;
    if (!words.stream || words.form == JSON)
        return buf;
    if (words.form == JOURNAL) {
        snprintf(buf, GP_LOG_BEGIN, "<%d>", priority[level]);
        return buf;
    }
    clock_gettime(CLOCK_REALTIME, &now);
    /* Years begin in March, and 400 of them have 146,097 days; months but February then have 30.6 in the mean. */
    int64_t s = now.tv_sec, days = s / 86400 + 719468, era = days / 146097, of_era = days % 146097;
    int64_t year = (of_era - of_era / 1460 + of_era / 36524 - of_era / 146096) / 365;
    int64_t of_year = of_era - (365 * year + year / 4 - year / 100), month = (5 * of_year + 2) / 153;
    int64_t day = of_year - (153 * month + 2) / 5 + 1;
    snprintf(buf, GP_LOG_BEGIN, "%04d-%02d-%02dT%02d:%02d:%02d.%03dZ %s ", (int)(400 * era + year + (month > 9)),
             (int)(month > 9 ? month - 9 : month + 3), (int)day, (int)(s / 3600 % 24), (int)(s / 60 % 60), (int)(s % 60),
             (int)(now.tv_nsec / 1000000), name[level]);
    return buf;
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
    (void)gp_write_text(STDERR_FILENO, text, n);
    return (ssize_t)n;
}

/* With the lock. */
static void put_line(void)
{
    char begin[GP_LOG_BEGIN];
    if (!words.n)
        return;
    if (words.form == JSON) {
        fputs("{\"text\": ", words.object);
        gp_json_quote(words.object, words.line, words.n);
        fputs("}\n", words.object);
    } else {
        if (words.line[0] != ' ' && words.line[0] != '\t' && !words.cut)     /* or it belongs to the one before */
            words.level = memmem(words.line, words.n, " error: ", 8) ? GP_LEVEL_ERROR
                : memmem(words.line, words.n, " warning: ", 10) ? GP_LEVEL_WARNING : GP_LEVEL_INFO;
        fputs(gp_log_begin(words.level, begin), words.object);
        fwrite(words.line, 1, words.n, words.object);
        fputc('\n', words.object);
        words.cut = words.n == sizeof words.line;
    }
    fflush(words.object);
    words.n = 0;
}

/* A line that is longer than the buffer becomes several. */
static ssize_t take(void *cookie, const char *text, size_t n)
{
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

static bool say_lines(int form)
{
    words.object = fopencookie(NULL, "w", (cookie_io_functions_t){ .write = put });
    FILE *f = words.object ? fopencookie(NULL, "w", (cookie_io_functions_t){ .write = take }) : NULL;
    if (!f)
        return false;
    setvbuf(words.object, words.object_buffer, _IOFBF, sizeof words.object_buffer);
    setvbuf(f, words.stream_buffer, _IOLBF, sizeof words.stream_buffer);
    words.form = form;
    words.stream = stderr = f;         /* for good, as a script may keep it */
    return true;
}

bool gp_say_json(void)
{
    return say_lines(JSON);
}

bool gp_say_log(void)
{
    struct stat st;
    char is[64];
    const char *journal = getenv("JOURNAL_STREAM");
    bool known = journal && !fstat(STDERR_FILENO, &st)
        && snprintf(is, sizeof is, "%ju:%ju", (uintmax_t)st.st_dev, (uintmax_t)st.st_ino) > 0;
    return say_lines(known && !strcmp(is, journal) ? JOURNAL : LOG);
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
