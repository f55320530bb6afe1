/* load.c - a file's text, its compilation, and the errors of both. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include "base/json.h"
#include "base/memfile.h"
#include "base/why.h"
#include "cli/report.h"
#include "cli/verb.h"
#include "ranks/same.h"

/* ---- errors ---------------------------------------------------------- */

bool gp_want_color(int fd)
{
    const char *no = getenv("NO_COLOR");
    return isatty(fd) && !(no && *no);
}

/* The index of the --set that an error is at (see gp_spec_set), -1: it is elsewhere. */
static int find_set(const gp_args *args, const char *file)
{
    for (int i = 0; file && i < args->nset; i++)
        if (file == args->set[i])
            return i;
    return -1;
}

/* Error i with its notes, as an object; returns how many entries that were. */
static int say_err(gp_ranks *us, const gp_errs *errs, int i, const gp_err *e)
{
    gp_errs one = { .e = { *e }, .n = 1, .failed = e->code != GP_E_WARN };
    int n = 1;
    gp_json j = { .f = gp_say_begin(), .level = 3 };   /* all on one line */
    gp_json_open(&j, NULL, '{');
    gp_json_str(&j, e->code == GP_E_WARN ? "warning" : "error", e->msg);
    if (gp_ranks_n(us) > 1)
        gp_json_int(&j, "rank", gp_rank(us));
    if (e->at.file)
        gp_json_str(&j, "file", e->at.file);
    if (e->at.line)
        gp_json_int(&j, "line", e->at.line);
    if (e->at.line && e->at.col)
        gp_json_int(&j, "column", e->at.col);
    if (one.failed)
        gp_json_int(&j, "exit", gp_errs_exit(&one));
    gp_json_open(&j, "notes", '[');
    for (; i + n < errs->n && errs->e[i + n].code == GP_E_NOTE; n++)
        gp_json_str(&j, NULL, errs->e[i + n].msg);
    gp_json_close(&j, ']');
    gp_json_close(&j, '}');
    fputc('\n', j.f);
    gp_say_end();
    return n;
}

char *gp_err_option(const gp_args *args, const gp_err *e)
{
    int set = find_set(args, e->at.file);
    bool device = e->at.file == args->device, swept = set >= args->swept_from && set < args->swept_to;
    enum { LONG = 100 };               /* of a list, say: what it begins with tells which it is */
    char *name = NULL;
    const char *text = set < 0 ? "" : device ? strchr(e->at.file, '=') + 1 : e->at.file;
    if (set >= 0 && asprintf(&name, "--%s %.*s%s", device ? "device" : swept ? "sweep" : "set", LONG, text,
                             strlen(text) > LONG ? "..." : "") < 0)
        name = NULL;
    return name;
}

static void print_errs(FILE *to, const char *rank, const gp_args *args, const gp_loaded *l, const gp_errs *errs)
{
    bool color = gp_want_color(STDERR_FILENO), only_warnings = false;
    for (int i = 0; i < errs->n; i++) {
        gp_err e = errs->e[i];
        only_warnings |= e.code == GP_E_WARN;      /* of what there was no room for: errors come first */
        if (e.code == GP_E_WARN && args->quiet)
            continue;
        char *name = gp_err_option(args, &e);
        if (find_set(args, e.at.file) >= 0)
            e.at = (gp_loc){ .file = name };
        if (gp_says_json())
            i += say_err(args->ranks, errs, i, &e) - 1;
        else if (fputs(e.code == GP_E_NOTE ? "" : rank, to) != EOF)
            gp_err_print(to, &e, l ? l->file : NULL, l ? l->text : NULL, l ? l->len : 0,
                         color);
        free(name);
    }
    if (errs->dropped && !(only_warnings && args->quiet))
        fprintf(to, "gpipe: %d more %s are not shown\n", errs->dropped, only_warnings ? "warnings" : "errors and warnings");
}

void gp_print_errs(const gp_args *args, const gp_loaded *l, const gp_errs *errs)
{
    const char *rank;
    gp_memfile m;
    size_t n = 0;
    if (!gp_ranks_say(args->ranks, &rank))
        return;
    bool whole = gp_ranks_n(args->ranks) > 1 && gp_memfile_open(&m);    /* what others say does not come between */
    print_errs(whole ? m.f : stderr, rank, args, l, errs);
    char *text = whole ? gp_memfile_close(&m, &n) : NULL;
    if (text)
        fwrite(text, 1, n, stderr);
    free(text);
}

int gp_tell_errs(const gp_args *args, const gp_loaded *l, gp_errs *errs)
{
    int status = gp_errs_exit(errs);
    gp_print_errs(args, l, errs);
    *errs = (gp_errs){ 0 };
    return status;
}

