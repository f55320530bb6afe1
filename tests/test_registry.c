/* test_registry.c - what gp_register lets in. */
#include "gpipe/gpipe.h"
#include "idle.h"
#include "suite.h"

struct opts { int64_t n; double f; const char *s; int e; };

static bool open_idle(const gp_open *o, void **state) { (void)o, (void)state; return true; }
static bool finish_idle(gp_call *c) { (void)c; return true; }
static void save_idle(void *state, gp_saved *s) { (void)state, (void)s; }
static void reserve(gp_call *c, const gp_frame *f) { (void)c, (void)f; }
#define PORTS(...) (const gp_port[]){ __VA_ARGS__, {0} }
#define OPTS(...) .opts = (const gp_opt[]){ __VA_ARGS__, {0} }, .opts_size = sizeof(struct opts)
#define KIND(n, ...) { GP_KIND(n), .help = "for tests", .shape = as_declared, .run = run_idle, __VA_ARGS__ }
#define P(n, a) { .name = n, .accept = a }
#define N GP_INT(struct opts, n), .help = "a number"
#define E GP_ENUM(struct opts, e), .help = "a word"

static const gp_port any[] = { P("in", GP_ACCEPT_ANY), {0} };

static const gp_kind good[] = {
    KIND("plain", .in = any),
    KIND("zebra", .out = any),
    KIND("a_2", .in = PORTS(P("x", GP_ACCEPT_ANY), P("*", GP_ACCEPT_ANY))),
    KIND("ranged", .in = any, OPTS({ N, .def = "3", .min = 1, .max = 3 })),
    KIND("worded", .in = any, OPTS({ E, .choices = "x|y", .def = "y" })),
};

static const struct { gp_kind kind; const char *msg; } bad[] = {
    { { .abi = GP_ABI + 1, .size = sizeof(gp_kind), .name = "x" }, "a stage kind was built for another gpipe" },
    { { .abi = GP_ABI, .size = 8, .name = "x" }, "a stage kind was built for another gpipe" },
    { KIND(NULL, 0), "a kind is named ''" },
    { KIND("two words", 0), "a kind is named 'two words'" },
    { { GP_KIND("x"), .shape = as_declared, .run = run_idle }, "kind 'x' has no help" },
    { { GP_KIND("x"), .help = "h", .run = run_idle }, "kind 'x' has no shape()" },
    { { GP_KIND("x"), .help = "h", .shape = as_declared, .in = any }, "kind 'x' has no run(), nor record() for the device" },
    { { GP_KIND("x"), .help = "h", .shape = as_declared, .in = any, .out = any, .open = open_idle },
      "kind 'x' has no run(), nor record() for the device" },
    { { GP_KIND("x"), .help = "h", .shape = as_declared, .in = any, .out = any, .max_run = 8 },
      "kind 'x' has no run(), nor record() for the device" },
    { { GP_KIND("x"), .help = "h", .shape = as_declared, .in = any, .out = any, .record = record_idle, .finish = finish_idle },
      "kind 'x' has finish() and no run()" },
    { KIND("x", 0), "kind 'x' has neither an input nor an output" },
    { KIND("x", .in = any, .out = any, .save = save_idle), "kind 'x' has save(), but is no sink" },
    { { GP_KIND("x"), .help = "h", .shape = as_declared, .record = record_idle },
      "kind 'x' is a source and has no run()" },
    { KIND("x", .in = any, .out = PORTS(P("a", 0)), .reserve = reserve), "kind 'x' has reserve(), but is no sink with run()" },
    { { GP_KIND("x"), .help = "h", .shape = as_declared, .record = record_idle, .in = any, .reserve = reserve },
      "kind 'x' has reserve(), but is no sink with run()" },
    { { GP_KIND("x"), .help = "h", .shape = as_declared, .record = record_idle, .in = any, .collective = true },
      "kind 'x' is collective, but has no run()" },
    { KIND("x", .in = any, .out = PORTS(P("a", 0)), .one_rank = true), "kind 'x' has one_rank, but is not collective" },
    { KIND("x", .in = any, .out = PORTS(P("a", 0)), .joins = true), "kind 'x' has joins, but is no sink with run()" },
    { KIND("x", .in = PORTS(P("a", GP_ACCEPT_ANY), P("a", GP_ACCEPT_ANY))), "kind 'x' has two input ports 'a'" },
    { KIND("x", .in = PORTS(P("*", GP_ACCEPT_ANY), P("a", GP_ACCEPT_ANY))),
      "kind 'x': '*' is not a valid name for input port 0" },
    { KIND("x", .in = PORTS(P("a", 0))), "kind 'x': the input 'a' accepts no type" },
    { KIND("x", OPTS({ N }, { N })), "kind 'x' has two options 'n'" },
    { KIND("x", .opts = (const gp_opt[]){ { N }, {0} }, .opts_size = 4),
      "kind 'x': option 'n' lies outside of opts_size" },
    { KIND("x", OPTS({ .name = "workers", .type = GP_OPT_INT, .help = "h" })),
      "kind 'x': 'workers' is a key of every stage, and no name for an option" },
    { KIND("x", OPTS({ .name = "q", .help = "h" })), "kind 'x': option 'q' has no type" },
    { KIND("x", OPTS({ GP_INT(struct opts, n) })), "kind 'x': option 'n' has no help" },
    { KIND("x", OPTS({ E })), "kind 'x': option 'e': an enum, and only an enum, has choices" },
    { KIND("x", OPTS({ N, .def = "1", .required = true })), "kind 'x': option 'n' may have no default" },
    { KIND("x", OPTS({ N, .def = "many" })), "kind 'x': the default of option 'n': 'many' is neither a number" },
    { KIND("x", OPTS({ N, .def = "9", .min = 1, .max = 3 })),
      "kind 'x': the default of option 'n': 'n' must be 1 to 3, not 9" },
    { KIND("x", OPTS({ E, .choices = "x|y", .def = "z" })),
      "kind 'x': the default of option 'e': 'e' must be one of x, y, not 'z'" },
};

