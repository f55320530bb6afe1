/* lua.c - views of frames under calls that a script could make: bytes become a script that uses every method, with
 * indices and types that do not fit.
 *
 * Each statement may fail, none is allowed to touch memory that is not the view's: slots are exactly as long as they
 * say, and inputs are compared with a copy. FUZZ_SHOW=1 prints the script. One Lua state for each dtype, and the next
 * one beside it, lives on; what a script keeps is forgotten before the next input. */
#include <sys/mman.h>
#include <unistd.h>
#include "fuzz.h"
#include "view.h"
#include "run/run.h"

enum { PORTS = 2, FRAMES = 3, STATEMENTS = 24, TEXT = 16384 };

/* The text of a frame comes as its name. */
static const char script[] =
    "local core = require 'gpipe.core'\n"
    "local keep, load = {}, loadstring or load\n"
    "local function try(f, ...) return pcall(f, ...) end\n"
    "function process(frame, x, y)\n"
    "  if frame.index == 0 then keep = {} collectgarbage 'step' end\n"
    "  return assert(load(frame.name))(frame, x, y, core.array, keep, try)\n"
    "end\n";

/* ---- bytes become a script ---------------------------------------------- */

typedef struct maker {
    const unsigned char *p, *end;
    char text[TEXT];
    size_t n;
} maker;

static unsigned next(maker *m, unsigned n)
{
    return m->p < m->end ? *m->p++ % n : 0;
}

static void add(maker *m, const char *s)
{
    size_t len = strlen(s);
    if (m->n + len < TEXT) {
        memcpy(m->text + m->n, s, len + 1);
        m->n += len;
    }
}

#define COUNT(a) ((unsigned)(sizeof(a) / sizeof *(a)))
#define PICK(m, a) add((m), (a)[next((m), COUNT(a))])

static void add_view(maker *m)
{
    static const char *const views[] = { "x.a", "x.b", "y.c", "y.d", "s", "t", "u", "keep[1]",
                                         "keep[2]" };
    PICK(m, views);
}

static void add_number(maker *m)
{
    char number[12];
    snprintf(number, sizeof number, "%d", (int)next(m, 40) - 4);
    add(m, number);
}

static void add_value(maker *m)
{
    static const char *const odd[] = {
        "nil", "true", "-1", "0", "0.5", "2^31", "2^53", "2^63", "-2^63", "1e300", "0/0", "1/0",
        "-1/0", "'3'", "'text'", "{}", "frame", "print", "#x.a", "#y.c", "255", "256", "65536",
        "math.mininteger", "math.maxinteger", "'<'", "'~='", "'<i4>H f d'", "'bBhHi3I7lLjJfdnx'",
        "'i9'", "''" };
    unsigned k = next(m, 4);
    if (k == 0)
        PICK(m, odd);
    else if (k == 1)
        add_view(m);
    else
        add_number(m);
}

static void add_values(maker *m, unsigned most)
{
    for (unsigned i = 0, n = next(m, most + 1); i < n; i++) {
        add(m, i ? ", " : "");
        add_value(m);
    }
}

static void add_method(maker *m)
{
    static const char *const plain[] = { "at", "set", "slice", "parts", "none" };
    unsigned ops = 0, bytes = 0;
    while (gp_lua_ops[ops].name)
        ops++;
    while (gp_lua_bytes[bytes].name)
        bytes++;
    unsigned k = next(m, ops + bytes + COUNT(plain));
    add(m, k < ops ? gp_lua_ops[k].name : k < ops + bytes ? gp_lua_bytes[k - ops].name : plain[k - ops - bytes]);
}

static void add_array(maker *m)
{
    static const char *const type[] = { "u8", "i8", "u16", "i16", "u32", "i32", "u64", "i64",
                                        "f16", "f32", "f64", "c64", "what" };
    static const char *const size[] = { "1", "2", "3", "7", "64", "0", "-1", "nil", "2^31",
                                        "2^31 - 1, 2^31 - 1", "'2'", "1.5" };
    add(m, "array('");
    PICK(m, type);
    add(m, "'");
    for (unsigned i = 0, n = next(m, 4); i < n; i++) {
        add(m, ", ");
        PICK(m, size);
    }
    add(m, ")");
}

static void add_call(maker *m)
{
    add_view(m);
    add(m, next(m, 12) ? ":" : ".");
    add_method(m);
    add(m, "(");
    add_values(m, 6);
    add(m, ")");
}

