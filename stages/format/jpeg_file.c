/* jpeg_file.c - JPEG through libjpeg, see picture_file.h.
 *
 * A frame is u8, gray or RGB, which is also made of CMYK. What libjpeg only warns of, corrupt and missing data, is an
 * error, but for faults that leave all pixels as they were, and a cut that costs a few rows: these are told as a
 * warning, unless all is to be strict. EXIF says which side of a picture is up: its pixels are then put there, and the
 * frame's shape is that of the upright picture. libjpeg leaves by longjmp: each setjmp stands in a function of its own
 * whose caller owns everything, so that no local changes between the two. */
#include <string.h>
#include <stdio.h>
#include <jpeglib.h>
#include <jerror.h>
#include <setjmp.h>
#include "base/plural.h"
#include "jpeg_file.h"

enum { SOI = 0xd8, EOI, SOS, SOF0 = 0xc0, DHT = 0xc4, JPG = 0xc8, DAC = 0xcc, APP0 = 0xe0, APP1 = 0xe1, APP14 = 0xee,
       TEM = 0x01 };
enum { MOST_SCANS = 500, LONGEST = JPEG_MAX_DIMENSION, STRIP = 16 };

/* ---- the header ------------------------------------------------------ */

typedef struct header {
    gp_type type;              /* as stored */
    int orientation;           /* of EXIF, 1 to 8 */
    int sof;                   /* which SOF it has */
    int ids;                   /* of three components, as 0x010203 */
    bool inks;                 /* CMYK, or YCCK: type is that of the RGB that is made of it */
    bool stray;                /* there are bytes between its segments */
} header;

static unsigned be16(const unsigned char *p)
{
    return (unsigned)p[0] << 8 | p[1];
}

static bool is_frame(int marker)
{
    return marker >= 0xc0 && marker <= 0xcf && marker != DHT && marker != JPG && marker != DAC;
}

/* Which SOF: baseline, extended and progressive, with Huffman or arithmetic codes. */
static bool take_frame(const unsigned char *p, size_t n, int sof, header *h, char err[GP_WHY])
{
    if ((sof & 3) == 3 || (sof & 4))
        return gp_why(err, "is a lossless or hierarchical JPEG file, which gpipe does not read: convert it first");
    if (n < 6 || n < 6 + 3 * (size_t)p[5] || !be16(p + 1) || !be16(p + 3) || !p[5])
        return gp_why(err, "is a JPEG file with a broken header");
    if (p[0] != 8)
        return gp_why(err, "is a JPEG file of %d bits, of which gpipe reads those of 8: convert it first", p[0]);
    if (p[5] != 1 && p[5] != 3 && p[5] != 4)
        return gp_why(err, "is a JPEG file of %d colors, of which gpipe reads gray, RGB and CMYK: convert it first", p[5]);
    bool color = p[5] >= 3;
    h->sof = sof, h->inks = p[5] == 4;
    h->ids = p[5] == 3 ? p[6] << 16 | p[9] << 8 | p[12] : 0;
    h->type = (gp_type){ .dtype = GP_U8, .ndim = color ? 3 : 2, .dim = { be16(p + 1), be16(p + 3), color ? 3 : 0 } };
    return true;
}

static bool parse(const void *head, size_t n, const gp_picfile_how *how, header *h, char err[GP_WHY])
{
    const unsigned char *p = head;
    *h = (header){ .orientation = 1 };
    if (n < 3 || p[0] != 0xff || p[1] != SOI || p[2] != 0xff)
        return gp_why(err, "is not a JPEG file");
    for (size_t at = 2; at + 4 <= n;) {
        int marker = p[at + 1];
        bool stray = p[at] != 0xff || !marker;
        if ((stray && how->strict) || (!stray && (marker == SOI || marker == EOI || marker == SOS)))
            return gp_why(err, "is a JPEG file with a broken header");
        if (stray) {                   /* whether they matter, is seen when it is decoded */
            h->stray = true;
            at++;
            continue;
        }
        if (marker == 0xff || marker == TEM) {         /* a fill byte; a marker alone */
            at += marker == TEM ? 2 : 1;
            continue;
        }
        size_t size = be16(p + at + 2), there = n - at - 2;
        if (size < 2)
            return gp_why(err, "is a JPEG file with a broken header");
        if (is_frame(marker) && size <= there)
            return take_frame(p + at + 4, size - 2, marker & 15, h, err);
        size_t exif = (size < there ? size : there) - 2;
        if (marker == APP1 && exif >= 6 && !memcmp(p + at + 4, "Exif\0", 6))
            h->orientation = gp_turn_of_exif(p + at + 10, exif - 6, h->orientation);
        at += 2 + size;
    }
    return gp_why(err, "has no picture in its first %zu bytes", n);
}

