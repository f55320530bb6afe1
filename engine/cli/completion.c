/* completion.c - gpipe completion: what shells need to complete a command, and what may stand where its last word is.
 *
 * The tables of verbs and options say all of it: the word for a value or an operand there (FILE, STAGE, PATH=VALUE)
 * says of what sort it is. Nothing is compiled: names are those of the file's text. */
#include <dirent.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include "base/embed.h"
#include "cli/live.h"
#include "cli/verb.h"
#include "draw/dump.h"
#include "draw/names.h"

typedef struct asked {
    gp_arena a;
    const gp_registry *registry;
    const char *word;          /* as far as it is there */
    const char *before;        /* what stands in it before the value: "--set=" */
    const char *file;          /* the pipeline, or NULL */
    const char *last;          /* what was said before */
    bool helps;                /* the shell shows help */
} asked;

static void put(asked *x, const char *word, const char *help)
{
    const char *all = gp_format(&x->a, "%s%s", x->before, word);
    if (strncmp(all, x->word, strlen(x->word)) || (x->last && !strcmp(x->last, all)))
        return;
    for (const char *c = all; *c; c++)
        if ((unsigned char)*c < ' ' || *c == 0x7f)     /* a line is a word */
            return;
    x->last = all;
    printf("%s%s%s\n", all, x->helps && help ? "\t" : "", x->helps && help ? help : "");
}

static void put_verbs(asked *x)
{
    for (const gp_verb *v = NULL; (v = gp_verb_next(v));)
        put(x, v->name, v->help);
}

static void put_kinds(asked *x)
{
    const gp_kind *k;
    for (int i = 0; (k = gp_kind_at(x->registry, i)); i++)
        put(x, k->name, k->help);
}

/* The files of a folder that travel in the binary, without what is behind a dot. */
static void put_blobs(asked *x, const char *folder, const char *help)
{
    for (const gp_blob *b = gp_blobs; b->name; b++) {
        const char *name = b->name + strlen(folder);
        if (!strncmp(b->name, folder, strlen(folder)) && !strchr(name, '/'))
            put(x, gp_strndup(&x->a, name, strcspn(name, ".")), help);
    }
}

static void put_choices(asked *x, const char *before, const char *c)
{
    for (size_t n; *c; c += n + (c[n] == '|')) {
        n = strcspn(c, "|");
        put(x, gp_format(&x->a, "%s%.*s", before, (int)n, c), NULL);
    }
}

/* Pipelines, and folders that may have some. */
static void put_files(asked *x)
{
    const char *s = x->word + strlen(x->before), *slash = strrchr(s, '/');
    const char *folder = slash ? gp_strndup(&x->a, s, (size_t)(slash - s) + 1) : "";
    DIR *d = opendir(*folder ? folder : ".");
    for (struct dirent *e; d && (e = readdir(d));) {
        const char *dot = strrchr(e->d_name, '.'), *name = gp_format(&x->a, "%s%s", folder, e->d_name);
        bool hidden = e->d_name[0] == '.' && (slash ? slash[1] : *s) != '.';
        DIR *sub = hidden || !strcmp(e->d_name, ".") || !strcmp(e->d_name, "..") ? NULL : opendir(name);
        if (sub)
            put(x, gp_format(&x->a, "%s/", name), NULL);
        else if (!hidden && dot && (!strcmp(dot, ".yaml") || !strcmp(dot, ".yml")))
            put(x, name, NULL);
        if (sub)
            closedir(sub);
    }
    if (d)
        closedir(d);
}

static void read_names(asked *x, gp_names *names)
{
    gp_loaded l = { 0 };
    gp_errs ignored = { 0 };
    struct stat is;
    *names = (gp_names){ 0 };
    if (!x->file || stat(x->file, &is) || !S_ISREG(is.st_mode))        /* what is not there yet would be waited for */
        return;
    if (gp_load_text(&l, x->file, &ignored))
        gp_names_read(&x->a, names, gp_strndup(&x->a, l.text, l.len), l.len, x->file, x->registry);
    gp_unload(&l);
}

/* A path of --set: up to the next part that has to be chosen. */
static void put_path(asked *x, const char *path, const char *help)
{
    size_t there = strlen(x->word), before = strlen(x->before), from = there > before ? there - before : 0;
    size_t n = strlen(path), end = from < n ? from + strcspn(path + from, ".=") + 1 : 0;
    if (end)
        put(x, gp_strndup(&x->a, path, end < n ? end : n), end < n ? NULL : help);
}

static void put_rows(asked *x, const char *before, const gp_opt *rows, bool nodes)
{
    for (const gp_opt *o = rows; o && o->name; o++) {
        const char *path = gp_format(&x->a, "%s%s=", before, o->name);
        if (o->type != GP_OPT_NODE || nodes)
            put_path(x, path, o->help);
        if (strncmp(x->word + strlen(x->before), path, strlen(path)))
            continue;
        if (o->type == GP_OPT_ENUM || o->type == GP_OPT_BOOL)
            put_choices(x, path, o->type == GP_OPT_BOOL ? "true|false" : o->choices);
        for (int t = 1; o->type == GP_OPT_DTYPE && t < GP_NDTYPES; t++)
            put(x, gp_format(&x->a, "%s%s", path, gp_dtype_name((gp_dtype)t)), NULL);
    }
}

