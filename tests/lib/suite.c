/* suite.c - see suite.h. */
#include "every.h"
#include "suite.h"

void suite_add(suite_item **list, suite_item *item)
{
    while (*list && (*list)->line < item->line)
        list = &(*list)->next;
    item->next = *list;
    *list = item;
}

static void add_test(TCase *tc, const suite_item *t)
{
    int every = t->quick ? tests_every(t->quick, t->all) : 1;
    if (t->quick)
        ADD_SOME(tc, t->test, t->to, every);
    else if (t->to > t->from)
        tcase_add_loop_test(tc, t->test, t->from, t->to);
}

static TCase *add_case(Suite *s, const char *name, SFun up, SFun down, double seconds)
{
    TCase *tc = tcase_create(name);
    if (seconds > 0)
        tcase_set_timeout(tc, seconds);
    tcase_add_checked_fixture(tc, up, down);
    suite_add_tcase(s, tc);
    return tc;
}

Suite *suite_make(const char *name, SFun up, SFun down, double seconds, const suite_item *list)
{
    Suite *s = suite_create(name);
    TCase *tc = add_case(s, name, up, down, seconds);
    for (const suite_item *t = list; t; t = t->next)
        if (t->test)
            add_test(tc, t);
        else
            tc = add_case(s, name, t->up, t->down, t->seconds);
    return s;
}

void suite_fill(TCase *tc, const suite_item *list)
{
    for (; list; list = list->next)
        if (list->test)
            add_test(tc, list);
}
