/* state.c - variables that live longer than a launch, which frames in flight would share: what is
 * declared. What changes one that is const: changes.c.
 *
 * A declaration with one of the words below has to be of a function, or of a const variable;
 * everything else counts as a variable that changes. What this does not see, the compiled image
 * shows (device/image.h), but only when a run is set up; as the image does not show which variables are
 * const, their names come from here. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include "code.h"

/* What gives a name to something that lives as long as the program. A variable outside of all
 * functions without any of them is none on a GPU, and the image tells of the CPU (device/image.c). */
static const char *const lasting[] = { "__device__", "__managed__", "__constant__", "static",
                                       "thread_local", "__thread", "_Thread_local", "constinit", NULL };
/* With them, what is declared stays a function or a variable as it was. */
static const char *const specifiers[] = { "__device__", "__managed__", "__constant__", "__host__",
    "__global__", "__forceinline__", "__inline__", "__noinline__", "inline", "static", "extern",
    "const", "constexpr", "volatile", "explicit", "virtual", "friend", NULL };
static const char *const attributes[] = { "__attribute__", "__launch_bounds__", "__align__", "alignas",
    "decltype", "__declspec", "noexcept", "explicit", "requires", NULL };
static const char *const types[] = { "struct", "class", "union", "enum", NULL };
static const char *const no_variable[] = { "typedef", "using", NULL };
/* What may follow the brackets of a function's parameters. */
static const char *const heads[] = { "{", "->", "const", "volatile", "noexcept", "override", "final",
                                     "&", "&&", "try", "requires", "__attribute__", ":", NULL };

typedef struct search {
    gp_cu *c;
    gp_state found;
    bool *used;                /* words that stand somewhere else than where a macro has them as name */
    bool *lasting;             /* names of macros that are no more than specifiers, one of them lasting */
    char *fixed;               /* of a word: 'c' const, 'd' __constant__, else 0 */
    int *declared;             /* ... how often */
    bool *declares;            /* tokens of main that are the names in such declarations; NULL: it is
                                  not main that is looked at */
    bool mutable_members;
    bool only_fixed;           /* what is not const is no error */
} search;

static bool begins(const search *s, const gp_tok *t)
{
    return t->kind == GP_TOK_WORD && (gp_tok_among(t, lasting) || s->lasting[t->word]);
}

static void found(search *s, const gp_tok *at)
{
    if (!s->found.at && !s->only_fixed)
        s->found = (gp_state){ .at = at };
}

/* ---- one declaration ------------------------------------------------------ */

/* A declarator, and what stands before all of them. */
typedef struct decl {
    bool konst, own, constant, plain;      /* of all; own: of a block; plain: of a type of C */
    bool always;               /* constexpr */
    bool star, last;           /* a pointer or reference; that is const itself */
    const gp_tok *name;
    const gp_tok *macro;       /* a macro that may be more than a word for a type */
    bool varies;               /* #if decides about a part of it */
} decl;

static void declared(search *s, decl *d)
{
    bool same = d->always || (d->konst && !d->star) || (d->star && d->last);
    if (d->own)
        return;
    if (!d->macro && !same && !d->constant)
        found(s, d->name);
    else if (!d->macro && !d->varies && (d->plain || !same || !s->mutable_members)) {
        s->fixed[d->name->word] = d->constant ? 'd' : 'c', s->declared[d->name->word]++;
        if (s->declares)
            s->declares[d->name - s->c->main.v] = true;
    }
    d->star = d->last = false, d->name = NULL;
}

/* `typedef float real` as a macro, and no more. */
static bool is_a_word(const gp_cu *c, const gp_tok *t)
{
    for (int k = c->named[t->word]; k >= 0; k = c->macro[k].next) {
        const gp_macro *m = &c->macro[k];
        if (m->body != m->from + 1)
            return false;
        for (int i = m->body; i < m->to; i++)
            if (c->text.v[i].kind != GP_TOK_WORD || gp_tok_is_macro(c, &c->text.v[i]))
                return false;
    }
    return true;
}

