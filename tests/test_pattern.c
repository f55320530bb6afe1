/* test_pattern.c - which elements that nobody wrote are found, by how many frames, and that none are found where all
 * were written. What becomes of that in a run: suites unwritten and lua_unwritten. */
#include "run/pattern.h"
#include "suite.h"

enum { TRIES = 200, TURNS = 8 };

typedef enum fill { NOISE, MASK, SAME, RAMP, FILLS } fill;

static uint64_t noise(uint64_t *x)
{
    *x ^= *x << 13, *x ^= *x >> 7, *x ^= *x << 17;
    return *x * UINT64_C(2685821657736338717) >> 32;
}

/* What a stage may write there. */
static uint64_t value(fill how, uint64_t *x, uint64_t i)
{
    return how == NOISE ? noise(x) << 32 | noise(x) : how == MASK ? noise(x) & 1 : how == SAME ? *x : i + *x;
}

/* Element i (a c64: of its parts) is written, unless it lies between. */
typedef struct hole { uint64_t from, n, step, times; } hole;

static bool is_missing(const hole *h, uint64_t i)
{
    return h && i >= h->from && (i - h->from) / h->step < h->times && (i - h->from) % h->step < h->n;
}

/* Runs a stage for up to TURNS frames. Returns what the last look said; *turns: how many there were. */
static int run_stage(gp_pattern *pt, fill how, uint64_t seed, const hole *h, int *turns)
{
    uint64_t count = gp_bytes(pt->type) / pt->size, x = seed * UINT64_C(0x9e3779b97f4a7c15) + 1;
    OWNED char *data = malloc(count * pt->size);
    int r = 0;
    ck_assert_ptr_nonnull(data);
    pt->frames = true;
    pt->same = malloc(pt->n / 8 + 1);
    gp_pattern_begin(pt);
    for (*turns = 0; !r && *turns < TURNS; ++*turns) {
        gp_pattern_put(pt, data);
        for (uint64_t i = 0; i < count; i++) {
            uint64_t v = value(how, &x, i);
            if (!is_missing(h, i))
                memcpy(data + i * pt->size, &v, pt->size);
        }
        r = gp_pattern_look(pt, data, pt->type);
    }
    free(pt->same);
    return r;
}

static const gp_stage stage = { .name = "s", .out_name = (const char *[]){ "out" } };

/* frames: by so many at the latest, whatever is written elsewhere. */
static const struct { gp_type type; hole hole; int frames; } missing[] = {
    { { GP_U8, 2, { 4, 256 } }, { 0, 1, 256, 4 }, 1 },             /* the first column, the last, */
    { { GP_U8, 2, { 4, 256 } }, { 255, 1, 256, 4 }, 1 },
    { { GP_U8, 2, { 4, 256 } }, { 0, 4, 4, 1 }, 1 },               /* some side by side, */
    { { GP_U8, 2, { 4, 256 } }, { 513, 3, 3, 1 }, 2 },
    { { GP_U8, 2, { 4, 256 } }, { 768, 256, 256, 1 }, 1 },           /* a row, */
    { { GP_U8, 2, { 4, 256 } }, { 70, 1, 256, 4 }, 2 },            /* a column within, */
    { { GP_U8, 2, { 4, 256 } }, { 0, 1, 1, 1 }, 3 },               /* one element: the first, the last, one within */
    { { GP_U8, 2, { 4, 256 } }, { 1023, 1, 1, 1 }, 3 },
    { { GP_U8, 2, { 4, 256 } }, { 600, 1, 1, 1 }, 4 },
    { { GP_I8, 1, { 1 } }, { 0, 1, 1, 1 }, 3 },
    { { GP_I8, 1, { 16 } }, { 15, 1, 1, 1 }, 3 },
    { { GP_U8, 1, { 16 } }, { 13, 3, 3, 1 }, 1 },
    { { GP_U8, 3, { 48, 64, 3 } }, { 0, 3, 192, 48 }, 1 },
    { { GP_U8, 3, { 48, 64, 3 } }, { 2, 1, 3, 48 * 64 }, 1 },      /* a color */
    { { GP_U8, 2, { 480, 640 } }, { 639, 1, 640, 480 }, 1 },
    { { GP_U8, 2, { 480, 640 } }, { 639, 1, 640, 20 }, 2 },
    { { GP_U8, 2, { 480, 640 } }, { 12345, 1, 1, 1 }, 5 },
    { { GP_I16, 2, { 4, 256 } }, { 0, 1, 256, 4 }, 1 },
    { { GP_U16, 2, { 4, 256 } }, { 255, 1, 256, 2 }, 1 },
    { { GP_F16, 2, { 4, 256 } }, { 77, 1, 1, 1 }, 2 },
    { { GP_F16, 1, { 16 } }, { 0, 1, 1, 1 }, 2 },
    { { GP_F32, 2, { 4, 256 } }, { 77, 1, 1, 1 }, 1 },
    { { GP_F32, 2, { 480, 640 } }, { 77, 1, 1, 1 }, 2 },
    { { GP_C64, 2, { 40, 64 } }, { 77, 1, 1, 1 }, 2 },
    { { GP_F64, 2, { 480, 640 } }, { 77, 1, 1, 1 }, 1 },
    { { GP_I64, 1, { 1 } }, { 0, 1, 1, 1 }, 1 },
};

TEST_EACH(is_found, missing)
{
    for (int k = 0; k < TRIES * FILLS; k++) {
        fill how = (fill)(k % FILLS);
        gp_pattern pt = gp_pattern_of(&stage, 0, &missing[_i].type, false);
        int turns, r = run_stage(&pt, how, (uint64_t)k / FILLS, &missing[_i].hole, &turns);
        ck_assert_msg(r == -1 && turns <= missing[_i].frames, "case %d, fill %d, try %d: %d in frame %d", _i, how, k, r,
                      turns);
        if (turns > 1) {
            gp_errs errs = { .n = 0 };
            char *text = format("'out' unwritten in frame 9 and %d before it", turns - 1);
            gp_pattern_fail(&pt, 9, "", "Write them all", &errs);
            ck_assert_msg(strstr(errs.e[0].msg, text) != NULL, "case %d: %s", _i, errs.e[0].msg);
        }
        if (missing[_i].type.ndim * missing[_i].type.dim[1] > 1000)
            k += 17;                   /* a large one: some of these */
    }
}

static const gp_type written[] = {
    { GP_U8, 1, { 1 } }, { GP_U8, 1, { 16 } }, { GP_U8, 2, { 3, 5 } }, { GP_U8, 2, { 4, 256 } },
    { GP_I8, 3, { 2, 8, 3 } }, { GP_U8, 2, { 1, 600 } }, { GP_U8, 2, { 60, 80 } }, { GP_I16, 1, { 2 } },
    { GP_U16, 2, { 50, 60 } }, { GP_F32, 1, { 7 } }, { GP_C64, 2, { 3, 50 } }, { GP_F64, 1, { 3 } },
};

/* No false alarm. */
TEST_EACH(all_is_written, written)
{
    int tries = gp_bytes(&written[_i]) < 2000 ? 5000 : 1000;
    for (int k = 0; k < tries * FILLS; k++) {
        gp_pattern pt = gp_pattern_of(&stage, 0, &written[_i], false);
        int turns, r = run_stage(&pt, (fill)(k % FILLS), (uint64_t)k / FILLS, NULL, &turns);
        ck_assert_msg(r == 1, "type %d, fill %d, try %d: %d in frame %d", _i, k % FILLS, k, r, turns);
    }
}

TEST_SUITE(pattern, NULL, NULL, 0)
