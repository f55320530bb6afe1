/* planned.h - compiles pipelines of stage kinds that do nothing, for tests of the passes over plans.
 *
 *   src    a host source of u8 [size]               options: size
 *   host   a host stage, any number of inputs; its output is like the first
 *   fill   the same, whose output is in device memory: two workers, 8 frames at once
 *   dev    the same on the device; options: info, scratch, state, table
 *   box    as dev, of frames that differ in shape it says that of each
 *   two    a device stage with two outputs
 *   all    a host stage in which all ranks take part
 *   sink   a host stage without outputs
 *   group, split, window, decimate, hold, mix, reduce: as they are */
#pragma once

#include "api/forms.h"
#include "device/machine.h"
#include "suite.h"

typedef struct planned {
    gp_pipeline *pipeline;     /* NULL after errors */
    const gp_graph *graph;
    gp_plan *plan;             /* may be changed by the test */
    gp_machine machine;
    gp_errs errs;
} planned;

/* For a machine with one CUDA device, or with none; `file` is its name in
 * messages. plan_ok fails the test on errors. */
planned plan_yaml(const char *yaml, const char *file, bool cuda);
planned plan_ok(const char *yaml, bool cuda);
/* The same of the first of so many ranks. */
planned plan_ranks(const char *yaml, const char *file, bool cuda, int ranks);
/* The same for a machine of one's own. */
planned plan_on(const char *yaml, const char *file, const gp_machine *machine);
/* Frees one before the end of the test's process, which frees all. */
void plan_free(gp_pipeline *pipeline);

int plan_stage(const planned *p, const char *name);
int plan_buffer(const planned *p, const char *name);
/* Which segment a stage is in, -1: on the host. */
int plan_segment(const planned *p, const char *stage);
/* How many tasks are of a kind. */
int plan_tasks(const planned *p, gp_task_kind op);
/* The first ring of a buffer on a side, -1: none. */
int plan_ring(const planned *p, const char *buffer, bool device);
