/* args.c - options and operands of a verb, as its rows say. */
#include <stdlib.h>
#include <string.h>
#include "cli/verb.h"
#include "draw/dump.h"

/* Verbs of the same place are in the order of their names. */
static int compare_places(const gp_verb *a, const gp_verb *b)
{
    return a->place != b->place ? (a->place > b->place) - (a->place < b->place) : strcmp(a->name, b->name);
}

const gp_verb *gp_verb_next(const gp_verb *last)
{
    const gp_verb *next = NULL;
    for (const gp_verb *const *v = gp_verbs; *v; v++)
        if ((!last || compare_places(*v, last) > 0) && (!next || compare_places(*v, next) < 0))
            next = *v;
    return next;
}

static const gp_option of_help[] = { { "help", 'h', NULL, GP_TO_FLAG(help), "this text" }, { .name = NULL } };

const gp_option *gp_option_next(const gp_verb *v, const gp_option *o)
{
    if (o == of_help)
        return NULL;
    o = o ? o + 1 : v->options;
    return o && o->name ? o : of_help;
}

void gp_args_help(FILE *to, const gp_verb *verb)
{
    fprintf(to, "options:\n");
    for (const gp_option *o = NULL; (o = gp_option_next(verb, o));) {
        char text[64];
        snprintf(text, sizeof text, "%s%s%s", o->name, o->value ? " " : "",
                 o->value ? o->value : "");
        fprintf(to, "  %c%c --%-19s  %s\n", o->letter ? '-' : ' ', o->letter ? o->letter : ' ',
                text, o->help);
    }
}

bool gp_option_is(const gp_option *o, const char *word)
{
    size_t n = strlen(o->name);
    return word[1] == '-' ? !strncmp(word + 2, o->name, n) && (!word[2 + n] || word[2 + n] == '=')
        : o->letter && word[1] == o->letter && !word[2];
}

/* Has any verb one of that name? */
static bool is_of_another(const char *word)
{
    for (const gp_verb *v = NULL; (v = gp_verb_next(v));)
        for (const gp_option *o = NULL; (o = gp_option_next(v, o));)
            if (gp_option_is(o, word))
                return true;
    return false;
}

/* The option that `word` names. `value`: the next word, or NULL. */
static const gp_option *find(const char *word, const char *value, const gp_verb *verb, gp_errs *errs)
{
    char name[64] = "";
    size_t len = strcspn(word + 2, "=");
    if (word[1] == '-' && len + 1 < sizeof name)
        memcpy(name, word + 2, len);
    gp_near near = GP_NEAR(name), near_key = GP_NEAR(name);
    for (const gp_option *o = NULL; (o = gp_option_next(verb, o));) {
        if (gp_option_is(o, word))
            return o;
        gp_near_try(&near, o->name);
    }
    if (is_of_another(word)) {
        bool starts = !strcmp(name, "ranks") && verb->ranks;
        return GP_NULL(gp_usage(errs, "this verb has no option '%s'; %s", word, !starts ? "its --help shows which it has"
                                : "a launcher starts several ranks: mpirun -n 3 gpipe run FILE"));
    }
    char did[160] = "";
    for (const gp_opt *key = gp_top_keys; key->name && verb->target; key++)
        if (key->type != GP_OPT_NODE)
            gp_near_try(&near_key, key->name);
    if (*gp_near_text(&near_key) && near_key.distance < near.distance)
        snprintf(did, sizeof did, "; a key of the pipeline is changed with --set %s=%.60s", near_key.best,
                 word[2 + len] ? word + 3 + len : value ? value : "VALUE");
    else if (*gp_near_text(&near))
        snprintf(did, sizeof did, "; did you mean '--%s'?", near.best);
    return GP_NULL(gp_usage(errs, "no option '%s'%s", word, did));
}

/* One of "a|b|c". */
static bool read_choice(gp_arena *a, const gp_option *o, const char *value, int *index,
                        gp_errs *errs)
{
    gp_near near = GP_NEAR(value);
    const char *p = o->choices, *all = "";
    for (*index = 0; p; (*index)++) {
        size_t n = strcspn(p, "|");
        const char *word = gp_strndup(a, p, n);
        if (!strcmp(word, value))
            return true;
        gp_near_try(&near, word);
        all = gp_format(a, "%s%s%s", all, *all ? ", " : "", word);
        p = p[n] ? p + n + 1 : NULL;
    }
    return gp_usage(errs, "'--%s' must be one of %s, not '%s'%s", o->name, all, value, gp_near_text(&near));
}

