/* changes.c - where a source may change, by a cast or in assembly, what it declares const and what all
 * launches in flight share. */
#include <ctype.h>
#include <string.h>
#include "code.h"

typedef struct search {
    gp_cu *c;
    const char *fixed;         /* as in state.c */
    const bool *declares;
    gp_state found;
} search;

/* A cast before the name at i that takes const away from its address. */
static bool is_cast(gp_cu *c, const gp_toks *t, int i)
{
    bool address = false;
    for (i--; i > 0 && (gp_tok_is(&t->v[i], "&") || gp_tok_is(&t->v[i], "(")
                        || gp_tok_is(&t->v[i], "::")); i--)
        address |= gp_tok_is(&t->v[i], "&");
    if (!gp_tok_is(&t->v[i], ")") || t->v[i].pair < 0)
        return false;
    bool pointer = gp_tok_is(&t->v[i - 1], "*") || gp_tok_is(&t->v[i - 1], "&");
    bool number = address && gp_tok_is_type(&t->v[i - 1]);
    for (int k = t->v[i].pair; k < i && gp_cu_step(c, &t->v[k]); k++)
        if (gp_tok_is(&t->v[k], "const"))
            return false;
    return pointer || number;
}

/* name[i].m = 1, ++name */
static bool is_assigned(const gp_toks *t, int i)
{
    int before = i - 1;
    for (i++; i < t->n; i++) {
        if (gp_tok_is(&t->v[i], "["))
            i = gp_tok_close(t, i, t->n);
        else if (gp_tok_is(&t->v[i], "."))
            i++;
        else if (gp_tok_is(&t->v[i], ")") && gp_tok_is(&t->v[before], "(")
                 && (t->v[before - 1].kind != GP_TOK_WORD || gp_tok_is(&t->v[before - 1], "return")))
            before--;                      /* (name), not if (name) */
        else
            break;
    }
    return gp_tok_assigns(&t->v[i]) || gp_tok_is(&t->v[before], "++")
        || gp_tok_is(&t->v[before], "--");
}

/* Has the statement around i the word const_cast? */
static bool is_const_cast(search *s, const gp_toks *t, int i)
{
    int from = i;
    while (from > 0 && !gp_tok_is(&t->v[from - 1], ";") && gp_cu_step(s->c, &t->v[i]))
        from--;
    for (; from < t->n && !gp_tok_is(&t->v[from], ";") && gp_cu_step(s->c, &t->v[i]); from++)
        if (gp_tok_is(&t->v[from], "const_cast"))
            return true;
    return false;
}

/* Does a text have the name as a word, or in one with the length before it, as C++ does? */
static bool is_symbol(gp_cu *c, const gp_tok *text, const gp_tok *name)
{
    enum { EACH = 64 };        /* characters for a step */
    const char *end = text->p + text->len, *p = text->p + 1;
    for (int n = text->len / EACH; n > 0; n--)
        if (!gp_cu_step(c, text))
            return false;
    for (; (p = memmem(p, (size_t)(end - p), name->p, (size_t)name->len)); p++)
        if (!isalpha((unsigned char)p[-1]) && p[-1] != '_'
            && (isdigit((unsigned char)p[-1]) || !isalnum((unsigned char)p[name->len])))
            return true;
    return false;
}

/* A text of assembly that names a variable by its symbol. */
static const gp_tok *named_in(search *s, const gp_tok *text)
{
    const gp_toks *t = &s->c->main;
    for (int i = 0; i < t->n && gp_cu_step(s->c, text); i++)
        if (t->v[i].kind == GP_TOK_WORD && s->fixed[t->v[i].word]
            && is_symbol(s->c, text, &t->v[i]))
            return &t->v[i];
    return NULL;
}

static void changed(search *s, const gp_tok *name, const gp_tok *at)
{
    if (!s->found.at && name)
        s->found = (gp_state){ .at = name, .changed = at };
}

static bool declares(const gp_tok *text)
{
    return memmem(text->p, (size_t)text->len, ".global .", 9) || memmem(text->p, (size_t)text->len, ".data", 5)
        || memmem(text->p, (size_t)text->len, ".comm", 5) || memmem(text->p, (size_t)text->len, ".bss", 4);
}

static void look_at_assembly(search *s, const gp_toks *t, int i)
{
    while (t->v[i].kind == GP_TOK_WORD && gp_cu_step(s->c, &t->v[i]))
        i++;
    bool code = true;          /* not what follows a colon: "=r"(a) */
    for (int end = gp_tok_close(t, i, t->n); i < end && gp_cu_step(s->c, &t->v[i]); i++)
        if (gp_tok_is(&t->v[i], ":") || gp_tok_is(&t->v[i], "::"))
            code = false;
        else if (code && t->v[i].kind == GP_TOK_TEXT && declares(&t->v[i]))
            changed(s, &t->v[i], NULL);
        else if (code && t->v[i].kind == GP_TOK_TEXT)
            changed(s, named_in(s, &t->v[i]), &t->v[i]);
        else if (t->v[i].kind == GP_TOK_WORD && s->fixed[t->v[i].word])
            changed(s, &t->v[i], &t->v[i]);
}

static void look_at_uses(search *s, const gp_toks *t)
{
    bool casts = false;
    for (int i = 0; i < t->n; i++)
        casts |= gp_tok_is(&t->v[i], "const_cast");
    for (int i = 1; i < t->n && !s->found.at; i++) {
        const gp_tok *v = &t->v[i];
        if (gp_tok_is_asm(v))
            look_at_assembly(s, t, i);
        if (v->kind != GP_TOK_WORD || !s->fixed[v->word] || gp_tok_is(v - 1, ".")
            || gp_tok_is(v - 1, "->"))
            continue;
        bool same = s->fixed[v->word] == 'c' || gp_tok_is_type(v - 1) || gp_tok_is(v - 1, "*")
            || (t == &s->c->main && s->declares[i]);
        if (is_cast(s->c, t, i) || (!same && is_assigned(t, i)) || (casts && is_const_cast(s, t, i)))
            changed(s, v, v);
    }
}

gp_state gp_cu_changes(gp_cu *c, const char *fixed, const bool *declares)
{
    search s = { .c = c, .fixed = fixed, .declares = declares };
    look_at_uses(&s, &c->main);
    look_at_uses(&s, &c->text);
    return s.found;
}
