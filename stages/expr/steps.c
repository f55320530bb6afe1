/* steps.c - several iterations of a loop in one launch: what a program makes of a frame, it makes of that again.
 *
 * The frame counts as rows of columns, behind axes of which nothing is a neighbor. A block takes a tile into shared
 * memory, with as many rows and columns around it as its steps reach (a halo), does them all, and writes the tile. In
 * each step less of the halo is right, and in the last one the tile. A thread has ROWS elements below each other, so
 * that most of what lies above and below them is in its registers. Of each field, an output that is carried, there are
 * two copies, one of which is read while the other is written.
 *
 * Where a tile reaches beyond the frame, that has in each step what `edge` says. With `zero` it is 0 and never written.
 * With `wrap` it is what lies at the other end, as everything there is as it is here. With `reflect` and `nearest`
 * threads beside the frame act as those of the columns that they show; rows above and below it are copied by who made
 * them. Each element is computed as by one step at a time: the bits are the same. */
#include <inttypes.h>
#include <math.h>
#include "compile/steps.h"
#include "program.h"

enum {
    INNER = 4,                 /* columns of an element of the last axis with neighbors, at most */
    HELD = 8,                  /* values of an element that do not change, at most */
    REGISTERS = 64,            /* ... of those and of fields, for a thread's elements */
    REACH = 16,                /* a neighbor is so many columns or rows away, at most */
    SHARED = 96 << 10, SHARED_ALL = 200 << 10, /* bytes of a block, of a multiprocessor */
    THREADS = 1024, THREADS_ALL = 2048,
    ALONE = 256,               /* steps of a launch without neighbors */
};

/* ---- may it be? -------------------------------------------------------------- */

/* The program's input that is the whole of what output o was; -1: it has others. */
static int field_of(const gp_ew_program *p, const gp_steps *q, int o)
{
    int field = -1;
    for (int i = 0; i < p->space.nin; i++)
        if (p->space.in[i].port == q->carries[o]) {
            if (field >= 0 || p->space.in[i].placed)
                return -1;
            field = i;
        }
    return field;
}

static int field_at(const gp_ew_program *p, const gp_ew_steps *t, int input)
{
    for (int o = 0; o < p->nout; o++)
        if (t->field[o] == input)
            return o;
    return -1;
}

static bool find_fields(const gp_ew_program *p, const gp_steps *q, gp_ew_steps *t, gp_type *frame)
{
    int64_t elements = 1;
    gp_ew_frame(&p->space, q->in, 0, frame);
    for (int o = 0; o < p->nout; o++) {
        int i = t->field[o] = field_of(p, q, o);
        if (i < 0 || p->space.repeated[i] || q->in[q->carries[o]].ndim != frame->ndim)
            return false;
        elements = gp_count(&q->in[q->carries[o]]);
    }
    bool narrow = elements < GP_EW_FAR;
    for (int i = 0; i < p->space.nin; i++)
        narrow &= gp_count(&q->in[p->space.in[i].port]) <= INT32_MAX;
    return narrow;
}

static bool is_near_field(const gp_ew_program *p, const gp_ew_steps *t, int i)
{
    return p->ins[i].op == GP_EW_NEAR && p->ins[i].needed && field_at(p, t, p->ins[i].a) >= 0;
}

static bool is_held(const gp_ew_program *p, const gp_ew_steps *t, int i)
{
    const gp_ew_ins *x = &p->ins[i];
    return (x->op == GP_EW_NEAR || x->op == GP_EW_LOAD) && x->needed && field_at(p, t, x->a) < 0;
}

