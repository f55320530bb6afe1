/* verdictrig.c - see verdictrig.h. */
#include "idle.h"
#include "verdictrig.h"

/* ---- kinds from elsewhere ---------------------------------------------- */

struct effort { int64_t effort; };

static bool shape_serial(gp_shape *s)
{
    s->serial = true;
    return true;
}

static bool shape_clock(gp_shape *s)
{
    s->known.hertz = 50, s->endless = true;
    return true;
}

static void advise_edit(gp_advice *a)
{
    const struct effort *o = a->opts;
    ck_assert(a->nin == 1 && a->nout == 0 && a->serial);
    a->opt = "effort";
    snprintf(a->value, sizeof a->value, "%d", (int)o->effort - 1);
    strcpy(a->text, "words that do not count beside an edit");
}

static void advise_words(gp_advice *a)
{
    char type[128];
    snprintf(a->text, sizeof a->text, "send less than %s, %s", gp_type_text(&a->in[0], type), (const char *)a->user);
}

static void advise_wrong(gp_advice *a)
{
    a->opt = "zeal";
    strcpy(a->value, "1");
}

static void advise_beyond(gp_advice *a)
{
    a->opt = "effort";
    strcpy(a->value, "10");
}

static void advise_word(gp_advice *a)
{
    a->opt = "effort";
    strcpy(a->value, "less");
}

static void advise_nothing(gp_advice *a)
{
}

static const gp_port own_in[] = { { "in", GP_ACCEPT_ANY, .help = "frames" }, { 0 } };
static const gp_port own_out[] = { { "out", .help = "frames" }, { 0 } };
static const gp_opt own_opts[] = {
    { GP_INT(struct effort, effort), .min = 0, .max = 9, .help = "how hard it works" }, { 0 }
};

#define OWN_KIND(n, f) { GP_KIND(n), .help = "for tests", .in = own_in, .opts = own_opts, \
      .opts_size = sizeof(struct effort), .shape = shape_serial, .run = run_idle, .advise = f }
static const gp_kind own_kinds[] = {
    OWN_KIND("own_edit", advise_edit),
    { GP_KIND("own_words"), .help = "for tests", .in = own_in, .opts = own_opts,
      .opts_size = sizeof(struct effort), .shape = shape_serial, .run = run_idle,
      .advise = advise_words, .user = (void *)"or pack it" },
    OWN_KIND("own_wrong", advise_wrong),
    OWN_KIND("own_beyond", advise_beyond),
    OWN_KIND("own_word", advise_word),
    OWN_KIND("own_mute", advise_nothing),
    { GP_KIND("own_clock"), .help = "for tests", .out = own_out, .shape = shape_clock, .run = run_idle },
};

/* ---- a report of a plan ----------------------------------------------- */

static const char *dir;
gp_arena verdict_arena;

void verdict_up(void)
{
    size_t bytes;
    OWNED char *png = pipe_read(".", "tests/data/png/rgb8.png", &bytes);
    ck_assert_ptr_nonnull(png);
    pipe_kinds(own_kinds, sizeof own_kinds / sizeof *own_kinds);
    dir = pipe_dir();
    pipe_text(dir, "free.lua", "stateless = true\nfunction process(f, x, y) y:copy(x) end\n");
    pipe_text(dir, "keeps.lua", "function process(f, x, y) y:copy(x) end\n");
    pipe_file(dir, "a.png", png, bytes);
    pipe_file(dir, "r.raw", png, 16);
}

void verdict_down(void)
{
    gp_arena_free(&verdict_arena);
}

gp_pipeline *verdict_compile_for(const char *yaml, const char *set, int ndevices, int ranks, gp_errs *errs)
{
    gp_machine machine;
    gp_config config = { .machine = &machine, .set = &set, .nset = set != NULL, .env.ranks = ranks };
    gp_machine_fixed(&machine, ndevices);
    gp_pipeline *p = pipe_compile(dir, yaml, config, errs);
    ck_assert_msg(p != NULL, "%s\n%s\n%s", set ? set : "", errs->e[0].msg, yaml);
    return p;
}

gp_pipeline *verdict_compile(const char *yaml, const char *set, bool cuda, gp_errs *errs)
{
    return verdict_compile_for(yaml, set, cuda, 0, errs);
}

/* "first..last" of a segment. */
static const char *segment_name(const gp_plan *plan, const gp_segment *s)
{
    const char *first = NULL, *last = NULL;
    for (int i = 0; i < s->ntasks; i++) {
        int v = plan->task[s->task[i]].stage;
        last = v < 0 ? last : plan->graph->stage[v].name;
        first = first ? first : last;
    }
    return first == last ? first : gp_format(&verdict_arena, "%s..%s", first, last);
}

static void set_actor(gp_actor_report *p, const times *t)
{
    p->busy_ns = percent(t->busy), p->idle_ns = percent(t->idle);
    p->wait_in_ns = percent(t->in), p->wait_out_ns = percent(t->out);
    p->wait_stream_ns = percent(t->stream), p->launches = (uint64_t)t->launches;
    p->end_ns = t->ended ? percent(t->ended) : WALL;
    for (int i = 0; i < t->launches && t->ms; i++)
        gp_hist_add(&p->time, t->ms * INT64_C(1000000), 1);
}

