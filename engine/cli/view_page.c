/* view_page.c - what a browser is given that looks at frames.
 *
 * /view is the page, /view/buffers what it may choose from, /view/frame?buffer=NAME&after=NUMBER the newest frame: a line
 * of JSON with numbers over all of it, padded to whole elements, and elements as f32, of large frames each so many rows
 * and columns one. A frame is kept as it was sent, for others who look at the same buffer. */
#include <stdlib.h>
#include <string.h>
#include "base/json.h"
#include "base/memfile.h"
#include "cli/live.h"
#include "cli/report.h"

enum { BUFFERS = 8, WAIT_MS = 20, ROWS = 512, COLUMNS = 1024 };

typedef struct looked {
    char *buffer;              /* NULL: this is free */
    gp_follow follow;
    char *text; size_t n;      /* the newest frame; NULL: none came yet */
    uint64_t frame;
    uint64_t used;             /* when it was last asked for, counted in questions */
} looked;

struct gp_view_page {
    looked of[BUFFERS];
    uint64_t questions;
};

gp_view_page *gp_view_page_new(void)
{
    return calloc(1, sizeof(gp_view_page));
}

static void forget(looked *l)
{
    gp_tap_end(l->follow.tap);
    free(l->buffer), free(l->text);
    *l = (looked){ 0 };
}

void gp_view_page_free(gp_view_page *v)
{
    for (int i = 0; v && i < BUFFERS; i++)
        forget(&v->of[i]);
    free(v);
}

/* ---- a frame --------------------------------------------------------------- */

/* How it lies: rows of columns of channels; and of how many rows, columns one is sent. */
typedef struct layout { int64_t rows, columns, channels, step_r, step_c; } layout;

static layout layout_of(const gp_type *t)
{
    layout l = { 1, t->dim[t->ndim - 1], 1, 1, 1 };
    int last = t->ndim - 1;
    if (t->ndim >= 3 && l.columns <= 4)
        l.channels = l.columns, l.columns = t->dim[--last];
    for (int i = 0; i < last; i++)
        l.rows *= t->dim[i];
    if (t->ndim > 1)
        l.step_r = (l.rows + ROWS - 1) / ROWS, l.step_c = (l.columns + COLUMNS - 1) / COLUMNS;
    else
        l.step_c = (l.columns + ROWS * COLUMNS - 1) / (ROWS * COLUMNS);
    l.step_r += !l.step_r, l.step_c += !l.step_c;
    return l;
}

static bool write_frame(looked *l, const gp_tapped *f)
{
    gp_memfile m;
    const layout at = layout_of(&f->type);
    gp_view_numbers numbers = gp_view_numbers_of(&f->type, f->data);
    if (!gp_memfile_open(&m))
        return false;
    fputs("{\"view\": ", m.f);
    gp_view_put(m.f, f, &numbers);
    fprintf(m.f, ", \"rows\": %jd, \"columns\": %jd, \"channels\": %jd, \"step\": [%jd, %jd]}",
            (intmax_t)((at.rows + at.step_r - 1) / at.step_r), (intmax_t)((at.columns + at.step_c - 1) / at.step_c),
            (intmax_t)at.channels, (intmax_t)at.step_r, (intmax_t)at.step_c);
    fflush(m.f);                       /* so that m.n is the length of the line */
    for (size_t n = m.n; (n + 1) % sizeof(float); n++)
        fputc(' ', m.f);
    fputc('\n', m.f);
    for (int64_t r = 0; r < at.rows; r += at.step_r)
        for (int64_t c = 0; c < at.columns; c += at.step_c)
            for (int64_t k = 0; k < at.channels; k++) {
                float x = (float)gp_view_element(f->type.dtype, f->data, (size_t)((r * at.columns + c) * at.channels + k));
                fwrite(&x, sizeof x, 1, m.f);
            }
    free(l->text);
    l->text = gp_memfile_close(&m, &l->n), l->frame = f->frame;
    return l->text;
}

static looked *look_at(gp_view_page *v, const char *buffer)
{
    looked *oldest = v->of;
    for (int i = 0; i < BUFFERS; i++) {
        if (v->of[i].buffer && !strcmp(v->of[i].buffer, buffer))
            return &v->of[i];
        if (v->of[i].used < oldest->used)
            oldest = &v->of[i];
    }
    forget(oldest);
    oldest->buffer = strdup(buffer);
    return oldest->buffer ? oldest : NULL;
}

/* A frame may be there that came since somebody asked for the one before; then a new one comes, if they come fast. */
static unsigned give_frame(gp_view_page *v, const gp_view_ask *ask, FILE *to)
{
    looked *l = look_at(v, ask->buffer);
    gp_errs errs = { .n = 0 };
    gp_tapped f;
    if (!l)
        return 503;
    l->used = ++v->questions;
    gp_tap_status is = gp_follow_take(&l->follow, ask->now, ask->buffer, WAIT_MS * 1000000LL, &f, &errs);
    if (is == GP_TAP_FAILED) {
        gp_json j = { .f = to, .level = 3 };
        gp_json_put(&j, "{error: %s}", errs.e[0].msg);
        forget(l);
        return 404;
    }
    if (is == GP_TAP_OK && !write_frame(l, &f))
        return 503;
    if (!l->text || (*ask->after && strtoull(ask->after, NULL, 10) == l->frame))
        return 204;
    fwrite(l->text, 1, l->n, to);
    return 200;
}

/* ---- all ------------------------------------------------------------------- */

unsigned gp_view_page_get(gp_view_page *v, const gp_view_ask *ask, FILE *to, const char **type)
{
    *type = "application/octet-stream";
    if (!strcmp(ask->url, "/view/frame"))
        return give_frame(v, ask, to);
    if (!strcmp(ask->url, "/view/buffers")) {
        *type = "application/json";
        gp_buffers_json(&(gp_json){ .f = to, .level = 3 }, NULL, ask->now);
        return 200;
    }
    if (!strcmp(ask->url, "/view/colormaps")) {
        const gp_blob *b = gp_blob_find("stages/format/colormaps.bin");
        fwrite(b->data, 1, (size_t)(b->end - b->data), to);
        return 200;
    }
    if (strcmp(ask->url, "/view"))
        return 404;
    *type = "text/html; charset=utf-8";
    gp_page_fill(to, "page_view.html", NULL);
    return 200;
}
