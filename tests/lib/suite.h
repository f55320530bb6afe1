/* suite.h - a test is in the suite of its file by being there: it is named once, and listed nowhere.
 *
 *   TEST(name) { ... }                          one
 *   TEST_EACH(name, table) { ... }              for each row of an array, table[_i]
 *   TEST_LOOP(name, from, to) { ... }           for each _i in [from, to)
 *   TEST_SOME(name, n, quick, all) { ... }      for some _i in [0, n): one in `quick`, or in `all` (every.h)
 *   TEST_EFFORT(name, n) { ... }                as TEST_LOOP from 0: how work grows with size (effort.h)
 *   TEST_THIN(name, n, of) { ... }              the same, one in `every` that suite_fill is given, or in its `of`-th part
 *   TEST_CASE(name, up, down, seconds)          those behind it have these fixtures, and may take so long
 *   TEST_SUITE(name, up, down, seconds)         at the end of test_NAME.c; the fixtures of those before any TEST_CASE
 *   SUITE(name, ...)                            the same; what follows the name adds to `tc` what else there is
 *
 * What nearly every suite needs of the C library comes with it.
 * Fixtures run around each test, in its process, and may be NULL; seconds 0: as other suites. */
#pragma once

#include <check.h>
#include <stdio.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "gpipe/err.h"

typedef struct suite_item {
    const TTest *test;         /* NULL: a TEST_CASE */
    int line, from, to, quick, all, of;
    bool effort;               /* in a case of this name */
    SFun up, down;
    double seconds;
    struct suite_item *next;
} suite_item;

/* printf into a text of its own, which stays until the process ends. */
char *format(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* As ck_assert_msg, in loops over many elements: that notes each time where it is, which takes longer than what is
 * tested. */
#define ck_each(ok, ...) do { if (!(ok)) ck_abort_msg(__VA_ARGS__); } while (0)
/* A millisecond, between two looks at what is waited for. */
void nap(void);
/* Memory that is freed where the variable ends: OWNED char *text = pipe_read(dir, "out.csv", &n); */
#define OWNED __attribute__((cleanup(suite_free)))
void suite_free(void *variable);
/* The first error has this text, or has it in its text, and the line as its place. */
void first_error_is(const gp_errs *errs, int line, const char *text);
void first_error_has(const gp_errs *errs, int line, const char *part);
/* The path of a file beside the tests' program. */
char *suite_beside(const char *name);
/* Loads NAME.so from there, a library that stands in, which is found by its name from then on: its NAME_does. */
void *suite_fake(const char *name);

/* By line: constructors of a file run in any order. */
void suite_add(suite_item **list, suite_item *item);
Suite *suite_make(const char *name, SFun up, SFun down, double seconds, const suite_item *list);
/* To a case that another made; there may be no TEST_CASE. */
void suite_fill(TCase *tc, const suite_item *list, int every);

static suite_item *suite_items __attribute__((unused));       /* of this file */

#define SUITE_ITEM(name, ...) \
    __attribute__((constructor)) static void name##_is_there(void) \
    { \
        static suite_item this_item; \
        this_item = (suite_item){ .line = __LINE__, __VA_ARGS__ }; \
        suite_add(&suite_items, &this_item); \
    }
/* So much more memory may be taken from now on. False: no limit is set, as sanitizers take terabytes of addresses. */
bool suite_leave_memory(size_t bytes);

#define TEST_ITEM(name, ...) \
    static const TTest *name; \
    SUITE_ITEM(name, .test = name, __VA_ARGS__) \
    START_TEST(name)
#define TEST(name) TEST_ITEM(name, .to = 1)
#define TEST_LOOP(name, first, end) TEST_ITEM(name, .from = (first), .to = (int)(end))
#define TEST_EACH(name, table) TEST_LOOP(name, 0, sizeof (table) / sizeof *(table))
#define TEST_EFFORT(name, n) TEST_ITEM(name, .to = (int)(n), .effort = true)
#define TEST_SOME(name, n, one_in, of_all) TEST_ITEM(name, .to = (int)(n), .quick = (one_in), .all = (of_all))
#define TEST_THIN(name, n, part) TEST_ITEM(name, .to = (int)(n), .of = (part))
#define TEST_CASE(name, set_up, tear_down, limit) \
    SUITE_ITEM(name, .up = (set_up), .down = (tear_down), .seconds = (limit))
#define TEST_SUITE(name, set_up, tear_down, limit) \
    Suite *suite_##name(void); \
    Suite *suite_##name(void) \
    { \
        return suite_make(#name, set_up, tear_down, limit, suite_items); \
    }
#define SUITE(name, ...) \
    Suite *suite_##name(void); \
    Suite *suite_##name(void) \
    { \
        Suite *s = suite_create(#name); \
        TCase *tc = tcase_create(#name); \
        suite_add_tcase(s, tc); \
        __VA_ARGS__; \
        suite_fill(tc, suite_items, 1); \
        return s; \
    }
