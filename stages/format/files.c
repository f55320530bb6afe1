/* files.c - names of files, and reading and writing them whole, see files.h. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>
#include "files.h"

gp_filetype gp_filetype_of(const char *path)
{
    const char *dot = strrchr(path, '.');
    return dot && !strcasecmp(dot, ".npy") ? GP_NPY : dot && !strcasecmp(dot, ".png") ? GP_PNG
                                                                                      : GP_RAW;
}

const char *gp_foreign_extension(const char *path)
{
    static const char *const foreign[] = { ".jpg", ".jpeg", ".gif", ".bmp", ".tif", ".tiff",
                                           ".webp", ".npz", ".mat", ".h5", ".hdf5", ".wav",
                                           ".flac", ".mp3", ".ogg", ".mp4", ".avi", ".mkv" };
    const char *dot = strrchr(path, '.');
    for (size_t i = 0; dot && i < sizeof foreign / sizeof *foreign; i++)
        if (!strcasecmp(dot, foreign[i]))
            return foreign[i];
    return NULL;
}

static bool no_memory(char err[GP_WHY])
{
    return gp_why(err, GP_WHY_MEMORY);
}

/* ---- names ----------------------------------------------------------- */

bool gp_path_is_glob(const char *path)
{
    return strpbrk(path, "*?[");
}

/* The length of the %d or %05d at `p`, or 0. */
static size_t number_at(const char *p, int *width)
{
    size_t n = 1;
    *width = 0;
    if (*p != '%')
        return 0;
    for (; p[n] >= '0' && p[n] <= '9' && *width < 20; n++)
        *width = 10 * *width + (p[n] - '0');
    return p[n] == 'd' && *width <= 20 ? n + 1 : 0;
}

size_t gp_path_conversion(const char *p)
{
    int width;
    size_t n = number_at(p, &width);
    return n ? n : *p == '%' && (p[1] == 'n' || p[1] == '%') ? 2 : 0;
}

/* Is there a conversion that ends with `c`? */
static bool has(const char *path, char c)
{
    for (const char *p = path; (p = strchr(p, '%')); p++) {
        size_t n = gp_path_conversion(p);
        if (n && p[n - 1] == c)
            return true;
        p += n ? n - 1 : 0;
    }
    return false;
}

bool gp_path_has_number(const char *path)
{
    return has(path, 'd');
}

bool gp_path_has_name(const char *path)
{
    return has(path, 'n');
}

bool gp_path_expand(char out[PATH_MAX], const char *pattern, uint64_t index, const char *name,
                    char err[GP_WHY])
{
    size_t n = 0;
    for (const char *p = pattern; *p && n < PATH_MAX;) {
        int width;
        size_t spec = number_at(p, &width);
        if (spec) {
            n += (size_t)snprintf(out + n, PATH_MAX - n, "%0*llu", width,
                                  (unsigned long long)index);
            p += spec;
        } else if (p[0] == '%' && p[1] == 'n') {
            n += (size_t)snprintf(out + n, PATH_MAX - n, "%s", name);
            p += 2;
        } else {
            p += p[0] == '%' && p[1] == '%';
            out[n++] = *p++;
        }
    }
    bool fits = n < PATH_MAX;
    out[fits ? n : 0] = 0;
    return fits || gp_why(err, "makes a name of more than %d bytes", PATH_MAX - 1);
}

const char *gp_path_stem(const char *path, size_t *len)
{
    const char *slash = strrchr(path, '/'), *stem = slash ? slash + 1 : path;
    const char *dot = strrchr(stem, '.');
    *len = dot && dot > stem ? (size_t)(dot - stem) : strlen(stem);
    return stem;
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
        return gp_why(err, "cannot be read: %s", strerror(errno));
    size_t n = (uintmax_t)st.st_size < max ? (size_t)st.st_size : max;
    if (!gp_growbuf_need(r, n))
        return no_memory(err);
    int64_t got = gp_read_at(fd, r->data, n, 0);
    if (got < 0)
        return gp_why(err, "cannot be read: %s", strerror(errno));
    r->n = (size_t)got;
    return true;
}
