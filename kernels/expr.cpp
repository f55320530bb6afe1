/* expr.cpp - runs a program of the kind `expr` on a CPU, piece after piece of a frame: a piece of each value stays in
 * the cache. On a GPU the kind has a kernel written for each program (stages/expr/cuda.c). */
#include "expr.h"
#include "expr_ops.h"
#include "lines.h"

/* 16 bytes apart, as is all that a register holds. */
#define NUMBERS(T, p) (T *__restrict)__builtin_assume_aligned(p, 16)
typedef void apply(void *d, const void *a, const void *b, const void *c, int n);

#define FUNCTION_1(name) d[i] = gp_ew_##name(a[i])
#define FUNCTION_2(name) d[i] = gp_ew_##name(a[i], b[i])
#define FUNCTION_3(name) d[i] = gp_ew_##name(((const int32_t *)a_)[i], b[i], c[i])
#define OPERATION(NAME, name, operands, types)                                                     \
    template <class T> static void do_##name(void *d_, const void *a_, const void *b_, const void *c_, int n) \
    {                                                                                              \
        typedef decltype(result_##operands(gp_ew_##name<T>)) R;                                    \
        R *__restrict d = NUMBERS(R, d_);                                                          \
        const T *a = NUMBERS(const T, a_), *b = NUMBERS(const T, b_), *c = NUMBERS(const T, c_);   \
        (void)a, (void)b, (void)c;                                                                 \
        for (int i = 0; i < n; i++)                                                                \
            FUNCTION_##operands(name);                                                             \
    }
template <class R, class A> R result_1(R (*)(A));
template <class R, class A> R result_2(R (*)(A, A));
template <class R, class A> R result_3(R (*)(int, A, A));
GP_EW_OPS(OPERATION)

#define INTS(name) do_##name<int32_t>, do_##name<uint32_t>, do_##name<int64_t>, do_##name<uint64_t>
#define NO_INTS nullptr, nullptr, nullptr, nullptr
#define ALL(name) { INTS(name), do_##name<float>, do_##name<double>, do_##name<gp_c64> },
#define REAL(name) { INTS(name), do_##name<float>, do_##name<double>, nullptr },
#define INT(name) { INTS(name), nullptr, nullptr, nullptr },
#define FIELD(name) { NO_INTS, do_##name<float>, do_##name<double>, do_##name<gp_c64> },
#define FLOAT(name) { NO_INTS, do_##name<float>, do_##name<double>, nullptr },
#define F32(name) { NO_INTS, do_##name<float>, nullptr, nullptr },
#define C64(name) { NO_INTS, nullptr, nullptr, do_##name<gp_c64> },
#define ENTRY(NAME, name, operands, types) types(name)
static apply *const operation[GP_EW_NOPS][GP_EW_NTYPES] = { GP_EW_OPS(ENTRY) };

/* ---- moves ----------------------------------------------------------------- */

template <class F, class T> static void change(void *d, const void *a, const void *, const void *, int n)
{
    T *__restrict to = NUMBERS(T, d);
    const F *from = NUMBERS(const F, a);
    for (int i = 0; i < n; i++)
        to[i] = gp_ew_change<T>(from[i]);
}

#define FROM(NAME, F) { change<F, int32_t>, change<F, uint32_t>, change<F, int64_t>, change<F, uint64_t>, \
                        change<F, float>, change<F, double>, change<F, gp_c64> },
static apply *const change_from[][GP_EW_NTYPES] = { GP_EW_REALS(FROM) };

/* In the order of gp_dtype. */
template <class T, class S> static void load(void *d, const void *from, int64_t stride, int n)
{
    T *__restrict to = (T *)d;
    const S *s = (const S *)from;
    if (stride == 1)
        for (int i = 0; i < n; i++)
            to[i] = gp_ew_load(s[i]);
    else if (stride == 0)
        for (int i = 0; i < n; i++)
            to[i] = gp_ew_load(*s);
    else
        for (int i = 0; i < n; i++)
            to[i] = gp_ew_load(s[i * stride]);
}

