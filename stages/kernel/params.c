/* params.c - do the option `args` and the parameters of the kernel fit? Each is passed, also one
 * that has a default argument.
 *
 * Said only where the text leaves no doubt: one kernel of this name, no #if and no macro in its
 * parameters, and a type that is a word or two of C. All else is left to the compiler. */
#include <stdio.h>
#include <string.h>
#include "launch_args.h"

static const char *const pointer_words[] = { "const", "__restrict__", "__restrict", "restrict", NULL };
static const struct { const char *word, *type; } sized[] = {
    { "int8_t", "signed char" }, { "uint8_t", "unsigned char" }, { "int16_t", "short" },
    { "uint16_t", "unsigned short" }, { "int32_t", "int" }, { "uint32_t", "unsigned" },
    { "int64_t", "long long" }, { "uint64_t", "unsigned long long" },
    { "size_t", "unsigned long long" }, { "float", "float" }, { "double", "double" },
};
enum { NSIZED = sizeof sized / sizeof *sized, TEXT = 40, WORDS = 16 /* of one parameter */ };

/* The tokens of one parameter. */
typedef struct words { const gp_cu *c; const gp_tok *v; int n, i; } words;

static bool take(words *w, const char *word)
{
    bool is = w->i < w->n && gp_tok_is(&w->v[w->i], word);
    w->i += is;
    return is;
}

/* unsigned, short, int and the like, in any order; NULL: none of C's integers. */
static const char *integer(words *w, bool *konst)
{
    static const char *const type[][2] = {
        { "int", "unsigned" }, { "short", "unsigned short" }, { "long long", "unsigned long long" },
        { "char", "unsigned char" },
    };
    int without = 0, with = 0, u = 0, ints = 0, longs = 0, shorts = 0, chars = 0;
    for (int from = -1; from != w->i;) {
        from = w->i;
        with += take(w, "signed"), u += take(w, "unsigned"), ints += take(w, "int");
        longs += take(w, "long"), shorts += take(w, "short"), chars += take(w, "char");
        *konst |= take(w, "const");
    }
    without = ints + longs + shorts + chars + u + with;
    if (!without || u + with > 1 || ints > 1 || longs > 2 || shorts + chars + !!longs > 1
        || (chars && ints))
        return NULL;
    return chars && with ? "signed char" : type[chars ? 3 : longs ? 2 : shorts ? 1 : 0][u];
}

/* Does a typedef or `using` of the source have the word, so that it may be another type? */
static bool is_declared(const gp_cu *c, const gp_tok *word)
{
    bool in = false;
    for (const gp_tok *t = c->main.v; t->kind; t++) {
        in = (in && !gp_tok_is(t, ";")) || gp_tok_is(t, "typedef") || gp_tok_is(t, "using");
        if (in && t->word == word->word)
            return true;
    }
    return false;
}

/* As launch_args.c spells it: "const float *". False: that is not certain. */
static bool type_of(words *w, char text[TEXT])
{
    bool konst = take(w, "const");
    const char *base = NULL;
    for (int i = 0; i < w->n; i++)
        if (w->n > WORDS || is_declared(w->c, &w->v[i]))
            return false;
    for (int k = 0; k < NSIZED && !base; k++)
        base = take(w, sized[k].word) ? sized[k].type : NULL;
    konst |= take(w, "const");
    if (!base && !(base = integer(w, &konst)))
        return false;
    bool pointer = take(w, "*");
    while (pointer && w->i < w->n && gp_tok_among(&w->v[w->i], pointer_words))
        w->i++;
    if (w->i + 1 < w->n || (w->i < w->n && w->v[w->i].kind != GP_TOK_WORD))
        return false;                      /* more than a name follows; or `long double` */
    for (int k = 0; k < NSIZED && w->i < w->n; k++)
        if (gp_tok_is(&w->v[w->i], sized[k].word))
            return false;
    snprintf(text, TEXT, "%s%s%s", konst && pointer ? "const " : "", base, pointer ? " *" : "");
    return true;
}

/* Is nothing in [from, to) a macro or chosen by #if? */
static bool is_plain(const gp_cu *c, int from, int to)
{
    for (int i = from; i < to; i++)
        if (c->main.v[i].chosen || gp_tok_is_macro(c, &c->main.v[i]))
            return false;
    return true;
}

/* The end of the parameter at `from`, a comma or `to`; in *name that of its words and stars, which
 * a default argument may follow. -1: there is more in it. */
static int parameter(const gp_toks *t, int from, int to, int *name)
{
    int i = from;
    while (i < to && (t->v[i].kind == GP_TOK_WORD || gp_tok_is(&t->v[i], "*")))
        i++;
    *name = i;
    if (i < to && !gp_tok_is(&t->v[i], ",") && !gp_tok_is(&t->v[i], "="))
        return -1;
    while (i < to && !gp_tok_is(&t->v[i], ","))
        i = (gp_tok_is(&t->v[i], "<") ? gp_tok_angle(t, i, to) : gp_tok_close(t, i, to)) + 1;
    return i < to ? i : to;
}

