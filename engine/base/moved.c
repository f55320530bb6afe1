/* moved.c - what others do to an open output meanwhile: they move, remove, replace or truncate it,
 * or move its folder. */
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>
#include "base/clock.h"
#include "base/filetable.h"
#include "base/path.h"
#include "base/target.h"

#define TRUNCATED "was truncated while it was written"

bool gp_outfile_find(const gp_outfile *f, char now[PATH_MAX])
{
    const char *name = f->tmp + gp_path_folder(f->tmp);
    strcpy(now, f->tmp);
    if (gp_target_is(f->fd, now, AT_SYMLINK_NOFOLLOW))
        return true;
    if (errno != ENOENT && errno != ENOTDIR)
        return errno != ESTALE;        /* else nothing says that it is not there */
    return gp_target_path(f->fd, now) && !strcmp(now + gp_path_folder(now), name);
}

bool gp_outfile_is_named(const gp_outfile *f, char err[GP_WHY])
{
    char now[PATH_MAX];
    if (gp_target_is(f->fd, f->path, 0))
        return true;
    if (!gp_target_path(f->fd, now))
        return gp_why(err, "was removed or replaced while it was written");
    if (f->by)
        strcpy(f->by->kept_path, now);
    return gp_why(err, "was moved while it was written");
}

bool gp_shows_holes(int fd)
{
    static const unsigned long file_system[] = { TMPFS_MAGIC, EXT4_SUPER_MAGIC, XFS_SUPER_MAGIC, BTRFS_SUPER_MAGIC };
    struct statfs fs;
    bool known = false;
    for (size_t i = 0; !fstatfs(fd, &fs) && i < sizeof file_system / sizeof *file_system; i++)
        known |= ((unsigned long)fs.f_type & 0xffffffff) == file_system[i];
    return known;
}

/* Bytes that were written behind those cut off leave a hole. */
bool gp_outfile_has_all(const gp_outfile *f, char err[GP_WHY])
{
    struct stat st;
    off_t hole = !f->folder && gp_shows_holes(f->fd) && !fstat(f->fd, &st) ? lseek(f->fd, 0, SEEK_HOLE) : -1;
    return hole < 0 || hole >= st.st_size || gp_why(err, TRUNCATED);
}

bool gp_outfile_check(gp_outfile *f, size_t size, char err[GP_WHY])
{
    const int64_t second = 1000000000;
    struct stat st;
    if (!f->open || f->in_place)
        return true;
    if (size && !fstat(f->fd, &st) && (uint64_t)st.st_size != size)
        return gp_why(err, (uint64_t)st.st_size < size ? TRUNCATED : "was written to by somebody else");
    if (!f->published)
        return true;
    int64_t now = gp_now_ns();
    if (now - f->checked < second)
        return true;
    f->checked = now;
    bool is = gp_target_is(f->fd, f->path, 0) || (errno != ENOENT && errno != ENOTDIR && errno != ESTALE);
    return is || gp_outfile_is_named(f, err);
}
