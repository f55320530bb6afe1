/* steps.c - several iterations of a loop in one launch: what a program makes of a frame, it makes of that again.
 *
 * The frame counts as rows of columns, behind axes of which nothing is a neighbor. A block takes a tile into shared
 * memory, with as many rows and columns around it as its steps reach (a halo), does them all, and writes the tile. In
 * each step less of the halo is right, and in the last one the tile. A thread has ROWS elements below each other, so
 * that most of what lies above and below them is in its registers. A step has a phase for each stage that the body had.
 * All threads of a block wait for each other before each phase. Of a field, a frame that changes, there are two tiles
 * where a phase reads neighbors of the one that it makes anew.
 *
 * Where a tile reaches beyond the frame, that has at any time what `edge` says. With `zero` it is 0 and never written.
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
    LITTLE = 48 << 10, MUCH = 96 << 10,        /* shared memory of a block: what any GPU has, those from 8.0 on */
    THREADS = 1024, THREADS_ALL = 2048,
    ALONE = 256,               /* steps of a launch without neighbors */
};

/* ---- may it be? -------------------------------------------------------------- */

/* The program's input that is the whole of what output o was; -1: it has others. */
static int input_of(const gp_ew_program *p, const gp_steps *q, int o)
{
    int input = -1;
    for (int i = 0; i < p->space.nin; i++)
        if (p->space.in[i].port == q->carries[o]) {
            if (input >= 0 || p->space.in[i].placed)
                return -1;
            input = i;
        }
    return input;
}

/* The field that an operation loads of, or stores; -1: it does not. */
static int field_of(const gp_ew_program *p, const gp_ew_steps *t, int i)
{
    const gp_ew_ins *x = &p->ins[i];
    if (!x->needed || (x->op != GP_EW_NEAR && x->op != GP_EW_LOAD && x->op != GP_EW_STORE))
        return -1;
    int a = x->op == GP_EW_STORE ? x->d : x->a;
    if (a >= GP_EW_BETWEEN)
        return p->nout + a - GP_EW_BETWEEN;
    for (int f = 0; f < p->nout; f++)
        if (x->op == GP_EW_STORE ? f == a : t->field[f].input == a)
            return f;
    return -1;
}

static bool is_near(const gp_ew_program *p, const gp_ew_steps *t, int i)
{
    return p->ins[i].op == GP_EW_NEAR && field_of(p, t, i) >= 0;
}

static bool is_held(const gp_ew_program *p, const gp_ew_steps *t, int i)
{
    const gp_ew_ins *x = &p->ins[i];
    return x->needed && (x->op == GP_EW_NEAR || x->op == GP_EW_LOAD) && field_of(p, t, i) < 0;
}

static bool find_fields(gp_shape *s, const gp_ew_program *p, const gp_steps *q, gp_ew_steps *t, const gp_type *frame)
{
    bool narrow = gp_count(frame) < GP_EW_FAR;
    t->nfields = p->nout + p->nbetween;
    t->field = gp_shape_alloc(s, sizeof *t->field * (size_t)t->nfields);
    for (int f = 0; f < t->nfields; f++) {
        int i = t->field[f].input = f < p->nout ? input_of(p, q, f) : -1;
        if (f < p->nout && (i < 0 || p->space.repeated[i] || q->in[q->carries[f]].ndim != frame->ndim))
            return false;
    }
    for (int i = 0; i < p->n; i++)
        if (p->ins[i].op == GP_EW_STORE) {
            gp_ew_field *f = &t->field[field_of(p, t, i)];
            f->dtype = (gp_dtype)p->ins[i].from, f->phase = p->ins[i].phase;
            t->phases = f->phase + 1;
        }
    for (int i = 0; i < p->space.nin; i++)
        narrow &= gp_count(&q->in[p->space.in[i].port]) <= INT32_MAX;
    return narrow && t->phases <= GP_EW_PHASES;
}

