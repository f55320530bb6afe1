/* axes.c - which grid a kernel plainly wants: one thread for each element along x, or along x
 * and y, or along all three.
 *
 * The one form that is understood is blockIdx.A * blockDim.A + threadIdx.A in the kernel's own
 * text, and gridDim.A * blockDim.A for the step of a loop. An index anywhere else, in a macro, a
 * helper or a part that #if chooses, may be of another axis, or of none. */
#include <string.h>
#include "code.h"

enum { BRACKETS = 24 };        /* around an index, in its expression */
enum { BLOCK = 1, DIM, THREAD, GRID, FIRST, WHOLE, STEP };    /* FIRST: of a block; WHOLE: of the grid */

static const char *const indices[] = { "blockIdx", "blockDim", "threadIdx", "gridDim", NULL };
static const char *const hidden[] = { "this_grid", "this_thread_block", "cooperative_groups", "gp_block",
                                      "clusterIdx", NULL };
/* Threads that do the work of one element together are more than one for each. */
static const char *const warps[] = { "warpSize", "__shfl", "__ballot", "__any_sync", "__all_sync",
                                     "__syncwarp", "__activemask", "__reduce_", "__match_", NULL };
static const char *const names[3][9] = {
    { "x", "ix", "px", "gx", "col", "column", NULL }, { "y", "iy", "py", "gy", "row", NULL },
    { "z", "iz", "pz", "gz", "slice", "plane", "layer", NULL },
};

typedef struct search {
    gp_cu *c;
    const gp_toks *t;
    bool *kernel;              /* words that name another kernel */
    int body, end;             /* of the entry: its brackets */
    int deep;                  /* brackets in brackets, while an expression is read */
    int at[3];                 /* of an axis: where its index is; 0: nowhere */
    int n[3];                  /* ... how often */
    unsigned any, step;
    gp_axes axes;
} search;

static bool note(search *s, const gp_tok *t, const char *why)
{
    if (!s->axes.odd)
        s->axes.odd = t, s->axes.why = why;
    return false;
}

/* ---- the form ------------------------------------------------------------ */

typedef struct value { int kind, axis; } value;

/* (int) or int: the token after it; else i. */
static int after_cast(const search *s, int i)
{
    const gp_tok *v = s->t->v;
    if (gp_tok_is(&v[i], "static_cast") && gp_tok_is(&v[i + 1], "<") && gp_tok_is_integer(&v[i + 2])
        && !gp_tok_is_macro(s->c, &v[i + 2]) && gp_tok_is(&v[i + 3], ">"))
        return i + 4;
    int k = i + gp_tok_is(&v[i], "(");
    for (; gp_tok_is_integer(&v[k]) && !gp_tok_is_macro(s->c, &v[k]); k++)
        i += !gp_tok_is(&v[i], "(");
    if (!gp_tok_is(&v[i], "(") || k == i + 1)
        return i;
    return gp_tok_is(&v[k], ")") ? k + 1 : i;
}

static value read_sum(search *s, int *i);

/* An index, one of its products or sums in brackets, after casts. Kind 0: neither. */
static value read_factor(search *s, int *i)
{
    const gp_tok *v = s->t->v;
    value a = { 0, 0 };
    *i = after_cast(s, *i);
    if (gp_tok_is(&v[*i], "(")) {
        int close = v[*i].pair;
        if (s->deep == BRACKETS)
            return a;
        ++*i, s->deep++;
        a = read_sum(s, i);
        s->deep--;
        return *i == close ? ++*i, a : (value){ 0, 0 };
    }
    const gp_tok *axis = &v[*i + 2];
    for (int k = 0; indices[k]; k++)
        if (gp_tok_is(&v[*i], indices[k]))
            a.kind = k + 1;
    if (!a.kind || gp_tok_is_macro(s->c, &v[*i]) || !gp_tok_is(&v[*i + 1], ".") || axis->len != 1
        || *axis->p < 'x' || *axis->p > 'z' || gp_tok_is_macro(s->c, axis))
        return (value){ 0, 0 };
    a.axis = *axis->p - 'x';
    *i += 3;
    return a;
}

