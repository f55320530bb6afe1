/* measured.c - a report read again. JSON is YAML: the reader of YAML reads it.
 *
 * What it names must be in the pipeline, and the pipeline's host stages in it. Of a run on
 * another device than the plan's, times of segments and copies are left out: they are not
 * what this plan would take. */
#include <math.h>
#include <string.h>
#include "draw/dump.h"
#include "base/table.h"
#include "base/yaml.h"

/* ---- words and colors ------------------------------------------------- */

const char *const gp_heat_color[GP_HEAT] = { "#fdf3e7", "#fbdcb8", "#f6bd85", "#ee9c55",
                                             "#e27d2f" };

int gp_heat(double busy)
{
    return busy < 1 ? (int)(busy * GP_HEAT) : GP_HEAT - 1;
}

bool gp_is_busiest(const gp_measured *m, double busy)
{
    return m && busy >= 0 && busy >= m->most;
}

const char *gp_time_text(const gp_measured *m, gp_time t, char buf[64])
{
    bool us = t.p50_us < 999.5, ms = t.p50_us < 999.5e3;
    double p50 = t.p50_us / (us ? 1 : ms ? 1e3 : 1e6);
    int n = 0;
    *buf = 0;
    if (t.busy >= 0)
        n += snprintf(buf, 64, "%s%.0f %% busy", t.estimate ? "~" : "", 100 * t.busy);
    if (t.p50_us >= 0)
        n += snprintf(buf + n, 64 - (size_t)n, "%s%.*f %s a frame", n ? ", " : "",
                      p50 < 9.95 ? 1 : 0, p50, us ? "us" : ms ? "ms" : "s");
    if (gp_is_busiest(m, t.busy))
        snprintf(buf + n, 64 - (size_t)n, ", the busiest");
    return buf;
}

/* ---- reading ---------------------------------------------------------- */

typedef struct reading {
    gp_arena *arena;
    const gp_plan *plan;
    gp_loc at;
    gp_errs *errs;
    gp_table stages, buffers;
    gp_time *stage, *segment;
    double *held;
} reading;

static double part_of(const gp_node *map, const char *key)
{
    double x = gp_node_number(map, key);
    return x < 1 ? x : 1;
}

static bool no_report(reading *r)
{
    return gp_fail(r->errs, GP_E_USAGE, r->at, "this is not a report; give a file that "
                   "'gpipe run --report FILE.json' wrote");
}

static bool another(reading *r, const char *what, const char *name, const char *who_lacks)
{
    return gp_fail(r->errs, GP_E_USAGE, r->at, "a report of another pipeline: %s no %s '%.100s'; "
                   "make it anew with 'gpipe run --report FILE.json %s'", who_lacks, what, name,
                   r->plan->graph->file);
}

static void forget_times(gp_time *time, int n)
{
    for (int i = 0; i < n; i++)
        time[i] = GP_NO_TIME;
}

/* ---- parts ------------------------------------------------------------ */

static bool read_stages(reading *r, const gp_node *list)
{
    const gp_graph *g = r->plan->graph;
    bool *seen = GP_NEW(r->arena, bool, g->nstages);
    for (int i = 0; i < list->n; i++) {
        const char *name = gp_node_text(list->item[i], "name");
        int stage = gp_table_index(&r->stages, name);
        if (!*name)
            return no_report(r);
        if (stage < 0)
            return another(r, "stage", name, "there is");
        seen[stage] = true;
        r->stage[stage] = (gp_time){ part_of(list->item[i], "busy"),
                                     gp_node_number(list->item[i], "frame_p50_us"), false };
    }
    for (int i = 0; i < g->nstages; i++)
        if (!seen[i] && !g->stage[i].device)
            return another(r, "stage", g->stage[i].name, "it has");
    return true;
}

static bool read_segments(reading *r, const gp_node *list, gp_time compute)
{
    const gp_plan *p = r->plan;
    const int *segment = gp_dump_segments(r->arena, p->graph, p);
    for (int i = 0; list && i < list->n; i++) {
        const gp_node *stages = gp_node_list(list->item[i], "stages");
        for (int k = 0; stages && k < stages->n; k++) {
            const char *name = stages->item[k]->kind == GP_SCALAR ? stages->item[k]->text : "";
            int stage = gp_table_index(&r->stages, name);
            if (stage < 0)
                return another(r, "stage", name, "there is");
            if (segment[stage] >= 0)
                r->segment[segment[stage]] = (gp_time){
                    list->n == 1 ? compute.busy : -1, gp_node_number(list->item[i], "frame_p50_us"),
                    compute.estimate };
        }
    }
    return true;
}

/* A buffer with several readers is as full as the fullest of them has it. */
static bool read_buffers(reading *r, const gp_node *list)
{
    for (int i = 0; list && i < list->n; i++) {
        const char *name = gp_node_text(list->item[i], "name");
        int buffer = gp_table_index(&r->buffers, name);
        double held = gp_node_number(list->item[i], "held");
        if (buffer < 0)
            return another(r, "buffer", name, "there is");
        if (held > r->held[buffer])
            r->held[buffer] = held;
    }
    return true;
}

