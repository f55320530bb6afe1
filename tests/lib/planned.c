/* planned.c - see planned.h. */
#include "idle.h"
#include "planned.h"
#include "world.h"

typedef struct src_opts { int64_t size; } src_opts;
typedef struct dev_opts { bool info; int64_t scratch, state, table; gp_ints block, grid; } dev_opts;

static bool src_shape(gp_shape *s)
{
    s->out[0] = (gp_type){ .dtype = GP_U8, .ndim = 1,
                           .dim = { ((const src_opts *)s->opts)->size } };
    return true;
}

static gp_dim3 axes(const gp_ints *v)
{
    gp_dim3 d = { 0 };
    if (v->n)
        d = (gp_dim3){ (unsigned)v->v[0], v->n > 1 ? (unsigned)v->v[1] : 1, v->n > 2 ? (unsigned)v->v[2] : 1 };
    return d;
}

static bool dev_shape(gp_shape *s)
{
    const dev_opts *o = s->opts;
    s->frame_info = o->info;
    s->scratch = (size_t)o->scratch;
    s->state = (size_t)o->state;
    s->table = (size_t)o->table;
    s->block = axes(&o->block), s->grid = axes(&o->grid);
    return like_first(s);
}

static bool flag_shape(gp_shape *s)
{
    s->out[0] = (gp_type){ .dtype = GP_I32, .ndim = 1, .dim = { 1 } };
    return true;
}

static bool fill_shape(gp_shape *s)
{
    s->fills_device = true, s->at_once = 8, s->default_workers = 2, s->does = "a library 1.2";
    return like_first(s);
}

static bool all_shape(gp_shape *s)
{
    s->serial = true;
    return like_first(s);
}

static bool table(const gp_table_call *t)
{
    return true;
}

static const gp_port any[] = { { "*", GP_ACCEPT_ANY, .help = "anything" }, { 0 } };
static const gp_port one[] = { { "out", GP_ACCEPT_ANY, .help = "as it came" }, { 0 } };
static const gp_port pair[] = { { "left", GP_ACCEPT_ANY, .help = "one" },
                                { "right", GP_ACCEPT_ANY, .help = "two" }, { 0 } };
static const gp_opt src_options[] = { { GP_INT(src_opts, size), .def = "1000", .help = "bytes of a frame" }, { 0 } };
static const gp_opt dev_options[] = {
    { GP_BOOL(dev_opts, info), .def = "false", .help = "reads frame infos" },
    { GP_INT(dev_opts, scratch), .def = "0", .help = "bytes per frame" },
    { GP_INT(dev_opts, state), .def = "0", .help = "bytes" },
    { GP_INT(dev_opts, table), .def = "0", .help = "bytes" },
    { GP_INTS(dev_opts, block), .help = "threads" },
    { GP_INTS(dev_opts, grid), .help = "blocks" },
    { 0 }
};

static const gp_kind kinds[] = {
    { GP_KIND("src"), .help = "a source", .out = one, .opts = src_options,
      .opts_size = sizeof(src_opts), .shape = src_shape, .run = run_idle, .any_shape = true },
    { GP_KIND("host"), .help = "on the host", .in = any, .out = one, .shape = like_first, .run = run_idle },
    { GP_KIND("fill"), .help = "on the host, fills device memory", .in = any, .out = one,
      .shape = fill_shape, .run = run_idle, .fills_device = true },
    { GP_KIND("dev"), .help = "on the device", .in = any, .out = one, .opts = dev_options,
      .opts_size = sizeof(dev_opts), .shape = dev_shape, .record = record_idle, .table = table },
    { GP_KIND("box"), .help = "on the device", .in = any, .out = one, .opts = dev_options,
      .opts_size = sizeof(dev_opts), .shape = dev_shape, .record = record_idle, .table = table,
      .any_shape = true, .each_shape = true },
    { GP_KIND("two"), .help = "two outputs", .in = any, .out = pair, .shape = like_first, .record = record_idle },
    { GP_KIND("flag"), .help = "a number, on the device", .in = any, .out = one, .shape = flag_shape,
      .record = record_idle },
    { GP_KIND("all"), .help = "of all ranks", .in = any, .out = one, .shape = all_shape, .run = run_idle,
      .collective = true },
    { GP_KIND("sink"), .help = "a sink", .in = any, .shape = like_first, .run = run_idle, .any_shape = true },
};

