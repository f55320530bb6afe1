/* ranks_limit.c - waits for other ranks that do not last for ever: see ranks.h.
 *
 * What of MPI blocks (to join, to leave) is given up by a thread that counts the time. Who has come by then is seen
 * without MPI: each rank that joins holds a name, an abstract Unix socket, that others on its machine find taken.
 *
 * Time is what this process saw pass: while it is stopped, with all others perhaps, it counts as a moment. */
#include <pthread.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>
#include "base/plural.h"
#include "cli/ranks.h"

enum { TICK_NS = 5 * 1000 * 1000, MOMENT_NS = 100 * 1000 * 1000 };

int64_t gp_ranks_since(double *then)
{
    double now = gp_seconds();
    int64_t took = (int64_t)(1e9 * (now - *then));
    *then = now;
    return took < MOMENT_NS ? took : MOMENT_NS;
}

int64_t gp_ranks_rest(int64_t ns)
{
    double since = gp_seconds();
    nanosleep(&(struct timespec){ .tv_sec = ns / 1000000000, .tv_nsec = ns % 1000000000 }, NULL);
    return gp_ranks_since(&since);
}

const char *gp_ranks_names(const bool *is, char buf[200])
{
    int n = 0, many = 0;
    size_t used = 0;
    for (int r = 0; r < gp_ranks(); r++)
        many += is[r];
    used = (size_t)snprintf(buf, 200, "rank%s", gp_plural(many));
    for (int r = 0; r < gp_ranks() && used + 40 < 200; r++)
        if (is[r])
            used += (size_t)snprintf(buf + used, 200 - used, "%s %d", n++ ? "," : "", r);
    if (n < many)
        snprintf(buf + used, 200 - used, " and %d more", many - n);
    return buf;
}

const char *gp_ranks_time(int64_t ns, char buf[32])
{
    double s = (double)ns / 1e9;
    snprintf(buf, 32, s < 600 ? "%.3g s" : "%.0f s", s);
    return buf;
}

/* ---- who is here, without MPI ---------------------------------------- */

/* Does the environment of a process say that it is a rank? */
static bool is_rank(long pid)
{
    char path[40];
    snprintf(path, sizeof path, "/proc/%ld/environ", pid);
    FILE *f = fopen(path, "re");
    bool is = false;
    char *line = NULL;
    size_t cap = 0;
    while (f && !is && getdelim(&line, &cap, 0, f) > 0)
        is = !strncmp(line, "PMI_RANK=", 9);
    free(line);
    if (f)
        fclose(f);
    return is;
}

static long parent_of(long pid)
{
    char path[40];
    long parent = 1;
    snprintf(path, sizeof path, "/proc/%ld/stat", pid);
    FILE *f = fopen(path, "re");
    if (f && fscanf(f, "%*d (%*[^)]) %*c %ld", &parent) != 1)
        parent = 1;
    if (f)
        fclose(f);
    return parent;
}

/* What tells this launch from others on this machine: its name, or the process that started all ranks here, which is no
 * rank, as a shell around one would be. */
static void launch(char buf[80])
{
    const char *name = getenv("PMIX_NAMESPACE");
    long pid = (long)getppid();
    while (!name && pid > 1 && is_rank(pid))
        pid = parent_of(pid);
    if (name)
        snprintf(buf, 80, "%.70s", name);
    else
        snprintf(buf, 80, "%ld", pid);
}

/* Binds a socket to a name, which nobody else has as long as this process lives. False: somebody has it. */
static bool take_name(const char *of, bool keep)
{
    char job[80];
    struct sockaddr_un at = { .sun_family = AF_UNIX };
    launch(job);
    int n = snprintf(at.sun_path + 1, sizeof at.sun_path - 1, "gpipe-%ld-%s-%s", (long)geteuid(), job, of);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    socklen_t size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)n);
    bool taken = fd >= 0 && !bind(fd, (struct sockaddr *)&at, size);
    if (fd >= 0 && !(taken && keep))
        close(fd);
    return taken;
}

