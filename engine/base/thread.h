/* thread.h - the one place where threads are started. */
#ifndef GP_THREAD_H
#define GP_THREAD_H

#include <pthread.h>
#include <stddef.h>

/* As pthread_create. The stack has room for what gpipe and its libraries need, however little `ulimit -s` gives. */
static inline int gp_thread_start(pthread_t *id, void *(*f)(void *), void *arg)
{
    enum { LEAST = 1 << 21 };
    pthread_attr_t a;
    size_t bytes = 0;
    int e = pthread_attr_init(&a);
    if (e)
        return e;
    if (!pthread_attr_getstacksize(&a, &bytes) && bytes < LEAST)
        pthread_attr_setstacksize(&a, LEAST);
    e = pthread_create(id, &a, f, arg);
    pthread_attr_destroy(&a);
    return e;
}

#endif
