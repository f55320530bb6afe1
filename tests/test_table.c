/* test_table.c - the hash table, against an array that is searched from end to end. */
#include "base/table.h"
#include "suite.h"

static gp_arena arena;

static void arena_down(void)
{
    gp_arena_free(&arena);
    arena = (gp_arena){ 0 };
}

/* Numbers that look random, the same in each run. */
static uint64_t number(uint64_t *state)
{
    uint64_t z = *state += 0x9e3779b97f4a7c15;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
    z = (z ^ z >> 27) * 0x94d049bb133111eb;
    return z ^ z >> 31;
}

/* ---- by hand --------------------------------------------------------- */

TEST(names)
{
    gp_table t = { .arena = &arena };
    char copy[] = "gray";
    ck_assert_ptr_null(gp_table_find(&t, "gray"));
    ck_assert_int_eq(gp_table_index(&t, ""), -1);
    gp_table_put(&t, "gray", 7);
    gp_table_put(&t, "", 8);
    ck_assert_int_eq(gp_table_index(&t, copy), 7);
    ck_assert_int_eq(gp_table_index(&t, ""), 8);
    ck_assert_int_eq(gp_table_put(&t, copy, 9)->n, 7);     /* it was there */
    ck_assert_int_eq(t.n, 2);
    gp_table_put(&t, copy, 0)->ptr = copy;
    ck_assert_ptr_eq(gp_table_find(&t, "gray")->ptr, copy);
    ck_assert_str_eq(gp_table_find(&t, "gray")->name, "gray");
}

TEST(numbers)
{
    static const uint64_t key[] = { 0, 1, UINT64_MAX, (uint64_t)1 << 63, (uint64_t)1 << 32 };
    enum { N = sizeof key / sizeof *key };
    gp_table t = { 0 };
    for (int i = 0; i < N; i++) {
        ck_assert_ptr_null(gp_table_find_id(&t, key[i]));
        gp_table_put_id(&t, key[i], i);
    }
    for (int i = 0; i < N; i++) {
        gp_entry *e = gp_table_find_id(&t, key[i]);
        ck_assert_int_eq(e->n, i);
        gp_table_remove(&t, e);
        ck_assert_ptr_null(gp_table_find_id(&t, key[i]));
    }
    ck_assert_ptr_null(gp_table_next(&t, NULL));
    gp_table_free(&t);
    ck_assert_uint_eq(t.cap, 0);
}

/* What was reserved is used without more memory, however often entries come and go. */
TEST(reserved)
{
    enum { ROOM = 100 };
    gp_table t = { 0 };
    ck_assert(gp_table_reserve(&t, ROOM));
    const gp_entry *entry = t.entry;
    for (uint64_t i = 0; i < 50000; i++) {
        if (i >= ROOM)
            gp_table_remove(&t, gp_table_find_id(&t, i - ROOM));
        gp_table_put_id(&t, i, (int64_t)i);
    }
    ck_assert_ptr_eq(t.entry, entry);
    ck_assert_uint_eq(t.n, ROOM);
    for (uint64_t i = 50000 - ROOM; i < 50000; i++)
        ck_assert_int_eq(gp_table_find_id(&t, i)->n, (int64_t)i);
    gp_table_free(&t);
}

/* ---- beside an array ------------------------------------------------- */

enum { KEYS = 400, STEPS = 20000 };

/* keys: of so many names or numbers; each step puts or removes; `bias` of 8 put. */
static const struct { bool named, in_arena; int keys, bias; } walks[] = {
    { false, false, 8, 4 }, { false, true, 40, 4 }, { false, false, KEYS, 4 },
    { false, false, KEYS, 7 }, { true, false, 8, 4 }, { true, true, 40, 5 },
    { true, false, KEYS, 4 }, { true, true, KEYS, 7 },
};

/* Keys of a kind that collide: multiples, neighbors, random ones. */
static uint64_t id_of(int i)
{
    uint64_t state = (uint64_t)i;
    return i % 3 == 0 ? (uint64_t)i << 40 : i % 3 == 1 ? (uint64_t)i : number(&state);
}

static gp_entry *find(const gp_table *t, bool named, char name[][16], int i)
{
    return named ? gp_table_find(t, name[i]) : gp_table_find_id(t, id_of(i));
}

/* All that is in the table, each once, and nothing else. */
static void check_all(const gp_table *t, bool named, char name[][16], const int64_t *want, int n)
{
    size_t there = 0, met = 0;
    for (int i = 0; i < n; i++) {
        const gp_entry *e = find(t, named, name, i);
        ck_assert_int_eq(e ? e->n : -1, want[i]);
        there += e != NULL;
    }
    for (gp_entry *e = NULL; (e = gp_table_next(t, e)); met++)
        ck_assert_int_ge(e->n, 0);
    ck_assert_uint_eq(met, there);
    ck_assert_uint_eq(t->n, there);
}

TEST_EACH(random_walk, walks)
{
    static char name[KEYS][16];
    static int64_t want[KEYS];         /* -1: not in it */
    bool named = walks[_i].named;
    int keys = walks[_i].keys;
    gp_table t = { .arena = walks[_i].in_arena ? &arena : NULL };
    uint64_t state = (uint64_t)_i;
    for (int i = 0; i < keys; i++) {
        snprintf(name[i], sizeof name[i], "k%d", i);
        want[i] = -1;
    }
    for (int step = 0; step < STEPS; step++) {
        int i = (int)(number(&state) % (uint64_t)keys);
        if ((int)(number(&state) % 8) < walks[_i].bias) {
            gp_entry *e = named ? gp_table_put(&t, name[i], step) : gp_table_put_id(&t, id_of(i), step);
            want[i] = want[i] < 0 ? step : want[i];
            ck_assert_int_eq(e->n, want[i]);
        } else if (want[i] >= 0) {
            gp_table_remove(&t, find(&t, named, name, i));
            want[i] = -1;
        }
        if (step % 97 == 0 || keys < 10)
            check_all(&t, named, name, want, keys);
    }
    check_all(&t, named, name, want, keys);
    if (!t.arena)
        gp_table_free(&t);
}

TEST_SUITE(table, NULL, arena_down, 0)
