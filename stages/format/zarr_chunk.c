/* zarr_chunk.c - where a chunk of a Zarr array is: a file, or a part of one that has an index, see zarr_file.h. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "zarr_file.h"

int64_t gp_zarr_beside(void *user, const char *name, int64_t at, void *to, size_t n)
{
    int fd = openat(*(int *)user, name, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    int64_t got = fd < 0 ? -1 : gp_read_at(fd, to, n, at);
    int bad = errno;
    if (fd >= 0)
        close(fd);
    errno = bad;
    return got;
}

gp_zarr_own *gp_zarr_new_own(void)
{
    gp_zarr_own *o = calloc(1, sizeof *o);
    if (o)
        o->shard = -1;
    return o;
}

void gp_zarr_close_own(void *mine)
{
    gp_zarr_own *o = mine;
    if (o->shard >= 0)
        close(o->shard);
    free(o->file.data), free(o->chunk.data), free(o->index.data);
    gp_zarr_leave(&o->work);
    free(o);
}

static void name_of(const gp_zarr *z, const int64_t *at, char to[GP_ZARR_NAME])
{
    char *p = stpcpy(to, z->prefix);
    for (int k = 0; k < z->whole.ndim; k++)
        p += snprintf(p, 24, "%.*s%lld", k || *z->prefix, &z->separator, (long long)at[k]);
}

/* Does it, or the last folder above it that is there, have a name that leads nowhere? */
static bool is_dangling(int in, const char *name)
{
    char part[GP_ZARR_NAME], *slash = part;
    struct stat st;
    strcpy(part, name);
    while (fstatat(in, part, &st, AT_SYMLINK_NOFOLLOW)) {
        if (!(slash = strrchr(part, '/')))
            return false;
        *slash = 0;
    }
    return S_ISLNK(st.st_mode);
}

/* Its file: -1 with errno 0 where there is none. */
static int open_file(int in, const char *name, int64_t *size, char err[GP_WHY])
{
    struct stat st;
    int fd = openat(in, name, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0 && errno == ENOENT) {
        errno = is_dangling(in, name) ? ENOENT : 0;
        if (errno)
            gp_why(err, "is a symbolic link that leads nowhere, or in a folder that is");
        return -1;
    }
    if (fd >= 0 && !fstat(fd, &st) && S_ISREG(st.st_mode)) {
        *size = st.st_size;
        return fd;
    }
    int bad = fd < 0 ? errno : EINVAL;
    if (fd >= 0)
        close(fd);
    errno = bad;
    gp_why(err, "cannot be read: %s", gp_strerror(bad));
    return -1;
}

static bool bytes_at(int fd, int64_t at, size_t n, gp_growbuf *to, char err[GP_WHY])
{
    if (!gp_growbuf_need(to, n))
        return gp_why(err, GP_WHY_MEMORY);
    int64_t got = gp_read_at(fd, to->data, n, at);
    to->n = n;
    return got == (int64_t)n || gp_why(err, got < 0 ? "cannot be read: %s" : "became shorter%.0s", gp_strerror(errno));
}

/* Opens the shard, and reads its index. */
static bool find_shard(const gp_zarr *is, int in, gp_zarr_own *o, const int64_t *at, const char *name, char err[GP_WHY])
{
    size_t n = 16, crc = is->index_crc ? 4 : 0;
    if (o->has_shard && !memcmp(o->at, at, sizeof *at * (size_t)is->whole.ndim))
        return true;
    if (o->shard >= 0)
        close(o->shard);
    o->has_shard = false;
    o->shard = open_file(in, name, &o->size, err);
    o->no_shard = o->shard < 0;
    if (o->no_shard && errno)
        return false;
    for (int k = 0; k < is->whole.ndim; k++)
        n *= (size_t)(is->shard[k] / is->chunk[k]);
    if (!o->no_shard && (uint64_t)o->size < n + crc)
        return gp_why(err, "has %lld bytes, fewer than its index of chunks", (long long)o->size);
    if (!o->no_shard && !bytes_at(o->shard, is->index_at_start ? 0 : o->size - (int64_t)(n + crc), n + crc, &o->index, err))
        return false;
    if (!o->no_shard && crc && gp_crc32c(o->index.data, n) != gp_number(o->index.data + n, 4, false))
        return gp_why(err, "is damaged: the checksum of its index is another");
    memcpy(o->at, at, sizeof o->at);
    return o->has_shard = true;
}

bool gp_zarr_bytes(const gp_zarr *is, int in, gp_zarr_own *o, const int64_t *chunk, size_t want, bool *there,
                   char name[GP_ZARR_NAME], char err[GP_WHY])
{
    int64_t file[GP_MAXDIM] = { 0 }, size = 0;
    uint64_t at = 0, i = 0;
    for (int k = 0; k < is->whole.ndim; k++) {
        int64_t each = is->shard[k] / is->chunk[k];
        file[k] = chunk[k] / each, i = i * (uint64_t)each + (uint64_t)(chunk[k] % each);
    }
    name_of(is, file, name);
    int fd = is->sharded ? find_shard(is, in, o, file, name, err) ? o->shard : -2 : open_file(in, name, &size, err);
    *there = fd >= 0;
    if (fd < 0)
        return is->sharded ? fd == -1 : !errno;
    if (is->sharded) {
        at = gp_number(o->index.data + 16 * i, 8, false), size = (int64_t)gp_number(o->index.data + 16 * i + 8, 8, false);
        *there = at != UINT64_MAX || size != -1;
        if (*there && (size < 0 || size > o->size || at > (uint64_t)(o->size - size)))
            return gp_why(err, "is cut off or damaged: a chunk in it would be behind its end");
    }
    bool ok = !*there || (gp_zarr_may_hold(&is->chain, (size_t)size, want, err)
                          && bytes_at(fd, (int64_t)at, (size_t)size, &o->file, err));
    if (!is->sharded)
        close(fd);
    return ok;
}
