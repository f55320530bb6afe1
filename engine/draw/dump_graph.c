/* dump_graph.c - the graph as text or JSON; a plan's dump begins with it. */
#include <string.h>
#include "base/plural.h"
#include "compile/loop.h"
#include "draw/dump.h"

static const char *const on_error_name[] = { "stop", "drop" };
static const char *const on_hole_name[] = { "reset", "splice" };

/* "auto" for 0. */
static const char *or_auto(int n, char buf[16])
{
    snprintf(buf, 16, "%d", n);
    return n ? buf : "auto";
}

/* ---- text ------------------------------------------------------------ */

void gp_dump_head(FILE *f, const gp_graph *g)
{
    char streams[16], batch[16];
    fprintf(f, "pipeline %s (%s)\n", g->name, g->file);
    fprintf(f, "  device   %s", g->device_name);
    if (g->device_why)
        fprintf(f, " (%s)", g->device_why);
    if (g->ranks > 1)
        fprintf(f, "\n  ranks    %d ranks: rank r makes frames r, r + %d, r + %d, ... of sources without 'shard: none'",
                g->ranks,
                g->ranks, 2 * g->ranks);
    fprintf(f, "\n  launch   %s, streams %s, batch %s", gp_launch_name[g->launch], or_auto(g->streams, streams),
            or_auto(g->batch, batch));
    if (g->batch_wait_ns)
        fprintf(f, " that waits up to %g ms", (double)g->batch_wait_ns / 1e6);
    if (g->latency_ns)
        fprintf(f, " for a latency of %g ms", (double)g->latency_ns / 1e6);
    fprintf(f, ", sync %s", gp_sync_name[g->sync]);
    fputs(g->copies == GP_COPIES_DMA ? ", copies dma\n" : g->copies ? ", copies mapped\n" : "\n", f);
    fprintf(f, "  errors   on_error %s, stall_timeout ", on_error_name[g->on_error]);
    if (g->stall_ns)
        fprintf(f, "%gs\n", (double)g->stall_ns / 1e9);
    else
        fputs("none\n", f);
}

static int widest(int w, const char *s)
{
    int n = (int)strlen(s);
    return n > w && n <= 24 ? n : w;
}

int gp_dump_width(const gp_graph *g)
{
    int w = 6;
    for (int i = 0; i < g->nstages; i++) {
        const gp_loop *l = gp_stage_loop(&g->stage[i]);
        w = widest(w, g->stage[i].name);
        for (int k = 0; l && k < l->graph->nstages; k++)
            w = widest(w, l->graph->stage[k].name);
    }
    for (int i = 0; i < g->nbuffers; i++)
        w = widest(w, g->buffer[i].name);
    return w;
}

/* "read 12 -> write 3, show 4": what comes of a source's frames of a period; some comes when it has ended. */
static void rates_text(FILE *f, const gp_graph *g)
{
    GP_ARENA(a);
    const bool *late = gp_late_stages(&a, g);
    fputs("\nrates\n", f);
    for (int v = 0; v < g->nstages; v++) {
        const gp_stage *from = &g->stage[v];
        const char *sep = " ->";
        if (from->nin)
            continue;
        fprintf(f, "  %s %lld", from->name, (long long)from->rate);
        for (int i = v + 1; i < g->nstages; i++) {
            const gp_stage *to = &g->stage[i];
            if (to->nout || !gp_comes_from(to, v))
                continue;
            if (late[i])
                fprintf(f, "%s %s at the end", sep, to->name);
            else
                fprintf(f, "%s %s %lld", sep, to->name, (long long)to->rate);
            sep = ",";
        }
        fputc('\n', f);
    }
}

/* A stage, what it reads, and makes. */
static void stage_text(FILE *f, const gp_graph *g, const gp_stage *s, int names, int kinds, const char *side)
{
    char type[GP_BOUNDS_TEXT];
    fprintf(f, "  %-*s  %-*s  %-10s ", names, s->name, kinds, s->states && gp_is_carry(s) ? "state" : s->kind->name,
            side);
    for (int k = 0; k < s->nin; k++)
        fprintf(f, "%s %s", k ? "," : "", s->in[k] < 0 ? "-" : gp_buffer_shown(&g->buffer[s->in[k]]));
    if (s->nout)
        fputs(" ->", f);
    for (int k = 0; k < s->nout; k++)
        if (s->out[k] >= 0)
            fprintf(f, "%s %s %s", k ? "," : "", gp_buffer_shown(&g->buffer[s->out[k]]),
                    gp_bounds_text(&g->buffer[s->out[k]].type, g->buffer[s->out[k]].varies, type));
}

