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
enum { NSIZED = sizeof sized / sizeof *sized, TEXT = 40 };

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

/* As launch_args.c spells it: "const float *". False: that is not certain. */
static bool type_of(words *w, char text[TEXT])
{
    bool konst = take(w, "const");
    const char *base = NULL;
    for (int i = 0; i < w->n; i++)         /* a name that the source gives another meaning */
        if (w->v[i].kind == GP_TOK_WORD && (i + 1 < w->n || w->n == 1)
            && w->c->named[w->v[i].word] >= 0)
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

/* The only kernel of this name; NULL: there are others, or none, or it stands in an #if. */
static const gp_def *kernel_of(const gp_cu *c, const char *entry)
{
    const gp_def *found = NULL;
    for (int i = 0; i < c->ndefs; i++)
        if (gp_tok_is(c->def[i].name, entry)) {
            if (found || !c->def[i].global)
                return NULL;
            found = &c->def[i];
        }
    for (int i = found ? found->from : 0; found && i <= found->body; i++)
        if (found->in->v[i].branch)
            return NULL;
    return found;
}

/* Is nothing in [from, to] but words, * and commas, of which none is a macro? */
static bool is_plain(const gp_cu *c, const gp_toks *t, int from, int to)
{
    for (int i = from; i < to; i++) {
        int def = t->v[i].kind == GP_TOK_WORD ? c->named[t->v[i].word] : -1;
        if (def >= 0 ? c->def[def].what == GP_DEF_MACRO
            : t->v[i].kind != GP_TOK_WORD && !gp_tok_is(&t->v[i], "*") && !gp_tok_is(&t->v[i], ","))
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
    return gp_shape_fail_at(s, a->at[k], "parameter %d of '%s' is '%.*s', but args passes '%s' (%s:%d)",
                            k + 1, entry, (int)(last->p + last->len - w.v->p), w.v->p, a->type[k],
                            at.file, at.line);
}

bool gp_kargs_check(gp_shape *s, const gp_node *args, const gp_kargs *a, const gp_cu *c, const char *entry)
{
    const gp_def *d = c->odd ? NULL : kernel_of(c, entry);
    if (!d)
        return true;
    const gp_toks *t = d->in;
    int open = (int)(d->name - t->v) + 1, close = gp_tok_close(t, open, d->body), n = 0;
    bool ok = true;
    if (!is_plain(c, t, open + 1, close))
        return true;
    bool none = close == open + 1 || (close == open + 2 && gp_tok_is(&t->v[open + 1], "void"));
    for (int i = open + 1, from = i; i <= close && !none; i++)
        if (i == close || gp_tok_is(&t->v[i], ",")) {
            words w = { c, &t->v[from], i - from, 0 };
            if (n < a->n && w.n)
                ok &= check_type(s, c, entry, w, n, a);
            n++, from = i + 1;
        }
    gp_loc at = gp_cu_at(c, d->name);
    if (n == a->n)
        return ok;
    return gp_shape_fail_at(s, n < a->n ? a->at[n] : args->at, "'%s' has %d parameter%s, but args gives "
                            "%d value%s (%s:%d)", entry, n, n == 1 ? "" : "s", a->n,
                            a->n == 1 ? "" : "s", at.file, at.line);
}
