/* source_report.c - the report of a run as simulations read it: can it be used, of what settings and machine is it?
 * JSON is YAML: the reader of YAML reads it. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "base/plural.h"
#include "base/yaml.h"
#include "compile/plan.h"
#include "simulate/measured.h"

static bool check(gp_source_report *r, gp_errs *errs)
{
    const gp_node *root = r->root;
    const char *version = gp_node_text(root, "gpipe"), *outcome = gp_node_text(root, "outcome");
    if (!*version || !gp_node_list(root, "stages") || !gp_node_get(root, "verdict"))
        return gp_fail(errs, GP_E_USAGE, r->at,
                       "this is not a report; give a file that 'gpipe run --report FILE.json' wrote");
    if (strcmp(version, GP_VERSION))
        return gp_fail(errs, GP_E_USAGE, r->at, "a report of gpipe %.40s, and this is gpipe %s; " MAKE_ANEW, version,
                       GP_VERSION);
    if (!strcmp(outcome, "simulated"))
        return gp_fail(errs, GP_E_USAGE, r->at, "this is the report of a simulation; give one of a run, of 'gpipe run "
                       "--report FILE.json'");
    if (gp_node_get(root, "ranks"))
        return gp_fail(errs, GP_E_USAGE, r->at, "this is the report of a run of several ranks, which shared the "
                       "cores; give one of a run in one process, and say --ranks");
    if (strcmp(outcome, gp_outcome_text(GP_DONE)) && strcmp(outcome, gp_outcome_text(GP_DRAINED)))
        return gp_fail(errs, GP_E_USAGE, r->at,
                       "a report of a run that did not come to its end (outcome: %.40s) does not "
                       "tell what frames cost; " MAKE_ANEW, outcome);
    const gp_node *sources = gp_node_list(root, "sources");
    for (int i = 0; sources && i < sources->n; i++)
        r->frames = fmax(r->frames, gp_node_number(sources->item[i], "in"));
    r->wall_ns = 1e9 * gp_node_number(root, "wall_s");
    if (r->frames < GP_REPORT_FRAMES || !(r->wall_ns > 0))
        return gp_fail(errs, GP_E_USAGE, r->at,
                       "a run of %.0f frame%s is too short to know what one costs: %d or more are needed", r->frames,
                       gp_plural((int64_t)r->frames), GP_REPORT_FRAMES);
    return true;
}

gp_source_report *gp_source_report_read(gp_arena *a, const char *json, size_t len, const char *file, gp_errs *errs)
{
    gp_errs *ignored = GP_NEW(a, gp_errs, 1);
    gp_source_report *r = GP_NEW(a, gp_source_report, 1);
    r->at = (gp_loc){ .file = file };
    r->root = memchr(json, 0, len) ? NULL : gp_yaml_value(a, gp_strndup(a, json, len), r->at, ignored);
    if (ignored->n && ignored->e[0].code == GP_E_RESOURCE) {
        gp_errs_add(errs, ignored);
        return NULL;
    }
    if (!check(r, errs))
        return NULL;
    const gp_node *set = gp_node_list(r->root, "set");
    r->set = GP_NEW(a, const char *, set ? set->n : 0);
    for (int i = 0; set && i < set->n; i++)
        if (set->item[i]->kind == GP_SCALAR)
            r->set[r->nset++] = set->item[i]->text;
    return r;
}

int gp_source_report_set(const gp_source_report *r, const char *const **set)
{
    *set = r->set;
    return r->nset;
}

/* What a report does not say is as in every other: a plan for it is then the same everywhere. */
void gp_source_report_machine(const gp_source_report *r, gp_machine *m)
{
    const size_t memory = (size_t)64 << 30;
    const char *device = gp_node_text(gp_node_get(r->root, "pipeline"), "device");
    const char *gpu = gp_node_text(gp_node_get(r->root, "environment"), "gpu");
    double cpus = gp_node_number(gp_node_get(r->root, "cores"), "all");
    int index = -1;
    for (const char *d = strstr(device, "cuda:"); d; d = strstr(d + 1, "cuda:"))
        index = atoi(d + 5) > index ? atoi(d + 5) : index;
    memset(m, 0, sizeof *m);
    m->cpus = cpus >= 1 && cpus < 1e6 ? (int)cpus : 1, m->memory = memory, m->pin_limit = memory / 4 * 3;
    m->ndevices = index >= 0 && index < GP_DEVICES ? index + 1 : 0;
    for (int i = 0; i < m->ndevices; i++) {
        m->device[i] = (gp_device_info){ .cc = 90, .sms = 132, .f64 = 2, .memory = (size_t)141000000000 };
        snprintf(m->device[i].name, sizeof m->device[i].name, "%s", *gpu ? gpu : "a GPU");
    }
    m->unified = m->ndevices == 0;
    snprintf(m->why, sizeof m->why, "the report is of a run on the CPU");
}