static bool are(value a, value b, int one, int two)
{
    return (a.kind == one && b.kind == two) || (a.kind == two && b.kind == one);
}

static value read_product(search *s, int *i)
{
    value a = read_factor(s, i);
    while (a.kind && a.kind < FIRST && gp_tok_is(&s->t->v[*i], "*")) {
        ++*i;
        value b = read_factor(s, i);
        a.kind = a.axis != b.axis ? 0 : are(a, b, BLOCK, DIM) ? FIRST : are(a, b, GRID, DIM) ? STEP : 0;
    }
    return a;
}

static value read_sum(search *s, int *i)
{
    value a = read_product(s, i);
    if (a.kind && a.kind < WHOLE && gp_tok_is(&s->t->v[*i], "+")) {
        ++*i;
        value b = read_product(s, i);
        a.kind = a.axis == b.axis && are(a, b, FIRST, THREAD) ? WHOLE : 0;
    }
    return a;
}

static const char *const heads[] = { "if", "while", "for", "switch", "return", NULL };

/* Is the bracket at i one of a call? */
static bool is_call(const gp_tok *v, int i)
{
    return gp_tok_is(&v[i], "(") && !gp_tok_among(&v[i - 1], heads)
        && (v[i - 1].kind == GP_TOK_WORD || gp_tok_is(&v[i - 1], ")") || gp_tok_is(&v[i - 1], "]")
            || gp_tok_is(&v[i - 1], ">"));
}

/* Is the sum that begins at `from` and ends before `end` a whole expression, or in brackets that
 * something is added to or multiplied with? */
static bool stands_alone(const gp_tok *v, int from, int end)
{
    static const char *const with[] = { "*", "+", "-", NULL };
    static const char *const before[] = { "=", "+=", "(", "[", ",", "{", "return", "<", NULL };
    static const char *const after[] = { ";", ",", ")", "]", "}", "<", "<=", ">", ">=", "==", "!=", NULL };
    bool closed = gp_tok_is(&v[from], "(") && v[from].pair == end - 1;
    bool inner = gp_tok_is(&v[from - 1], "(") && !gp_tok_among(&v[from - 2], heads);
    return !inner && !is_call(v, v[from].up) && !(gp_tok_is(&v[end], ">") && gp_tok_is(&v[end + 1], ">"))
        && (gp_tok_among(&v[from - 1], before) || (closed && gp_tok_among(&v[from - 1], with)))
        && (gp_tok_among(&v[end], after) || (closed && gp_tok_among(&v[end], with)));
}

/* Does the bracket at k close (int)? */
static bool is_cast(const search *s, int k)
{
    const gp_tok *v = s->t->v;
    return gp_tok_is(&v[k], ")") && v[k].pair > s->body && after_cast(s, v[k].pair) == k + 1;
}

/* Where an expression with the index at i begins: brackets and casts before it are part of it. */
static int start(const search *s, int i)
{
    const gp_tok *v = s->t->v;
    for (int k = i - 1, n = 0; k > s->body && n < BRACKETS; k--, n++) {
        if (is_cast(s, k))
            i = k = v[k].pair;
        else if (gp_tok_is(&v[k], "(") && v[k - 1].kind != GP_TOK_WORD && !gp_tok_is(&v[k - 1], "]")
                 && !gp_tok_is(&v[k - 1], ">") && (!gp_tok_is(&v[k - 1], ")") || is_cast(s, k - 1)))
            i = k;
        else if (gp_tok_is(&v[k], "(") && gp_tok_is_integer(&v[k - 1]))
            i = --k;
        else if (gp_tok_is(&v[k], "(") && gp_tok_is(&v[k - 1], ">") && gp_tok_is(&v[k - 4], "static_cast"))
            i = k -= 4;
        else if (!gp_tok_is(&v[k], "("))
            break;
        else
            return i;
    }
    return i;
}

