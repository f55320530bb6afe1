/* view.c - gpipe view: frames of a buffer of a pipeline that runs elsewhere, in a file, or as numbers. */
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "base/json.h"
#include "base/memfile.h"
#include "base/yaml.h"
#include "cli/live.h"
#include "cli/retune.h"
#include "cli/verb.h"

enum { RATE = 5, PATIENCE_MS = 1000 };

typedef struct view {
    const gp_args *args;
    const gp_registry *registry;
    const char *name, *buffer; /* name: of the run */
    FILE *f;                   /* from the run; its descriptor is */
    int fd;
    gp_tapped frame;
    void *data; size_t room;
    bool over;                 /* the run is */
    bool drawn;                /* a line on the terminal, that the next replaces */
} view;

/* ---- from the run -------------------------------------------------------- */

/* A run that has gone may have said its last word, which is still to be read. False: out of memory. */
static bool ask(view *v, gp_errs *errs)
{
    gp_memfile m;
    size_t n;
    char *line = NULL;
    if (gp_memfile_open(&m)) {
        fputs("{\"view\": ", m.f);
        gp_json_quote(m.f, v->buffer, strlen(v->buffer));
        fputs("}\n", m.f);
        line = gp_memfile_close(&m, &n);
    }
    if (line)
        gp_write_text(v->fd, line, n);
    free(line);
    return line || gp_no_memory(errs);
}

/* What gp_view_put wrote. False: it is something else. */
static bool read_object(gp_tapped *f, const gp_node *is)
{
    const gp_node *shape = is ? gp_node_list(is, "shape") : NULL;
    if (!shape || shape->n < 1 || shape->n > GP_MAXDIM)
        return false;
    *f = (gp_tapped){ .frame = strtoull(gp_node_text(is, "frame"), NULL, 10),
                      .holes = strtoull(gp_node_text(is, "holes"), NULL, 10),
                      .time_ns = strtoll(gp_node_text(is, "time_ns"), NULL, 10),
                      .type = { .dtype = gp_dtype_parse(gp_node_text(is, "dtype")), .ndim = shape->n } };
    bool ok = f->type.dtype != GP_NO_DTYPE;
    for (int i = 0; i < shape->n; i++)
        ok &= (f->type.dim[i] = strtoll(shape->item[i]->text, NULL, 10)) >= 0;
    f->bytes = ok ? gp_bytes(&f->type) : 0;
    return ok;
}

static bool read_head(gp_tapped *f, const char *line)
{
    GP_ARENA(a);
    GP_IF_OOM(&a)
        return false;
    gp_errs *errs = GP_NEW(&a, gp_errs, 1);
    const gp_node *root = gp_yaml_value(&a, line, (gp_loc){ .file = "socket" }, errs);
    return root && read_object(f, gp_node_get(root, "view"));
}

static bool read_data(view *v, gp_errs *errs)
{
    if (v->frame.bytes > v->room) {
        if (!gp_grow(&v->data, v->frame.bytes, 1))
            return gp_no_memory(errs);
        v->room = v->frame.bytes;
    }
    v->frame.data = v->data;
    return fread(v->data, 1, v->frame.bytes, v->f) == v->frame.bytes
        || gp_fail(errs, GP_E_RUN, (gp_loc){ 0 }, "the pipeline has gone without a word");
}

/* A while without a frame: it is told, once. */
static void wait_for(view *v, bool *told)
{
    struct pollfd p = { v->fd, POLLIN, 0 };
    if (*told || v->args->quiet || v->args->json || poll(&p, 1, PATIENCE_MS))
        return;
    *told = true;
    fprintf(stderr, "gpipe: waiting for the next frame of '%s'\n", v->buffer);
}

/* The next frame. 0: there is one, or the run is over; else the exit code. How the run stands comes first, and until it
 * has read what it is asked. */
static int next(view *v, bool first, gp_errs *errs)
{
    char *line = NULL;
    size_t cap = 0;
    int status = 0;
    bool got = false, asked = false, told = false;
    while (!got && !v->over && !status) {
        if (!first && !asked && !(asked = ask(v, errs))) {
            status = gp_errs_exit(errs);
            break;
        }
        if (asked)
            wait_for(v, &told);
        if (getline(&line, &cap, v->f) <= 0) {
            gp_fail(errs, GP_E_RUN, (gp_loc){ 0 }, "the pipeline has gone without a word");
            status = gp_errs_exit(errs);
        } else if (gp_is_answer(line)) {
            status = gp_answer_print(v->args, line, errs);
        } else if (gp_viewers_is_for(line)) {
            got = read_head(&v->frame, line)
                || gp_usage(errs, "'%s' is not the socket of a 'gpipe run'", v->name);
            got = got && read_data(v, errs);
            status = gp_errs_exit(errs);
        } else {
            v->over = !strncmp(line, "{\"over\":", 8);
        }
        first = false;
    }
    free(line);
    return status;
}