/* How far neighbors of fields are, along which axes; and that all have one edge. */
static bool find_reach(const gp_ew_program *p, gp_ew_steps *t, const gp_type *frame, unsigned varies)
{
    int64_t reach[GP_MAXDIM] = { 0 };
    int first = -1, last = -1, edge = -1;
    for (int i = 0; i < p->n; i++)
        for (int k = 0; is_near_field(p, t, i) && k < frame->ndim; k++) {
            const gp_ew_shift *to = p->ins[i].shift[k] < 0 ? NULL : &p->shift[p->ins[i].shift[k]].to;
            if (!to || !to->by)
                continue;
            if (edge >= 0 && edge != to->edge)
                return false;
            edge = to->edge;
            int64_t by = to->by < 0 ? -to->by : to->by;
            reach[k] = by > reach[k] ? by : reach[k];
        }
    for (int k = 0; k < frame->ndim; k++)
        if (reach[k])
            first = first < 0 ? k : first, last = k;
    t->x = frame->ndim - 1, t->inner = 1;
    while (t->x > last && last >= 0 && t->inner * frame->dim[t->x] <= INNER && !(varies >> t->x & 1))
        t->inner *= (int)frame->dim[t->x--];
    t->y = t->x - 1;
    if (last >= 0 && (last < t->y || first < t->y))
        return false;
    t->edge = edge < 0 ? GP_EW_ZERO : (gp_ew_edge)edge;
    t->reach_x = last < 0 ? 0 : (int)(reach[t->x] * t->inner);
    t->reach_y = t->y < 0 ? 0 : (int)reach[t->y];
    return reach[t->x] * t->inner <= REACH && (t->y < 0 || reach[t->y] <= REACH);
}

/* ---- which tile, how many steps? ---------------------------------------------------- */

/* About: what an operation takes, as multiples of an addition of f32. */
static double cost_of(const gp_ew_ins *x)
{
    double wide = x->type == GP_EW_F64 || x->type == GP_EW_I64 || x->type == GP_EW_U64 || x->type == GP_EW_C64 ? 2 : 1;
    switch (x->op) {
    case GP_EW_DIV: case GP_EW_SQRT: case GP_EW_RSQRT: return 12 * wide;
    case GP_EW_REM: case GP_EW_EXP: case GP_EW_LOG: case GP_EW_LOG2: case GP_EW_LOG10: return 25 * wide;
    case GP_EW_SIN: case GP_EW_COS: case GP_EW_TAN: case GP_EW_POW: case GP_EW_ATAN2: case GP_EW_HYPOT: case GP_EW_ARG:
        return 50 * wide;
    case GP_EW_NUMBER: case GP_EW_SIZE: case GP_EW_LOAD: case GP_EW_NEAR: case GP_EW_STORE: return 0.5;
    default: return wide;
    }
}

typedef struct work {
    double ops;                /* of an element */
    int sides, held;           /* columns of fields that others have; values that do not change */
    int bytes, fields;         /* of an element of all fields */
    int64_t nx, ny, batch;
    int sms;
} work;

static work work_of(const gp_ew_program *p, const gp_ew_steps *t, const gp_type *frame, int sms)
{
    work w = { .fields = p->nout, .nx = t->inner, .ny = 1, .batch = 1, .sms = sms > 0 ? sms : 100 };
    bool side[GP_MAXPORT][2 * REACH + 1] = { { false } };
    for (int i = 0; i < p->n; i++) {
        const gp_ew_ins *x = &p->ins[i];
        w.ops += x->needed ? cost_of(x) : 0;
        w.held += is_held(p, t, i);
        if (is_near_field(p, t, i) && x->shift[t->x] >= 0)
            side[field_at(p, t, x->a)][REACH + p->shift[x->shift[t->x]].to.by] = true;
    }
    for (int o = 0; o < p->nout; o++) {
        w.bytes += (int)gp_dtype_size(p->out[o]);
        for (int k = 0; k <= 2 * REACH; k++)
            w.sides += side[o][k];
    }
    w.nx *= frame->dim[t->x];
    for (int k = 0; k < t->x; k++)
        *(k == t->y ? &w.ny : &w.batch) *= frame->dim[k];
    return w;
}

size_t gp_ew_steps_room(const gp_ew_steps *t, int bytes)
{
    size_t room = (size_t)(t->wide + 2 * t->reach_x) * (size_t)(t->high + 2 * t->reach_y) * (size_t)bytes;
    return (room + 15) / 16 * 16;
}

/* Clocks of a step, by a rough count: what shared memory and arithmetic take of a multiprocessor, no less than one step
 * of a block after the other; a launch, and the tile from and to memory, are shared by all steps. */
