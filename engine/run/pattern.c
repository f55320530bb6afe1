/* pattern.c - the elements of an output that nobody wrote, see pattern.h.
 *
 * An element that has the pattern's value was not written, or was written with that value by chance. A stage that
 * can compute the frame again does so over other patterns until no such element is left or chance is ruled out. One
 * that runs once has more of them than chance explains, in all or side by side. Of a large frame samples are looked
 * at. */
#include <math.h>
#include <string.h>
#include "run/pattern.h"

enum { SAMPLE = 1 << 20, BLOCK = 512 };     /* bytes: of a sample at most; that are looked at together */

/* So likely is it at most that an error is told by mistake, of a stage that can compute a frame again and of one
 * that cannot. */
static const double AGAIN = 1e-9, ONCE = 1e-6;

static const double NONE = 0.05;       /* elements by chance: so few are taken for none */

typedef union block {
    uint64_t u64[BLOCK / 8];
    uint32_t u32[BLOCK / 4];
    uint16_t u16[BLOCK / 2];
    uint8_t u8[BLOCK];
} block;

bool gp_pattern_applies(const gp_run *run, const gp_stage *st)
{
    return st->writes_all && !st->zero && !st->keeps_slots && !run->cached[st - run->graph->stage];
}

/* ---- the pattern ------------------------------------------------------ */

/* All of a frame that is not larger than the samples, of another evenly spaced ones, with its beginning and
 * its end. */
static void place_samples(gp_pattern *c, bool packed)
{
    uint64_t n = c->all, most = SAMPLE / c->size;
    uint64_t k = (n + most - 1) / most < GP_SAMPLES ? (n + most - 1) / most : GP_SAMPLES;
    for (uint64_t i = 0; i < k; i++) {
        uint64_t from = n / k * i + (i < n % k ? i : n % k), len = n / k + (i < n % k);
        bool last = i + 1 == k && len > most;
        gp_sample *s = &c->sample[i];
        *s = (gp_sample){ last ? from + len - most : from, len < most ? len : most, 0 };
        s->at = packed ? c->n : s->from;
        c->n += s->n;
    }
    c->nsamples = (int)k, c->nsame = c->n;
}

gp_pattern gp_pattern_of(const gp_stage *st, int out, const gp_type *type, bool packed)
{
    gp_pattern c = { .stage = st, .out = out, .type = type };
    c.size = c.type->dtype == GP_C64 ? 4 : gp_dtype_size(c.type->dtype);
    c.all = gp_bytes(c.type) / c.size;
    place_samples(&c, packed);
    return c;
}

/* Bits by a hash as in Fibonacci hashing (Knuth, TAOCP 3, 6.4), mixed: block `number` of a sample. */
static void pattern(block *b, uint64_t number, int sample, int turn)
{
    uint64_t key = 1 + number * (BLOCK / 8) + ((uint64_t)sample << 32) + ((uint64_t)turn << 40);
    for (uint64_t i = 0; i < BLOCK / 8; i++) {
        uint64_t h = (key + i) * 0x9e3779b97f4a7c15u;
        h = (h ^ h >> 32) * 0xd6e8feb86659fd93u;
        b->u64[i] = h ^ h >> 32;
    }
}

void gp_pattern_put(const gp_pattern *c, void *data)
{
    block b;
    for (int i = 0; i < c->nsamples; i++) {
        char *to = (char *)data + c->sample[i].at * c->size;
        size_t bytes = c->sample[i].n * c->size;
        for (size_t j = 0; j < bytes; j += BLOCK) {
            pattern(&b, j / BLOCK, i, c->turn);
            memcpy(to + j, &b, bytes - j < BLOCK ? bytes - j : BLOCK);
        }
    }
}

/* ---- what has become of it ---------------------------------------------- */

/* Sets same[k] where element k has the pattern's value. How many do? */
static int compare(const block *made, const block *b, size_t size, int n, bool same[BLOCK])
{
    int hits = 0;
#define EACH(field)                                             \
    for (int k = 0; k < n; k++)                                 \
        hits += same[k] = made->field[k] == b->field[k]
    switch (size) {
    case 1: EACH(u8); break;
    case 2: EACH(u16); break;
    case 4: EACH(u32); break;
    default: EACH(u64); break;
    }
#undef EACH
    return hits;
}

/* Is element `at` the pattern's again, as it was each time? */
static bool is_same(const gp_pattern *c, uint64_t at, bool now)
{
    unsigned char bit = (unsigned char)(1u << at % 8);
    if (c->same && !now)
        c->same[at / 8] &= (unsigned char)~bit;
    return now && (!c->same || c->same[at / 8] & bit);
}