/* The length of their text. */
static int span(const words *w)
{
    const gp_tok *last = &w->v[w->n - 1];
    return (int)(last->p + last->len - w->v->p);
}

/* What is passed as argument k, and what to do where the parameter, `has`, is of another type. */
static void explain(const gp_shape *s, const gp_kargs *a, int k, const char *has, char *text, size_t room)
{
    const gp_karg *arg = &a->arg[k];
    bool in = arg->what == GP_INPUT, pointer = strchr(has, '*') != NULL, konst = !strncmp(has, "const ", 6);
    const char *want = a->type[k], *order = ", unless the order in args is wrong";
    *text = 0;
    if (arg->what == GP_STRIDE_IN || arg->what == GP_STRIDE_OUT) {
        snprintf(text, room, ": with 'batched' a size_t follows each pointer");
        return;
    }
    if (!in && arg->what != GP_OUTPUT) {
        snprintf(text, room, "%s", pointer ? ": args are in the order of the parameters" : "");
        return;
    }
    const char *port = in ? s->in_name[arg->port] : s->out_name[arg->port];
    if (in && !konst && !strcmp(has, want + 6))
        snprintf(text, room, ": the input '%s', which is only read; declare it const%s", port, order);
    else if (!in && konst && !strcmp(has + 6, want))
        snprintf(text, room, ": the output '%s', which is written; leave out its const%s", port, order);
    else
        snprintf(text, room, ": the %s '%s'; %s", in ? "input" : "output", port, pointer
                 ? "change that, or the dtype that 'buffers' gives the port's buffer"
                 : "args are in the order of the parameters");
}

static bool check_type(gp_shape *s, const gp_cu *c, words w, int k, const gp_kargs *a)
{
    char has[TEXT], why[300];
    const char *want = strcmp(a->type[k], "size_t") ? a->type[k] : "unsigned long long";
    if (!type_of(&w, has) || !strcmp(has, want))
        return true;
    gp_loc at = gp_cu_at(c, w.v);
    explain(s, a, k, has, why, sizeof why);
    return gp_shape_fail_at(s, a->at[k], "parameter %d of '%s' is '%.*s', but args passes '%s' (%s:%d)%s",
                            k + 1, c->entry, span(&w), w.v->p, a->type[k],
                            at.file, at.line, why);
}

bool gp_kargs_check(gp_shape *s, const gp_node *args, const gp_kargs *a, gp_cu *c)
{
    const gp_toks *t = &c->main;
    int open = c->kernels.entry.name + 1, close = gp_tok_close(t, open, t->n), n = 0, name;
    bool ok = true, unused = false;        /* a default argument of one that is not passed */
    words lacks = { 0 };                   /* the first that gets nothing */
    if (c->odd || c->kernels.odd || !is_plain(c, open + 1, close))
        return true;
    bool none = close == open + 1 || (close == open + 2 && gp_tok_is(&t->v[open + 1], "void"));
    for (int i = open + 1, end; i <= close && !none; i = end + 1) {
        if ((end = parameter(t, i, close, &name)) < 0)
            return ok;
        words w = { c, &t->v[i], name - i, 0 };
        if (n < a->n && w.n)
            ok &= check_type(s, c, w, n, a);
        if (n == a->n)
            lacks = w;
        unused |= n++ >= a->n && name < end;
    }
    gp_loc at = gp_cu_at(c, &t->v[open - 1]);
    if (n == a->n)
        return ok;
    return gp_shape_fail_at(s, n < a->n ? a->at[n] : args->at, "'%s' has %d parameter%s, but args gives "
                            "%d value%s (%s:%d)%s%.*s%s%s", c->entry, n, n == 1 ? "" : "s", a->n, a->n == 1 ? "" : "s",
                            at.file, at.line, lacks.n ? ": none for '" : "", lacks.n ? span(&lacks) : 0,
                            lacks.n ? lacks.v->p : "", lacks.n ? "'" : "",
                            unused ? ", and a default argument is never used" : "");
}

const gp_tok *gp_kargs_name(const gp_cu *c, int k)
{
    const gp_toks *t = &c->main;
    int open = c->kernels.entry.name + 1, close = gp_tok_close(t, open, t->n), name = open;
    for (int i = open + 1; k >= 0; k--) {
        int end = i < close && is_plain(c, i, close) ? parameter(t, i, close, &name) : -1;
        if (end < 0)
            return NULL;
        i = end + 1;
    }
    const gp_tok *last = &t->v[name - 1];
    return last->kind == GP_TOK_WORD && !gp_tok_among(last, pointer_words) && !gp_tok_is_type(last) ? last : NULL;
}