gp_report *verdict_report(const verdict_case *c, const gp_plan *plan)
{
    gp_report *r = GP_NEW(&verdict_arena, gp_report, 1);
    const gp_graph *g = plan->graph;
    uint64_t frames = c->frames ? (uint64_t)c->frames : LONG;
    int set = 0;
    r->wall_ns = WALL, r->cpus = c->cpus ? c->cpus : 16, r->simulated = c->simulated;
    r->cpu_ns = percent(c->cpu);
    r->one_thread = c->age > 0;
    if (r->one_thread)
        gp_hist_add(&r->latency, c->age * INT64_C(1000), frames);
    r->delayed_ns = percent(c->delayed);
    r->others = c->others / 100.0, r->quota = c->quota / 100.0;
    r->actor = GP_NEW(&verdict_arena, gp_actor_report, plan->nactors);
    r->nactors = plan->nactors;
    for (int i = 0; i < plan->nactors; i++) {
        gp_actor_report *p = &r->actor[i];
        *p = (gp_actor_report){ .stage = plan->actor[i].stage, .segment = plan->actor[i].segment,
                                .workers = 1, .most_workers = 1, .frames = frames,
                                .end_ns = WALL };
        if (p->stage >= 0) {
            const gp_stage *st = &g->stage[p->stage];
            p->name = st->name, p->workers = st->workers;
            p->most_workers = st->serial || st->regroups ? 1 : r->cpus;
        } else {
            p->name = segment_name(plan, &plan->segment[p->segment]);
        }
        for (int k = 0; k < ACTORS && c->actor[k].name; k++)
            if (!strcmp(c->actor[k].name, p->name))
                set_actor(p, &c->actor[k]), set++;
    }
    for (int k = 0; k < ACTORS && c->actor[k].name; k++)
        set--;
    ck_assert_msg(!set, "%s: an actor that is none", c->what);
    r->buffer = GP_NEW(&verdict_arena, gp_buffer_report, 64);
    for (int i = 0; i < plan->nrings; i++)
        for (int k = 0; plan->ring[i].segment < 0 && k < plan->ring[i].nconsumers; k++) {
            const gp_ring *ring = &plan->ring[i];
            gp_buffer_report *b = &r->buffer[r->nbuffers++];
            *b = (gp_buffer_report){ g->buffer[ring->buffer].name, ring->buffer, ring->producer,
                                     ring->consumer[k], ring->depth, 0 };
            for (int n = 0; n < 2 && c->buffer[n].name; n++)
                if (!strcmp(c->buffer[n].name, b->name) && !strcmp(c->buffer[n].to, r->actor[b->to].name))
                    b->held = c->buffer[n].held;
        }
    for (int e = 0; e < GP_ENGINES; e++)
        r->engine[e] = (gp_engine_report){
            .name = gp_bound_name((gp_bound)(GP_BOUND_COPY_IN + e)),
            .used = c->cuda, .measured = !c->estimated,
            .busy_ns = percent(c->engine[e].busy),
            .bytes = (uint64_t)c->engine[e].gb * 1000000000,
            .by_kernels = (uint64_t)c->engine[e].by_kernels * 1000000000,
            .limit = e == GP_ENGINE_COMPUTE ? 0 : 50e9,
            .on = c->on, .device = g->ndevices > 1 ? g->device[c->on].name : NULL };
    r->all = r->engine, r->nall = GP_ENGINES;
    return r;
}

/* However much others had of the cores, it is said once at most. */
static void check_others(const verdict_case *c, const gp_pipeline *p)
{
    static const double parts[] = { 0.05, 0.1, 0.3, 0.5, 0.51, 0.9, 1 };
    for (size_t i = 0; i < 2 * sizeof parts / sizeof *parts; i++) {
        gp_report *r = verdict_report(c, gp_pipeline_plan(p));
        r->others = parts[i / 2] * r->cpus, r->simulated = i % 2;
        gp_verdict_find(r, p);
        const char *text = strstr(r->verdict.text, "processes used");
        ck_assert_msg(!text || !strstr(text + 1, "processes used"), "%s: %s", c->what, r->verdict.text);
    }
}

void verdict_check(const verdict_case *c)
{
    gp_errs errs = { 0 };
    const char *what = c->what;
    gp_pipeline *p = verdict_compile_for(c->yaml, NULL, c->cuda, c->ranks, &errs);
    gp_report *r = verdict_report(c, gp_pipeline_plan(p));
    gp_verdict_find(r, p);
    const gp_verdict *v = &r->verdict;
    ck_assert_msg(v->bound == c->bound, "%s: %s", what, v->text);
    ck_assert_msg(strstr(v->text, c->text), "%s: %s", what, v->text);
    ck_assert_msg(!c->whole || !strcmp(v->text, c->text), "%s: %s", what, v->text);
    ck_assert_msg(!strcmp(v->path, c->path) && !strcmp(v->value, c->value), "%s: %s=%s", what, v->path, v->value);
    if (!c->of)
        ck_assert_msg(v->actor < 0 && v->buffer < 0, "%s", what);
    else
        ck_assert_msg((v->actor >= 0 && !strcmp(r->actor[v->actor].name, c->of))
                      || (v->buffer >= 0 && !strcmp(r->buffer[v->buffer].name, c->of)), "%s: not of %s", what, c->of);
    check_others(c, p);
    if (*v->path)
        gp_pipeline_destroy(verdict_compile(c->yaml, gp_format(&verdict_arena, "%s=%s", v->path, v->value),
                                    c->cuda, &errs));
    gp_pipeline_destroy(p);
}