static const struct { void (*load)(void *, const void *, int64_t, int); int bytes, computed; } loads[] = {
    { nullptr, 0, 0 }, { load<int32_t, uint8_t>, 1, 4 }, { load<int32_t, int8_t>, 1, 4 },
    { load<int32_t, uint16_t>, 2, 4 }, { load<int32_t, int16_t>, 2, 4 }, { load<uint32_t, uint32_t>, 4, 4 },
        { load<int32_t, int32_t>, 4, 4 },
    { load<uint64_t, uint64_t>, 8, 8 }, { load<int64_t, int64_t>, 8, 8 }, { load<float, gp_half>, 2, 4 },
    { load<float, float>, 4, 4 }, { load<double, double>, 8, 8 }, { load<gp_c64, gp_c64>, 8, 8 },
};

template <class F, class S> static void store(void *to, const void *a, const void *, const void *, int n)
{
    S *__restrict s = (S *)to;
    const F *from = NUMBERS(const F, a);
    for (int i = 0; i < n; i++)
        s[i] = gp_ew_store<S>(from[i]);
}

/* By the types of what is stored. A c64 is stored as nothing else. */
enum { DTYPES = sizeof loads / sizeof *loads };
#define STORED_AS(f, F) { nullptr, f<F, uint8_t>, f<F, int8_t>, f<F, uint16_t>, f<F, int16_t>, f<F, uint32_t>, \
                          f<F, int32_t>, f<F, uint64_t>, f<F, int64_t>, f<F, gp_half>, f<F, float>, f<F, double>, \
                          f<F, gp_c64> },
#define STORE(NAME, F) STORED_AS(store, F)
static apply *const store_from[GP_EW_NTYPES][DTYPES] = {
    GP_EW_REALS(STORE)
    { nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr,
      store<gp_c64, gp_c64> },
};

/* The type that an element of type S is computed as. */
template <class S> struct computed { typedef S type; };
template <> struct computed<uint8_t> { typedef int32_t type; };
template <> struct computed<int8_t> { typedef int32_t type; };
template <> struct computed<uint16_t> { typedef int32_t type; };
template <> struct computed<int16_t> { typedef int32_t type; };
template <> struct computed<gp_half> { typedef float type; };

template <class F, class S> static void through(void *d, const void *a, const void *, const void *, int n)
{
    typename computed<S>::type *__restrict to = NUMBERS(typename computed<S>::type, d);
    const F *from = NUMBERS(const F, a);
    for (int i = 0; i < n; i++)
        to[i] = gp_ew_load(gp_ew_store<S>(from[i]));
}

#define THROUGH(NAME, F) STORED_AS(through, F)
static apply *const through_as[][DTYPES] = { GP_EW_REALS(THROUGH) };

/* ---- a piece --------------------------------------------------------------- */

struct piece {
    const gp_ew_call *call;
    int64_t first;
    int n;
    int64_t at[GP_EW_AXES];        /* the indices of its first element */
};

static void find_first(piece *p)
{
    int64_t rest = p->first;
    for (int k = p->call->axes - 1; k >= 0; k--) {
        p->at[k] = rest % p->call->dim[k];
        rest /= p->call->dim[k];
    }
}

/* Calls f(offset in the piece, indices, elements) for each run along the last axis. */
template <class F> static void each_run(const piece *p, F f)
{
    const gp_ew_call *c = p->call;
    int64_t at[GP_EW_AXES];
    int last = c->axes - 1;
    memcpy(at, p->at, sizeof at);
    for (int done = 0; done < p->n;) {
        int64_t run = c->dim[last] - at[last];
        int n = run < p->n - done ? (int)run : p->n - done;
        f(done, at, n);
        done += n;
        at[last] += n;
        for (int k = last; k > 0 && at[k] == c->dim[k]; k--)
            at[k] = 0, at[k - 1]++;
    }
}

