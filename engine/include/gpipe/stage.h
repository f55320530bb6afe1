/* stage.h - the contract between the engine and a stage kind.
 *
 * A kind is a constant gp_kind, whose first fields say all that most need. A plug-in with a source, read_adc() aside:
 *
 *   #include <gpipe/stage.h>
 *   struct adc { int64_t channels; };                      // its options
 *   static bool shape(gp_shape *s)                         // before anything runs: what a frame is
 *   {
 *       const struct adc *o = s->opts;
 *       s->out[0] = (gp_type){ GP_F32, 2, { 1024, o->channels } };
 *       return true;
 *   }
 *   static bool run(gp_call *c, gp_frame *f, int n)        // n frames; n is 1 without max_run
 *   {
 *       if (!read_adc(f->out[0].data))
 *           f->status = GP_END;
 *       return true;
 *   }
 *   static const gp_port out[] = { { .name = "out" }, { 0 } };
 *   static const gp_opt opts[] = {
 *       { GP_INT(struct adc, channels), .def = "4", .min = 1, .max = 16, .help = "how many it has" }, { 0 } };
 *   static const gp_kind adc = { GP_KIND("adc"), .help = "samples of the ADC", .out = out, .opts = opts,
 *                                .opts_size = sizeof(struct adc), .shape = shape, .run = run };
 *   GP_PLUGIN("adc", "1.0", &adc);
 *
 *   cc -shared -fPIC adc.c -o adc.so $(pkg-config --cflags gpipe) && gpipe run --plugin ./adc.so p.yaml
 *
 * A filter has `in`, too, and a sink no `out`: s->in[0] is the type of what comes in, f->in[0].data a frame of it.
 * run() writes all elements of its outputs, whose memory has what an earlier frame left there: else it is an error. What
 * must outlive a frame (a file, a socket) is opened by open() and is c->state in run(). A frame that cannot be
 * made is f->status = GP_FAILED, behind gp_fail(c->errs, GP_E_RUN, c->at, "why"); options that make no sense are
 * gp_shape_fail(s, "channels", "why"). Who waits for data waits by gp_wait_or_pause(). Calls of run()
 * come one after the other for a source; others may get several workers unless shape() sets s->serial.
 *
 * `gpipe new plugin NAME` makes a folder with such a file and a test of it (gp_try_stage, gpipe.h). The rest of this
 * header is for kinds that need more: several frames at once, device work, sizes that vary. A program adds kinds by
 * gp_register (gpipe.h); in gpipe's own tree a kind is a file stages/NAME.c with `const gp_kind gp_kind_NAME`. */
#ifndef GP_STAGE_H
#define GP_STAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <gpipe/err.h>
#include <gpipe/node.h>

