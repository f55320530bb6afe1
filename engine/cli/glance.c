/* glance.c - how a run stands: taken from its counters, written as JSON, read again. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include "cli/live.h"
#include "cli/ranks.h"
#include "base/json.h"
#include "base/yaml.h"

enum { MEAN_S = 2 };

/* ---- looking --------------------------------------------------------- */

int64_t gp_frames_of(const gp_pipeline *p)
{
    int64_t n = 0;
    gp_stage_info s;
    for (int i = 0; gp_pipeline_stage(p, i, &s); i++) {
        if (s.nin)
            continue;
        if (s.frames_of_all <= 0)
            return -1;
        n = s.frames > n ? s.frames : n;
    }
    return n;
}

static bool make_room(gp_glance *v, int stages, int buffers)
{
    return gp_make_room(&v->stage, &v->stages_cap, stages, sizeof *v->stage)
        && gp_make_room(&v->buffer, &v->buffers_cap, buffers, sizeof *v->buffer);
}

void gp_glance_free(gp_glance *v)
{
    gp_counters_free(&v->now);
    free(v->stage), free(v->buffer), free(v->rank_fill);
    *v = (gp_glance){ 0 };
}

/* The stage whose inputs are full while its outputs are empty. A status has its
 * names from where the others have theirs: the same pointers. `of`: how full the buffers of
 * one rank are; NULL: those of all together. */
static int find_bound(const gp_glance *v, const double *of)
{
    int best = -1;
    double most = 0.5;
    for (int i = 0; i < v->nstages; i++) {
        double in = 1, out = 0;
        for (int b = 0; b < v->nbuffers; b++) {
            double fill = of ? of[b] : v->buffer[b].fill;
            if (v->buffer[b].is.to == v->stage[i].is.name && fill < in)
                in = fill;
            if (v->buffer[b].is.from == v->stage[i].is.name && fill > out)
                out = fill;
        }
        if (in - out > most)
            most = in - out, best = i;
    }
    return best;
}

/* Is it a stage where ranks meet? */
static bool meets(const gp_pipeline *p, const char *name)
{
    gp_stage_info s;
    for (int i = 0; gp_pipeline_stage(p, i, &s); i++)
        if (s.kind->collective && !strcmp(s.name, name))
            return true;
    return false;
}

/* How full are the inputs of stage i in a rank? */
static double inputs_full(const gp_glance *v, int i, const double *of)
{
    double least = 1;
    for (int b = 0; b < v->nbuffers; b++)
        if (v->buffer[b].is.to == v->stage[i].is.name && of[b] < least)
            least = of[b];
    return least;
}

/* The rank that comes last where ranks meet: nothing waits there, while frames of another one do. -1: none does. */
static int find_last(const gp_glance *v, const gp_pipeline *p)
{
    const double differ = 0.5;
    double most = differ;
    int last = -1;
    for (int i = 0; i < v->nstages; i++) {
        double full = 0, least = 1;
        int who = -1;
        for (int r = 0; r < v->ranks && meets(p, v->stage[i].is.name); r++) {
            double fill = inputs_full(v, i, v->rank_fill + r * v->nbuffers);
            full = fill > full ? fill : full;
            if (fill < least)
                least = fill, who = r;
        }
        if (full - least > most)
            most = full - least, last = who;
    }
    return last;
}

/* Of several ranks: what one of them does not reach holds back all. */
static void look_at_ranks(gp_glance *v, const gp_pipeline *p, double part)
{
    int n = v->ranks * v->nbuffers;
    double *now = v->ranks > 1 && n ? calloc((size_t)n, sizeof *now) : NULL;
    bool known = now && gp_make_room(&v->rank_fill, &v->rank_fill_cap, n, sizeof *v->rank_fill)
        && gp_ranks_fills(&v->now, now);
    for (int i = 0; known && i < n; i++)
        v->rank_fill[i] += (now[i] - v->rank_fill[i]) * part;
    free(now);
    v->bound_rank = known ? find_last(v, p) : -1;
    if (v->bound_rank >= 0)
        v->bound = find_bound(v, v->rank_fill + v->bound_rank * v->nbuffers);
    v->bound_meets = v->ranks > 1 && v->bound >= 0 && meets(p, v->stage[v->bound].is.name);
}

