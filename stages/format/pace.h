/* pace.h - sources that make frames at a rate. */
#pragma once

#include "gpipe/stage.h"

/* Frame i is due at t0 + (i - from) / rate; from: gp_open has it; t0 is when a frame was asked for first (0: none was).
 * Zeroed before first use. All workers of a stage share one. */
typedef struct gp_pace { _Atomic int64_t t0; uint64_t from; } gp_pace;

/* May frame `index` be made? GP_OK; GP_STOPPED; or, when it would have to wait
 * and is not the `first` of its run, GP_AGAIN. `rate` in Hz, 0: any time. */
gp_status gp_pace_wait(gp_pace *p, gp_call *c, double rate, uint64_t index, bool first);
