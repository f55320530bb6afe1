/* pnm_file.c - PBM, PGM, PPM and PAM (netpbm), PFM, see picture_file.h.
 *
 * A header of words, one white space, rows of numbers, which P1 to P3 have as text. PNM: u8 or, where the largest value
 * (maxval) is above 255, big-endian u16, which stay as they are stored, whatever the maxval; bits, of which 1 is black,
 * are 255 and 0. PFM: f32 in the order of bytes that the sign of its third number says, the lowest row first. */
#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include "cut.h"
#include "picture_file.h"

typedef struct header {
    gp_type type;
    size_t data;               /* offset of the first row */
    bool big;                  /* PFM: the order of bytes */
    char kind;                 /* PNM: the digit behind its P; */
    int64_t most;              /* its maxval */
} header;

/* Past white space and comments, from # to the end of the line. */
static void skip_blanks(const unsigned char *p, size_t n, size_t *at)
{
    for (; *at < n && (isspace(p[*at]) || p[*at] == '#'); ++*at)
        if (p[*at] == '#')
            while (*at + 1 < n && p[*at + 1] != '\n' && p[*at + 1] != '\r')
                ++*at;
}

static bool next_character(const unsigned char *p, size_t n, size_t *at, char word[32])
{
    skip_blanks(p, n, at);
    word[0] = *at < n ? (char)p[(*at)++] : 0, word[1] = 0;
    return *at < n;
}

/* The next word of a header, into `word` and cut to its size; *at is then behind it. False: the bytes end within it. */
static bool next_word(const unsigned char *p, size_t n, size_t *at, char word[32])
{
    size_t k = 0;
    skip_blanks(p, n, at);
    for (; *at < n && !isspace(p[*at]); ++*at)
        if (k < 31)
            word[k++] = (char)p[*at];
    word[k] = 0;
    return *at < n;
}

static bool whole(const char *word, int64_t most, int64_t *value)
{
    *value = 0;
    for (; isdigit((unsigned char)*word) && *value <= most; word++)
        *value = 10 * *value + (*word - '0');
    return !*word && *value >= 1 && *value <= most;
}

/* A decimal number that is not 0; is it below? */
static bool scale(const char *word, bool *negative)
{
    *negative = *word == '-';
    word += *word == '-' || *word == '+';
    size_t mantissa = strspn(word, "0123456789."), exponent = strspn(word + mantissa, "eE+-0123456789");
    return !word[mantissa + exponent] && strpbrk(word, "123456789") && strpbrk(word, "123456789") < word + mantissa;
}

/* "P5 WIDTH HEIGHT LAST": the words but the last, which is put into `last`. NULL: there is none. */
static bool parse(const unsigned char *p, size_t n, const char *name, header *h, char *last, char err[GP_WHY])
{
    char width[32], height[32];
    h->data = 2;
    if (n > 2 && !isspace(p[2]) && p[2] != '#')
        return gp_why(err, "is not a %s file", name);
    if (!next_word(p, n, &h->data, width) || !next_word(p, n, &h->data, height)
        || (last && !next_word(p, n, &h->data, last)))
        return gp_why(err, "is cut off within its header, after %zu bytes", n);
    h->data++;                 /* one white space, and what follows is data */
    return (whole(height, INT32_MAX, &h->type.dim[0]) && whole(width, INT32_MAX, &h->type.dim[1]))
        || gp_why(err, "is a %s file with a broken header", name);
}

static size_t data_bytes(const header *h)
{
    return h->kind == '4' ? (size_t)h->type.dim[0] * (((size_t)h->type.dim[1] + 7) / 8) : gp_bytes(&h->type);
}

static bool is_there(const header *h, size_t n, char err[GP_WHY])
{
    size_t want = data_bytes(h), left = n - h->data;
    return want <= left || gp_why(err, "is cut off: %zu more bytes expected after %zu found", want - left, n);
}

/* ---- PGM and PPM ----------------------------------------------------- */

/* PAM: pairs of words, but for TUPLTYPE; the last is "ENDHDR", a word alone; its line ends the header. */
static bool parse_pam(const unsigned char *p, size_t n, header *h, char err[GP_WHY])
{
    char word[32], value[32];
    int64_t depth = 0;
    const struct { const char *name; int64_t most, *to; } numbers[] = {
        { "WIDTH", INT32_MAX, &h->type.dim[1] }, { "HEIGHT", INT32_MAX, &h->type.dim[0] }, { "DEPTH", 4, &depth },
        { "MAXVAL", UINT16_MAX, &h->most },
    };
    bool ok = true;
    for (h->data = 2; next_word(p, n, &h->data, word) && strcmp(word, "ENDHDR");) {
        if (!strcmp(word, "TUPLTYPE")) {       /* what it is comes up to the end of the line, and may be nothing */
            while (h->data < n && p[h->data] != '\n')
                h->data++;
            continue;
        }
        if (!next_word(p, n, &h->data, value))
            break;
        for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
            ok &= strcmp(word, numbers[i].name) || whole(value, numbers[i].most, numbers[i].to);
    }
    if (ok && h->data >= n)
        return gp_why(err, "is cut off within its header, after %zu bytes", n);
    h->data++;
    h->type.ndim = depth > 1 ? 3 : 2, h->type.dim[2] = depth > 1 ? depth : 0;
    return (ok && h->type.dim[0] && h->type.dim[1] && depth && h->most) || gp_why(err, "is a PNM file with a broken header");
}

