/* verdict_edit.c - what to change once it is known what bounds a run: an edit that
 * `--set` takes, where there is one, or else what can be done, in words. */
#include <inttypes.h>
#include <string.h>
#include <strings.h>
#include "report/verdict.h"

enum { DEEPEST = 65536 };

#define say gp_verdict_say

void gp_try_word(gp_judging *j, const char *group, const char *name, const char *key,
                 const char *value)
{
    gp_verdict *v = &j->r->verdict;
    bool stage = group && !strcmp(group, "stages");    /* which one is said already */
    int n = group ? snprintf(v->path, sizeof v->path, "%s.%s.%s", group, name, key)
        : snprintf(v->path, sizeof v->path, "%s", key);
    if (n >= (int)sizeof v->path)
        v->path[0] = '\0';             /* part of a path is none */
    else
        snprintf(v->value, sizeof v->value, "%s", value);
    if (!group || stage)
        say(j, ": try %s: %s", key, value);
    else
        say(j, ": try %s.%.60s.%s: %s", group, name, key, value);
}

void gp_try(gp_judging *j, const char *group, const char *name, const char *key, int64_t value)
{
    char text[24];
    snprintf(text, sizeof text, "%" PRId64, value);
    gp_try_word(j, group, name, key, text);
}

/* ---- depth ------------------------------------------------------------ */

/* Two slots let both sides work, a third takes up how unevenly they do. */
static int deeper(int depth, int times)
{
    enum { LEAST = 3 };
    int64_t d = (int64_t)depth * times;
    return d < LEAST ? LEAST : d > DEEPEST ? DEEPEST : (int)d;
}

void gp_try_depth(gp_judging *j, int buffer)
{
    const gp_buffer_report *b = &j->r->buffer[buffer];
    gp_try(j, "buffers", b->name, "depth", deeper(b->depth, 2));
}

static bool is_around(const gp_judging *j, int i, int actor, int buffer)
{
    const gp_buffer_report *b = &j->r->buffer[i];
    return actor < 0 ? i == buffer : b->from == actor || b->to == actor;
}

/* What the file says counts: a plan may have made it more. A depth that several
 * buffers say for themselves takes more than one edit. */
void gp_try_deeper(gp_judging *j, int actor, int buffer, int times)
{
    const gp_buffer *least = NULL;
    bool same = false;                 /* another one is as shallow, and one of them says so */
    for (int i = 0; i < j->r->nbuffers; i++) {
        const gp_buffer *b = &j->g->buffer[j->r->buffer[i].buffer];
        if (!is_around(j, i, actor, buffer) || b == least)
            continue;
        if (least && b->depth == least->depth)
            same |= b->depth_said || least->depth_said;
        if (!least || b->depth < least->depth)
            least = b, same = false, j->r->verdict.buffer = i;
    }
    if (!least)
        return;
    int depth = deeper(least->depth, times);
    if (same)
        say(j, ": try depth %d for all buffers around it", depth);
    else if (least->depth_said)
        gp_try(j, "buffers", least->name, "depth", depth);
    else
        gp_try(j, NULL, NULL, "depth", depth);
}

/* ---- segments --------------------------------------------------------- */

void gp_try_streams(gp_judging *j, const gp_segment *s, int want)
{
    int most = s->depth;
    want = want > s->streams ? want : s->streams + 1;
    gp_try(j, NULL, NULL, "streams", want < most ? want : most);
}

bool gp_try_batch(gp_judging *j, const gp_actor_report *p)
{
    enum { TIMES = 4 };
    const gp_segment *s = &j->plan->segment[p->segment];
    gp_segment deep = *s;
    deep.depth *= TIMES;
    int half = gp_segment_batch(j->plan, s, s->depth > 1 ? s->depth / 2 : 1);
    if (j->g->batch && gp_segment_batch(j->plan, s, 0) > s->batch)
        gp_try_word(j, NULL, NULL, "batch", "auto");
    else if (half > s->batch)
        gp_try(j, NULL, NULL, "batch", half);
    else if (!j->g->batch && gp_segment_batch(j->plan, &deep, 0) > s->batch)
        gp_try_deeper(j, (int)(p - j->r->actor), -1, TIMES);
    else
        return false;
    return true;
}

