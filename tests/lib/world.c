/* world.c - see world.h. */
#include <errno.h>
#include "idle.h"
#include "world.h"

/* ---- kinds ----------------------------------------------------------- */

static bool shape_src(gp_shape *s)
{
    static const gp_type usual = { GP_U8, 2, { 4, 6 } };
    const struct opts *o = s->opts;
    if (!s->out[0].dtype)
        s->out[0].dtype = usual.dtype;
    if (!s->out[0].ndim)
        s->out[0].ndim = 2, s->out[0].dim[0] = 4, s->out[0].dim[1] = 6;
    s->endless = o->b;
    return true;
}

/* Like lua and kernel: as declared, else as the first input. */
static bool shape_free(gp_shape *s)
{
    for (int i = 0; i < s->nout; i++) {
        if (s->nin && !s->out[i].dtype)
            s->out[i].dtype = s->in[0].dtype;
        if (s->nin && !s->out[i].ndim)
            s->out[i].ndim = s->in[0].ndim,
            memcpy(s->out[i].dim, s->in[0].dim, sizeof s->in[0].dim);
    }
    return true;
}

static bool shape_opts(gp_shape *s)
{
    const struct opts *o = s->opts;
    gp_num v;
    if (o->n == 13)
        return gp_shape_fail(s, "n", "13 brings bad luck");
    if (o->node && (!gp_shape_eval(s, o->node, &v)))
        return false;
    if (o->node)
        s->scratch = (size_t)v.i;
    s->batched = s->frame_info = true;
    return like_first(s);
}

static bool shape_every(gp_shape *s)
{
    s->serial = true;
    return like_first(s);
}

static bool shape_carry(gp_shape *s)
{
    s->state = 8;
    return like_first(s);
}

static bool shape_mute(gp_shape *s)
{
    return false;
}

static bool shape_empty(gp_shape *s)
{
    s->out[0] = (gp_type){ GP_U8, 1, { 0 } };
    return true;
}

static bool shape_file(gp_shape *s)
{
    const struct opts *o = s->opts;
    const gp_file *f = gp_probe_file(s, o->file);
    if (f->error == ENOENT)
        return gp_shape_missing(s, "file", "cannot read '%s'", o->file);
    s->out[0] = (gp_type){ GP_U8, 1, { f->size } };
    return true;
}

#define IN(n, a) { .name = n, .accept = a }
#define OUT(n) { .name = n }
#define ANY(n) IN(n, GP_ACCEPT_ANY)
static const gp_port one[] = { ANY("in"), {0} };
static const gp_port out1[] = { OUT("out"), {0} };
static const gp_port star[] = { ANY("*"), {0} };
static const gp_port x_star[] = { ANY("x"), ANY("*"), {0} };
static const gp_port u8_f32[] = { IN("in", GP_ACCEPT(GP_U8) | GP_ACCEPT(GP_F32)), {0} };
static const gp_port f32_only[] = { IN("in", GP_ACCEPT(GP_F32)), {0} };
static const gp_port image_mask[] = {
    ANY("image"), { .name = "mask", .accept = GP_ACCEPT_ANY, .optional = true }, {0} };
static const gp_port a_b[] = { ANY("a"), ANY("b"), {0} };
static const gp_port low_high[] = {
    OUT("low"), OUT("high"), { .name = "rest", .optional = true }, {0} };

#define O(TYPE, f) GP_##TYPE(struct opts, f), .help = "a value"
static const gp_opt options[] = {
    { O(INT, n), .def = "2", .min = 0, .max = 64, .unit = "px" },
    { O(FLOAT, f), .def = "1.5" },
    { O(BOOL, b) },
    { O(TEXT, s), .def = "text" },
    { O(PATH, file) },
    { O(ENUM, word), .choices = "red|green|blue", .def = "green" },
    { O(DTYPE, dtype) },
    { O(TIME, wait), .def = "1ms", .min = 0, .max = 1e9 },
    { O(INTS, ints), .def = "[1, 2]" },
    { O(FLOATS, floats), .def = "0.5" },
    { O(NODE, node) },
    {0}
};
static const gp_opt with_file[] = { { O(PATH, file), .required = true }, {0} };
static const gp_opt with_node[] = { { O(NODE, node) }, {0} };
static const gp_opt with_b[] = { { O(BOOL, b) }, {0} };

