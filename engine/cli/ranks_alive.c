/* ranks_alive.c - signs of life while rank 0 hears and writes what is left of a run: see ranks.h.
 *
 * Heartbeats tell a busy rank from a dead one. A thread of each rank sends them, so that a rank that is long at work is
 * not given up: the limit counts from the last heartbeat, so that it ends the wait only for a process that is stopped
 * or gone. */
#include <pthread.h>
#include <stdatomic.h>
#include "cli/ranks.h"

enum { TICK_NS = 5 * 1000 * 1000, MOST_NS = 1000 * 1000 * 1000, PART = 8 };    /* of the limit */

static struct { pthread_t thread; bool runs; atomic_bool over; } signs;

static void *give_signs(void *arg)
{
    const bool *lost = gp_ranks_lost();
    const int64_t part = gp_ranks_join_ns() / PART, each = part < MOST_NS ? part : MOST_NS;
    for (int64_t rested = each; !atomic_load(&signs.over); rested += gp_ranks_rest(TICK_NS)) {
        if (rested < each)
            continue;
        for (int r = 0; r < (gp_rank() ? 1 : gp_ranks()); r++)
            if (r != gp_rank() && !(lost && lost[r]))
                gp_ranks_sign(r);
        rested = 0;
    }
    return arg;
}

void gp_ranks_alive_begin(void)
{
    atomic_store(&signs.over, false);
    signs.runs = !pthread_create(&signs.thread, NULL, give_signs, NULL);       /* without it limits count as ever */
}

void gp_ranks_alive_end(void)
{
    atomic_store(&signs.over, true);
    if (signs.runs)
        pthread_join(signs.thread, NULL);
    signs.runs = false;
}