/* Does a macro for specifiers always have one that says const? */
static bool makes_const(const gp_cu *c, const gp_tok *t)
{
    static const char *const says[] = { "const", "constexpr", "__constant__", NULL };
    for (int k = c->named[t->word]; k >= 0; k = c->macro[k].next) {
        bool has = false;
        for (int i = c->macro[k].body; i < c->macro[k].to; i++)
            has |= gp_tok_among(&c->text.v[i], says);
        if (!has)
            return false;
    }
    return true;
}

static bool is_function(search *s, const gp_toks *t, int open, int to)
{
    static const char *const made[] = { "default", "delete", "0", NULL };
    const gp_tok *name = &t->v[open - 1], *inside = &t->v[open + 1];
    int close = gp_tok_close(t, open, to);
    const gp_tok *after = &t->v[close + 1];
    if (close >= to || gp_tok_is(inside, "*") || gp_tok_is(inside, "&")
        || (name->kind != GP_TOK_WORD && !gp_tok_is(name, ">")) || gp_tok_is_type(name)
        || gp_tok_is_macro(s->c, name))
        return false;
    if (close + 1 == to || gp_tok_is(after, ";") || gp_tok_is(after, ","))
        return inside->kind != GP_TOK_NUMBER && inside->kind != GP_TOK_TEXT;   /* a prototype */
    return gp_tok_among(after, heads) || (gp_tok_is(after, "=") && gp_tok_among(after + 1, made));
}

/* The end of an initial value: a comma, a semicolon, another declaration or `to`. */
static int value_end(const search *s, const gp_toks *t, int i, int to)
{
    while (i < to && !gp_tok_is(&t->v[i], ",") && !gp_tok_is(&t->v[i], ";") && !begins(s, &t->v[i])) {
        int end = gp_tok_is(&t->v[i], "<") ? gp_tok_angle(t, i, to) : gp_tok_close(t, i, to);
        i = end + 1;
    }
    return i < to ? i : to;
}

/* The declaration [from, ...) of `t`, which ends at `to` at the latest. Returns where to look on:
 * in it, behind its specifiers. */
static int declaration(search *s, const gp_toks *t, int from, int to)
{
    decl d = { 0 };
    int type = -1, words = 0, stop = -1;   /* words since struct or the like */
    bool bases = false;
    for (int i = from; i < to; i++) {
        const gp_tok *v = &t->v[i];
        d.varies |= v->chosen != t->v[from].chosen && stop < 0;
        if (gp_tok_is(v, "template") && gp_tok_is(v + 1, "<")) {
            i = gp_tok_angle(t, i + 1, to);
        } else if (gp_tok_among(v, attributes) && gp_tok_is(v + 1, "(")) {
            i = gp_tok_close(t, i + 1, to);
        } else if (gp_tok_is(v, "<")) {
            int end = gp_tok_angle(t, i, to);
            if (end == i)
                break;
            i = end;
        } else if (gp_tok_among(v, no_variable) || gp_tok_is(v, "operator")) {
            return i + 1;
        } else if (gp_tok_among(v, types)) {
            type = i, words = 0;
        } else if (gp_tok_is(v, "__shared__")) {
            d.own = true;
        } else if (gp_tok_is(v, "__constant__")) {
            d.constant = true;
        } else if (gp_tok_is(v, "constexpr") || gp_tok_is(v, "consteval")) {
            d.always = true;
        } else if (gp_tok_is(v, "const")) {
            d.star ? (d.last = true) : (d.konst = true);
        } else if (gp_tok_is(v, "*") || gp_tok_is(v, "&") || gp_tok_is(v, "&&")) {
            d.star = true, d.last = false;
        } else if (gp_tok_is(v, ":") && type >= 0) {
            bases = true;
        } else if (gp_tok_is(v, "{") && type >= 0 && (words < 2 || bases)) {
            stop = stop < 0 ? i : stop;
            i = gp_tok_close(t, i, to), type = -1, d.name = NULL;
            if (gp_tok_is(&t->v[i + 1], ";"))
                return stop + 1;
        } else if (gp_tok_is(v, "(")) {
            if (is_function(s, t, i, to))
                return i + 1;
            break;
        } else if (gp_tok_is(v, "[")) {
            stop = stop < 0 ? i : stop;
            i = gp_tok_close(t, i, to);
        } else if (gp_tok_is(v, "=") || gp_tok_is(v, "{") || gp_tok_is(v, ",") || gp_tok_is(v, ";")) {
            stop = stop < 0 ? i : stop;
            int end = value_end(s, t, i, to);
            if (!d.name)
                break;
            declared(s, &d);
            if (end < to && !gp_tok_is(&t->v[end], ","))
                return stop + 1;
            i = end;
        } else if (v->kind == GP_TOK_WORD) {
            bool more = !gp_tok_among(v, specifiers) && !s->lasting[v->word];
            d.konst |= s->lasting[v->word] && !d.star && makes_const(s->c, v);
            words++;
            if (more)
                d.name = v, d.plain |= gp_tok_is_type(v);
            if (more && gp_tok_is_macro(s->c, v) && !is_a_word(s->c, v))
                d.macro = v;
        } else if (!gp_tok_is(v, "::") && !gp_tok_is(v, "~") && !gp_tok_is(v, "##") && v->kind != GP_TOK_TEXT) {
            break;
        }
    }
    return (stop < 0 ? from : stop) + 1;
}

