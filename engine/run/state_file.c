/* state_file.c - the keys `save` and `resume` of a state: the .npy file that has it, when a run begins and when it ends;
 * state_save.c writes it in between.
 *
 * The file is held, by a temporary one of its name, from before the state is read until the run ends, so that no other run
 * saves to it meanwhile. It is replaced when the run has ended, but not by one that failed or was stopped at once: what is
 * there then is of an earlier frame or run.
 *
 * With `resume` all states are of one frame, and the run goes on from that. So they are saved together, and not before all
 * sinks have what comes before: each is first written as FILE.next, then the note says so, then they get their names. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include "base/npy.h"
#include "base/outfile.h"
#include "run/pipeline.h"
#include "run/state_file.h"
#include "run/tap.h"

typedef struct gp_state_file gp_state_file;
struct gp_state_file {
    gp_state_file *next;
    const gp_buffer *of;
    gp_outfile held;
};

static bool failed(const gp_buffer *b, const char *path, const char *why, gp_errs *errs)
{
    return gp_fail(errs, GP_E_RUN, b->save_at, "'save' of the state '%s': '%s' %s", b->name, path, why);
}

/* Keeps other runs from saving to the file of a state. The compiler looked for the file of `init` before that: one that has
 * come since then is what another run has saved. */
static bool hold(gp_run *run, const gp_buffer *b, gp_errs *errs)
{
    char why[GP_WHY];
    struct stat st;
    gp_state_file *f = calloc(1, sizeof *f);
    if (!f)
        return gp_fail(errs, GP_E_RESOURCE, b->save_at, "out of memory to save the state '%s'", b->name);
    f->of = b, f->held.is_sole = true;
    f->next = run->saves, run->saves = f;
    if (!gp_outfile_open(&f->held, b->save, why))
        return failed(b, b->save, why, errs);
    return !b->missing || stat(b->missing, &st)
        || gp_fail(errs, GP_E_RUN, b->at, "'init' of the state '%s': '%s' has come since the pipeline was checked, when it was "
                   "missing: run it again", b->name, b->missing);
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
        gp_outfile_drop(&f->held);
        free(f);
    }
}

/* NULL: the run saves nothing, or goes on from a run of another pipeline, which held the file. */
static const gp_outfile *held(const gp_run *run, const gp_buffer *b)
{
    const gp_state_file *f = run->saves;
    while (f && f->of != b)
        f = f->next;
    return f ? &f->held : NULL;
}

/* Where the file is when links are followed. */
static const char *file_of(const gp_run *run, const gp_buffer *b)
{
    return held(run, b) ? held(run, b)->path : b->save;
}

static const char *next_of(const gp_run *run, const gp_buffer *b, char path[PATH_MAX])
{
    return snprintf(path, PATH_MAX, "%s.next", file_of(run, b)) < PATH_MAX ? path : "";
}

/* The folder was looked through when the file was held. */
bool gp_state_write(const gp_run *run, const gp_buffer *b, uint64_t frames, void *data, gp_errs *errs)
{
    char head[GP_NPY_HEADER_MAX], after[60], why[GP_WHY], next[PATH_MAX];
    const char *path = run->resume ? next_of(run, b, next) : b->save;
    const gp_outfile *h = held(run, b);
    gp_outfile f = { .durable = GP_DURABLE_FILE, .placed = h && h->placed };
    if (h)
        strcpy(f.path, h->path);
    snprintf(after, sizeof after, "after %llu frames", (unsigned long long)frames);
    struct iovec all[] = { { head, gp_npy_header_with(&b->type, after, head, sizeof head) }, { data, gp_bytes(&b->type) } };
    bool ok = gp_outfile_open(&f, path, why) && gp_write_all(f.fd, all, 2, why) && gp_outfile_commit(&f, why);
    gp_outfile_drop(&f);
    if (run->resume)
        gp_resume_state(run, b, data);
    return ok || failed(b, path, why, errs);
}