#pragma GCC visibility push(default)
#ifdef __cplusplus
extern "C" {
#endif

/* ---- data ------------------------------------------------------------ */

/* YAML name, C type, bytes */
#define GP_DTYPES(X)                                                     \
    X(U8, u8, uint8_t, 1)   X(I8, i8, int8_t, 1)                         \
    X(U16, u16, uint16_t, 2) X(I16, i16, int16_t, 2)                     \
    X(U32, u32, uint32_t, 4) X(I32, i32, int32_t, 4)                     \
    X(U64, u64, uint64_t, 8) X(I64, i64, int64_t, 8)                     \
    X(F16, f16, uint16_t, 2) X(F32, f32, float, 4) X(F64, f64, double, 8) \
    X(C64, c64, gp_c64, 8)

typedef struct gp_c64 { float re, im; } gp_c64;

typedef enum gp_dtype {
    GP_NO_DTYPE,
#define X(NAME, name, ctype, bytes) GP_##NAME,
    GP_DTYPES(X)
#undef X
    GP_NDTYPES
} gp_dtype;

enum { GP_MAXDIM = 8, GP_MAXPORT = 16 };

/* What a frame is: packed, row-major, dim[0] outermost (its "rows"). A frame
 * has 1 to GP_MAXDIM axes. In a declaration dtype 0 and ndim 0 mean "not
 * said". */
typedef struct gp_type {
    gp_dtype dtype;
    int ndim;
    int64_t dim[GP_MAXDIM];
} gp_type;

/* One frame of one buffer as a stage sees it. `type` is exact: in a partial
 * frame dim[0] is the number of valid rows. A host stage may lower
 * out.type.dim[0] when it makes fewer rows than `rows`, the slot's capacity; and
 * other sizes of an output whose declared shape has bounds ("<=1080").
 * `data` is aligned to 256 bytes and owned by the engine; inputs are
 * read-only. Its memory is the host's in run() and the device's in record().
 * `stride`: bytes from this frame to the next frame's in the same launch (of
 * record() with n > 1); a multiple of 256. */
typedef struct gp_view {
    void *data;
    gp_type type;
    int64_t rows;
    size_t stride;
    bool fresh;      /* output: this stage has never written this slot */
} gp_view;

size_t gp_dtype_size(gp_dtype t);              /* bytes of one element */
const char *gp_dtype_name(gp_dtype t);
gp_dtype gp_dtype_parse(const char *name);     /* GP_NO_DTYPE: no such type */
int64_t gp_count(const gp_type *t);            /* elements */
size_t gp_bytes(const gp_type *t);
bool gp_type_same(const gp_type *a, const gp_type *b);
/* "f32 [768, 1024, 3]" in a caller's buffer of 128 bytes; returns it. */
char *gp_type_text(const gp_type *t, char buf[128]);
/* The same of a type whose axes in the set `varies` are bounds: "u8 [<=1080, <=1920, 3]". */
enum { GP_BOUNDS_TEXT = 128 + 2 * GP_MAXDIM };
char *gp_bounds_text(const gp_type *t, unsigned varies, char buf[GP_BOUNDS_TEXT]);

/* ---- options --------------------------------------------------------- */

/* The field that each option type fills. Three names of options mean the same for every
 * kind: a source's float `rate` is frames a second, 0 as fast as it can; its integer
 * `frames` is how many it makes, 0 as many as there are; its bool `loop` starts it anew at
 * its end. `gpipe bench` and verdicts set them. */
typedef enum gp_opt_type {
    GP_OPT_INT = 1,   /* int64_t: an expression over vars */
    GP_OPT_FLOAT,     /* double:  an expression over vars */
    GP_OPT_NUM,       /* gp_num:  likewise, an integer as exact as it is written */
    GP_OPT_BOOL,      /* bool:    true or false */
    GP_OPT_TEXT,      /* const char *: interpolated */
    GP_OPT_PATH,      /* const char *: interpolated, then made relative to the
                         YAML file's folder; "stdin" and "stdout" stay */
    GP_OPT_ENUM,      /* int: index into `choices`, "a|b|c" */
    GP_OPT_DTYPE,     /* gp_dtype */
    GP_OPT_TIME,      /* int64_t: ns */
    GP_OPT_INTS,      /* gp_ints: a list, or one value */
    GP_OPT_FLOATS,    /* gp_floats: a list, or one value */
    GP_OPT_NODE,      /* const gp_node *: as it stands, NULL when absent; the
                         kind reads it in shape() */
    GP_OPT_TEXTS,     /* gp_texts: a list, each interpolated; one value is an error */
} gp_opt_type;

typedef struct gp_ints { int n; int64_t *v; } gp_ints;
typedef struct gp_floats { int n; double *v; } gp_floats;
typedef struct gp_texts { int n; const char *const *v; } gp_texts;     /* v[n] is NULL */

typedef struct gp_opt {
    const char *name;      /* the key in YAML, none that every stage has ('gpipe help yaml'); also the field's name */
    gp_opt_type type;
    size_t off;            /* of the field, in the kind's options struct */
    const char *def;       /* as it would stand in YAML; NULL: zero, empty */
    bool required;
    double min, max;       /* of numbers, each element, ns; min == max: none */
    const char *choices;   /* of a GP_OPT_ENUM; of another that is required: the option that may stand in its place;
                              "text": of a GP_OPT_NODE whose values are texts, where a var is "${name}": 'check' warns
                              of a name without these */
    const char *unit;      /* "px", "Hz", "bytes", ... or NULL */
    const char *help;      /* one line, no full stop */
} gp_opt;

/* offsetof() that does not compile if the field has another type. */
#ifdef __cplusplus
#define GP_OFF(T, f, want) \
    (offsetof(T, f) + 0 * sizeof((want *)0 == &((T *)0)->f))
#else
#define GP_OFF(T, f, want) \
    (offsetof(T, f) + 0 * sizeof(char[__builtin_types_compatible_p(__typeof__(((T *)0)->f), want) ? 1 : -1]))
#endif

#define GP_INT(T, f)    .name = #f, .type = GP_OPT_INT,    .off = GP_OFF(T, f, int64_t)
#define GP_FLOAT(T, f)  .name = #f, .type = GP_OPT_FLOAT,  .off = GP_OFF(T, f, double)
#define GP_NUM(T, f)    .name = #f, .type = GP_OPT_NUM,    .off = GP_OFF(T, f, gp_num)
#define GP_BOOL(T, f)   .name = #f, .type = GP_OPT_BOOL,   .off = GP_OFF(T, f, bool)
#define GP_TEXT(T, f)   .name = #f, .type = GP_OPT_TEXT,   .off = GP_OFF(T, f, const char *)
#define GP_PATH(T, f)   .name = #f, .type = GP_OPT_PATH,   .off = GP_OFF(T, f, const char *)
#define GP_ENUM(T, f)   .name = #f, .type = GP_OPT_ENUM,   .off = GP_OFF(T, f, int)
#define GP_DTYPE(T, f)  .name = #f, .type = GP_OPT_DTYPE,  .off = GP_OFF(T, f, gp_dtype)
#define GP_TIME(T, f)   .name = #f, .type = GP_OPT_TIME,   .off = GP_OFF(T, f, int64_t)
#define GP_INTS(T, f)   .name = #f, .type = GP_OPT_INTS,   .off = GP_OFF(T, f, gp_ints)
#define GP_FLOATS(T, f) .name = #f, .type = GP_OPT_FLOATS, .off = GP_OFF(T, f, gp_floats)
#define GP_NODE(T, f)   .name = #f, .type = GP_OPT_NODE,   .off = GP_OFF(T, f, const gp_node *)
#define GP_TEXTS(T, f)  .name = #f, .type = GP_OPT_TEXTS,  .off = GP_OFF(T, f, gp_texts)

/* ---- ports ----------------------------------------------------------- */

#define GP_ACCEPT(t) (1u << (t))
enum {
    GP_ACCEPT_ANY = 0x7ffffffe,
    GP_ACCEPT_REAL = GP_ACCEPT_ANY & ~(1u << GP_C64),
};

/* A fixed port has a name. A kind with `name = "*"` as its last port takes any
 * number there (0 or more, GP_MAXPORT in all), named by the YAML. */
typedef struct gp_port {
    const char *name;
    unsigned accept;       /* inputs: a set of GP_ACCEPT(type) */
    bool optional;
    const char *help;
} gp_port;

/* ---- compile time: check(), shape() ---------------------------------- */

/* What is known of a file, see gp_probe_file. */
typedef struct gp_file {
    const char *path;
    int error;             /* errno of looking at it; 0 if it is there */
    enum { GP_FILE_REGULAR, GP_FILE_DIR, GP_FILE_STREAM } kind;  /* stream: pipe, FIFO, tty */
    int64_t size;          /* bytes, of a regular file */
    const char *head;      /* its first bytes */
    size_t nhead;          /* at most GP_PROBE_HEAD; NUL follows */
} gp_file;

enum { GP_PROBE_HEAD = 1 << 20 };

typedef struct gp_files {
    int n;
    const char *const *path;       /* by their names, a9 before a10; of a pattern with a number by that */
} gp_files;

/* What a kind can say of its speed before anything runs, for the lints of `gpipe check`. */
typedef struct gp_known {
    int64_t blocks, threads;   /* in the grid of a frame as the file gives it, in a block */
    bool f64;                  /* computes in f64, so that its speed may depend on that */
    double hertz;              /* of a source that keeps a pace: frames a second */
    int64_t frames;            /* of a source: how many it makes; gp_try_stage looks whether it ends then */
    int64_t number;            /* of a source of numbered files: the lowest number, plus 1; 0: it is none */
} gp_known;

typedef struct gp_dim3 { unsigned x, y, z; } gp_dim3;

/* A kind with neither run() nor record() changes how many frames there are: the engine copies the
 * frames of its one input to its one output, where they are, on the host or on the device. It fires k = 0, 1, 2,
 * ...; firing k belongs to input frame f = k * step / repeat, takes the frames [f - back, f - back + take) that
 * there are, and makes output frames [k * make, (k + 1) * make). Of `step` and `repeat` one is 1.
 *
 *   stack      the frames that it takes, without those that are holes, are the rows of the one that it makes:
 *              [take, ...] with `take` rows at most. Without any it is a hole, and so it is when frame f of a
 *              firing that looks back is one
 *   split      each row of the one frame that it takes is one of the `make` frames; for rows that a partial frame
 *              lacks there are holes that no account counts
 *   neither    it makes a copy of the frame */
typedef struct gp_regroup {
    int64_t step, repeat;
    int64_t take, back, make;
    bool stack, split;
    bool drop_tail;            /* there is no firing for the last frames, where they are fewer than `take`; with
                                  `every`, no frame is made of them */
    int64_t every;             /* of a device kind with emit(): it makes a frame of so many; INT64_MAX: one, at the end */
    bool drop_partial;         /* of one that stacks: a frame with fewer than `take` rows is a hole, and dropped */
} gp_regroup;

/* What a kind that reduces its one input computes. `axes`: bit k is set for axis k; with `keep` these stay, with size
 * 1. Floats are summed in f64 and rounded once to the input's type; sums of integers are i64 (u64 of u64), their means
 * f32. Extremes keep the type. Those behind GP_MAX are not fused, so that no gp_shape.reduction has them: standard
 * deviations have the types of means; where the first least or most element is, along one axis or in all of a frame, is
 * i64; truths are u8, 0 or 1, and NaN is true. */
typedef enum gp_reducing {
    GP_SUM = 1, GP_MEAN, GP_MIN, GP_MAX, GP_STD, GP_ARGMIN, GP_ARGMAX, GP_ANY, GP_ALL
} gp_reducing;
typedef struct gp_reduction {
    gp_reducing op;
    unsigned axes;
    bool keep;
} gp_reduction;

/* What is made of inputs without rows: a frame without rows; or one whose elements are all 0, 1 (of u8) or NaN. */
typedef enum gp_none { GP_NONE_NO_ROWS, GP_NONE_ZERO, GP_NONE_ONE, GP_NONE_NAN } gp_none;

/* Of a sink, for the run that goes on where this one is broken off (`resume`): it has all frames before number `next`; the
 * rest is the kind's. */
typedef struct gp_saved { uint64_t next, own[3]; } gp_saved;

typedef struct gp_shape gp_shape;
struct gp_fuse;
struct gp_steps;
struct gp_shape {
    const void *opts;
    void *user;                    /* the kind's */
    int nin, nout;
    const gp_type *in;             /* complete; dtype 0 where an optional port is
                                      not connected */
    gp_type *out;                  /* in: what the YAML declares of each output
                                      (dtype 0, ndim 0: not said); out: the
                                      type, complete. The engine checks that a
                                      declaration was not contradicted */
    const char *const *in_name;    /* port names, as wired */
    const char *const *out_name;
    int workers;                   /* as asked in the YAML; 1 when not said */
    bool partial;                  /* called again, at run time, for a frame that is
                                      shorter in some axis: only `in`, `out` and `opts`
                                      may be used then. An `out` that is declared is
                                      already as short as the first input, where both
                                      have one size and may be shorter */

    /* Results beside the output types; all start as zero. */
    bool endless;          /* a source that never ends by itself */
    bool serial;           /* frames take turns. On the host: one worker only (always so for
                              sources, but see by_number and default_workers), where the YAML else may ask
                              for several, which call run() at the same time. On the device: what record() queues
                              for a frame waits for what it queued for the one before */
    bool batched;          /* record() takes several frames at once */
    bool keeps_slots;      /* relies on what it left in a slot (view.fresh) */
    bool frame_info;       /* record() uses gp_dcall.frame */
    size_t scratch;        /* device bytes per frame, undefined at start; but see scratch_zero */
    size_t state;          /* device bytes carried from frame to frame, zero at
                              first and after a hole (on_hole: reset) */
    size_t table;          /* device bytes that are constant: filled by table() */
    gp_known known;
    bool once;             /* a source whose input can be read once: a pipe */
    bool any_length;       /* a sink that takes any number of frames and keeps none */

    void *ctx;             /* the engine's */
    int64_t writes_from;   /* of a path with %05d: the first number it writes; INT64_MAX:
                              only numbers that no file has yet */
    bool cooperative;      /* record() launches kernels whose gp_source says so */
    bool writes_all;       /* record() writes every element of its outputs, in the rows that it makes. So have record()
                              and run() of a plug-in to, whatever this says. The engine fills the outputs of the first whole
                              frame, and of the first few shapes where frames differ, with a pattern and looks for it
                              after (in samples, of a large one): an element that was not written is an error. For that,
                              record() may be called several times for a frame, unless its frames take turns. run() is
                              called once for each: for the first frame of each worker alone, and for the next few as
                              long as an element may have the pattern's value by chance. Not with keeps_slots */
    gp_dim3 block, grid;   /* of what record() launches for one whole frame, as plans show it:
                              threads, blocks; x 0: not said */
    gp_regroup regroup;    /* of a kind with neither run() nor record(): required. With emit() `every` and drop_tail */
    const unsigned *in_varies, *out_varies;    /* per port: a set of axes (1u << k) in which frames may be shorter than
                                      `in` says, or the declaration of the output (but not where that is an expression of
                                      the inputs' shapes, which the engine finds for each frame); NULL in a partial call */
    bool by_number;        /* of a source whose kind says so too: it finds a frame by its number alone. It may then
                              have several workers, which call run() for one frame each, in any order; and its frames
                              may be shared out among processes, see gp_open.ranks. It ends at the lowest frame that
                              is GP_END or GP_STOPPED */
    int64_t busy_ns;       /* of a host stage whose frames do not take turns, and take long: about how long a core is
                              busy with one. Where it is 100 us or more, `workers: auto` is the default */
    const char *expr;      /* of a device kind with one output that is `elementwise`: what an element of it is, of the
                              elements at the same place of the inputs, or some of these (in[i0, i1, 2]), as a text for
                              the kind `expr`; names in it are the inputs', and options that are numbers. It must say
                              bit for bit what record() does, so that the stage can be fused with its neighbors.
                              Borrowed */
    unsigned beyond;       /* of a kind with fuse(), or with `expr`: a set of inputs of which it needs more than the element
                              at the same place, or another one */
    gp_reduction reduction;        /* of a device kind with one input and one output that `reduces`: how. Then what makes its
                              input element by element can be fused with it */
    size_t scratch_zero;   /* of the scratch, from its beginning: bytes that are zero when a frame's work begins; it leaves
                              them so */
    unsigned varies;       /* of output 0, if no shape of it is declared: a set of axes in which its frames may be shorter */
    bool fills_device;     /* of a host stage whose kind says so too: its outputs lie in the memory of the device, where that
                              has its own, and run() writes them by gp_device_do(). No stage on the host may read them. A pause
                              calls close() and open(): it keeps nothing between frames, and may not be `serial`, unless it
                              reads_device too: then no run of it is paused */
    int at_once;           /* of such a stage: the most frames that a call of run() takes, with several workers too; 0: 1 */
    int default_workers;   /* of such a stage: how many it has where the file does not say; 0: 1. Of one that is serial each
                              begins when the one before has returned from run(), or has called gp_let_next_begin() */
    const char *does;      /* how it does its work, for plans: "nvJPEG 13.0, hardware"; or NULL */
    bool file_each;        /* of a sink that calls gp_shape_writes(): it makes one file of each frame */
    bool variables;        /* of a device kind: its kernel has variables of its own, which a pause would lose */
    int most_workers;      /* of a host stage with `busy_ns`: with more it is no faster, as all share what is busy then; 0:
                              any number */
    bool calls_library;    /* record() uses gp_call_library(), with which 'launch: persistent' is an error */
    int rank, ranks;       /* which of how many processes this is, that run the pipeline together; 0 of 1: it runs alone */
    bool reads_device;     /* of a stage that fills_device, whose kind says so too: its inputs lie there as well, all of which
                              gp_shape_in_device() is true of. May be `serial`; then the run cannot be retuned */
    bool uncaptured;       /* with calls_library: record() uses gp_call_library_apart(), whose calls cannot be a part of
                              a graph. The stage's segment is then queued anew for each launch, whatever `launch` says */
    bool joins;            /* of a sink whose kind says so too, and that calls gp_shape_writes(): ranks among which its frames
                              are shared out can write one file together, see gp_open.joins */
    int to_rank, from_rank;        /* of a collective kind that says so too, a rank plus 1; 0: all. `to_rank`: this one alone
                              has the frames that it makes, which are GP_ABSENT in the others; what is behind is not opened
                              there. `from_rank`: it needs the frames of this one alone. In a rank where those are absent
                              run() is called all the same, and in[].data is NULL */
    double round_bytes; int round_steps;       /* of a collective kind, for simulations: bytes that each rank sends to
                              the next one in a round, and in how many messages that wait for each other */
    unsigned fixed;        /* of output 0, where frames of an input may differ in shape: a set of axes in which those of the
                              output do not. Others may, if no shape of it is declared */
    unsigned by_place;     /* of a kind that says so too: a set of inputs (1u << k) whose rows are taken by their places:
                              cut, moved, counted. Where a group left out holes, rows are not at theirs, and the frame
                              fails */
    unsigned beside;       /* ... and a set of inputs that have an element for each row: it fails where one is a
                              constant, too */
    unsigned char none[GP_MAXPORT];    /* of a device kind that says of_none: per output, a gp_none. It has the shape
                              of one row's, and record() is not called */
    int64_t tail_rows;     /* of a source whose kind says so too: it makes a partial frame of so many rows, as the end of
                              a file is one; 0: that is not known */
    bool resume;           /* the pipeline says `resume`, see gp_kind.save */
    bool each_once;        /* of a device kind: record() reads each element of its inputs once, and writes each element of its
                              outputs once, neighbors by neighboring threads. Then its data may be memory of the host
                              that the device sees, where frames are small */
};

/* An error, which begins with "stage 'NAME': ", at option `opt` of this stage (NULL: the stage; an option that is
 * not spelled in the file also points at the stage), or at a node inside an
 * option. Returns false. */
bool gp_shape_fail(gp_shape *s, const char *opt, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
bool gp_shape_fail_at(gp_shape *s, gp_loc at, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
/* For a file that is not there. Under `check`, and when all outputs are declared
 * in full, it is a warning: returns true, and shape() goes on, leaving `out` as
 * it is. Else the same as gp_shape_fail. */
bool gp_shape_missing(gp_shape *s, const char *opt, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
/* A warning, at the same place as gp_shape_fail would have it. Not in a partial call. */
void gp_shape_warn(gp_shape *s, const char *opt, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
/* Are frames that fail in this stage dropped? Then what is wrong with a single file need not end all. */
bool gp_shape_drops(const gp_shape *s);
/* As gp_meta_keys, before a run. At most: keys, bytes of one. */
enum { GP_META_KEYS = 16, GP_META_NAME = 31 };
int gp_shape_meta_keys(const gp_shape *s, const char *const **keys);
/* The place of option `opt`, for later messages. */
gp_loc gp_shape_loc(gp_shape *s, const char *opt);
/* Option `opt` as the file spells it; NULL: it does not, or in a partial call. */
const gp_node *gp_shape_node(gp_shape *s, const char *opt);
/* False, with an error, if the file spells option `opt`, which has no effect on
 * `what`. */
bool gp_shape_without(gp_shape *s, const char *opt, const char *what);

/* What is known of a file, or the list of files a glob matches. `path` is as an
 * option of type GP_OPT_PATH gives it. NULL, with an error, in a partial call and
 * for a `path` that is NULL. */
const gp_file *gp_probe_file(gp_shape *s, const char *path);
const gp_files *gp_probe_glob(gp_shape *s, const char *pattern);
/* Bytes of a file that gp_probe_file found to be regular, which its head does not have: up to `n` from offset `at` on.
 * How many there were; -1 with errno. */
int64_t gp_probe_bytes(gp_shape *s, const gp_file *f, int64_t at, void *to, size_t n);

/* What a regular file of JSON or YAML says, of at most GP_PROBE_HEAD bytes; lives as long as the pipeline. NULL after an
 * error that names its line. */
const gp_node *gp_probe_node(gp_shape *s, const gp_file *f);

/* The bytes of a file whose head nobody wants, which is not read then; -1: it is not there, or no regular file. */
int64_t gp_probe_size(gp_shape *s, const char *path);

/* Says that this stage writes the files that `path` names, with %05d as it stands.
 * Two stages that say so of one path are an error at option `opt`, which names
 * both; then false. What is under /dev is everybody's. `path` is copied. */
bool gp_shape_writes(gp_shape *s, const char *opt, const char *path);
/* Says that this stage reads these files while it runs: no stage may write them, unless one
 * is a device, as a terminal is. `path` is borrowed for as long as the pipeline lives. */
void gp_shape_reads(gp_shape *s, const char *const *path, int n);

/* Evaluates an expression over vars and this stage's ports (in and out as far
 * as they are known). Adds an error and returns false when it makes no sense. */
bool gp_shape_eval(gp_shape *s, const gp_node *n, gp_num *out);
/* The value of a var that is a number. False, without an error: there is none of that name. Tries the names of all
 * vars for `near`, if that is not NULL. */
bool gp_shape_var(gp_shape *s, const char *name, gp_num *out, gp_near *near);
/* In a partial call: is what comes in at this port the same in each frame, a constant? (In a `loop` what is given to it
 * counts as one.) */
bool gp_shape_is_const(const gp_shape *s, int port);
/* For kinds of gpipe's own (struct gp_expr is not public): the text of a node as a program over the elements of frames,
 * which lives as long as the pipeline. NULL after errors. */
const struct gp_expr *gp_shape_program(gp_shape *s, const gp_node *n);
/* ${} in a scalar node of an option. NULL after an error. */
const char *gp_shape_text(gp_shape *s, const gp_node *n);
/* The same, as a path relative to the YAML's folder. */
const char *gp_shape_path(gp_shape *s, const gp_node *n);
/* The compute capability of the GPU that the pipeline is for (90 is 9.0); 0: the CPU back end. *here: it is one of this
 * machine, whose libraries may be looked for; else they are taken to be there. */
int gp_shape_gpu(const gp_shape *s, bool *here);
/* A stage on the host that reads what this one makes; NULL: there is none. */
const char *gp_shape_host_reader(const gp_shape *s);
/* Is what comes in at this port made in the memory of the only device that the pipeline has, where that is not the
 * host's, and may libraries be called there while it runs? */
bool gp_shape_in_device(const gp_shape *s, int port);
/* Are an input and an output one state, which the stage reads and changes in place? in -1: is the output a state? */
bool gp_shape_is_state(const gp_shape *s, int in, int out);
/* Memory that lives as long as the pipeline, zeroed. */
void *gp_shape_alloc(gp_shape *s, size_t bytes);

/* ---- run time -------------------------------------------------------- */

typedef struct gp_dev gp_dev;          /* an open device */
typedef struct gp_rec gp_rec;          /* a recorder of device work */
typedef struct gp_kernel gp_kernel;    /* a loaded kernel of one device */

/* For open(). All pointers are borrowed for as long as the stage is open. */
typedef struct gp_open {
    const void *opts;
    void *user;                    /* the kind's */
    const char *name;              /* of the stage, for messages */
    gp_loc at;
    int nin, nout;
    const gp_type *in, *out;
    const char *const *in_name, *const *out_name;
    int workers;
    const gp_scope *scope;         /* vars, for gp_eval */
    gp_dev *dev;                   /* of a device stage, or one that fills device memory; else NULL */
    gp_errs *errs;
    struct gp_filetable *files;    /* the engine's: the files of this run */
    int slots;                     /* of a device stage: of this many frames it has memory at the same time, and no more
                                      are worked on at once. So it can have as many work areas, see gp_dcall.slot */
    int rank, ranks;               /* where frames are shared out among so many processes, which it is; else 0 of 1. Of each
                                      `ranks` frames in a row it has one; gp_frame.index is the number among all of them.
                                      Of a kind that is `collective`: of all processes */
    void *ctx;                     /* the engine's */
    bool joins;                    /* all ranks write one file, of which each has frames: they make the same calls of
                                      gp_gather(), in run() and finish() */
    uint64_t from;                 /* the number of the first frame of this run; */
    const gp_saved *saved;         /* ... then of a sink with save(), what that has said: frames before saved->next come
                                      once more, and are not to be taken. NULL: the run begins */
} gp_open;

typedef enum gp_status {
    GP_OK,
    GP_DROP,        /* this frame becomes a hole */
    GP_FAILED,      /* an error was added to call->errs */
    GP_END,         /* of a source: there is no such frame, nor a later one */
    GP_STOPPED,     /* of a source: gp_wait_* said that the run is stopping; of any
                       stage: gp_cancelled() did, and the frame is not done. An error
                       where nobody asked the run to stop */
    GP_AGAIN,       /* of a stage with one worker, or that says at_once, of the first
                       frame of a call only where a wait said so: this frame and those
                       after it are not done yet; those before it are, then run() is
                       called again */
    GP_ABSENT,      /* of a stage that says to_rank: another rank has this frame. It becomes a hole that no account
                       counts */
    GP_LOST,        /* of a source: the frame never came, or there was no room for it. As GP_DROP, but it counts as lost */
    GP_NO_ROUND,    /* of a collective stage: not all ranks have this frame, as the run stops. As GP_DROP, but states stay as
                       they were before it */
} gp_status;

/* One frame in run(). A source sets time_ns (CLOCK_REALTIME at arrival; the
 * engine fills it in when it is left 0) and may set `name`. */
typedef struct gp_frame {
    uint64_t index;        /* over all processes that share the source's frames. A hole is not run: a stage on the host
                              that keeps something sees a gap in the numbers (on_hole is for gp_shape.state alone) */
    int64_t time_ns;
    const char *name;      /* source file's name without folder and extension,
                              or NULL; lives until the source is closed */
    gp_view *in, *out;     /* by port */
    gp_status status;      /* GP_OK at first */
} gp_frame;

typedef struct gp_call {
    const void *opts;
    void *user;            /* the kind's */
    void *state;           /* made by open(), or NULL */
    int worker;            /* 0 .. workers - 1; its calls come one after the other, not always
                              on the same thread */
    const char *name;      /* of the stage */
    gp_loc at;
    gp_errs *errs;         /* this worker's own; allocates nothing. Warnings are told when
                              the run is over, or with an error */
    void *ctx;             /* the engine's */
    gp_status hole;        /* in skipped(), what the frame is: GP_LOST, GP_FAILED, or else GP_DROP */
} gp_call;

/* For sources, and sinks that wait for somebody to take what they write: wait until
 * `fd` can be read, or until CLOCK_MONOTONIC reaches t_ns. False: the run is stopping,
 * return GP_STOPPED. Who waits here counts as idle, not as stalled. */
bool gp_wait_fd(gp_call *c, int fd);
bool gp_wait_until(gp_call *c, int64_t t_ns);
/* Both, for `fd` (or -1) and a time (or -1), before run() has taken any data of its first frame, or where its state keeps
 * them. GP_OK: `fd` can be read, or the time has come. GP_STOPPED: as above. GP_AGAIN: settings change: return that for
 * the first frame, for which run() is called again. */
gp_status gp_wait_or_pause(gp_call *c, int fd, int64_t t_ns);
/* For sinks, before they write to a pipe or socket. 1: up to PIPE_BUF bytes can be written now, and before any more it is
 * called again; 0: the run ends without this reader, return GP_STOPPED; -1: others wait for this stage, too (no
 * 'when_full'), and it may write as much as it likes. With fd -1 it only waits a while. */
int gp_wait_for_reader(gp_call *c, int fd);
/* The same for a sink that can go on within the first frame of a call. Also 2: settings change: return GP_AGAIN for that
 * frame, for which run() is called again. */
int gp_wait_for_reader_or_pause(gp_call *c, int fd);
/* For a stage with several workers: waits until all frames before that of this call are done. False: one of them was
 * the end, or failed for good, and what becomes of this frame does not matter. With one worker it does not wait. */
bool gp_wait_turn(gp_call *c);
/* For a serial stage with several workers (gp_shape.default_workers): the first `n` frames of this call need only be
 * waited for. run() may be called for those of another worker, once that is so for all frames of this one. */
void gp_let_next_begin(gp_call *c, int n);
/* For a source: `n` more frames came for which there was no room. They have no number, and count as dropped. */
void gp_source_dropped(gp_call *c, uint64_t n);
/* For a source: frame `f` of this call came at t_ns (CLOCK_MONOTONIC), and waited. Its latency counts from then, else
 * from when run() has made it. */
void gp_source_came(gp_call *c, const gp_frame *f, int64_t t_ns);
/* A frame of this call is whole, though there are faults in the file that it is made of, of which a warning was
 * added, once for all of its frames: it counts as `faulty`, too. */
void gp_frame_faulty(gp_call *c);
/* Tells the watchdog that frame `index` of this call is now being worked on. */
void gp_working_on(gp_call *c, uint64_t index);
/* True once the run is being cancelled: long loops should then return. */
bool gp_cancelled(const gp_call *c);
/* True once the run was asked to end before its sources did, as by Ctrl-C: what finish()
 * sees is then a part. */
bool gp_stopping(const gp_call *c);

/* In run() and finish() of a kind that is `collective`, or a sink that gp_open.joins is set for: sends the `n` bytes at
 * `mine` of each rank to all, and waits for them. Those of rank r are at + r * n of what it returns, until the next
 * call. All ranks make the same calls, with the same n. NULL: the run is cancelled (gp_cancelled), or an error was
 * added. Of a process that runs alone, they are at `mine`. */
const void *gp_gather(gp_call *c, const void *mine, size_t n);
/* The same in open() of such a kind: all ranks open their stages in one order. */
const void *gp_open_gather(const gp_open *o, const void *mine, size_t n);

/* Numbers that travel with a frame, by the keys that the pipeline lists under `metadata`. For run() of a host stage, of
 * the frames that it was given: at first they are those of its inputs (of the first, in port order, that has the
 * key), and what they are when it returns goes with all outputs. On the device none can be seen or set, and outputs
 * have those of the inputs.
 *
 * gp_meta_get: false where the frame has no such number, or the key is not listed. gp_meta_set: a finite number, or
 * NULL for none; false, with nothing done, where the key is not listed or the number is not finite. gp_meta_keys: how
 * many keys are listed, and which, in the order of the list; they live as long as the pipeline. `time` is no number:
 * where it is listed, files keep gp_frame.time_ns. */
bool gp_meta_get(const gp_call *c, const gp_frame *f, const char *key, double *value);
bool gp_meta_set(const gp_call *c, const gp_frame *f, const char *key, const double *value);
int gp_meta_keys(const gp_call *c, const char *const **keys);
/* The name of a frame's source file with its extension, which goes along with gp_frame.name and lives as long; NULL: it
 * has none. For run() of a host stage, of the frames that it was given; sources set it. */
const char *gp_frame_file(const gp_call *c, const gp_frame *f);
void gp_frame_set_file(const gp_call *c, const gp_frame *f, const char *file);

/* What a kernel's `frame` argument points to, one per frame of the launch. A
 * frame's infos, one for each stage of the segment that asks, are GP_INFO_BYTES apart; for a stage that is `batched` those of
 * the next frame are GP_INFOS * GP_INFO_BYTES behind, as at most GP_INFOS may ask then. */
typedef struct gp_frame_info {
    uint64_t index;
    uint32_t valid;        /* rows of the stage's first input */
    uint32_t reserved;
    int64_t time_ns;
} gp_frame_info;

enum { GP_INFOS = 8, GP_INFO_BYTES = 32 };

/* For record(): n consecutive frames; n > 1 only when shape() set `batched`
 * (and neither `serial` nor state). Pointers are to device memory. */
typedef struct gp_dcall {
    const void *opts;
    void *user;                    /* the kind's */
    void *state;                   /* made by open() */
    int n;
    const gp_view *in, *out;       /* of the first frame, see view.stride */
    void *carried;                 /* shape.state bytes */
    const void *table;             /* shape.table bytes */
    void *scratch;                 /* of the first frame; */
    size_t scratch_stride;         /* bytes to the next frame's */
    const gp_frame_info *frame;    /* of the first frame; 256 bytes to the next */
    const gp_scope *scope;         /* vars; ports are the views above */
    const char *name;
    gp_rec *rec;
    gp_errs *errs;
    uint64_t added;                /* of a kind with emit(): frames that `carried` is made of before this call */
    int slot;                      /* of the first frame, from 0; those after it have the next. What is recorded for a slot
                                      is done before more for it begins. Below gp_open.slots, with record() */
    uint64_t index;                /* of the first frame, for messages, as gp_frame has it: with gp_shape.uncaptured */
    int64_t steps;                 /* of a stage that steps() made ready: how many iterations to queue; else 0 */
    unsigned constants;            /* a bit for each input that is a constant, which is there before the first launch; in a
                                      `loop` it is not said */
} gp_dcall;

/* Evaluates an expression over vars and the views of this call, whose ports have
 * the names that shape() saw; for grids and arguments. Allocates nothing when
 * `n` is in an option of this stage. */
bool gp_dcall_eval(const gp_dcall *c, const char *const *in_name, int nin,
                   const char *const *out_name, int nout, const gp_node *n, gp_num *out);

/* Recorder calls. `args` are pointers to the arguments' values, in order; they
 * are copied before the call returns. `shared`: bytes of dynamic shared memory.
 * gp_launch finds a built-in kernel by its name. A grid without blocks, and a copy or fill that
 * leaves the memory it begins in, are errors. False after an error. */
bool gp_launch(gp_dcall *c, const char *kernel, gp_dim3 grid, gp_dim3 block,
               size_t shared, void *const *args, int nargs);
bool gp_launch_kernel(gp_dcall *c, const gp_kernel *k, gp_dim3 grid, gp_dim3 block,
                      size_t shared, void *const *args, int nargs);
bool gp_copy(gp_dcall *c, void *dst, const void *src, size_t bytes);   /* device to device */
/* The bytes of all frames of `from` to those of `to`, which has as many in a frame: by one copy where nothing but padding
 * lies between them. */
bool gp_copy_frames(gp_dcall *c, const gp_view *to, const gp_view *from);
bool gp_fill(gp_dcall *c, void *dst, int byte, size_t bytes);
bool gp_fill_frames(gp_dcall *c, const gp_view *v, int byte);          /* all frames of `v`, by one fill if it can be */
/* Calls a library for this stage: f gets the CUstream_st to call it on, NULL on the CPU back end, and a copy of the
 * `bytes` bytes at `arg`, aligned to 16. On either it is in order with what was recorded before, and false after an
 * error, which f adds to `errs`. It must not wait for the device, nor allocate.
 *
 * On CUDA f runs before this call returns, on this thread, whose current device is the stage's: what it puts on the
 * stream is captured, as a part of the launch, or begins to run. What cannot be captured is an error that says so.
 * record() is called once before frame 0, too, when nothing runs but what f puts on the stream, on memory of zeros: so
 * a library loads what it needs. The calls for one stage come one after the other, so that a handle that open() made
 * needs no lock.
 *
 * On the CPU back end f runs when a launch comes to it, in each launch anew, on the thread of the launch's stream: that
 * of one frame while those of others run. What `arg` points to has to live until the stage is closed. */
typedef bool gp_library(void *stream, const void *arg, gp_errs *errs);
bool gp_call_library(gp_dcall *c, gp_library *f, const void *arg, size_t bytes);
/* The same for a library that is told its stream once and for all, in open(), and that may allocate, or wait for what
 * it put there: f gets the stream that gp_device_place() gives, which waits for what was recorded before, and what is
 * recorded after waits for that stream. All such calls on a device come one after the other, and none is captured: only
 * with gp_shape.uncaptured. */
bool gp_call_library_apart(gp_dcall *c, gp_library *f, const void *arg, size_t bytes);
/* Is this the CPU back end, where the threads of a grid run one after another? */
bool gp_rec_on_cpu(const gp_dcall *c);
bool gp_dev_on_cpu(const gp_dev *dev);             /* ... in open() */

#define GP_ARGS(...) ((void *const[]){ __VA_ARGS__ }), \
    (int)(sizeof((void *const[]){ __VA_ARGS__ }) / sizeof(void *))

/* A user's kernel, compiled for the device when the stage is opened. All that it points
 * to lives until the stage is closed. */
typedef struct gp_source {
    const char *path;              /* of the .cu file; or see `text` */
    const char *entry;             /* extern "C" __global__ name */
    const char *const *param;      /* C types of the parameters, in order: the
                                      static check */
    int nparam;
    const char *const *define;     /* "NAME=VALUE" */
    int ndefine;
    size_t shared;                 /* dynamic shared memory it will ask for */
    gp_loc at;                     /* for errors that name the stage */
    const gp_loc *param_at;        /* of each parameter: where the YAML passes it; or NULL */
    bool cooperative;              /* all blocks of a grid run at once, and may wait for each other */
    bool overlaps;                 /* launches of several frames run at the same time: a variable that
                                      they could change is an error */
    const char *text;              /* the source itself, NUL-terminated, where it is in no .cu file; or NULL.
                                      Then headers in quotes are looked for in the folder of `path`, the file
                                      that it is a part of or was made for (as a pipeline) */
    int line, col;                 /* of a text whose lines stand in `path` one by one: the line that it
                                      begins in, and the column of each. 0: messages are at `at`, and count
                                      the lines of the text */
} gp_source;

/* NULL after errors (the compiler's, with the user's file and line). The
 * kernel belongs to the device. */
const gp_kernel *gp_kernel_compile(gp_dev *dev, const gp_source *src, gp_errs *errs);

/* A kernel of gpipe's own for the device, for gp_launch_kernel; NULL: there is none of this name there. */
const gp_kernel *gp_kernel_builtin(gp_dev *dev, const char *name);

/* In run() of a stage that fills device memory: `body` queues work as record() does, by launches, copies, fills or
 * calls of a library, for frames that this worker has; that is then waited for. Views are as run() has them, and d->in,
 * d->out none. False: body() said so, or the device failed, with an error that belongs to no frame. Not to be called by
 * body(). */
bool gp_device_do(gp_call *c, bool (*body)(gp_dcall *d, void *arg), void *arg);
/* In open(), run() and close() of such a stage, and open() and close() of a device stage: calls f with the device as
 * the current one of this thread, for libraries. False: f was not called, as the device has stopped. */
bool gp_device_call(gp_dev *dev, void (*f)(void *arg), void *arg);

/* In open(), for gp_call_library_apart(): the number that CUDA's runtime has for the device, and a CUstream_st of it
 * for such calls, which is in order with the default stream. On the CPU back end 0 and NULL. */
bool gp_device_place(gp_dev *dev, int *index, void **stream, gp_errs *errs);

/* In open() of such stages, and close(): memory of the device, zeroed, for its own use. NULL after an error. */
void *gp_device_alloc(gp_dev *dev, size_t bytes, gp_errs *errs);
void gp_device_free(gp_dev *dev, void *mem, size_t bytes);         /* accepts NULL */

/* For table(): fills `bytes` bytes of host memory at `data`. */
typedef struct gp_table_call {
    const void *opts;
    void *user;                    /* the kind's */
    int nin;
    const gp_type *in;
    void *data;
    size_t bytes;
} gp_table_call;

/* For advise(). What could be changed so that this stage, which holds back a run,
 * takes less time: an edit of one of its options (`opt` and the `value` that it
 * should have), or `text`, an advice in words. The first that is set counts; an edit
 * that the option would not take does not. */
typedef struct gp_advice {
    const void *opts;
    void *user;                    /* the kind's */
    int nin, nout;
    const gp_type *in, *out;
    bool serial;                   /* the file cannot give it more workers, because shape() said so */
    const char *opt;               /* result: an option of the kind, or NULL */
    char value[64];                /* result: as it would stand in YAML */
    char text[200];                /* result: lower case, no full stop */
} gp_advice;

/* ---- the descriptor -------------------------------------------------- */

/* What a kind that was built with this header may rely on. Structs that gpipe makes and
 * passes one at a time, by pointer (gp_shape, gp_open, gp_call, gp_dcall, gp_table_call,
 * gp_advice, gp_node), and gp_kind may grow at their end without a new number. Whenever one of
 * them grows by what a kind may write, gp_kind grows too, by a field that GP_KIND sets: gp_register fills up a
 * shorter descriptor with zeros, and refuses a longer one unless what it does not know is
 * zero, so that no kind writes what an older gpipe has no room for. All other structs
 * (gp_opt, gp_port, gp_view, gp_type, gp_frame, gp_known, gp_source, gp_errs, gp_loc, ...)
 * stay as they are. */
enum { GP_ABI = 2 };

/* A run() of several frames ends, with GP_AGAIN, where the next one may have to wait for something, and when it took
 * so long or made so many bytes: frames that are done move on when it returns. Simulations take it that all kinds do
 * so. */
enum { GP_RUN_NS = 50000, GP_RUN_BYTES = 1 << 20 };

typedef struct gp_kind {
    unsigned abi;              /* GP_ABI */
    size_t size;               /* sizeof(gp_kind) */
    const char *name;          /* as in `use: NAME` */
    const char *help;          /* one line, no full stop */
    const gp_port *in, *out;   /* each ends with {0}; NULL if none */
    const gp_opt *opts;        /* ends with {0}; NULL if none */
    size_t opts_size;
    int max_run;               /* the most frames one run() takes; 0 is 1, for a kind that may wait in any of them */
    void *user;                /* passed to every function below as `user` */

    /* Required. Output types and behavior from input types; pure. */
    bool (*shape)(gp_shape *s);

    /* Optional. State shared by all workers, from before frame 0 until the
     * end; a device stage that runs on several devices is opened on each, with a state for
     * each. open() may set *state and still fail; close() is then called. */
    bool (*open)(const gp_open *o, void **state);
    void (*close)(void *state);

    /* Host: do n >= 1 consecutive frames; set the status of each. A single
     * worker sees all frames in order. Returns false only after adding an
     * error that belongs to no frame; then the run stops, and none of the n frames is handed on. An error that is added
     * while no status is GP_FAILED counts as one, unless a single frame was run: then it is that frame's. */
    bool (*run)(gp_call *c, gp_frame *frames, int n);
    /* Optional: every frame was seen, nothing failed; called once, by worker
     * 0, before close(). A writer gives its file its name here. */
    bool (*finish)(gp_call *c);

    /* Device: queue the work of n frames; see gp_dcall. Must not wait,
     * allocate, or read what is in the buffers. */
    bool (*record)(gp_dcall *c);
    /* Makes what shape.table asked room for; copied to the device before frame 0. */
    bool (*table)(const gp_table_call *t);

    /* Optional: see gp_advice. Pure. */
    void (*advise)(gp_advice *a);

    /* Optional. Checks options, and the files that they name, without any port: called once,
     * before shape(), even if the inputs are unknown, with nin and nout 0. It only adds errors,
     * after which shape() is not called; all other results are shape()'s. */
    bool (*check)(gp_shape *s);

    /* Optional, device: a frame is made of many (gp_regroup.every). record() then adds n frames to what is carried
     * (shape.state), which they replace when c->added is 0, and has no output; emit() queues making the output of
     * what c->added frames left there. Holes are left out; frames are whole, and take turns. */
    bool (*emit)(gp_dcall *c);

    /* It takes frames that are shorter in any axis, not only in axis 0 (a frame with fewer rows): it computes with the
     * types of its views alone. Inputs may differ then, also those that have the same bounds: shape() says of each
     * frame whether they fit. Of a source: it can make such. */
    bool any_shape;

    /* Its shape() may say so of a source, see gp_shape. */
    bool by_number;

    /* Its shape() may say what it computes element by element, see gp_shape.expr. */
    bool elementwise;

    /* Its shape() may say that it is a reduction, see gp_shape.reduction. */
    bool reduces;

    /* For one kind of gpipe's own (struct gp_fuse is not public): makes its opts of those of several stages. */
    bool (*fuse)(struct gp_fuse *f);

    /* Optional, host, of a sink that has several workers: called for each frame that run() is then called for, by the
     * same worker, in the order of frames and one at a time, so that each can be given its place in what is written.
     * The stage's lock is held: it must not wait, nor fail. */
    void (*reserve)(gp_call *c, const gp_frame *f);

    /* Device, with any_shape: of frames that differ in shape it makes larger ones of some that are smaller (as of
     * pictures that are fitted in a box: of high and of wide ones). What shape() then says of an output is a bound for
     * all, and it is called for each frame, as in a partial call, for those that are as large as can be too. */
    bool each_shape;

    /* Its shape() may say so of a host stage, see gp_shape. */
    bool fills_device;

    /* Optional, of a host kind that keeps a state: while a run is paused, makes room in an open stage for `n` workers,
     * more or fewer than it has. False, with an error, if it cannot have so many; it then has as many as before.
     * Without this their number cannot change. */
    bool (*set_workers)(void *state, int n, gp_errs *errs);

    /* Its shape() may say so, see gp_shape. */
    bool variables;

    /* The field that lists of kinds have it under, such as "pictures" or "signals"; NULL: "other". */
    const char *field;
    bool calls_library;

    /* Words that others have for it, with a space between, for who writes one of them in `use`; NULL: none. */
    const char *also;

    /* A host kind whose frames take turns (gp_shape.serial), and which may have a record() for the device, for a process
     * that is alone and whose input is made there: all ranks take part in each of its frames, by gp_gather().
     * Its frames are those of no rank alone, even where those it reads are shared out: gp_frame.index counts those of
     * this rank. */
    bool collective;

    /* Its shape() may say so of a host stage, see gp_shape. */
    bool reads_device;
    /* Optional, of a kind with run() and record(): does a stage of it run on the device, by record()? Called as check()
     * is, before it. Without this the key `on` says so, and the default is the device. */
    bool (*on_device)(gp_shape *s);
    /* Its shape() may say so of a sink, see gp_shape. */
    bool joins;

    /* A collective kind: its shape() may say to_rank or from_rank, see gp_shape. */
    bool one_rank;
    /* Optional, of a sink on the host, and of a collective kind: frame `index` (gp_frame.index) is a hole, which run()
     * does not see. Called in its turn, by the worker that would have run it; of one that is collective, or joins, only
     * among ranks, so that others need not wait to learn that it does not come: it may call gp_gather(). False after an
     * error. */
    bool (*skipped)(gp_call *, uint64_t index);
    /* Its shape() may say so, see gp_shape. */
    bool by_place, of_none;

    /* Optional, of a host kind: the stage does not come to a good end, and `why` says what happened. Called once its
     * workers have left, or open() has failed, and again before close(), also after finish(): the kind knows what is
     * left to be done. What it adds to `errs` are warnings. */
    void (*break_off)(void *state, const char *why, gp_errs *errs);

    /* Its shape() may say so of a source, see gp_shape. */
    bool tail_rows;

    /* Of a source or a sink on the host: its frames are made, or taken, by the program that runs the pipeline
     * (gp_loan), and run() is not called. */
    bool on_loan;

    /* For one kind of gpipe's own (struct gp_steps is not public): can record() queue several iterations of a loop
     * whose body is this stage alone, with the bits of one after the other? */
    void (*steps)(struct gp_steps *s);

    /* Optional, of a sink on the host: what it has, for a run that goes on. `s->next` is the number of the first frame that
     * run() has not had yet, `own` is 0; the kind lowers `next` to where its files end, or raises it. Called at any time
     * while the stage is open, beside run(). What is said here is noted once all that was written is on disk, as
     * gp_outfile.durable has it. */
    void (*save)(void *state, gp_saved *s);

    /* Device: a stage may read a state (a buffer with `state: true`) that it changes, which is one place in memory: record()
     * may find an output where an input is. What is `elementwise` may do so without this. */
    bool in_place;
} gp_kind;

#define GP_KIND(n) .abi = GP_ABI, .size = sizeof(gp_kind), .name = n

/* ---- plug-ins -------------------------------------------------------- */

/* What a shared object shows of itself, as gp_plugin_entry: GP_PLUGIN("thermal", "1.0", &camera, &denoise), at the
 * end of its file, defines it, with one or more gp_kind. It grows as gp_kind does. */
typedef struct gp_plugin {
    unsigned abi;              /* GP_ABI */
    size_t size;               /* sizeof(gp_plugin) */
    const char *name, *version;
    const gp_kind *const *kinds;       /* ends with NULL */
} gp_plugin;

extern const gp_plugin gp_plugin_entry;

#define GP_PLUGIN(name, version, ...) \
    static const gp_kind *const gp_plugin_kinds[] = { __VA_ARGS__, 0 }; \
    const gp_plugin gp_plugin_entry = { GP_ABI, sizeof(gp_plugin), name, version, gp_plugin_kinds }

#ifdef __cplusplus
}
#endif
#pragma GCC visibility pop

#endif