/* One that begins at or before i, the outermost that has it; its `to` is 0: there is none. */
static gp_region read_form(search *s, int i, value *a)
{
    const gp_tok *v = s->t->v;
    for (int from = start(s, i); from <= i; from++) {
        int end = from;
        *a = read_sum(s, &end);
        if (end > i && (a->kind == WHOLE || a->kind == STEP) && stands_alone(v, from, end))
            return (gp_region){ from, end, from - 2 };
    }
    return (gp_region){ 0 };
}

/* ---- the entry ------------------------------------------------------------- */

static bool begins_with(const gp_tok *t, const char *const *words)
{
    for (; *words; words++)
        if (t->len >= (int)strlen(*words) && !memcmp(t->p, *words, strlen(*words)))
            return true;
    return false;
}

static void find_hidden(search *s, const gp_toks *t, int i)
{
    const gp_tok *v = &t->v[i];
    bool index = gp_tok_among(v, indices), macro = t == &s->c->text;
    bool within = false;       /* my_blockIdx */
    for (int k = 0; indices[k] && v->kind == GP_TOK_WORD && !index; k++)
        within |= memmem(v->p, (size_t)v->len, indices[k], strlen(indices[k])) != NULL;
    if (macro && gp_tok_is(v, "##"))
        note(s, v, "puts words together");
    else if (v->kind == GP_TOK_WORD && (within || gp_tok_is_asm(v) || gp_tok_among(v, hidden)
                                        || memmem(v->p, (size_t)v->len, "sreg", 4)
                                        || (v->len > 9 && !memcmp(v->p, "__cluster", 9))))
        note(s, v, "may have an index of its own");
    else if (v->kind == GP_TOK_WORD && begins_with(v, warps))
        note(s, v, "is of a warp, whose threads may share the work of one element");
    else if (index && macro)
        note(s, v, "stands in a macro");
    else if (index && (i < s->body || i > s->end))
        note(s, v, "stands outside of the kernel's own text");
    else if (index && v->chosen)
        note(s, v, "stands in a part that #if chooses");
    else if (s->kernel[v->word])
        note(s, v, "is another kernel");
}

static bool find_forms(search *s, bool batched)
{
    const gp_tok *v = s->t->v;
    for (int i = s->body; i < s->end && !s->axes.odd; i++) {
        value a;
        if (!gp_tok_among(&v[i], indices))
            continue;
        if (batched && gp_tok_is(&v[i], "blockIdx") && gp_tok_is(&v[i + 1], ".")
            && gp_tok_is(&v[i + 2], "z") && !gp_tok_is_macro(s->c, &v[i])
            && !gp_tok_is_macro(s->c, &v[i + 2])) {
            i += 2;
            continue;
        }
        gp_region form = read_form(s, i, &a);
        if (!form.to)
            return note(s, &v[i], "is not in the plain form blockIdx.x * blockDim.x + threadIdx.x, "
                        "best as int x = ..., nor in gridDim.x * blockDim.x");
        if (a.kind == WHOLE)
            s->any |= 1u << a.axis, s->at[a.axis] = i, s->n[a.axis]++, s->c->flat = form;
        else
            s->step |= 1u << a.axis;
        i = form.to - 1;
    }
    if (s->any != 1 || s->step || s->n[0] > 1)
        s->c->flat.to = 0;
    for (int a = 0; a < 3; a++)
        if (s->step & ~s->any & 1u << a)
            return note(s, &v[s->body], "begins a kernel with a step along an axis that it has no index of");
    return !s->axes.odd;
}

/* Is the declaration with the index at i one that all threads come to: in the kernel's outermost
 * block, or at the head of a loop there? */