/* What each phase computes: what it stores, and what that is made of. */
static void find_phases(gp_shape *s, const gp_ew_program *p, gp_ew_steps *t)
{
    t->in_phase = gp_shape_alloc(s, (size_t)t->phases * (size_t)p->n);
    for (int k = 0; k < t->phases; k++) {
        bool *in = t->in_phase + (size_t)k * (size_t)p->n;
        for (int i = p->n - 1; i >= 0; i--) {
            const gp_ew_ins *x = &p->ins[i];
            const int operand[] = { x->a, x->b, x->c };
            int n = x->op == GP_EW_STORE ? 1 : gp_ew_operands(x->op);
            in[i] |= x->op == GP_EW_STORE && x->phase == k;
            for (int j = 0; in[i] && j < n; j++)
                in[operand[j]] = true;
        }
    }
}

static bool in_phase(const gp_ew_program *p, const gp_ew_steps *t, int phase, int i)
{
    return t->in_phase[phase * p->n + i];
}

/* Elements from one to a neighbor, along axis k. */
static int64_t away(const gp_ew_program *p, int i, int k)
{
    const int *shift = p->ins[i].shift;
    return k < 0 || shift[k] < 0 ? 0 : p->shift[shift[k]].to.by;
}

static int larger(int a, int64_t b)
{
    return b > a ? (int)b : -b > a ? (int)-b : a;
}

/* Of all that lies beyond the border of a field, there is one kind; and of all fields, beside zeros. */
static bool find_edges(const gp_ew_program *p, gp_ew_steps *t)
{
    int other = -1;
    for (int i = 0; i < p->n; i++) {
        for (int k = 0; is_near(p, t, i) && k < p->space.ndim; k++) {
            gp_ew_field *f = &t->field[field_of(p, t, i)];
            int edge = away(p, i, k) ? p->shift[p->ins[i].shift[k]].to.edge : -1;
            if (edge < 0)
                continue;
            if (f->near && f->zero != (edge == GP_EW_ZERO))
                return false;
            f->near = true, f->zero = edge == GP_EW_ZERO;
            if (!f->zero && other >= 0 && other != edge)
                return false;
            other = f->zero ? other : edge;
        }
    }
    t->edge = other < 0 ? GP_EW_ZERO : (gp_ew_edge)other;
    for (int f = 0; f < t->nfields && other == GP_EW_WRAP; f++)
        if (t->field[f].zero)
            return false;
    return true;
}

/* Which axes are those of rows and columns, and how far neighbors are. */
static bool find_reach(const gp_ew_program *p, gp_ew_steps *t, const gp_type *frame, unsigned varies)
{
    int first = -1, last = -1;
    for (int i = 0; i < p->n; i++)
        for (int k = 0; is_near(p, t, i) && k < frame->ndim; k++) {
            if (!away(p, i, k))
                continue;
            if (away(p, i, k) > REACH || away(p, i, k) < -REACH)
                return false;
            first = first < 0 || k < first ? k : first, last = k > last ? k : last;
        }
    t->x = frame->ndim - 1, t->inner = 1;
    while (t->x > last && last >= 0 && t->inner * frame->dim[t->x] <= INNER && !(varies >> t->x & 1))
        t->inner *= (int)frame->dim[t->x--];
    t->y = t->x - 1;
    if (last >= 0 && (last < t->y || first < t->y))
        return false;
    for (int k = 0; k < t->phases; k++) {
        for (int i = 0; i < p->n; i++)
            if (in_phase(p, t, k, i) && is_near(p, t, i)) {
                t->reach_x[k] = larger(t->reach_x[k], away(p, i, t->x) * t->inner);
                t->reach_y[k] = larger(t->reach_y[k], away(p, i, t->y));
            }
        t->most_x = larger(t->most_x, t->reach_x[k]), t->all_x += t->reach_x[k];
        t->most_y = larger(t->most_y, t->reach_y[k]), t->all_y += t->reach_y[k];
    }
    return t->most_x <= REACH;
}

/* A field that is carried is in two tiles, unless all that reads its neighbors comes before it is made anew. */
static void find_copies(const gp_ew_program *p, gp_ew_steps *t)
{
    for (int f = 0; f < t->nfields; f++) {
        gp_ew_field *to = &t->field[f];
        to->copies = to->near;
        for (int i = 0; i < p->n; i++)
            for (int k = to->phase; k < t->phases; k++)
                if (f < p->nout && is_near(p, t, i) && field_of(p, t, i) == f && in_phase(p, t, k, i))
                    to->copies = 2;
    }
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
    case GP_EW_NUMBER: case GP_EW_SIZE: case GP_EW_LOAD: case GP_EW_NEAR: case GP_EW_STORE: return 0;
    default: return wide;
    }
}