static gp_type upright(const header *h, const gp_picfile_how *how)
{
    gp_type t = h->type;
    if (!how->keep_orientation && h->orientation >= 5)
        t.dim[0] = h->type.dim[1], t.dim[1] = h->type.dim[0];
    for (int k = 0; k < 2; k++)
        t.dim[k] = (t.dim[k] + (1 << how->halvings) - 1) >> how->halvings;     /* as libjpeg has it */
    return h->inks ? t : gp_picfile_colored(how, t);
}

static bool jpeg_head(const void *head, size_t n, const gp_picfile_how *how, gp_type *type, char err[GP_WHY])
{
    header h;
    if (!parse(head, n, how, &h, err))
        return false;
    *type = upright(&h, how);
    return true;
}

/* ---- for who decodes it without libjpeg ------------------------------ */

/* Has the scan of a file that is not progressive all coefficients, of all bits? */
static bool is_sequential(const unsigned char *sos, size_t n)
{
    const unsigned char *last = n >= 4 && n >= 4 + 2 * (size_t)sos[0] ? sos + 1 + 2 * sos[0] : NULL;
    return last && !last[0] && last[1] == 63 && !last[2];
}

/* Goes through the segments before the first scan, and notes those that say what the colors are. 0: there is no scan,
 * or none that is as it should be. */
static size_t first_scan(const unsigned char *p, size_t n, bool progressive, bool *jfif, int *adobe)
{
    for (size_t at = 2; at + 4 <= n;) {
        int marker = p[at + 1];
        if (p[at] != 0xff)
            return 0;
        if (marker == 0xff || marker == TEM) {
            at += marker == TEM ? 2 : 1;
            continue;
        }
        size_t size = be16(p + at + 2), there = n - at - 2;
        const unsigned char *data = p + at + 4;
        if (size < 2 || size > there || marker == EOI)
            return 0;
        if (marker == SOS)
            return progressive || is_sequential(data, size - 2) ? at + 2 + size : 0;
        *jfif |= marker == APP0 && size >= 16 && !memcmp(data, "JFIF", 5);
        if (marker == APP14 && size >= 14 && !memcmp(data, "Adobe", 5))
            *adobe = data[11];
        at += 2 + size;
    }
    return 0;
}

/* Is there an end behind the first scan? What is coded has no such bytes. */
static bool has_end(const unsigned char *p, size_t from, size_t n)
{
    for (size_t at = n; at >= from + 2; at--)
        if (p[at - 2] == 0xff && p[at - 1] == EOI)
            return true;
    return false;
}

bool gp_jpeg_look(const void *file, size_t n, const gp_picfile_how *how, gp_jpeg_is *is, char err[GP_WHY])
{
    enum { RGB = 'R' << 16 | 'G' << 8 | 'B' };
    header h;
    bool jfif = false;
    int adobe = -1;
    if (!parse(file, n, how, &h, err))
        return false;
    size_t scan = first_scan(file, n, (h.sof & 3) == 2, &jfif, &adobe);
    bool color = h.type.ndim == 3;
    *is = (gp_jpeg_is){ .stored = h.type, .type = gp_picfile_colored(how, upright(&h, how)),
                        .turned = !how->keep_orientation && h.orientation != 1,
                        .turn = gp_turn_for(h.orientation, h.type.dim[1], h.type.dim[0]), .huffman = h.sof < 8,
                        .plain = !h.inks && !h.stray && scan && has_end(file, scan, n),
                        .rgb = color && !jfif && (adobe == 0 || (adobe < 0 && h.ids == RGB)) };
    return gp_has_room(&is->type, how->max_pixels, err);
}

