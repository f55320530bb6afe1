/* onnx_model.h - a model as a stage sees it: what its inputs and outputs are, and how their axes follow from frames
 * (onnx_model.c). */
#pragma once

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

/* Where an axis of an output comes from: axis `of` of input `input`; -1: it has `size` elements in each frame, or, if
 * it `varies`, that many or fewer. */
typedef struct gp_onnx_axis { int input, of; int64_t size; bool varies; } gp_onnx_axis;

/* `declared`: the model does not tell how large it is, and what is declared has to be compared with what comes. */
typedef struct gp_onnx_output { gp_onnx_port port; gp_onnx_axis axis[GP_MAXDIM]; bool declared; } gp_onnx_output;

/* Inputs and outputs of a stage, in its order. */
typedef struct gp_onnx_bound {
    int nin, nout;
    gp_onnx_port *in;
    gp_onnx_output *out;
} gp_onnx_bound;

enum { GP_ONNX_AUTO, GP_ONNX_CPU, GP_ONNX_CUDA };

typedef struct gp_onnx_opts {
    const char *model;
    int provider;
    int64_t threads;
    int by;                    /* on_device()'s: who computes, GP_ONNX_CPU or GP_ONNX_CUDA; */
    const char *lacks;         /* ... and, where it was to be CUDA, what is not there; or NULL */
    gp_onnx_bound *bound;      /* shape()'s */
} gp_onnx_opts;

/* An open model; all is NULL at first. */
typedef struct gp_onnx_session { void *env, *session; } gp_onnx_session;

/* A CUDA device, as the runtime numbers it, and the stream of it on which a session computes. */
typedef struct gp_onnx_gpu { int index; void *stream; } gp_onnx_gpu;

/* The use of a session: to run with so many threads, or with 0 only to be looked at. */
typedef struct gp_onnx_use {
    int threads;
    const gp_type *in;         /* symbols that inputs bind have the sizes there; NULL: they have none */
    const gp_onnx_gpu *gpu;    /* NULL: it computes on the CPU */
} gp_onnx_use;

/* False: `why` says why not. */
bool gp_onnx_open(const gp_ort *l, const gp_onnx_opts *o, const gp_onnx_use *use, gp_onnx_session *to,
                  char why[GP_WHY]);
void gp_onnx_close(const gp_ort *l, gp_onnx_session *s);

/* Can the library compute on GPU `index`? False: `why` says what it lacks. Loads its provider, and with it the
 * libraries of CUDA. */
bool gp_onnx_has_cuda(const gp_ort *l, int index, char why[GP_WHY]);

/* An error of the stage: ONNX Runtime did not run the model for this frame. */
bool gp_onnx_fail(gp_errs *errs, gp_loc at, const char *name, uint64_t frame, const char *model, const char *why);

/* A tensor over the memory of a frame; all is zero at first. */
typedef struct gp_onnx_tensor { const void *data; gp_type type; void *value; } gp_onnx_tensor;

/* Makes it anew unless it is over this memory already, and of this shape. False: `why` says why not. */
bool gp_onnx_over(const gp_ort *l, const void *memory, const gp_onnx_port *x, const gp_view *v, gp_onnx_tensor *t,
                  char why[GP_WHY]);

/* The state of both begins with this struct, which tells whether the CPU or CUDA computes. */
typedef struct gp_onnx_runner { int by; } gp_onnx_runner;

/* onnx_cuda.c: the same as a stage on a device. */
bool gp_onnx_cuda_open(const gp_open *g, void **state);
void gp_onnx_cuda_close(void *state);
bool gp_onnx_cuda_record(gp_dcall *c);

/* For shape(): opens the model, finds the ports of the stage, and says what its outputs are. */
bool gp_onnx_bind(gp_shape *s, const gp_ort *l);

/* In a partial call: the types of outputs. */
bool gp_onnx_smaller(gp_shape *s);
