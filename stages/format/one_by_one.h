/* one_by_one.h - sources and sinks whose frames come and go one by one, as over a network. */
#pragma once

#include "gpipe/stage.h"

/* run() of a kind: `one` makes or takes a frame, and returns its status. It waits for the `first` of a call alone; another
 * that would have to wait is GP_AGAIN. */
bool gp_one_by_one(gp_call *c, gp_frame *f, int n, bool is_sink, gp_status (*one)(gp_call *c, gp_frame *f, bool first));

/* Warns of what did not come as it should, if there was any: "`of` 3 late; 1 of another length". */
typedef struct gp_oddity { uint64_t n; const char *what; } gp_oddity;
void gp_warn_of(const gp_call *c, gp_loc at, const char *of, const gp_oddity *odd, size_t n);