/* Bytes: with a format or a text as its first argument. */
static void add_bytes(maker *m)
{
    static const char *const method[] = { "pack", "unpack", "write", "print", "string" };
    static const char *const format[] = { "'<i4>H f d'", "'bBhHi3I7'", "'lLjJfdn'", "'x x I1 i8'",
                                          "'i9'", "'z'", "'text'", "'<BBBBBBBB'", "''" };
    if (next(m, 3))
        add(m, "u");
    else
        add_view(m);
    add(m, ":");
    PICK(m, method);
    add(m, "(");
    PICK(m, format);
    add(m, ", ");
    add_number(m);
    for (unsigned i = 0, n = next(m, 10); i < n; i++)
        add(m, ", "), add_number(m);
    add(m, ")");
}

/* A search, or a copy of a part: what takes several numbers. */
static void add_range(maker *m)
{
    static const char *const what[] = { "find('<', ", "find('<=', ", "find('>', ", "find('>=', ",
                                        "find('==', ", "find('~=', ", "copy(x.a, ", "copy(x.b, ",
                                        "values(nil, ", "slice(", "at(", "set(", "scale(x.a, ",
                                        "add(x.b, ", "div(x.a, " };
    add_view(m);
    add(m, ":");
    PICK(m, what);
    add_number(m);
    for (unsigned i = 0, n = next(m, 4); i < n; i++)
        add(m, ", "), add_number(m);
    add(m, ")");
}

static void add_field(maker *m)
{
    static const char *const field[] = { "valid", "shape", "dtype", "name", "rows", "index", "time",
                                         "what" };
    if (next(m, 3))
        add_view(m);
    else
        add(m, "frame");
    add(m, ".");
    PICK(m, field);
}

static void add_statement(maker *m)
{
    switch (next(m, 13)) {
    case 0: add_view(m), add(m, "["), add_value(m), add(m, "] = "), add_value(m); break;
    case 1: add(m, "local v = "), add_view(m), add(m, "["), add_value(m), add(m, "]"); break;
    case 2: add(m, "s = "), add_call(m); break;
    case 3: add(m, "t = "), add_call(m); break;
    case 4: add(m, next(m, 2) ? "keep[1] = " : "keep[2] = "), add_view(m); break;
    case 5: add_field(m), add(m, " = "), add_value(m); break;
    case 6: add(m, "return "), add_field(m), add(m, ", #"), add_view(m), add(m, ", tostring("),
            add_view(m), add(m, ")"); break;
    case 7: add(m, next(m, 2) ? "s = " : "t = "), add_array(m); break;
    case 8: add(m, "for i = "), add_number(m), add(m, ", #"), add_view(m), add(m, " do "),
            add_view(m), add(m, "[i] = "), add_view(m), add(m, "[i] end"); break;
    case 9: add(m, "return "), add_bytes(m); break;
    case 10: add(m, "return "), add_range(m); break;
    case 11: add(m, "s = "), add_range(m); break;
    default: add(m, "return "), add_call(m); break;
    }
}

/* The script of one frame: its last statement is not protected. */
static void make_script(maker *m)
{
    static const char *const end[] = { "", "return 'drop'", "return 3", "return 'what'", "error()" };
    m->n = 0;
    add(m, "local frame, x, y, array, keep, try = ...\n"
           "local s, t, u = nil, nil, array('u8', 24)\n");
    for (unsigned i = 0, n = next(m, STATEMENTS); i < n && m->n < TEXT - 1000; i++) {
        add(m, "try(function() ");
        add_statement(m);
        add(m, " end)\n");
    }
    if (!next(m, 4))
        add(m, "local v = "), add_call(m), add(m, "\n");
    PICK(m, end);
}

/* ---- a stage for each pair of dtypes ------------------------------------ */

typedef struct rig {
    fuzz_forms forms;
    const gp_stage *stage;
    void *state;
    gp_run run;
    gp_actorrt actor;
    gp_threadrt thread;                /* what gp_cancelled and gp_working_on look at */
} rig;

static const char *script_path(void)
{
    static char path[40];
    if (!*path) {
        int fd = memfd_create("script", MFD_CLOEXEC);
        MUST(fd >= 0 && write(fd, script, sizeof script - 1) == (ssize_t)sizeof script - 1);
        snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    }
    return path;
}