static bool parse_pnm(const void *head, size_t n, header *h, char err[GP_WHY])
{
    const unsigned char *p = head;
    char last[32];
    *h = (header){ 0 };
    if (n < 2 || p[0] != 'P' || p[1] < '1' || p[1] > '7' || (p[1] == '7' && n > 2 && !isspace(p[2])))
        return gp_why(err, "is not a PNM file");
    h->kind = (char)p[1];
    bool bits = h->kind == '1' || h->kind == '4', gray = bits || h->kind == '2' || h->kind == '5';
    h->most = 1, h->type.ndim = gray ? 2 : 3, h->type.dim[2] = gray ? 0 : 3;
    if (h->kind == '7' ? !parse_pam(p, n, h, err) : !parse(p, n, "PNM", h, bits ? NULL : last, err))
        return false;
    if (!bits && h->kind != '7' && !whole(last, UINT16_MAX, &h->most))
        return gp_why(err, "is a PNM file with a broken header");
    h->type.dtype = h->most > UINT8_MAX ? GP_U16 : GP_U8;
    return true;
}

/* The numbers of P1 to P3; those of P1 may stand without blanks. */
static bool take_text(const unsigned char *p, size_t n, const header *h, void *to, char err[GP_WHY])
{
    size_t count = (size_t)gp_count(&h->type), at = h->data - 1;
    char word[32];
    int64_t v;
    for (size_t i = 0; i < count; i++) {
        bool more = h->kind == '1' ? next_character(p, n, &at, word) : next_word(p, n, &at, word);
        if (!*word)
            return gp_why(err, "is cut off: it has %zu of %zu numbers", i, count);
        if (strcmp(word, "0") && !whole(word, h->most, &v))
            return gp_why(err, "is damaged: '%s' is not a number from 0 to %lld", word, (long long)h->most);
        v = strcmp(word, "0") ? v : 0;
        if (h->type.dtype == GP_U16)
            ((uint16_t *)to)[i] = (uint16_t)v;
        else
            ((uint8_t *)to)[i] = (uint8_t)(h->kind == '1' ? 255 * !v : v);
        if (!more && i + 1 < count && h->kind != '1')
            return gp_why(err, "is cut off: it has %zu of %zu numbers", i + 1, count);
    }
    return true;
}

static void take_bits(const unsigned char *from, const gp_type *t, unsigned char *to)
{
    for (int64_t y = 0; y < t->dim[0]; y++, from += (t->dim[1] + 7) / 8)
        for (int64_t x = 0; x < t->dim[1]; x++)
            *to++ = from[x / 8] >> (7 - x % 8) & 1 ? 0 : 255;
}

static bool pnm_head(const void *head, size_t n, const gp_picfile_how *how, gp_type *type, char err[GP_WHY])
{
    header h;
    bool ok = parse_pnm(head, n, &h, err);
    *type = h.type;
    return ok;
}

static bool pnm_decode(const void *file, size_t n, const gp_picfile_how *how, const gp_type *type, void *frame,
                       char err[GP_WHY])
{
    header h;
    if (!parse_pnm(file, n, &h, err))
        return false;
    if (h.kind <= '3')
        return take_text(file, n, &h, frame, err);
    if (!is_there(&h, n, err))
        return false;
    size_t bytes = data_bytes(&h);
    if (h.data + bytes < n && ((const char *)file)[h.data + bytes] == 'P')
        return gp_why(err, "has more than one picture, of which gpipe would read the first alone: write each into a "
                      "file");
    if (h.kind == '4') {
        take_bits((const unsigned char *)file + h.data, type, frame);
        return true;
    }
    memcpy(frame, (const char *)file + h.data, gp_bytes(type));
    if (type->dtype == GP_U16)
        gp_swap(frame, type);
    return true;
}

/* Is the extension of `path` this one? */
static bool is_called(const char *path, const char *suffix)
{
    const char *dot = strrchr(path, '.');
    return dot && !strcasecmp(dot, suffix);
}

static int channels(const gp_type *t)
{
    return t->ndim == 2 ? 1 : t->ndim == 3 && (t->dim[2] == 1 || t->dim[2] == 3) ? (int)t->dim[2] : 0;
}

