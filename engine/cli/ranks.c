/* ranks.c - who the ranks are: what starts MPI, see ranks.h. */
#include <limits.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include "base/dl.h"
#include "cli/ranks.h"
#include "mpi/shim.h"

static struct { const gp_mpi *mpi; int rank, ranks, local_rank; } us = { .ranks = 1 };

int gp_rank(void)
{
    return us.rank;
}

int gp_ranks(void)
{
    return us.ranks;
}

int gp_local_rank(void)
{
    return us.local_rank;
}

/* How many processes a launcher has started, as the environment says; 1: there is none. In a job of Slurm, too, what was
 * not started by srun has no rank. */
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

/* The shim lies beside the command, or is installed in the folder of libraries. */
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
    snprintf(installed, sizeof installed, "%s/../lib/gpipe-mpi.so", self);
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

static bool may_have_ranks(const gp_args *args, gp_errs *errs)
{
    const char *alone = args->report ? "--report" : args->trace ? "--trace" : args->watch ? "--watch" : NULL;
    if (!(args->verb & (GP_VERB_RUN | GP_VERB_CHECK | GP_VERB_PLAN)))
        return gp_fail(errs, GP_E_USAGE, (gp_loc){ 0 }, "a launcher started %d ranks, and only 'run', 'check' and 'plan' "
                       "have several: start this alone", launched());
    if (alone)
        return gp_fail(errs, GP_E_USAGE, (gp_loc){ 0 }, "%s is of one process, and a launcher started %d", alone, launched());
    for (int i = 0; i < args->noperands; i++)
        if (!strcmp(args->operand[i], "-"))
            return gp_fail(errs, GP_E_USAGE, (gp_loc){ 0 }, "standard input is that of one of %d ranks: name the pipeline's "
                           "file", launched());
    return true;
}

bool gp_ranks_join(const gp_args *args, gp_errs *errs)
{
    int ranks = launched();
    const int compile = GP_VERB_RUN | GP_VERB_CHECK | GP_VERB_PLAN | GP_VERB_BENCH | GP_VERB_TUNE | GP_VERB_SIMULATE;
    if (args->verb & (GP_VERB_RUN | GP_VERB_CHECK | GP_VERB_PLAN) && only_slurm() > 1) {
        us.ranks = only_slurm(), us.rank = launched_rank();        /* the first says it */
        return gp_fail(errs, GP_E_USAGE, (gp_loc){ 0 }, "srun started %d tasks that MPI cannot join: write srun "
                       "--mpi=pmix (srun --mpi=list shows what it knows), or unset SLURM_STEP_NUM_TASKS to run each by "
                       "itself", us.ranks);
    }
    if (ranks == 1 || !(args->verb & compile))
        return true;
    us.ranks = ranks, us.rank = launched_rank();       /* should it fail, the first says so */
    const gp_mpi *mpi = may_have_ranks(args, errs) ? open_shim(ranks, errs) : NULL;
    if (!mpi)
        return false;
    int rank = 0, there = 1;
    const char *why = mpi->start(&rank, &there, &us.local_rank);
    if (why)
        return gp_fail(errs, GP_E_RESOURCE, (gp_loc){ 0 }, "MPI (%s) cannot be started: %s", mpi->library(), why);
    us.mpi = mpi;
    if (there != ranks)
        return gp_fail(errs, GP_E_RESOURCE, (gp_loc){ 0 }, "the launcher started %d ranks, and MPI (%s) knows of %d: it is "
                       "the launcher of another MPI; build gpipe-mpi.so with the mpicc of that, or name the right one in "
                       "GPIPE_MPI", ranks, mpi->library(), there);
    us.rank = rank;
    return true;
}

void gp_ranks_leave(void)
{
    if (us.mpi)
        us.mpi->leave();
    us.mpi = NULL;
}

void *gp_ranks_room(size_t n, size_t size)
{
    void *p = calloc(n + 1, size);
    if (p)
        return p;
    fprintf(stderr, "gpipe: rank %d: out of memory\n", gp_rank());
    _exit(gp_errs_exit(&(gp_errs){ .n = 1, .failed = 1, .e = { { .code = GP_E_RESOURCE } } }));
}

/* Several threads send, each on a channel of its own, and MPI takes one call at a time. */
static pthread_mutex_t calls = PTHREAD_MUTEX_INITIALIZER;

const char *gp_ranks_send(int channel, const void *mine, int n, void *all)
{
    pthread_mutex_lock(&calls);
    const char *why = us.mpi->gather(channel, mine, n, all);
    pthread_mutex_unlock(&calls);
    return why;
}

const char *gp_ranks_sent(int channel, bool *done)
{
    pthread_mutex_lock(&calls);
    const char *why = us.mpi->gathered(channel, done);
    pthread_mutex_unlock(&calls);
    return why;
}

const char *gp_ranks_channels(int n)
{
    return us.mpi->open_channels(n);
}

bool gp_ranks_gather(const void *mine, int n, void *all, gp_errs *errs)
{
    const struct timespec moment = { .tv_nsec = 1000000 };     /* the others may need the core */
    bool done = false;
    const char *why = gp_ranks_send(0, mine, n, all);
    while (!why && !done) {
        why = gp_ranks_sent(0, &done);
        if (!why && !done)
            nanosleep(&moment, NULL);
    }
    return !why || gp_fail(errs, GP_E_RESOURCE, (gp_loc){ 0 }, "MPI failed: %s", why);
}
