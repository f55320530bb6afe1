/* pace.c - sources that make frames at a rate, see pace.h. Due times come
 * from the frame's number, so that one late frame does not delay those after it. */
#include <stdatomic.h>
#include "base/clock.h"
#include "pace.h"

gp_status gp_pace_wait(gp_pace *p, gp_call *c, double rate, uint64_t index, bool first)
{
    if (rate <= 0)
        return GP_OK;
    int64_t now = gp_now_ns(), t0 = 0;
    if (atomic_compare_exchange_strong(&p->t0, &t0, now))
        t0 = now;
    double after = (double)(index - p->from) * 1e9 / rate;
    int64_t due = after < 9e18 - (double)t0 ? t0 + (int64_t)after : INT64_MAX;
    if (due <= now)
        return GP_OK;
    if (!first)
        return GP_AGAIN;
    return gp_wait_or_pause(c, -1, due);
}
