/* test_layout.c - boxes lie apart and lines go around them, whatever is drawn; what
 * should be straight is; time is in proportion. */
#include <math.h>
#include "draw/layout.h"
#include "suite.h"

#define EDGE(a, b) { .from = (a), .to = (b) }

typedef struct drawn {
    gp_arena arena;
    gp_box *box; int n;
    gp_edge *edge; int m;
    double w, h;
} drawn;

static unsigned random_below(unsigned *seed, unsigned n)
{
    *seed = *seed * 1664525 + 1013904223;
    return (*seed >> 8) % n;
}

/* n boxes of all sizes, each linked to some of the `reach` boxes before it. */
static drawn random_drawn(unsigned seed, int n, int reach, int edges)
{
    drawn d = { .n = n };
    d.box = GP_NEW(&d.arena, gp_box, n);
    d.edge = GP_NEW(&d.arena, gp_edge, n * edges);
    for (int i = 0; i < n; i++) {
        d.box[i].w = 40 + 2 * random_below(&seed, 80);
        d.box[i].h = 20 + random_below(&seed, 60);
        int first = d.m;
        for (int k = 0; k < edges && i; k++) {
            int from = i - 1 - (int)random_below(&seed, (unsigned)(i < reach ? i : reach));
            bool again = random_below(&seed, 3) == 0;
            for (int j = first; j < d.m; j++)
                again |= d.edge[j].from == from;
            if (!again)
                d.edge[d.m++] = (gp_edge){ .from = from, .to = i, .arrow = k & 1, .label = 40 };
        }
    }
    gp_layout(&d.arena, d.box, d.n, d.edge, d.m, &d.w, &d.h);
    return d;
}

/* Each ck_assert takes its time: these say what is wrong, or NULL. */

static bool apart(const gp_box *a, const gp_box *b)
{
    return a->x + a->w < b->x || b->x + b->w < a->x || a->y + a->h < b->y || b->y + b->h < a->y;
}

static const char *wrong_box(const drawn *d, int i)
{
    const gp_box *b = &d->box[i];
    if (b->x < 0 || b->y < 0 || b->x + b->w > d->w || b->y + b->h > d->h)
        return "outside";
    if (fabs(b->x - round(b->x)) > 1e-9 || fabs(b->y - round(b->y)) > 1e-9)
        return "not at a whole number";
    for (int j = 0; j < i; j++)
        if (!apart(b, &d->box[j]))
            return "over another";
    return NULL;
}

/* Down all the way, from its box to its box, around the others; curves only where no box is. */
static const char *wrong_edge(const drawn *d, const gp_edge *k)
{
    const gp_box *from = &d->box[k->from], *to = &d->box[k->to];
    const gp_bend *first = k->bend, *last = &k->bend[k->nbends - 1];
    if (last->x <= to->x || last->x >= to->x + to->w || fabs(last->y1 - to->y) > 1e-9)
        return "does not end at its box";
    if (!k->cut && (first->x <= from->x || first->x >= from->x + from->w || fabs(first->y0 - from->y - from->h) > 1e-9))
        return "does not begin at its box";
    for (int i = 0; i < k->nbends; i++) {
        const gp_bend *a = &k->bend[i], *next = i < k->nbends - 1 ? a + 1 : NULL;
        if (a->x < 0 || a->x > d->w || a->y0 > a->y1 || (next && next->y0 <= a->y1))
            return "goes up or out";
        for (int j = 0; j < d->n; j++) {
            const gp_box *b = &d->box[j];
            if (b != from && b != to && a->x >= b->x && a->x <= b->x + b->w && a->y1 >= b->y && a->y0 <= b->y + b->h)
                return "goes through a box";
            if (next && b->y + b->h > a->y1 && b->y < next->y0)
                return "curves beside a box";
        }
    }
    return NULL;
}

