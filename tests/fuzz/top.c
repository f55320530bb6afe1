/* top.c - what `gpipe top` reads from a socket that anybody may have made, line by line, and draws on a terminal. */
#include <fcntl.h>
#include "cli/live.h"
#include "fuzz.h"

static void write_json(FILE *f, const void *v)
{
    gp_glance_json(v, f);
}

/* What was taken for good is drawn; written again, it is good again. */
static void show(gp_glance *v, const char *line, int fd)
{
    gp_arena a = { 0 };
    jmp_buf oom;
    if (setjmp(oom)) {
        gp_arena_free(&a);
        return;
    }
    a.oom = &oom;
    if (gp_glance_read(v, &a, line)) {
        gp_screen lines = { .fd = fd }, place = { .fd = fd, .in_place = true, .color = true };
        gp_glance again = { 0 };
        v->settings = true;
        size_t n;
        MUST(gp_screen_draw(&lines, v) && gp_screen_draw(&place, v));
        gp_screen_clear(&place);
        char *text = fuzz_text(write_json, v, &n);
        MUST(n > 0 && strchr(text, '\n') == text + n - 1);
        MUST(gp_glance_read(&again, &a, text));
        MUST(again.nstages == v->nstages && again.nbuffers == v->nbuffers && again.nknobs == v->nknobs);
        gp_glance_free(&again);
        free(text);
    }
    gp_arena_free(&a);
}

static void one(const char *data, size_t n)
{
    static int fd = -1;
    gp_glance v = { 0 };
    if (fd < 0)
        fd = open("/dev/null", O_WRONLY | O_CLOEXEC);
    char *text = strndup(data, n), *rest = text;
    for (char *line; (line = strsep(&rest, "\n"));)
        show(&v, line, fd);
    gp_glance_free(&v);
    free(text);
}

const fuzz_harness fuzz_top = { .name = "top", .one = one };
