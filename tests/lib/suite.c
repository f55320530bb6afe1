/* suite.c - see suite.h. */
#include <dlfcn.h>
#include <pthread.h>
#include <stdarg.h>
#include <sys/resource.h>
#include "every.h"
#include "pipe.h"
#include "suite.h"

char *format(const char *fmt, ...)
{
    static struct kept { struct kept *before; char text[]; } *kept;    /* all are reachable: no leak */
    static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    va_list ap, again;
    va_start(ap, fmt);
    va_copy(again, ap);
    int n = vsnprintf(NULL, 0, fmt, again);
    struct kept *k = malloc(sizeof *k + (size_t)n + 1);
    ck_assert(n >= 0 && k);
    vsnprintf(k->text, (size_t)n + 1, fmt, ap);
    va_end(again);
    va_end(ap);
    pthread_mutex_lock(&mutex);
    k->before = kept, kept = k;
    pthread_mutex_unlock(&mutex);
    return k->text;
}

void nap(void)
{
    usleep(1000);
}

void suite_free(void *variable)
{
    void *memory;
    memcpy(&memory, variable, sizeof memory);
    free(memory);
}

void first_error_is(const gp_errs *errs, int line, const char *text)
{
    ck_assert_int_gt(errs->n, 0);
    ck_assert_str_eq(errs->e[0].msg, text);
    ck_assert_int_eq(errs->e[0].at.line, line);
}

void first_error_has(const gp_errs *errs, int line, const char *part)
{
    ck_assert_int_gt(errs->n, 0);
    ck_assert_msg(strstr(errs->e[0].msg, part), "'%s' is not in: %s", part, errs->e[0].msg);
    ck_assert_int_eq(errs->e[0].at.line, line);
}

char *suite_beside(const char *name)
{
    char path[4096];
    ssize_t n = readlink("/proc/self/exe", path, sizeof path - 1);
    ck_assert_int_gt(n, 0);
    path[n] = 0;
    return format("%.*s/%s", (int)(strrchr(path, '/') - path), path, name);
}

void *suite_fake(const char *name)
{
    void *dl = dlopen(suite_beside(format("%s.so", name)), RTLD_NOW | RTLD_LOCAL);
    ck_assert_msg(dl != NULL, "%s", dlerror());
    void *does = dlsym(dl, format("%s_does", name));
    ck_assert_ptr_nonnull(does);
    return does;
}

void suite_add(suite_item **list, suite_item *item)
{
    while (*list && (*list)->line < item->line)
        list = &(*list)->next;
    item->next = *list;
    *list = item;
}

static void add_test(TCase *tc, const suite_item *t, int every)
{
    if (t->quick || t->of)
        ADD_SOME(tc, t->test, t->to, t->of ? (every + t->of - 1) / t->of : tests_every(t->quick, t->all));
    else if (t->to > t->from)
        tcase_add_loop_test(tc, t->test, t->from, t->to);
}

static TCase *add_case(Suite *s, const char *name, SFun up, SFun down, double seconds)
{
    TCase *tc = tcase_create(name);
    if (seconds > 0)
        tcase_set_timeout(tc, seconds);
    tcase_add_checked_fixture(tc, pipe_dirs_begin, pipe_dirs_end);     /* this one ends behind the other */
    tcase_add_checked_fixture(tc, up, down);
    suite_add_tcase(s, tc);
    return tc;
}

Suite *suite_make(const char *name, SFun up, SFun down, double seconds, const suite_item *list)
{
    Suite *s = suite_create(name);
    const suite_item *of = &(suite_item){ .up = up, .down = down, .seconds = seconds };
    TCase *tc = add_case(s, name, up, down, seconds);
    for (const suite_item *t = list; t; t = t->next)
        if (t->test)
            add_test(t->effort ? add_case(s, "effort", of->up, of->down, of->seconds) : tc, t, 1);
        else
            of = t, tc = add_case(s, name, t->up, t->down, t->seconds);
    return s;
}

void suite_fill(TCase *tc, const suite_item *list, int every)
{
    for (; list; list = list->next)
        add_test(tc, list, every);
}

bool suite_leave_memory(size_t bytes)
{
    size_t pages = 0;
    FILE *f = fopen("/proc/self/statm", "r");
    bool known = f && fscanf(f, "%zu", &pages) == 1;
    if (f)
        fclose(f);
    struct rlimit limit = { pages * (size_t)sysconf(_SC_PAGESIZE) + bytes, RLIM_INFINITY };
    return known && limit.rlim_cur < (rlim_t)1 << 40 && !setrlimit(RLIMIT_AS, &limit);
}