void gp_print_errs_of_rank(const gp_args *args, int rank, const gp_loaded *l, const gp_errs *errs)
{
    char name[32] = "";
    if (rank >= 0)
        snprintf(name, sizeof name, "rank %d: ", rank);
    print_errs(stderr, name, args, l, errs);
}

/* ---- text ------------------------------------------------------------ */

enum { LARGEST = 64 << 20 };

/* May its text be read: is it a file, or a pipe that this process was given? */
static bool is_readable(const char *file, gp_loc at, gp_errs *errs)
{
    static const char *const given[] = { "/dev/stdin", "/dev/fd/", "/proc/self/fd/" };
    struct stat st;
    if (stat(file, &st) || S_ISREG(st.st_mode))
        return true;                   /* what cannot be looked at cannot be opened: see there */
    if (S_ISDIR(st.st_mode))
        return gp_fail(errs, GP_E_USAGE, at, "this is a folder; name a file in it");
    for (size_t i = 0; i < sizeof given / sizeof *given; i++)
        if (!strncmp(file, given[i], strlen(given[i])))
            return true;
    return gp_fail(errs, GP_E_USAGE, at, "this is not a regular file; a pipe is read as standard "
                   "input, by '-' in place of its name");
}

bool gp_load_text(gp_loaded *l, const char *file, gp_errs *errs)
{
    bool is_stdin = !strcmp(file, "-");
    *l = (gp_loaded){ .file = is_stdin ? "stdin" : file };
    gp_loc at = { .file = l->file };
    if (!is_stdin && !is_readable(file, at, errs))
        return false;
    FILE *f = is_stdin ? stdin : fopen(file, "re");
    if (!f)
        return errno == ENOENT ? gp_fail(errs, GP_E_USAGE, at, "there is no such file")
            : gp_fail(errs, errno == ENOMEM ? GP_E_RESOURCE : GP_E_USAGE, at,
                      "cannot open the file: %s", gp_strerror(errno));
    size_t cap = 0, got;
    errno = 0;
    do {
        if (cap - l->len < 4096 && !gp_grow(&l->text, cap = cap ? 2 * cap : 65536, 1)) {
            errno = ENOMEM;
            break;
        }
        got = fread(l->text + l->len, 1, cap - l->len, f);
        l->len += got;
    } while (got && l->len <= LARGEST);
    int error = errno;
    if (!is_stdin)
        fclose(f);
    if (l->len > LARGEST)
        return gp_fail(errs, GP_E_USAGE, at, "this is larger than %d MiB", LARGEST >> 20);
    return !error || gp_fail(errs, error == ENOMEM ? GP_E_RESOURCE : GP_E_USAGE, at,
                             "cannot read the file: %s", gp_strerror(error));
}

/* ---- machine --------------------------------------------------------- */

const char *gp_from_env(const void *arg, const char *name)
{
    return getenv(name);
}

int gp_gpus_named(const char *devices)
{
    int n = 0;
    for (const char *s = strstr(devices, "cuda"); s; s = strstr(s, "cuda")) {
        char *end = (char *)(s += 4);
        long i = *s == ':' ? strtol(s + 1, &end, 10) : 0;
        i = *end == '-' ? strtol(end + 1, NULL, 10) : i;
        n = i >= n && i < 1024 ? (int)i + 1 : n;
    }
    return n;
}

/* The machine that --machine names. */
static gp_machine *read_machine(const gp_args *args, gp_errs *errs)
{
    gp_loaded l;
    gp_machine *m = gp_load_text(&l, args->machine, errs) ? gp_machine_create_from(l.text, l.len, l.file, errs) : NULL;
    gp_unload(&l);
    return m;
}

/* The machine to compile for; NULL, without an error: the one that this is. */
static gp_machine *choose_machine(const gp_args *args, bool *ok, gp_errs *errs)
{
    gp_machine *m = NULL;
    gp_machine_info is;
    int gpus = args->device ? gp_gpus_named(args->device) : 0;
    if (args->verb->target == GP_TARGET_ANY) {
        m = gp_machine_create_fixed(gpus > 1 ? gpus : 1);
    } else if (args->verb->target == GP_TARGET_ASKED && gpus) {
        if ((m = gp_machine_create(true)))
            gp_machine_about(m, &is);
        if (m && is.ndevices < gpus) {
            if (!args->quiet && !gp_rank(args->ranks) && gpus == 1)
                fprintf(stderr, "gpipe: no GPU here (%s); this is the plan for an H200\n", is.why);
            else if (!args->quiet && !gp_rank(args->ranks))
                fprintf(stderr, "gpipe: there are not %d GPUs here; this is the plan for %d H200s\n", gpus, gpus);
            gp_machine_destroy(m);
            m = gp_machine_create_fixed(gpus);
        }
    } else {
        return NULL;
    }
    *ok = m || gp_no_memory(errs);
    return m;
}

/* ---- both ------------------------------------------------------------ */

