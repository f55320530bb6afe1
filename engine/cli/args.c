/* args.c - the options of the command, one row each. */
#include <stdlib.h>
#include <string.h>
#include "cli/cli.h"

enum { COMPILES = GP_VERB_RUN | GP_VERB_CHECK | GP_VERB_PLAN | GP_VERB_BENCH | GP_VERB_SIMULATE | GP_VERB_TUNE,
       ALL = COMPILES | GP_VERB_STAGES | GP_VERB_HELP | GP_VERB_TOP | GP_VERB_SET | GP_VERB_NEW | GP_VERB_SCHEMA
           | GP_VERB_MACHINE };

typedef enum option_type { FLAG, CHOICE, TEXT, SET, DEVICE, WORDS, TIME, COUNT } option_type;

static const struct option {
    const char *name;
    char letter;
    const char *value;                 /* for the help; NULL: takes none */
    unsigned verbs;
    option_type type;
    size_t off;                        /* in gp_args; not of SET and DEVICE */
    const char *choices;
    const char *help;
} options[] = {
#define F(f) FLAG, GP_OFF(gp_args, f, bool), NULL
#define C(f, choices) CHOICE, GP_OFF(gp_args, f, int), choices
#define X(f) TEXT, GP_OFF(gp_args, f, const char *), NULL
#define W(f) WORDS, GP_OFF(gp_args, f, gp_words), NULL
#define T(f) TIME, GP_OFF(gp_args, f, int64_t), NULL
#define N(f) COUNT, GP_OFF(gp_args, f, int), NULL
    { "set", 0, "PATH=VALUE", COMPILES, SET, 0, NULL,
      "change a value: streams=4, vars.dir=x, stages.blur.sigma=2" },
    { "device", 0, "DEVICE", COMPILES, DEVICE, 0, NULL,
      "auto, cpu, cuda:N, all, cuda:0-3; the same as --set device=..." },
    { "watch", 0, NULL, GP_VERB_RUN, F(watch),
      "when FILE, or a script, kernel or constant that it names, is saved, go on with the new version" },
    { "join-timeout", 0, "TIME", GP_VERB_RUN | GP_VERB_CHECK | GP_VERB_PLAN, T(join_ns),
      "how long ranks wait for one that has not started, or is not set up; default 5min" },
    { "poison", 0, NULL, GP_VERB_RUN, F(poison),
      "fill every slot before each use, floats with NaN, integers with bytes 0xa5: shows what stages leave unwritten" },
    { "isolate", 0, NULL, GP_VERB_RUN, F(isolate),
      "one frame at a time: finds the stage that faults" },
    { "check-kernels", 0, NULL, GP_VERB_RUN, F(check_kernels),
      "on the CPU, one frame at a time: finds kernels of yours that read or write outside their frames, up to 16 GiB "
      "away; a read in the padding at a frame's end (15 bytes at most) is found only if it changes the output" },
    { "sweep", 0, "PATH=LIST", GP_VERB_BENCH, W(sweep),
      "a row for each value: depth=1..8, batch=1,4,auto; may be given again" },
    { "goal", 0, "GOAL", GP_VERB_TUNE, X(goal),
      "rate (default), latency (of 99 frames in 100), with limits: 'rate, latency < 5 ms'; 'latency, rate > 100'" },
    { "budget", 0, "TIME", GP_VERB_TUNE, T(budget_ns), "how long it may take; default 60s" },
    { "memory", 0, "SIZE", GP_VERB_TUNE, X(memory), "the most host and device memory together: 4GiB" },
    { "svg", 0, "FILE", GP_VERB_TUNE, X(svg_file), "a drawing of all settings: rate against latency and memory" },
    { "write", 0, NULL, GP_VERB_TUNE, F(write), "change the file, if better settings were found" },
    { "serial", 0, NULL, GP_VERB_BENCH, F(serial),
      "add a row with depth 1 for all buffers, one stream and no batches" },
    { "cached", 0, "STAGE", GP_VERB_BENCH, W(cached),
      "a row in which that stage costs nothing: its outputs are used again" },
    { "window", 0, "TIME", GP_VERB_BENCH, T(window_ns), "how long to count frames; default 500ms" },
    { "max-time", 0, "TIME", GP_VERB_BENCH, T(max_time_ns),
      "how long to wait for three windows to agree; default 10s" },
    { "rounds", 0, "N", GP_VERB_BENCH, N(rounds),
      "how often to measure each row, in turns; default 1, or 3 for several files" },
    { "csv", 0, NULL, GP_VERB_BENCH, F(csv), "as CSV" },
    { "progress", 0, "HOW", GP_VERB_RUN | GP_VERB_BENCH, C(progress, "auto|bar|plain|json|none"),
      "on stderr: auto (bar, on a terminal), bar (a line a stage), plain (a line a second), json (each line an "
      "object), none" },
    { "metrics", 0, "[ADDR:]PORT", GP_VERB_RUN, X(metrics),
      "serve http://127.0.0.1:PORT/metrics to Prometheus while it runs; port 0: a free one" },
    { "report", 0, "FILE", GP_VERB_RUN | GP_VERB_SIMULATE, X(report),
      "what each stage and engine did, and what held the run back: .json or .html" },
    { "trace", 0, "FILE.json", GP_VERB_RUN, X(trace),
      "when each stage, copy and kernel ran, for ui.perfetto.dev" },
    { "trace-gpu", 0, "HOW", GP_VERB_RUN, C(trace_gpu, "cheap|full"),
      "cheap (default: copies and kernels as wholes) or full (each, by CUPTI; slower)" },
    { "trace-last", 0, "TIME", GP_VERB_RUN, T(trace_ns),
      "keep only the last TIME of the run; default 30s" },
    { "form", 0, "FORM", GP_VERB_PLAN, C(form, "plan|graph|spec"),
      "spec (what the file says), graph (what it means) or plan (what is done)" },
    { "dot", 0, NULL, GP_VERB_PLAN, F(dot), "as a graph for dot (Graphviz)" },
    { "svg", 0, NULL, GP_VERB_PLAN, F(svg), "as a drawing (SVG); of the plan or the graph" },
    { "mermaid", 0, NULL, GP_VERB_PLAN, F(mermaid), "as a flowchart for Mermaid; likewise" },
    { "with", 0, "REPORT", GP_VERB_PLAN | GP_VERB_SIMULATE, X(with),
      "what 'gpipe run --report FILE.json' wrote: plan colors its drawing by these times, simulate computes with "
      "them" },
    { "machine", 0, "FILE", GP_VERB_CHECK | GP_VERB_PLAN | GP_VERB_SIMULATE, X(machine),
      "the machine to plan for, as JSON: what 'gpipe machine' printed there; default: this one, or, with simulate, "
      "that of the report" },
    { "ranks", 0, "N", GP_VERB_SIMULATE, N(ranks),
      "simulate N processes, each with a share of the frames, as 'mpirun -n N' starts them" },
    { "nodes", 0, "M", GP_VERB_SIMULATE, N(nodes), "the machines that these are on, all alike; default 1" },
    { "json", 0, NULL, GP_VERB_PLAN | GP_VERB_STAGES | GP_VERB_BENCH | GP_VERB_TOP | GP_VERB_SIMULATE, F(json),
      "as JSON" },
    { "markdown", 0, NULL, GP_VERB_STAGES, F(markdown), "as Markdown: what stages/REFERENCE.md has" },
    { "man", 0, NULL, GP_VERB_HELP, F(man), "all of the reference, as the source of a man page" },
    { "from", 0, "EXAMPLE", GP_VERB_NEW, X(from), "the example to start from; default first" },
    { "quiet", 'q', NULL, COMPILES, F(quiet), "errors only" },
    { "verbose", 'v', NULL, GP_VERB_RUN, F(verbose),
      "name the device and, as on a terminal, say what each stage did and what held the run back" },
    { "help", 'h', NULL, ALL, F(help), "this text" },
};
enum { NOPTIONS = sizeof options / sizeof *options };

