/* ranks.c - starts MPI and joins the ranks, gathers and passes bytes between them, and finds those that no longer answer: see
 * ranks.h. */
#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "base/dl.h"
#include "cli/ranks.h"
#include "cli/verb.h"
#include "mpi/shim.h"

enum { CALLS = 8 };                    /* how often a rank that waits calls */
#define SPIN_S 1e-3                    /* so long it looks all the time whether a message is there */
#define JOIN_NS (5 * 60 * INT64_C(1000000000))

static struct {
    const gp_mpi *mpi;
    int rank, ranks, local_rank, local_ranks;
    int64_t join_ns;
    int64_t wait_ns; const char *wait_what, *wait_key;         /* see gp_ranks_wait_for */
    long gathers;                      /* on channel 0, so far */
    long *heard;                       /* the gather in which each rank has called last; 0: in none since this waits */
    atomic_bool apart;                 /* a gather has failed; before: */
    bool *lost; int nlost;
} us = { .ranks = 1 };

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

int gp_local_ranks(void)
{
    return us.local_ranks;
}

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
    if (!args->verb || !args->verb->ranks)
        return gp_fail(errs, GP_E_USAGE, (gp_loc){ 0 }, "a launcher started %d ranks, and only 'run', 'check' and "
                       "'plan' have several: start this alone", launched());
    for (int i = 0; i < args->noperands; i++)
        if (!strcmp(args->operand[i], "-"))
            return gp_fail(errs, GP_E_USAGE, (gp_loc){ 0 }, "standard input is that of one of %d ranks: name the "
                           "pipeline's file", launched());
    return true;
}

bool gp_ranks_is_another(void)
{
    return (launched() > 1 || only_slurm() > 1) && launched_rank() > 0;
}

/* Opens MPI and starts it; false with an error, which the first says. */
static bool start(int ranks, gp_errs *errs)
{
    int rank = 0, there = 1;
    const gp_mpi *mpi = open_shim(ranks, errs);
    if (!mpi)
        return false;
    gp_ranks_come();
    gp_ranks_limit(us.join_ns, NULL, 0);
    const char *why = mpi->start(&rank, &there, &us.local_rank);
    gp_ranks_limit(0, NULL, 0);
    if (why)
        return gp_fail(errs, GP_E_RESOURCE, (gp_loc){ 0 }, "MPI (%s) cannot be started: %s", mpi->library(), why);
    us.mpi = mpi, us.local_ranks = mpi->local_ranks();
    if (there != ranks)
        return gp_fail(errs, GP_E_RESOURCE, (gp_loc){ 0 }, "the launcher started %d ranks, and MPI (%s) knows of %d: "
                       "it is the launcher of another MPI; use the mpirun of %s, or build gpipe-mpi.so with the mpicc "
                       "of that launcher's MPI, or name the right one in GPIPE_MPI", ranks, mpi->library(), there,
                       mpi->library());
    us.rank = rank;
    us.heard = gp_ranks_room((size_t)ranks, sizeof *us.heard), us.lost = gp_ranks_room((size_t)ranks, sizeof *us.lost);
    gp_ranks_wait_for(us.join_ns, "to compile the pipeline", "--join-timeout");
    return true;
}

bool gp_ranks_join(const gp_args *args, bool ok, gp_errs *errs)
{
    const gp_verb *v = args->verb;     /* each would do what compiles and is not done together; all else the first does */
    bool apart = args->help || (v && !v->target), each = v && v->target && !v->ranks;
    int ranks = launched(), tasks = each ? 1 : only_slurm();
    if (ranks == 1 && tasks == 1)
        return ok;
    us.ranks = ranks * tasks, us.rank = launched_rank();       /* should it fail, the first says so */
    if (apart)
        return ok && !us.rank;
    us.join_ns = args->join_ns ? args->join_ns : JOIN_NS;
    if (ok && ranks == 1)
        return gp_fail(errs, GP_E_USAGE, (gp_loc){ 0 }, "srun started %d tasks that MPI cannot join: write srun "
                       "--mpi=pmix, or --mpi=pmi2 for MPICH (srun --mpi=list shows what it knows), or unset "
                       "SLURM_STEP_NUM_TASKS to run each by itself", us.ranks);
    if (ok && may_have_ranks(args, errs))
        return start(ranks, errs);
    gp_errs none = { .n = 0 };             /* other ranks may have another command line, and wait for this one */
    return ranks > 1 && start(ranks, &none) && gp_ranks_agree(args, &(gp_loaded){ .text = NULL }, false, errs);
}