static void load_input(const piece *p, const gp_ew_step *s, const char *data, char *d)
{
    const gp_ew_call *c = p->call;
    auto l = loads[s->from];
    if (c->linear >> s->a & 1) {
        l.load(d, data + p->first * l.bytes, 1, p->n);
        return;
    }
    const int64_t *stride = c->stride[s->a];
    each_run(p, [=](int done, const int64_t *at, int n) {
        int64_t from = 0;
        for (int k = 0; k < c->axes; k++)
            from += at[k] * stride[k];
        l.load(d + done * l.computed, data + from * l.bytes, stride[c->axes - 1], n);
    });
}

/* ---- neighbors ------------------------------------------------------------- */

static int64_t find(const gp_ew_shift *s, int64_t at, int64_t n)
{
    return s->edge == GP_EW_REFLECT ? gp_ew_reflect(at, s->by, n)
         : s->edge == GP_EW_NEAREST ? gp_ew_nearest(at, s->by, n)
         : s->edge == GP_EW_WRAP ? gp_ew_periodic(at, s->by, n) : gp_ew_zero(at, s->by, n);
}

/* The last axis along which a step shifts, and those behind it, where the input has these in one row: a run moves along
 * them as a whole. */
struct line {
    int axis;                      /* the first of these axes */
    int64_t elements, inner;       /* in all of them; in those behind `axis` */
    int64_t stride;                /* from one element to the next */
    const gp_ew_shift *shift;      /* along `axis`; nullptr: none */
};

static line line_of(const gp_ew_call *c, const gp_ew_step *s, const gp_ew_shift *shift)
{
    const gp_ew_shift *moved = shift + s->c - 1;
    const int64_t *stride = c->stride[s->a];
    int k = c->axes - 1;
    line l = { k, c->dim[k], 1, stride[k], nullptr };
    while (k > moved->axis && stride[k - 1] == stride[k] * c->dim[k])
        l.inner = l.elements, l.elements *= c->dim[--k];
    l.axis = k;
    if (k == moved->axis)
        l.shift = moved;
    return l;
}

/* Elements `at` .. at + n - 1 of a line that begins at `data`. */
template <class L> static void load_run(const line *t, L l, const char *data, int64_t at, int n, char *d)
{
    int64_t by = t->shift ? t->shift->by * t->inner : 0, dim = t->elements / t->inner;
    for (int i = 0; i < n;) {
        int64_t k = at + i + by, m = 1;
        if (k >= 0 && k < t->elements)
            m = t->elements - k < n - i ? t->elements - k : n - i;
        else if ((k = find(t->shift, (at + i) / t->inner, dim)) >= 0)
            k = k * t->inner + (at + i) % t->inner;
        if (k < 0)
            memset(d + i * l.computed, 0, l.computed);
        else
            l.load(d + i * l.computed, data + k * t->stride * l.bytes, t->stride, (int)m);
        i += (int)m;
    }
}

static void load_near(const piece *p, const gp_ew_step *s, const gp_ew_shift *shift, const char *data, char *d)
{
    const gp_ew_call *c = p->call;
    const int64_t *stride = c->stride[s->a];
    auto l = loads[s->from];
    line t = line_of(c, s, shift);
    for (int done = 0; done < p->n;) {
        int64_t rest = (p->first + done) / t.elements, at = (p->first + done) % t.elements, from = 0;
        int n = t.elements - at < p->n - done ? (int)(t.elements - at) : p->n - done;
        bool inside = true;
        for (int k = t.axis - 1, i = s->c - 1 - (t.shift != nullptr); k >= 0; k--) {
            int64_t index = rest % c->dim[k];
            rest /= c->dim[k];
            if (i >= 0 && shift[i].axis == k)
                index = find(&shift[i--], index, c->dim[k]);
            inside &= index >= 0;
            from += index * stride[k];
        }
        if (inside)
            load_run(&t, l, data + from * l.bytes, at, n, d + done * l.computed);
        else
            memset(d + done * l.computed, 0, (size_t)n * l.computed);
        done += n;
    }
}

