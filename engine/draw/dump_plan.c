/* dump_plan.c - the plan as text, DOT or JSON. */
#include <string.h>
#include "base/plural.h"
#include "compile/firing.h"
#include "draw/dump.h"

static const char *const op_name[] = { "host", "copy in", "stage", "copy out", "peer copy" };
static const char *const extra_name[] = { "const", "table", "state", "scratch" };

static const char *ring_name(const gp_plan *p, int ring)
{
    return ring < 0 || p->ring[ring].buffer < 0 ? "(frame infos)"
                                                : gp_buffer_shown(&p->graph->buffer[p->ring[ring].buffer]);
}

/* ---- text ------------------------------------------------------------ */

/* The most workers of a stage at an end of the buffer. */
static int most_workers(const gp_graph *g, const gp_buffer *b)
{
    int most = g->stage[b->producer.stage].workers;
    for (int u = 0; u < b->nuse; u++)
        most = g->stage[b->use[u].stage].workers > most ? g->stage[b->use[u].stage].workers : most;
    return most;
}

/* Why a ring has its depth, as "you asked for 5; segments need 3 * 2^k", in a caller's buffer; returns it. */
static char *why_text(const gp_plan *p, const gp_ring *r, char buf[96])
{
    static const char *const asis[] = {
        "you asked for it", "default", "default of frames below %s", "default beside large frames or long work",
        "memory is scarce", "the rates of stages need it", "%d worker%s need%s it",
        "default of small frames on a device: a launch takes many", "others wait in a queue before it",
        "twice that of its segment, as the frame before is read there" };
    static const char *const given[] = {
        "you asked for %d", "default %d", "default %d", "default %d", "%d, as memory is scarce",
        "the rates of stages need %d", "%d worker%s need%s %d", "default %d, so that a launch takes many",
        "%d: others wait in a queue before it", "%d" };
    const gp_buffer *b = &p->graph->buffer[r->buffer];
    int n = most_workers(p->graph, b);
    bool is = r->depth == r->given, turns = r->turns > 1;
    const char *form = (is ? asis : given)[r->why];
    if (r->why == GP_DEPTH_BY_SMALL && is)
        n = snprintf(buf, 96, form, gp_on_device(p->graph, b) ? "1 MiB" : "128 KiB");
    else
        n = r->why == GP_DEPTH_BY_WORKERS ? snprintf(buf, 96, form, n, gp_plural(n), n == 1 ? "s" : "", r->given)
                                          : snprintf(buf, 96, form, r->given);
    if (r->unit && r->depth != r->given * r->turns)
        n += snprintf(buf + n, 96 - (size_t)n, "; segments need %d * 2^k", r->unit);
    else if (!r->unit && !is)
        n += snprintf(buf + n, 96 - (size_t)n, r->segment < 0 ? "; its copy has %d" : "; its segment has %d", r->depth);
    if (turns && r->unit)
        snprintf(buf + n, 96 - (size_t)n, " on each of %d devices", r->turns);
    return buf;
}

/* Those that are not what the file says of the buffer. */
static void depths_text(FILE *f, const gp_plan *p, int width)
{
    char why[96];
    const char *title = "\ndepths\n";
    for (int i = 0; i < p->nrings && p->ring[i].buffer >= 0; i++) {
        const gp_ring *r = &p->ring[i];
        bool asked = (r->depth == r->given && r->why == GP_DEPTH_BY_ASKED) || r->before >= 0 || p->pool[r->pool].one;
        if (asked || (i && r[-1].buffer == r->buffer))
            continue;
        fprintf(f, "%s  %-*s  depth %d (%s)\n", title, width, p->graph->buffer[r->buffer].name, r->depth,
                why_text(p, r, why));
        title = "";
    }
}

static const char *memory_text(const gp_plan *p, const gp_ring *r)
{
    const gp_pool *q = &p->pool[r->pool];
    return q->managed ? " (managed)" : q->pinned ? " (pinned)" : "";
}

/* Where a buffer's slots are: the rings of one buffer are neighbors, and come
 * in the order of buffers. Returns the first ring of the next. */