typedef struct work {
    double ops;                /* of an element */
    int sides, nears, held;    /* columns of fields that others have; fields in shared memory; values that stay */
    int bytes, words;          /* of an element of the fields that are carried; registers of one of all */
    int64_t nx, ny, batch;
    int sms, shared;           /* multiprocessors, bytes that a block may have of one; that has twice as many */
} work;

static work work_of(const gp_ew_program *p, const gp_ew_steps *t, const gp_type *frame, const gp_steps *q)
{
    work w = { .nx = t->inner, .ny = 1, .batch = 1, .sms = q->sms > 0 ? q->sms : 100,
               .shared = q->cc >= 80 ? MUCH : LITTLE };
    for (int i = 0; i < p->n; i++) {
        w.ops += p->ins[i].needed ? cost_of(&p->ins[i]) : 0;
        w.held += is_held(p, t, i);
        bool again = !is_near(p, t, i) || !away(p, i, t->x);
        for (int k = 0; k < i && !again; k++)
            again = is_near(p, t, k) && field_of(p, t, k) == field_of(p, t, i) && away(p, k, t->x) == away(p, i, t->x);
        w.sides += !again;
    }
    for (int f = 0; f < t->nfields; f++) {
        w.nears += t->field[f].near;
        w.bytes += f < p->nout ? (int)gp_dtype_size(t->field[f].dtype) : 0;
        w.words += gp_dtype_size(t->field[f].dtype) > 4 ? 2 : 1;
    }
    w.nx *= frame->dim[t->x];
    for (int k = 0; k < t->x; k++)
        *(k == t->y ? &w.ny : &w.batch) *= frame->dim[k];
    return w;
}

/* Where the tiles are in shared memory; how many bytes all have. */
static size_t lay_out(gp_ew_steps *t)
{
    size_t used = 0, n = (size_t)(t->wide + 2 * t->most_x) * (size_t)(t->high + 2 * t->most_y);
    for (int f = 0; f < t->nfields; f++) {
        t->field[f].at = used;
        used += (size_t)t->field[f].copies * ((n * gp_dtype_size(t->field[f].dtype) + 15) / 16 * 16);
    }
    return used;
}

/* Clocks of a step, by a rough count: what shared memory and arithmetic take of a multiprocessor, no less than one step
 * of a block after the other; a launch, and the tile from and to memory, are shared by all steps. */
static double clocks(const work *w, const gp_ew_steps *t)
{
    enum { LAUNCH = 2200, BLOCK = 1000, WAIT = 100, L2 = 24 };
    double k = (double)t->most, threads = t->wide * (t->high / t->rows), r = t->rows;
    double out_x = t->wide - 2 * k * t->all_x, out_y = t->high - 2 * k * t->all_y;
    double blocks = ceil((double)w->nx / out_x) * ceil((double)w->ny / out_y) * (double)w->batch;
    double each = ceil(blocks / w->sms);       /* blocks of a multiprocessor, */
    double room = floor(fmin(THREADS_ALL / threads, t->shared ? 2.0 * w->shared / (double)t->shared : 32));
    double at_once = fmin(fmax(room, 1), each);        /* ... at the same time */
    double cells = t->wide * (t->high - (k + 1) * t->all_y);
    double above = 2 * t->most_y / r;          /* rows that other threads have, for each of a thread's */
    double moves = w->sides + w->nears * (1 + above);
    double warps = at_once * threads / 32, idle = ceil(warps / 4) * 4 / warps;     /* four of them take turns */
    double step = cells * 1.25 * fmax(moves / 32, (moves + w->ops + 4) * idle / 128);
    double chain = w->nears ? t->phases * WAIT + 3 * w->ops + 4 * r : 4 * w->ops;
    double memory = each * (t->wide * t->high * (w->bytes + 4.0 * w->held) + out_x * out_y * w->bytes) / L2;
    return (LAUNCH + BLOCK + memory) / k + fmax(each * step, ceil(each / at_once) * chain);
}