extern const gp_kind gp_kind_group, gp_kind_split, gp_kind_window, gp_kind_decimate, gp_kind_hold, gp_kind_mix,
                     gp_kind_reduce, gp_kind_loop;
static const gp_kind *const built_in[] = {
    &gp_kind_group, &gp_kind_split, &gp_kind_window, &gp_kind_decimate, &gp_kind_hold, &gp_kind_mix,
    &gp_kind_reduce, &gp_kind_loop,
};

static const gp_registry *registry(void)
{
    static gp_registry *r;             /* until the process ends */
    gp_errs errs = { .n = 0 };
    if (r)
        return r;
    r = gp_registry_create();
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        ck_assert_msg(gp_register(r, &kinds[i], &errs), "%s", errs.e[0].msg);
    for (size_t i = 0; i < sizeof built_in / sizeof *built_in; i++)
        ck_assert_msg(gp_register(r, built_in[i], &errs), "%s", errs.e[0].msg);
    return r;
}

/* Those that are there, the newest first. */
typedef struct made { gp_pipeline *pipeline; struct made *next; } made;
static made *all;

void plan_free(gp_pipeline *pipeline)
{
    made **m = &all, *gone;
    while ((*m)->pipeline != pipeline)
        m = &(*m)->next;
    gone = *m, *m = gone->next;
    gp_pipeline_destroy(pipeline);
    free(gone);
}

static void free_all(void)
{
    while (all)
        plan_free(all->pipeline);
}

static void keep(gp_pipeline *pipeline)
{
    static bool at_exit;
    made *m = malloc(sizeof *m);
    *m = (made){ pipeline, all }, all = m;
    if (!at_exit)
        atexit(free_all);
    at_exit = true;
}

static planned plan_with(const char *yaml, const char *file, const gp_machine *machine, int ranks)
{
    planned p = { .machine = *machine };
    gp_config c = { .registry = registry(), .machine = machine, .env = { .ranks = ranks } };
    p.pipeline = gp_compile(yaml, strlen(yaml), file, &c, &p.errs);
    if (p.pipeline) {
        p.graph = gp_pipeline_graph(p.pipeline);
        p.plan = (gp_plan *)gp_pipeline_plan(p.pipeline);
        keep(p.pipeline);
    }
    return p;
}

planned plan_on(const char *yaml, const char *file, const gp_machine *machine)
{
    return plan_with(yaml, file, machine, 1);
}

planned plan_ranks(const char *yaml, const char *file, bool cuda, int ranks)
{
    gp_machine m;
    gp_machine_fixed(&m, cuda);
    return plan_with(yaml, file, &m, ranks);
}

planned plan_yaml(const char *yaml, const char *file, bool cuda)
{
    return plan_ranks(yaml, file, cuda, 1);
}

planned plan_ok(const char *yaml, bool cuda)
{
    planned p = plan_yaml(yaml, "test.yaml", cuda);
    ck_assert_msg(p.pipeline != NULL, "%s\n%s", p.errs.n ? p.errs.e[0].msg : "?", yaml);
    return p;
}

int plan_stage(const planned *p, const char *name)
{
    return (int)(world_stage(p->graph, name) - p->graph->stage);
}

int plan_buffer(const planned *p, const char *name)
{
    return (int)(world_buffer(p->graph, name) - p->graph->buffer);
}

int plan_segment(const planned *p, const char *stage)
{
    int s = plan_stage(p, stage);
    for (int i = 0; i < p->plan->ntasks; i++)
        if (p->plan->task[i].stage == s)
            return p->plan->task[i].segment;
    ck_abort_msg("stage '%s' has no task", stage);
    return -1;
}

int plan_ring(const planned *p, const char *buffer, bool device)
{
    int b = plan_buffer(p, buffer);
    for (int i = 0; i < p->plan->nrings; i++)
        if (p->plan->ring[i].buffer == b && p->plan->ring[i].place.device == device)
            return i;
    return -1;
}

int plan_tasks(const planned *p, gp_task_kind op)
{
    int n = 0;
    for (int i = 0; i < p->plan->ntasks; i++)
        n += p->plan->task[i].op == op;
    return n;
}
