/* one_by_one.h - sources and sinks whose frames come and go one by one, as over a network. */
#pragma once

#include "gpipe/stage.h"

/* run() of a kind, by what one frame becomes: only the `first` may wait, others are GP_AGAIN then. */
bool gp_one_by_one(gp_call *c, gp_frame *f, int n, bool is_sink, gp_status (*one)(gp_call *c, gp_frame *f, bool first));

/* Warns of what came other than it should, where anything did: "`of` 3 late; 1 of another length". */
typedef struct gp_oddity { uint64_t n; const char *what; } gp_oddity;
void gp_warn_of(const gp_call *c, gp_loc at, const char *of, const gp_oddity *odd, size_t n);
