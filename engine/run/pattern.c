/* pattern.c - the elements of an output that nobody wrote, see pattern.h.
 *
 * An element that has the pattern's value was not written, or was written with that value by chance. A stage that
 * can compute the frame again does so over other patterns until no such element is left or chance is ruled out. One
 * that runs once has more of them than chance explains, in all, side by side, or at an edge, which is what filters
 * forget; else the next frames are looked at over other patterns, as what a stage forgets it forgets in each.
 * Of a large frame samples are looked at. */
#include <math.h>
#include <string.h>
#include "run/pattern.h"

enum { SAMPLE = 1 << 20, BLOCK = 512 };     /* bytes: of a sample at most; that are looked at together */

/* So likely is it at most that an error is told by mistake, of a stage that can compute a frame again, and by each
 * question that is asked of one that cannot. */
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
        *s = (gp_sample){ last ? from + len - most : from, len < most ? len : most, 0, c->n };
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

static void clear(gp_pattern *c, uint64_t bit, uint64_t n)
{
    for (uint64_t k = bit; c->same && k < bit + n; k++)
        c->same[k / 8] &= (unsigned char)~(1u << k % 8);
}

/* Has an element the pattern's value again, as it had each time? */
static bool is_same(gp_pattern *c, uint64_t bit, bool now)
{
    if (!now)
        clear(c, bit, 1);
    return now && (!c->same || c->same[bit / 8] >> bit % 8 & 1);
}

/* Element e of the frame has the pattern's value. */
static void count_edges(gp_pattern *c, uint64_t e)
{
    uint64_t n = (uint64_t)gp_count(&c->is), step = n, at = e / (gp_bytes(&c->is) / c->size / n);
    for (int d = 0; d <= c->is.ndim; d++) {
        uint64_t dim = d < c->is.ndim ? (uint64_t)c->is.dim[d] : n;
        step = d < c->is.ndim ? step / dim : 1;
        for (int last = 0; last < 2; last++) {
            gp_edge *edge = &c->edge[d][last];
            if (at / step % dim == (last ? dim - 1 : 0) && !edge->n++)
                edge->first = e;
        }
    }
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
        if (!hits)
            clear(c, s->bit + j, (uint64_t)len);
        for (int k = 0; hits && k < len; k++) {
            uint64_t e = j + (uint64_t)k;
            run = is_same(c, s->bit + e, same[k]) ? run + 1 : 0;
            if (run && !c->nsame++)
                c->first = s->from + e;
            if (run && (!c->same || c->frames))
                count_edges(c, s->from + e);
            if (run > c->longest)
                c->longest = run, c->begin = s->from + e + 1 - run;
        }
        run = hits ? run : 0;
    }
    clear(c, s->bit + n, s->n - n);
    c->looked += n;
}

/* The logarithm of the probability that an element has the pattern's value by chance, each time. */
static double log_chance(const gp_pattern *c)
{
    return -(double)c->size * log(256) * (c->same ? c->turn : 1);
}

/* How many elements have it. */
static double by_chance(const gp_pattern *c)
{
    return (double)c->looked * exp(log_chance(c));
}

/* Are n of `all` elements more than chance explains, which has `ways` to come about? Chernoff's bound of the binomial
 * distribution. */
static bool are_too_many(const gp_pattern *c, double n, double all, double ways)
{
    double share = n / all, chance = exp(log_chance(c));
    if (share <= chance)
        return false;
    double rest = share < 1 ? (1 - share) * (log1p(-share) - log1p(-chance)) : 0;
    return log(ways) - all * (share * (log(share) - log_chance(c)) + rest) < log(ONCE);
}

/* Are there more side by side? */
static bool are_too_long(const gp_pattern *c)
{
    return c->longest && log((double)c->looked) + (double)c->longest * log_chance(c) < log(ONCE);
}

/* The edge that has too many; NULL: none. */
static const gp_edge *too_many_edge(const gp_pattern *c)
{
    double parts = (double)(gp_bytes(&c->is) / c->size);
    for (int k = 0; k < 2 * (c->is.ndim + 1); k++) {
        const gp_edge *edge = &c->edge[k / 2][k % 2];
        double dim = k / 2 < c->is.ndim ? (double)c->is.dim[k / 2] : (double)gp_count(&c->is);
        if (are_too_many(c, (double)edge->n, parts / dim, 2 * (c->is.ndim + 1)))
            return edge;
    }
    return NULL;
}