static bool take_rank(int r, bool keep)
{
    char name[24];
    snprintf(name, sizeof name, "%d", r);
    return take_name(name, keep);
}

void gp_ranks_come(void)
{
    take_rank(gp_rank(), true);
}

/* How many ranks the launcher started on this machine; 0: it does not say. */
static int started_here(void)
{
    static const char *const sizes[] = { "OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS", "MV2_COMM_WORLD_LOCAL_SIZE" };
    const char *n = NULL;
    for (size_t i = 0; !n && i < sizeof sizes / sizeof *sizes; i++)
        n = getenv(sizes[i]);
    return n ? atoi(n) : 0;
}

/* ---- the thread ------------------------------------------------------ */

static struct {
    pthread_mutex_t lock;              /* of all of it; who gives up keeps it */
    bool runs;                         /* the thread */
    int64_t ns, left;                  /* left 0: there is no limit */
    const char *doing;                 /* NULL: to join */
    int status;                        /* with which it ends then; 0: that of a stall, which it says */
} limit = { .lock = PTHREAD_MUTEX_INITIALIZER };

static void not_joined(gp_errs *errs)
{
    bool *here = gp_ranks_room((size_t)gp_ranks(), sizeof *here);
    char names[200], time[32];
    int n = 0, all = started_here();
    for (int r = 0; r < gp_ranks(); r++)
        n += here[r] = r == gp_rank() || !take_rank(r, false);
    gp_ranks_time(limit.ns, time);
    if (all == gp_ranks() && n < all) {
        for (int r = 0; r < all; r++)
            here[r] = !here[r];
        gp_fail(errs, GP_E_STALL, (gp_loc){ 0 }, "waited %s for %s to start", time, gp_ranks_names(here, names));
    } else if (all && n < all) {
        gp_fail(errs, GP_E_STALL, (gp_loc){ 0 }, "waited %s for all %d ranks to start: of %d on this machine %s came",
                time, gp_ranks(), all, gp_ranks_names(here, names));
    } else {
        gp_fail(errs, GP_E_STALL, (gp_loc){ 0 }, "waited %s for all %d ranks to start: on this machine %s came", time,
                gp_ranks(), gp_ranks_names(here, names));
    }
    free(here);
    gp_fail(errs, GP_E_NOTE, (gp_loc){ 0 }, "'--join-timeout' says how long to wait");
}

/* One on this machine says it, and stays a moment, so that no other does; they give it time to. */
static void give_up(void)
{
    gp_errs errs = { .n = 0 };
    char time[32];
    if (limit.status)
        _exit(limit.status);
    if (limit.doing)
        gp_fail(&errs, GP_E_STALL, (gp_loc){ 0 }, "waited %s for other ranks %s", gp_ranks_time(limit.ns, time),
                limit.doing);
    else if (take_name("late", true))
        not_joined(&errs);
    gp_ranks_speak();
    if (errs.n)
        gp_print_errs(&(gp_args){ .quiet = true }, NULL, &errs), gp_say_last();
    sleep(errs.n ? 1 : 2);
    _exit(gp_errs_exit(&(gp_errs){ .n = 1, .failed = 1, .e = { { .code = GP_E_STALL } } }));
}

/* It ends when there is no limit. */
static void *count(void *arg)
{
    bool runs = true;
    for (double since = gp_seconds(); runs;) {
        gp_ranks_rest(TICK_NS);
        pthread_mutex_lock(&limit.lock);
        int64_t took = gp_ranks_since(&since);
        if (limit.left > 0 && (limit.left -= took) <= 0)
            give_up();
        runs = limit.runs = limit.left > 0;
        pthread_mutex_unlock(&limit.lock);
    }
    return arg;
}

void gp_ranks_limit(int64_t ns, const char *doing, int status)
{
    pthread_t thread;
    pthread_mutex_lock(&limit.lock);
    limit.ns = limit.left = ns, limit.doing = doing, limit.status = status;
    if (!limit.runs && ns && !pthread_create(&thread, NULL, count, NULL))      /* without it nothing ends waits */
        limit.runs = !pthread_detach(thread);
    pthread_mutex_unlock(&limit.lock);
}