/* ---- host stages ------------------------------------------------------ */

void gp_try_workers(gp_judging *j, gp_candidate load)
{
    const gp_actor_report *p = &j->r->actor[load.actor];
    double next = gp_busiest(j, load.actor).part, idle = j->r->cpus - gp_cores_used(j);
    int more = idle > 1 ? (int)(idle + 0.5) : 1, room = gp_least_depth(j, load.actor);
    int most = p->workers + more < p->most_workers ? p->workers + more : p->most_workers;
    double keeps_up = next > 0 ? p->workers * load.part / next : most;
    int want = keeps_up < most ? (int)(keeps_up + 0.999) : most;
    bool fits = room > p->workers;
    if (!fits) {
        gp_try_deeper(j, load.actor, -1, 2);
        room = deeper(room, 2);
    }
    want = want <= p->workers ? p->workers + 1 : want < room ? want : room;
    if (fits)
        gp_try(j, "stages", p->name, "workers", want);
    else
        say(j, ", and then workers: %d", want);
}

static bool is(const gp_stage *st, const char *kind)
{
    return !strcmp(st->kind->name, kind);
}

/* The field of an option; NULL: the kind has none of that name and type. */
static const void *field(const gp_stage *st, const char *name, gp_opt_type type)
{
    const gp_opt *o = gp_kind_opt(st->kind, name, type);
    return o ? (const char *)st->opts + o->off : NULL;
}

static bool is_png(const gp_stage *st)
{
    const gp_node *format = gp_node_get(st->node, "format");
    const char *const *path = field(st, "path", GP_OPT_PATH);
    if (format && strcmp(format->text, "auto"))
        return !strcmp(format->text, "png");
    size_t n = path && *path ? strlen(*path) : 0;
    return n >= 4 && !strcasecmp(*path + n - 4, ".png");
}

static void try_less_written(gp_judging *j, const gp_stage *st)
{
    const int64_t *compression = field(st, "compression", GP_OPT_INT);
    if (!is_png(st))
        say(j, ": write a smaller type, or less of each frame");
    else if (compression && *compression > 0)
        gp_try(j, "stages", st->name, "compression", *compression > 1);
    else
        say(j, ": write .npy, which needs no encoding");
}

static void try_less_lua(gp_judging *j, const gp_stage *st)
{
    const char *const *script = field(st, "script", GP_OPT_PATH);
    const char *slash = script ? strrchr(*script, '/') : NULL;
    if (!st->nin)
        say(j, ": a source has one worker; leave to a stage behind it what need not be in it");
    else if (st->serial)
        say(j, ": if it keeps nothing from frame to frame, say stateless = true in '%.60s', and "
            "then workers: 2; else divide it into two stages, or use a kernel",
            slash ? slash + 1 : *script);
    else
        say(j, ": a kernel, or LuaJIT, would do it in less time");
}

void gp_try_less(gp_judging *j, const gp_actor_report *p)
{
    const gp_stage *st = &j->g->stage[p->stage];
    if (is(st, "write"))
        try_less_written(j, st);
    else if (is(st, "lua"))
        try_less_lua(j, st);
    else if (is(st, "read"))
        say(j, is_png(st) ? ": store its frames as .npy, which need no decoding"
            : ": store a smaller type, and cast it on the device");
    else if (is(st, "generate"))
        say(j, ": fill: once makes frames that cost nothing, if all may be the same");
    else if (st->serial)
        say(j, ": it has one worker; divide it into two stages, or make it cheaper");
    else
        say(j, ": make it cheaper");
}