template <class T> static void indices(const piece *p, int axis, T *d)
{
    bool runs = axis == p->call->axes - 1;
    each_run(p, [=](int done, const int64_t *at, int n) {
        for (int i = 0; i < n; i++)
            d[done + i] = (T)(at[axis] + (runs ? i : 0));
    });
}

/* ---- a reduction ------------------------------------------------------------ */

/* Fills a plane of `rows`: lanes without a row, of which the last chunk may have some, get what fold.h says. */
template <class Op, class A> static void fill_spare(const gp_ew_partials *f, A *last)
{
    uint64_t wide = f->lanes * f->inner, there = (f->rows - 1) % (f->lanes * f->steps) * f->inner + f->inner;
    for (uint64_t q = there; q < wide; q++)
        last[q] = f->op ? last[q - f->inner] : A();
}

/* Elements first, first + 1, ... of a frame, in this order, to the partials of fold.h. */
template <class Op, class A, class T> static void fold(const gp_ew_partials *f, void *to, const void *from,
                                                       uint64_t first, int n)
{
    const T *y = (const T *)from;
    const uint64_t wide = f->lanes * f->inner, block = wide * f->steps, plane = f->rows * f->inner;
    const uint64_t chunks = (f->rows + f->lanes * f->steps - 1) / (f->lanes * f->steps);
    for (uint64_t left = (uint64_t)n, run; left; left -= run, y += run, first += run) {
        uint64_t in = first % plane, at = in % block, q = at % wide;
        A *__restrict d = (A *)to + (first / plane * chunks + in / block) * wide + q;
        uint64_t end = wide == 1 ? block - at : wide - q;
        run = end < left ? end : left;
        run = run < plane - in ? run : plane - in;
        if (wide == 1) {
            A a = at ? Op::join(*d, convert<A>(y[0])) : convert<A>(y[0]);
            for (uint64_t i = 1; i < run; i++)
                a = Op::join(a, convert<A>(y[i]));
            *d = a;
        } else if (at < wide) {
            for (uint64_t i = 0; i < run; i++)
                d[i] = convert<A>(y[i]);
        } else {
            for (uint64_t i = 0; i < run; i++)
                d[i] = Op::join(d[i], convert<A>(y[i]));
        }
        if (in + run == plane)
            fill_spare<Op>(f, d - q);
    }
}

/* The same to the results of lines.h; the lanes of a chunk, then its line's partials, are in the scratch. */
template <class Op, class T>
static void add_lines(const gp_ew_partials *f, void *, const void *from, uint64_t first, int n)
{
    typedef typename kept<Op, T>::type A;
    const T *y = (const T *)from;
    A *lane = (A *)((char *)f->lines.partials + blockIdx.z * f->lines.scratch_next);
    gp_line_add<Op, T>(f->lines, lane, lane + 4 * GP_LINE_THREADS, (size_t)first, (size_t)n,
                       [=](size_t i) { return y[i]; });
}

typedef void folds(const gp_ew_partials *, void *, const void *, uint64_t, int);
#define FOLD(name, T) { { fold<sum, accumulator<T>::type, T>, fold<least, T, T>, fold<most, T, T>,            \
                          fold<fsum, double, T> },                                                            \
                        { add_lines<sum, T>, add_lines<least, T>, add_lines<most, T>, add_lines<fsum, T> } },
static folds *const fold_of[][2][4] = {
    { { nullptr }, { nullptr } }, GP_REALS(FOLD)
};

/* ---- a frame ------------------------------------------------------------------ */

template <class T> static void fill(char *d, T v, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        ((T *)d)[i] = v;
}