/* "500ms", "2s", as in a pipeline. */
static bool read_time(const gp_option *o, const char *value, int64_t *ns, gp_errs *errs)
{
    const int64_t least = 1000000, most = 3600000000000;
    gp_node n = { .text = value, .len = strlen(value) };
    if (!gp_eval_time(&n, NULL, ns, errs)) {
        errs->e[errs->n - 1].code = GP_E_USAGE;
        return false;
    }
    return (*ns >= least && *ns <= most)
        || gp_usage(errs, "--%s %s: must be 1ms to 1h", o->name, value);
}

static bool read_count(const gp_option *o, const char *value, int *n, gp_errs *errs)
{
    char *end;
    long v = strtol(value, &end, 10);
    *n = (int)v;
    return (*value && !*end && v >= 1 && v <= 1000)
        || gp_usage(errs, "--%s %s: must be a number from 1 to 1000", o->name, value);
}

static bool apply(gp_arena *a, const gp_option *o, const char *value, gp_args *out,
                  int *set_cap, gp_errs *errs)
{
    char *field = (char *)out + o->off;
    switch (o->type) {
    case GP_IS_FLAG:
        *(bool *)field = true;
        return true;
    case GP_IS_CHOICE:
        return read_choice(a, o, value, (int *)field, errs);
    case GP_IS_TEXT:                         /* the first would be lost without a word */
        if (*(const char **)field)
            return gp_usage(errs, "--%s %s: it is given twice, before as %s", o->name, value, *(const char **)field);
        *(const char **)field = value;
        return true;
    case GP_IS_WORDS: {
        gp_words *w = (gp_words *)field;
        *GP_PUSH(a, w->word, w->n, w->cap) = value;
        return true;
    }
    case GP_IS_TIME:
        return read_time(o, value, (int64_t *)field, errs);
    case GP_IS_COUNT:
        return read_count(o, value, (int *)field, errs);
    case GP_IS_DEVICE:
        out->device = value = gp_format(a, "device=%s", value);
        break;
    case GP_IS_SET:
        break;
    }
    *GP_PUSH(a, out->set, out->nset, *set_cap) = value;
    return true;
}

/* What is printed has one form. */
static bool one_form(const gp_args *args, gp_errs *errs)
{
    const struct { bool asked; const char *name; } forms[] = {
        { args->json, "--json" }, { args->dot, "--dot" },
        { args->svg, "--svg" }, { args->markdown, "--markdown" } };
    const char *first = NULL;
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++)
        if (forms[i].asked && first)
            return gp_usage(errs, "'%s' and '%s' exclude each other", first, forms[i].name);
        else if (forms[i].asked)
            first = forms[i].name;
    return true;
}

static bool parse(gp_arena *a, int argc, char **argv, const gp_verb *verb, gp_args *out, gp_errs *errs)
{
    bool only_operands = false;
    int operand_cap = 0, set_cap = 0;
    for (int i = 0; i < argc; i++) {
        const char *word = argv[i];
        if (only_operands || word[0] != '-' || !word[1]) {
            *GP_PUSH(a, out->operand, out->noperands, operand_cap) = word;
            continue;
        }
        if (!strcmp(word, "--")) {
            only_operands = true;
            continue;
        }
        const gp_option *o = find(word, i + 1 < argc ? argv[i + 1] : NULL, verb, errs);
        if (!o)
            return false;
        const char *equals = word[1] == '-' ? strchr(word, '=') : NULL;
        const char *value = equals ? equals + 1 : o->value && i + 1 < argc ? argv[++i] : NULL;
        if (o->value && !value)
            return gp_usage(errs, "a value is missing after '%s'; write --%s %s", word, o->name, o->value);
        if (!o->value && equals)
            return gp_usage(errs, "'--%s' takes no value", o->name);
        if (!apply(a, o, value, out, &set_cap, errs))
            return false;
    }
    return one_form(out, errs);
}

bool gp_args_parse(gp_arena *a, int argc, char **argv, const gp_verb *verb, gp_args *out, gp_errs *errs)
{
    *out = (gp_args){ .verb = verb, .ranks = out->ranks };
    GP_IF_OOM(a)
        return gp_no_memory(errs);
    bool ok = parse(a, argc, argv, verb, out, errs);
    a->oom = NULL;
    return ok;
}

gp_args gp_args_with(gp_arena *a, const gp_args *args, const char *const *set, int n)
{
    gp_args more = *args;
    more.set = GP_NEW(a, const char *, args->nset + n);
    more.nset = args->nset + n;
    for (int i = 0; i < more.nset; i++)
        more.set[i] = i < args->nset ? args->set[i] : set[i - args->nset];
    return more;
}
