/* view_write.c - a frame that was looked at, as a file: it is written by the stage `write`, in a pipeline of that and of
 * the frame, so that there is each format that it has. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
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

/* `file`: as for text_of. */
static int write_to(const gp_args *args, const gp_registry *registry, const gp_tapped *f, const char *file, gp_errs *errs)
{
    gp_loaded l = { .file = "view" };
    gp_args none = { .verb = args->verb, .ranks = args->ranks };
    gp_machine *machine = gp_machine_create(false);
    l.text = text_of(args, &f->type, file, &l.len);
    if (!l.text || !machine)
        gp_fail(errs, GP_E_RESOURCE, (gp_loc){ 0 }, "out of memory");
    else if (gp_load_for(&l, &none, machine, registry, errs))
        push(l.pipeline, f, errs);
    static const char first[] = "frame 0: ";
    for (int i = 0; i < errs->n; i++) {
        errs->e[i].at = (gp_loc){ 0 };     /* this text is nobody's, nor is the number of its one frame */
        if (!strncmp(errs->e[i].msg, first, sizeof first - 1))
            memmove(errs->e[i].msg, errs->e[i].msg + sizeof first - 1, strlen(errs->e[i].msg) - sizeof first + 2);
    }
    gp_print_errs(args, NULL, errs);
    int status = gp_errs_exit(errs);
    *errs = (gp_errs){ 0 };
    gp_unload(&l);
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
    static const char *const streams[] = { "npy", "raw", "csv", "tsv", "jsonl", "auto" };
    bool streamed = !args->format || !to_stdout(args);
    for (size_t i = 0; i < sizeof streams / sizeof *streams && !streamed; i++)
        streamed = !strcmp(args->format, streams[i]);
    if (streamed)
        return write_to(args, registry, f, NULL, errs);
    char dir[] = "/tmp/gpipe-view-XXXXXX", file[sizeof dir + 8];
    if (!mkdtemp(dir)) {
        gp_fail(errs, GP_E_RESOURCE, (gp_loc){ 0 }, "no folder in /tmp: %s", gp_strerror(errno));
        return gp_errs_exit(errs);
    }
    snprintf(file, sizeof file, "%s/frame", dir);
    int status = write_to(args, registry, f, file, errs);
    if (!status && !copy_to_stdout(file, errs))
        status = gp_errs_exit(errs);
    unlink(file), rmdir(dir);
    return status;
}
