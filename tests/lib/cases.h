/* cases.h - tests that run on either back end (tests/lib/NAME_cases.c). Each call adds those of a file to a test
 * case, for `device` ("cpu" or "cuda"), one call per program; of those in a loop every `every`-th, the first by
 * GPIPE_SEED. */
#ifndef TEST_CASES_H
#define TEST_CASES_H

#include "device/backend.h"
#include "suite.h"

void call_cases(TCase *tc, const char *device);        /* stages that call a library from record() */
void carry_cases(TCase *tc, const char *device, int every);    /* carried buffers */
void cooperative_cases(TCase *tc, const char *device); /* cooperative kernels */
void end_cases(TCase *tc, const char *device);         /* how runs end */
/* What comes out of a run; thin: only every n-th combination of the determinism test. */
void exec_cases(TCase *tc, const char *device, int thin);
void fills_cases(TCase *tc, const char *device);       /* host stages that fill the memory of a device */
/* Stages that are fused make the bytes that they make one by one: a thousand random graphs, in steps of `step`. */
void fuse_cases(TCase *tc, const char *device, int step);
void loop_cases(TCase *tc, const char *device, int every);     /* the kind `loop` */
void managed_cases(TCase *tc, const char *device);     /* constants in managed memory */
void matmul_cases(TCase *tc, const char *device);      /* products; with the fixture io_set_up(), io_tear_down() */
void paused_cases(TCase *tc, const char *device);      /* runs that pause and go on under other plans */
void prologue_cases(TCase *tc, const char *device);    /* casts of constants, and stages that read nothing else */
void regroup_cases(TCase *tc, const char *device, int every);  /* stages that change how many frames there are */
void report_cases(TCase *tc, const char *device);      /* what a run says of itself */
void report_rate_cases(TCase *tc);                     /* of these, those of runs that regroup frames */
/* Several devices, 0 and 1 of this kind; peers: frames are copied directly between them. */
void several_cases(TCase *tc, const char *kind, bool peers);
TCase *signal_cases(const char *device);               /* stages that run on from frame to frame */
TCase *stage_cases(const gp_backend *b);               /* what must hold of the device stages */
void stage_cases_agree(const gp_backend *a, const gp_backend *b);      /* the same bits on both */
void unwritten_cases(TCase *tc, const char *device);   /* kernels that leave a part of their outputs */
void varies_cases(TCase *tc, const char *device, int every);   /* frames that differ in shape */

#endif