static rig *rig_open(gp_dtype a, gp_dtype b)
{
    static rig *rigs[GP_NDTYPES][GP_NDTYPES];
    rig *r = rigs[a][b];
    if (r)
        return r;
    r = rigs[a][b] = calloc(1, sizeof *r);
    const char *ta = gp_dtype_name(a), *tb = gp_dtype_name(b), *path = script_path();
    char yaml[1000];
    snprintf(yaml, sizeof yaml, "buffers:\n  a: {dtype: %s, shape: [4, 4]}\n"
             "  b: {dtype: %s, shape: [9]}\n  c: {dtype: %s, shape: [9]}\n"
             "  d: {dtype: %s, shape: [4, 2, 2]}\nstages:\n  - {use: give, out: [a, b]}\n"
             "  - {name: it, use: lua, script: %s, in: {a: a, b: b}, out: {c: c, d: d}}\n"
             "  - {use: take, in: [c, d]}\n", ta, tb, ta, tb, path);
    fuzz_file(strrchr(path, '/') + 1, script, sizeof script - 1);
    fuzz_resolve(&r->forms, yaml);
    fuzz_file(NULL, NULL, 0);
    const gp_graph *g = r->forms.graph;
    for (int i = 0; i < g->nstages; i++)
        if (!strcmp(g->stage[i].name, "it"))
            r->stage = &g->stage[i];
    gp_errs errs = { 0 };
    gp_type in[PORTS] = { g->buffer[r->stage->in[0]].type, g->buffer[r->stage->in[1]].type };
    gp_type out[PORTS] = { g->buffer[r->stage->out[0]].type, g->buffer[r->stage->out[1]].type };
    gp_open o = { .opts = r->stage->opts, .name = "it", .nin = PORTS, .nout = PORTS, .in = in,
                  .out = out, .in_name = r->stage->in_name, .out_name = r->stage->out_name,
                  .workers = 1, .errs = &errs };
    r->thread.run = &r->run, r->thread.actor = &r->actor;
    MUST(r->stage->kind->open(&o, &r->state));
    return r;
}

/* ---- frames ------------------------------------------------------------- */

/* A slot of 1 to 3 axes; the first may have fewer valid rows. */
static void make_slot(maker *m, gp_view *v, gp_dtype dtype)
{
    *v = (gp_view){ .type = { .dtype = dtype, .ndim = (int)next(m, 3) + 1 } };
    for (int i = 0; i < v->type.ndim; i++)
        v->type.dim[i] = next(m, 5) + 1;
    v->rows = v->type.dim[0];
    size_t bytes = gp_bytes(&v->type);
    unsigned char *p = v->data = malloc(bytes);
    for (size_t i = 0; i < bytes; i++)
        p[i] = (unsigned char)(i * 37 + 11);
    v->type.dim[0] = next(m, 4) ? v->rows : (int64_t)next(m, (unsigned)v->rows + 1);
}

static size_t slot_bytes(const gp_view *v)
{
    gp_type all = v->type;
    all.dim[0] = v->rows;
    return gp_bytes(&all);
}

static void run_frame(rig *r, maker *m, unsigned index, gp_dtype a, gp_dtype b)
{
    gp_view in[PORTS], out[PORTS];
    void *copy[PORTS];
    for (int i = 0; i < PORTS; i++) {
        make_slot(m, &in[i], i ? b : a);
        make_slot(m, &out[i], i ? b : a);
        copy[i] = malloc(slot_bytes(&in[i]));
        memcpy(copy[i], in[i].data, slot_bytes(&in[i]));
    }
    make_script(m);
    if (getenv("FUZZ_SHOW"))
        fprintf(stderr, "-- frame %u, %s %s\n%s\n", index, gp_dtype_name(a), gp_dtype_name(b), m->text);
    gp_errs errs = { 0 };
    gp_frame f = { .index = index, .time_ns = 1500000000, .name = m->text, .in = in, .out = out };
    gp_call c = { .opts = r->stage->opts, .state = r->state, .name = "it", .errs = &errs,
                  .ctx = &r->thread };
    MUST(r->stage->kind->run(&c, &f, 1));
    MUST(f.status == GP_OK || f.status == GP_DROP || (f.status == GP_FAILED && errs.failed));
    if (getenv("FUZZ_SHOW") && errs.n)
        fprintf(stderr, "-- %s\n", errs.e[0].msg);
    for (int i = 0; i < PORTS; i++) {
        MUST(out[i].type.dim[0] >= 0 && out[i].type.dim[0] <= out[i].rows);
        MUST(!memcmp(copy[i], in[i].data, slot_bytes(&in[i])));
        free(copy[i]), free(in[i].data), free(out[i].data);
    }
}

static void one(const char *data, size_t n)
{
    static maker m;
    m.p = (const unsigned char *)data, m.end = m.p + n;
    gp_dtype a = (gp_dtype)(GP_U8 + next(&m, GP_NDTYPES - GP_U8));
    gp_dtype b = a % 12 + 1;
    rig *r = rig_open(a, b);
    for (unsigned i = 0; i < FRAMES; i++)
        run_frame(r, &m, i, a, b);
}

const fuzz_harness fuzz_lua = { .name = "lua", .one = one };
