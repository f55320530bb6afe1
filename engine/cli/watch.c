/* watch.c - when is a file saved? By inotify on its folder, so that one that is put in its place by rename, as editors
 * do, is seen too. */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <unistd.h>
#include "base/why.h"
#include "cli/retune.h"

typedef struct saved { int folder; char *name; } saved;

struct gp_watched { int fd; saved *file; int n, cap; };

gp_watched *gp_watch_new(gp_errs *errs)
{
    gp_watched *w = calloc(1, sizeof *w);
    if (w && (w->fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK)) >= 0)
        return w;
    gp_fail(errs, GP_E_RESOURCE, (gp_loc){ 0 }, "--watch: no inotify: %s", gp_strerror(w ? errno : ENOMEM));
    free(w);
    return NULL;
}

static void add(gp_watched *w, const char *path)
{
    const uint32_t events = IN_CLOSE_WRITE | IN_MOVED_TO | IN_MOVED_FROM | IN_DELETE | IN_CREATE | IN_ONLYDIR;
    const char *slash = strrchr(path, '/');
    char *folder = slash ? strndup(path, (size_t)(slash - path) + 1) : strdup("."), *name = strdup(slash ? slash + 1 : path);
    int wd = folder && name ? inotify_add_watch(w->fd, folder, events) : -1;
    bool known = wd < 0;
    for (int i = 0; !known && i < w->n; i++)
        known = w->file[i].folder == wd && !strcmp(w->file[i].name, name);
    if (!known && GP_ROOM(w->file, w->n, w->cap))
        w->file[w->n++] = (saved){ wd, name }, name = NULL;
    free(folder), free(name);
}

/* Those that it had before stay: the run may go back to them. */
void gp_watch_files(gp_watched *w, const gp_pipeline *p)
{
    const char *path;
    char real[PATH_MAX];
    for (int i = 0; (path = gp_pipeline_made_of(p, i)); i++) {
        add(w, path);
        if (realpath(path, real))      /* where a symbolic link leads */
            add(w, real);
    }
}

int gp_watch_fd(const gp_watched *w)
{
    return w ? w->fd : -1;
}

bool gp_watch_read(gp_watched *w)
{
    _Alignas(struct inotify_event) char some[4096];
    bool ours = false;
    for (ssize_t n; (n = read(w->fd, some, sizeof some)) > 0;)
        for (char *at = some; at < some + n;) {
            const struct inotify_event *e = (const struct inotify_event *)at;
            ours |= e->mask & IN_Q_OVERFLOW;
            for (int i = 0; i < w->n; i++)
                ours |= e->len && e->wd == w->file[i].folder && !strcmp(e->name, w->file[i].name);
            at += sizeof *e + e->len;
        }
    return ours;
}

void gp_watch_free(gp_watched *w)
{
    if (!w)
        return;
    for (int i = 0; i < w->n; i++)
        free(w->file[i].name);
    close(w->fd);
    free(w->file);
    free(w);
}