/* What is to be said of a stage, behind its buffers. */
static void notes_text(FILE *f, const gp_stage *s)
{
    char note[GP_REGROUP_TEXT];
    if (*gp_stage_note(s, note))
        fprintf(f, "; %s", note);
    for (int k = 0; k < s->ninside; k++)
        fprintf(f, "%s %s", k ? "," : ", without", s->inside[k]);
    if (s->workers_auto)
        fprintf(f, "; %d worker%s (auto)", s->workers, gp_plural(s->workers));
    if (s->priority != GP_PRIORITY_NORMAL)
        fprintf(f, "; priority %s", gp_priority_name(s->priority));
    fputc('\n', f);
}

/* Writes why stages of the graph, and of the loops in it, are not fused. */
static void unfused_text(FILE *f, const gp_graph *g, int *n)
{
    for (int i = 0; i < g->nunfused; i++)
        fprintf(f, "%s  %s, %s: %s\n", (*n)++ ? "" : "\nstages that are not fused\n", g->unfused[i].from,
                g->unfused[i].to, g->unfused[i].why);
    for (int i = 0; i < g->nstages; i++)
        if (gp_stage_loop(&g->stage[i]))
            unfused_text(f, gp_stage_loop(&g->stage[i])->graph, n);
}

int *gp_dump_segments(gp_arena *a, const gp_graph *g, const gp_plan *p)
{
    int *segment = GP_NEW(a, int, g->nstages);
    for (int i = 0; i < g->nstages; i++)
        segment[i] = -1;
    for (int i = 0; p && i < p->ntasks; i++)
        if (p->task[i].stage >= 0)
            segment[p->task[i].stage] = p->task[i].segment;
    return segment;
}

void gp_dump_stages(FILE *f, const gp_graph *g, const gp_plan *p)
{
    int names = gp_dump_width(g), kinds = 0, unfused = 0;
    GP_ARENA(a);
    for (int i = 0; i < g->nprologue; i++)
        kinds = widest(kinds, g->prologue[i].kind->name);
    for (int i = 0; i < g->nstages; i++)
        kinds = widest(kinds, g->stage[i].kind->name);
    const int *segment = gp_dump_segments(&a, g, p);
    fputs("\nstages\n", f);
    for (int i = 0; i < g->nprologue; i++) {
        stage_text(f, g, &g->prologue[i], names, kinds, "once");
        fputc('\n', f);
    }
    for (int i = 0; i < g->nstages; i++) {
        const gp_stage *s = &g->stage[i];
        char side[40];
        if (s->device && p)
            snprintf(side, sizeof side, "segment %d", segment[i]);
        else if (s->workers > 1)
            snprintf(side, sizeof side, "host x %d", s->workers);
        else
            snprintf(side, sizeof side, s->device ? "device" : "host");
        stage_text(f, g, s, names, kinds, side);
        notes_text(f, s);
        const gp_loop *l = gp_stage_loop(s);
        for (int k = 0; l && k < l->graph->nstages; k++) {
            fputs("  ", f);
            stage_text(f, l->graph, &l->graph->stage[k], names - 2, kinds, "in loop");
            notes_text(f, &l->graph->stage[k]);
        }
    }
    unfused_text(f, g, &unfused);
    if (gp_rates_differ(g))
        rates_text(f, g);
}

/* Its size, depth, who fills and reads it. */
static void buffer_text(FILE *f, const gp_graph *g, int i)
{
    const gp_buffer *b = &g->buffer[i];
    char size[24], text[32];
    fprintf(f, "%9s", gp_size_text(gp_bytes(&b->type), size));
    if (b->given)
        fputs("  from outside ->", f);
    else if (b->producer.stage < 0)
        fprintf(f, "  constant  %s ->", gp_const_text(b, text));
    else
        fprintf(f, "  depth %-3d  %s ->", b->depth, g->stage[b->producer.stage].name);
    const char *sep = " ";
    for (int k = 0; b->in_prologue && k < g->nprologue; k++)
        for (int p = 0; p < g->prologue[k].nin; p++)
            if (g->prologue[k].in[p] == i)
                fprintf(f, "%s%s", sep, g->prologue[k].name), sep = ", ";
    for (int u = 0; u < b->nuse; u++, sep = ", ")
        fprintf(f, "%s%s", sep, g->stage[b->use[u].stage].name);
    fputc('\n', f);
}

