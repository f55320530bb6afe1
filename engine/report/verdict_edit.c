/* verdict_edit.c - what to change once it is known what bounds a run: an edit that
 * `--set` takes, where there is one, or else what can be done, in words. */
#include <inttypes.h>
#include <string.h>
#include "compile/firing.h"
#include "report/verdict.h"

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

static void try(gp_judging *j, const char *group, const char *name, const char *key, int64_t value)
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
    return d < LEAST ? LEAST : d > GP_DEEPEST ? GP_DEEPEST : (int)d;
}

/* Has a buffer more slots now than with this depth for all, as its workers, or launches of many small frames, need? */
static bool takes_slots(const gp_judging *j, int depth)
{
    bool takes = false;
    for (const gp_ring *r = j->plan->ring; r < j->plan->ring + j->plan->nrings && !j->g->depth; r++) {
        const gp_buffer *b = r->buffer < 0 || r->segment >= 0 ? NULL : &j->g->buffer[r->buffer];
        takes |= b && !b->depth_said && r->given > gp_default_slots(j->g, b, depth);
    }
    return takes;
}

/* The depth for all, in place of what `followed` says of them. False: it is not what would help. */
static bool try_for_all(gp_judging *j, int followed, int times)
{
    int depth = followed ? deeper(followed, times) : 0;
    if (!depth || takes_slots(j, depth))
        return false;
    try(j, NULL, NULL, "depth", depth);
    return true;
}

void gp_try_depth(gp_judging *j, int buffer)
{
    const gp_buffer_report *b = &j->r->buffer[buffer];
    int followed = gp_followed_depth(j, buffer);
    if (j->g->buffer[b->buffer].hidden)
        try_for_all(j, followed ? followed : b->depth, 2);
    else
        try(j, "buffers", b->name, "depth", deeper(b->depth, 2));
}

static bool is_around(const gp_judging *j, int i, int actor, int buffer)
{
    const gp_buffer_report *b = &j->r->buffer[i];
    return actor < 0 ? i == buffer : b->from == actor || b->to == actor;
}

int gp_times_for(int depth, int64_t frames)
{
    enum { MOST = 4 };                 /* memory grows as much */
    int64_t times = depth > 0 ? (frames + depth - 1) / depth : MOST;
    return times < 2 ? 2 : times < MOST ? (int)times : MOST;
}

/* A depth that several buffers say for themselves takes more than one edit. */
void gp_try_deeper(gp_judging *j, int actor, int buffer, int times)
{
    const gp_buffer *least = NULL;
    bool same = false, slots = true;   /* another one is as shallow, and one of them says so; its slots too */
    int fewest = 0;
    for (int i = 0; i < j->r->nbuffers; i++) {
        const gp_buffer *b = &j->g->buffer[j->r->buffer[i].buffer];
        if (!is_around(j, i, actor, buffer) || b == least)
            continue;
        int given = gp_given_depth(j, i), turns = gp_turns_of(j, &j->r->buffer[i], given);
        if (least && turns == fewest)
            same |= b->depth_said || least->depth_said, slots &= given == gp_given_depth(j, j->r->verdict.buffer);
        if (!least || turns < fewest)
            least = b, fewest = turns, same = false, slots = true, j->r->verdict.buffer = i;
    }
    if (!least)
        return;
    int turns = deeper(fewest, times), depth = gp_depth_for(j, &j->r->buffer[j->r->verdict.buffer], turns);
    int followed = gp_followed_depth(j, j->r->verdict.buffer);
    if (same && slots)
        say(j, ": try depth %d for all buffers around it", depth);
    else if (same)
        say(j, ": try %d times the depth for all buffers around it", turns / fewest);
    else if (try_for_all(j, followed, times))
        return;
    else if (least->hidden)
        say(j, ": try a larger depth there");
    else
        try(j, "buffers", least->name, "depth", depth);
}

/* ---- segments --------------------------------------------------------- */

void gp_try_streams(gp_judging *j, const gp_segment *s, int want)
{
    int most = s->depth / s->place.lanes;
    want = want > s->streams ? want : s->streams + 1;
    try(j, NULL, NULL, "streams", want < most ? want : most);
}

