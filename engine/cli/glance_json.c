/* glance_json.c - how a run stands, as one line of JSON: written, and read again. */
#include <stdlib.h>
#include <string.h>
#include "base/json.h"
#include "base/yaml.h"
#include "cli/live.h"

/* Also of those inside a segment, of which nothing else is said. */
void gp_buffers_json(gp_json *j, const char *key, const gp_pipeline *p)
{
    gp_buffer_info b;
    gp_json_open(j, key, '[');
    for (int i = 0; gp_pipeline_buffer(p, i, &b); i++)
        if (!b.constant)
            gp_json_str(j, NULL, b.name);
    gp_json_close(j, ']');
}

void gp_glance_json(const gp_glance *v, FILE *f)
{
    gp_json j = { .f = f, .level = 3 };                /* all on one line */
    gp_json_put(&j, "{pipeline: %s, seconds: %g, ended: %d?, syncing: %d?", v->pipeline ? v->pipeline : "", v->seconds,
                v->ended, v->syncing);
    if (v->ranks > 1)
        gp_json_put(&j, "rank: %d, ranks: %d", v->rank, v->ranks);
    if (gp_is_behind(v))
        gp_json_put(&j, "behind: %d, behind_done: %ju", v->behind, v->behind_done);
    gp_json_put(&j, "in: %ju, done: %ju", v->in, v->done);
    if (v->frames)
        gp_json_size(&j, "frames", v->frames);
    if (v->left_s >= 0)
        gp_json_num(&j, "left_s", v->left_s);
    gp_json_num(&j, "frames_per_s", v->frames_s);
    gp_json_str(&j, "bound_by", v->bound >= 0 ? v->stage[v->bound].is.name : NULL);
    if (v->ranks > 1 && v->bound_rank >= 0)
        gp_json_int(&j, "bound_rank", v->bound_rank);
    if (v->bound_meets)
        gp_json_bool(&j, "bound_meets", true);
    gp_accounts_json(&j, v->source, v->nsources, v->ended ? "cancelled" : "in_flight");
    GP_JSON_EACH(&j, "stages", i, v->nstages)
        gp_json_put(&j, "{name: %s, frames: %ju, bytes: %ju, frames_per_s: %g, bytes_per_s: %g}", v->stage[i].is.name,
                    v->stage[i].is.frames, v->stage[i].is.bytes, v->stage[i].frames_s, v->stage[i].bytes_s);
    GP_JSON_EACH(&j, "buffers", i, v->nbuffers) {
        const gp_buffer_status *b = &v->buffer[i].is;
        gp_json_put(&j, "{name: %s, from: %s, to: %s, depth: %d, held: %d, fill: %g}", b->name, b->from, b->to,
                    b->depth, b->held, v->buffer[i].fill);
    }
    GP_JSON_EACH(&j, "settings", i, v->nknobs)
        gp_json_put(&j, "{path: %s, value: %s}", v->knob[i].path, v->knob[i].value);
    if (v->of)
        gp_buffers_json(&j, "frames_of", v->of);
    gp_json_close(&j, '}');
    fputc('\n', f);
}

/* JSON is YAML, so the parser of pipelines reads it. Absent: "" and 0. It may be
 * anybody's: what cannot be drawn is not *good. */

/* The name, fit for a terminal: without spaces, and without what moves the cursor. */
static const char *name_of(bool *good, const gp_node *map, const char *key)
{
    const char *name = gp_node_text(map, key);
    for (const char *c = name; *c; c++)
        *good &= *c > ' ' && *c < 0x7f;
    return name;
}

static double number_of(bool *good, const gp_node *map, const char *key, double most)
{
    double x = strtod(gp_node_text(map, key), NULL);
    bool fits = x >= 0 && x <= most;
    *good &= fits;
    return fits ? x : 0;
}

static uint64_t count_of(const gp_node *map, const char *key)
{
    return strtoull(gp_node_text(map, key), NULL, 10);
}

bool gp_glance_read(gp_glance *v, gp_arena *a, const char *json)
{
    const double years = 1e9, most = 1e18, ranks = 1 << 20, slots = 1 << 30;
    bool good = true;
    gp_errs *errs = GP_NEW(a, gp_errs, 1);
    const gp_node *root = gp_yaml_value(a, json, (gp_loc){ .file = "socket" }, errs);
    v->bound = v->bound_rank = v->behind = -1, v->left_s = -1, v->nstages = v->nbuffers = 0;
    if (!gp_node_get(root, "seconds") || !gp_node_get(root, "stages"))
        return false;
    const gp_node *stages = gp_node_list(root, "stages"), *buffers = gp_node_list(root, "buffers");
    const gp_node *knobs = gp_node_list(root, "settings");
    int nstages = stages ? stages->n : 0, nbuffers = buffers ? buffers->n : 0, nknobs = knobs ? knobs->n : 0;
    if (!gp_glance_room(v, nstages, nbuffers))
        return false;
    v->nstages = nstages, v->nbuffers = nbuffers;
    v->pipeline = gp_node_text(root, "pipeline"), v->frames_of = gp_node_list(root, "frames_of");
    v->seconds = number_of(&good, root, "seconds", years);
    v->frames_s = number_of(&good, root, "frames_per_s", most);
    v->ended = !strcmp(gp_node_text(root, "ended"), "true");
    v->syncing = !strcmp(gp_node_text(root, "syncing"), "true");
    v->done = count_of(root, "done"), v->in = count_of(root, "in"), v->frames = count_of(root, "frames");
    v->rank = (int)number_of(&good, root, "rank", ranks), v->ranks = (int)number_of(&good, root, "ranks", ranks);
    if (gp_node_get(root, "behind"))
        v->behind = (int)number_of(&good, root, "behind", ranks), v->behind_done = count_of(root, "behind_done");
    v->bound_meets = !strcmp(gp_node_text(root, "bound_meets"), "true");
    if (gp_node_get(root, "bound_rank"))
        v->bound_rank = (int)number_of(&good, root, "bound_rank", ranks);
    if (gp_node_get(root, "left_s"))
        v->left_s = number_of(&good, root, "left_s", most);
    for (int i = 0; i < nstages; i++) {
        const gp_node *n = stages->item[i];
        v->stage[i].is = (gp_stage_status){ .name = name_of(&good, n, "name"),
                                            .frames = count_of(n, "frames"),
                                            .bytes = count_of(n, "bytes") };
        v->stage[i].frames_s = number_of(&good, n, "frames_per_s", most);
        v->stage[i].bytes_s = number_of(&good, n, "bytes_per_s", most);
        if (!strcmp(gp_node_text(root, "bound_by"), v->stage[i].is.name))
            v->bound = i;
    }
    for (int i = 0; i < nbuffers; i++) {
        const gp_node *n = buffers->item[i];
        v->buffer[i].is = (gp_buffer_status){
            name_of(&good, n, "name"), name_of(&good, n, "from"), name_of(&good, n, "to"),
            (int)number_of(&good, n, "depth", slots), (int)number_of(&good, n, "held", slots) };
        v->buffer[i].fill = number_of(&good, n, "fill", 1);
    }
    v->nknobs = 0;
    for (int i = 0; i < nknobs && i < GP_KNOBS; i++) {
        gp_knob *k = &v->knob[v->nknobs++];
        snprintf(k->path, sizeof k->path, "%s", name_of(&good, knobs->item[i], "path"));
        snprintf(k->value, sizeof k->value, "%s", name_of(&good, knobs->item[i], "value"));
    }
    return good;
}
