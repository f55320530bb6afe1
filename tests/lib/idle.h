/* idle.h - what kinds have in tests that do not look at it. */
#pragma once

#include <gpipe/stage.h>

/* All outputs are as the first input. */
static inline bool like_first(gp_shape *s)
{
    for (int i = 0; i < s->nout; i++)
        s->out[i] = s->in[0];
    return true;
}

/* All outputs are as their buffers say. */
static inline bool as_declared(gp_shape *s)
{
    return true;
}

static inline bool run_idle(gp_call *c, gp_frame *f, int n)
{
    return true;
}

static inline bool record_idle(gp_dcall *c)
{
    return true;
}

static const gp_port idle_any[] = { { "*", GP_ACCEPT_ANY, true, "anything" }, { 0 } };

/* Kinds `give` and `take`, a source of any frames and a sink. */
#define IDLE_GIVE { GP_KIND("give"), .help = "frames as declared", .out = idle_any, .any_shape = true, \
                    .shape = as_declared, .run = run_idle }
#define IDLE_TAKE { GP_KIND("take"), .help = "takes anything", .in = idle_any, .any_shape = true, \
                    .shape = as_declared, .run = run_idle }
