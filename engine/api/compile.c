/* compile.c - text -> plan: the list of passes, and the pipeline that holds what
 * they make.
 *
 * All memory of a compilation is in the pipeline's arena. Running out of it
 * is an error, never a crash. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>
#include "api/forms.h"
#include "base/clock.h"
#include "base/c_locale.h"
#include "base/filetable.h"
#include "device/machine.h"
#include "run/pipeline.h"

enum { CHECKED = 100 * 1000 };         /* names that are looked at for all patterns */

/* The driver takes a while to start, so devices are looked for only when the pipeline
 * may use one: `device` says so, or leaves it open and there is a kind that has code for
 * a device. */
static bool may_use_gpu(const gp_node *root, const gp_registry *registry)
{
    const gp_node *device = gp_node_get(root, "device"), *stages = gp_node_get(root, "stages");
    const char *says = device ? device->text : "auto";
    bool found = false;
    for (int i = 0; stages && stages->kind == GP_LIST && i < stages->n && !found; i++) {
        const gp_node *use = gp_node_get(stages->item[i], "use");
        const gp_kind *kind = use ? gp_kind_find(registry, use->text) : NULL;
        found = kind && kind->record && !kind->collective;        /* it runs there behind others alone */
    }
    return !strncmp(says, "cuda", 4) || (strcmp(says, "cpu") && found);
}

/* Ranks of one machine share its memory. */
static void share(gp_machine *m, int ranks)
{
    if (ranks < 2)
        return;
    m->memory /= (size_t)ranks, m->pin_limit /= (size_t)ranks, m->sharers = ranks;
}

static bool passes(gp_pipeline *p, gp_machine *m, const char *text, size_t len, const char *file,
                   const gp_config *config, gp_errs *errs)
{
    gp_arena *a = &p->arena;
    gp_probe *probe = p->probe = GP_NEW(a, gp_probe, 1);
    gp_plan *plan;
    bool ok = true;
    *probe = (gp_probe){ .arena = a, .look = gp_probe_look, .read = gp_probe_read, .size = gp_probe_size_of,
                         .lenient = config->lenient, .most = config->lenient || config->bounded ? CHECKED : 0 };
    p->text = gp_strndup(a, text, len), p->len = len;
    if (!(p->spec = gp_parse(a, text, len, file, errs)))
        return false;
    for (int i = 0; i < config->nset; i++)
        ok &= gp_spec_set(a, p->spec, config->set[i], config->registry, errs);
    if (!ok)
        return false;
    if (config->machine)
        *m = *config->machine;
    else
        gp_machine_read(m, may_use_gpu(p->spec->root, config->registry));
    share(m, config->env.local_ranks);
    return (p->graph = gp_resolve(a, p->spec, config->registry, &config->env, m,
                                        probe, errs))
        && (plan = gp_lower(a, p->graph, m, errs))
        && (p->plan = gp_schedule(a, plan, m, errs))
        && gp_verify(p->plan, m, errs) && gp_endpoints_make(p);
}

void gp_errs_free_places(gp_errs *errs, int from, const char *file, const gp_config *config)
{
    for (int i = from; i < errs->n; i++) {
        gp_err *e = &errs->e[i];
        bool lasting = !e->at.file || e->at.file == file;
        for (int k = 0; k < config->nset; k++)
            lasting |= e->at.file == config->set[k];
        if (lasting)
            continue;
        gp_errs one = { .n = 0 };      /* gp_fail keeps both ends of a long message */
        gp_fail_(&one, e->code, (gp_loc){ .file = file }, e->c_file, e->c_line, "%.200s:%d: %s",
                 e->at.file, e->at.line, e->msg);
        *e = one.e[0];
    }
}

static bool guarded_passes(gp_pipeline *p, const char *text, size_t len, const char *file,
                           const gp_config *config, gp_errs *errs)
{
    jmp_buf oom;
    gp_machine *const m = calloc(1, sizeof *m);        /* large, for a stack, and for pipelines that stay */
    bool ok = false;
    p->arena.oom = &oom;
    if (!m || setjmp(oom))
        gp_fail(errs, GP_E_RESOURCE, (gp_loc){ .file = file }, "out of memory");
    else if ((ok = passes(p, m, text, len, file, config, errs)))
        p->cpus = m->cpus;
    p->arena.oom = NULL;
    free(m);
    return ok;
}

gp_pipeline *gp_compile(const char *text, size_t len, const char *file,
                        const gp_config *config, gp_errs *errs)
{
    GP_C_LOCALE;
    if (!file)
        file = "pipeline";
    if (!text)
        text = "", len = 0;
    gp_loc nowhere = { .file = file };
    if (!config || !config->registry)
        return GP_NULL(gp_fail(errs, GP_E_USAGE, nowhere, "gp_config has no registry: gp_registry_create() and "
                               "gp_register_builtin() make one"));
    int before = errs->n;
    gp_pipeline *p = calloc(1, sizeof *p);
    if (!p)
        return GP_NULL(gp_fail(errs, GP_E_RESOURCE, nowhere, "out of memory"));
    pthread_rwlockattr_t attr;         /* who looks all the time does not keep a run from starting */
    pthread_rwlockattr_init(&attr);
    pthread_rwlockattr_setkind_np(&attr, PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP);
    pthread_rwlock_init(&p->run_lock, &attr);
    pthread_rwlockattr_destroy(&attr);
    pthread_mutex_init(&p->taps.lock, NULL);
    gp_cond_init(&p->taps.changed);
    p->stop_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (p->stop_fd < 0)
        gp_fail(errs, GP_E_RESOURCE, nowhere, "no eventfd: %s", gp_strerror(errno));
    else if (guarded_passes(p, text, len, file, config, errs))
        return p;
    gp_errs_free_places(errs, before, file, config);
    gp_pipeline_destroy(p);
    return NULL;
}

void gp_pipeline_destroy(gp_pipeline *p)
{
    GP_C_LOCALE;
    if (!p || p->stuck)
        return;
    if (p->started)
        gp_cancel(p, 2);
    if ((p->started && gp_pipeline_wait(p) == GP_STUCK) || atomic_load(&p->running))
        return;                        /* threads use it still */
    gp_pipeline_drop_paused(p, &(gp_errs){ .n = 0 });
    gp_pipeline_drop_prepared(p);
    gp_run_destroy(p->run);
    free(p->again);
    gp_endpoints_free(p);
    pthread_rwlock_destroy(&p->run_lock);
    pthread_mutex_destroy(&p->taps.lock);
    pthread_cond_destroy(&p->taps.changed);
    if (p->stop_fd >= 0)
        close(p->stop_fd);
    gp_filetable_free(p->files);
    gp_arena_free(&p->arena);
    free(p);
}

void gp_cancel(gp_pipeline *p, int level)
{
    int now = atomic_load(&p->cancel), kept = errno;
    uint64_t one = 1;
    atomic_fetch_add(&p->cancelling, 1);
    while (now < level && !atomic_compare_exchange_weak(&p->cancel, &now, level))
        ;
    ssize_t told = level > 0 ? write(p->stop_fd, &one, sizeof one) : 0;
    (void)told;                        /* it is readable already when its counter is full */
    struct gp_filetable *files = level > 2 ? atomic_load(&p->files) : NULL;
    if (files)
        gp_filetable_abandon(files);
    atomic_fetch_sub(&p->cancelling, 1);
    errno = kept;
}
