/* code.c - operations become steps with registers, for kernels/expr.cpp. Registers are few, so that a piece of each
 * stays in the cache, and long, so that a step's work is in its loop. */
#include <string.h>
#include "program.h"

enum {
    ALL_BYTES = 32 * 1024,             /* of all registers, about: what a first-level cache holds */
    SHORTEST = 64, LONGEST = 2048,     /* elements in a register */
    MOST = 1024,                       /* registers */
};

typedef struct registers {
    int *of, *last;                    /* of each operation: its register, and the last one that uses it */
    int *free; int nfree;
    int n;                             /* in all */
    gp_ew_shift *shift; int nshifts;   /* of the steps: those of one behind each other */
} registers;

/* What is made once, and used for each piece, is kept to the end. */
static void find_last(const gp_ew_program *p, registers *r)
{
    for (int i = 0; i < p->n; i++) {
        const int operand[] = { p->ins[i].a, p->ins[i].b, p->ins[i].c };
        r->last[i] = i;
        for (int k = 0; p->ins[i].needed && k < gp_ew_operands(p->ins[i].op); k++) {
            bool kept = r->last[operand[k]] == p->n || (p->ins[operand[k]].once && !p->ins[i].once);
            r->last[operand[k]] = kept ? p->n : i;
        }
    }
}

/* An operand's register is given back after the result has one of its own: no step reads what it writes. */
static void give_back(const gp_ew_program *p, registers *r, int i)
{
    const int operand[] = { p->ins[i].a, p->ins[i].b, p->ins[i].c };
    for (int k = 0; k < gp_ew_operands(p->ins[i].op); k++)
        if (r->last[operand[k]] == i) {
            r->free[r->nfree++] = r->of[operand[k]];
            r->last[operand[k]] = -1;          /* once, though it may be both operands */
        }
}

static void put_shifts(const gp_ew_program *p, registers *r, const gp_ew_ins *x, gp_ew_step *to)
{
    to->b = (uint16_t)r->nshifts;
    for (int k = 0; k < p->space.ndim; k++)
        if (x->shift[k] >= 0)
            r->shift[r->nshifts++] = p->shift[x->shift[k]].to;
    to->c = (uint16_t)(r->nshifts - to->b);
}

static void put(gp_ew_program *p, registers *r, int i)
{
    const gp_ew_ins *x = &p->ins[i];
    gp_ew_step *to = (gp_ew_step *)(p->code + 1) + p->code->n++;
    int n = gp_ew_operands(x->op);
    *to = (gp_ew_step){ .op = (uint8_t)x->op, .type = (uint8_t)x->type, .from = (uint8_t)x->from, .value = x->value,
                        .a = (uint16_t)(n ? r->of[x->a] : x->a) };
    to->b = (uint16_t)(n > 1 ? r->of[x->b] : 0), to->c = (uint16_t)(n > 2 ? r->of[x->c] : 0);
    if (x->once && n)
        to->value.u64 = gp_dtype_size(gp_ew_dtype[gp_ew_makes(x)]);
    if (x->op == GP_EW_NEAR)
        put_shifts(p, r, x, to);
    if (x->op == GP_EW_THROUGH)
        to->b = (uint16_t)x->b;
    if (x->op == GP_EW_STORE)
        to->d = (uint16_t)x->d;
    else
        to->d = (uint16_t)(r->of[i] = r->nfree ? r->free[--r->nfree] : r->n++);
    give_back(p, r, i);
    if (x->op == GP_EW_FOLD)
        r->free[r->nfree++] = to->d;           /* nobody reads it behind this step */
}

static bool is_wide(gp_ew_type t)
{
    return gp_dtype_size(gp_ew_dtype[t]) == 8;
}

static bool put_all(gp_shape *s, const gp_node *text, gp_ew_program *p, registers *r)
{
    size_t width = 4;
    for (int once = 1; once >= 0; once--) {
        for (int i = 0; i < p->n; i++)
            if (p->ins[i].needed && p->ins[i].once == once)
                put(p, r, i);
        p->code->once = once ? p->code->n : p->code->once;
    }
    if (r->nshifts > UINT16_MAX)
        return gp_shape_fail_at(s, text->at, "has too many neighbors");
    if (r->n > MOST)
        return gp_shape_fail_at(s, text->at, "keeps %d values at the same time, and %d is the most: use fewer names "
                                "and numbers, or several stages", r->n, MOST);
    for (int i = 0; i < p->n; i++)
        if (is_wide(p->ins[i].type) || is_wide(gp_ew_makes(&p->ins[i]))
            || (p->ins[i].op == GP_EW_FOLD && gp_dtype_size(p->folds) == 8))
            width = 8;
    size_t n = ALL_BYTES / (width * (size_t)(r->n + !r->n)) / 16 * 16;
    p->code->piece = (uint32_t)(n < SHORTEST ? SHORTEST : n > LONGEST ? LONGEST : n);
    p->code->bytes = (uint32_t)(width * p->code->piece);
    p->shared = (size_t)p->code->bytes * (size_t)r->n;
    size_t shifts = sizeof *r->shift * (size_t)r->nshifts;
    p->code_bytes = sizeof *p->code + sizeof(gp_ew_step) * p->code->n;
    if (shifts)
        memcpy((char *)p->code + p->code_bytes, r->shift, shifts);
    p->code_bytes += shifts;
    return true;
}

bool gp_ew_encode(gp_shape *s, const gp_node *text, gp_ew_program *p)
{
    size_t n = (size_t)p->n + 1, shifts = 0;
    for (int i = 0; i < p->n; i++)
        shifts += p->ins[i].op == GP_EW_NEAR ? (size_t)p->space.ndim : 0;
    registers r = { .of = gp_shape_alloc(s, n * sizeof *r.of), .last = gp_shape_alloc(s, n * sizeof *r.last),
                    .free = gp_shape_alloc(s, n * sizeof *r.free),
                    .shift = gp_shape_alloc(s, (shifts + 1) * sizeof *r.shift) };
    p->code = gp_shape_alloc(s, sizeof *p->code + sizeof(gp_ew_step) * n + sizeof *r.shift * shifts);
    find_last(p, &r);
    return put_all(s, text, p, &r);
}