/* ---- what libjpeg calls ---------------------------------------------- */

/* A picture that is decoded or encoded. libjpeg knows the address of the first member. */
typedef struct session {
    struct jpeg_error_mgr errors;
    struct jpeg_progress_mgr progress;
    struct jpeg_source_mgr source;
    struct jpeg_destination_mgr to;
    jmp_buf back;
    const unsigned char *file;
    size_t n;                  /* its bytes */
    bool strict, scans;        /* its header is read */
    bool ended;                /* it was read to its last byte, and has no end */
    int64_t lost;              /* rows that it does not have */
    bool stray, unsure;        /* it has bytes that mean nothing; they may be what a table had before one was put into it */
    bool progressive;          /* its scan says that it is a part of a progressive one, which it is not */
    gp_growbuf *out;
    const char *what;          /* how an error begins */
    char *err;
} session;

static session *session_of(j_common_ptr c)
{
    return (session *)c->err;
}

static _Noreturn void leave(session *s)
{
    longjmp(s->back, 1);
}

static _Noreturn void cut_off(session *s)
{
    gp_why(s->err, "is cut off: its picture goes on after %zu bytes", s->n);
    leave(s);
}

static void on_error(j_common_ptr c)
{
    session *s = session_of(c);
    char text[JMSG_LENGTH_MAX];
    c->err->format_message(c, text);
    if (c->err->msg_code == JERR_OUT_OF_MEMORY)
        gp_why(s->err, c->is_decompressor ? "cannot be decoded: " GP_WHY_MEMORY : "cannot be encoded: " GP_WHY_MEMORY);
    else
        gp_why(s->err, "%s: %s", s->what, text);
    leave(s);
}

/* `n` bytes are passed over up to the next marker. Behind what is coded they are padding if all are the same, else what
 * was coded is damaged; before it, they may be a segment whose marker or length is. */
static bool is_stray(session *s, j_decompress_ptr d, size_t n)
{
    const unsigned char *end = d->src->next_input_byte, *p = end - n;
    if (s->ended || (size_t)(end - s->file) < n)
        return false;
    bool same = !memcmp(p, p + 1, n - 1);
    s->stray = true, s->unsure |= !same || *p;
    if (s->scans)
        return same;
    size_t size = n < 4 ? 0 : 2 + be16(p + 2);
    return n < 4 || (size != n && (size < n || p[1] < SOF0));
}

/* The coded data end too early, and the file with them; where that goes on, something before is damaged. Of how many
 * rows the last is not there, or not all of it: one takes colors of that below, where these have fewer rows. A few may
 * be missing. */
static bool is_little(session *s, j_decompress_ptr d)
{
    enum { FEW = 4 };                  /* a quarter */
    if (!s->ended || d->unread_marker != EOI || d->arith_code || jpeg_has_multiple_scans(d))
        return false;
    int64_t there = (int64_t)d->input_iMCU_row * d->max_v_samp_factor * DCTSIZE - (d->max_v_samp_factor > 1);
    s->lost = s->lost ? s->lost : (int64_t)d->image_height - (there < 0 ? 0 : there);
    return s->lost * FEW <= (int64_t)d->image_height;
}

/* A warning (level -1) says that data are corrupt or missing, with exceptions. */
static void on_message(j_common_ptr c, int level)
{
    session *s = session_of(c);
    j_decompress_ptr d = (j_decompress_ptr)c;
    int code = c->err->msg_code;
    if (level >= 0 || code == JWRN_ADOBE_XFORM || code == JWRN_JFIF_MAJOR)
        return;
    if (!c->is_decompressor || s->strict)
        on_error(c);
    bool early = code == JWRN_HIT_MARKER || code == JWRN_MUST_RESYNC;
    bool goes_on = early ? is_little(s, d) : code == JWRN_EXTRANEOUS_DATA ? is_stray(s, d, (size_t)c->err->msg_parm.i[0])
                 : code == JWRN_NOT_SEQUENTIAL;
    if (early && !goes_on && s->ended)
        cut_off(s);
    if (!goes_on)
        on_error(c);
    s->progressive |= code == JWRN_NOT_SEQUENTIAL;
}