/* The same of one step at a time, where each phase is a launch. */
static double clocks_alone(const work *w, const gp_ew_steps *t)
{
    enum { LAUNCH = 2200, BLOCK = 1024, L2 = 24 };
    double each = ceil((double)w->nx * (double)w->ny * (double)w->batch / BLOCK / w->sms);
    double bytes = 2 * w->bytes + 8 * (t->phases - 1) + 4 * w->held;
    return LAUNCH * t->phases + each * BLOCK * fmax(bytes / L2, (w->ops + 10 * t->phases) / 128);
}

/* Is there such a tile? */
static bool fits(const work *w, const gp_ew_steps *t)
{
    int64_t out_x = t->wide - 2 * t->most * t->all_x, out_y = t->high - 2 * t->most * t->all_y;
    int bands = t->high / t->rows, registers = 32 + t->rows * (w->held + 2 * w->words);
    return out_x > 0 && (out_x >= t->most_x || out_x >= w->nx) && out_y > 0 && (out_y >= t->most_y || out_y >= w->ny)
        && bands * t->wide <= THREADS && bands * t->wide * registers <= 1 << 16 && t->shared <= (size_t)w->shared
        && (bands == 1 || t->high - t->rows < w->ny + 2 * t->most * t->all_y)
        && (w->ny / out_y + 1) * w->batch <= UINT16_MAX;
}

/* The best of some; `most` stays 1 where none is better than one step at a time. */
static void choose(const work *w, gp_ew_steps *t, int64_t times)
{
    static const int wide[] = { 32, 64, 96, 128, 256, 512, 1024 }, rows[] = { 1, 2, 4, 8, 16 };
    static const int steps[] = { 2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16, 20, 24, 28, 32, 48, 64, ALONE };
    enum { WIDE = sizeof wide / sizeof *wide, ROWS = sizeof rows / sizeof *rows, STEPS = sizeof steps / sizeof *steps };
    double least = 0.8 * clocks_alone(w, t);
    gp_ew_steps best = *t;
    for (int i = 0; i < WIDE * ROWS * STEPS; i++) {
        gp_ew_steps try = *t;
        try.wide = wide[i % WIDE], try.rows = rows[i / WIDE % ROWS], try.most = steps[i / WIDE / ROWS];
        if (try.most > times || try.rows * (w->held + 2 * w->words) > REGISTERS || (try.rows > 1 && try.rows > w->ny)
            || (try.most == ALONE && w->nears))
            continue;
        for (try.high = try.rows; try.high * try.wide <= THREADS * try.rows; try.high += try.rows) {
            try.shared = lay_out(&try);
            double is = fits(w, &try) ? clocks(w, &try) : INFINITY;
            if (is < least)
                least = is, best = try;
        }
    }
    *t = best;
    lay_out(t);
}

void gp_ew_find_steps(gp_steps *q)
{
    gp_ew_opts *o = q->opts;
    gp_ew_program *p = o->program;
    gp_ew_steps *t = gp_shape_alloc(q->shape, sizeof *t);
    gp_type frame;
    unsigned varies = 0;
    t->most = 1;
    for (int i = 0; i < q->nin; i++)
        varies |= q->varies[i];
    gp_ew_frame(&p->space, q->in, 0, &frame);
    if (p->fold.op || !gp_count(&frame) || !find_fields(q->shape, p, q, t, &frame))
        return;
    find_phases(q->shape, p, t);
    if (!find_edges(p, t) || !find_reach(p, t, &frame, varies))
        return;
    find_copies(p, t);
    work w = work_of(p, t, &frame, q);
    if (w.held <= HELD)
        choose(&w, t, q->times);
    if (t->most < 2)
        return;
    p->steps = t;
    if (gp_ew_write(q->shape, o->expr, p))
        q->most = t->most;
}

/* ---- the text ------------------------------------------------------------------- */

static const char *const edges[] = { [GP_EW_REFLECT] = "reflect", [GP_EW_NEAREST] = "nearest", [GP_EW_ZERO] = "zero",
                                     [GP_EW_WRAP] = "periodic" };

/* Is what lies beyond the frame copied from inside? Of any field; of this one? */
static bool copies(const gp_ew_steps *t)
{
    return t->edge == GP_EW_REFLECT || t->edge == GP_EW_NEAREST;
}

static bool is_copied(const gp_ew_steps *t, int f)
{
    return copies(t) && t->field[f].near && !t->field[f].zero;
}