/* ---- as numbers ----------------------------------------------------------- */

static bool show(view *v)
{
    const gp_tapped *f = &v->frame;
    gp_view_numbers n = gp_view_numbers_of(&f->type, f->data);
    if (v->args->json) {
        gp_view_put(stdout, f, &n);
    } else {
        fputs(v->drawn ? "\r\033[K" : "", stdout);
        gp_view_print(stdout, f, &n);
    }
    v->drawn = !v->args->json && isatty(STDOUT_FILENO);
    if (!v->drawn)
        putchar('\n');
    return !fflush(stdout);
}

static int watch(view *v, gp_errs *errs)
{
    const double every = 1.0 / (v->args->rate ? v->args->rate : RATE);
    int status = 0;
    for (bool first = true; !status && !v->over; first = false) {
        double start = gp_seconds();
        status = next(v, first, errs);
        if (status || v->over || !show(v))
            break;
        double left = every - (gp_seconds() - start);
        if (left > 0)
            poll(NULL, 0, (int)(1e3 * left) + 1);
    }
    if (v->drawn)
        putchar('\n');
    return status;
}

static int once(view *v, gp_errs *errs)
{
    int status = next(v, true, errs);
    if (v->over) {
        gp_fail(errs, GP_E_RUN, (gp_loc){ 0 }, "the run ended before another frame of '%s' came", v->buffer);
        return gp_errs_exit(errs);
    }
    return status ? status : gp_view_write(v->args, v->registry, &v->frame, errs);
}

/* Is it the process or socket of a run? No buffer is named so. */
static bool is_run(const char *word)
{
    return (*word && !word[strspn(word, "0123456789")]) || strchr(word, '/');
}

static bool check(const gp_args *args, gp_errs *errs)
{
    if ((args->output || args->format) && args->watch)
        return gp_usage(errs, "--watch shows numbers, and writes no file: leave out -o and --format");
    if ((args->rate || args->json) && !args->watch)
        return gp_usage(errs, "--%s is of --watch", args->rate ? "rate" : "json");
    if (!args->watch && !args->output && isatty(STDOUT_FILENO))
        return gp_usage(errs, "a frame would go to the terminal: give -o FILE, a pipe, or --watch");
    return true;
}

static int look(const gp_args *args, const gp_registry *registry, gp_errs *errs)
{
    char only[24];
    bool named = args->noperands && (args->noperands == 2 || is_run(args->operand[0]));
    if (args->noperands > named && !check(args, errs))
        return gp_errs_exit(errs);
    if (!named && !gp_runs_choose(args, args->noperands ? args->operand[0] : NULL, stderr, only, errs)) {
        if (!errs->failed)
            gp_usage(errs, "say which: gpipe view PID %s", args->noperands ? args->operand[0] : "BUFFER");
        return gp_errs_exit(errs);
    }
    view v = { .args = args, .registry = registry, .name = named ? args->operand[0] : only,
               .buffer = args->noperands > named ? args->operand[args->noperands - 1] : "" };
    if (!(v.f = gp_socket_reach(v.name, errs)))
        return gp_errs_exit(errs);
    v.fd = fileno(v.f);
    int status = args->watch ? watch(&v, errs) : once(&v, errs);
    fclose(v.f);
    free(v.data);
    return status;
}

const gp_verb gp_verb_view = {
    .name = "view", .operand = "[PID|SOCKET] BUFFER", .max = 2, .place = 75,
    .help = "look at frames of a pipeline that runs elsewhere",
    .more = "Takes the next frame of a buffer of that 'gpipe run', which goes on, and writes it as .npy to\n"
            "standard output, or to the FILE of -o, as its name says (.npy .png .tiff .csv ...). Without a\n"
            "process it is the one run that has it; without a buffer its buffers are named. With --watch there\n"
            "are numbers until the run ends, or Ctrl-C: over the elements that are finite, of complex ones\n"
            "over their absolute values. The page of 'gpipe run --metrics PORT --view' shows frames in a\n"
            "browser ('gpipe help looking').\n",
    .run = look,
    .options = (const gp_option[]){
        { "output", 'o', "FILE", GP_TO_TEXT(output), "write it to this file" },
        { "format", 0, "FORMAT", GP_TO_TEXT(format), "as 'format' of the stage write: npy, png, raw, ..." },
        { "watch", 0, NULL, GP_TO_FLAG(watch), "least, greatest, mean, standard deviation, NaNs of frame after frame" },
        { "rate", 0, "N", GP_TO_COUNT(rate), "with --watch: N times a second, if there are so many frames; default 5" },
        GP_OPTION_JSON, GP_OPTION_QUIET,
        { 0 } },
};
