/* verdictrig.h - reports made by hand, of plans that are compiled, and what is said of them. */
#pragma once

#include "pipe.h"
#include "report/report.h"

enum { ACTORS = 6, WALL = 1000000000, LONG = 1000 };

/* Percent of the run (of one worker); `ms`: of a launch. All others: 0. */
typedef struct times {
    const char *name;
    int busy, idle, in, out, stream, launches, ms, ended;      /* ended 0: with the run */
} times;

typedef struct verdict_case {
    const char *what, *yaml;
    times actor[ACTORS];
    struct { const char *name, *to; double held; } buffer[2];
    struct { int busy, gb, by_kernels; } engine[GP_ENGINES];       /* GB/s; the limit is 50 */
    int on;                    /* with several devices: which one these are of */
    int cpus;                  /* 0: 16 */
    int cpu, others, quota, delayed;   /* percent of one core; 0: not known, none, no limit,
                                          not known */
    bool cuda, estimated;      /* estimated: engines are not measured */
    bool whole;                /* `text` is all of the text */
    int frames;                /* 0: LONG */
    int ranks;                 /* it is the first of so many; 0: it runs alone */
    bool simulated;
    int age;                   /* us from a frame's push to its end: one thread of the program pushes and pulls; 0: none */
    gp_bound bound;
    const char *of;            /* actor, or buffer */
    const char *text, *path, *value;               /* text: a part of it */
} verdict_case;

/* Sources, stages and whole pipelines of many cases; free.lua, keeps.lua, a.png and r.raw are there. NONE: no edit. */
#define SOURCE "  - {use: generate, out: g, frames: 9}\n"
#define G "buffers: {g: {dtype: f32, shape: [1024]}}\nstages:\n" SOURCE
#define FREE "  - {name: clean, use: lua, script: free.lua}\n"
#define END "  - {use: discard}\n"
#define HOST G FREE END
#define PNG(more) "buffers: {g: {dtype: u8, shape: [4, 4]}}\nstages:\n" \
      "  - {use: generate, out: g, frames: 9}\n  - {name: out, use: write, path: '" more "}\n"
#define SCALE G "  - {use: scale, a: 2}\n" END
#define GPU(top) top "buffers: {g: {dtype: f32, shape: [1024, 1024]}}\nstages:\n" \
      SOURCE "  - {use: scale, a: 2}\n  - {use: cast, dtype: u8}\n" END "fuse: none\n"
#define CHAIN "  - {name: a, use: lua, script: free.lua}\n  - {name: b, use: lua, " \
      "script: free.lua}\n" END
#define NONE .path = "", .value = ""

/* For each test, before and after: a folder, kinds, memory. */
void verdict_up(void);
void verdict_down(void);
extern gp_arena verdict_arena;

static inline int64_t percent(int n)
{
    return (int64_t)n * (WALL / 100);
}

/* For a machine with or without a GPU; `set`: of --set, or NULL. Fails the test on errors. */
gp_pipeline *verdict_compile(const char *yaml, const char *set, bool cuda, gp_errs *errs);
/* ... with so many GPUs, for the first of so many ranks; 0: it runs alone. */
gp_pipeline *verdict_compile_for(const char *yaml, const char *set, int ndevices, int ranks, gp_errs *errs);
gp_report *verdict_report(const verdict_case *c, const gp_plan *plan);
/* Is what a case says said of it, and does the file take the edit? */
void verdict_check(const verdict_case *c);
