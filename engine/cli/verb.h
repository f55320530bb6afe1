/* verb.h - a verb of the command: one file with one constant, gp_verb_NAME, which the Makefile finds. */
#pragma once

#include "cli/cli.h"

/* A row of an option: where in gp_args its value goes. */
typedef struct gp_option {
    const char *name;
    char letter;
    const char *value;                 /* for the help; NULL: takes none */
    enum { GP_IS_FLAG, GP_IS_CHOICE, GP_IS_TEXT, GP_IS_SET, GP_IS_DEVICE, GP_IS_WORDS, GP_IS_TIME, GP_IS_COUNT } type;
    size_t off;
    const char *choices, *help;        /* choices: "a|b" */
} gp_option;

#define GP_TO_FLAG(f) GP_IS_FLAG, GP_OFF(gp_args, f, bool), NULL
#define GP_TO_CHOICE(f, choices) GP_IS_CHOICE, GP_OFF(gp_args, f, int), choices
#define GP_TO_TEXT(f) GP_IS_TEXT, GP_OFF(gp_args, f, const char *), NULL
#define GP_TO_WORDS(f) GP_IS_WORDS, GP_OFF(gp_args, f, gp_words), NULL
#define GP_TO_TIME(f) GP_IS_TIME, GP_OFF(gp_args, f, int64_t), NULL           /* ns */
#define GP_TO_COUNT(f) GP_IS_COUNT, GP_OFF(gp_args, f, int), NULL

/* Rows that several verbs have. */
#define GP_OPTION_PLUGIN { "plugin", 0, "FILE.so", GP_TO_WORDS(plugins), \
    "a plug-in whose kinds of stages there are, too; may be given again (gpipe help plugins)" }
#define GP_OPTION_SET { "set", 0, "PATH=VALUE", GP_IS_SET, 0, NULL, \
    "change a value: streams=4, vars.dir=x, stages.blur.sigma=2" }
#define GP_OPTION_DEVICE { "device", 0, "DEVICE", GP_IS_DEVICE, 0, NULL, \
    "auto, cpu, cuda:N, all, cuda:0-3; the same as --set device=..." }
#define GP_OPTION_JOIN_TIMEOUT { "join-timeout", 0, "TIME", GP_TO_TIME(join_ns), \
    "how long ranks wait for one that has not started, or is not set up; default 5min" }
#define GP_OPTION_PROGRESS { "progress", 0, "HOW", GP_TO_CHOICE(progress, "auto|bar|plain|json|none"), \
    "on stderr: auto (bar, on a terminal), bar (a line a stage), plain (a line a second), json (each line an " \
    "object), none" }
#define GP_OPTION_REPORT { "report", 0, "FILE", GP_TO_TEXT(report), \
    "what each stage and engine did, and what held the run back: .json or .html" }
#define GP_OPTION_WITH { "with", 0, "REPORT", GP_TO_TEXT(with), \
    "what 'gpipe run --report FILE.json' wrote: plan colors its drawing by these times, simulate computes with them" }
#define GP_OPTION_MACHINE { "machine", 0, "FILE", GP_TO_TEXT(machine), \
    "the machine to plan for, as JSON: what 'gpipe machine' printed there; default: this one, or, with simulate, " \
    "that of the report" }
#define GP_OPTION_JSON { "json", 0, NULL, GP_TO_FLAG(json), "as JSON" }
#define GP_OPTION_QUIET { "quiet", 'q', NULL, GP_TO_FLAG(quiet), "errors only" }

/* The machine that a verb compiles pipelines for: the one it runs on; that one, or an H200 where a GPU is asked for
 * that is not there; any with a GPU; what it is told of. */
typedef enum gp_target { GP_TARGET_NONE, GP_TARGET_HERE, GP_TARGET_ASKED, GP_TARGET_ANY, GP_TARGET_TOLD } gp_target;

struct gp_verb {
    const char *name, *operand;        /* operand: as it stands in the usage, or "" */
    int min, max;                      /* operands */
    int place;                         /* in the list of verbs, which is in ascending order; of equal ones by name */
    const char *help, *more;           /* a line; lines, or NULL */
    const gp_option *options;          /* up to one without a name; NULL: --help alone */
    gp_target target;                  /* GP_TARGET_NONE: compiles nothing */
    bool kinds;                        /* compiles nothing, and tells of kinds: plug-ins count */
    bool ranks;                        /* the processes of a launcher do it together */
    /* The exit code. Errors that are still in `errs` are printed by the caller, who in place of 0 takes the code of the
     * first: so gp_fail() can be returned. */
    int (*run)(const gp_args *args, const gp_registry *registry, gp_errs *errs);
};

/* Made by the Makefile; ends with NULL. */
extern const gp_verb *const gp_verbs[];

/* args.c. The verb behind `last` in the list (NULL: the first); NULL: none. */
const gp_verb *gp_verb_next(const gp_verb *last);
/* The option behind `o` of those that a verb has; NULL as `o`: the first. NULL: none. */
const gp_option *gp_option_next(const gp_verb *v, const gp_option *o);
/* Is it what `word` names: --name, --name=value, -x? */
bool gp_option_is(const gp_option *o, const char *word);
/* What follows the verb. The strings are argv's or the arena's. */
bool gp_args_parse(gp_arena *a, int argc, char **argv, const gp_verb *verb, gp_args *out, gp_errs *errs);
/* The options of one verb, for its --help. */
void gp_args_help(FILE *to, const gp_verb *verb);
/* help.c: what the command can do; what a verb can. */
void gp_help_print(FILE *to);
void gp_help_print_verb(FILE *to, const gp_verb *v);