/* Where the declaration begins that the word at i is of; -1: it is of a lambda. */
static int start(const gp_toks *t, int i, int from)
{
    int after = i;
    while (t->v[after].kind == GP_TOK_WORD && gp_tok_among(&t->v[after], specifiers))
        after++;
    while (i > from) {
        const gp_tok *b = &t->v[i - 1];
        if (gp_tok_is(b, ">") && b->pair >= from && b->pair < i) {
            i = b->pair;                   /* template <class T, int N> */
            continue;
        }
        if (gp_tok_is(b, "]") && !gp_tok_is(b - 1, "]") && gp_tok_is(&t->v[after], "("))
            return -1;
        if (b->kind == GP_TOK_TEXT || (b->kind == GP_TOK_OTHER && b->len == 1
                                       && strchr(";{}(),:#]", *b->p)))
            break;
        i--;
    }
    return i;
}

static void look_at(search *s, const gp_toks *t, int from, int to)
{
    int done = from;
    for (int i = from; i < to && !s->found.at; i++) {
        if (!begins(s, &t->v[i]) || i < done)
            continue;
        int first = start(t, i, done);
        if (first >= 0)
            done = declaration(s, t, first, to);
        if (done <= i)
            done = i + 1;
    }
}

/* A constant that has none of the words above: NVRTC may make a variable of it. */
static void look_at_constants(search *s)
{
    static const char *const words[] = { "const", "constexpr", NULL };
    const gp_toks *t = &s->c->main;
    s->only_fixed = true;
    for (int i = 1, done = 0; i < t->n; i++) {
        int up = t->v[i].up;
        if (i < done || !gp_tok_among(&t->v[i], words) || (up >= 0 && gp_tok_is(&t->v[up], "(")))
            continue;
        int first = start(t, i, done);
        if (first >= 0)
            done = declaration(s, t, first, t->n);
        if (done <= i)
            done = i + 1;
    }
}

/* ---- macros ---------------------------------------------------------------- */

/* Is there nothing but specifiers in it? */
static bool only_specifiers(const search *s, const gp_macro *m)
{
    const gp_tok *v = s->c->text.v;
    for (int i = m->body; i < m->to; i++) {
        if (gp_tok_among(&v[i], attributes) && gp_tok_is(&v[i + 1], "("))
            i = gp_tok_close(&s->c->text, i + 1, m->to);
        else if (!gp_tok_among(&v[i], specifiers)
                 && !(v[i].kind == GP_TOK_WORD && s->lasting[v[i].word]))
            return false;
    }
    return m->body == m->from + 1;
}

/* Is one of the words that say const a macro? Then nothing is known to be. */
static bool redefines(const search *s)
{
    static const char *const ours[] = { "const", "constexpr", "__constant__", "__shared__", NULL };
    for (int k = 0; k < s->c->nmacros; k++)
        if (gp_tok_among(&s->c->text.v[s->c->macro[k].from], ours))
            return true;
    return false;
}