int64_t gp_ranks_join_ns(void)
{
    return us.join_ns;
}

/* Several threads send, each on a channel of its own, and MPI takes one call at a time. */
static pthread_mutex_t calls = PTHREAD_MUTEX_INITIALIZER;

/* Where some are lost, MPI would wait for them. */
void gp_ranks_leave(int status)
{
    if (!us.heard && us.rank && status)            /* they have not met */
        sleep(1);                      /* the first says what it was: the launcher ends all when one has ended so */
    if (us.mpi)
        gp_ranks_limit(us.join_ns, "to end", status);
    status = gp_ranks_done(status);
    if (us.mpi && atomic_load(&us.apart)) {
        if (!gp_ranks_is_first())
            sleep(1);                  /* the launcher ends all when one has ended */
        fflush(stderr);
        _exit(status);
    }
    if (us.mpi) {
        if (us.heard)
            us.mpi->heard(us.heard);           /* what was called while this one was late */
        us.mpi->leave();
        gp_ranks_limit(0, NULL, 0);
    }
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
    gp_ranks_limit(us.join_ns, "to open the channels of collectives", 0);
    const char *why = us.mpi->open_channels(n);
    gp_ranks_limit(0, NULL, 0);
    return why;
}

/* What comes too late still has a place to come to, which is nobody else's. */
const char *gp_ranks_pass(int from, int to, void *data, int n)
{
    const int other = from == us.rank ? to : from;
    const int64_t most = us.join_ns * (us.rank ? 2 : 1);       /* the first may wait for another */
    bool done = false;
    int64_t late = 0;                  /* while there are no rounds */
    double begun = gp_seconds();
    char *room = gp_ranks_room((size_t)n, 1);
    if (from == us.rank)
        memcpy(room, data, (size_t)n);
    pthread_mutex_lock(&calls);
    const char *why = us.mpi->pass(from, to, room, n);
    pthread_mutex_unlock(&calls);
    while (!why) {
        pthread_mutex_lock(&calls);
        why = us.mpi->passed(&done);
        pthread_mutex_unlock(&calls);
        if (why || done)
            break;
        bool apart = atomic_load(&us.apart);
        if (apart && (us.lost[other] || late > most))
            why = "it takes too long";
        else if (gp_seconds() - begun < SPIN_S)
            sched_yield();
        else
            late += gp_ranks_rest(100000) * apart;
    }
    if (done && to == us.rank)
        memcpy(data, room, (size_t)n);
    if (done)
        free(room);
    return why;
}

/* ---- a gather that does not end -------------------------------------- */

void gp_ranks_wait_for(int64_t ns, const char *what, const char *key)
{
    us.wait_ns = ns, us.wait_what = what, us.wait_key = key;
}

bool gp_ranks_too_late(int64_t ns, const char *what, gp_errs *errs)
{
    char time[32];
    if (!us.wait_ns || ns <= us.wait_ns)
        return false;
    gp_fail(errs, GP_E_STALL, (gp_loc){ 0 }, "waited %s for %s", gp_ranks_time(us.wait_ns, time), what);
    gp_fail(errs, GP_E_NOTE, (gp_loc){ 0 }, "'%s' says how long to wait", us.wait_key);
    return true;
}

const bool *gp_ranks_lost(void)
{
    return atomic_load(&us.apart) && us.nlost ? us.lost : NULL;
}

bool gp_ranks_is_first(void)
{
    const bool *lost = gp_ranks_lost();
    int r = 0;
    while (lost && r < us.rank && lost[r])
        r++;
    return r == us.rank;
}

/* A gather does not tell which rank is missing. So a rank that waits in one says so to all, again and again, and a rank
 * that says nothing is lost. Others may wait in the one before, or behind: so what counts is that they call at all. One that comes to a gather
 * in which others wait calls at once, as they may give up soon; what they said before it came does not count. */
static const char *call(bool comes, bool now)
{
    pthread_mutex_lock(&calls);
    const char *why = us.mpi->heard(us.heard);
    for (int r = 0; comes && r < us.ranks; r++)
        now |= us.heard[r] >= us.gathers, us.heard[r] = 0;
    for (int r = 0; !why && now && r < us.ranks; r++)
        why = r == us.rank ? NULL : us.mpi->call(r, us.gathers);
    pthread_mutex_unlock(&calls);
    return why;
}