void gp_shown_begin(gp_shown *s, const gp_pipeline *p)
{
    s->now = p;
    atomic_init(&s->next, p);
}

const gp_pipeline *gp_shown_look(gp_shown *s)
{
    const gp_pipeline *next = atomic_load(&s->next);
    gp_stage_status first;
    if (next != s->now && gp_stages_status(next, &first, 1) > 0)
        s->now = next;
    return s->now;
}

void gp_glance_look(gp_glance *v, const gp_pipeline *p, double seconds)
{
    gp_account some;
    if (v->nstages && gp_accounts(p, &some, 1) < 1)    /* it goes on elsewhere at this moment */
        return;
    double dt = seconds - v->looked, age = seconds - v->began;
    double part = age > MEAN_S ? dt / MEAN_S : age > 0 ? dt / age : 1;     /* of what is new */
    part = part < 1 ? part : 1;

    v->pipeline = gp_pipeline_made_of(p, 0);
    v->seconds = v->looked = seconds, v->syncing = gp_syncing(p);
    gp_counters_read(&v->now, p);
    gp_ranks_whole(&v->now);
    v->rank = gp_rank(), v->ranks = gp_ranks(), v->behind = gp_ranks_behind(&v->behind_done);
    const gp_stage_status *st = v->now.stage;
    const gp_buffer_status *b = v->now.buffer;
    bool room = make_room(v, v->now.nstages, v->now.nbuffers);
    v->source = v->now.source, v->nsources = v->now.nsources;
    v->nstages = room ? v->now.nstages : 0, v->nbuffers = room ? v->now.nbuffers : 0;
    v->bound = v->bound_rank = -1, v->bound_meets = false, v->left_s = -1;
    v->nknobs = gp_pipeline_knobs(p, v->knob, GP_KNOBS);
    v->nknobs = v->nknobs < GP_KNOBS ? v->nknobs : GP_KNOBS;
    if (!v->nstages) {                     /* not before frame 0 */
        v->began = seconds;
        return;
    }
    if (dt <= 0)
        return;
    uint64_t moved = gp_frames_moved(v->source, v->nsources);
    if (moved < v->moved)              /* it has just gone on elsewhere */
        moved = v->moved;
    v->frames_s += ((double)(moved - v->moved) / dt - v->frames_s) * part;
    int64_t frames = gp_ranks_frames(gp_frames_of(p));
    v->moved = moved, v->done = gp_frames_done(v->source, v->nsources), v->frames = frames > 0 ? (uint64_t)frames : 0;
    v->in = 0;
    for (int i = 0; i < v->nsources; i++)
        v->in = v->source[i].in > v->in ? v->source[i].in : v->in;
    for (int i = 0; i < v->nstages; i++) {
        const gp_stage_status *was = &v->stage[i].is;
        double frames_s = st[i].frames > was->frames ? (double)(st[i].frames - was->frames) / dt : 0;
        double bytes_s = st[i].bytes > was->bytes ? (double)(st[i].bytes - was->bytes) / dt : 0;
        v->stage[i].frames_s += (frames_s - v->stage[i].frames_s) * part;
        v->stage[i].bytes_s += (bytes_s - v->stage[i].bytes_s) * part;
        v->stage[i].is = st[i];
    }
    for (int i = 0; i < v->nbuffers; i++) {
        double fill = (double)b[i].held / b[i].depth;
        v->buffer[i].fill += (fill - v->buffer[i].fill) * part;
        v->buffer[i].is = b[i];
    }
    v->bound = find_bound(v, NULL);
    look_at_ranks(v, p, part);
    if (v->frames && moved && moved <= v->frames && seconds > v->began)
        v->left_s = (double)(v->frames - moved) * (seconds - v->began) / (double)moved;
    double left = v->left_s >= 0 ? gp_ranks_left(seconds - v->began) : -1;
    v->left_s = left >= 0 ? left : v->left_s;
}

