/* join.c - starts MPI where a launcher started several processes, joins the ranks, and leaves them: see ranks.h.
 *
 * What of MPI blocks (to join, to leave) is given up by a thread that counts the time. Who has come by then is seen
 * without MPI: each rank that joins holds a name, an abstract Unix socket, that others on its machine find taken.
 *
 * Time is what this process saw pass: while it is stopped, with all others perhaps, it counts as a moment. */
#include <limits.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>
#include "base/dl.h"
#include "base/plural.h"
#include "base/thread.h"
#include "ranks/inside.h"

/* ---- time, names ----------------------------------------------------- */

enum { TICK_NS = 5 * 1000 * 1000, MOMENT_NS = 100 * 1000 * 1000 };

int64_t gp_ranks_since(double *then)
{
    double now = now_s();
    int64_t took = (int64_t)(1e9 * (now - *then));
    *then = now;
    return took < MOMENT_NS ? took : MOMENT_NS;
}

int64_t gp_ranks_rest(int64_t ns)
{
    double since = now_s();
    nanosleep(&(struct timespec){ .tv_sec = ns / 1000000000, .tv_nsec = ns % 1000000000 }, NULL);
    return gp_ranks_since(&since);
}

const char *gp_ranks_names(gp_ranks *us, const bool *is, char buf[200])
{
    int n = 0, many = 0;
    size_t used = 0;
    for (int r = 0; r < us->n; r++)
        many += is[r];
    used = (size_t)snprintf(buf, 200, "rank%s", gp_plural(many));
    for (int r = 0; r < us->n && used + 40 < 200; r++)
        if (is[r])
            used += (size_t)snprintf(buf + used, 200 - used, "%s %d", n++ ? "," : "", r);
    if (n < many)
        snprintf(buf + used, 200 - used, " and %d more", many - n);
    return buf;
}

bool gp_ranks_waited(int64_t ns, const char *key, const char *whom, gp_errs *errs)
{
    double s = 1e-9 * (double)ns;
    gp_fail(errs, GP_E_STALL, (gp_loc){ 0 }, s < 600 ? "waited %.3g s for %s" : "waited %.0f s for %s", s, whom);
    gp_fail(errs, GP_E_NOTE, (gp_loc){ 0 }, "'%s' says how long to wait", key);
    return false;
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

/* Binds a socket to the name of rank r (-1: of the one that says who is late), which nobody else has as long as this
 * process lives. False: somebody has it. */
static bool take_name(int r, bool keep)
{
    char job[80];
    struct sockaddr_un at = { .sun_family = AF_UNIX };
    launch(job);
    int n = snprintf(at.sun_path + 1, sizeof at.sun_path - 1, "gpipe-%ld-%s-%d", (long)geteuid(), job, r);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    socklen_t size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)n);
    bool taken = fd >= 0 && !bind(fd, (struct sockaddr *)&at, size);
    if (fd >= 0 && !(taken && keep))
        close(fd);
    return taken;
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

/* Whom it waits for that has not come. */
static void not_joined(gp_ranks *us, char whom[300])
{
    bool *here = gp_ranks_room(us, (size_t)us->n, sizeof *here);
    char names[200];
    int n = 0, all = started_here();
    for (int r = 0; r < us->n; r++)
        n += here[r] = r == us->rank || !take_name(r, false);
    bool sees_all = all == us->n && n < all;
    for (int r = 0; sees_all && r < all; r++)
        here[r] = !here[r];
    gp_ranks_names(us, here, names);
    if (sees_all)
        snprintf(whom, 300, "%s to start", names);
    else if (all && n < all)
        snprintf(whom, 300, "all %d ranks to start: of %d on this machine %s came", us->n, all, names);
    else
        snprintf(whom, 300, "all %d ranks to start: on this machine %s came", us->n, names);
    free(here);
}

/* One on this machine says who did not come, and stays a moment, so that no other does; they give it time to. */
static void give_up(gp_ranks *us)
{
    gp_errs errs = { .n = 0 };
    char whom[300];
    bool says = us->limit.doing || take_name(-1, true);
    if (us->limit.status)
        _exit(us->limit.status);
    if (us->limit.doing)
        snprintf(whom, sizeof whom, "other ranks %s", us->limit.doing);
    else if (says)
        not_joined(us, whom);
    us->speaker.all = true;
    if (says && !gp_ranks_waited(us->limit.ns, "--join-timeout", whom, &errs))
        us->host->say(us, &errs), us->host->flush();
    sleep(says ? 1 : 2);
    _exit(gp_errs_exit(&(gp_errs){ .n = 1, .failed = 1, .e = { { .code = GP_E_STALL } } }));
}

