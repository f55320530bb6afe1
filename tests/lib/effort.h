/* effort.h - how the time that something takes grows with its size, on any machine.
 *
 * CPU time of the calling thread is compared with CPU time of the same, so neither the
 * machine's speed nor who else uses it counts. What is left is chance: what does not hold
 * is tried again many times, which what is quadratic never survives. */
#pragma once

/* Of the calling thread. */
double cpu_seconds(void);

/* work(4 * n) takes at most 10 times as long as work(n): it returns the CPU seconds that count. */
void effort_is_linear(const char *what, double (*work)(int n, void *arg), void *arg, int n);