static void have_lost(gp_errs *errs)
{
    char names[200], time[32];
    gp_ranks_time(us.wait_ns, time);
    for (int r = 0; r < us.ranks; r++)
        us.nlost += us.lost[r] = r != us.rank && !us.heard[r];
    if (!us.nlost) {
        gp_fail(errs, GP_E_STALL, (gp_loc){ 0 }, "waited %s for what all ranks have sent: MPI does not bring it", time);
        return;
    }
    gp_fail(errs, GP_E_STALL, (gp_loc){ 0 }, "waited %s for %s %s", time, gp_ranks_names(us.lost, names), us.wait_what);
    gp_fail(errs, GP_E_NOTE, (gp_loc){ 0 }, "'%s' says how long to wait", us.wait_key);
}

/* After a gather that failed a rank begins no other one: the ranks may no longer be in the same one, and MPI may still
 * hold the memory of this one. */
static void *gather(const void *mine, int n, double spin_s, gp_errs *errs)
{
    bool done = false, over = false;
    int64_t late = 0, called = 0;
    if (atomic_load(&us.apart)) {
        gp_fail(errs, GP_E_STALL, (gp_loc){ 0 }, "%d rank%s lost", us.nlost, us.nlost > 1 ? "s are" : " is");
        return NULL;
    }
    char *all = gp_ranks_room((size_t)n, (size_t)us.ranks + 1), *sent = all + (size_t)n * (size_t)us.ranks;
    memcpy(sent, mine, (size_t)n);
    us.gathers++;
    double since = gp_seconds(), begun = since;
    const char *why = gp_ranks_send(0, sent, n, all);
    while (!why && !over && !(why = gp_ranks_sent(0, &done)) && !done) {
        if (spin_s > 0 && gp_seconds() - begun < spin_s) {
            sched_yield();
            continue;
        }
        bool comes = !late, now;
        gp_ranks_rest(1000000);                        /* the others may need the core */
        late += gp_ranks_since(&since);
        over = us.wait_ns && late > us.wait_ns, now = over || late - called > us.wait_ns / CALLS;
        if (us.wait_ns && (comes || now))
            why = call(comes, now);
        if (now)
            called = late;
    }
    if (why)
        gp_fail(errs, GP_E_RESOURCE, (gp_loc){ 0 }, "MPI failed: %s", why);
    else if (!done)
        have_lost(errs);
    atomic_store(&us.apart, why || !done);
    return why || !done ? NULL : all;
}

void *gp_ranks_gather(const void *mine, int n, gp_errs *errs)
{
    return gather(mine, n, 0, errs);
}

void *gp_ranks_gather_now(const void *mine, int n, gp_errs *errs)
{
    return gather(mine, n, 10 * SPIN_S, errs);
}

void *gp_ranks_gather_on(int channel, const void *mine, int n)
{
    bool done = false;
    if (atomic_load(&us.apart))
        return NULL;
    char *all = gp_ranks_room((size_t)n, (size_t)us.ranks + 1), *sent = all + (size_t)n * (size_t)us.ranks;
    memcpy(sent, mine, (size_t)n);
    const char *why = gp_ranks_send(channel, sent, n, all);
    while (!why && !(why = gp_ranks_sent(channel, &done)) && !done && !atomic_load(&us.apart))
        gp_ranks_rest(1000000);
    return done ? all : NULL;          /* else MPI may still have it */
}

void *gp_ranks_gather_any(const void *mine, const int *bytes, gp_errs *errs)
{
    size_t most = 0, sum = 0;
    for (int r = 0; r < us.ranks; r++)
        most = (size_t)bytes[r] > most ? (size_t)bytes[r] : most;
    char *padded = gp_ranks_room(most, 1);
    if (bytes[us.rank])
        memcpy(padded, mine, (size_t)bytes[us.rank]);
    char *all = gp_ranks_gather(padded, (int)most, errs);
    for (int r = 0; all && r < us.ranks; sum += (size_t)bytes[r++])
        memmove(all + sum, all + (size_t)r * most, (size_t)bytes[r]);
    free(padded);
    return all;
}