static bool take_next(const gp_run *run, const gp_buffer *b, gp_errs *errs)
{
    char next[PATH_MAX];
    int bad = rename(next_of(run, b, next), file_of(run, b)) ? errno : gp_sync_folder(file_of(run, b));
    return !bad || failed(b, b->save, gp_strerror(bad), errs);
}

/* Does this file have the state that `resume` noted? */
static bool is_noted(const gp_run *run, const gp_buffer *b, const char *path, void *data)
{
    gp_errs ignored = { .n = 0 };
    const gp_buffer in_file = { .name = b->name, .path = path, .type = b->type, .file = b->type.dtype, .at = b->save_at };
    return gp_const_load(&in_file, data, &ignored) && gp_resume_is_state(run, b, data);
}

bool gp_state_load(gp_run *run, const gp_ringrt *r, gp_errs *errs)
{
    const gp_buffer *b = r->buffer;
    char next[PATH_MAX];
    gp_dev *dev = run->dev[run->plan->unified ? 0 : r->ring->place.index];
    size_t bytes = gp_bytes(&b->type);
    void *data = dev->backend->alloc(dev, GP_MEMORY_PINNED, bytes, errs);
    if (!data)
        return false;
    bool ok = is_noted(run, b, next_of(run, b, next), data)
            ? take_next(run, b, errs)
            : is_noted(run, b, b->save, data)
              || gp_fail(errs, GP_E_RUN, b->save_at, "'save' of the state '%s': '%s' is not the state after %llu frames, at which "
                         "the run goes on, as '%s' says: to begin from the first frame, remove '%s'", b->name, b->save,
                         (unsigned long long)run->graph->from, run->graph->resume, run->graph->resume);
    ok = ok && gp_memory_copy(dev, gp_slot(r, 0), data, bytes, errs);
    dev->backend->free(dev, GP_MEMORY_PINNED, data, bytes);
    return ok;
}

static bool save(gp_run *run, const gp_ringrt *r, uint64_t *frames, gp_errs *errs)
{
    const gp_buffer *b = r->buffer;
    size_t bytes = gp_bytes(&b->type);
    int order;
    const gp_actorrt *p = gp_state_actor(run, r, &order);
    char *room = gp_state_room(run, r, errs), *data = room || errs->failed ? room : malloc(bytes);
    if (!data)
        return !errs->failed && gp_fail(errs, GP_E_RESOURCE, b->save_at, "out of memory to save the state '%s'", b->name);
    pthread_mutex_lock(&run->pipeline->taps.lock);
    bool ok = gp_taps_fetch(run, r, 0, data, bytes, errs);
    pthread_mutex_unlock(&run->pipeline->taps.lock);
    *frames = gp_actor_number(p, atomic_load(&p->seg->reaped) - atomic_load(&p->seg->undone));
    ok = ok && gp_state_write(run, b, *frames, data, errs);
    if (!room)
        free(data);
    return ok;
}

bool gp_states_name(const gp_run *run, gp_errs *errs)
{
    bool ok = true;
    for (int i = 0; i < run->graph->nbuffers && gp_states_are_saved(run); i++)
        ok &= !run->graph->buffer[i].save || take_next(run, &run->graph->buffer[i], errs);
    return ok;
}

/* With `resume` the files of a run that was drained get their names only if all sinks have what the states have had: else
 * the next run goes on with what was saved before. Those of a run that is done get them later, by gp_states_name. */
bool gp_states_save(gp_run *run, bool drained, gp_errs *errs)
{
    bool ok = true, same = true;
    uint64_t frames = UINT64_MAX, is = 0;
    for (int i = 0; i < run->plan->nrings; i++)
        if (run->ring[i].buffer && run->ring[i].buffer->save) {
            ok &= save(run, &run->ring[i], &is, errs);
            same &= frames == UINT64_MAX || frames == is;
            frames = is;
        }
    bool named = ok && same && run->resume && drained && frames != UINT64_MAX && gp_resume_states(run, frames);
    return named ? gp_states_name(run, errs) : ok;
}
