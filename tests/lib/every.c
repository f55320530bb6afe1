/* every.c - see every.h. */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "every.h"

static int number(const char *name, int otherwise)
{
    const char *text = getenv(name);
    return text && *text ? atoi(text) : otherwise;
}

static bool takes_all(void)
{
    const char *text = getenv("GPIPE_TESTS");
    return text && !strcmp(text, "all");
}

int tests_every(int quick, int all)
{
    int every = number("GPIPE_THIN", 0);
    if (getenv("GPIPE_SANITIZED"))
        every /= 15;                   /* on a GPU, as gpu_every() has it */
    return every > 0 ? every : takes_all() ? all : quick;
}

int tests_first(int every)
{
    return (int)((unsigned)number("GPIPE_SEED", 1) % (unsigned)(every > 0 ? every : 1));
}

void tests_say_every(void)
{
    printf("tests: GPIPE_TESTS=%s GPIPE_SEED=%d\n", takes_all() ? "all" : "quick", number("GPIPE_SEED", 1));
    fflush(stdout);
}