static double clocks(const work *w, const gp_ew_steps *t, size_t shared)
{
    enum { LAUNCH = 2200, WAIT = 60 };
    double k = (double)t->most, threads = t->wide * (t->high / t->rows), r = t->rows;
    double out_x = t->wide - 2 * k * t->reach_x, out_y = t->high - 2 * k * t->reach_y;
    double blocks = ceil((double)w->nx / out_x) * ceil((double)w->ny / out_y) * (double)w->batch;
    double each = ceil(blocks / w->sms);       /* blocks of a multiprocessor, */
    double room = floor(fmin(THREADS_ALL / threads, shared ? (double)SHARED_ALL / (double)shared : 32));
    double at_once = fmin(fmax(room, 1), each);        /* ... at the same time */
    double cells = t->wide * (t->high - (k + 1) * t->reach_y);
    bool alone = !t->reach_x && !t->reach_y;
    double moves = alone ? 0 : w->sides * (r + 2 * t->reach_y) / r + w->fields * (1 + 2 * t->reach_y / r);
    double step = cells * (moves / 32 + (w->ops + 2) / 100);
    double chain = alone ? 4 * w->ops : 40 + WAIT + 3 * w->ops + 4 * r;
    double all = fmax(each * step, ceil(each / at_once) * chain);
    double memory = each * (t->wide * t->high * (w->bytes + 4.0 * w->held) + out_x * out_y * w->bytes) / 32;
    return (LAUNCH + 1000 + memory) / k + all;
}

/* The best of some; `most` stays 1 where none is better than one step at a time. */
static void choose(const work *w, gp_ew_steps *t, int64_t times)
{
    static const int wide[] = { 32, 64, 96, 128, 256, 512, 1024 }, rows[] = { 1, 2, 4, 8 };
    static const int steps[] = { 2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16, 20, 24, 28, 32, 48, 64, ALONE };
    enum { WIDE = sizeof wide / sizeof *wide, ROWS = sizeof rows / sizeof *rows, STEPS = sizeof steps / sizeof *steps };
    bool alone = !t->reach_x && !t->reach_y;
    double blocks = ceil((double)w->nx * (double)w->ny * (double)w->batch / 1024 / w->sms);
    double least = 0.8 * (2200 + blocks * 1024 * (w->bytes * (2.0 + w->sides) / 32 + w->ops / 100));
    gp_ew_steps best = *t;
    best.most = 1;
    for (int i = 0; i < WIDE * ROWS * STEPS; i++) {
        gp_ew_steps try = *t;
        try.wide = wide[i % WIDE], try.rows = rows[i / WIDE % ROWS], try.most = steps[i / WIDE / ROWS];
        if (try.most > times || try.rows * (w->held + 2 * w->fields) > REGISTERS || (try.rows > 1 && try.rows > w->ny)
            || (try.most == ALONE && !alone))
            continue;
        for (int bands = 1; bands * try.wide <= THREADS; bands++) {
            int high = try.high = bands * try.rows;
            size_t shared = alone ? 0 : 2 * gp_ew_steps_room(&try, w->bytes);
            int out_x = try.wide - 2 * (int)try.most * t->reach_x, out_y = high - 2 * (int)try.most * t->reach_y;
            int registers = 32 + try.rows * (w->held + 2 * w->fields) * (w->bytes > 4 * w->fields ? 2 : 1);
            if (bands * try.wide * registers > 1 << 16 || shared > SHARED
                || out_x < 1 || (out_x < t->reach_x && out_x < w->nx)
                || out_y < 1 || (out_y < t->reach_y && out_y < w->ny)
                || (bands > 1 && high - try.rows >= w->ny + 2 * try.most * t->reach_y)
                || (w->ny / out_y + 1) * w->batch > UINT16_MAX)
                continue;
            double is = clocks(w, &try, shared);
            if (is < least)
                least = is, best = try;
        }
    }
    *t = best;
}

void gp_ew_find_steps(gp_steps *q)
{
    gp_ew_opts *o = q->opts;
    gp_ew_program *p = o->program;
    gp_ew_steps t = { .most = 1 };
    gp_type frame;
    unsigned varies = 0;
    for (int i = 0; i < q->nin; i++)
        varies |= q->varies[i];
    if (p->fold.op || !find_fields(p, q, &t, &frame) || !find_reach(p, &t, &frame, varies))
        return;
    work w = work_of(p, &t, &frame, q->sms);
    if (w.held > HELD || !gp_count(&frame))
        return;
    choose(&w, &t, q->times);
    if (t.most < 2)
        return;
    for (int k = 0; k < p->nout; k++)
        t.shared += t.reach_x || t.reach_y ? 2 * gp_ew_steps_room(&t, (int)gp_dtype_size(p->out[k])) : 0;
    p->steps = gp_shape_alloc(q->shape, sizeof *p->steps);
    *p->steps = t;
    if (gp_ew_write(q->shape, o->expr, p))
        q->most = t.most;
}

