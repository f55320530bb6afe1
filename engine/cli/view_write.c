/* view_write.c - a frame that was looked at, as a file: it is written by the stage `write`, in a pipeline of that and of
 * the frame, so that there is each format that it has. */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>
#include "base/json.h"
#include "base/memfile.h"
#include "base/why.h"
#include "cli/live.h"

static bool to_stdout(const gp_args *args)
{
    return !args->output || !strcmp(args->output, "-");
}

/* The pipeline that writes it; `file`: in place of the one that is asked for, or NULL. NULL: out of memory. */
static char *text_of(const gp_args *args, const gp_type *t, const char *file, size_t *n)
{
    const bool is_stdout = to_stdout(args);
    gp_memfile m;
    if (!gp_memfile_open(&m))
        return NULL;
    fprintf(m.f, "device: cpu\nbuffers: {frame: {dtype: %s, shape: [", gp_dtype_name(t->dtype));
    for (int i = 0; i < t->ndim; i++)      /* a frame may have no rows, a buffer has */
        fprintf(m.f, "%s%jd", i ? ", " : "", (intmax_t)(t->dim[i] ? t->dim[i] : 1));
    fprintf(m.f, "]}}\nstages:\n  - {name: frame, use: input, out: frame}\n  - {name: view, use: write, format: %s, path: \"",
            args->format ? args->format : is_stdout ? "npy" : "auto");
    for (const char *c = file ? file : is_stdout ? "stdout" : args->output; *c; c++) {
        if (*c == '%' || *c == '$')
            fputc(*c, m.f);
        gp_json_escape(m.f, c, 1);
    }
    fputs("\"}\n", m.f);
    return gp_memfile_close(&m, n);
}

static bool push(gp_pipeline *p, const gp_tapped *f, gp_errs *errs)
{
    gp_loan l;
    gp_input *in = gp_pipeline_input(p, "frame");
    if (!gp_pipeline_start(p, NULL, errs))
        return false;
    if (gp_push_begin(in, &l, -1) == GP_LOAN_OK) {
        memcpy(l.view.data, f->data, f->bytes);
        l.view.type = f->type;
        gp_push_end(in, &l);
    }
    gp_push_close(in);
    return gp_pipeline_wait(p) == GP_DONE;
}

/* The pipeline that writes frames of type t; `file`: as for text_of. */
static bool load(gp_loaded *l, const gp_args *args, const gp_machine *machine, const gp_registry *registry, const gp_type *t,
                 const char *file, gp_errs *errs)
{
    gp_args none = { .verb = args->verb, .ranks = args->ranks };
    *l = (gp_loaded){ .file = "view" };
    l->text = text_of(args, t, file, &l->len);
    return l->text ? gp_load_for(l, &none, machine, registry, errs)
                   : gp_no_memory(errs);
}

/* Its elements as bytes from the least, 0, to the greatest, 255, which is said; NaN is 0. For free(); NULL: out of memory. */
static uint8_t *as_levels(const gp_args *args, const gp_tapped *f)
{
    const gp_view_numbers v = gp_view_numbers_of(&f->type, f->data);
    uint8_t *to = malloc(v.n + 1);
    for (size_t i = 0; to && i < v.n; i++) {
        double x = gp_view_element(f->type.dtype, f->data, i);
        double level = v.max > v.min ? 255 * (x - v.min) / (v.max - v.min) : 0;
        to[i] = level >= 255 ? 255 : level > 0 ? (uint8_t)(level + 0.5) : 0;
    }
    if (to && !args->quiet)
        fprintf(stderr, "gpipe: the picture shows %s%s as levels: 0 is %g, 255 is %g; a .npy holds the elements themselves\n",
                f->type.dtype == GP_C64 ? "absolute values of " : "", gp_dtype_name(f->type.dtype), v.min, v.max);
    return to;
}

static void write_levels(gp_loaded *l, const gp_args *args, const gp_tapped *f, gp_errs *errs)
{
    gp_tapped of = *f;
    uint8_t *data = as_levels(args, f);
    of.data = data, of.type.dtype = GP_U8, of.bytes = gp_bytes(&of.type);
    if (data)
        push(l->pipeline, &of, errs);
    else
        gp_no_memory(errs);
    free(data);
}

