/* world.h - texts through parse and resolve, with stage kinds that do nothing, for
 * tests of the graph. One world a process. */
#pragma once

#include "api/forms.h"
#include "device/machine.h"
#include "suite.h"

/* The options of most kinds. */
struct opts {
    int64_t n, wait;
    double f;
    bool b;
    const char *s, *file;
    int word;
    gp_dtype dtype;
    gp_ints ints;
    gp_floats floats;
    const gp_node *node;
};

extern struct world {
    gp_arena arena;
    gp_registry *registry;
    gp_machine machine;        /* no device, unless the test changes it */
    gp_probe probe;
    gp_errs errs;              /* of the last text */
    int looks;                 /* at files and lists of files */
} world;

void world_up(void);
void world_down(void);

/* The graph, NULL after errors; world_must fails the test on them. */
const gp_graph *world_resolve_file(const char *text, const char *file);
const gp_graph *world_resolve(const char *text);
const gp_graph *world_must(const char *text);

/* By name; fails the test when there is none. */
const gp_buffer *world_buffer(const gp_graph *g, const char *name);
const gp_stage *world_stage(const gp_graph *g, const char *name);
