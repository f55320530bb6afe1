/* replay.c - every stored input through its harness: replay CORPUS [HARNESS [FILE]].
 *
 * CORPUS has a folder for each harness. An input that is wrong ends the program at once,
 * which says the input's name. */
#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>
#include "fuzz.h"

static const char *now = "";           /* the input that runs */

const char *__asan_default_options(void);

/* Ends by a signal, too. A size that is too large is an error of gpipe's, not an end. */
const char *__asan_default_options(void)
{
    return "abort_on_error=1:allocator_may_return_null=1";
}

static void on_end(int signal)
{
    static const char text[] = "\nfuzz: FAILED: ";
    ssize_t ignored = write(STDERR_FILENO, text, sizeof text - 1)
                    + write(STDERR_FILENO, now, strlen(now)) + write(STDERR_FILENO, "\n", 1);
    (void)ignored;
    raise(signal);
}

static void one(const fuzz_harness *h, const char *path)
{
    static char data[1 << 20];
    FILE *f = fopen(path, "rb");
    if (!f) {
        fprintf(stderr, "fuzz: cannot read '%s'\n", path);
        exit(1);
    }
    size_t n = fread(data, 1, sizeof data, f);
    char *exact = malloc(n ? n : 1);   /* a byte too many is noticed */
    memcpy(exact, data, n);
    fclose(f);
    now = path;
    h->one(exact, n);
    free(exact);
    now = "";
}

static int is_input(const struct dirent *e)
{
    return e->d_name[0] != '.';
}

static int folder(const fuzz_harness *h, const char *corpus)
{
    char path[4096];
    struct dirent **e;
    snprintf(path, sizeof path, "%s/%s", corpus, h->name);
    int n = scandir(path, &e, is_input, alphasort);
    if (n <= 0) {
        fprintf(stderr, "fuzz: no inputs in '%s'\n", path);
        exit(1);
    }
    for (int i = 0; i < n; i++) {
        snprintf(path, sizeof path, "%s/%s/%s", corpus, h->name, e[i]->d_name);
        one(h, path);
        free(e[i]);
    }
    free(e);
    return n;
}

int main(int argc, char **argv)
{
    static const int ends[] = { SIGABRT, SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGALRM };
    int n = 0;
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++)
        sigaction(ends[i], &(struct sigaction){ .sa_handler = on_end, .sa_flags = SA_RESETHAND }, NULL);
    const fuzz_harness *only = argc > 2 ? fuzz_find(argv[2]) : NULL;
    if (argc < 2 || (argc > 2 && !only)) {
        fprintf(stderr, "usage: replay CORPUS [HARNESS [FILE]]\n");
        return 2;
    }
    if (argc > 3)
        one(only, argv[3]), n++;
    for (const fuzz_harness *const *h = fuzz_all; argc <= 3 && *h; h++)
        if (!only || only == *h)
            n += folder(*h, argv[1]);
    printf("fuzz: %d inputs passed, 0 failed\n", n);
    return 0;
}