/* ---- JSON ------------------------------------------------------------ */

void gp_glance_json(const gp_glance *v, FILE *f)
{
    gp_json j = { .f = f, .level = 3 };                /* all on one line */
    gp_json_open(&j, NULL, '{');
    gp_json_str(&j, "pipeline", v->pipeline ? v->pipeline : "");
    gp_json_num(&j, "seconds", v->seconds);
    gp_json_bool(&j, "ended", v->ended);
    gp_json_bool(&j, "syncing", v->syncing);
    if (v->ranks > 1)
        gp_json_int(&j, "rank", v->rank), gp_json_int(&j, "ranks", v->ranks);
    if (gp_is_behind(v))
        gp_json_int(&j, "behind", v->behind), gp_json_size(&j, "behind_done", v->behind_done);
    gp_json_size(&j, "in", v->in);
    gp_json_size(&j, "done", v->done);
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
    gp_json_open(&j, "sources", '[');
    for (int i = 0; i < v->nsources; i++) {
        const gp_account *a = &v->source[i];
        gp_json_open(&j, NULL, '{');
        gp_json_str(&j, "name", a->source);
        gp_json_size(&j, "in", a->in);
        gp_json_size(&j, "out", a->out);
        gp_json_size(&j, "dropped", a->dropped);
        gp_json_size(&j, "failed", a->failed);
        gp_json_size(&j, v->ended ? "cancelled" : "in_flight", a->cancelled);
        gp_json_close(&j, '}');
    }
    gp_json_close(&j, ']');
    gp_json_open(&j, "stages", '[');
    for (int i = 0; i < v->nstages; i++) {
        gp_json_open(&j, NULL, '{');
        gp_json_str(&j, "name", v->stage[i].is.name);
        gp_json_size(&j, "frames", v->stage[i].is.frames);
        gp_json_size(&j, "bytes", v->stage[i].is.bytes);
        gp_json_num(&j, "frames_per_s", v->stage[i].frames_s);
        gp_json_num(&j, "bytes_per_s", v->stage[i].bytes_s);
        gp_json_close(&j, '}');
    }
    gp_json_close(&j, ']');
    gp_json_open(&j, "buffers", '[');
    for (int i = 0; i < v->nbuffers; i++) {
        const gp_buffer_status *b = &v->buffer[i].is;
        gp_json_open(&j, NULL, '{');
        gp_json_str(&j, "name", b->name);
        gp_json_str(&j, "from", b->from);
        gp_json_str(&j, "to", b->to);
        gp_json_int(&j, "depth", b->depth);
        gp_json_int(&j, "held", b->held);
        gp_json_num(&j, "fill", v->buffer[i].fill);
        gp_json_close(&j, '}');
    }
    gp_json_close(&j, ']');
    gp_json_open(&j, "settings", '[');
    for (int i = 0; i < v->nknobs; i++) {
        gp_json_open(&j, NULL, '{');
        gp_json_str(&j, "path", v->knob[i].path);
        gp_json_str(&j, "value", v->knob[i].value);
        gp_json_close(&j, '}');
    }
    gp_json_close(&j, ']');
    gp_json_close(&j, '}');
    fputc('\n', f);
}

/* JSON is YAML, so the parser of pipelines reads it. Absent: "" and 0. It may be
 * anybody's: what cannot be drawn is not `good`. */
typedef struct reading { bool good; } reading;

static const char *text_of(const gp_node *map, const char *key)
{
    const gp_node *n = gp_node_get(map, key);
    return n && n->kind == GP_SCALAR ? n->text : "";
}

/* Of what goes to a terminal: no spaces, nothing that moves the cursor. */
static const char *name_of(reading *r, const gp_node *map, const char *key)
{
    const char *name = text_of(map, key);
    for (const char *c = name; *c; c++)
        r->good &= *c > ' ' && *c < 0x7f;
    return name;
}