bool gp_dump_buffer(FILE *f, const gp_graph *g, const char *name)
{
    char type[GP_BOUNDS_TEXT];
    GP_ARENA(a);
    bool found = false;
    for (int i = 0; i < g->nbuffers && !found; i++) {
        const gp_buffer *b = &g->buffer[i];
        if (b->hidden || strcmp(b->name, name))
            continue;
        found = true;
        fprintf(f, "%s  %s  ", name, gp_bounds_text(&b->type, b->varies, type));
        buffer_text(f, g, i);
        if (gp_rates_differ(g) && b->producer.stage >= 0)
            fprintf(f, "%lld frame%s per %s\n", (long long)b->rate, gp_plural(b->rate), gp_period_text(&a, g));
    }
    for (int i = 0; i < g->nstages && !found; i++)
        if (gp_stage_loop(&g->stage[i]) && (found = gp_dump_buffer(f, gp_stage_loop(&g->stage[i])->graph, name)))
            fprintf(f, "in each iteration of '%s'\n", g->stage[i].name);
    return found;
}

static void graph_text(FILE *f, const gp_graph *g)
{
    int width = gp_dump_width(g);
    gp_dump_head(f, g);
    gp_dump_stages(f, g, NULL);
    fputs("\nbuffers\n", f);
    for (int i = 0; i < g->nbuffers; i++) {
        fprintf(f, "  %-*s  ", width, g->buffer[i].name);
        buffer_text(f, g, i);
    }
}

/* ---- JSON ------------------------------------------------------------ */

static void names(gp_json *j, const char *key, const gp_graph *g, const int *v, int n)
{
    GP_JSON_EACH(j, key, i, n)
        gp_json_str(j, NULL, v[i] < 0 ? NULL : g->buffer[v[i]].name);
}

static void axes_json(gp_json *j, const char *key, gp_dim3 d)
{
    const int v[3] = { (int)d.x, (int)d.y, (int)d.z };
    gp_json_ints(j, key, v, d.x ? 3 : 0);
}

static void regroup_json(gp_json *j, const gp_regroup *r)
{
    gp_json_put(j, "regroup: {step: %jd, repeat: %jd, take: %jd, back: %jd, make: %jd, stack: %d?, split: %d?, "
                "drop_tail: %d?", r->step, r->repeat, r->take, r->back, r->make, r->stack, r->split, r->drop_tail);
    if (r->every == INT64_MAX)
        gp_json_str(j, "every", NULL);         /* one frame of all */
    else
        gp_json_int(j, "every", r->every);
    gp_json_put(j, "drop_partial: %d?}", r->drop_partial);
}

static void loop_json(gp_json *j, const gp_loop *l);

static void stage_json(gp_json *j, const gp_graph *g, const gp_stage *s, bool rates)
{
    gp_json_put(j, "{name: %s, use: %s, on: %s, line: %d, workers: %d, workers_auto: %d?, priority: %s", s->name,
                s->kind->name, s->device ? "device" : "host", s->at.line, s->workers, s->workers_auto,
                gp_priority_name(s->priority));
    names(j, "in", g, s->in, s->nin);
    names(j, "out", g, s->out, s->nout);
    gp_json_put(j, "zero: %d?, on_hole: %s, on_error: %s, endless: %d?, batched: %d?, frame_info: %d?, scratch: %zu, "
                "state: %zu, table: %zu", s->zero, on_hole_name[s->on_hole],
                on_error_name[s->device ? g->on_error : s->on_error], s->endless, s->batched, s->frame_info, s->scratch,
                s->state, s->table);
    if (s->does)
        gp_json_str(j, "does", s->does);
    axes_json(j, "block", s->block);
    axes_json(j, "grid", s->grid);
    if (s->nparts) {
        gp_json_strs(j, "fused", s->part, s->nparts);
        gp_json_strs(j, "inside", s->inside, s->ninside);
    }
    if (s->regroups)
        regroup_json(j, &s->regroup);
    if (gp_stage_loop(s))
        loop_json(j, gp_stage_loop(s));
    if (rates)
        gp_json_int(j, "rate", s->rate);
    gp_json_close(j, '}');
}

