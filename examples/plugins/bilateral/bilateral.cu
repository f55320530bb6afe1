/* bilateral.cu - a plug-in with a filter for the device, bilateral: it removes noise from images, and keeps edges.
 *
 * The kernel is compiled by nvcc, and launched on the stream of the stage. The same function of a pixel runs on the
 * host for 'device: cpu': all that there is where a C++ compiler alone built this file. */
#include <gpipe/stage.h>
#include <math.h>

struct opts { int64_t radius; double sigma, range; };

/* Frames in a row, `stride` elements apart. */
struct job {
    const float *in;
    float *out;
    size_t in_stride, out_stride;
    int frames, height, width, radius;
    float space, range;                /* what squares of distances and of differences are multiplied by */
};

#ifdef __CUDACC__
#define ON_BOTH __host__ __device__
#else
#define ON_BOTH
#endif

/* The mean of the pixels around, within the image. Those that are far away or of another brightness count less: by
 * exp(-distance^2 / (2 sigma^2) - difference^2 / (2 range^2)). */
static ON_BOTH void filter_pixel(const job &j, int frame, int y, int x)
{
    const float *in = j.in + frame * j.in_stride;
    float center = in[(size_t)y * j.width + x], sum = 0, weights = 0;
    for (int v = y < j.radius ? 0 : y - j.radius; v <= y + j.radius && v < j.height; v++)
        for (int u = x < j.radius ? 0 : x - j.radius; u <= x + j.radius && u < j.width; u++) {
            float value = in[(size_t)v * j.width + u], differs = value - center;
            float w = expf(j.space * ((v - y) * (v - y) + (u - x) * (u - x)) + j.range * differs * differs);
            sum += w * value, weights += w;
        }
    j.out[frame * j.out_stride + (size_t)y * j.width + x] = sum / weights;
}

#ifdef __CUDACC__
enum { WIDE = 32, HIGH = 8 };

static __global__ void filter(job j)
{
    int x = blockIdx.x * WIDE + threadIdx.x, y = blockIdx.y * HIGH + threadIdx.y;
    if (x < j.width && y < j.height)
        filter_pixel(j, blockIdx.z, y, x);
}

static bool launch(const job &j, void *stream, gp_errs *errs)
{
    dim3 grid((j.width + WIDE - 1) / WIDE, (j.height + HIGH - 1) / HIGH, j.frames);
    filter<<<grid, dim3(WIDE, HIGH), 0, (cudaStream_t)stream>>>(j);
    cudaError_t e = cudaGetLastError();
    return e == cudaSuccess || gp_fail(errs, GP_E_RUN, errs->at, "bilateral: %s", cudaGetErrorString(e));
}
#else
static bool launch(const job &, void *, gp_errs *errs)
{
    return gp_fail(errs, GP_E_RUN, errs->at, "bilateral: it was built without nvcc");
}
#endif

/* On a GPU `stream` is a stream of CUDA, on which nothing may wait. */
static bool work(void *stream, const void *arg, gp_errs *errs)
{
    const job &j = *(const job *)arg;
    if (stream)
        return launch(j, stream, errs);
    for (int f = 0; f < j.frames; f++)
        for (int y = 0; y < j.height; y++)
            for (int x = 0; x < j.width; x++)
                filter_pixel(j, f, y, x);
    return true;
}

static bool record(gp_dcall *c)
{
    const opts *o = (const opts *)c->opts;
    const gp_view *in = &c->in[0], *out = &c->out[0];
    job j = { (const float *)in->data, (float *)out->data, in->stride / sizeof(float), out->stride / sizeof(float),
              c->n, (int)in->type.dim[0], (int)in->type.dim[1], (int)o->radius,
              (float)(-0.5 / (o->sigma * o->sigma)), (float)(-0.5 / (o->range * o->range)) };
    return gp_call_library(c, work, &j, sizeof j);
}

static bool shape(gp_shape *s)
{
    const gp_type *in = &s->in[0];
    s->out[0] = *in;
    if (s->partial)
        return true;
    s->batched = s->writes_all = s->calls_library = true;
    if (in->ndim != 2 || in->dim[0] > INT32_MAX / 2 || in->dim[1] > INT32_MAX / 2)
        return gp_shape_fail(s, NULL, "it takes images (H, W), not frames of %d axes", in->ndim);
#ifndef __CUDACC__
    bool here;
    if (gp_shape_gpu(s, &here))
        return gp_shape_fail(s, NULL, "this plug-in was built without nvcc, and runs with 'device: cpu' alone");
#endif
    return true;
}

static const gp_port in[] = { { .name = "in", .accept = GP_ACCEPT(GP_F32), .help = "an image (H, W)" }, {} };
static const gp_port out[] = { { .name = "out", .help = "the image, filtered" }, {} };
static const gp_opt options[] = {
    { GP_INT(opts, radius), .def = "3", .min = 1, .max = 64, .unit = "px", .help = "of the square around a pixel" },
    { GP_FLOAT(opts, sigma), .def = "2", .min = 1e-3, .max = 1e3, .unit = "px", .help = "of distances" },
    { GP_FLOAT(opts, range), .required = true, .min = 1e-9, .max = 1e9, .help = "sigma of differences of brightness" },
    {} };
static const gp_kind bilateral = {
    GP_KIND("bilateral"), .help = "removes noise from images, and keeps edges", .in = in, .out = out, .opts = options,
    .opts_size = sizeof(opts), .shape = shape, .record = record, .any_shape = true, .field = "pictures",
    .calls_library = true };

GP_PLUGIN("bilateral", "1.0", &bilateral);