/* Many scans of nothing take hours: a picture has ten or so. */
static void on_progress(j_common_ptr c)
{
    session *s = session_of(c);
    if (c->is_decompressor && ((j_decompress_ptr)c)->input_scan_number > MOST_SCANS) {
        gp_why(s->err, "is a JPEG file of more than %d scans", MOST_SCANS);
        leave(s);
    }
}

static void on_source(j_decompress_ptr d)
{
}

/* It has an end, then. */
static boolean on_read(j_decompress_ptr d)
{
    static const JOCTET end[] = { 0xff, EOI };
    session *s = session_of((j_common_ptr)d);
    if (s->strict || !s->scans)
        cut_off(s);
    s->ended = true;
    d->src->next_input_byte = end, d->src->bytes_in_buffer = sizeof end;
    return TRUE;
}

static void on_skip(j_decompress_ptr d, long n)
{
    if (n > 0 && (size_t)n > d->src->bytes_in_buffer)
        cut_off(session_of((j_common_ptr)d));
    d->src->next_input_byte += n > 0 ? n : 0;
    d->src->bytes_in_buffer -= n > 0 ? (size_t)n : 0;
}

/* All that has room behind out->n is libjpeg's. */
static void lend_room(j_compress_ptr c, size_t room)
{
    gp_growbuf *out = session_of((j_common_ptr)c)->out;
    if (!gp_growbuf_need(out, out->n + room))
        ERREXIT1(c, JERR_OUT_OF_MEMORY, 0);
    c->dest->next_output_byte = out->data + out->n;
    c->dest->free_in_buffer = out->cap - out->n;
}

static void on_begin(j_compress_ptr c)
{
    lend_room(c, 1 << 16);
}

static boolean on_full(j_compress_ptr c)
{
    gp_growbuf *out = session_of((j_common_ptr)c)->out;
    out->n = out->cap;
    lend_room(c, 1 << 16);
    return TRUE;
}

static void on_end(j_compress_ptr c)
{
    gp_growbuf *out = session_of((j_common_ptr)c)->out;
    out->n = out->cap - c->dest->free_in_buffer;
}

static struct jpeg_error_mgr *errors(session *s, const char *what, char *err)
{
    jpeg_std_error(&s->errors);
    s->errors.error_exit = on_error;
    s->errors.emit_message = on_message;
    s->progress.progress_monitor = on_progress;
    s->what = what, s->err = err;
    return &s->errors;
}

/* ---- decode ---------------------------------------------------------- */

/* The next row. `inks`: room for one of CMYK, each color of which lets through what it has not of the paper's white;
 * those of Adobe are stored as what is let through. NULL: it has no inks. */
static void read_row(j_decompress_ptr d, unsigned char *inks, unsigned char *to)
{
    jpeg_read_scanlines(d, &(JSAMPROW){ inks ? inks : to }, 1);
    unsigned white = d->saw_Adobe_marker ? 0 : 255;
    for (unsigned x = 0; inks && x < d->output_width; x++, inks += 4)
        for (int k = 0; k < 3; k++)
            *to++ = (unsigned char)(((inks[k] ^ white) * (inks[3] ^ white) + 127) / 255);
}

static void decode_turned(j_decompress_ptr d, int orientation, unsigned char *inks, size_t row, unsigned char *frame)
{
    gp_turn t = gp_turn_for(orientation, d->output_width, d->output_height);
    unsigned char *strip = d->mem->alloc_large((j_common_ptr)d, JPOOL_IMAGE, STRIP * row);
    while (d->output_scanline < d->output_height) {
        unsigned y = d->output_scanline;
        while (d->output_scanline < d->output_height && d->output_scanline < y + STRIP)
            read_row(d, inks, strip + row * (d->output_scanline - y));
        gp_turn_rows(t, strip, (ptrdiff_t)(d->output_scanline - y), y, d->output_width, row / d->output_width, frame);
    }
}

