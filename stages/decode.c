/* decode.c - the bytes of files to pictures: by the CPU, or by a GPU, whose memory they then lie in.
 *
 * The CPU's decoders are those of `read`, which find the numbers too that a file says (`metadata`). Who decodes is
 * decided in shape(), by the machine and the file alone, and a part of the plan: pictures of one decoder are the same
 * whatever the knobs are, those of two differ by a little. */
#include <stdio.h>
#include <stdlib.h>
#include "decode.h"
#include "nvjpeg_library.h"

static void say(gp_call *c, const gp_frame *f, gp_code code, const char *why)
{
    const char *quote = f->name ? "'" : "";
    gp_fail(c->errs, code, c->at, "stage '%s': frame %llu: %s%s%s %s", c->name, (unsigned long long)f->index, quote,
            f->name ? f->name : "what it holds", quote, why);
}

bool gp_decode_by_cpu(gp_call *c, gp_frame *f, void *to, char why[GP_WHY])
{
    const gp_decode_opts *o = c->opts;
    const char *name = f->name ? f->name : "";
    const gp_view *in = &f->in[0];
    size_t n = gp_bytes(&in->type);
    gp_filemeta said = gp_filemeta_none(c);
    if (!gp_picfile_decode(&o->how, name, in->data, n, &f->out[0].type, to, why))
        return false;
    if (*why)
        say(c, f, GP_E_WARN, why), gp_frame_faulty(c);
    if (!gp_picfile_metadata(&o->how, name, in->data, n, &said, why))
        return false;
    gp_filemeta_to_frame(c, f, &said);
    return true;
}

bool gp_decode_take(const gp_decode_opts *o, gp_view *v, const gp_type *most, const gp_type *found, char why[GP_WHY])
{
    char have[128], want[GP_BOUNDS_TEXT], not[GP_WHY];
    if (!gp_picfile_alike(found, most, o->varies, "and 'buffers' declares", why))
        return false;
    return gp_file_take(v, most, o->varies, found, not)
        || gp_why(why, "holds %s, which does not fit in %s: declare the largest under 'buffers'", gp_type_text(found, have),
                  gp_bounds_text(most, o->varies, want));
}

void gp_decode_fail(gp_call *c, gp_frame *f, const char *why)
{
    say(c, f, GP_E_RUN, why);
    f->status = GP_FAILED;
}

/* ---- run ------------------------------------------------------------- */

typedef struct decoder {
    gp_type most;              /* a frame */
    gp_decode_cuda *cuda;      /* NULL: the CPU decodes */
} decoder;

static bool decode_one(gp_call *c, gp_frame *f, char why[GP_WHY])
{
    const gp_decode_opts *o = c->opts;
    const decoder *d = c->state;
    const char *name = f->name ? f->name : "";
    const gp_view *in = &f->in[0];
    gp_view *v = &f->out[0];
    gp_type found;
    return gp_picfile_head(&o->how, name, in->data, gp_bytes(&in->type), &found, why)
        && gp_decode_take(o, v, &d->most, &found, why) && gp_decode_by_cpu(c, f, v->data, why);
}

static bool run(gp_call *c, gp_frame *f, int n)
{
    const decoder *d = c->state;
    char why[GP_WHY];
    if (d->cuda)
        return gp_decode_cuda_run(d->cuda, c, f, n);
    if (!decode_one(c, f, why))
        gp_decode_fail(c, f, why);
    return true;
}

static bool open_decoder(const gp_open *g, void **state)
{
    const gp_decode_opts *o = g->opts;
    decoder *d = calloc(1, sizeof *d);
    if (!(*state = d))
        return gp_fail(g->errs, GP_E_RESOURCE, g->at, "stage '%s': out of memory", g->name);
    d->most = g->out[0];
    return o->by == GP_DECODER_CPU || gp_decode_cuda_open(g, &d->cuda);
}

static void close_decoder(void *state)
{
    decoder *d = state;
    if (d)
        gp_decode_cuda_close(d->cuda);
    free(d);
}

/* ---- shape ----------------------------------------------------------- */

static const char *const decoders[] = { "auto", "cpu", "cuda", "hardware" };

/* Has a GPU of this compute capability a JPEG decoder? A100, Orin, H100, Blackwell for data centers, Thor. */
static bool has_decoder(int cc)
{
    static const int with[] = { 80, 87, 90, 100, 101, 103, 110 };
    for (size_t i = 0; i < sizeof with / sizeof *with; i++)
        if (cc == with[i])
            return true;
    return false;
}

/* Why a GPU cannot decode for this stage, in `why`, or "": then *l has the library's version, where it is known. False:
 * for want of the library alone. */
static bool look_for_gpu(gp_shape *s, gp_nvjpeg *l, int *cc, char why[GP_WHY])
{
    const gp_type *t = &s->out[0];
    const char *reader = gp_shape_host_reader(s);
    gp_errs errs = { .n = 0 };
    bool here;
    *cc = gp_shape_gpu(s, &here);
    *why = 0;
    if (!*cc)
        gp_why(why, "the pipeline runs on the CPU");
    else if (t->dtype != GP_U8 || (t->ndim == 3 && t->dim[2] != 3))
        gp_why(why, "a GPU makes u8, gray or of 3 colors");
    else if (((const gp_decode_opts *)s->opts)->colors == GP_COLORS_GRAY)
        gp_why(why, "only the CPU makes colored pictures gray");
    else if (reader)
        gp_why(why, "stage '%.60s' reads it on the host", reader);
    else if (here && !gp_nvjpeg_open(l, "nvJPEG", (gp_loc){ 0 }, &errs))
        return gp_why(why, "%s", errs.e[0].msg);
    return true;
}

