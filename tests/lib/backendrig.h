/* backendrig.h - a back end under test, driven without the executor. A test starts it with one
 * of the two start functions, whose argument is the back end's: 0 cpu, 1 cuda. */
#pragma once

#include "device/backend.h"
#include "suite.h"

enum { STREAMS = 4 };

extern const gp_backend *be;
extern gp_dev *be_dev;
extern gp_errs be_errs;
extern bool be_gpu;                /* it is CUDA */
extern gp_priority be_priority[STREAMS];       /* of the streams that a start function makes; 0: normal */
extern int be_steps;               /* of `slow`: about a millisecond */
extern const gp_kernel *be_add, *be_slow, *be_carry;

const char *be_said(void);
#define OK(x) ck_assert_msg((x), "%s: %s", #x, be_said())

/* A fixture of a suite: a folder for the kernels' source and their cache. */
void be_set_up(void);
/* How many back ends there are to test. */
int be_count(bool have_gpu);
const gp_backend *be_of(int which);

void be_start(int which);
void be_start_kernels(int which);  /* with the three kernels above */
void be_stop(void);                /* gives back what be_alloc and be_build made; no error is left */
void *be_alloc(bool device, size_t bytes);
void be_free_last(void);           /* what be_alloc made last */
gp_exec *be_build(gp_body body, void *arg);
bool be_call(gp_rec *r, const gp_kernel *k, unsigned blocks, unsigned threads, void *const *args, int nargs);
void be_finish(int stream);
void be_run_graph(gp_body body, void *arg);
void be_run_direct(gp_body body, void *arg);
double be_seconds(void);

struct be_move { void *dst; const void *src; size_t bytes; };
bool be_move(gp_rec *r, void *arg);        /* a body: copies a struct be_move */