static bool all_come(const search *s, int i)
{
    const gp_tok *v = s->t->v;
    for (;;) {
        int up = v[i].up;
        bool loop = gp_tok_is(&v[up], "(") && gp_tok_is(&v[up - 1], "for");
        if (up == s->body)
            return true;
        if (loop)
            i = up - 1;
        else if (gp_tok_is(&v[up], "{") && gp_tok_is(&v[up - 1], ")") && v[up - 1].pair > s->body)
            i = v[up - 1].pair - 1;
        else
            return false;
        if (!gp_tok_is(&v[i], "for"))
            return false;
        const gp_tok *before = &v[i - 1];
        if (gp_tok_is(before, ")") && before->pair > s->body && gp_tok_is(&v[before->pair - 1], "for"))
            i = before->pair - 1;
        else if (!gp_tok_is(before, ";") && !gp_tok_is(before, "{") && !gp_tok_is(before, "}"))
            return false;
    }
}

/* `x = FORM`, by a name that says which axis it is. */
static bool is_named(search *s, int axis)
{
    const gp_tok *v = s->t->v;
    int i = s->at[axis];
    while (i > s->body && !gp_tok_is(&v[i], "=") && !gp_tok_is(&v[i], ";"))
        i--;
    const gp_tok *name = &v[i - 1];
    if (!gp_tok_is(&v[i], "=") || gp_tok_is_macro(s->c, name))
        return note(s, &v[s->at[axis]], "is of an index that has no name of its own (int x = ...)");
    if (!gp_tok_among(name, names[axis]))
        return note(s, name, axis == 0 ? "is computed from .x and not called x or col, so that it may not go along "
                    "the last axis" :
                    axis == 1 ? "is computed from .y and not called y or row, so that it may not go along the "
                    "axis before the last" : "is computed from .z and not called z or slice, so that it may not "
                    "go along the third axis from the end");
    for (int k = s->at[axis]; k < s->end; k++)
        if (v[k].word == name->word && !gp_tok_is(&v[k - 1], "."))
            return true;
    return note(s, name, "is an index that is not used");
}

/* With several axes each thread needs each of them, once. */
static bool check_axes(search *s, int axes)
{
    const gp_tok *v = s->t->v;
    int from = s->end, to = s->body;
    for (int a = 0; a < axes; a++) {
        if (!s->n[a])
            return note(s, &v[s->at[axes - 1]], "is of an axis beyond one that is not used: use .x first, then .y");
        if (s->n[a] > 1)
            return note(s, &v[s->at[a]], "is there twice, so that some threads may use fewer axes");
        if (!all_come(s, s->at[a]))
            return note(s, &v[s->at[a]], "is not where all threads come");
        if (!is_named(s, a))
            return false;
        from = s->at[a] < from ? s->at[a] : from;
        to = s->at[a] > to ? s->at[a] : to;
    }
    for (int i = from; i < to; i++)
        if (gp_tok_is_macro(s->c, &v[i]))
            return note(s, &v[i], "is a macro between the indices, so that some threads may use fewer axes");
        else if (gp_tok_branches(&v[i]))
            return note(s, &v[i], "stands between the indices, where it may keep threads from an axis: compute "
                        "all of them first");
    return true;
}

gp_axes gp_cu_axes(gp_cu *c, bool batched)
{
    search s = { .c = c, .t = &c->main, .axes = { .odd = c->odd, .why = c->why } };
    if (s.axes.odd)
        return s.axes;
    s.axes.odd = c->kernels.odd;
    if (s.axes.odd)
        return s.axes;
    s.end = c->kernels.entry.to - 1;
    s.body = c->main.v[s.end].pair;
    s.kernel = gp_shape_alloc(c->s, (size_t)c->nwords);
    for (int k = 0; k < c->kernels.nothers; k++)
        s.kernel[c->main.v[c->kernels.other[k].name].word] = true;
    for (int i = 0; i < c->main.n; i++)
        if (!c->main.v[i].other)
            find_hidden(&s, &c->main, i);
    for (int i = 0; i < c->text.n; i++)
        find_hidden(&s, &c->text, i);
    if (!s.axes.odd && find_forms(&s, batched) && s.any & ~1u)
        check_axes(&s, s.any & 4 ? 3 : 2);
    s.axes.any = s.any;
    return s.axes;
}