/* Decides who decodes, and says so. */
static bool choose(gp_shape *s, gp_decode_opts *o)
{
    gp_nvjpeg lib = { 0 };
    char why[GP_WHY], version[32] = "", *does = gp_shape_alloc(s, 120);
    bool asked = o->decoder == GP_DECODER_CUDA || o->decoder == GP_DECODER_HARDWARE, library = true;
    int cc = 0;
    *why = 0;
    o->by = GP_DECODER_CPU;
    if (o->decoder != GP_DECODER_CPU)
        library = look_for_gpu(s, &lib, &cc, why);
    if (asked && *why)
        return gp_shape_fail(s, "decoder", "no GPU can decode: %s", why);
    if (o->decoder != GP_DECODER_CPU && !*why)
        o->by = asked ? o->decoder : has_decoder(cc) ? GP_DECODER_HARDWARE : GP_DECODER_CUDA;
    if (lib.major)
        snprintf(version, sizeof version, " %d.%d", lib.major, lib.minor);
    if (o->by == GP_DECODER_CPU)
        snprintf(does, 120, "on the CPU%s%.70s%s", cc ? " (" : "", !library ? "no nvJPEG" : cc ? why : "",
                 cc ? ")" : "");
    else
        snprintf(does, 120, "nvJPEG%s, %s", version, decoders[o->by]);
    s->does = does;
    s->fills_device = o->by != GP_DECODER_CPU;
    s->at_once = GP_DECODE_AT_ONCE, s->default_workers = 2;
    s->busy_ns = s->fills_device ? 0 : gp_picfile_decode_ns(&gp_jpeg, &o->how, &s->out[0]);
    return true;
}

static bool shape(gp_shape *s)
{
    gp_decode_opts *o = (gp_decode_opts *)s->opts;     /* its last fields are shape()'s */
    gp_type *t = &s->out[0];
    char text[128];
    t->dtype = t->dtype ? t->dtype : GP_U8;
    if (s->partial)
        return true;
    if (s->in[0].ndim != 1)
        return gp_shape_fail(s, NULL, "needs the bytes of files, u8 [N], as 'read' with 'format: bytes' makes them, not %s",
                             gp_type_text(&s->in[0], text));
    if (!t->ndim)
        return gp_shape_fail(s, NULL, "how large pictures are is known when they are decoded: declare the largest under "
                             "'buffers', like photo: {shape: [\"<=1080\", \"<=1920\", 3]}");
    if (t->ndim != 2 && t->ndim != 3)
        return gp_shape_fail(s, NULL, "pictures have the shape [H, W], if they are gray, or [H, W, C], and not that of %s",
                             gp_type_text(t, text));
    if (t->dtype != GP_U8 && t->dtype != GP_U16 && t->dtype != GP_F32)
        return gp_shape_fail(s, NULL, "pictures are u8, some u16 or f32, and not %s as declared; put a 'cast' behind it",
                             gp_dtype_name(t->dtype));
    o->at = gp_shape_loc(s, "decoder");
    o->varies = s->out_varies[0];
    o->how = (gp_picfile_how){ .keep_orientation = o->orientation == GP_AS_STORED, .colors = o->colors, .strict = o->strict };
    return gp_picfile_fits_colors(s, &o->how, t, o->varies) && choose(s, o);
}

static const gp_port in[] = { { "in", GP_ACCEPT(GP_U8), false, "the bytes of a file, u8 [<=N]" }, { 0 } };

static const gp_port out[] = {
    { "out", .help = "a picture, declared under 'buffers:': u8 [<=H, <=W, 3], or [<=H, <=W] of gray ones" }, { 0 }
};

static const gp_opt options[] = {
    { GP_ENUM(gp_decode_opts, decoder), .def = "auto", .choices = "auto|cpu|cuda|hardware",
      .help = "hardware: the GPU's JPEG decoder; cuda: its cores; both by nvJPEG, into the GPU's memory, where no stage on the "
              "host may read; auto: the first of these that there is, else the CPU; decoders differ by a few levels" },
    { GP_ENUM(gp_decode_opts, orientation), .def = "apply", .choices = "apply|keep",
      .help = "jpeg, png: turn pictures upright, as they say, or keep them as they are stored" },
    { GP_ENUM(gp_decode_opts, colors), .def = "keep", .choices = GP_COLORS,
      .help = GP_COLORS_HELP ". A GPU does not make gray of colors" },
    { GP_BOOL(gp_decode_opts, strict), .help = GP_STRICT_HELP },
    { 0 }
};

const gp_kind gp_kind_decode = {
    GP_KIND("decode"), .field = "files",
    .help = "files in memory to pictures, in all formats that read has",
    .in = in, .out = out,
    .opts = options, .opts_size = sizeof(gp_decode_opts),
    .any_shape = true, .fills_device = true,
    .shape = shape, .open = open_decoder, .close = close_decoder, .run = run,
};