void gp_args_help(FILE *to, gp_verb verb)
{
    fprintf(to, "options:\n");
    for (const struct option *o = options; o < options + NOPTIONS; o++) {
        char text[64];
        if (!(o->verbs & verb))
            continue;
        snprintf(text, sizeof text, "%s%s%s", o->name, o->value ? " " : "",
                 o->value ? o->value : "");
        fprintf(to, "  %c%c --%-19s  %s\n", o->letter ? '-' : ' ', o->letter ? o->letter : ' ',
                text, o->help);
    }
}

static bool usage(gp_errs *errs, const char *what, const char *name, const char *more)
{
    return gp_fail(errs, GP_E_USAGE, (gp_loc){ 0 }, "%s '%s'%s", what, name, more);
}

/* The option that `word` names: --name, --name=value, -x. `value`: the next word, or NULL. */
static const struct option *find(const char *word, const char *value, gp_verb verb, gp_errs *errs)
{
    static const char *const keys[] = { "depth", "streams", "batch", "batch_wait", "latency", "launch", "sync",
                                        "priority", "fuse", "on_error", "stall_timeout", NULL };
    char name[64] = "";
    size_t len = strcspn(word + 2, "=");
    if (word[1] == '-' && len + 3 < sizeof name)
        memcpy(name, word, len + 2);
    gp_near near = GP_NEAR(name);
    bool of_another = false;           /* another verb has one of that name */
    for (const struct option *o = options; o < options + NOPTIONS; o++) {
        char full[32];
        snprintf(full, sizeof full, "--%s", o->name);
        bool is_it = word[1] == '-' ? !strcmp(full, name)
            : o->letter && word[1] == o->letter && !word[2];
        if (is_it && o->verbs & verb)
            return o;
        of_another |= is_it;
        if (o->verbs & verb) {
            gp_near_try(&near, full);
            if (near.best == full)     /* `full` is gone after this round */
                near.best = o->name;
        }
    }
    if (of_another) {
        bool starts = !strcmp(name, "--ranks") && verb & (GP_VERB_RUN | GP_VERB_PLAN | GP_VERB_CHECK);
        usage(errs, "this verb has no option", word, starts ? "; a launcher starts several ranks: mpirun -n 3 gpipe run FILE"
                                                            : "; its --help shows which it has");
        return NULL;
    }
    char did[160] = "";
    gp_near near_key = GP_NEAR(name[0] ? name + 2 : "");
    for (const char *const *key = keys; *key && verb & COMPILES; key++)
        gp_near_try(&near_key, *key);
    if (*gp_near_text(&near_key) && near_key.distance < near.distance)
        snprintf(did, sizeof did, "; a key of the pipeline is changed with --set %s=%.60s", near_key.best,
                 word[2 + len] ? word + 3 + len : value ? value : "VALUE");
    else if (*gp_near_text(&near))
        snprintf(did, sizeof did, "; did you mean '--%s'?", near.best);
    usage(errs, "no option", word, did);
    return NULL;
}

