/* onnx_fake.h - what tests tell the library in ONNX Runtime's place (onnx_fake.c) to do, and what it has done. */
#ifndef ONNX_FAKE_H
#define ONNX_FAKE_H

typedef struct onnx_fake {
    const char *version;       /* "1.23.0" */
    unsigned newest;           /* the newest table that it has */
    const char *fails;         /* the function that fails, by its name in gp_ort; or NULL */
    int after;                 /* calls of it that do not */
    const char *says;          /* the text of its failure */
    int live;                  /* what was made and not released */
    int tensors;               /* that were made */
    int threads;               /* that the last session was told to use */
} onnx_fake;

#endif