/* libjpeg has tables of its own for codes that are not said. */
static bool lacks_codes(j_decompress_ptr d)
{
    bool lacks = false;
    for (int i = 0; i < d->comps_in_scan && !d->arith_code; i++) {
        int dc = d->cur_comp_info[i]->dc_tbl_no, ac = d->cur_comp_info[i]->ac_tbl_no;  /* which it has not looked at yet */
        lacks |= dc >= NUM_HUFF_TBLS || ac >= NUM_HUFF_TBLS || !d->dc_huff_tbl_ptrs[dc]
              || (!d->progressive_mode && !d->ac_huff_tbl_ptrs[ac]);
    }
    return lacks;
}

/* Is all of the picture there, of a file that ends within it, by what libjpeg says? Of one in several scans, it has all
 * bits of all coefficients. */
static bool has_all(j_decompress_ptr d)
{
    bool all = !d->arith_code && (d->progressive_mode || !jpeg_has_multiple_scans(d));
    for (int i = 0; i < d->num_components && d->progressive_mode; i++)
        for (int k = 0; k < DCTSIZE2; k++)
            all &= !d->coef_bits[i][k];
    return all;
}

/* Tells what is wrong with a picture that was decoded all the same. */
static void warn(const session *s, int64_t rows)
{
    *s->err = 0;
    if (s->lost)
        gp_why(s->err, "is cut off: of its last %lld row%s of %lld not all is in the file, and what is missing is gray",
               (long long)s->lost, gp_plural(s->lost), (long long)rows);
    else if (s->ended)
        gp_why(s->err, "is cut off behind its picture, or within its last pixels");
    else if (s->unsure)
        gp_why(s->err, "has bytes between its parts that mean nothing; if they are of a table, its colors are wrong");
    else if (s->progressive)
        gp_why(s->err, "has a scan that says that it is a part of a progressive one; if it lacks bytes there, its picture is "
               "wrong");
    else if (s->stray)
        gp_why(s->err, "has a fault, and its picture is whole: bytes between its parts mean nothing");
}

static bool decode(j_decompress_ptr d, session *s, const void *file, const header *h, const gp_picfile_how *how, bool gray,
                   unsigned char *frame)
{
    if (setjmp(s->back))
        return false;
    jpeg_create_decompress(d);
    d->progress = &s->progress;
    s->source = (struct jpeg_source_mgr){ .next_input_byte = file, .bytes_in_buffer = s->n, .init_source = on_source,
                                          .fill_input_buffer = on_read, .skip_input_data = on_skip,
                                          .resync_to_restart = jpeg_resync_to_restart, .term_source = on_source };
    d->src = &s->source;
    jpeg_read_header(d, TRUE);
    s->scans = true;
    if (s->stray && lacks_codes(d)) {
        gp_why(s->err, "is a JPEG file with a broken header");
        leave(s);
    }
    d->out_color_space = h->inks ? JCS_CMYK : gray ? JCS_GRAYSCALE : JCS_RGB;  /* luma alone needs no chroma */
    if (d->image_height != h->type.dim[0] || d->image_width != h->type.dim[1]) {
        gp_why(s->err, "is a broken JPEG file: it has two headers");
        leave(s);
    }
    d->scale_num = 1, d->scale_denom = 1u << how->halvings;
    jpeg_start_decompress(d);
    size_t row = (size_t)d->output_width * (gray ? 1 : 3);
    unsigned char *inks = h->inks ? d->mem->alloc_large((j_common_ptr)d, JPOOL_IMAGE, 4 * (size_t)d->output_width) : NULL;
    bool all = !s->ended || has_all(d);
    if (!how->keep_orientation && h->orientation != 1)
        decode_turned(d, h->orientation, inks, row, frame);
    while (d->output_scanline < d->output_height)
        read_row(d, inks, frame + row * d->output_scanline);
    if (!all || (s->ended && (s->unsure || s->progressive || !has_all(d))))
        cut_off(s);
    jpeg_finish_decompress(d);
    warn(s, d->image_height);
    return true;
}