static void loop_json(gp_json *j, const gp_loop *l)
{
    gp_json_put(j, "loop: {times: %jd, steps: %jd, until: %s, every: %jd, carry: {", l->times, l->steps,
                l->flag < 0 ? NULL : l->graph->buffer[l->flag].name, l->every);
    for (int i = 0; i < l->graph->nbuffers; i++)
        if (l->buffer[i].carries >= 0)
            gp_json_str(j, l->graph->buffer[i].name, l->graph->buffer[l->buffer[i].carries].name);
    gp_json_close(j, '}');
    GP_JSON_EACH(j, "stages", i, l->graph->nstages)
        stage_json(j, l->graph, &l->graph->stage[i], false);
    gp_json_close(j, '}');
}

static void buffer_json(gp_json *j, const gp_graph *g, const gp_buffer *b, bool rates)
{
    char text[32];
    gp_json_put(j, "{name: %s, line: %d, dtype: %s", b->name, b->at.line, gp_dtype_name(b->type.dtype));
    GP_JSON_EACH(j, "shape", k, b->type.ndim)
        gp_json_int(j, NULL, b->type.dim[k]);
    if (b->varies) {
        gp_json_open(j, "varies", '[');        /* axes in which a frame may be shorter */
        for (int k = 0; k < b->type.ndim; k++)
            if (b->varies >> k & 1)
                gp_json_int(j, NULL, k);
        gp_json_close(j, ']');
    }
    gp_json_put(j, "bytes: %zu, depth: %d, depth_said: %d?, const: %s, from: %s", gp_bytes(&b->type), b->depth,
                b->depth_said, b->producer.stage < 0 ? gp_const_text(b, text) : NULL,
                b->producer.stage < 0 ? NULL : g->stage[b->producer.stage].name);
    GP_JSON_EACH(j, "to", u, b->nuse)
        gp_json_str(j, NULL, g->stage[b->use[u].stage].name);
    gp_json_bool(j, "endless", b->endless);
    if (rates && b->producer.stage >= 0)
        gp_json_int(j, "rate", b->rate);
    gp_json_close(j, '}');
}

void gp_dump_graph_members(gp_json *j, const gp_graph *g)
{
    bool rates = gp_rates_differ(g);
    gp_json_put(j, "pipeline: %s, file: %s, device: %s, device_why: %s, streams: %d, batch: %d, batch_wait_ns: %jd, "
                "latency_ns: %jd, launch: %s, sync: %s, on_error: %s, stall_timeout_ns: %jd", g->name, g->file,
                g->device_name, g->device_why, g->streams, g->batch, g->batch_wait_ns, g->latency_ns,
                gp_launch_name[g->launch], gp_sync_name[g->sync], on_error_name[g->on_error], g->stall_ns);
    GP_JSON_EACH(j, "stages", i, g->nstages)
        stage_json(j, g, &g->stage[i], rates);
    GP_JSON_EACH(j, "prologue", i, g->nprologue)
        stage_json(j, g, &g->prologue[i], false);
    gp_json_bool(j, "fuse", g->fuse);
    GP_JSON_EACH(j, "unfused", i, g->nunfused)
        gp_json_put(j, "{from: %s, to: %s, why: %s}", g->unfused[i].from, g->unfused[i].to, g->unfused[i].why);
    GP_JSON_EACH(j, "buffers", i, g->nbuffers)
        buffer_json(j, g, &g->buffer[i], rates);
}

void gp_dump_graph(FILE *f, const gp_graph *g, gp_dump how)
{
    gp_json j = { .f = f };
    if (how == GP_DUMP_TEXT) {
        graph_text(f, g);
    } else {
        gp_json_open(&j, NULL, '{');
        gp_dump_graph_members(&j, g);
        gp_json_close(&j, '}');
    }
}