/* One of "a|b|c". */
static bool read_choice(gp_arena *a, const struct option *o, const char *value, int *index,
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
    return gp_fail(errs, GP_E_USAGE, (gp_loc){ 0 }, "'--%s' must be one of %s, not '%s'%s", o->name, all,
                   value, gp_near_text(&near));
}

/* "500ms", "2s", as in a pipeline. */
static bool read_time(const struct option *o, const char *value, int64_t *ns, gp_errs *errs)
{
    const int64_t least = 1000000, most = 3600000000000;
    gp_node n = { .text = value, .len = strlen(value) };
    if (!gp_eval_time(&n, NULL, ns, errs)) {
        errs->e[errs->n - 1].code = GP_E_USAGE;
        return false;
    }
    return (*ns >= least && *ns <= most)
        || gp_fail(errs, GP_E_USAGE, (gp_loc){ 0 }, "--%s %s: must be 1ms to 1h", o->name, value);
}

static bool read_count(const struct option *o, const char *value, int *n, gp_errs *errs)
{
    char *end;
    long v = strtol(value, &end, 10);
    *n = (int)v;
    return (*value && !*end && v >= 1 && v <= 1000)
        || gp_fail(errs, GP_E_USAGE, (gp_loc){ 0 }, "--%s %s: must be a number from 1 to 1000",
                   o->name, value);
}