static int buffer_text(FILE *f, const gp_plan *p, int ring, int width)
{
    int buffer = p->ring[ring].buffer;
    const gp_buffer *b = &p->graph->buffer[buffer];
    char size[24], place[24];
    const char *sep = "  ";
    size_t all = 0;
    if (b->state && b->state != b->name)       /* in the place of the state */
        return ring + 1;
    fprintf(f, "  %-*s  %9s  ", width, b->name, gp_size_text(gp_bytes(&b->type), size));
    fprintf(f, b->state ? "state    " : "depth %-3d", p->ring[ring].depth);
    for (; ring < p->nrings && p->ring[ring].buffer == buffer; ring++, sep = ", ") {
        const gp_ring *r = &p->ring[ring];
        all = gp_size_add(all, (size_t)r->depth * gp_bytes(&b->type));
        if (r->before >= 0)
            fprintf(f, "%sthe slots of %s", sep, p->graph->buffer[p->ring[r->before].buffer].name);
        else if (r->segment < 0)
            fprintf(f, "%s%s%s", sep, gp_place_text(p, r->place, place), memory_text(p, r));
        else
            fprintf(f, "%ssegment %d%s", sep, r->segment, memory_text(p, r));
    }
    if (b->varies)                     /* each slot is for the largest frame */
        fprintf(f, ", %s in all", gp_size_text(all, size));
    fputc('\n', f);
    return ring;
}

static void buffers_text(FILE *f, const gp_plan *p, int width)
{
    char size[24], place[24];
    fputs("\nbuffers\n", f);
    for (int r = 0; r < p->nrings && p->ring[r].buffer >= 0;)
        r = buffer_text(f, p, r, width);
    for (int i = 0; i < p->nextras; i++) {
        const gp_extra *e = &p->extra[i];
        if (e->use == GP_EXTRA_CONST)
            fprintf(f, "  %-*s  %9s  constant   %s%s\n", width, p->graph->buffer[e->buffer].name,
                    gp_size_text(e->bytes, size), gp_place_text(p, e->place, place), e->managed ? " (managed)" : "");
    }
    depths_text(f, p, width);
}

static void extra_text(FILE *f, const gp_plan *p, int extra)
{
    char size[24];
    if (extra >= 0)
        fprintf(f, ", %s %s", gp_size_text(p->extra[extra].bytes, size),
                extra_name[p->extra[extra].use]);
}

/* ", grid [32, 96]", as it would stand in YAML. */
static void axes_text(FILE *f, const char *name, gp_dim3 d)
{
    if (d.z > 1)
        fprintf(f, ", %s [%u, %u, %u]", name, d.x, d.y, d.z);
    else if (d.y > 1)
        fprintf(f, ", %s [%u, %u]", name, d.x, d.y);
    else if (d.x)
        fprintf(f, ", %s %u", name, d.x);
}

/* By gp_copying. */
static const char *const copying_text[] = { "", ", by a kernel", ", mapped: kernels use the host's memory" };

static void task_text(FILE *f, const gp_plan *p, int task, int width)
{
    const gp_task *t = &p->task[task];
    char size[24], place[24], note[GP_REGROUP_TEXT];
    bool copy = t->stage < 0;
    fprintf(f, "  %4d  %-*s  ", task, width,
            copy ? op_name[t->op] : p->graph->stage[t->stage].name);
    for (int i = 0; i < t->nin; i++) {
        int konst = copy ? -1 : t->konst[i];
        fprintf(f, "%s%s", i ? ", " : "",
                konst >= 0 ? p->graph->buffer[p->extra[konst].buffer].name
                : t->in[i] >= 0 ? ring_name(p, t->in[i]) : "-");
    }
    for (int i = 0; i < t->nout && !copy; i++)
        if (t->out[i] >= 0)
            fprintf(f, "%s%s", i ? ", " : " -> ", ring_name(p, t->out[i]));
    if (copy)
        fprintf(f, ", %s%s", gp_size_text(gp_copy_bytes(p, t), size), copying_text[t->copying]);
    if (copy && t->copying && t->copied_most < p->segment[t->segment].batch)
        fprintf(f, " in launches of at most %d frame%s", t->copied_most, gp_plural(t->copied_most));
    if (t->op == GP_TASK_COPY_PEER)
        fprintf(f, ", from %s", gp_place_text(p, p->ring[t->in[0]].place, place));
    else if (t->op == GP_TASK_COPY_IN && gp_comes_from_device(p, t))
        fputs(", from another device through the host", f);
    if (!copy) {
        axes_text(f, "block", p->graph->stage[t->stage].block);
        axes_text(f, "grid", p->graph->stage[t->stage].grid);
    }
    if (!copy && *gp_stage_note(&p->graph->stage[t->stage], note))
        fprintf(f, "; %s", note);
    extra_text(f, p, t->state);
    extra_text(f, p, t->table);
    extra_text(f, p, t->scratch);
    for (int i = 0; i < t->ndeps; i++)
        fprintf(f, "%s %d", i ? "," : "; after", t->dep[i]);
    fputc('\n', f);
}