/* The words that are macros for specifiers; a macro that has such a word must come later. */
static void look_at_macros(search *s)
{
    gp_cu *c = s->c;
    for (int k = 0; k < c->nmacros && !s->found.at; k++) {
        const gp_macro *m = &c->macro[k];
        const gp_tok *name = &c->text.v[m->from];
        bool has = false;
        for (int i = m->body; i < m->to; i++)
            has |= begins(s, &c->text.v[i]);
        if (has && only_specifiers(s, m))
            s->lasting[name->word] = true;
        else if (has && s->used[name->word])
            look_at(s, &c->text, m->body, m->to);
    }
}

/* ---- all of it ------------------------------------------------------------------ */

static int by_name(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* A word after one that is no verb declares something of that name: more than once, and one of
 * them is not const. */
static void drop_ambiguous(search *s)
{
    static const char *const verbs[] = { "return", "else", "case", "goto", "sizeof", "new", "delete",
                                         "throw", "do", "operator", "not", "and", "or", "xor", NULL };
    gp_cu *c = s->c;
    for (int i = 1; i < c->main.n; i++) {
        const gp_tok *v = &c->main.v[i];
        if (v->kind == GP_TOK_WORD && s->fixed[v->word] == 'c' && v[-1].kind == GP_TOK_WORD
            && !gp_tok_among(v - 1, verbs) && --s->declared[v->word] < 0)
            s->fixed[v->word] = 0;
    }
}

static const char **sorted(gp_cu *c, const char *const *from, int n)
{
    const char **list = gp_shape_alloc(c->s, sizeof *list * (size_t)(n + 1));
    memcpy(list, from, sizeof *list * (size_t)n);
    qsort(list, (size_t)n, sizeof *list, by_name);
    return list;
}

/* For the compiled image. */
static void keep_names(search *s)
{
    gp_cu *c = s->c;
    bool more = c->cut, none = redefines(s);
    bool *seen = gp_shape_alloc(c->s, (size_t)c->nwords);
    const char **all[3];
    int n[3] = { 0 };          /* words, constants, those and const */
    for (int i = 0; i < 3; i++)
        all[i] = gp_shape_alloc(c->s, sizeof **all * (size_t)c->nwords);
    for (int k = 0; k < 2; k++) {
        const gp_toks *t = k ? &c->text : &c->main;
        for (int i = 0; i < t->n; i++) {
            const gp_tok *v = &t->v[i];
            more |= gp_tok_is(v, "##");
            if (v->kind != GP_TOK_WORD || seen[v->word])
                continue;
            seen[v->word] = true;
            char *name = gp_shape_alloc(c->s, (size_t)v->len + 1);
            memcpy(name, v->p, (size_t)v->len);
            all[0][n[0]++] = name;
            if (s->fixed[v->word] == 'd' && !none)
                all[1][n[1]++] = name;
            if (s->fixed[v->word] && !none)
                all[2][n[2]++] = name;
        }
    }
    c->words = more ? NULL : sorted(c, all[0], c->nsorted = n[0]);
    c->constant = sorted(c, all[1], c->nconstants = n[1]);
    c->fixed = sorted(c, all[2], c->nfixed = n[2]);
}

gp_state gp_cu_state(gp_cu *c)
{
    size_t words = (size_t)c->nwords;
    search s = { .c = c, .used = gp_shape_alloc(c->s, words), .lasting = gp_shape_alloc(c->s, words),
                 .fixed = gp_shape_alloc(c->s, words),
                 .declared = gp_shape_alloc(c->s, words * sizeof *s.declared) };
    for (int i = 0; i < c->main.n; i++) {
        s.used[c->main.v[i].word] = true;
        s.mutable_members |= gp_tok_is(&c->main.v[i], "mutable") && !gp_tok_is(&c->main.v[i - 1], ")");
    }
    for (int k = 0; k < c->nmacros; k++)
        for (int i = c->macro[k].from + 1; i < c->macro[k].to; i++) {
            s.used[c->text.v[i].word] = true;
            s.mutable_members |= gp_tok_is(&c->text.v[i], "mutable");
        }
    look_at_macros(&s);
    s.declares = gp_shape_alloc(c->s, (size_t)c->main.n);
    look_at(&s, &c->main, 0, c->main.n);
    if (!s.found.at)
        s.found = gp_cu_changes(c, s.fixed, s.declares);
    look_at_constants(&s);
    drop_ambiguous(&s);
    keep_names(&s);
    return s.found;
}