/* The first n elements of sample i. */
static void look_at_sample(gp_pattern *c, int i, uint64_t n, const char *data)
{
    const gp_sample *s = &c->sample[i];
    uint64_t step = BLOCK / c->size, run = 0;
    block made, b;
    bool same[BLOCK];
    for (uint64_t j = 0; j < n; j += step) {
        int len = n - j < step ? (int)(n - j) : (int)step;
        memcpy(&made, data + (s->at + j) * c->size, (size_t)len * c->size);
        pattern(&b, j / step, i, c->turn);
        int hits = compare(&made, &b, c->size, len, same);
        for (int k = 0; (hits || c->same) && k < len; k++) {
            uint64_t e = j + (uint64_t)k;
            run = is_same(c, s->at + e, same[k]) ? run + 1 : 0;
            if (run && !c->nsame++)
                c->first = s->from + e;
            if (run > c->longest)
                c->longest = run, c->begin = s->from + e + 1 - run;
        }
        run = hits ? run : 0;
    }
    c->looked += n;
}

/* How many elements have the pattern's value by chance, each time that the stage computed the frame. */
static double by_chance(const gp_pattern *c)
{
    return (double)c->looked * pow(256, -(double)c->size * (c->same ? c->turn : 1));
}

/* Are there more than chance explains? Chernoff's bound for the sum of rare events. */
static bool are_too_many(const gp_pattern *c)
{
    double n = (double)c->nsame, chance = by_chance(c);
    return n > chance && n - chance - n * log(n / chance) < log(ONCE);
}

/* Are there more side by side? */
static bool are_too_long(const gp_pattern *c)
{
    return c->longest && log((double)c->looked) - (double)c->longest * (double)c->size * log(256) < log(ONCE);
}

int gp_pattern_look(gp_pattern *c, const void *data, const gp_type *is)
{
    uint64_t end = gp_bytes(is) / c->size;
    c->is = *is;
    c->looked = c->nsame = c->longest = 0;
    for (int i = 0; i < c->nsamples && c->sample[i].from < end; i++) {
        uint64_t n = end - c->sample[i].from;
        look_at_sample(c, i, n < c->sample[i].n ? n : c->sample[i].n, data);
    }
    c->turn++;
    if (!c->nsame)
        return 1;
    if (!c->same)
        return are_too_many(c) || are_too_long(c) ? -1 : 1;
    return by_chance(c) < AGAIN ? -1 : 0;
}

/* "[1, 13]": the index of element e. */
static void index_text(const gp_pattern *c, uint64_t e, char text[GP_MAXDIM * 24])
{
    uint64_t n = (uint64_t)gp_count(&c->is), at = e / (gp_bytes(&c->is) / c->size / n);
    int used = 0;
    for (int d = 0; d < c->is.ndim; d++) {
        n /= (uint64_t)c->is.dim[d];
        used += snprintf(text + used, (size_t)(GP_MAXDIM * 24 - used), "%s%llu", d ? ", " : "",
                         (unsigned long long)(at / n));
        at %= n;
    }
}

void gp_pattern_fail(const gp_pattern *c, uint64_t f, const char *base, const char *how, gp_errs *errs)
{
    const gp_stage *st = c->stage;
    char index[GP_MAXDIM * 24] = "", which[GP_MAXDIM * 24 + 60] = "";
    double chance = c->same ? 0 : by_chance(c);
    index_text(c, chance < NONE ? c->first : c->begin, index);
    if (chance < NONE || are_too_long(c))
        snprintf(which, sizeof which, ", such as [%s]%s", index, base);
    double n = (double)c->looked, two = c->type->dtype == GP_C64 ? 2 : 1;
    double lost = chance < NONE ? (double)c->nsame : ((double)c->nsame - chance) / (1 - chance / n);
    lost = ceil(fmax(lost, (double)c->longest) / two);
    gp_fail(errs, GP_E_RUN, st->at, "stage '%s' leaves %s%.0f of the %llu %selements of '%s' unwritten in "
                   "frame %llu%s: they would be what an earlier frame left there. %s, or set 'zero: true', so "
                   "that they are 0", st->name, chance < NONE ? "" : "about ", lost,
                   (unsigned long long)(n / two), c->n < c->all ? "sampled " : "", st->out_name[c->out],
                   (unsigned long long)f, which, how);
}
