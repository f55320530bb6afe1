/* test_io_held.c - how runs that write at the same time see each other: the locks on their
 * temporary files, and the patterns that one run holds. */
#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/syscall.h>
#include "base/filetable.h"
#include "iotest.h"

/* Another run looks whether the next file that is to be held is. */
static bool looks;

/* Stands before libc's. */
int flock(int fd, int how)
{
    int theirs = -1;
    if (looks && how == (LOCK_EX | LOCK_NB)) {
        looks = false;
        theirs = open(format("/proc/self/fd/%d", fd), O_RDONLY | O_CLOEXEC);
        ck_assert_int_eq((int)syscall(SYS_flock, theirs, LOCK_SH | LOCK_NB), 0);
    }
    int bad = (int)syscall(SYS_flock, fd, how), error = errno;
    if (theirs >= 0)
        close(theirs);
    errno = error;
    return bad;
}

static const struct { const char *write; int files; } looked[] = {
    { "path: out/all.raw", 1 }, { "path: out/all.raw, live: true", 1 }, { "path: 'out/%d.raw'", 3 },
};

/* Just then another run has a lock on it, for a moment: nothing of that stays. */
TEST_EACH(somebody_looks, looked)
{
    io_count_npy("in.npy", U8(3, 10), 0);
    looks = true;
    io_runs(format("stages:\n  - {use: read, path: in.npy}\n  - {use: write, %s}\n", looked[_i].write));
    ck_assert_msg(!looks, "nothing was held");
    ck_assert_int_eq(io_files("out"), looked[_i].files);
}

/* Two patterns are two, however late they differ. */
TEST(long_patterns)
{
    static const size_t lengths[] = { 1, NAME_MAX, NAME_MAX + 1, NAME_MAX + 2, 1000, PATH_MAX - 2 };
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        char a[PATH_MAX], b[PATH_MAX];
        gp_filetable *t = gp_filetable_new();
        gp_filewriter *w = gp_filetable_writer(t, "stage 'write'", (gp_loc){ 0 }, "out/%d.raw");
        memset(a, 'x', lengths[i]), strcpy(a + lengths[i], "1");
        memset(b, 'x', lengths[i]), strcpy(b + lengths[i], "2");
        ck_assert(gp_filetable_is_new(w, 1, 2, a) && !gp_filetable_is_new(w, 1, 2, a));
        ck_assert_msg(gp_filetable_is_new(w, 1, 2, b), "%zu bytes", lengths[i]);
        gp_filetable_free(t);
    }
}

TEST_SUITE(io_held, io_set_up, NULL, 0)
