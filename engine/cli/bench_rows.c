/* bench_rows.c - gpipe bench: the rows that the options ask for.
 *
 * For each file: all combinations of what --sweep says (or the file as it is
 * written), then --serial, then each --cached. Files have the same rows in the
 * same order. */
#include <stdlib.h>
#include <string.h>
#include "cli/bench.h"

enum { MAX_ROWS = 1000 };

static bool wrong(gp_errs *errs, const char *sweep, const char *what)
{
    return gp_usage(errs, "--sweep %s: %s", sweep, what);
}

/* "1..8": its ends. */
static bool is_range(const char *s, size_t n, long *from, long *to)
{
    char text[64], *end;
    if (n >= sizeof text)
        return false;
    memcpy(text, s, n);
    text[n] = '\0';
    *from = strtol(text, &end, 10);
    if (end == text || strncmp(end, "..", 2) || !end[2])
        return false;
    *to = strtol(end + 2, &end, 10);
    return !*end;
}

/* The length of the value at `s`: up to a comma outside of brackets and quotes. */
static size_t value_length(const char *s)
{
    int depth = 0;
    char quote = '\0';
    const char *p = s;
    for (; *p && (*p != ',' || depth || quote); p++) {
        if (quote)
            quote = *p == quote ? '\0' : quote;
        else if (*p == '"' || *p == '\'')
            quote = *p;
        else
            depth += !!strchr("[{", *p) - (strchr("]}", *p) && depth);
    }
    return (size_t)(p - s);
}

/* What --sweep says of one path: whole assignments, for --set. */
static bool read_axis(gp_arena *a, const char *sweep, gp_words *w, gp_errs *errs)
{
    const char *equals = strchr(sweep, '=');
    if (!equals || equals == sweep)
        return wrong(errs, sweep, "write PATH=LIST, like streams=1..8 or batch=1,4,auto");
    int path = (int)(equals - sweep);
    for (const char *s = equals + 1;;) {
        size_t n = value_length(s);
        long from, to;
        if (!n)
            return wrong(errs, sweep, "a value is missing");
        if (!is_range(s, n, &from, &to))
            *GP_PUSH(a, w->word, w->n, w->cap) = gp_format(a, "%.*s=%.*s", path, sweep, (int)n, s);
        else if (to < from || to - from >= MAX_ROWS)
            return wrong(errs, sweep, "a range goes up, by at most 1000");
        else
            for (long v = from; v <= to; v++)
                *GP_PUSH(a, w->word, w->n, w->cap) = gp_format(a, "%.*s=%ld", path, sweep, v);
        if (!s[n])
            return true;
        s += n + 1;
    }
}

gp_args gp_bench_set(gp_bench *b, const gp_args *args, const char *assignment)
{
    return gp_args_with(&b->arena, args, &assignment, 1);
}

static gp_row *add(gp_bench *b, const char *file, const char *label)
{
    gp_row *r = &b->row[b->nrows++];
    *r = (gp_row){ .file = file, .label = label, .args = *b->args };
    r->round = GP_NEW(&b->arena, gp_figures, b->rounds);
    return r;
}

/* The i-th combination; the last axis changes fastest. */
static void add_combination(gp_bench *b, const char *file, const gp_words *axes, int n, int i)
{
    gp_row *r = add(b, file, "");
    r->args.swept_from = r->args.nset, r->args.swept_to = r->args.nset + n;
    for (int k = 0, left = i; k < n; k++) {
        int after = 1;
        for (int j = k + 1; j < n; j++)
            after *= axes[j].n;
        const char *set = axes[k].word[left / after];
        left %= after;
        r->args = gp_bench_set(b, &r->args, set);
        r->label = gp_format(&b->arena, "%s%s%s", r->label, k ? " " : "", set);
    }
    if (!n)
        r->label = "as written";
}

/* One frame in flight: buffers that say a depth have to be told one by one. */
static bool add_serial(gp_bench *b, const char *file, gp_errs *errs)
{
    static const char *const set[] = { "depth=1", "streams=1", "batch=1" };
    gp_buffer_info buffer;
    gp_loaded l;
    bool ok = gp_load(&l, file, b->args, b->registry, errs);
    gp_row *r = add(b, file, "serial");
    r->args = gp_args_with(&b->arena, b->args, set, 3);
    for (int i = 0; ok && gp_pipeline_buffer(l.pipeline, i, &buffer); i++)
        if (buffer.depth_said)
            r->args = gp_bench_set(b, &r->args, gp_format(&b->arena, "buffers.%s.depth=1", buffer.name));
    if (!ok)
        gp_print_errs(b->args, &l, errs);
    gp_unload(&l);
    return ok;
}

bool gp_bench_rows(gp_bench *b, gp_errs *errs)
{
    const gp_args *args = b->args;
    gp_words *axes = GP_NEW(&b->arena, gp_words, args->sweep.n);
    int combinations = 1;
    for (int i = 0; i < args->sweep.n; i++) {
        if (!read_axis(&b->arena, args->sweep.word[i], &axes[i], errs))
            return false;
        combinations *= axes[i].n;
        if (combinations > MAX_ROWS)
            return wrong(errs, args->sweep.word[i], "this makes more than 1000 rows");
    }
    int each = combinations + args->serial + args->cached.n;
    b->row = GP_NEW(&b->arena, gp_row, each * args->noperands);
    for (int f = 0; f < args->noperands; f++) {
        const char *file = args->operand[f];
        for (int i = 0; i < combinations; i++)
            add_combination(b, file, axes, args->sweep.n, i);
        if (args->serial && !add_serial(b, file, errs))
            return false;
        for (int i = 0; i < args->cached.n; i++) {
            const char *stage = args->cached.word[i];
            add(b, file, gp_format(&b->arena, "cached %s", stage))->cached = stage;
        }
        for (int i = 0; f && i < each; i++)
            b->row[f * each + i].base = &b->row[i];
    }
    return true;
}