/* ---- the text ------------------------------------------------------------------- */

static const char *const edges[] = { [GP_EW_REFLECT] = "reflect", [GP_EW_NEAREST] = "nearest", [GP_EW_ZERO] = "zero",
                                     [GP_EW_WRAP] = "periodic" };

/* Is what lies beyond the frame copied from inside? */
static bool copies(const gp_ew_steps *t)
{
    return t->edge == GP_EW_REFLECT || t->edge == GP_EW_NEAREST;
}

/* Where a thread is in the frame: in column x, its first element in row y; and the column that it acts as. */
static void put_place(FILE *o, const gp_ew_steps *t)
{
    fprintf(o, "    enum { ROWS = %d, WIDE = %d, HIGH = %d, RX = %d, RY = %d, INNER = %d, PITCH = WIDE + 2 * RX };\n",
            t->rows, t->wide, t->high, t->reach_x, t->reach_y, t->inner);
    fprintf(o, "    const int32_t dim_x = (int32_t)axes.dim[%d], nx = dim_x * INNER;\n", t->x);
    if (t->y >= 0)
        fprintf(o, "    const int32_t ny = (int32_t)axes.dim[%d];\n", t->y);
    else
        fputs("    const int32_t ny = 1;\n", o);
    fputs("    const int32_t halo_x = steps * RX, halo_y = steps * RY;\n"
          "    const int32_t out_x = WIDE - 2 * halo_x, out_y = HIGH - 2 * halo_y;\n"
          "    const int32_t tiles_y = (ny + out_y - 1) / out_y, batch = (int32_t)blockIdx.y / tiles_y;\n"
          "    const int32_t tx = threadIdx.x, ty = threadIdx.y * ROWS;\n"
          "    const int32_t x = (int32_t)blockIdx.x * out_x - halo_x + tx;\n"
          "    const int32_t y = ((int32_t)blockIdx.y - batch * tiles_y) * out_y - halo_y + ty;\n"
          "    const int32_t column = x + halo_x * INNER, rest_x = column % INNER;\n", o);
    fprintf(o, "    const int32_t at_x = %sgp_ew_%s<int32_t>(0, column / INNER - halo_x, dim_x);\n",
            copies(t) ? "x < -RX || x >= nx + RX ? -1 : " : "", edges[t->edge]);
    fputs("    const bool live = at_x >= 0;\n    const int32_t column_x = at_x * INNER + rest_x;\n", o);
    if (t->edge == GP_EW_WRAP)
        fputs("    const int32_t first = 0, last = ROWS;\n", o);
    else
        fputs("    const int32_t first = y < 0 ? -y : 0, last = ny - y < ROWS ? ny - y : ROWS;\n", o);
    fputs("    const bool whole = first == 0 && last == ROWS;\n", o);
    fprintf(o, "    auto row = [=](int32_t at) -> int32_t { return %sgp_ew_%s<int32_t>(0, at, ny); };\n",
            copies(t) ? "at < -RY || at >= ny + RY ? -1 : " : "", edges[t->edge]);
}

/* Index k of an axis: element `of` of those from axis `from` on to axis `to`, but that. */
static void put_index(FILE *o, int k, const char *of, int to)
{
    fprintf(o, "            const int32_t at%d = %s", k, of);
    for (int j = to - 1; j > k; j--)
        fprintf(o, " / (int32_t)axes.dim[%d]", j);
    fprintf(o, " %% (int32_t)axes.dim[%d];\n", k);
}

/* The indices of element j. */
static void put_indices(FILE *o, const gp_ew_program *p, const gp_ew_steps *t)
{
    for (int k = 0; k < t->y; k++)
        put_index(o, k, "batch", t->y);
    if (t->y >= 0)
        fprintf(o, "            const int32_t at%d = %s;\n", t->y, t->edge == GP_EW_WRAP ? "row(y + j)" : "y + j");
    fprintf(o, "            const int32_t at%d = at_x;\n", t->x);
    for (int k = t->x + 1; k < p->space.ndim; k++)
        put_index(o, k, "rest_x", p->space.ndim);
}

