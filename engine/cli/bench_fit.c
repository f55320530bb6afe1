/* bench_fit.c - gpipe bench: what has to be changed in a pipeline so that it
 * can be measured.
 *
 * A source that ends is told to go on, where its kind can do that and nothing
 * depends on where it ends. Nothing that bench runs is written where the file
 * says: outputs go to a new folder on the same disk, which is removed. */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base/outfile.h"
#include "base/path.h"
#include "base/why.h"
#include "cli/bench.h"

/* Nothing that is written to these is kept. */
static bool to_null(const char *path)
{
    return !strcmp(path, "stdout") || gp_path_is_device(path);
}

/* Does this sink keep its frames in files? */
static bool keeps(const gp_stage_info *s)
{
    return s->writes && !to_null(s->writes);
}

/* ---- sources --------------------------------------------------------- */

static bool all_endless(const gp_pipeline *p)
{
    gp_stage_info s;
    for (int i = 0; gp_pipeline_stage(p, i, &s); i++)
        if (!s.nin && !s.endless)
            return false;
    return true;
}

/* Can the sources go on, without a sink that sees another end than before? Two sources
 * that agree for a while need not agree for ever, so that nothing may join several. */
static bool may_go_on(const gp_pipeline *p)
{
    int sources = 0;
    bool joined = false;
    gp_stage_info s;
    for (int i = 0; gp_pipeline_stage(p, i, &s); i++) {
        if (!s.nout && !s.any_length)
            return false;
        sources += !s.nin;
        joined |= !s.nout && s.nin > 1;
    }
    return sources == 1 || !joined;
}

/* `args` with sources that go on; *ok says whether they do. */
static gp_args go_on(gp_bench *b, const gp_row *r, const gp_args *args, const gp_pipeline *p,
                     bool *ok)
{
    gp_args more = *args;
    gp_loaded l;
    gp_errs ignored = { 0 };
    gp_stage_info s;
    for (int i = 0; gp_pipeline_stage(p, i, &s); i++) {
        if (s.nin || s.endless)
            continue;
        if (gp_kind_opt(s.kind, "loop", GP_OPT_BOOL))
            more = gp_bench_set(b, &more, gp_format(&b->arena, "stages.%s.loop=true", s.name));
        if (gp_kind_opt(s.kind, "frames", GP_OPT_INT))
            more = gp_bench_set(b, &more, gp_format(&b->arena, "stages.%s.frames=0", s.name));
    }
    *ok = gp_load(&l, r->file, &more, b->registry, &ignored) && all_endless(l.pipeline);
    gp_unload(&l);
    return *ok ? more : *args;
}

/* What cannot be measured at all. */
static bool check(const gp_row *r, const gp_pipeline *p, bool whole, gp_errs *errs)
{
    gp_near near = GP_NEAR(r->cached);
    bool found = !r->cached;
    gp_stage_info s;
    for (int i = 0; gp_pipeline_stage(p, i, &s); i++) {
        if (s.once)
            return gp_fail(errs, GP_E_USAGE, s.at, "what '%s' reads can be read once, and a "
                           "measurement takes several runs; name a file", s.name);
        if (keeps(&s) && s.endless)
            return gp_fail(errs, GP_E_USAGE, s.at, "'%s' would fill the disk, since its source "
                           "never ends; end it, as in --set stages.NAME.frames=1000", s.name);
        if (!s.nout)
            continue;
        gp_near_try(&near, s.name);
        if (r->cached && !strcmp(s.name, r->cached)) {
            found = true;
            if (whole && !s.nin)
                return gp_fail(errs, GP_E_USAGE, s.at, "a cached source never ends, and this "
                               "pipeline is measured by whole runs; cache another stage than "
                               "'%s'", s.name);
        }
    }
    return found || gp_usage(errs, "--cached: no stage with an output is named '%s'%s", r->cached, gp_near_text(&near));
}

/* ---- outputs --------------------------------------------------------- */

/* The part of `path` that is there already, in a new string; *rest is what follows. */
static char *existing(const char *path, const char **rest)
{
    size_t n = strcspn(path, "%");
    struct stat st;
    char *head = strdup(path);
    for (; head; n--) {
        while (n && path[n - 1] != '/')
            n--;
        head[n] = '\0';
        if (!n || (!stat(head, &st) && S_ISDIR(st.st_mode)))
            break;
    }
    *rest = path + n;
    return head;
}

/* A new folder next to where `path` is; its name, with the rest of the path, is for
 * --set. NULL after an error. */
static const char *elsewhere(gp_bench *b, gp_fit *f, gp_loc at, const char *path,
                             gp_errs *errs)
{
    const char *rest;
    char *head = existing(path, &rest), real[PATH_MAX] = "";
    char *folder = NULL;
    int fd;
    if (head && realpath(*head ? head : ".", real)) {
        gp_remove_stale(real, NULL);
        folder = gp_temporary_folder(real, "bench", &fd);
    }
    free(head);
    if (!folder)
        return GP_NULL(gp_fail(errs, GP_E_RUN, at, "no temporary folder can be made next to '%s', in '%s': %s", path,
                               real, gp_strerror(errno)));
    *GP_PUSH(&b->arena, f->folder, f->nfolders, f->cap) = (gp_bench_folder){ folder, fd };
    char *text = GP_NEW(&b->arena, char, 2 * (strlen(folder) + strlen(rest)) + 2), *to = text;
    const char *part[] = { folder, "/", rest };
    for (int k = 0; k < 3; k++)
        for (const char *p = part[k]; *p; p++) {
            if (*p == '$')
                *to++ = '$';
            *to++ = *p;
        }
    return text;
}

void gp_bench_unfit(gp_fit *f)
{
    for (int i = 0; i < f->nfolders; i++) {
        gp_remove_tree(f->folder[i].path);
        close(f->folder[i].fd);
        free(f->folder[i].path);
    }
    f->nfolders = 0;
}

/* ---- both ------------------------------------------------------------ */

bool gp_bench_fit(gp_bench *b, const gp_row *r, const gp_loaded *l, gp_fit *out, gp_errs *errs)
{
    const gp_pipeline *p = l->pipeline;
    bool endless = all_endless(p);
    gp_stage_info s;
    *out = (gp_fit){ .args = gp_bench_set(b, &r->args, "resume=") };   /* what a run has noted is not for these */
    if (!endless && may_go_on(p))
        out->args = go_on(b, r, &out->args, p, &endless);
    out->whole = !endless;
    if (!check(r, p, out->whole, errs))
        return false;
    for (int i = 0; gp_pipeline_stage(p, i, &s); i++) {
        if (!keeps(&s))
            continue;
        const char *to = elsewhere(b, out, s.at, s.writes, errs);
        if (!to)
            return false;
        out->args = gp_bench_set(b, &out->args, gp_format(&b->arena, "stages.%s.%s=%s", s.name,
                                                          s.writes_opt, to));
    }
    return true;
}
