/* paper.h - costs made by hand, of plans that are compiled (verdictrig.h), and what they are as a report tells them. */
#pragma once

#include "simulate/simulate.h"
#include "verdictrig.h"

enum { MIB = 1 << 20, PAPER_FRAMES = 4800 };

#define DEPTH(n) "depth: " #n "\n"
#define BIG "buffers: {g: {dtype: f32, shape: [262144]}}\nstages:\n  - {use: generate, out: g, frames: 9}\n"
#define KERNEL "  - {name: k, use: scale, a: 2}\n"

/* `like`, with costs of all stages (sources make PAPER_FRAMES, and nothing takes time) and of each segment. Where
 * `like` does not say so there are 64 cores, and devices copy 1 MiB in 1 ms each way, and from one to another. */
gp_costs paper_costs(const gp_plan *plan, gp_costs like, gp_segment_cost segment);
/* Simulates it all. Fails the test on errors, and where a stage is idle for longer than it is busy in all. */
gp_simulated *paper_simulate(const gp_plan *plan, const gp_costs *costs, const char *what);
/* What the report of a simulation says of its costs, as that of a run. Fails the test on errors. */
const gp_costs *paper_again(const gp_pipeline *p, gp_simulated *s, const char *what);