TEST_LOOP(test_random, 0, 8)
{
    static const struct { int n, reach, edges; } shape[] = {
        { 1, 1, 1 }, { 2, 1, 1 }, { 12, 3, 2 }, { 40, 40, 2 }, { 40, 4, 4 }, { 150, 8, 3 },
        { 150, 150, 1 }, { 200, 200, 3 },
    };
    for (unsigned seed = 0; seed < 20; seed++) {
        drawn d = random_drawn(seed, shape[_i].n, shape[_i].reach, shape[_i].edges);
        drawn again = random_drawn(seed, shape[_i].n, shape[_i].reach, shape[_i].edges);
        const char *wrong = NULL;
        for (int i = 0; i < d.n && !wrong; i++)
            wrong = wrong_box(&d, i);
        ck_assert_msg(!wrong, "seed %u: a box lies %s", seed, wrong);
        for (int i = 0; i < d.m && !wrong; i++)
            wrong = d.edge[i].nbends < 2 ? "is none" : wrong_edge(&d, &d.edge[i]);
        ck_assert_msg(!wrong, "seed %u: a line %s", seed, wrong);
        ck_assert_mem_eq(d.box, again.box, sizeof *d.box * (size_t)d.n);
        gp_arena_free(&d.arena);
        gp_arena_free(&again.arena);
    }
}

TEST(test_straight)
{
    /* 0 - 1 - 2 - 3, and from 0 to 3 past them; 4 to 2 from the side; 5 alone */
    gp_box box[6];
    gp_edge edge[] = { EDGE(0, 1), EDGE(1, 2), EDGE(2, 3), EDGE(0, 3), EDGE(4, 2) };
    for (int i = 0; i < 6; i++)
        box[i] = (gp_box){ .w = 100, .h = 20 };
    edge[4].side = true;
    gp_arena a = { 0 };
    double w, h;
    gp_layout(&a, box, 6, edge, 5, &w, &h);
    ck_assert(fabs(box[1].x - box[2].x) < 1e-9);
    ck_assert_int_eq(edge[3].nbends, 4);
    ck_assert(fabs(edge[3].bend[1].x - edge[3].bend[2].x) < 1e-9);
    ck_assert(fabs(box[4].y - box[1].y) < 1e-9);       /* just above what it is for */
    ck_assert(w < 3 * 130 + 20);       /* nothing far off */
    gp_arena_free(&a);
}

TEST(test_ends)
{
    gp_box box[] = {
        { .w = 2, .rank = GP_RANK_FIRST, .aim = 9 }, { .w = 2, .rank = GP_RANK_FIRST, .aim = 5 },
        { .w = 80, .h = 20 }, { .w = 80, .h = 20 }, { .w = 2, .rank = GP_RANK_LAST },
    };
    gp_edge edge[] = { EDGE(0, 2), EDGE(2, 3), EDGE(1, 3), EDGE(2, 4) };
    gp_arena a = { 0 };
    double w, h;
    gp_layout(&a, box, 5, edge, 4, &w, &h);
    ck_assert(box[0].y + box[1].y < 1e-9);
    ck_assert(fabs(box[4].y - h) < 1e-9);
    ck_assert(box[1].x < box[0].x);
    gp_arena_free(&a);
}

/* A line that is too long has a label in place of its way, or there would be as many items as boxes times boxes. */
TEST(test_linear)
{
    size_t total[2];
    for (int i = 0; i < 2; i++) {
        int n = i ? 4000 : 1000;
        drawn d = random_drawn(1, n, n, 3);
        int cut = 0;
        for (int k = 0; k < d.m; k++)
            cut += d.edge[k].cut;
        drawn chain = random_drawn(1, n, 1, 1);
        total[i] = d.arena.total + chain.arena.total;
        gp_arena_free(&d.arena);
        gp_arena_free(&chain.arena);
        ck_assert(!i || cut > 0);
    }
    ck_assert_msg(total[1] < 6 * total[0], "%zu bytes, then %zu", total[0], total[1]);
}

TEST_SUITE(layout, NULL, NULL, 0)
