/* test_ahead.c - which slots in managed memory are brought to a device, before a launch. */
#include "run/segment.h"
#include "suite.h"

enum { STRIDE = 256, MOST = 64, DEVICES = 3 };

static struct { const gp_dev *dev; const char *at; size_t bytes; } brought[MOST];
static int n;

static bool bring(gp_dev *dev, void *mem, size_t bytes, gp_errs *errs)
{
    ck_assert_int_lt(n, MOST);
    brought[n].dev = dev, brought[n].at = mem, brought[n++].bytes = bytes;
    return true;
}

/* Launches, one after the other, and the slots that each brings: "LANE:SLOTS", slots are digits. */
static const struct { int depth, lanes, run; struct { int first, n; const char *slots; } launch[4]; } cases[] = {
    { 8, 1, 1, { { 0, 1, "0:01 " }, { 1, 1, "0:2 " }, { 2, 1, "0:3 " }, { 3, 1, "0:4 " } } },
    { 8, 1, 1, { { 0, 2, "0:0123 " }, { 2, 2, "0:45 " }, { 4, 2, "0:67 " }, { 6, 2, "0:01 " } } },
    { 8, 1, 1, { { 0, 4, "0:01234567 " }, { 4, 1, "" }, { 5, 1, "" }, { 6, 2, "0:01 " } } },
    { 3, 1, 1, { { 0, 1, "0:01 " }, { 1, 1, "0:2 " }, { 2, 1, "0:0 " }, { 3, 1, "0:1 " } } },
    { 1, 1, 1, { { 0, 1, "0:0 " }, { 1, 1, "0:0 " }, { 2, 1, "0:0 " }, { 3, 1, "0:0 " } } },
    { 8, 1, 1, { { 21, 1, "0:56 " }, { 22, 1, "0:7 " }, { 23, 1, "0:0 " }, { 24, 2, "0:123 " } } },
    { 8, 2, 2, { { 0, 2, "0:01 1:01 " }, { 2, 2, "0:23 " }, { 4, 2, "1:23 " }, { 6, 2, "0:01 " } } },
    { 6, 3, 1, { { 0, 1, "0:0 1:0 " }, { 1, 1, "2:0 " }, { 2, 1, "0:1 " }, { 3, 1, "1:1 " } } },
};

TEST_EACH(slots, cases)
{
    static char memory[DEVICES][8 * STRIDE];
    const gp_backend backend = { .bring = bring };
    int lanes = cases[_i].lanes, managed = 0;
    gp_place place = { .device = true, .lanes = lanes, .run = cases[_i].run };
    gp_pool pool = { .place = place, .managed = true, .depth = cases[_i].depth, .stride = STRIDE };
    gp_plan plan = { .pool = &pool, .npools = 1 };
    gp_dev dev[DEVICES] = { { .backend = &backend }, { .backend = &backend }, { .backend = &backend } };
    gp_dev *devs[DEVICES] = { &dev[0], &dev[1], &dev[2] };
    void *on[DEVICES] = { memory[0], memory[1], memory[2] };
    static gp_run run;
    gp_segmentrt seg = { .managed = &managed, .nmanaged = 1 };
    gp_actorrt p = { .run = &run, .seg = &seg };
    gp_errs errs = { .n = 0 };
    run.plan = &plan, run.pool = on, run.dev = devs;
    for (int i = 0; i < 4; i++) {
        char text[200] = "";
        size_t len = 0;
        n = 0;
        ck_assert(gp_ahead_bring(&p, (uint64_t)cases[_i].launch[i].first, cases[_i].launch[i].n, &errs));
        for (int l = 0; l < lanes; l++) {      /* lane by lane, in the order in which they came */
            bool any = false;
            for (int k = 0; k < n; k++) {
                if (brought[k].dev != &dev[l])
                    continue;
                size_t at = (size_t)(brought[k].at - memory[l]) / STRIDE, many = brought[k].bytes / STRIDE;
                if (!any)
                    len += (size_t)snprintf(text + len, sizeof text - len, "%d:", l);
                any = true;
                for (size_t j = at; j < at + many; j++)
                    len += (size_t)snprintf(text + len, sizeof text - len, "%zu", j);
            }
            if (any)
                len += (size_t)snprintf(text + len, sizeof text - len, " ");
        }
        ck_assert_msg(!strcmp(text, cases[_i].launch[i].slots), "case %d, launch %d: '%s', not '%s'", _i, i, text,
                      cases[_i].launch[i].slots);
    }
}

TEST_SUITE(ahead, NULL, NULL, 0)