/* Elements that are in memory, and in no step change. */
static void put_held(FILE *o, const gp_ew_program *p, const gp_ew_steps *t)
{
    bool any = false;
    for (int i = 0; i < p->n; i++)
        if (is_held(p, t, i)) {
            fprintf(o, "    %s held%d[ROWS];\n", gp_ew_stored((gp_dtype)p->ins[i].from), i);
            any = true;
        }
    if (!any)
        return;
    fputs("#pragma unroll\n    for (int j = 0; j < ROWS; j++) {\n", o);
    for (int i = 0; i < p->n; i++)
        if (is_held(p, t, i))
            fprintf(o, "        held%d[j] = {};\n", i);
    fputs("        if (live && j >= first && j < last) {\n", o);
    put_indices(o, p, t);
    for (int i = 0; i < p->nshifts; i++)
        if (p->shift[i].needed)
            gp_ew_put_shift(o, p, i, "int32_t");
    for (int i = 0; i < p->n; i++) {
        if (!is_held(p, t, i))
            continue;
        if (p->ins[i].op == GP_EW_NEAR) {
            gp_ew_put_near(o, p, i, "int32_t");
            fprintf(o, "            held%d[j] = near%d;\n", i, i);
        } else {
            fprintf(o, "            held%d[j] = in%d[", i, p->ins[i].a);
            gp_ew_put_offset(o, p, p->ins[i].a, NULL, "int32_t");
            fputs("];\n", o);
        }
    }
    fputs("        }\n    }\n", o);
}

/* A thread's elements of each field, from memory. */
static void put_loads(FILE *o, const gp_ew_program *p, const gp_ew_steps *t)
{
    bool shares = t->shared > 0;
    if (shares)
        fprintf(o, "    GP_SHARED(char, shared);\n    const int32_t begin = (ty + RY) * PITCH + RX, acts = tx%s;\n",
                copies(t) ? " + (live ? column_x - x : 0)" : "");
    size_t at = 0;
    for (int f = 0; f < p->nout; f++) {
        const char *type = gp_ew_stored(p->out[f]);
        size_t room = gp_ew_steps_room(t, (int)gp_dtype_size(p->out[f]));
        fprintf(o, "    %s c%d[ROWS];\n", type, f);
        if (shares)
            fprintf(o, "    %s *const a%d = (%s *)(shared + %zu) + begin, *const b%d = (%s *)(shared + %zu) + begin;\n", type, f,
                    type, at, f, type, at + room);
        at += 2 * room;
    }
    fputs("#pragma unroll\n    for (int j = 0; j < ROWS; j++) {\n        const int32_t row_y = row(y + j);\n"
          "        const bool there = live && row_y >= 0;\n"
          "        const int32_t e = (batch * ny + row_y) * nx + column_x;\n", o);
    for (int f = 0; f < p->nout; f++) {
        fprintf(o, "        c%d[j] = {};\n        if (there)\n            c%d[j] = in%d[e];\n", f, f, t->field[f]);
        if (shares)
            fprintf(o, "        a%d[j * PITCH + tx] = b%d[j * PITCH + tx] = c%d[j];\n", f, f, f);
    }
    fputs("    }\n", o);
}

/* The function of an element calls for these. */
static void put_operands(FILE *o, const gp_ew_program *p, const gp_ew_steps *t)
{
    for (int i = 0; i < p->n; i++) {
        const gp_ew_ins *x = &p->ins[i];
        int f = x->op == GP_EW_NEAR || x->op == GP_EW_LOAD ? field_at(p, t, x->a) : -1;
        if (is_held(p, t, i) && x->op == GP_EW_NEAR)
            fprintf(o, "            const auto near%d = held%d[j];\n", i, i);
        else if (is_held(p, t, i))
            fprintf(o, "            const auto x%d = held%d[j];\n", x->a, i);
        else if (x->op == GP_EW_LOAD && x->needed)
            fprintf(o, "            const auto x%d = c%d[j];\n", x->a, f);
        if (!is_near_field(p, t, i))
            continue;
        int64_t dx = 0, dy = 0;
        for (int k = 0; k < p->space.ndim; k++)
            if (x->shift[k] >= 0)
                *(k == t->x ? &dx : &dy) = p->shift[x->shift[k]].to.by * (k == t->x ? t->inner : 1);
        fprintf(o, "            const auto near%d = ", i);
        if (!dx)                       /* the index is in the range, where it counts */
            fprintf(o, "j + (%" PRId64 ") >= 0 && j + (%" PRId64 ") < ROWS ? c%d[(j + (%" PRId64 ") + %d * ROWS) %% ROWS]"
                    " : ", dy, dy, f, dy, REACH);
        fprintf(o, "p%d[(j + (%" PRId64 ")) * PITCH + (%" PRId64 ")];\n", f, dy, dx);
    }
}

