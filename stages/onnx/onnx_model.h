/* onnx_model.h - a model as a stage sees it: what its inputs and outputs are, and how their axes follow from frames
 * (onnx_model.c). */
#ifndef GP_ONNX_MODEL_H
#define GP_ONNX_MODEL_H

#include "gpipe/stage.h"
#include "ort_library.h"

/* An input or output of a model. Axis k has dim[k] elements; -1: as many as frames have, or as follows from them, and
 * then its name is symbol[k], or "". */
typedef struct gp_onnx_port {
    const char *name;
    int element;               /* GP_ORT_F32, ... */
    gp_dtype dtype;
    int ndim;                  /* 0: one element, of frames [1] */
    int64_t dim[GP_MAXDIM];
    const char *symbol[GP_MAXDIM];
    const char *refused;       /* why no buffer can hold it: "is a sequence"; or NULL */
} gp_onnx_port;

typedef struct gp_onnx_ports { int n; gp_onnx_port *port; } gp_onnx_ports;

/* Where an axis of an output comes from: axis `of` of input `input`; -1: it has `size` elements in each frame. */
typedef struct gp_onnx_axis { int input, of; int64_t size; } gp_onnx_axis;

typedef struct gp_onnx_output { gp_onnx_port port; gp_onnx_axis axis[GP_MAXDIM]; } gp_onnx_output;

/* Inputs and outputs of a stage, in its order. */
typedef struct gp_onnx_bound {
    int nin, nout;
    gp_onnx_port *in;
    gp_onnx_output *out;
} gp_onnx_bound;

typedef struct gp_onnx_opts {
    const char *model;
    int provider;
    int64_t threads;
    gp_onnx_bound *bound;      /* shape()'s */
} gp_onnx_opts;

/* An open model; all is NULL at first. */
typedef struct gp_onnx_session { void *env, *session; } gp_onnx_session;

/* Opens it, to run with so many threads, or with 0 only to look at it; symbols that inputs bind have their sizes where
 * `in` is not NULL. False: `why` says why not. */
bool gp_onnx_open(const gp_ort *l, const gp_onnx_opts *o, int threads, const gp_type *in, gp_onnx_session *to,
                  char why[GP_WHY]);
void gp_onnx_close(const gp_ort *l, gp_onnx_session *s);

/* For shape(): opens the model, finds the ports of the stage, and says what its outputs are. */
bool gp_onnx_bind(gp_shape *s, const gp_ort *l);

/* In a partial call: the types of outputs. */
bool gp_onnx_smaller(gp_shape *s);

#endif