static const char *pnm_why_not(const gp_type *t, const char *path)
{
    if (is_called(path, ".pbm") || is_called(path, ".pam"))
        return "PBM and PAM are read, and not written: name it .pgm or .ppm";
    if (t->dtype != GP_U8 && t->dtype != GP_U16)
        return "PNM holds u8 or u16: put a 'cast' stage before this one";
    if (!channels(t))
        return "PNM holds frames of shape [H, W] or [H, W, 1 or 3]";
    if (channels(t) == 3 && is_called(path, ".pgm"))
        return "PGM is gray: name it .ppm, or put a 'gray' stage before this one";
    if (channels(t) == 1 && is_called(path, ".ppm"))
        return "PPM is RGB: name it .pgm";
    return NULL;
}

/* A header, and room for the data behind it. */
static bool begin(gp_growbuf *out, const gp_type *t, const char *kind, const char *last, char err[GP_WHY])
{
    char head[100];
    int n = snprintf(head, sizeof head, "%s\n%lld %lld\n%s\n", kind, (long long)t->dim[1], (long long)t->dim[0], last);
    if (!gp_growbuf_need(out, (size_t)n + gp_bytes(t)))
        return gp_why(err, "cannot be encoded: " GP_WHY_MEMORY);
    memcpy(out->data, head, (size_t)n);
    out->n = (size_t)n;
    return true;
}

static bool pnm_encode(const void *frame, const gp_type *t, const gp_picfile_how *how, gp_growbuf *out,
                       char err[GP_WHY])
{
    const unsigned char *from = frame;
    size_t n = gp_bytes(t);
    if (!begin(out, t, channels(t) == 1 ? "P5" : "P6", t->dtype == GP_U8 ? "255" : "65535", err))
        return false;
    unsigned char *to = out->data + out->n;
    if (t->dtype == GP_U8)
        memcpy(to, from, n);
    else
        for (size_t i = 0; i < n; i += 2)
            to[i] = from[i + 1], to[i + 1] = from[i];
    out->n += n;
    return true;
}

const gp_picfile gp_pnm = {
    .name = "PNM", .magic = { "P5", "P6", "P1", "P2", "P3", "P4", "P7" },
    .most_for_a_byte = 8,
    .head = pnm_head, .decode = pnm_decode, .why_not = pnm_why_not, .encode = pnm_encode,
};

/* ---- PFM ------------------------------------------------------------- */

static bool parse_pfm(const void *head, size_t n, header *h, char err[GP_WHY])
{
    const unsigned char *p = head;
    char last[32];
    bool little;
    *h = (header){ 0 };
    if (n < 2 || p[0] != 'P' || (p[1] != 'f' && p[1] != 'F'))
        return gp_why(err, "is not a PFM file");
    if (!parse(p, n, "PFM", h, last, err))
        return false;
    if (!scale(last, &little))
        return gp_why(err, "is a PFM file with a broken header");
    h->big = !little;
    h->type.dtype = GP_F32;
    h->type.ndim = p[1] == 'f' ? 2 : 3, h->type.dim[2] = p[1] == 'f' ? 0 : 3;
    return true;
}

static bool pfm_head(const void *head, size_t n, const gp_picfile_how *how, gp_type *type, char err[GP_WHY])
{
    header h;
    bool ok = parse_pfm(head, n, &h, err);
    *type = h.type;
    return ok;
}

/* Rows in the other order. */
static void flip(void *to, const void *from, const gp_type *t)
{
    size_t row = gp_bytes(t) / (size_t)t->dim[0];
    for (int64_t y = 0; y < t->dim[0]; y++)
        memcpy((char *)to + row * (size_t)y, (const char *)from + row * (size_t)(t->dim[0] - 1 - y), row);
}

static bool pfm_decode(const void *file, size_t n, const gp_picfile_how *how, const gp_type *type, void *frame,
                       char err[GP_WHY])
{
    header h;
    if (!parse_pfm(file, n, &h, err) || !is_there(&h, n, err))
        return false;
    flip(frame, (const char *)file + h.data, type);
    if (h.big)
        gp_swap(frame, type);
    return true;
}

static const char *pfm_why_not(const gp_type *t, const char *path)
{
    if (t->dtype != GP_F32)
        return "PFM holds f32: put a 'cast' stage before this one";
    return channels(t) ? NULL : "PFM holds frames of shape [H, W] or [H, W, 1 or 3]";
}

static bool pfm_encode(const void *frame, const gp_type *t, const gp_picfile_how *how, gp_growbuf *out,
                       char err[GP_WHY])
{
    if (!begin(out, t, channels(t) == 1 ? "Pf" : "PF", "-1.0", err))
        return false;
    flip(out->data + out->n, frame, t);
    out->n += gp_bytes(t);
    return true;
}

const gp_picfile gp_pfm = {
    .name = "PFM", .magic = { "Pf", "PF" },
    .head = pfm_head, .decode = pfm_decode, .why_not = pfm_why_not, .encode = pfm_encode,
};