/* Up to which size kernels copy, where that is not as the file says, and why. */
static void copying_text_of(FILE *f, const gp_plan *p, const gp_segment *s)
{
    char size[2][24];
    bool measured = false, any = false;
    for (int i = 0; i < s->ntasks; i++)
        any |= p->task[s->task[i]].copying != GP_COPY_DMA;
    if (!any || p->graph->copies != GP_COPIES_AUTO)
        return;
    for (int k = 0; k < 2; k++)
        gp_size_text(gp_copying_most(&p->graph->device[s->place.index].info, GP_COPY_KERNEL + k, &measured), size[k]);
    fprintf(f, "     copies: auto, up to %s of a launch by a kernel, up to %s mapped, %s\n", size[0], size[1],
            measured ? "as 'gpipe machine --measure' found for this GPU" : "as usual");
}

static void segment_text(FILE *f, const gp_plan *p, int k, int width)
{
    const gp_segment *s = &p->segment[k];
    bool regroups = s->regroups >= 0;
    const char *what = regroups ? "firing" : "frame";
    char place[24];
    int64_t execs = gp_segment_execs(s);
    int least = (int)strlen(op_name[p->copy_peer_bytes ? GP_TASK_COPY_PEER : GP_TASK_COPY_OUT]);
    fprintf(f, "\nsegment %d on %s: %d %s%s in flight, %d stream%s%s, at most %d %s%s a launch", k,
            gp_place_text(p, s->place, place), s->depth, what, gp_plural(s->depth), s->streams, gp_plural(s->streams),
            s->place.lanes > 1 ? " on each" : "", s->batch, what, gp_plural(s->batch));
    bool sparse = p->graph->launch == GP_LAUNCH_GRAPH && !regroups && !s->each_shape && s->uncaptured < 0 && s->sparse;
    if (regroups || s->each_shape || s->uncaptured >= 0 || sparse)
        fputs(p->graph->launch == GP_LAUNCH_STREAM ? "" : ", no graphs", f);
    else if (p->graph->launch == GP_LAUNCH_GRAPH)
        fprintf(f, ", %lld exec%s", (long long)execs, gp_plural(execs));
    fputc('\n', f);
    copying_text_of(f, p, s);
    if (s->uncaptured >= 0 && p->graph->launch != GP_LAUNCH_STREAM)
        fprintf(f, "     what '%s' calls cannot be part of a graph\n", p->graph->stage[s->uncaptured].name);
    if (sparse)
        fprintf(f, "     a slot comes again after %d frames, so that graphs would be built for little\n", s->period);
    if (s->priorities && p->graph->ndevices && !p->graph->device[0].pretend)       /* of each kernel its stage's */
        fputs("     priorities of its stages\n", f);
    else if (s->priority != GP_PRIORITY_NORMAL)
        fprintf(f, "     priority %s\n", gp_priority_name(s->priority));
    for (int i = 0; i < s->ntasks; i++)
        task_text(f, p, s->task[i], width < least ? least : width);
}

static void plan_text(FILE *f, const gp_plan *p)
{
    char a[24], b[24];
    int width = gp_dump_width(p->graph);
    gp_dump_head(f, p->graph);
    gp_dump_stages(f, p->graph, p);
    buffers_text(f, p, width);
    for (int k = 0; k < p->nsegments; k++)
        segment_text(f, p, k, width);
    fprintf(f, "\nmemory\n  host     %9s", gp_size_text(p->host_bytes, a));
    if (p->pinned_bytes)
        fprintf(f, ", of it pinned %s", gp_size_text(p->pinned_bytes, b));
    fputc('\n', f);
    if (p->unified)
        return;
    for (int i = 0; i < p->graph->ndevices; i++)
        fprintf(f, "  %-7s  %9s\n", p->graph->device[i].name, gp_size_text(p->on_device[i], a));
    GP_ARENA(arena);
    fprintf(f, "\nPCIe per %s\n  to %s %s, back %s\n", gp_period_text(&arena, p->graph), p->graph->device_name,
            gp_size_text(p->copy_in_bytes, a), gp_size_text(p->copy_out_bytes, b));
    if (p->copy_peer_bytes)
        fprintf(f, "  directly between devices %s\n", gp_size_text(p->copy_peer_bytes, a));
}

/* ---- JSON ------------------------------------------------------------ */

static const char *buffer_name(const gp_plan *p, int buffer)
{
    return buffer < 0 ? NULL : p->graph->buffer[buffer].name;
}

static const char *stage_name(const gp_plan *p, int stage)
{
    return stage < 0 ? NULL : p->graph->stage[stage].name;
}

