/* effort.h - how the work of something grows with its size, on any machine.
 *
 * Instructions are counted, by Valgrind: time in proportion cannot be told from time that grows faster, as what no longer
 * fits into a cache takes three times as long each. 'make check-effort' counts; elsewhere both sizes only run. */
#pragma once

/* CPU time of the calling thread. */
double cpu_seconds(void);

/* effort_end returns the instructions of the process since effort_begin. */
void effort_begin(void);
double effort_end(void);

/* work(4 * n) takes at most 6 times as many as work(n): what is quadratic takes 16 times as many, sorting 5 times. */
void effort_is_linear(const char *what, double (*work)(int n, void *arg), void *arg, int n);
