/* screen.c - a glance as lines: one a stage and a total, on a terminal in place.
 *
 * No line is as wide as the terminal and they are fewer than its rows, so that they
 * stay where they were put. All of it is ASCII, as names are. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>
#include "base/memfile.h"
#include "base/plural.h"
#include "cli/live.h"
#include "report/report.h"

enum { LINE = 400, NAME = 24, FILL = 8 };

const char *gp_duration_text(double s, char buf[32])
{
    if (s < 60)
        snprintf(buf, 32, "%.1f s", s);
    else if (s < 3600)
        snprintf(buf, 32, "%.0f min %02.0f s", (double)((int)s / 60), (double)((int)s % 60));
    else
        snprintf(buf, 32, "%.0f h %02.0f min", (double)((long)s / 3600),
                 (double)((long)s / 60 % 60));
    return buf;
}

/* Adds to a line of LINE bytes. */
__attribute__((format(printf, 2, 3)))
static void add(char *line, const char *fmt, ...)
{
    size_t n = strlen(line);
    va_list args;
    va_start(args, fmt);
    vsnprintf(line + n, LINE - n, fmt, args);
    va_end(args);
}

/* "> clean     1.02 k frames/s   2.42 GB/s  photo [######  ] 75 %" */
static void stage_line(char *line, const gp_glance *v, int i, int width)
{
    char a[32], b[32];
    const char *name = v->stage[i].is.name;
    *line = 0;
    add(line, "%c %-*.*s %8s frames/s %9s/s", i == v->bound ? '>' : ' ', width, NAME, name,
        gp_amount_text(v->stage[i].frames_s, "", a), gp_amount_text(v->stage[i].bytes_s, "B", b));
    for (int k = 0; k < v->nbuffers; k++) {
        if (strcmp(v->buffer[k].is.to, name))
            continue;
        int slots = v->buffer[k].is.depth < FILL ? v->buffer[k].is.depth : FILL;
        int full = (int)(v->buffer[k].fill * slots + 0.5);
        add(line, "  %s [%.*s%*s] %.0f %%", v->buffer[k].is.name, full < FILL ? full : FILL,
            "########", slots - full, "", 100 * v->buffer[k].fill);
    }
}

static void total_line(char *line, const gp_glance *v)
{
    char a[32];
    uint64_t shown = v->done ? v->done : v->in;
    *line = 0;
    add(line, "gpipe: ");
    if (v->ranks > 1 && v->rank)
        add(line, "rank %d of %d: ", v->rank, v->ranks);
    else if (v->ranks > 1)
        add(line, "%d ranks: ", v->ranks);
    add(line, "%" PRIu64, shown);
    if (v->frames)
        add(line, " of %" PRIu64, v->frames);
    add(line, " frame%s%s, %s frames/s", gp_plural((int64_t)(v->frames ? v->frames : shown)), gp_none_done(v),
        gp_amount_text(v->frames_s, "", a));
    add(line, ", %s", gp_duration_text(v->seconds, a));
    if (v->left_s >= 0 && !v->ended)
        add(line, ", %s left", gp_duration_text(v->left_s, a));
    if (gp_is_behind(v))
        add(line, ", rank %d is behind with %" PRIu64, v->behind, v->behind_done);
    if (v->syncing)
        add(line, ", syncing to disk");
    else if (v->bound >= 0 && v->bound_rank >= 0)
        add(line, ", > '%s' of rank %d holds back the rest", v->stage[v->bound].is.name, v->bound_rank);
    else if (v->bound_rank >= 0)
        add(line, ", rank %d holds back the rest", v->bound_rank);
    else if (v->bound >= 0)
        add(line, ", > '%s'%s holds back the rest", v->stage[v->bound].is.name,
            v->bound_meets ? ", where ranks meet," : "");
}

typedef struct gp_paper { FILE *f; const gp_screen *screen; int columns; } gp_paper;

static void put(const gp_paper *p, const char *line, bool marked, bool last)
{
    bool color = marked && p->screen->color;
    fprintf(p->f, "%s%.*s%s%s", color ? "\033[1;33m" : "", p->columns - 1, line,
            color ? "\033[0m" : "", p->screen->in_place ? "\033[K" : "");
    if (!last || !p->screen->in_place)
        fputs(p->screen->in_place ? "\r\n" : "\n", p->f);
}

/* "settings:  depth 4  streams auto  write.workers 1" */
static void settings_line(char *line, const gp_glance *v)
{
    *line = 0;
    add(line, "settings:");
    for (int i = 0; i < v->nknobs; i++) {
        const char *path = v->knob[i].path;
        add(line, "  %s %s", strncmp(path, "stages.", 7) ? path : path + 7, v->knob[i].value);
    }
}

/* The number of lines. With too few rows, those around the stage that matters. */
static int put_all(const gp_paper *p, const gp_glance *v, int rows)
{
    char line[LINE];
    int more = v->settings && v->nknobs && rows > 11;
    rows -= more;
    int n = v->nstages, shown = n + 1 < rows ? n : rows > 3 ? rows - 3 : 0, width = 4;
    int first = v->bound - shown / 2, lines = 0;
    first = first < n - shown ? first : n - shown;
    first = first > 0 ? first : 0;
    for (int i = 0; i < n; i++) {
        int w = (int)strlen(v->stage[i].is.name);
        width = w > width ? w : width;
    }
    for (int i = first; i < first + shown; i++, lines++) {
        stage_line(line, v, i, width < NAME ? width : NAME);
        put(p, line, i == v->bound, false);
    }
    if (shown && shown < n) {
        snprintf(line, sizeof line, "  and %d stage%s more", n - shown, gp_plural(n - shown));
        put(p, line, false, false);
        lines++;
    }
    if (more) {
        settings_line(line, v);
        put(p, line, false, false);
    }
    total_line(line, v);
    put(p, line, false, true);
    return lines + more + 1;
}

/* False: in the background, where the lines would be drawn over what others do. */
static bool has_terminal(int fd)
{
    pid_t owner = tcgetpgrp(fd);
    return owner < 0 || owner == getpgrp();
}

gp_screen gp_screen_on(int fd)
{
    return (gp_screen){ .fd = fd, .in_place = isatty(fd), .color = gp_want_color(fd) };
}

bool gp_screen_draw(gp_screen *s, const gp_glance *v)
{
    if (s->in_place && !has_terminal(s->fd)) {
        s->drawn = false;
        return true;
    }
    struct winsize w = { .ws_row = 0 };
    gp_memfile m;
    size_t n = 0;
    if (!gp_memfile_open(&m))
        return false;
    FILE *f = m.f;
    bool known = s->in_place && !ioctl(s->fd, TIOCGWINSZ, &w) && w.ws_row && w.ws_col;
    gp_paper p = { f, s, known ? w.ws_col : s->in_place ? 80 : LINE };
    if (s->in_place)
        fputc('\r', f);
    int lines = put_all(&p, v, known ? w.ws_row : s->in_place ? 24 : v->nstages + 2);
    if (s->in_place)
        fputs("\033[J\r", f);
    if (s->in_place && lines > 1)
        fprintf(f, "\033[%dA", lines - 1);
    char *text = gp_memfile_close(&m, &n);
    bool ok = text && gp_write_text(s->fd, text, n);
    free(text);
    s->drawn = s->in_place;
    return ok;
}

void gp_screen_clear(gp_screen *s)
{
    if (s->drawn)
        gp_write_text(s->fd, "\r\033[J", 4);
    s->drawn = false;
}
