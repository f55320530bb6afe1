/* files.c - what files are by their names, and reading them whole, see files.h. */
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "picture_file.h"
#include "rows_file.h"

typedef struct format {
    const char *word, *extensions;
    const char *const *magic, *const *options;     /* magic: first bytes, of which '?' is any */
    const gp_picfile *picture;
    const gp_rowsfile *rows;
} format;

static const char *const none[] = { NULL }, *const array[] = { "\x93NUMPY", NULL };
#define PLAIN(word, magic, extensions) { #word, extensions, magic, none, NULL, NULL },
#define PICTURE(word, constant, extensions) { #word, extensions, constant.magic, constant.options, &constant, NULL },
#define ROWS(word, constant, extensions) { #word, extensions, constant.magic, constant.options, NULL, &constant },
static const format table[GP_WHOLE + 1] = {
    PLAIN(auto, none, "") GP_PLAIN(PLAIN) GP_PICTURES(PICTURE) GP_ROWS(ROWS)
    PLAIN(bytes, none, "")
};

gp_filetype gp_filetype_of(const char *path)
{
    const char *dot = strrchr(path, '.');
    size_t n = dot ? strlen(dot) : 0;
    for (int i = GP_RAW; n > 1 && i < GP_WHOLE; i++)
        for (const char *e = table[i].extensions; (e = strcasestr(e, dot)); e++)
            if (e[n] == ' ' || !e[n])
                return (gp_filetype)i;
    return GP_AUTO;
}

static bool begins(const char *head, size_t n, const char *magic)
{
    size_t i = 0;
    while (i < n && magic[i] && (magic[i] == '?' || magic[i] == head[i]))
        i++;
    return !magic[i];
}

gp_filetype gp_filetype_begun(const void *head, size_t n)
{
    for (int i = GP_RAW; i < GP_WHOLE; i++)
        for (const char *const *m = table[i].magic; *m; m++)
            if (begins(head, n, *m))
                return (gp_filetype)i;
    return GP_AUTO;
}

gp_filetype gp_filetype_is(const char *path, const void *head, size_t n)
{
    gp_filetype named = gp_filetype_of(path), begun = gp_filetype_begun(head, n);
    return (named && !*table[named].magic) || !begun ? named : begun;
}

const gp_picfile *gp_picfile_of(gp_filetype as)
{
    return table[as].picture;
}

const gp_rowsfile *gp_rowsfile_of(gp_filetype as)
{
    return table[as].rows;
}

const char *gp_filetype_word(gp_filetype as)
{
    return table[as].word;
}

bool gp_filetype_takes(gp_filetype as, const char *option)
{
    const char *const *o = table[as].options;
    while (*o && strcmp(*o, option))
        o++;
    return *o;
}

static bool no_memory(char err[GP_WHY])
{
    return gp_why(err, GP_WHY_MEMORY);
}

bool gp_next_number(const char *pattern, uint64_t start, uint64_t *next, char err[GP_WHY])
{
    char folder[PATH_MAX];
    const char *name = pattern + gp_path_folder(pattern);
    struct dirent *e;
    uint64_t number;
    *next = start;
    if (!gp_path_expand(folder, pattern, 0, "", err))
        return false;
    folder[gp_path_folder(folder)] = 0;
    DIR *d = opendir(*folder ? folder : ".");
    if (!d)
        return errno == ENOENT || gp_why(err, "cannot be listed: %s", gp_strerror(errno));
    while (errno = 0, (e = readdir(d)))
        if (gp_path_match(name, e->d_name, &number) && number >= *next)
            *next = number + 1;
    int bad = errno;
    closedir(d);
    return !bad || gp_why(err, "cannot be listed: %s", gp_strerror(bad));
}

bool gp_has_room(const gp_type *picture, int64_t max_pixels, char err[GP_WHY])
{
    double pixels = (double)picture->dim[0] * (double)picture->dim[1], bytes = pixels * (double)gp_dtype_size(picture->dtype);
    long long rows = picture->dim[0], cols = picture->dim[1];
    if (max_pixels && pixels > (double)max_pixels)
        return gp_why(err, "says that it has %lld x %lld pixels, and 'max_pixels' is %lld: a larger number reads it", cols, rows,
                      (long long)max_pixels);
    return bytes * (double)(picture->ndim > 2 ? picture->dim[2] : 1) <= 0x1p40
        || gp_why(err, "says that it has %lld x %lld pixels, which is more than 1 TiB", cols, rows);
}

bool gp_file_fits(const gp_type *found, const gp_type *most, unsigned varies, char why[GP_WHY])
{
    char have[128], want[GP_BOUNDS_TEXT];
    bool fits = found->dtype == most->dtype && found->ndim == most->ndim;
    for (int k = 0; fits && k < found->ndim; k++)
        fits = varies >> k & 1 ? found->dim[k] <= most->dim[k] : found->dim[k] == most->dim[k];
    return fits || gp_why(why, "holds %s, which does not fit in %s", gp_type_text(found, have),
                          gp_bounds_text(most, varies, want));
}

bool gp_file_take(gp_view *v, const gp_type *most, unsigned varies, const gp_type *found, char why[GP_WHY])
{
    if (!gp_file_fits(found, most, varies, why))
        return false;
    v->type = *found;
    return true;
}

/* ---- reading --------------------------------------------------------- */

int64_t gp_read_at(int fd, void *buf, size_t n, int64_t at)
{
    size_t got = 0;
    while (got < n) {
        ssize_t k = pread(fd, (char *)buf + got, n - got, (off_t)at + (off_t)got);
        if (k < 0 && errno == EINTR)
            continue;
        if (k < 0)
            return -1;
        if (!k)
            break;
        got += (size_t)k;
    }
    return (int64_t)got;
}

bool gp_growbuf_need(gp_growbuf *r, size_t cap)
{
    if (cap <= r->cap)
        return true;
    size_t grown = cap < 2 * r->cap ? 2 * r->cap : cap;
    void *data = realloc(r->data, grown);
    if (!data)
        return false;
    r->data = data;
    r->cap = grown;
    return true;
}

bool gp_read_file(int fd, size_t max, gp_growbuf *r, char err[GP_WHY])
{
    struct stat st;
    if (fstat(fd, &st))
        return gp_why(err, "cannot be read: %s", gp_strerror(errno));
    size_t n = (uintmax_t)st.st_size < max ? (size_t)st.st_size : max;
    if (!gp_growbuf_need(r, n))
        return no_memory(err);
    int64_t got = gp_read_at(fd, r->data, n, 0);
    if (got < 0)
        return gp_why(err, "cannot be read: %s", gp_strerror(errno));
    r->n = (size_t)got;
    return true;
}