/* Has it as many slots as launches of many frames need, which were not given for any other reason? */
static bool is_deep_for_launches(const gp_judging *j, const gp_segment *s)
{
    bool is = false;
    for (int i = 0; i < s->nin; i++)
        is |= j->plan->ring[s->in[i]].why == GP_DEPTH_BY_LAUNCHES;
    return is;
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
        try(j, NULL, NULL, "batch", half);
    else if (!j->g->batch && !is_deep_for_launches(j, s) && gp_segment_batch(j->plan, &deep, 0) > s->batch)
        gp_try_deeper(j, (int)(p - j->r->actor), -1, TIMES);
    else
        return false;
    return true;
}

/* ---- host stages ------------------------------------------------------ */

void gp_try_workers(gp_judging *j, gp_candidate c)
{
    const gp_actor_report *p = &j->r->actor[c.actor];
    double next = gp_busiest(j, c.actor).part, idle = gp_cores_free(j);
    int more = idle > 1 ? (int)(idle + 0.5) : 1, depth = gp_least_depth(j, c.actor);
    int most = p->workers + more < p->most_workers ? p->workers + more : p->most_workers;
    double keeps_up = next > 0 ? p->workers * c.part / next : most;
    int want = keeps_up < most ? (int)(keeps_up + 0.999) : most;
    bool fits = depth > p->workers;
    if (!fits) {
        int times = gp_times_for(depth, want);
        gp_try_deeper(j, c.actor, -1, times);
        depth = deeper(depth, times);
    }
    want = want <= p->workers ? p->workers + 1 : want < depth ? want : depth;
    if (fits)
        try(j, "stages", p->name, "workers", want);
    else
        say(j, ", and then workers: %d", want);
}

static gp_type type_of(const gp_graph *g, int buffer)
{
    return buffer >= 0 ? g->buffer[buffer].type : (gp_type){ 0 };
}

/* What the stage's kind says of itself. */
static void ask_kind(const gp_graph *g, const gp_stage *st, gp_advice *a)
{
    gp_type in[GP_MAXPORT], out[GP_MAXPORT];
    for (int i = 0; i < st->nin; i++)
        in[i] = type_of(g, st->in[i]);
    for (int o = 0; o < st->nout; o++)
        out[o] = type_of(g, st->out[o]);
    *a = (gp_advice){ .opts = st->opts, .user = st->kind->user, .nin = st->nin, .nout = st->nout,
                      .in = in, .out = out, .serial = st->serial };
    if (st->kind->advise)
        st->kind->advise(a);
    a->in = a->out = NULL;
    a->value[sizeof a->value - 1] = a->text[sizeof a->text - 1] = '\0';
}

/* The advice for an exchange, which cannot have more workers, as all ranks take part in it. */
static const char CHEAPER[] = "let the ranks exchange less, or more at a time";

void gp_exchange_less(const gp_judging *j, const gp_stage *st, char *buf, size_t bytes)
{
    gp_advice a;
    ask_kind(j->g, st, &a);
    snprintf(buf, bytes, "%s", st->kind->collective && *a.text ? a.text : CHEAPER);
}

void gp_try_less(gp_judging *j, const gp_actor_report *p)
{
    const gp_stage *st = &j->g->stage[p->stage];
    gp_advice a;
    ask_kind(j->g, st, &a);
    if (st->cycle)
        say(j, ": it needs the frame before, and so takes one after the other; take out of it what does not need that");
    else if (a.opt && *a.value && gp_option_takes(st->kind, a.opt, a.value))
        gp_try_word(j, "stages", st->name, a.opt, a.value);
    else if (*a.text)
        say(j, ": %s", a.text);
    else if (st->kind->collective)
        say(j, ": %s", CHEAPER);
    else if (st->regroups)
        say(j, ": it only copies frames; make them smaller");
    else if (st->serial)
        say(j, ": it has one worker; divide it into two stages, or make it cheaper");
    else
        say(j, ": make it cheaper");
}

/* Not all that keep a pace can be told another. */
void gp_try_unpaced(gp_judging *j, const gp_actor_report *p)
{
    if (gp_kind_opt(j->g->stage[p->stage].kind, "rate", GP_OPT_FLOAT))
        try(j, "stages", p->name, "rate", 0);
}
