/* luarig.c - see luarig.h. */
#include "idle.h"
#include "luarig.h"
#include "pipe.h"

static const gp_kind give = IDLE_GIVE, take = IDLE_TAKE;

static const char *env(const void *arg, const char *name)
{
    return strcmp(name, "LUA_TEST") ? NULL : "a word";
}

/* Text -> graph; the stage under test is named 'it'. */
static bool rig_resolve(rig *r, const char *yaml)
{
    gp_machine machine;
    gp_env e = { .get = env };
    gp_probe probe = { .arena = &r->arena, .look = gp_probe_look };
    char *file = format("%s/test.yaml", r->dir);
    r->registry = gp_registry_create();
    ck_assert(gp_register_builtin(r->registry, &r->errs) && gp_register(r->registry, &give, &r->errs)
              && gp_register(r->registry, &take, &r->errs));
    gp_machine_fixed(&machine, 0);
    gp_spec *spec = gp_parse(&r->arena, yaml, strlen(yaml), gp_strdup(&r->arena, file), &r->errs);
    if (spec)
        r->graph = gp_resolve(&r->arena, spec, r->registry, &e, &machine, &probe, &r->errs);
    for (int i = 0; r->graph && i < r->graph->nstages; i++)
        if (!strcmp(r->graph->stage[i].name, "it"))
            r->stage = &r->graph->stage[i];
    return r->stage != NULL;
}

bool rig_open_state(rig *r)
{
    const gp_stage *st = r->stage;
    gp_open o = { .opts = st->opts, .name = st->name, .at = st->at, .nin = st->nin,
                  .nout = st->nout, .in = r->in_type, .out = r->out_type, .in_name = st->in_name,
                  .out_name = st->out_name, .workers = st->workers, .errs = &r->errs,
                  .files = r->files = gp_filetable_new() };
    for (int i = 0; i < st->nin; i++)
        r->in_type[i] = r->graph->buffer[st->in[i]].type;
    for (int i = 0; i < st->nout; i++)
        r->out_type[i] = r->graph->buffer[st->out[i]].type;
    r->thread.run = &r->run, r->thread.actor = &r->actor;
    return st->kind->open(&o, &r->state);
}

rig *rig_make(const char *in, const char *out, const char *more, const char *script)
{
    rig *r = calloc(1, sizeof *r);
    r->dir = pipe_dir();
    char cwd[400];
    const char *yaml = "vars: {gain: 2.5}\nbuffers:\n", *where = "it.lua";
    if (strchr(script, ' '))
        pipe_text(r->dir, where, script);
    else
        where = gp_format(&r->arena, "%s/tests/lua/%s", getcwd(cwd, sizeof cwd), script);
    bool two = in && strstr(in, "x2:"), pair = out && strstr(out, "y2:");
    if (in)
        yaml = gp_format(&r->arena, "%s  x: %s\n", yaml, in);
    if (out)
        yaml = gp_format(&r->arena, "%s  y: %s\n", yaml, *out ? out : "{}");
    yaml = gp_format(&r->arena, "%sstages:\n", yaml);
    if (in)
        yaml = gp_format(&r->arena, "%s  - {use: give, out: [x%s]}\n", yaml, two ? ", x2" : "");
    yaml = gp_format(&r->arena, "%s  - {name: it, use: lua, script: '%s'", yaml, where);
    if (in)
        yaml = gp_format(&r->arena, "%s, in: {x: x%s}", yaml, two ? ", x2: x2" : "");
    if (out)
        yaml = gp_format(&r->arena, "%s, out: {y: y%s}", yaml, pair ? ", y2: y2" : "");
    else
        yaml = gp_format(&r->arena, "%s, out: []", yaml);
    yaml = gp_format(&r->arena, "%s%s%s}\n", yaml, *more ? ", " : "", more);
    if (out)
        yaml = gp_format(&r->arena, "%s  - {use: take, in: [y%s]}\n", yaml, pair ? ", y2" : "");
    rig_resolve(r, yaml);
    return r;
}

void rig_free(rig *r)
{
    if (r->stage)
        r->stage->kind->close(r->state);
    gp_filetable_free(r->files);
    gp_registry_destroy(r->registry);
    gp_arena_free(&r->arena);
    free(r);
}