void gp_pattern_begin(gp_pattern *c)
{
    c->turn = 0;
    if (c->same)
        memset(c->same, 0xff, (c->n + 7) / 8);
}

int gp_pattern_look(gp_pattern *c, const void *data, const gp_type *is)
{
    uint64_t end = gp_bytes(is) / c->size;
    c->is = *is;
    c->looked = c->nsame = c->longest = 0;
    memset(c->edge, 0, sizeof c->edge);
    for (int i = 0; i < c->nsamples && c->sample[i].from < end; i++) {
        uint64_t n = end - c->sample[i].from;
        look_at_sample(c, i, n < c->sample[i].n ? n : c->sample[i].n, data);
    }
    c->turn++;
    if (!c->nsame)
        return 1;
    if (c->same && !c->frames)
        return by_chance(c) < AGAIN ? -1 : 0;
    bool lost = are_too_many(c, (double)c->nsame, (double)c->looked, 1) || are_too_long(c) || too_many_edge(c);
    return lost ? -1 : !c->same;
}

int64_t gp_pattern_behind(const gp_pattern *c, const void *data, size_t from)
{
    block b;
    for (int i = 0; i < c->nsamples; i++) {
        size_t begin = c->sample[i].from * c->size, bytes = c->sample[i].n * c->size;
        const unsigned char *is = (const unsigned char *)data + c->sample[i].at * c->size;
        for (size_t j = from > begin ? from - begin : 0; j < bytes; j++) {
            if (j % BLOCK == 0 || begin + j == from)
                pattern(&b, j / BLOCK, i, c->turn);
            if (is[j] != b.u8[j % BLOCK])
                return (int64_t)(begin + j);
        }
    }
    return -1;
}

void gp_index_text(const gp_type *t, uint64_t e, char text[GP_INDEX_TEXT])
{
    uint64_t n = (uint64_t)gp_count(t);
    int used = 0;
    *text = 0;
    for (int d = 0; d < t->ndim; d++) {
        n /= (uint64_t)t->dim[d];
        used += snprintf(text + used, (size_t)(GP_INDEX_TEXT - used), "%s%llu", d ? ", " : "", (unsigned long long)(e / n));
        e %= n;
    }
}

/* The same of an element as patterns have them. */
static void part_text(const gp_pattern *c, uint64_t e, char text[GP_INDEX_TEXT])
{
    gp_index_text(&c->is, e / (gp_bytes(&c->is) / c->size / (uint64_t)gp_count(&c->is)), text);
}

void gp_pattern_fail(const gp_pattern *c, uint64_t f, const char *base, const char *how, gp_errs *errs)
{
    const gp_stage *st = c->stage;
    char index[GP_INDEX_TEXT] = "", which[GP_INDEX_TEXT + 60] = "", before[40] = "";
    double chance = c->same && !c->frames ? 0 : by_chance(c);
    const gp_edge *edge = chance < NONE || are_too_long(c) ? NULL : too_many_edge(c);
    part_text(c, chance < NONE ? c->first : edge ? edge->first : c->begin, index);
    if (chance < NONE || edge || are_too_long(c))
        snprintf(which, sizeof which, ", such as [%s]%s", index, base);
    if (c->frames && c->turn > 1)
        snprintf(before, sizeof before, " and %d before it", c->turn - 1);
    double n = (double)c->looked, two = c->type->dtype == GP_C64 ? 2 : 1;
    double lost = chance < NONE ? (double)c->nsame : ((double)c->nsame - chance) / (1 - chance / n);
    lost = ceil(fmax(lost, edge ? (double)edge->n : (double)c->longest) / two);
    gp_fail(errs, GP_E_RUN, st->at, "stage '%s' leaves %s%.0f of the %llu %selements of '%s' unwritten in "
                   "frame %llu%s%s: they would be what an earlier frame left there. %s, or set 'zero: true', so "
                   "that they are 0", st->name, chance < NONE ? "" : "about ", lost,
                   (unsigned long long)(n / two), c->n < c->all ? "sampled " : "", st->out_name[c->out],
                   (unsigned long long)f, before, which, how);
}