/* Where a thread is in the frame: in column x, its first element in row y; and the column that it acts as. */
static void put_place(FILE *o, const gp_ew_steps *t)
{
    fprintf(o, "    enum { ROWS = %d, WIDE = %d, HIGH = %d, RX = %d, RY = %d, INNER = %d, PITCH = WIDE + 2 * RX };\n",
            t->rows, t->wide, t->high, t->most_x, t->most_y, t->inner);
    fprintf(o, "    const int32_t dim_x = (int32_t)axes.dim[%d], nx = dim_x * INNER;\n", t->x);
    if (t->y >= 0)
        fprintf(o, "    const int32_t ny = (int32_t)axes.dim[%d];\n", t->y);
    else
        fputs("    const int32_t ny = 1;\n", o);
    fprintf(o, "    const int32_t halo_x = steps * %d, halo_y = steps * %d;\n", t->all_x, t->all_y);
    fputs("    const int32_t out_x = WIDE - 2 * halo_x, out_y = HIGH - 2 * halo_y;\n"
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
static void put_loads(FILE *o, const gp_ew_steps *t)
{
    if (t->shared)
        fprintf(o, "    GP_SHARED(char, shared);\n    const int32_t begin = (ty + RY) * PITCH + RX, acts = tx%s;\n",
                copies(t) ? " + (live ? column_x - x : 0)" : "");
    if (copies(t))
        fputs("    const bool inside = x >= 0 && x < nx;\n", o);
    for (int f = 0; f < t->nfields; f++) {
        const gp_ew_field *is = &t->field[f];
        const char *type = gp_ew_stored(is->dtype);
        fprintf(o, "    %s c%d[ROWS], y%d[ROWS];\n", type, f, f);
        if (is->copies)
            fprintf(o, "    %s *const a%d = (%s *)(shared + %zu) + begin, *const b%d = a%d + %s;\n", type, f, type,
                    is->at, f, f, is->copies > 1 ? "(HIGH + 2 * RY) * PITCH" : "0");
    }
    fputs("#pragma unroll\n    for (int j = 0; j < ROWS; j++) {\n        const int32_t row_y = row(y + j);\n"
          "        const bool there = live && row_y >= 0;\n"
          "        const int32_t e = (batch * ny + row_y) * nx + column_x;\n        (void)there, (void)e;\n", o);
    for (int f = 0; f < t->nfields; f++) {
        const gp_ew_field *is = &t->field[f];
        fprintf(o, "        c%d[j] = {}, y%d[j] = {};\n", f, f);
        if (is->input >= 0)
            fprintf(o, "        if (there)\n            c%d[j] = in%d[e];\n", f, is->input);
        if (is->copies)
            fprintf(o, "        a%d[j * PITCH + tx] = b%d[j * PITCH + tx] = c%d[j];\n", f, f, f);
        if (is->copies && is->zero && copies(t))
            fprintf(o, "        if (!inside || j < first || j >= last)\n"
                    "            a%d[j * PITCH + tx] = b%d[j * PITCH + tx] = {};\n", f, f);
    }
    fputs("    }\n", o);
}

/* What operation i takes from memory or stores, as a parameter of a phase's function, or as an argument. */
static bool put_operand(FILE *o, const gp_ew_program *p, const gp_ew_steps *t, int i, bool call, const char *before)
{
    const gp_ew_ins *x = &p->ins[i];
    const char *type = gp_ew_stored((gp_dtype)x->from);
    if (x->op == GP_EW_INDEX)
        fprintf(o, call ? "%sat%d" : "%sint64_t i%d", before, x->a);
    else if (x->op == GP_EW_STORE && call)
        fprintf(o, "%sy%d[j]", before, field_of(p, t, i));
    else if (x->op == GP_EW_STORE)
        fprintf(o, "%s%s &y%d", before, type, x->d);
    else if (x->op == GP_EW_NEAR)
        fprintf(o, "%s%s%snear%d", before, call ? "" : type, call ? "" : " ", i);
    else if (x->op == GP_EW_LOAD)
        fprintf(o, "%s%s%sx%d", before, call ? "" : type, call ? "" : " ", x->a);
    else
        return false;
    return true;
}

static void put_operands(FILE *o, const gp_ew_program *p, const gp_ew_steps *t, int phase, bool call)
{
    bool any = false;
    for (int i = 0; i < p->n; i++)
        if (in_phase(p, t, phase, i))
            any |= put_operand(o, p, t, i, call, any ? ", " : "");
}

/* What a phase does for an element. */
static void put_functions(FILE *o, const gp_ew_program *p, const gp_ew_steps *t)
{
    for (int k = 0; k < t->phases; k++) {
        int vars = 0;
        fprintf(o, "    auto phase%d = [=](", k);
        put_operands(o, p, t, k, false);
        fputs(") {\n", o);
        for (int i = 0; i < p->n; i++)
            if (in_phase(p, t, k, i))
                gp_ew_put_ins(o, p, i, &vars);
            else
                vars += p->ins[i].op == GP_EW_NUMBER && p->ins[i].var && p->ins[i].needed;
        fputs("    };\n", o);
    }
}

/* The values that it takes for element j. */
static void put_values(FILE *o, const gp_ew_program *p, const gp_ew_steps *t, int phase)
{
    for (int i = 0; i < p->n; i++) {
        const gp_ew_ins *x = &p->ins[i];
        int f = field_of(p, t, i), dx, dy;
        if (!in_phase(p, t, phase, i) || (x->op != GP_EW_NEAR && x->op != GP_EW_LOAD))
            continue;
        if (x->op == GP_EW_NEAR)
            fprintf(o, "                const %s near%d = ", gp_ew_stored((gp_dtype)x->from), i);
        else
            fprintf(o, "                const %s x%d = ", gp_ew_stored((gp_dtype)x->from), x->a);
        if (f < 0 || x->op == GP_EW_LOAD) {
            fprintf(o, "%s%d[j];\n", f < 0 ? "held" : "c", f < 0 ? i : f);
            continue;
        }
        dx = (int)away(p, i, t->x) * t->inner, dy = (int)away(p, i, t->y);
        if (!dx)                       /* the index is in the range, where it counts */
            fprintf(o, "j + (%d) >= 0 && j + (%d) < ROWS ? c%d[(j + %d * ROWS + (%d)) %% ROWS] : ", dy, dy, f, REACH,
                    dy);
        fprintf(o, "p%d[(j + (%d)) * PITCH + (%d)];\n", f, dy, dx);
    }
}

/* Rows beside the frame that show those which this thread has made. */
static void put_copies(FILE *o, const gp_ew_steps *t, int phase)
{
    bool any = false;
    for (int f = 0; f < t->nfields; f++)
        any |= t->field[f].phase == phase && is_copied(t, f);
    if (!any || !t->most_y)
        return;
    for (int after = 0; after < 2; after++) {
        const char *at = after ? "ny - 1 + g" : "-g";
        fputs("            for (int32_t g = 1; beside && g <= RY; g++) {\n", o);
        fprintf(o, "                const int32_t to = %s - y, from = row(%s) - y;\n", at, at);
        fputs("                if (from >= first && from < last && ty + to >= -RY && ty + to < HIGH + RY) {\n", o);
        for (int f = 0; f < t->nfields; f++)
            if (t->field[f].phase == phase && is_copied(t, f))
                fprintf(o, "                    q%d[to * PITCH] = q%d[from * PITCH];\n", f, f);
        fputs("                }\n            }\n", o);
    }
}

/* Are neighbors of field f read in a phase, above or below? */
static bool reads_rows(const gp_ew_program *p, const gp_ew_steps *t, int phase, int f)
{
    for (int i = 0; i < p->n; i++)
        if (in_phase(p, t, phase, i) && is_near(p, t, i) && field_of(p, t, i) == f && away(p, i, t->y))
            return true;
    return false;
}

/* Is what field f was before this step read by a phase behind the one that makes it anew? */
static bool is_read_later(const gp_ew_program *p, const gp_ew_steps *t, int f)
{
    for (int i = 0; i < p->n && f < p->nout; i++)
        for (int k = t->field[f].phase + 1; k < t->phases; k++)
            if (p->ins[i].op != GP_EW_STORE && field_of(p, t, i) == f && in_phase(p, t, k, i))
                return true;
    return false;
}

static void put_phase(FILE *o, const gp_ew_program *p, const gp_ew_steps *t, int k, int done_x, int done_y)
{
    if (t->shared)
        fputs("        __syncthreads();\n", o);
    /* A warp, whose threads have the same rows, leaves out what no step needs any more. */
    fprintf(o, "        if (live && first < last && ty + ROWS > less_y + %d && ty < HIGH - less_y - %d\n"
            "            && (tx | 31) >= less_x + %d && (tx & ~31) < WIDE - less_x - %d) {\n", done_y, done_y, done_x,
            done_x);
    for (int f = 0; f < t->nfields; f++)
        if (reads_rows(p, t, k, f))
            fprintf(o, "            if (!whole)\n#pragma unroll\n                for (int j = 0; j < ROWS; j++)\n"
                    "                    c%d[j] = p%d[j * PITCH];\n", f, f);
    fputs("#pragma unroll\n            for (int j = 0; j < ROWS; j++) {\n", o);
    if (p->indices)
        put_indices(o, p, t);
    put_values(o, p, t, k);
    fprintf(o, "                phase%d(", k);
    put_operands(o, p, t, k, true);
    fputs(");\n            }\n", o);
    for (int f = 0; f < t->nfields; f++) {
        const gp_ew_field *is = &t->field[f];
        if (is->phase != k || !is->copies)
            continue;
        const char *where = is->zero && copies(t) ? "inside && " : "";
        fprintf(o, "            if (%swhole)\n#pragma unroll\n                for (int j = 0; j < ROWS; j++)\n"
                "                    q%d[j * PITCH] = y%d[j];\n", where, f, f);
        fprintf(o, "            else\n#pragma unroll\n                for (int j = 0; j < ROWS; j++)\n"
                "                    if (%sj >= first && j < last)\n                        q%d[j * PITCH] = y%d[j];\n",
                where, f, f);
    }
    put_copies(o, t, k);
    for (int f = 0; f < t->nfields; f++)
        if (t->field[f].phase == k && !is_read_later(p, t, f))
            fprintf(o, "#pragma unroll\n            for (int j = 0; j < ROWS; j++)\n                c%d[j] = y%d[j];\n",
                    f, f);
    fputs("        }\n", o);
}

static void put_step(FILE *o, const gp_ew_program *p, const gp_ew_steps *t)
{
    int done_x = 0, done_y = 0;
    if (copies(t) && t->most_y)        /* all sources of rows beside the frame are so near the border */
        fputs("    const bool beside = y + first < RY || y + last > ny - RY;\n", o);
    fputs("#pragma unroll 1\n    for (int s = 0; s < steps; s++) {\n", o);
    fprintf(o, "        const int32_t less_x = s * %d, less_y = s * %d;\n", t->all_x, t->all_y);
    for (int f = 0; f < t->nfields; f++) {
        const char *type = gp_ew_stored(t->field[f].dtype);
        if (!t->field[f].copies)
            continue;
        fprintf(o, "        const %s *const p%d = (s & 1 ? b%d : a%d) + acts;\n", type, f, f, f);
        fprintf(o, "        %s *const q%d = (s & 1 ? a%d : b%d) + tx;\n", type, f, f, f);
    }
    for (int k = 0; k < t->phases; k++) {
        done_x += t->reach_x[k], done_y += t->reach_y[k];
        put_phase(o, p, t, k, done_x, done_y);
    }
    for (int f = 0; f < p->nout; f++)
        if (is_read_later(p, t, f))
            fprintf(o, "#pragma unroll\n        for (int j = 0; j < ROWS; j++)\n            c%d[j] = y%d[j];\n", f, f);
    fputs("    }\n", o);
}

void gp_ew_put_steps(FILE *o, const gp_ew_program *p)
{
    const gp_ew_steps *t = p->steps;
    put_functions(o, p, t);
    put_place(o, t);
    put_held(o, p, t);
    put_loads(o, t);
    put_step(o, p, t);
    fputs("    if (tx >= halo_x && tx < WIDE - halo_x && x < nx) {\n"
          "#pragma unroll\n        for (int j = 0; j < ROWS; j++)\n"
          "            if (ty + j >= halo_y && ty + j < HIGH - halo_y && y + j < ny) {\n", o);
    for (int f = 0; f < p->nout; f++)
        fprintf(o, "                out%d[(batch * ny + y + j) * nx + x] = c%d[j];\n", f, f);
    fputs("            }\n    }\n", o);
}