/* Rows beside the frame that show those which this thread has made. */
static void put_copies(FILE *o, const gp_ew_program *p)
{
    fputs("            for (int32_t g = 1; beside && g <= RY; g++) {\n", o);
    for (int after = 0; after < 2; after++) {
        const char *at = after ? "ny - 1 + g" : "-g";
        fprintf(o, "                {\n                const int32_t to = %s - y, from = row(%s) - y;\n", at, at);
        fputs("                if (from >= first && from < last && ty + to >= -RY && ty + to < HIGH + RY) {\n", o);
        for (int f = 0; f < p->nout; f++)
            fprintf(o, "                    q%d[to * PITCH] = q%d[from * PITCH];\n", f, f);
        fputs("                }\n                }\n", o);
    }
    fputs("            }\n", o);
}

static void put_step(FILE *o, const gp_ew_program *p, const gp_ew_steps *t)
{
    bool shares = t->shared > 0, rows = shares && t->reach_y;
    if (rows && copies(t))             /* all sources of such rows are so near the border */
        fputs("    const bool beside = y + first < RY || y + last > ny - RY;\n", o);
    fputs("#pragma unroll 1\n    for (int s = 1; s <= steps; s++) {\n", o);
    if (shares) {
        fputs("        __syncthreads();\n", o);
        for (int f = 0; f < p->nout; f++) {
            const char *type = gp_ew_stored(p->out[f]);
            fprintf(o, "        const %s *const p%d = (s & 1 ? a%d : b%d) + acts;\n", type, f, f, f);
            fprintf(o, "        %s *const q%d = (s & 1 ? b%d : a%d) + tx;\n", type, f, f, f);
        }
    }
    /* A warp, whose threads have the same rows, leaves out what no step needs any more. */
    fputs("        if (live && first < last && ty + ROWS > s * RY && ty < HIGH - s * RY && (tx | 31) >= s * RX\n"
          "            && (tx & ~31) < WIDE - s * RX) {\n", o);
    for (int f = 0; f < p->nout && rows; f++)
        fprintf(o, "            if (!whole)\n#pragma unroll\n                for (int j = 0; j < ROWS; j++)\n"
                "                    c%d[j] = p%d[j * PITCH];\n", f, f);
    for (int f = 0; f < p->nout; f++)
        fprintf(o, "            %s y%d[ROWS];\n", gp_ew_stored(p->out[f]), f);
    fputs("#pragma unroll\n            for (int j = 0; j < ROWS; j++) {\n", o);
    if (p->indices)
        put_indices(o, p, t);
    put_operands(o, p, t);
    fputs("            ", o);
    gp_ew_put_call(o, p, "x%d", "y%d[j]");
    fputs("            }\n#pragma unroll\n            for (int j = 0; j < ROWS; j++) {\n", o);
    for (int f = 0; f < p->nout; f++)
        fprintf(o, "                c%d[j] = y%d[j];\n", f, f);
    fputs("            }\n", o);
    for (int all = 1; all >= 0 && shares; all--) {
        fprintf(o, "            %s\n#pragma unroll\n                for (int j = 0; j < ROWS; j++)%s {\n",
                all ? "if (whole)" : "else", all ? "" : "\n                    if (j >= first && j < last)");
        for (int f = 0; f < p->nout; f++)
            fprintf(o, "                    q%d[j * PITCH] = y%d[j];\n", f, f);
        fputs("                }\n", o);
    }
    if (rows && copies(t))
        put_copies(o, p);
    fputs("        }\n    }\n", o);
}

void gp_ew_put_steps(FILE *o, const gp_ew_program *p)
{
    const gp_ew_steps *t = p->steps;
    put_place(o, t);
    put_held(o, p, t);
    put_loads(o, p, t);
    put_step(o, p, t);
    fputs("    if (tx >= halo_x && tx < WIDE - halo_x && x < nx) {\n"
          "#pragma unroll\n        for (int j = 0; j < ROWS; j++)\n"
          "            if (ty + j >= halo_y && ty + j < HIGH - halo_y && y + j < ny) {\n", o);
    for (int f = 0; f < p->nout; f++)
        fprintf(o, "                out%d[(batch * ny + y + j) * nx + x] = c%d[j];\n", f, f);
    fputs("            }\n    }\n", o);
}