static void fill_one(const gp_ew_code *code, const gp_ew_call *call, const gp_ew_step *s, char *d)
{
    const gp_frame_info *f = (const gp_frame_info *)call->frame + blockIdx.z;
    if (s->op == GP_EW_SIZE)
        s->type == GP_EW_I32 ? fill(d, (int32_t)call->size[s->a], code->piece) : fill(d, call->size[s->a], code->piece);
    else if (s->op == GP_EW_FRAME)
        s->a ? fill(d, (double)f->time_ns / 1e9, code->piece) : fill(d, (int64_t)f->index, code->piece);
    else if (s->type == GP_EW_I32 || s->type == GP_EW_U32 || s->type == GP_EW_F32)
        fill(d, s->value.u32, code->piece);
    else
        fill(d, s->value.u64, code->piece);
}

/* n elements by a step that reads registers alone. */
static void compute(const gp_ew_step *s, char *d, const char *a, const char *b, const char *c, int n)
{
    if (s->op == GP_EW_THROUGH)
        through_as[s->b][s->from](d, a, nullptr, nullptr, n);
    else if (s->op == GP_EW_CONVERT)
        change_from[s->from][s->type](d, a, nullptr, nullptr, n);
    else
        operation[s->op][s->type](d, a, b, c, n);
}

/* One element, and copies of it. */
static void compute_one(const gp_ew_code *code, const gp_ew_step *s, char *d, const char *a, const char *b, const char *c)
{
    uint32_t v4;
    uint64_t v8;
    compute(s, d, a, b, c, 1);
    memcpy(&v4, d, sizeof v4), memcpy(&v8, d, sizeof v8);
    s->value.u64 == sizeof v8 ? fill(d, v8, code->piece) : fill(d, v4, code->piece);
}

extern "C" __global__ void expr_run(const gp_ew_code *code, gp_ew_call call)
{
    GP_SHARED(char, memory);
    size_t z = blockIdx.z;
    const gp_ew_step *step = (const gp_ew_step *)(code + 1), *once = step + code->once, *end = step + code->n;
    const gp_ew_shift *shift = (const gp_ew_shift *)end;
    piece p = { &call, 0, 0, { 0 } };
#define AT(r) (memory + (size_t)(r) * code->bytes)
    for (const gp_ew_step *s = step; s < once; s++)
        if (s->op == GP_EW_NUMBER || s->op == GP_EW_SIZE || s->op == GP_EW_FRAME)
            fill_one(code, &call, s, AT(s->d));
        else
            compute_one(code, s, AT(s->d), AT(s->a), AT(s->b), AT(s->c));
    for (; p.first < call.elements; p.first += p.n) {
        int64_t left = call.elements - p.first;
        p.n = left < code->piece ? (int)left : (int)code->piece;
        find_first(&p);
        for (const gp_ew_step *s = once; s < end; s++) {
            if (s->op == GP_EW_LOAD) {
                load_input(&p, s, call.in[s->a].data + z * call.in[s->a].next, AT(s->d));
            } else if (s->op == GP_EW_NEAR) {
                load_near(&p, s, shift + s->b, call.in[s->a].data + z * call.in[s->a].next, AT(s->d));
            } else if (s->op == GP_EW_STORE) {
                const gp_ew_port *o = &call.out[s->d];
                store_from[s->type][s->from](o->data + z * o->next + p.first * loads[s->from].bytes, AT(s->a), nullptr,
                                             nullptr, p.n);
            } else if (s->op == GP_EW_FOLD) {
                store_from[s->type][s->from](AT(s->d), AT(s->a), nullptr, nullptr, p.n);
                folds *f = fold_of[s->from][call.fold.by_lines][call.fold.op];
                f(&call.fold, call.fold.to.data + z * call.fold.to.next, AT(s->d), (uint64_t)p.first, p.n);
            } else if (s->op == GP_EW_INDEX) {
                s->type == GP_EW_I32 ? indices(&p, s->a, (int32_t *)AT(s->d)) : indices(&p, s->a, (int64_t *)AT(s->d));
            } else {
                compute(s, AT(s->d), AT(s->a), AT(s->b), AT(s->c), p.n);
            }
        }
    }
#undef AT
}

GP_KERNELS(GP_K(expr_run))