static bool jpeg_decode(const void *file, size_t n, const gp_picfile_how *how, const gp_type *type, void *frame,
                        char err[GP_WHY])
{
    struct jpeg_decompress_struct d = { 0 };
    session s = { .file = file, .n = n, .strict = how->strict };
    header h;
    if (!parse(file, n, how, &h, err))
        return false;
    d.err = errors(&s, "is a broken JPEG file", err);
    bool ok = decode(&d, &s, file, &h, how, type->ndim == 2, frame);
    jpeg_destroy_decompress(&d);
    return ok;
}

/* ---- encode ---------------------------------------------------------- */

static const char *jpeg_why_not(const gp_type *t, const char *path)
{
    if (t->dtype != GP_U8)
        return "JPEG holds u8: put a 'cast' stage before this one";
    if (t->ndim != 2 && !(t->ndim == 3 && (t->dim[2] == 1 || t->dim[2] == 3)))
        return "JPEG holds frames of shape [H, W] or [H, W, 1 or 3]";
    if (t->dim[0] > LONGEST || t->dim[1] > LONGEST)
        return "JPEG holds at most 65500 rows and columns";
    return NULL;
}

static bool encode(j_compress_ptr c, session *s, const unsigned char *frame, const gp_type *t,
                   const gp_picfile_how *how)
{
    if (setjmp(s->back))
        return false;
    jpeg_create_compress(c);
    s->to = (struct jpeg_destination_mgr){ .init_destination = on_begin, .empty_output_buffer = on_full,
                                           .term_destination = on_end };
    c->dest = &s->to;
    c->image_height = (JDIMENSION)t->dim[0];
    c->image_width = (JDIMENSION)t->dim[1];
    c->input_components = t->ndim == 3 ? (int)t->dim[2] : 1;
    c->in_color_space = c->input_components == 3 ? JCS_RGB : JCS_GRAYSCALE;
    jpeg_set_defaults(c);
    jpeg_set_quality(c, how->quality, TRUE);
    c->comp_info[0].h_samp_factor = c->num_components == 3 && how->subsampling != GP_444 ? 2 : 1;
    c->comp_info[0].v_samp_factor = c->num_components == 3 && how->subsampling == GP_420 ? 2 : 1;
    jpeg_start_compress(c, TRUE);
    size_t row = (size_t)c->image_width * (size_t)c->input_components;
    while (c->next_scanline < c->image_height)
        jpeg_write_scanlines(c, &(JSAMPROW){ (unsigned char *)frame + row * c->next_scanline }, 1);
    jpeg_finish_compress(c);
    return true;
}

static bool jpeg_encode(const void *frame, const gp_type *type, const gp_picfile_how *how, gp_growbuf *out,
                        char err[GP_WHY])
{
    struct jpeg_compress_struct c = { 0 };
    session s = { .out = out };
    c.err = errors(&s, "cannot be made a JPEG file", err);
    bool ok = encode(&c, &s, frame, type, how);
    jpeg_destroy_compress(&c);
    return ok;
}

const gp_picfile gp_jpeg = {
    .most_for_a_byte = 1 << 16,        /* a block of one color is a bit or two, and up to 16 of luma share two of chroma */
    .name = "JPEG", .magic = { "\xff\xd8\xff" }, .options = { "quality", "subsampling" },
    .shrinks = true,
    .head = jpeg_head, .decode = jpeg_decode, .why_not = jpeg_why_not, .encode = jpeg_encode,
    .decode_ns = 1, .encode_ns = { 1, 1, 1, 1, 1, 1, 1, 1, 1, 1 }, .gray_times = 3,    /* chroma has fewer samples */
};