static void ring_json(gp_json *j, const gp_plan *p, const gp_ring *r)
{
    char why[96], place[24];
    gp_json_put(j, "{buffer: %s, place: %s, depth: %d, why: %s, bytes: %zu, pool: %d, offset: %zu, producer: %d",
                buffer_name(p, r->buffer), gp_place_text(p, r->place, place), r->depth,
                r->buffer < 0 ? NULL : why_text(p, r, why), r->bytes, r->pool, r->offset, r->producer);
    gp_json_ints(j, "consumers", r->consumer, r->nconsumers);
    gp_json_put(j, "segment: %d, before: %d}", r->segment, r->before);
}

static const char *const copying_name[] = { "dma", "kernels", "mapped" };

static void task_json(gp_json *j, const gp_plan *p, const gp_task *t)
{
    gp_json_put(j, "{op: %s, stage: %s, segment: %d", op_name[t->op], stage_name(p, t->stage), t->segment);
    gp_json_ints(j, "in", t->in, t->nin);
    gp_json_ints(j, "out", t->out, t->nout);
    gp_json_ints(j, "after", t->dep, t->ndeps);
    gp_json_put(j, "copying: %s, copied_most: %d?, from_pool: %d, to_pool: %d, state: %d, table: %d, scratch: %d", t->stage < 0 ? copying_name[t->copying] : NULL, t->copied_most, t->from_pool, t->to_pool, t->state,
                t->table, t->scratch);
    gp_json_ints(j, "const", t->konst, t->stage < 0 ? 0 : t->nin);
    gp_json_close(j, '}');
}

static void segment_json(gp_json *j, const gp_plan *p, const gp_segment *s)
{
    char place[24];
    gp_json_put(j, "{place: %s", gp_place_text(p, s->place, place));
    gp_json_ints(j, "tasks", s->task, s->ntasks);
    gp_json_ints(j, "in", s->in, s->nin);
    gp_json_ints(j, "out", s->out, s->nout);
    gp_json_put(j, "depth: %d, period: %d, streams: %d, batch: %d, execs: %jd, uncaptured: %s, priority: %s, "
                "info_host: %d, info_dev: %d}", s->depth, s->period, s->streams, s->batch, gp_segment_execs(s),
                stage_name(p, s->uncaptured), gp_priority_name(s->priority), s->info_host, s->info_dev);
}

static void pool_json(gp_json *j, const gp_plan *p, const gp_pool *q)
{
    char place[24];
    gp_json_put(j, "{place: %s, pinned: %d?, managed: %d?, depth: %d, stride: %zu}", gp_place_text(p, q->place, place),
                q->pinned, q->managed, q->depth, q->stride);
}

static void extra_json(gp_json *j, const gp_plan *p, const gp_extra *e)
{
    char place[24];
    gp_json_put(j, "{use: %s, place: %s, managed: %d?, buffer: %s, stage: %s, bytes: %zu, stride: %zu}",
                extra_name[e->use], gp_place_text(p, e->place, place), e->managed, buffer_name(p, e->buffer),
                stage_name(p, e->stage), e->bytes, e->stride);
}

static void actor_json(gp_json *j, const gp_plan *p, const gp_actor *q)
{
    if (q->kind == GP_ACTOR_HOST)
        gp_json_put(j, "{stage: %s}", stage_name(p, q->stage));
    else
        gp_json_put(j, "{segment: %d}", q->segment);
}

static void plan_json(FILE *f, const gp_plan *p)
{
    gp_json *j = &(gp_json){ .f = f };
    gp_json_open(j, NULL, '{');
    gp_dump_graph_members(j, p->graph);
    gp_json_bool(j, "unified", p->unified);
    GP_JSON_EACH(j, "actors", i, p->nactors)
        actor_json(j, p, &p->actor[i]);
    GP_JSON_EACH(j, "segments", i, p->nsegments)
        segment_json(j, p, &p->segment[i]);
    GP_JSON_EACH(j, "tasks", i, p->ntasks)
        task_json(j, p, &p->task[i]);
    GP_JSON_EACH(j, "rings", i, p->nrings)
        ring_json(j, p, &p->ring[i]);
    GP_JSON_EACH(j, "pools", i, p->npools)
        pool_json(j, p, &p->pool[i]);
    GP_JSON_EACH(j, "extras", i, p->nextras)
        extra_json(j, p, &p->extra[i]);
    gp_json_put(j, "total: {host_bytes: %zu, pinned_bytes: %zu, device_bytes: %zu, copy_in_bytes: %zu, "
                "copy_out_bytes: %zu, copy_peer_bytes: %zu}}", p->host_bytes, p->pinned_bytes, p->device_bytes,
                p->copy_in_bytes, p->copy_out_bytes, p->copy_peer_bytes);
}

void gp_dump_plan(FILE *f, const gp_plan *p, gp_dump how)
{
    if (how == GP_DUMP_TEXT)
        plan_text(f, p);
    else
        plan_json(f, p);
}
