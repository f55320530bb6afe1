/* ranks_run.c - while a pipeline runs in several ranks, each tells the others how it is, and does as they do: see ranks.h.
 *
 * A thread sends all ranks what each says of itself, round after round. All see the same rounds, and so decide alike: that
 * all begin, that all stop, whose error ended them, and which round is the last. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>
#include "cli/ranks.h"

enum { BETWEEN_ROUNDS_NS = 10 * 1000 * 1000 };
enum { SETTING_UP, IS_UP, IS_OVER };

typedef struct says { int state, level, status; } says;        /* status: of its own error; level: of gp_cancel */

static struct {
    pthread_t thread;
    bool watched;
    says *of;                          /* of each rank, in the last round */
    atomic_int state, status;          /* of this one */
    atomic_bool go, told;              /* all are up; others told this one to stop */
    int first;                         /* the rank whose error ended all; -1: none */
    gp_errs errs;                      /* of MPI */
} now = { .first = -1 };

static void rest(long ns)
{
    nanosleep(&(struct timespec){ .tv_nsec = ns }, NULL);
}

/* What the others said in this round. Is it the last one? */
static bool hear(void)
{
    int level = 0, up = 0, over = 0;
    for (int r = 0; r < gp_ranks(); r++) {
        const says *s = &now.of[r];
        up += s->state >= IS_UP, over += s->state == IS_OVER;
        if (s->status && !s->level && now.first < 0)
            now.first = r;
        if (r != gp_rank() && s->level > level)
            level = s->level;
    }
    if (now.first >= 0 && now.first != gp_rank())
        level = 2;
    if (level && atomic_load(&now.state) != IS_OVER)
        atomic_store(&now.told, true), gp_signals_cancel(level);
    if (up == gp_ranks())
        atomic_store(&now.go, true);
    return over == gp_ranks();
}

static void *watch(void *arg)
{
    for (bool last = false; !last; rest(BETWEEN_ROUNDS_NS)) {
        int state = atomic_load(&now.state);           /* first: the status is there before the state says so */
        says mine = { .state = state, .status = atomic_load(&now.status), .level = gp_signals_level() };
        if (!gp_ranks_gather(&mine, sizeof mine, now.of, &now.errs)) {
            atomic_store(&now.told, true), gp_signals_cancel(2);
            break;
        }
        last = hear();
    }
    return arg;
}

bool gp_ranks_watch(gp_errs *errs)
{
    gp_ranks_speak();
    if (gp_ranks() == 1)
        return true;
    now.of = gp_ranks_room((size_t)gp_ranks(), sizeof *now.of);
    now.watched = !pthread_create(&now.thread, NULL, watch, NULL);
    return now.watched || gp_fail(errs, GP_E_RESOURCE, (gp_loc){ 0 }, "a thread cannot be started");
}

bool gp_ranks_begin(void *arg)
{
    (void)arg;
    atomic_store(&now.state, IS_UP);
    while (now.watched && !atomic_load(&now.go) && !atomic_load(&now.told) && !gp_signals_level())
        rest(BETWEEN_ROUNDS_NS / 10);
    return !atomic_load(&now.told);
}

int gp_ranks_end(int status, bool *first)
{
    *first = true;
    if (!now.watched)
        return status;
    atomic_store(&now.status, atomic_load(&now.told) && !gp_signals_level() ? 0 : status);
    atomic_store(&now.state, IS_OVER);
    pthread_join(now.thread, NULL);
    if (!now.errs.failed)
        gp_ranks_meet_close(&now.errs);
    if (now.errs.failed)
        gp_print_errs(&(gp_args){ .quiet = true }, NULL, &now.errs);
    *first = now.first < 0 || now.first == gp_rank();
    int all = now.first < 0 ? 0 : now.of[now.first].status;
    for (int r = 0; !all && r < gp_ranks(); r++)       /* that of a signal */
        all = now.of[r].status;
    free(now.of);
    now.watched = false;
    return all ? all : now.errs.failed ? gp_errs_exit(&now.errs) : 0;
}

void gp_ranks_sum(gp_account *a, int n)
{
    enum { NUMBERS = 5 };
    size_t each = (size_t)n * NUMBERS;
    int *many = gp_ranks() > 1 ? gp_ranks_room((size_t)gp_ranks(), sizeof *many) : NULL;
    bool all = many && gp_ranks_gather(&n, sizeof n, many, &now.errs);
    for (int r = 0; r < gp_ranks(); r++)       /* one that could not begin has none */
        all = all && many[r] == n;
    free(many);
    uint64_t *mine = all && n ? gp_ranks_room(each, sizeof *mine) : NULL;
    uint64_t *of = mine ? gp_ranks_room(each * (size_t)gp_ranks(), sizeof *of) : NULL;
    for (int i = 0; mine && i < n; i++) {
        const uint64_t x[NUMBERS] = { a[i].in, a[i].out, a[i].dropped, a[i].failed, a[i].cancelled };
        for (int k = 0; k < NUMBERS; k++)
            mine[i * NUMBERS + k] = x[k];
    }
    if (of && gp_ranks_gather(mine, (int)(each * sizeof *mine), of, &now.errs))
        for (int i = 0; i < n; i++) {
            uint64_t x[NUMBERS] = { 0 };
            for (int r = 0; r < gp_ranks(); r++)
                for (int k = 0; k < NUMBERS; k++)
                    x[k] += of[(size_t)r * each + (size_t)(i * NUMBERS + k)];
            a[i].in = x[0], a[i].out = x[1], a[i].dropped = x[2], a[i].failed = x[3], a[i].cancelled = x[4];
        }
    free(mine), free(of);
}
