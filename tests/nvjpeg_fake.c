/* nvjpeg_fake.c - a library with the functions of nvJPEG that gpipe calls, for tests without a GPU: it decodes by
 * libjpeg, into host memory. Batches take what is baseline. */
#include <stdio.h>
#include <jpeglib.h>
#include <setjmp.h>
#include <stdlib.h>
#include "nvjpeg_fake.h"
#include "device/libraries.h"

#define SHOWN __attribute__((visibility("default")))
enum { FINE = 0, BAD = 3, NO_MEMORY = 5, Y = 2, HARDWARE = 3 };

SHOWN nvjpeg_fake nvjpeg_fake_does;

typedef struct parser { unsigned w, h, colors; bool baseline; } parser;
typedef struct state { int n, format; bool used_up; } state;
typedef struct errors { struct jpeg_error_mgr base; jmp_buf back; } errors;

static _Noreturn void leave(j_common_ptr c)
{
    longjmp(((errors *)c->err)->back, 1);
}

static void quiet(j_common_ptr c, int level)
{
    (void)c, (void)level;
}

/* Only the header, with to NULL. */
static int with_libjpeg(const unsigned char *file, size_t n, parser *p, const gp_gpu_image *to, int format)
{
    struct jpeg_decompress_struct d;
    errors e;
    d.err = jpeg_std_error(&e.base);
    e.base.error_exit = leave, e.base.emit_message = quiet;
    if (setjmp(e.back)) {
        jpeg_destroy_decompress(&d);
        return BAD;
    }
    jpeg_create_decompress(&d);
    jpeg_mem_src(&d, file, n);
    jpeg_read_header(&d, TRUE);
    if (p)
        *p = (parser){ d.image_width, d.image_height, (unsigned)d.num_components, !d.progressive_mode && !d.arith_code };
    if (to) {
        d.out_color_space = format == Y ? JCS_GRAYSCALE : JCS_RGB;
        jpeg_start_decompress(&d);
        while (d.output_scanline < d.output_height)
            jpeg_read_scanlines(&d, &(JSAMPROW){ to->channel[0] + d.output_scanline * to->pitch[0] }, 1);
        jpeg_finish_decompress(&d);
    }
    jpeg_destroy_decompress(&d);
    return FINE;
}

SHOWN int nvjpegGetProperty(int which, int *value)
{
    *value = which ? 0 : nvjpeg_fake_does.version;
    return FINE;
}

SHOWN int nvjpegCreateEx(int backend, void *device_allocator, void *host_allocator, unsigned flags, void **handle)
{
    (void)device_allocator, (void)host_allocator, (void)flags;
    if (backend == HARDWARE && nvjpeg_fake_does.create_status)
        return nvjpeg_fake_does.create_status;
    *handle = malloc(1);
    return FINE;
}

SHOWN int nvjpegDestroy(void *handle)
{
    free(handle);
    return FINE;
}

SHOWN int nvjpegJpegStateCreate(void *handle, void **s)
{
    (void)handle;
    *s = calloc(1, sizeof(state));
    return FINE;
}

SHOWN int nvjpegJpegStateDestroy(void *s)
{
    free(s);
    return FINE;
}

SHOWN int nvjpegJpegStreamCreate(void *handle, void **p)
{
    (void)handle;
    *p = calloc(1, sizeof(parser));
    return FINE;
}

SHOWN int nvjpegJpegStreamDestroy(void *p)
{
    free(p);
    return FINE;
}

SHOWN int nvjpegJpegStreamParseHeader(void *handle, const unsigned char *file, size_t n, void *p)
{
    (void)handle;
    return with_libjpeg(file, n, p, NULL, 0);
}

SHOWN int nvjpegJpegStreamGetFrameDimensions(void *p, unsigned *w, unsigned *h)
{
    *w = ((parser *)p)->w + nvjpeg_fake_does.wider, *h = ((parser *)p)->h;
    return FINE;
}

SHOWN int nvjpegJpegStreamGetComponentsNum(void *p, unsigned *n)
{
    *n = ((parser *)p)->colors;
    return FINE;
}

SHOWN int nvjpegDecodeBatchedSupported(void *handle, void *p, int *refuses)
{
    (void)handle;
    *refuses = !((parser *)p)->baseline;
    return FINE;
}

SHOWN int nvjpegDecodeBatchedInitialize(void *handle, void *s, int n, int threads, int format)
{
    state *x = s;
    (void)handle, (void)threads;
    x->n = n, x->format = format;
    return x->used_up ? 6 : FINE;
}

SHOWN int nvjpegDecodeBatched(void *handle, void *s, const unsigned char *const *file, const size_t *n, gp_gpu_image *to,
                              void *stream)
{
    state *x = s;
    (void)handle, (void)stream;
    if (nvjpeg_fake_does.room && x->n > nvjpeg_fake_does.room) {
        x->used_up = true;             /* whoever goes on with it gets nowhere */
        return NO_MEMORY;
    }
    for (int i = 0; i < x->n; i++)
        if (n[i] == nvjpeg_fake_does.bad || with_libjpeg(file[i], n[i], NULL, &to[i], x->format)) {
            x->used_up = true;
            return nvjpeg_fake_does.bad_status;
        }
    atomic_fetch_add(&nvjpeg_fake_does.in_batches, x->n);
    for (int was = atomic_load(&nvjpeg_fake_does.most); x->n > was
         && !atomic_compare_exchange_weak(&nvjpeg_fake_does.most, &was, x->n);)
        ;
    return FINE;
}

SHOWN int nvjpegDecode(void *handle, void *s, const unsigned char *file, size_t n, int format, gp_gpu_image *to,
                       void *stream)
{
    (void)handle, (void)s, (void)stream;
    atomic_fetch_add(&nvjpeg_fake_does.alone, 1);
    return n == nvjpeg_fake_does.bad ? nvjpeg_fake_does.bad_status : with_libjpeg(file, n, NULL, to, format);
}
