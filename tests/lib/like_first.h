/* like_first.h - shape() of many kinds in tests: all outputs are as the first input. */
#ifndef TEST_LIKE_FIRST_H
#define TEST_LIKE_FIRST_H

#include <gpipe/stage.h>

static inline bool like_first(gp_shape *s)
{
    for (int i = 0; i < s->nout; i++)
        s->out[i] = s->in[0];
    return true;
}

#endif
