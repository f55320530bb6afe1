/* thread.h - the one place where threads are started. */
#pragma once

#include <pthread.h>

/* As pthread_create. The stack has room for what gpipe and its libraries need, however little `ulimit -s` gives. */
int gp_thread_start(pthread_t *id, void *(*f)(void *), void *arg);

/* Where handlers of signals run on this thread, if it has no place for that yet, so that they can when its stack is
 * full; gp_thread_start gives its threads one. `room` is there as long as the thread. */
enum { GP_SIGNAL_STACK = 1 << 16 };
void gp_thread_signals(char room[GP_SIGNAL_STACK]);