/* It ends when there is no limit. */
static void *count(void *arg)
{
    gp_ranks *us = arg;
    bool runs = true;
    for (double since = now_s(); runs;) {
        gp_ranks_rest(TICK_NS);
        pthread_mutex_lock(&us->limit.lock);
        int64_t took = gp_ranks_since(&since);
        if (us->limit.left > 0 && (us->limit.left -= took) <= 0)
            give_up(us);
        runs = us->limit.runs = us->limit.left > 0;
        pthread_mutex_unlock(&us->limit.lock);
    }
    return arg;
}

void gp_ranks_limit(gp_ranks *us, int64_t ns, const char *doing, int status)
{
    pthread_t thread;
    pthread_mutex_lock(&us->limit.lock);
    us->limit.ns = us->limit.left = ns, us->limit.doing = doing, us->limit.status = status;
    if (!us->limit.runs && ns && !gp_thread_start(&thread, count, us))      /* without it nothing ends waits */
        us->limit.runs = !pthread_detach(thread);
    pthread_mutex_unlock(&us->limit.lock);
}

/* ---- MPI ------------------------------------------------------------- */

#define JOIN_NS (5 * 60 * INT64_C(1000000000))

/* How many processes a launcher has started, as the environment says; 1: there is none. In a job of Slurm, too, what
 * was not started by srun has no rank. */
