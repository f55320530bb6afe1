/* state_file.c - the key `save` of a state: the .npy file that has it once the run has ended.
 *
 * That the file can be written is found out before the first frame. It gets its name when it is whole, and not in a run
 * that failed or was stopped at once: what is there then is of an earlier run. */
#include <stdlib.h>
#include <sys/uio.h>
#include "base/npy.h"
#include "base/outfile.h"
#include "run/pipeline.h"
#include "run/setup.h"
#include "run/tap.h"

static gp_outfile new_file(void)
{
    return (gp_outfile){ .durable = GP_DURABLE_FILE, .is_sole = true };
}

bool gp_states_try(gp_run *run, gp_errs *errs)
{
    bool ok = true;
    for (int i = 0; i < run->graph->nbuffers; i++) {
        const gp_buffer *b = &run->graph->buffer[i];
        gp_outfile f = new_file();
        char why[GP_WHY];
        if (!b->save)
            continue;
        if (gp_outfile_open(&f, b->save, why))
            gp_outfile_drop(&f);
        else
            ok = gp_fail(errs, GP_E_RUN, b->save_at, "'save' of the state '%s': '%s' %s", b->name, b->save, why);
    }
    return ok;
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
    gp_outfile f = new_file();
    pthread_mutex_lock(&run->pipeline->taps.lock);
    bool ok = gp_taps_fetch(run, r, 0, data, bytes, errs);
    pthread_mutex_unlock(&run->pipeline->taps.lock);
    if (ok && !(gp_outfile_open(&f, b->save, why) && gp_write_all(f.fd, all, 2, why) && gp_outfile_commit(&f, why)))
        ok = gp_fail(errs, GP_E_RUN, b->save_at, "'save' of the state '%s': '%s' %s", b->name, b->save, why);
    gp_outfile_drop(&f);
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