/* The time of the busiest device. */
static gp_time engine(const gp_node *list, const char *name)
{
    gp_time most = GP_NO_TIME;
    for (int i = 0; list && i < list->n; i++) {
        double busy = strcmp(gp_node_text(list->item[i], "name"), name) ? -1 : part_of(list->item[i], "busy");
        if (busy > most.busy)
            most = (gp_time){ busy, -1, !strcmp(gp_node_text(list->item[i], "measured"), "false") };
    }
    return most;
}

/* ---- the device ------------------------------------------------------- */

/* The plan's: "NVIDIA H200" in "auto: NVIDIA H200". */
static const char *planned_for(const gp_plan *p)
{
    const char *why = p->graph->device_why, *name = why ? strstr(why, ": ") : NULL;
    return p->unified ? "the CPU back end" : name ? name + 2 : "a GPU";
}

/* The report's, if it is another one than the plan's; NULL: it is the same, or not said. */
static const char *another_device(const reading *r, const gp_node *root)
{
    const char *device = gp_node_text(gp_node_get(root, "pipeline"), "device");
    const char *gpu = gp_node_text(gp_node_get(root, "environment"), "gpu");
    bool cpu = !strcmp(device, "cpu"), named = *gpu && strcmp(gpu, "null");
    if (!*device || !r->plan->nsegments || (cpu && r->plan->unified)
        || (!cpu && !r->plan->unified && (!named || !strcmp(gpu, planned_for(r->plan)))))
        return NULL;
    return cpu ? "the CPU back end" : named ? gpu : device;
}

static void leave_out_device(reading *r, gp_measured *m)
{
    forget_times(r->segment, r->plan->nsegments);
    m->copy_in = m->copy_out = m->copy_peer = GP_NO_TIME;
}

/* ---- all of it -------------------------------------------------------- */

static double most_of(const gp_time *time, int n, double most)
{
    for (int i = 0; i < n; i++)
        most = time[i].busy > most ? time[i].busy : most;
    return most;
}

static void make_tables(reading *r)
{
    const gp_graph *g = r->plan->graph;
    gp_arena *a = r->arena;
    r->stages = r->buffers = (gp_table){ .arena = a };
    r->stage = GP_NEW(a, gp_time, g->nstages);
    r->segment = GP_NEW(a, gp_time, r->plan->nsegments);
    r->held = GP_NEW(a, double, g->nbuffers);
    forget_times(r->stage, g->nstages), forget_times(r->segment, r->plan->nsegments);
    for (int i = 0; i < g->nstages; i++)
        gp_table_put(&r->stages, g->stage[i].name, i);
    for (int i = 0; i < g->nbuffers; i++) {
        gp_table_put(&r->buffers, g->buffer[i].name, i);
        r->held[i] = -1;
    }
}

const gp_measured *gp_measured_read(gp_arena *a, const gp_plan *p, const char *json, size_t len,
                                    const char *file, gp_errs *errs)
{
    reading r = { .arena = a, .plan = p, .at = { .file = file }, .errs = errs };
    gp_errs *ignored = GP_NEW(a, gp_errs, 1);
    const gp_node *root = memchr(json, 0, len) ? NULL
        : gp_yaml_value(a, gp_strndup(a, json, len), r.at, ignored);
    const gp_node *stages = gp_node_list(root, "stages"), *engines = gp_node_list(root, "engines");
    if (!stages || !gp_node_get(root, "verdict")) {
        if (ignored->n && ignored->e[0].code == GP_E_RESOURCE)
            gp_errs_add(errs, ignored);
        else
            no_report(&r);
        return NULL;
    }
    make_tables(&r);
    if (!read_stages(&r, stages)
        || !read_segments(&r, gp_node_list(root, "segments"), engine(engines, "compute"))
        || !read_buffers(&r, gp_node_list(root, "buffers")))
        return NULL;
    gp_measured *m = GP_NEW(a, gp_measured, 1);
    *m = (gp_measured){ .stage = r.stage, .segment = r.segment, .held = r.held,
                        .copy_in = engine(engines, "copy in"),
                        .copy_out = engine(engines, "copy out"), .copy_peer = engine(engines, "peer copy"),
                        .verdict = gp_node_text(gp_node_get(root, "verdict"), "text") };
    const char *elsewhere = another_device(&r, root);
    if (elsewhere) {
        leave_out_device(&r, m);
        m->most = INFINITY;            /* who was is perhaps not in the picture */
        m->verdict = gp_format(a, "measured on %s, while this plan is for %s: %s", elsewhere,
                               planned_for(p), m->verdict);
    } else {
        const gp_time copies[] = { m->copy_in, m->copy_out, m->copy_peer };
        m->most = most_of(r.stage, p->graph->nstages, most_of(r.segment, p->nsegments, most_of(copies, 3, -1)));
    }
    return m;
}
