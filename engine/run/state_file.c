/* state_file.c - the key `save` of a state: the .npy file that has it once the run has ended.
 *
 * It is opened before the first frame and held until the run ends, so that no other run saves to it meanwhile. It gets its
 * name when it is whole, and not in a run that failed or was stopped at once: what is there then is of an earlier run. */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include "base/npy.h"
#include "base/outfile.h"
#include "run/pipeline.h"
#include "run/setup.h"
#include "run/tap.h"

typedef struct gp_state_file gp_state_file;
struct gp_state_file {
    gp_state_file *next;
    gp_outfile out;
    char path[];               /* as the state says it */
};

static gp_state_file *file_of(const gp_run *run, const char *path)
{
    gp_state_file *f = run->saves;
    while (f && strcmp(f->path, path))
        f = f->next;
    return f;
}

/* Opens the file of a state, which no other run may then save to. What `init` is was looked at before that, by the
 * compiler: a file that has come since then is what another run saved meanwhile. */
static bool hold(gp_run *run, const gp_buffer *b, gp_errs *errs)
{
    char why[GP_WHY];
    struct stat st;
    gp_state_file *f = calloc(1, sizeof *f + strlen(b->save) + 1);
    if (!f)
        return gp_fail(errs, GP_E_RESOURCE, b->save_at, "out of memory to save the state '%s'", b->name);
    f->out = (gp_outfile){ .durable = GP_DURABLE_FILE, .is_sole = true };
    strcpy(f->path, b->save);
    f->next = run->saves, run->saves = f;
    if (!gp_outfile_open(&f->out, b->save, why))
        return gp_fail(errs, GP_E_RUN, b->save_at, "'save' of the state '%s': '%s' %s", b->name, b->save, why);
    return !b->missing || stat(b->missing, &st)
        || gp_fail(errs, GP_E_RUN, b->at, "'init' of the state '%s': '%s' is there by now, which was missing when the pipeline "
                   "was checked: run it once more", b->name, b->missing);
}

bool gp_states_hold(gp_run *run, gp_errs *errs)
{
    bool ok = true;
    for (int i = 0; i < run->graph->nbuffers && !run->from && gp_states_are_saved(run); i++)
        if (run->graph->buffer[i].save)
            ok &= hold(run, &run->graph->buffer[i], errs);
    return ok;
}

void gp_states_drop(gp_run *run)
{
    for (gp_state_file *f; (f = run->saves);) {
        run->saves = f->next;
        gp_outfile_drop(&f->out);
        free(f);
    }
}

static bool save(gp_run *run, const gp_ringrt *r, gp_errs *errs)
{
    const gp_buffer *b = r->buffer;
    size_t bytes = gp_bytes(&b->type);
    char head[GP_NPY_HEADER_MAX], why[GP_WHY];
    size_t n = gp_npy_header(&b->type, head, sizeof head);
    char *data = malloc(bytes);
    struct iovec all[] = { { head, n }, { data, bytes } };
    if (!data)
        return gp_fail(errs, GP_E_RESOURCE, b->save_at, "out of memory to save the state '%s'", b->name);
    pthread_mutex_lock(&run->pipeline->taps.lock);
    bool ok = gp_taps_fetch(run, r, 0, data, bytes, errs);
    pthread_mutex_unlock(&run->pipeline->taps.lock);
    gp_outfile *f = ok ? &file_of(run, b->save)->out : NULL;
    if (ok && !(gp_write_all(f->fd, all, 2, why) && gp_outfile_commit(f, why)))
        ok = gp_fail(errs, GP_E_RUN, b->save_at, "'save' of the state '%s': '%s' %s", b->name, b->save, why);
    free(data);
    return ok;
}

bool gp_states_save(gp_run *run, gp_errs *errs)
{
    bool ok = true;
    for (int i = 0; i < run->plan->nrings; i++)
        if (run->ring[i].buffer && run->ring[i].buffer->save)
            ok &= save(run, &run->ring[i], errs);
    return ok;
}