static void put_settings(asked *x)
{
    gp_names names;
    read_names(x, &names);
    put_rows(x, "", gp_top_keys, false);
    for (int i = 0; i < names.nvars; i++)
        put_path(x, gp_format(&x->a, "vars.%s=", names.var[i].name), NULL);
    for (int i = 0; i < names.nbuffers; i++)
        if (!names.buffer[i].again)
            put_rows(x, gp_format(&x->a, "buffers.%s.", names.buffer[i].name), gp_buffer_keys, true);
    for (int i = 0; i < names.nstages; i++) {
        const char *path = gp_format(&x->a, "stages.%s.", names.stage[i].name);
        put_rows(x, path, gp_stage_keys, true);
        put_rows(x, path, names.stage[i].kind ? names.stage[i].kind->opts : NULL, true);
    }
}

/* Of the sort that is so called in a usage. */
static void put_sort(asked *x, const char *sort)
{
    gp_names names;
    long pid[64];
    if (strstr(sort, "PID") && !x->file) {
        for (int i = 0, n = gp_socket_pids(pid, 64); i < n && i < 64; i++)
            put(x, gp_format(&x->a, "%ld", pid[i]), NULL);
    } else if (strstr(sort, "PATH=")) {
        put_settings(x);
    } else if (!strcmp(sort, "STAGE")) {
        read_names(x, &names);
        for (int i = 0; i < names.nstages; i++)
            put(x, names.stage[i].name, names.stage[i].kind ? names.stage[i].kind->name : NULL);
    } else if (!strcmp(sort, "EXAMPLE")) {
        put_blobs(x, "engine/cli/starters/", NULL);
    } else if (!strcmp(sort, "DEVICE")) {
        put_choices(x, "", "auto|cpu|cuda:0|all");
    } else if (!strncmp(sort, "SHELL", 5)) {
        put_choices(x, "", "bash|zsh|fish");
    } else if (!strcmp(sort, "[KIND...]")) {
        put_kinds(x);
    } else if (!strcmp(sort, "[NAME [WORD]]")) {
        put_verbs(x);
        put_blobs(x, "engine/cli/topics/", "a topic");
        put_kinds(x);
    }
}

static void put_value(asked *x, const gp_option *o)
{
    if (o->choices)
        put_choices(x, "", o->choices);
    else
        put_sort(x, o->value);
}

/* What may stand for the last of the words behind "gpipe". */
static void complete(asked *x, const char *const *word, int n)
{
    const gp_verb *v = NULL;
    const gp_option *o, *of = NULL;    /* the option whose value the word is */
    bool only_operands = false;
    x->word = n ? word[n - 1] : "";
    while (n > 1 && (v = gp_verb_next(v)) && strcmp(v->name, word[0]))
        ;
    for (int i = 1; v && i < n - 1; i++) {
        bool option = !of && !only_operands && word[i][0] == '-' && word[i][1];
        if (option && !strcmp(word[i], "--"))
            only_operands = true, option = false;
        else if (!option && !of && !x->file)
            x->file = word[i];
        of = NULL;
        for (o = NULL; option && !strchr(word[i], '=') && (o = gp_option_next(v, o));)
            if (o->value && gp_option_is(o, word[i]))
                of = o;
    }
    const char *equals = only_operands || of || strncmp(x->word, "--", 2) ? NULL : strchr(x->word, '=');
    if (n <= 1) {
        put_verbs(x);
        put(x, "--version", NULL);
        put(x, "--help", NULL);
    } else if (v && of) {
        put_value(x, of);
    } else if (v && equals) {
        x->before = gp_strndup(&x->a, x->word, (size_t)(equals - x->word) + 1);
        for (o = NULL; (o = gp_option_next(v, o));)
            if (o->value && gp_option_is(o, x->word))
                put_value(x, o);
    } else if (v && !only_operands && x->word[0] == '-') {
        for (o = NULL; (o = gp_option_next(v, o));)
            put(x, gp_format(&x->a, "--%s", o->name), o->help);
    } else if (v && !strncmp(v->operand, "FILE", 4)) {
        put_files(x);                  /* of an option a FILE is any, which shells complete themselves */
    } else if (v) {
        put_sort(x, v->operand);
    }
}

static int completion(const gp_args *args, const gp_registry *registry, gp_errs *errs)
{
    jmp_buf oom;
    asked x = { .a.oom = &oom, .registry = registry, .before = "", .helps = strcmp(args->operand[0], "bash") };
    char name[64];
    snprintf(name, sizeof name, "engine/cli/completion.%.32s", args->operand[0]);
    const gp_blob *b = gp_blob_find(name);
    if (!b)
        gp_usage(errs, "no completion for '%s'; there is one for bash, zsh and fish", args->operand[0]);
    else if (args->noperands == 1)
        fwrite(b->data, 1, (size_t)(b->end - b->data), stdout);
    else if (setjmp(oom))
        gp_no_memory(errs);
    else
        complete(&x, args->operand + 1, args->noperands - 1);
    gp_arena_free(&x.a);
    return gp_errs_exit(errs);
}

const gp_verb gp_verb_completion = {
    .name = "completion", .operand = "SHELL [-- WORD...]", .min = 1, .max = INT_MAX, .place = 114,
    .help = "print what bash, zsh or fish needs to complete commands",
    .more = "source <(gpipe completion bash) in ~/.bashrc, or of zsh; gpipe completion fish | source\n"
            "in config.fish. 'make install' puts them where shells look. Verbs, options, their values,\n"
            "kinds, topics and pipelines are completed, and behind --set the names in the file.\n"
            "With words it lists what may stand in the place of the last one: the scripts ask that.\n",
    .kinds = true, .run = completion,
};
