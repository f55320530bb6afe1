/* why.h - why something failed, as a text that goes on after a name, on its way to gp_fail. */
#pragma once

#include <stdbool.h>

enum { GP_WHY = 320 };                 /* bytes of every `err` and `why` */

/* Always false; errno stays. Of a longer text the middle is left out. */
bool gp_why(char err[GP_WHY], const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

/* Marks in a text, which gp_fail takes out: they make the error GP_E_RESOURCE, the exit code of what the machine is
 * short of. So the code is set where the cause is known, whatever texts it goes through, and no words of others set it:
 * a mark is no UTF-8, and in no message of a compiler or a script but on purpose. */
#define GP_MARK_SHORT "\xff\1\xfe"
#define GP_MARK_FILES "\xff\2\xfe"    /* ... of open files: the limit is told */
#define GP_MARK_THREADS "\xff\3\xfe"  /* ... of threads or processes: their limits are told */

/* As strerror, with a mark for ENOMEM, EMFILE, ENFILE, and EAGAIN, with which threads and processes are refused. Any
 * thread; nothing to free. */
const char *gp_strerror(int e);
#define GP_WHY_MEMORY GP_MARK_SHORT "does not fit in memory"