/* These pipelines, the stage in them, and the number of their one frame are nobody's. */
static void leave_out_names(gp_err *e)
{
    static const char *const names[] = { "frame 0: ", "stage 'view': ", "stage 'view' " };
    e->at = (gp_loc){ 0 };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        size_t n = strlen(names[i]);
        if (!strncmp(e->msg, names[i], n))
            memmove(e->msg, e->msg + n, strlen(e->msg + n) + 1);
    }
    char *advice = strstr(e->msg, ": put a ");
    if (advice)
        snprintf(advice, sizeof e->msg - (size_t)(advice - e->msg), "; a .npy holds any frame");
}

static bool is_one_of(const char *word, const char *const *words)
{
    while (*words && strcasecmp(word, *words))
        words++;
    return *words;
}

/* Is it to be a picture whose format holds whole numbers alone? */
static bool is_of_levels(const gp_args *args)
{
    static const char *const formats[] = { "png", "jpeg", "jpg", "pnm", "pgm", "ppm", NULL };
    const char *end = args->output ? strrchr(args->output, '.') : NULL;
    const char *format = args->format && strcmp(args->format, "auto") ? args->format : end ? end + 1 : "";
    return is_one_of(format, formats);
}

/* `file`: as for text_of. */
static int write_to(const gp_args *args, const gp_registry *registry, const gp_tapped *f, const char *file, gp_errs *errs)
{
    gp_loaded l = { 0 }, levels = { 0 };
    gp_type u8 = f->type;
    gp_errs unheard = { .n = 0 };
    gp_machine *machine = gp_machine_create(false);
    u8.dtype = GP_U8;
    if (!machine)
        gp_no_memory(errs);
    else if (load(&l, args, machine, registry, &f->type, file, errs))
        push(l.pipeline, f, errs);
    else if (is_of_levels(args) && load(&levels, args, machine, registry, &u8, file, &unheard))
        *errs = (gp_errs){ 0 }, write_levels(&levels, args, f, errs);
    for (int i = 0; i < errs->n; i++)
        leave_out_names(&errs->e[i]);
    int status = gp_tell_errs(args, NULL, errs);
    gp_unload(&l), gp_unload(&levels);
    gp_machine_destroy(machine);
    return status;
}

static bool copy_to_stdout(const char *file, gp_errs *errs)
{
    char some[1 << 16];
    size_t n;
    FILE *f = fopen(file, "r");
    while (f && (n = fread(some, 1, sizeof some, f)) > 0)
        fwrite(some, 1, n, stdout);
    bool ok = f && !ferror(f);
    if (f)
        fclose(f);
    return ok || gp_fail(errs, GP_E_RUN, (gp_loc){ 0 }, "'%s' cannot be read again", file);
}

/* A picture has no place on standard output for `write`, which may have many frames for it: there it goes by a file. */
int gp_view_write(const gp_args *args, const gp_registry *registry, const gp_tapped *f, gp_errs *errs)
{
    static const char *const streams[] = { "npy", "raw", "csv", "tsv", "jsonl", "auto", NULL };
    if (!args->format || !to_stdout(args) || is_one_of(args->format, streams))
        return write_to(args, registry, f, NULL, errs);
    const char *tmp = getenv("TMPDIR");
    int held = -1;
    tmp = tmp && *tmp ? tmp : "/tmp";
    char *dir = gp_temporary_folder(tmp, "view", &held), file[PATH_MAX];
    if (!dir) {
        gp_fail(errs, GP_E_RESOURCE, (gp_loc){ 0 }, "no folder can be made in '%s': %s; set TMPDIR", tmp, gp_strerror(errno));
        return gp_errs_exit(errs);
    }
    snprintf(file, sizeof file, "%s/frame", dir);
    int status = write_to(args, registry, f, file, errs);
    if (!status && !copy_to_stdout(file, errs))
        status = gp_errs_exit(errs);
    unlink(file), rmdir(dir), free(dir), close(held);
    return status;
}