const char *rig_error(const gp_errs *errs)
{
    return pipe_said(errs);
}

rig *rig_opened(const char *in, const char *out, const char *more, const char *script)
{
    rig *r = rig_make(in, out, more, script);
    ck_assert_msg(r->stage != NULL, "%s", rig_error(&r->errs));
    ck_assert_msg(rig_open_state(r), "%s", rig_error(&r->errs));
    return r;
}

/* ---- one frame ------------------------------------------------------- */

void rig_fill(gp_view *v, double first)
{
    size_t n = (size_t)gp_count(&v->type);
    static const int halves[] = { 0, 0x3c00, 0x4000, 0x4200, 0x4400, 0x4500, 0x4600, 0x4700, 0x4800,
                                  0x4880, 0x4900, 0x4980, 0x4a00 };
    for (size_t i = 0; i < n; i++) {
        double x = (double)i + first;
        void *p = v->data;
        switch (v->type.dtype) {
#define X(NAME, name, ctype, bytes) case GP_##NAME: ((ctype *)p)[i] = (ctype)x; break;
        X(U8, u8, uint8_t, 1) X(I8, i8, int8_t, 1) X(U16, u16, uint16_t, 2)
        X(I16, i16, int16_t, 2) X(U32, u32, uint32_t, 4) X(I32, i32, int32_t, 4)
        X(U64, u64, uint64_t, 8) X(I64, i64, int64_t, 8) X(F32, f32, float, 4)
        X(F64, f64, double, 8)
#undef X
        case GP_F16: ((uint16_t *)p)[i] = (uint16_t)halves[(i + 1) % 13]; break;
        case GP_C64: ((gp_c64 *)p)[i] = (gp_c64){ (float)x, (float)-x }; break;
        default: ck_abort();
        }
    }
}

frame *rig_frame(rig *r, uint64_t index, int64_t valid)
{
    frame *f = calloc(1, sizeof *f);
    f->f = (gp_frame){ .index = index, .time_ns = 1500000000, .name = "photo", .in = f->in,
                       .out = f->out };
    for (int i = 0; i < r->stage->nin; i++) {
        gp_view *v = &f->in[i];
        v->type = r->in_type[i], v->rows = v->type.dim[0];
        v->data = malloc(gp_bytes(&v->type));
        rig_fill(v, 1);
        if (valid >= 0)
            v->type.dim[0] = valid;
    }
    gp_type out[PORTS], in[PORTS] = { f->in[0].type, f->in[1].type };
    memcpy(out, r->out_type, sizeof out);
    if (valid >= 0 && r->stage->nout)
        ck_assert(gp_partial_shape(r->graph, r->stage, in, out, &r->errs));
    for (int i = 0; i < r->stage->nout; i++) {
        gp_view *v = &f->out[i];
        v->type = out[i], v->rows = r->out_type[i].dim[0];
        v->data = malloc(gp_bytes(&r->out_type[i]));
        memset(v->data, 0xa5, gp_bytes(&r->out_type[i]));
    }
    return f;
}

void rig_frame_free(frame *f)
{
    for (int i = 0; i < PORTS; i++) {
        free(f->in[i].data);
        free(f->out[i].data);
    }
    free(f);
}

void rig_run_frames(rig *r, int worker, gp_frame *f, int n, gp_errs *errs)
{
    gp_call c = { .opts = r->stage->opts, .state = r->state, .worker = worker,
                  .name = r->stage->name, .at = r->stage->at, .errs = errs, .ctx = &r->thread };
    ck_assert(r->stage->kind->run(&c, f, n));
}

gp_status rig_run(rig *r, int worker, frame *f, gp_errs *errs)
{
    rig_run_frames(r, worker, &f->f, 1, errs);
    return f->f.status;
}

gp_status rig_run_all(rig *r, uint64_t first, int n)
{
    gp_status s = GP_OK;
    for (int i = 0; i < n && s == GP_OK; i++) {
        frame *f = rig_frame(r, first + (uint64_t)i, -1);
        s = rig_run(r, 0, f, &r->errs);
        rig_frame_free(f);
    }
    return s;
}
