/* params.c - do the option `args` and the parameters of the kernel fit?
 *
 * Said only where the text leaves no doubt: one kernel of this name, no #if and no macro in its
 * parameters, and a type that is a word or two of C. All else the compiler says. */
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

/* Is nothing in [from, to] but words, * and commas, of which none is a macro or chosen by #if? */
static bool is_plain(const gp_cu *c, int from, int to)
{
    for (int i = from; i < to; i++) {
        const gp_tok *t = &c->main.v[i];
        if (t->chosen || gp_tok_is_macro(c, t)
            || (t->kind != GP_TOK_WORD && !gp_tok_is(t, "*") && !gp_tok_is(t, ",")))
            return false;
    }
    return true;
}

static bool check_type(gp_shape *s, const gp_cu *c, const char *entry, words w, int k, const gp_kargs *a)
{
    char has[TEXT];
    const char *want = strcmp(a->type[k], "size_t") ? a->type[k] : "unsigned long long";
    if (!type_of(&w, has) || !strcmp(has, want))
        return true;
    gp_loc at = gp_cu_at(c, w.v);
    const gp_tok *last = &w.v[w.n - 1];
    return gp_shape_fail_at(s, a->at[k], "parameter %d of '%s' is '%.*s', but args passes '%s' (%s:%d)%s",
                            k + 1, entry, (int)(last->p + last->len - w.v->p), w.v->p, a->type[k],
                            at.file, at.line, strchr(has, '*') && strchr(want, '*')
                            ? ": change that, or the dtype that 'buffers' gives the port's buffer" : "");
}

bool gp_kargs_check(gp_shape *s, const gp_node *args, const gp_kargs *a, gp_cu *c, const char *entry)
{
    gp_kernels kernels = gp_cu_kernels(c, entry);
    const gp_toks *t = &c->main;
    int open = kernels.entry.name + 1, close = gp_tok_close(t, open, t->n), n = 0;
    bool ok = true;
    if (c->odd || kernels.odd || !is_plain(c, open + 1, close))
        return true;
    bool none = close == open + 1 || (close == open + 2 && gp_tok_is(&t->v[open + 1], "void"));
    for (int i = open + 1, from = i; i <= close && !none; i++)
        if (i == close || gp_tok_is(&t->v[i], ",")) {
            words w = { c, &t->v[from], i - from, 0 };
            if (n < a->n && w.n)
                ok &= check_type(s, c, entry, w, n, a);
            n++, from = i + 1;
        }
    gp_loc at = gp_cu_at(c, &t->v[open - 1]);
    if (n == a->n)
        return ok;
    return gp_shape_fail_at(s, n < a->n ? a->at[n] : args->at, "'%s' has %d parameter%s, but args gives "
                            "%d value%s (%s:%d)", entry, n, n == 1 ? "" : "s", a->n,
                            a->n == 1 ? "" : "s", at.file, at.line);
}