static int launched(void)
{
    static const char *const sizes[] = { "OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "MV2_COMM_WORLD_SIZE" },
                      *const slurm[] = { "SLURM_STEP_NUM_TASKS", "SLURM_NTASKS" };
    const char *n = NULL;
    for (size_t i = 0; !n && i < sizeof sizes / sizeof *sizes; i++)
        n = getenv(sizes[i]);
    for (size_t i = 0; !n && (getenv("PMIX_RANK") || getenv("PMI_RANK")) && i < sizeof slurm / sizeof *slurm; i++)
        n = getenv(slurm[i]);
    return n && atoi(n) > 1 ? atoi(n) : 1;
}

/* How many tasks srun started that cannot find each other, since it speaks no protocol of MPI; 1: it did not. */
static int only_slurm(void)
{
    const char *n = getenv("SLURM_PROCID") && launched() == 1 ? getenv("SLURM_STEP_NUM_TASKS") : NULL;
    return n && atoi(n) > 1 ? atoi(n) : 1;
}

static int launched_rank(void)
{
    static const char *const ranks[] = { "OMPI_COMM_WORLD_RANK", "PMI_RANK", "MV2_COMM_WORLD_RANK", "PMIX_RANK",
                                        "SLURM_PROCID" };
    const char *r = NULL;
    for (size_t i = 0; !r && i < sizeof ranks / sizeof *ranks; i++)
        r = getenv(ranks[i]);
    return r ? atoi(r) : 0;
}

gp_ranks *gp_ranks_open(const gp_ranks_host *host)
{
    static gp_ranks the_process;       /* is one of them until it ends */
    gp_ranks *us = &the_process;
    us->n = 1, us->host = host, us->run.first = -1;
    pthread_mutex_init(&us->limit.lock, NULL), pthread_mutex_init(&us->calls, NULL);
    pthread_mutex_init(&us->told.lock, NULL), pthread_mutex_init(&us->votes.lock, NULL);
    return us;
}

int gp_rank(const gp_ranks *us)
{
    return us->rank;
}

int gp_ranks_n(const gp_ranks *us)
{
    return us->n;
}

int gp_local_rank(const gp_ranks *us)
{
    return us->local_rank;
}

int gp_local_ranks(const gp_ranks *us)
{
    return us->local_n;
}

/* The shim lies beside the command, or is installed in lib/gpipe. */
static const gp_mpi *open_shim(int ranks, gp_errs *errs)
{
    static char beside[PATH_MAX + 32], installed[PATH_MAX + 32];
    const gp_mpi *mpi = NULL;
    const char *named = getenv("GPIPE_MPI");
    char self[PATH_MAX], what[80];
    ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
    self[n > 0 ? n : 0] = 0;
    char *end = strrchr(self, '/');
    if (end)
        *end = 0;
    snprintf(beside, sizeof beside, "%s/gpipe-mpi.so", self);
    snprintf(installed, sizeof installed, "%s/../lib/gpipe/gpipe-mpi.so", self);
    const char *const library[] = { named && *named ? named : beside, named && *named ? NULL : installed, NULL };
    const gp_dl_symbol symbol[] = { { "gp_mpi_table", &mpi }, { 0 } };
    snprintf(what, sizeof what, "a run of %d ranks", ranks);
    if (!gp_dl_open(library, symbol, what, "'make' builds it with the mpicc of the MPI whose launcher is used "
                    "(make MPICC=mpicc.openmpi), and GPIPE_MPI names it where it is elsewhere", (gp_loc){ 0 }, errs))
        return NULL;
    if (mpi->size == (int)sizeof *mpi)
        return mpi;
    gp_fail(errs, GP_E_RESOURCE, (gp_loc){ 0 }, "%s is of another gpipe: build it anew", library[0]);
    return NULL;
}

bool gp_ranks_is_another(void)
{
    return (launched() > 1 || only_slurm() > 1) && launched_rank() > 0;
}

/* Opens MPI and starts it; false with an error, which the first says. */
static bool start(gp_ranks *us, int ranks, gp_errs *errs)
{
    int rank = 0, there = 1;
    const gp_mpi *mpi = open_shim(ranks, errs);
    if (!mpi)
        return false;
    take_name(us->rank, true);
    gp_ranks_limit(us, us->join_ns, NULL, 0);
    const char *why = mpi->start(&rank, &there, &us->local_rank);
    gp_ranks_limit(us, 0, NULL, 0);
    if (why)
        return gp_fail(errs, GP_E_RESOURCE, (gp_loc){ 0 }, "MPI (%s) cannot be started: %s", mpi->library(), why);
    us->mpi = mpi, us->local_n = mpi->local_ranks();
    if (there != ranks)
        return gp_fail(errs, GP_E_RESOURCE, (gp_loc){ 0 }, "the launcher started %d ranks, and MPI (%s) knows of %d: "
                       "it is the launcher of another MPI; use the mpirun of %s, or build gpipe-mpi.so with the mpicc "
                       "of that launcher's MPI, or name the right one in GPIPE_MPI", ranks, mpi->library(), there,
                       mpi->library());
    us->rank = rank;
    us->heard = gp_ranks_room(us, (size_t)ranks, sizeof *us->heard);
    us->lost = gp_ranks_room(us, (size_t)ranks, sizeof *us->lost);
    us->wait_ns = us->join_ns, us->wait_what = "to compile the pipeline", us->wait_key = "--join-timeout";
    return true;
}

bool gp_ranks_join(gp_ranks *us, gp_ranks_do what, bool reads_stdin, int64_t join_ns, bool ok, gp_errs *errs)
{
    int ranks = launched(), tasks = what == GP_RANKS_NEVER ? 1 : only_slurm();
    if (ranks == 1 && tasks == 1)
        return ok;
    us->n = ranks * tasks, us->rank = launched_rank();         /* should it fail, the first says so */
    if (what == GP_RANKS_FIRST)
        return ok && !us->rank;
    us->join_ns = join_ns ? join_ns : JOIN_NS;
    if (ok && ranks == 1)
        return gp_fail(errs, GP_E_USAGE, (gp_loc){ 0 }, "srun started %d tasks that MPI cannot join: write srun "
                       "--mpi=pmix, or --mpi=pmi2 for MPICH (srun --mpi=list shows what it knows), or unset "
                       "SLURM_STEP_NUM_TASKS to run each by itself", us->n);
    if (ok && what == GP_RANKS_NEVER)
        ok = gp_fail(errs, GP_E_USAGE, (gp_loc){ 0 }, "a launcher started %d ranks, and only 'run', 'check' and 'plan' "
                     "have several: start this alone", ranks);
    else if (ok && reads_stdin)
        ok = gp_fail(errs, GP_E_USAGE, (gp_loc){ 0 }, "standard input is that of one of %d ranks: name the pipeline's "
                     "file", ranks);
    if (ok)
        return start(us, ranks, errs);
    gp_errs none = { .n = 0 };             /* other ranks may have another command line, and wait for this one */
    return ranks > 1 && start(us, ranks, &none) && gp_ranks_agree(us, &(gp_ranks_has){ .file = NULL }, false, errs);
}

/* Where some are lost, MPI would wait for them. */
void gp_ranks_leave(gp_ranks *us, int status)
{
    if (!us->heard && us->rank && status)            /* they have not met */
        sleep(1);                      /* the first says what it was: the launcher ends all when one has ended so */
    if (us->mpi)
        gp_ranks_limit(us, us->join_ns, "to end", status);
    status = gp_ranks_done(us, status);
    if (us->mpi && atomic_load(&us->apart)) {
        if (!gp_ranks_is_first(us))
            sleep(1);                  /* the launcher ends all when one has ended */
        fflush(stderr);
        _exit(status);
    }
    if (us->mpi) {
        if (us->heard)
            us->mpi->heard(us->heard);           /* what was called while this one was late */
        us->mpi->leave();
        gp_ranks_limit(us, 0, NULL, 0);
    }
    us->mpi = NULL;
}

void *gp_ranks_room(gp_ranks *us, size_t n, size_t size)
{
    void *p = calloc(n + 1, size);
    if (p)
        return p;
    fprintf(stderr, "gpipe: rank %d: out of memory\n", us->rank);
    _exit(gp_errs_exit(&(gp_errs){ .n = 1, .failed = 1, .e = { { .code = GP_E_RESOURCE } } }));
}