static bool apply(gp_arena *a, const struct option *o, const char *value, gp_args *out,
                  int *set_cap, gp_errs *errs)
{
    char *field = (char *)out + o->off;
    switch (o->type) {
    case FLAG:
        *(bool *)field = true;
        return true;
    case CHOICE:
        return read_choice(a, o, value, (int *)field, errs);
    case TEXT:                         /* the first would be lost without a word */
        if (*(const char **)field)
            return gp_fail(errs, GP_E_USAGE, (gp_loc){ 0 }, "--%s %s: it is given twice, before as %s", o->name, value,
                           *(const char **)field);
        *(const char **)field = value;
        return true;
    case WORDS: {
        gp_words *w = (gp_words *)field;
        *GP_PUSH(a, w->word, w->n, w->cap) = value;
        return true;
    }
    case TIME:
        return read_time(o, value, (int64_t *)field, errs);
    case COUNT:
        return read_count(o, value, (int *)field, errs);
    case DEVICE:
        out->device = value = gp_format(a, "device=%s", value);
        break;
    case SET:
        break;
    }
    *GP_PUSH(a, out->set, out->nset, *set_cap) = value;
    return true;
}

/* What is printed has one form. */
static bool one_form(const gp_args *args, gp_errs *errs)
{
    const struct { bool asked; const char *name; } forms[] = {
        { args->json, "--json" }, { args->csv, "--csv" }, { args->dot, "--dot" },
        { args->svg, "--svg" }, { args->mermaid, "--mermaid" }, { args->markdown, "--markdown" } };
    const char *first = NULL;
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++)
        if (forms[i].asked && first)
            return gp_fail(errs, GP_E_USAGE, (gp_loc){ 0 }, "'%s' and '%s' exclude each other",
                           first, forms[i].name);
        else if (forms[i].asked)
            first = forms[i].name;
    if (args->form == GP_FORM_SPEC && (args->svg || args->mermaid))
        return gp_fail(errs, GP_E_USAGE, (gp_loc){ 0 }, "'%s' cannot draw the spec; try "
                       "--form graph", first);
    if (args->verb == GP_VERB_PLAN && args->with
        && (args->form == GP_FORM_SPEC || !(args->svg || args->mermaid || args->dot)))
        return gp_fail(errs, GP_E_USAGE, (gp_loc){ 0 }, "'--with' colors the drawing of a plan or "
                       "graph; add --svg, --dot or --mermaid");
    return true;
}

static bool parse(gp_arena *a, int argc, char **argv, gp_verb verb, gp_args *out, gp_errs *errs)
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
        const struct option *o = find(word, i + 1 < argc ? argv[i + 1] : NULL, verb, errs);
        if (!o)
            return false;
        const char *equals = word[1] == '-' ? strchr(word, '=') : NULL;
        const char *value = equals ? equals + 1 : o->value && i + 1 < argc ? argv[++i] : NULL;
        if (o->value && !value)
            return usage(errs, "a value is missing after", word,
                         gp_format(a, "; write --%s %s", o->name, o->value));
        if (!o->value && equals)
            return gp_fail(errs, GP_E_USAGE, (gp_loc){ 0 }, "'--%s' takes no value", o->name);
        if (!apply(a, o, value, out, &set_cap, errs))
            return false;
    }
    return one_form(out, errs);
}

bool gp_args_parse(gp_arena *a, int argc, char **argv, gp_verb verb, gp_args *out, gp_errs *errs)
{
    jmp_buf oom;
    *out = (gp_args){ .verb = verb };
    if (setjmp(oom))
        return gp_fail(errs, GP_E_RESOURCE, (gp_loc){ 0 }, "out of memory");
    a->oom = &oom;
    bool ok = parse(a, argc, argv, verb, out, errs);
    a->oom = NULL;
    return ok;
}
