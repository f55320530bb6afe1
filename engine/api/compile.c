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
#include "base/table.h"
#include "compile/inside.h"
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
    *probe = (gp_probe){ .arena = a, .look = gp_probe_look, .read = gp_probe_read, .size = gp_probe_size_of,
                         .lenient = config->lenient, .most = config->lenient || config->bounded ? CHECKED : 0 };
    p->text = gp_strndup(a, text, len), p->len = len;
    if (!(p->spec = gp_parse(a, text, len, file, errs)))
        return false;
    const gp_recorded *r = p->recorded = gp_recorded_begin(a, p->spec, config, probe, errs);
    if (!r || !gp_expand(a, p->spec, r->set, r->nset, config->registry, &r->env, probe, errs))
        return false;
    if (config->machine)
        *m = *config->machine;
    else
        gp_machine_read(m, may_use_gpu(p->spec->root, config->registry));
    share(m, config->env.local_ranks);
    return (p->graph = gp_resolve(a, p->spec, config->registry, &r->env, m,
                                        probe, errs))
        && (plan = gp_lower(a, p->graph, m, errs))
        && (p->plan = gp_schedule(a, plan, m, errs))
        && gp_verify(p->plan, m, errs) && gp_endpoints_make(p);
}

/* A name that stays: of a file that is included, whose errors outlive the pipeline. There are as many as files. */
static const char *kept(const char *file)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    static gp_table names;
    pthread_mutex_lock(&lock);
    gp_entry *e = gp_table_find(&names, file);
    char *own = e ? NULL : strdup(file);
    if (own && !(e = gp_table_put(&names, own, 0)))
        free(own);
    const char *name = e ? e->name : NULL;
    pthread_mutex_unlock(&lock);
    return name;
}

/* Is it the name of a file that the spec includes? */
static bool is_included(const gp_spec *spec, const char *file)
{
    for (const gp_inside *in = spec ? spec->insides : NULL; in; in = in->next)
        if (in->path == file || in->file == file)
            return true;
    return false;
}

void gp_errs_free_places(gp_errs *errs, int from, const char *file, const gp_spec *spec, const gp_config *config)
{
    for (int i = from; i < errs->n; i++) {
        gp_err *e = &errs->e[i];
        bool lasting = !e->at.file || e->at.file == file;
        for (int k = 0; k < config->nset; k++)
            lasting |= e->at.file == config->set[k];
        const char *name = !lasting && is_included(spec, e->at.file) ? kept(e->at.file) : NULL;
        if (name)
            e->at.file = name;
        if (lasting || name)
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
    bool ok = p->stop_fd >= 0 || gp_fail(errs, GP_E_RESOURCE, nowhere, "no eventfd: %s", gp_strerror(errno));
    ok = ok && guarded_passes(p, text, len, file, config, errs);
    if (p->spec)
        gp_spec_places(p->spec, errs);
    if (ok)
        return p;
    gp_errs_free_places(errs, before, file, p->spec, config);
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
