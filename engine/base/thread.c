/* thread.c - see thread.h. */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include "base/thread.h"

typedef struct start { void *(*f)(void *); void *arg; } start;

void gp_thread_signals(char room[GP_SIGNAL_STACK])
{
    stack_t now;
    if (!sigaltstack(NULL, &now) && (now.ss_flags & SS_DISABLE))       /* else a sanitizer's */
        sigaltstack(&(stack_t){ .ss_sp = room, .ss_size = GP_SIGNAL_STACK }, NULL);
}

static void *begin(void *arg)
{
    char room[GP_SIGNAL_STACK];
    start s = *(start *)arg;
    free(arg);
    gp_thread_signals(room);
    return s.f(s.arg);
}

int gp_thread_start(pthread_t *id, void *(*f)(void *), void *arg)
{
    enum { LEAST = 1 << 21 };
    pthread_attr_t a;
    size_t bytes = 0;
    start *s = malloc(sizeof *s);
    int e = s ? pthread_attr_init(&a) : ENOMEM;
    if (!e) {
        *s = (start){ f, arg };
        if (!pthread_attr_getstacksize(&a, &bytes) && bytes < LEAST)
            pthread_attr_setstacksize(&a, LEAST);
        e = pthread_create(id, &a, begin, s);
        pthread_attr_destroy(&a);
    }
    if (e)
        free(s);
    return e;
}
