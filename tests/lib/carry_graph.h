/* carry_graph.h - graphs with carried buffers: read from words, written as YAML, and computed by a few lines of C.
 *
 * A graph is statements with ';' between. Sources are x and y, which count up from 0 and from 1000, in frames of f32
 * [rows, 3].
 *
 *     v = sum x u          a stage, on the device: sum, diff, mean, hdiff (half the difference) of two buffers;
 *                          scale (a half, and 1 more), copy, slow, wide (to f64 and back), slide N (the largest of a
 *                          whole window) of one; decimate N, hold N, which are where their input is
 *     v = lua sum x u      the same in a script: sum, diff, mean, hdiff, scale, copy, slow
 *     l = lose 3 x         scripts: drops frames 1, 4, 7, ...; `fail 3 x`: fails there; `cap 9 x u`: the sum, and drops
 *                          the frame where the first element of u is 9 or more
 *     u : v                a carried buffer; `u : v 7`, `u : v file`: what it begins with; `u : v splice`
 */
#pragma once

#include "pipe.h"

enum { CARRY_NODES = 24, CARRY_COLS = 3 };

typedef enum carry_fate { CARRY_NEW, CARRY_OK, CARRY_DROPPED, CARRY_FAILED } carry_fate;

typedef struct carry_node {
    char name[8], op[12];                  /* op "": a source; ":": carried */
    int in[2], nin, by;
    bool lua, splice, file;
    double init;
    bool alone;                            /* made of carried buffers only: no source leads here but by way of these */
    int n;                                 /* frames */
    carry_fate *fate; float **frame;
} carry_node;

typedef struct carry_graph {
    gp_arena a;
    carry_node node[CARRY_NODES];
    int count, rows, frames;               /* of a source */
    const char *words;
} carry_graph;

/* What differs between two ways to run one graph. */
typedef struct carry_how {
    const char *knobs;
    int seed;                              /* where types stand, which buffers are written, the order of stages */
} carry_how;

/* Reads `words`, and computes all frames. */
void carry_parse(carry_graph *g, const char *words, int frames, int rows);
void carry_free(carry_graph *g);
carry_node *carry_find(carry_graph *g, const char *name);
/* Frame k of it: computed once. */
carry_fate carry_eval(carry_graph *g, carry_node *b, int k);

/* What stage reads it; -1: none. `carried`: carried buffers count. */
int carry_reader(const carry_graph *g, int of, bool carried);
/* Has it stages that make fewer or more frames? */
bool carry_regroups(const carry_graph *g);
bool carry_has(const carry_graph *g, const char *op);

/* Writes the YAML into `yaml`, and it and its files into `dir`. */
void carry_yaml(carry_graph *g, const char *dir, const carry_how *how, char *yaml, size_t room);
/* Are the files that it wrote what the model says? `what`: for the message where they are not. */
void carry_outputs(carry_graph *g, const char *dir, const carry_how *how, const char *what);
/* What becomes of the frames of a graph's only source. */
gp_account carry_account(carry_graph *g);
