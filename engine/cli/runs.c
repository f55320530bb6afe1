/* runs.c - which runs there are that 'gpipe top' could show: each has a socket, and is asked how it stands.
 *
 * Those of one mpirun are one run: rank 0 shows the whole. One that does not answer in time is listed all the same. */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "base/plain.h"
#include "cli/live.h"
#include "cli/verb.h"
#include "report/report.h"

enum { RUNS = 256, PIECE = 65536 };

typedef struct run {
    long pid;
    int fd;
    char *said; size_t n;              /* what came of its first line; whole, it ends with a line feed */
    gp_glance v;
    const char *pipeline;              /* NULL: it has not answered */
    bool left_out;
} run;

static bool has_said(const run *r)
{
    return r->n && *r->said == '{' && r->said[r->n - 1] == '\n';
}

/* What has come. False: no more will. */
static bool take(run *r)
{
    if (!gp_grow(&r->said, r->n + PIECE + 1, 1))
        return false;
    ssize_t n = read(r->fd, r->said + r->n, PIECE);
    if (n <= 0)
        return false;
    char *end = memchr(r->said + r->n, '\n', (size_t)n);
    r->n = end ? (size_t)(end + 1 - r->said) : r->n + (size_t)n;
    r->said[r->n] = 0;
    return !end;
}

static void ask(run *of, int n)
{
    struct pollfd p[RUNS];
    double until = gp_seconds() + 1e-3 * GP_SOCKET_WAIT_MS;
    for (int i = 0; i < n; i++)
        p[i] = (struct pollfd){ of[i].fd, POLLIN, 0 };
    int left = 0;
    for (int i = 0; i < n; i++)
        left += of[i].fd >= 0;
    while (left > 0) {
        int ms = (int)(1e3 * (until - gp_seconds()));
        if (ms <= 0 || poll(p, (nfds_t)n, ms) < 1)
            return;
        for (int i = 0; i < n; i++)
            if (p[i].revents && !take(&of[i]))
                p[i].fd = -1, p[i].revents = 0, left--;
    }
}

static int find(run *of, gp_arena *a)
{
    long pid[RUNS];
    int found = gp_socket_pids(pid, RUNS), n = 0;
    found = found < RUNS ? found : RUNS;
    gp_errs none = { .n = 0 };
    for (int i = 0; i < found; i++) {
        char name[24];
        snprintf(name, sizeof name, "%ld", pid[i]);
        int fd = gp_socket_connect(name, &none);
        if (fd >= 0 || errno == EAGAIN)            /* who does not answer is listed, too */
            of[n++] = (run){ .pid = pid[i], .fd = fd };
    }
    ask(of, n);
    for (int i = 0; i < n; i++) {
        run *r = &of[i];
        if (r->fd >= 0)
            close(r->fd);
        if (has_said(r) && gp_glance_read(&r->v, a, r->said))
            r->pipeline = r->v.pipeline;
        r->left_out = r->v.ended;
    }
    return n;
}

/* Is it another rank of what may be the same run? */
static bool is_beside(const run *r, const run *first)
{
    return r->pipeline && r->v.ranks == first->v.ranks && !strcmp(r->pipeline, first->pipeline);
}

/* Leaves out those that ended meanwhile, and ranks whose rank 0 is there, which shows the whole. */
static int leave_out(run *of, int n)
{
    int kept = 0;
    for (int i = 0; i < n; i++)
        for (int k = 0; k < n && !of[i].left_out && of[i].v.rank > 0; k++)
            of[i].left_out = of[k].pipeline && of[k].v.ranks > 1 && !of[k].v.rank && !of[k].left_out
                && is_beside(&of[i], &of[k]);
    for (int i = 0; i < n; i++)
        if (of[i].left_out)
            free(of[i].said), gp_glance_free(&of[i].v);
        else
            of[kept++] = of[i];
    return kept;
}

static int by_pid(const void *a, const void *b)
{
    const run *x = a, *y = b;
    return x->pid < y->pid ? -1 : x->pid > y->pid;
}

static void print_run(FILE *to, const run *r)
{
    char time[32], rate[32], text[48];
    fprintf(to, "  %8ld  ", r->pid);
    if (!r->pipeline) {
        fprintf(to, "%s\n", has_said(r) ? "has no room for one more who looks" : "does not answer");
        return;
    }
    snprintf(text, sizeof text, "%s frames/s", gp_amount_text(r->v.frames_s, "", rate));
    fprintf(to, "%-12s  %-18s  ", gp_duration_text(r->v.seconds, time), text);
    gp_put_plain(to, r->pipeline, strlen(r->pipeline), "");
    if (r->v.ranks > 1)
        fprintf(to, ", rank %d of %d", r->v.rank, r->v.ranks);
    fputc('\n', to);
}

/* One that has not answered may have it. */
static bool may_have(const run *r, const char *buffer)
{
    const gp_node *names = r->pipeline ? r->v.frames_of : NULL;
    for (int i = 0; names && i < names->n; i++)
        if (names->item[i]->text && !strcmp(names->item[i]->text, buffer))
            return true;
    return !names;
}

static const run *only_one(const run *of, int n, const char *buffer)
{
    const run *one = NULL;
    int found = 0;
    for (int i = 0; i < n; i++)
        if (n == 1 || (buffer && may_have(&of[i], buffer)))
            one = &of[i], found++;
    return found == 1 ? one : NULL;
}

bool gp_runs_choose(const gp_args *args, const char *buffer, FILE *to, char name[24], gp_errs *errs)
{
    static run of[RUNS];
    GP_ARENA(a);
    GP_IF_OOM(&a)
        return gp_no_memory(errs);
    int n = leave_out(of, find(of, &a));
    qsort(of, (size_t)n, sizeof *of, by_pid);
    const run *one = only_one(of, n, buffer);
    if (one)
        snprintf(name, 24, "%ld", one->pid);
    bool ok = one && (one->pipeline || has_said(one) || gp_socket_silent(name, errs));
    if (!n)
        gp_usage(errs, "no pipeline of yours runs here");
    else if (!one && !args->json)
        fprintf(to, "%d pipelines run; 'gpipe %s PID' shows one of them:\n", n, args->verb->name);
    for (int i = 0; i < n; i++) {
        if (!one && !args->json)
            print_run(to, &of[i]);
        else if (!one && of[i].pipeline)       /* with its process before the rest of the object */
            fprintf(to, "{\"pid\": %ld, %s", of[i].pid, of[i].said + 1);
        else if (!one)
            fprintf(to, "{\"pid\": %ld}\n", of[i].pid);
        free(of[i].said), gp_glance_free(&of[i].v);
    }
    return ok;
}