/* What --set says, behind what other options of the command line ask for; malloc'd. */
static const char **settings(const gp_args *args, int *n)
{
    const char **set = malloc(sizeof *set * ((size_t)args->nset + 1));
    *n = 0;
    if (set && (args->isolate || args->check_kernels || args->unfused))
        set[(*n)++] = "fuse=none";     /* they name one stage of the file */
    for (int i = 0; set && i < args->nset; i++)
        set[(*n)++] = args->set[i];
    return set;
}

/* Which of how many processes the plan is for. */
typedef struct which { int rank, ranks, local; } which;

/* How many processes share the memory of a machine, where most do. What 'check' plans for, and what a report does not
 * say of its machine, is made up: each has all of that. */
static int sharing(const gp_args *args)
{
    if (!args->machine && args->verb->target >= GP_TARGET_ANY)
        return 0;
    int nodes = args->nodes ? args->nodes : 1;
    return args->nranks ? (args->nranks + nodes - 1) / nodes : gp_local_ranks(args->ranks);
}

static bool load_as(gp_loaded *l, const gp_args *args, which is, const gp_machine *machine, const gp_registry *registry,
                    gp_errs *errs)
{
    static struct timespec moment;     /* one for all that the command compiles: names with a ${date:} stay */
    struct tm now;
    int nset;
    const char **set = settings(args, &nset);
    if (!moment.tv_sec)
        clock_gettime(CLOCK_REALTIME, &moment);
    gp_config config = { .registry = registry,
                         .env = { gp_from_env, NULL, localtime_r(&moment.tv_sec, &now),
                                  (int)moment.tv_nsec, is.rank, is.ranks, is.local, sharing(args) },
                         .set = set, .nset = nset, .machine = machine,
                         .lenient = args->verb->target >= GP_TARGET_ANY,
                         .bounded = args->verb->target == GP_TARGET_ASKED };
    bool ok = set || gp_no_memory(errs);
    if (ok)
        l->pipeline = gp_compile(l->text, l->len, l->file, &config, errs);
    free(set);
    for (int i = 0; i < errs->n; i++)          /* what --set says is of the command line */
        if (errs->e[i].code == GP_E_SPEC && find_set(args, errs->e[i].at.file) >= 0)
            errs->e[i].code = GP_E_USAGE;
    return l->pipeline != NULL;
}

bool gp_load_for(gp_loaded *l, const gp_args *args, const gp_machine *machine, const gp_registry *registry,
                 gp_errs *errs)
{
    const gp_ranks *us = args->ranks;
    which is = { gp_rank(us), args->nranks ? args->nranks : gp_ranks_n(us), gp_local_rank(us) };
    return load_as(l, args, is, machine, registry, errs);
}

bool gp_load_for_rank(gp_loaded *l, const gp_args *args, int rank, int local, const gp_machine *machine,
                      const gp_registry *registry, gp_errs *errs)
{
    return load_as(l, args, (which){ rank, args->nranks, local }, machine, registry, errs);
}

bool gp_load(gp_loaded *l, const char *file, const gp_args *args, const gp_registry *registry,
             gp_errs *errs)
{
    if (!gp_load_text(l, file, errs))
        return false;
    bool ok = true;
    if (args->machine)
        return (l->machine = read_machine(args, errs)) && gp_load_for(l, args, l->machine, registry, errs);
    gp_machine *machine = choose_machine(args, &ok, errs);
    ok = ok && gp_load_for(l, args, machine, registry, errs);
    gp_machine_destroy(machine);
    return ok;
}

/* The hash of what all ranks are to be given alike. */
static uint64_t hash_of(const gp_args *args)
{
    uint64_t h = gp_ranks_hash(0, &args->quiet, sizeof args->quiet);
    const char *const file[] = { args->report ? args->report : "", args->trace ? args->trace : "",
                                 args->record ? args->record : "" };
    for (int i = 0; i < args->nset + 3; i++) {
        const char *text = i < args->nset ? args->set[i] : file[i - args->nset];
        h = gp_ranks_hash(h, text, strlen(text) + 1);
    }
    h = gp_ranks_hash(h, &args->trace_ns, sizeof args->trace_ns);
    return gp_ranks_hash(h, &args->trace_gpu, sizeof args->trace_gpu);
}

bool gp_agree(const gp_args *args, const gp_loaded *l, bool ok, gp_errs *errs)
{
    gp_ranks_has mine = { l->file, l->text, l->len, hash_of(args), l->pipeline, gp_report_accounts(args),
                          args->verb->target == GP_TARGET_HERE };
    return gp_ranks_agree(args->ranks, &mine, ok, errs);
}

void gp_unload(gp_loaded *l)
{
    gp_pipeline_destroy(l->pipeline);
    gp_machine_destroy(l->machine);
    free(l->text);
    *l = (gp_loaded){ 0 };
}
