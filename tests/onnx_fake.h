/* onnx_fake.h - what tests tell the library in ONNX Runtime's place (onnx_fake.c) to do, and what it has done. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { ONNX_FAKE_DIMS = 12, ONNX_FAKE_LOG = 2000 };

/* An input or output of the model. An axis of -1 has the size fixed[] in sessions whose symbols have sizes. */
typedef struct onnx_fake_port {
    const char *name;
    int kind, element;
    size_t ndim;               /* may be more than there are */
    int64_t dim[ONNX_FAKE_DIMS], fixed[ONNX_FAKE_DIMS];
    const char *symbol[ONNX_FAKE_DIMS];
    bool host;                 /* a session on a GPU has it in the host's memory */
} onnx_fake_port;

typedef struct onnx_fake {
    const char *version;       /* "1.23.0" */
    unsigned newest;           /* the newest table that it has */
    const onnx_fake_port *in, *out;    /* of every file; NULL: x is doubled to y, both f32 ["N", 4] */
    int nin, nout;
    int cuda;                  /* it was built with the provider */
    const char *fails;         /* the function that fails, by its name in gp_ort; or NULL */
    int after;                 /* calls of it that do not */
    const char *says;          /* the text of its failure */
    int live;                  /* what was made and not released */
    int tensors;               /* that were made */
    int threads;               /* that the last session was told to use */
    int runs;                  /* of a session on a GPU, */
    int waits;                 /* ... that were not told not to wait */
    char log[ONNX_FAKE_LOG];   /* what concerns the GPU, but for runs: "NAME ARGUMENTS; " each */
} onnx_fake;