TEST_EACH(refuses, bad)
{
    gp_registry *r = gp_registry_create();
    gp_errs errs = {0};
    ck_assert(!gp_register(r, &bad[_i].kind, &errs));
    ck_assert_int_eq(errs.n, 1);
    ck_assert_msg(!strncmp(errs.e[0].msg, bad[_i].msg, strlen(bad[_i].msg)), "%s\nnot %s", errs.e[0].msg, bad[_i].msg);
    ck_assert_ptr_null(gp_kind_at(r, 0));
    gp_registry_destroy(r);
}

TEST(finds)
{
    enum { COUNT = sizeof good / sizeof *good };
    static const char *const sorted[] = { "a_2", "plain", "ranged", "worded", "zebra" };
    gp_registry *r = gp_registry_create();
    gp_errs errs = {0};
    for (int i = 0; i < COUNT; i++)
        ck_assert_msg(gp_register(r, &good[i], &errs), "%s", errs.e[0].msg);
    for (int i = 0; i < COUNT; i++) {
        const gp_kind *k = gp_kind_find(r, good[i].name);
        ck_assert(k && k != &good[i] && !memcmp(k, &good[i], sizeof *k));
        ck_assert_str_eq(gp_kind_at(r, i)->name, sorted[i]);
    }
    ck_assert_ptr_null(gp_kind_at(r, COUNT));
    ck_assert_ptr_null(gp_kind_at(r, -1));
    ck_assert_ptr_null(gp_kind_find(r, "plai"));
    ck_assert_ptr_null(gp_kind_find(r, "zz"));
    ck_assert(!gp_register(r, &good[0], &errs));
    ck_assert_str_eq(errs.e[0].msg, "there is a kind 'plain' already");
    gp_registry_destroy(r);
}

/* A kind that an older gpipe's header knew less of, and one that a newer one's knows
 * more of, as gp_kind grows at its end. */
TEST(other_sizes)
{
    struct longer { gp_kind kind; void *more; } longer = { KIND("longer", .in = any), NULL };
    gp_kind shorter = KIND("shorter", .in = any);
    gp_registry *r = gp_registry_create();
    gp_errs errs = {0};

    shorter.size = offsetof(gp_kind, advise);
    shorter.advise = (void (*)(gp_advice *))(uintptr_t)1;      /* behind its end */
    longer.kind.size = sizeof longer;
    ck_assert_msg(gp_register(r, &shorter, &errs), "%s", errs.e[0].msg);
    ck_assert_msg(gp_register(r, &longer.kind, &errs), "%s", errs.e[0].msg);
    const gp_kind *k = gp_kind_find(r, "shorter");
    ck_assert(k && k->size == sizeof *k && k->run == run_idle && !k->advise);
    ck_assert(gp_kind_find(r, "longer"));

    longer.kind.name = "longest", longer.more = &longer;
    ck_assert(!gp_register(r, &longer.kind, &errs));
    ck_assert_msg(strstr(errs.e[0].msg, "'longest' uses something that this gpipe does not have"), "%s", errs.e[0].msg);
    ck_assert(!gp_kind_find(r, "longest"));
    gp_registry_destroy(r);
}

TEST(builtin_are_sound)
{
    gp_registry *r = gp_registry_create();
    gp_errs errs = {0};
    ck_assert_msg(gp_register_builtin(r, &errs), "%s", errs.e[0].msg);
    ck_assert_int_eq(errs.n, 0);
    ck_assert_ptr_nonnull(gp_kind_find(r, "read"));
    gp_registry_destroy(r);
    gp_registry_destroy(NULL);
}

TEST_SUITE(registry, NULL, NULL, 0)