static double number_of(reading *r, const gp_node *map, const char *key, double most)
{
    double x = strtod(text_of(map, key), NULL);
    bool fits = x >= 0 && x <= most;
    r->good &= fits;
    return fits ? x : 0;
}

static uint64_t count_of(const gp_node *map, const char *key)
{
    return strtoull(text_of(map, key), NULL, 10);
}

static const gp_node *list_of(const gp_node *map, const char *key, int *n)
{
    const gp_node *list = gp_node_get(map, key);
    *n = list && list->kind == GP_LIST ? list->n : 0;
    return list;
}

bool gp_glance_read(gp_glance *v, gp_arena *a, const char *json)
{
    const double years = 1e9, most = 1e18, ranks = 1 << 20, slots = 1 << 30;
    reading r = { .good = true };
    gp_errs *errs = GP_NEW(a, gp_errs, 1);
    const gp_node *root = gp_yaml_value(a, json, (gp_loc){ .file = "socket" }, errs);
    v->bound = v->bound_rank = v->behind = -1, v->left_s = -1, v->nstages = v->nbuffers = 0;
    if (!root || !gp_node_get(root, "seconds") || !gp_node_get(root, "stages"))
        return false;
    int nstages, nbuffers;
    const gp_node *stages = list_of(root, "stages", &nstages);
    const gp_node *buffers = list_of(root, "buffers", &nbuffers);
    if (!make_room(v, nstages, nbuffers))
        return false;
    v->nstages = nstages, v->nbuffers = nbuffers;
    v->pipeline = text_of(root, "pipeline");
    v->seconds = number_of(&r, root, "seconds", years);
    v->frames_s = number_of(&r, root, "frames_per_s", most);
    v->ended = !strcmp(text_of(root, "ended"), "true");
    v->syncing = !strcmp(text_of(root, "syncing"), "true");
    v->done = count_of(root, "done"), v->in = count_of(root, "in"), v->frames = count_of(root, "frames");
    v->rank = (int)number_of(&r, root, "rank", ranks), v->ranks = (int)number_of(&r, root, "ranks", ranks);
    if (gp_node_get(root, "behind"))
        v->behind = (int)number_of(&r, root, "behind", ranks), v->behind_done = count_of(root, "behind_done");
    v->bound_meets = !strcmp(text_of(root, "bound_meets"), "true");
    if (gp_node_get(root, "bound_rank"))
        v->bound_rank = (int)number_of(&r, root, "bound_rank", ranks);
    if (gp_node_get(root, "left_s"))
        v->left_s = number_of(&r, root, "left_s", most);
    for (int i = 0; i < nstages; i++) {
        const gp_node *n = stages->item[i];
        v->stage[i].is = (gp_stage_status){ .name = name_of(&r, n, "name"),
                                            .frames = count_of(n, "frames"),
                                            .bytes = count_of(n, "bytes") };
        v->stage[i].frames_s = number_of(&r, n, "frames_per_s", most);
        v->stage[i].bytes_s = number_of(&r, n, "bytes_per_s", most);
        if (!strcmp(text_of(root, "bound_by"), v->stage[i].is.name))
            v->bound = i;
    }
    for (int i = 0; i < nbuffers; i++) {
        const gp_node *n = buffers->item[i];
        v->buffer[i].is = (gp_buffer_status){
            name_of(&r, n, "name"), name_of(&r, n, "from"), name_of(&r, n, "to"),
            (int)number_of(&r, n, "depth", slots), (int)number_of(&r, n, "held", slots) };
        v->buffer[i].fill = number_of(&r, n, "fill", 1);
    }
    int nknobs;
    const gp_node *knobs = list_of(root, "settings", &nknobs);
    v->nknobs = 0;
    for (int i = 0; i < nknobs && i < GP_KNOBS; i++) {
        gp_knob *k = &v->knob[v->nknobs++];
        snprintf(k->path, sizeof k->path, "%s", name_of(&r, knobs->item[i], "path"));
        snprintf(k->value, sizeof k->value, "%s", name_of(&r, knobs->item[i], "value"));
    }
    return r.good;
}
