/* luarig.h - a Lua stage, compiled as a pipeline would, then driven by hand, frame
 * by frame, on memory of the test's own. */
#pragma once

#include "api/forms.h"
#include "base/filetable.h"
#include "device/machine.h"
#include "suite.h"
#include "run/run.h"

enum { PORTS = 2, CREW = 4 };

typedef struct rig {
    const char *dir;
    gp_arena arena;
    gp_registry *registry;
    const gp_graph *graph;
    const gp_stage *stage;
    gp_errs errs;
    gp_filetable *files;
    void *state;
    gp_type in_type[PORTS], out_type[PORTS];
    gp_run run;
    gp_actorrt actor;
    gp_threadrt thread;            /* what gp_cancelled and gp_working_on look at */
} rig;

typedef struct frame {
    gp_frame f;
    gp_view in[PORTS], out[PORTS];
} frame;

/* What most scripts get: 16 bytes, and a second port of them; as many elements as LuaJIT
 * compiles a loop for. A script that is one function. */
#define X16 "{dtype: u8, shape: [16]}"
#define HOT "{dtype: f32, shape: [1024]}"
#define TWO "\n  x2: {dtype: u8, shape: [16]}"
#define TWO_OUT "\n  y2: {dtype: u8, shape: [16]}"
#define P(body) "function process(f, x, y) " body " end"

/* The stage's shapes; its state is not opened yet. `in` and `out` are declarations as in YAML, "{dtype: u8, shape:
 * [4]}", NULL for none, two with "x2: " or "y2: " on a line of its own; `more` are further options; `script` is text,
 * or the name of a file of tests/lua. */
rig *rig_make(const char *in, const char *out, const char *more, const char *script);
bool rig_open_state(rig *r);
/* Both; fails the test on errors. */
rig *rig_opened(const char *in, const char *out, const char *more, const char *script);
void rig_free(rig *r);

/* Memory of exactly a frame's size, so that the sanitizer sees a byte too many. Input
 * element i is i + 1, c64: (i + 1, -(i + 1)). valid: rows of a partial frame, or -1. */
frame *rig_frame(rig *r, uint64_t index, int64_t valid);
void rig_frame_free(frame *f);
/* Sets element i to first + i. */
void rig_fill(gp_view *v, double first);

void rig_run_frames(rig *r, int worker, gp_frame *f, int n, gp_errs *errs);
gp_status rig_run(rig *r, int worker, frame *f, gp_errs *errs);
/* Runs frames first .. first + n - 1, or until one is not whole; its status. */
gp_status rig_run_all(rig *r, uint64_t first, int n);
const char *rig_error(const gp_errs *errs);