#define KIND(n, i, o, sh, ...) { GP_KIND(n), .help = "for tests", .in = i, .out = o, .shape = sh, \
                                 .opts_size = sizeof(struct opts), __VA_ARGS__ }
static const gp_kind kinds[] = {
    KIND("src", NULL, out1, shape_src, .run = run_idle, .opts = with_b),
    KIND("sink", one, NULL, like_first, .run = run_idle),
    KIND("host", one, out1, like_first, .run = run_idle),
    KIND("dev", one, out1, like_first, .record = record_idle, .opts = with_node),
    KIND("both", u8_f32, out1, shape_opts, .run = run_idle, .record = record_idle, .opts = options),
    KIND("float", f32_only, out1, like_first, .run = run_idle),
    KIND("add", a_b, out1, like_first, .run = run_idle),
    KIND("masked", image_mask, out1, like_first, .run = run_idle),
    KIND("split", one, low_high, like_first, .run = run_idle),
    KIND("free", star, star, shape_free, .run = run_idle),
    KIND("more", x_star, out1, like_first, .run = run_idle),
    KIND("every", one, out1, shape_every, .run = run_idle),
    KIND("carry", one, out1, shape_carry, .record = record_idle),
    KIND("mute", one, out1, shape_mute, .run = run_idle),
    KIND("empty", one, out1, shape_empty, .run = run_idle),
    KIND("open", NULL, out1, shape_file, .run = run_idle, .opts = with_file),
};
enum { NKINDS = sizeof kinds / sizeof *kinds };

/* ---- a world to resolve in -------------------------------------------- */

struct world world;

static const char *env_get(const void *arg, const char *name)
{
    return !strcmp(name, "PLACE") ? "there" : NULL;
}

static void look(gp_arena *a, gp_probed *x)
{
    world.looks++;
    gp_probe_look(a, x);
}

void world_up(void)
{
    gp_errs e = {0};
    world.registry = gp_registry_create();
    for (int i = 0; i < NKINDS; i++)
        ck_assert_msg(gp_register(world.registry, &kinds[i], &e), "%s", e.e[0].msg);
    world.machine = (gp_machine){ .cpus = 4, .unified = true, .why = "no NVIDIA driver" };
    world.probe = (gp_probe){ .arena = &world.arena, .look = look };
    world.looks = 0;
}

void world_down(void)
{
    gp_registry_destroy(world.registry);
    gp_arena_free(&world.arena);
}

const gp_graph *world_resolve_file(const char *text, const char *file)
{
    gp_env env = { .get = env_get };
    memset(&world.errs, 0, sizeof world.errs);
    gp_spec *spec = gp_parse(&world.arena, text, strlen(text), file, &world.errs);
    return spec ? gp_resolve(&world.arena, spec, world.registry, &env, &world.machine,
                             &world.probe, &world.errs) : NULL;
}

const gp_graph *world_resolve(const char *text)
{
    return world_resolve_file(text, "p.yaml");
}

const gp_graph *world_must(const char *text)
{
    const gp_graph *g = world_resolve(text);
    ck_assert_msg(g != NULL, "%s--> %d:%d: %s", text, world.errs.e[0].at.line,
                  world.errs.e[0].at.col, world.errs.e[0].msg);
    ck_assert_int_eq(world.errs.n, 0);
    return g;
}

const gp_buffer *world_buffer(const gp_graph *g, const char *name)
{
    for (int i = 0; i < g->nbuffers; i++)
        if (!strcmp(g->buffer[i].name, name))
            return &g->buffer[i];
    ck_abort_msg("no buffer '%s'", name);
    return NULL;
}

const gp_stage *world_stage(const gp_graph *g, const char *name)
{
    for (int i = 0; i < g->nstages; i++)
        if (!strcmp(g->stage[i].name, name))
            return &g->stage[i];
    ck_abort_msg("no stage '%s'", name);
    return NULL;
}
