/* test_io_durable.c - what a power cut leaves: the calls that write, name and sync files are
 * recorded, and a model of a disk forgets what was not synced. Then what becomes of a name
 * that another program takes meanwhile, on file systems that know fewer calls, are full, or
 * are another machine's. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include "base/outfile.h"
#include "iotest.h"

/* ---- the model ------------------------------------------------------- */

/* By inode, of files and of folders: when it last changed (data; names), and was last put on
 * disk. Times are counts of recorded calls. */
enum { MOST = 4096 };
static struct { ino_t ino; int changed, synced; } node[MOST];
static struct {
    pthread_mutex_t lock;
    bool on;
    int nodes, now, all_synced;        /* all_synced: by syncfs */
    int files, alls;                   /* calls of fsync, of syncfs */
    int bare_names;                    /* files named before their data were on disk */
    int fail;                          /* errno of each sync; 0: it works */
    _Atomic(int) hold;                 /* syncfs returns once this is 0 */
} disk = { .lock = PTHREAD_MUTEX_INITIALIZER };

static int find(ino_t ino)
{
    int i = 0;
    while (i < disk.nodes && node[i].ino != ino)
        i++;
    if (i == disk.nodes) {
        ck_assert_int_lt(i, MOST);
        node[disk.nodes++].ino = ino;
        node[i].changed = node[i].synced = 0;
    }
    return i;
}

static bool forgets(int i)
{
    int synced = node[i].synced > disk.all_synced ? node[i].synced : disk.all_synced;
    return node[i].changed > synced;
}

static void wrote(int fd)
{
    struct stat st;
    pthread_mutex_lock(&disk.lock);
    if (disk.on && !fstat(fd, &st) && S_ISREG(st.st_mode))
        node[find(st.st_ino)].changed = ++disk.now;
    pthread_mutex_unlock(&disk.lock);
}

/* What a call returned that gave something this name. */
static int named(int bad, const char *path)
{
    if (bad)
        return bad;
    struct stat st;
    char *folder = format("%s", path);
    *strrchr(folder, '/') = 0;
    pthread_mutex_lock(&disk.lock);
    if (disk.on && !stat(path, &st)) {
        disk.bare_names += forgets(find(st.st_ino));
        ck_assert_int_eq(stat(folder, &st), 0);
        node[find(st.st_ino)].changed = ++disk.now;
    }
    pthread_mutex_unlock(&disk.lock);
    return 0;
}

/* A file system: which errno these calls give (0: they work), what another program makes
 * just before a file is named, how many bytes may be written yet and with which errno that
 * ends, whether another program puts a file of its own in the place of what is written, its
 * kind, whether it lets an owner be changed; and who asks. */
static struct {
    int renameat2, link;
    const char *taken, *refused;       /* refused: rename() does not give this name, once */
    size_t room;
    int full;
    bool swapped, keeps_owner;
    long kind;
    uid_t user;
} names;

static bool fails(int with)
{
    if (names.taken)
        close(open(names.taken, O_WRONLY | O_CREAT, 0600));
    errno = with;
    return with != 0;
}

/* These stand before libc's. */
ssize_t writev(int fd, const struct iovec *v, int n)
{
    char path[600];
    struct iovec part = *v;
    if (names.full && part.iov_len && !names.room) {
        errno = names.full;
        return -1;
    }
    if (names.full && part.iov_len > names.room)
        part.iov_len = names.room;
    ssize_t k = syscall(SYS_writev, fd, names.full ? &part : v, names.full ? 1 : n);
    if (names.full && k > 0)           /* else not even written: threads of other suites come here, too */
        names.room -= (size_t)k;
    ssize_t len = names.swapped ? readlink(format("/proc/self/fd/%d", fd), path, sizeof path - 1) : 0;
    if (len > 0) {
        path[len] = 0, names.swapped = false;
        ck_assert_int_eq(unlink(path), 0);
        close(open(path, O_WRONLY | O_CREAT | O_EXCL, 0600));
    }
    wrote(fd);
    return k;
}

ssize_t pwrite(int fd, const void *data, size_t n, off_t at)
{
    ssize_t k = syscall(SYS_pwrite64, fd, data, n, at);
    wrote(fd);
    return k;
}

int mkdir(const char *path, mode_t mode)
{
    return named((int)syscall(SYS_mkdirat, AT_FDCWD, path, mode), path);
}

int fstatfs(int fd, struct statfs *fs)
{
    int bad = (int)syscall(SYS_fstatfs, fd, fs);
    fs->f_type = names.kind ? names.kind : fs->f_type;
    return bad;
}

uid_t geteuid(void)
{
    return names.user ? names.user : (uid_t)syscall(SYS_geteuid);
}

int fchown(int fd, uid_t user, gid_t group)
{
    errno = EPERM;
    return names.keeps_owner ? -1 : (int)syscall(SYS_fchown, fd, user, group);
}

int rename(const char *from, const char *to)
{
    if (names.refused && !strcmp(to, names.refused)) {
        names.refused = NULL, errno = EIO;
        return -1;
    }
    return named((int)syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, 0), to);
}

int renameat2(int a, const char *from, int b, const char *to, unsigned flags)
{
    return fails(names.renameat2) ? -1 : named((int)syscall(SYS_renameat2, a, from, b, to, flags), to);
}

int link(const char *from, const char *to)
{
    return fails(names.link) ? -1 : named((int)syscall(SYS_linkat, AT_FDCWD, from, AT_FDCWD, to, 0), to);
}

/* The end of fsync and syncfs, which hold the lock. */
static int synced(void)
{
    int bad = disk.on ? disk.fail : 0;
    pthread_mutex_unlock(&disk.lock);
    errno = bad;
    return bad ? -1 : 0;
}

int fsync(int fd)
{
    struct stat st;
    pthread_mutex_lock(&disk.lock);
    if (disk.on && !fstat(fd, &st))
        node[find(st.st_ino)].synced = ++disk.now, disk.files++;
    return synced();
}

int syncfs(int fd)
{
    while (disk.on && disk.hold)
        nap();
    pthread_mutex_lock(&disk.lock);
    if (disk.on)
        disk.all_synced = ++disk.now, disk.alls++;
    return synced();
}

/* ---- tests ----------------------------------------------------------- */

static const struct {
    const char *write;
    int files, alls;           /* how often fsync and syncfs are called */
    bool kept;                 /* all is on disk when the run is done */
    bool whole;                /* and no name was ever there before its data */
} cuts[] = {
    { "path: out/all.raw", 3, 0, true, false },
    { "path: out/all.npy", 3, 0, true, false },
    { "path: out/all.npy, live: true", 3, 0, true, false },
    { "path: out/a/b/all.npy", 5, 0, true, false },
    { "path: out/a/b/%05d.npy", 0, 1, true, false },
    { "path: out/a/%d/%05d.npy, durable: file", 17, 0, true, true },
    { "path: out/a/b/all.npy, durable: file", 5, 0, true, true },
    { "path: out/%05d.npy", 0, 1, true, false },
    { "path: out/%d/%05d.raw, workers: 3", 0, 1, true, false },
    { "path: out/%05d.npy, durable: end, if_exists: error", 0, 1, true, false },
    { "path: out/%05d.npy, durable: none", 0, 0, false, false },
    { "path: out/all.npy, durable: none", 0, 0, false, false },
    { "path: out/%05d.npy, durable: file", 11, 0, true, true },
    { "path: out/%05d.raw, durable: file, workers: 2, if_exists: next", 11, 0, true, true },
    { "path: out/all.npy, durable: file", 3, 0, true, true },
};

static pipe_result go(const char *write)
{
    io_count_npy("in.npy", U8(5, 20), 0);
    disk.on = true;
    pipe_result r = io_go(format("stages:\n  - {use: read, path: in.npy}\n  - {use: write, %s}\n", write));
    disk.on = false;
    return r;
}

TEST_EACH(power_cut, cuts)
{
    pipe_result r = go(cuts[_i].write);
    ck_assert_msg(r.outcome == GP_DONE && !r.errs.n, "%s", io_error(&r));
    ck_assert_int_ge(disk.nodes, 2);               /* a file and its folder */
    int lost = 0;
    for (int i = 0; i < disk.nodes; i++)
        lost += forgets(i);
    ck_assert_int_eq(lost == 0, cuts[_i].kept);
    ck_assert_int_eq(disk.bare_names == 0, cuts[_i].whole);
    ck_assert_int_eq(disk.files, cuts[_i].files);
    ck_assert_int_eq(disk.alls, cuts[_i].alls);
}

static const struct { const char *write; int error; const char *text; } failing[] = {
    { "path: out/all.raw", EIO, "stage 'write': what was written may not be on disk: Input/output" },
    { "path: out/%d.raw", ENOSPC, "stage 'write': what was written may not be on disk: No space" },
    { "path: out/%d.raw, durable: file", EIO, "frame 0: '" },
    { "path: out/all.raw", EINVAL, NULL }, { "path: out/%d.raw", EROFS, NULL },
    { "path: out/%d.raw, durable: file", EINVAL, NULL },
    { "path: out/%d.raw, durable: none", EIO, NULL },
    { "path: /dev/null, format: raw", EIO, NULL },
};

TEST_EACH(disk_that_fails, failing)
{
    disk.fail = failing[_i].error;
    pipe_result r = go(failing[_i].write);
    ck_assert_int_eq(r.outcome, failing[_i].text ? GP_ERROR : GP_DONE);
    ck_assert_int_eq(gp_errs_exit(&r.errs), failing[_i].text ? 1 : 0);
    if (failing[_i].text) {
        ck_assert_msg(strstr(io_error(&r), failing[_i].text) != NULL, "%s", io_error(&r));
        ck_assert_int_eq(r.errs.e[0].at.line, 3);
        ck_assert_int_eq(r.errs.e[0].at.col, 24);
    }
}

static void let_go(gp_pipeline *p, void *arg)
{
    while (!gp_syncing(p))
        nap();
    usleep(300000);
    ck_assert(gp_syncing(p));
    disk.hold = 0;
}

static void give_up(gp_pipeline *p, void *arg)
{
    while (!gp_syncing(p))
        nap();
    gp_cancel(p, 2);
}

#define SLOW_DISK "stall_timeout: 100ms\nstages:\n  - {use: read, path: in.npy}\n" \
                  "  - {use: write, path: out/%d.raw}\n"

TEST(a_slow_disk_is_no_stall)
{
    io_count_npy("in.npy", U8(5, 20), 0);
    disk.on = true, disk.hold = 1;
    pipe_result r = pipe_run_with(io_dir, SLOW_DISK, "cpu", NULL, (gp_run_options){ 0 }, let_go, NULL);
    ck_assert_msg(r.outcome == GP_DONE, "%s", io_error(&r));
}

TEST(nobody_has_to_wait_for_a_disk)
{
    io_count_npy("in.npy", U8(5, 20), 0);
    disk.on = true, disk.hold = 1;
    pipe_result r = pipe_run_with(io_dir, SLOW_DISK, "cpu", NULL, (gp_run_options){ 0 }, give_up, NULL);
    ck_assert_int_eq(r.outcome, GP_STUCK);
    ck_assert_int_eq(r.account[0].out, 5);
}                                      /* the thread keeps what it was given, to the end */

/* ---- names ----------------------------------------------------------- */

#define CANNOT "cannot be written: its file system may replace a file while it names one"

static const struct {
    int renameat2, link;
    bool taken;
    const char *text;
} namings[] = {
    { 0, 0, false, NULL },           { 0, 0, true, "is there already" },
    { EINVAL, 0, false, NULL },      { EINVAL, 0, true, "is there already" },
    { ENOSYS, 0, false, NULL },      { ENOSYS, 0, true, "is there already" },
    { EINVAL, EPERM, false, CANNOT }, { ENOSYS, ENOSYS, true, CANNOT },
    { EINVAL, EACCES, false, "cannot be written: Permission denied" },
    { EACCES, 0, false, "cannot be written: Permission denied" },
};
static const char *const kept[] = { "path: out/0.raw, if_exists: error",
                                    "path: out/%d.raw, if_exists: next",
                                    "path: out/%d.raw, if_exists: error" };

/* A file that somebody made since gpipe looked stays; of a joined one that gets no name all is
 * kept. */
TEST_LOOP(no_file_is_replaced, 0, 3 * sizeof namings / sizeof *namings)
{
    char all[100];
    int k = _i % 3;
    names.renameat2 = namings[_i / 3].renameat2, names.link = namings[_i / 3].link;
    names.taken = namings[_i / 3].taken ? io_at("out/0.raw") : NULL;
    const char *text = namings[_i / 3].text;
    pipe_result r = go(kept[k]);
    ck_assert_msg(r.outcome == (text ? GP_ERROR : GP_DONE), "%s", io_error(&r));
    if (text)
        ck_assert_msg(strstr(io_error(&r), text) != NULL, "%s", io_error(&r));
    if (names.taken)
        io_holds("out/0.raw", "", 0);
    ck_assert_int_eq(io_files("out"), text ? (names.taken != NULL) + !k : k ? 5 : 1);
    for (int i = 0; i < 100; i++)
        all[i] = (char)i;
    if (text && !k)
        io_holds("out/0.raw.partial", all, sizeof all);
}

/* So it is where one that appears meanwhile may be replaced: then that is said. */
TEST_LOOP(a_file_that_appears_is_said_to_be_replaced, 0, 8)
{
    static const int fails[][2] = { { 0, 0 }, { EINVAL, 0 }, { ENOSYS, EPERM }, { EINVAL, ENOSYS } };
    names.renameat2 = fails[_i / 2][0], names.link = fails[_i / 2][1];
    names.taken = io_at(_i % 2 ? "out/0.raw" : "out/all.raw");
    pipe_result r = go(_i % 2 ? "path: out/%d.raw" : "path: out/all.raw");
    ck_assert_msg(r.outcome == GP_DONE, "%s", io_error(&r));
    ck_assert_int_eq(r.errs.n, 1);
    ck_assert_msg(strstr(io_error(&r), "replaced a file, '") != NULL, "%s", io_error(&r));
    ck_assert_int_eq(io_files("out"), _i % 2 ? 5 : 1);
}

/* A store is not removed before the one that replaces it has its name, also where two cannot be exchanged. */
TEST(a_store_stays_until_it_is_replaced)
{
    names.renameat2 = EINVAL;
    go("path: out/a.zarr");
    int files = io_files("out/a.zarr");
    pipe_result r = go("path: out/a.zarr, compression: 0");
    ck_assert_msg(r.outcome == GP_DONE && io_files("out/a.zarr") == files && io_files("out") == 1, "%s", io_error(&r));
    names.refused = io_at("out/a.zarr");
    r = go("path: out/a.zarr, chunk: 1");
    ck_assert_int_eq(r.outcome, GP_ERROR);
    ck_assert_ptr_null(names.refused);
    ck_assert_int_eq(io_files("out/a.zarr"), files);
    ck_assert_int_eq(io_files("out"), 2);              /* with what is kept of the other */
}

TEST_LOOP(a_temporary_file_that_is_not_ours, 0, 2)
{
    names.swapped = true;
    pipe_result r = go(_i ? "path: out/%d.raw, if_exists: error" : "path: out/all.raw");
    ck_assert_int_eq(r.outcome, GP_ERROR);
    ck_assert_msg(strstr(io_error(&r), "cannot be written: somebody else changed its temporary file")
                  != NULL, "%s", io_error(&r));
    ck_assert_int_eq(io_files("out"), 1);          /* theirs */
}

/* ---- what is left alone ---------------------------------------------- */

static const struct { long kind; uid_t user; bool goes; } leftover[] = {
    { 0, 0, true }, { 0, 4242, false }, { 0x6969, 0, false }, { 0x65735546, 0, false },
    { (int)0xff534d42, 0, false }, { 0xef53, 0, true },
};

TEST_EACH(what_another_may_still_write, leftover)
{
    char name[NAME_MAX + 1];
    pid_t dead = fork();
    if (!dead)
        _exit(0);
    ck_assert_int_eq(waitpid(dead, NULL, 0), dead);
    gp_temporary_name(name, "x.raw", dead, 0);
    pipe_text(io_dir, name, "half a file");
    names.kind = leftover[_i].kind, names.user = leftover[_i].user;
    pipe_result r = go("path: all.raw");
    ck_assert_msg(r.outcome == GP_DONE, "%s", io_error(&r));
    ck_assert_int_eq(access(io_at(name), F_OK) != 0, leftover[_i].goes);
}

/* Who may not give a file to the group it had gives that group no more than anybody has. */
static const struct { unsigned mode, is; } groups[] = {
    { 0664, 0644 }, { 0660, 0600 }, { 0604, 0644 }, { 02775, 0755 }, { 04700, 0700 },
};

TEST_EACH(a_group_that_cannot_be_kept, groups)
{
    char *path = io_at("all.raw");
    struct stat st;
    pipe_text(io_dir, "all.raw", "old");
    if (chown(path, 1234, 2345)) {
        fprintf(stderr, "skipped: a_group_that_cannot_be_kept needs root\n");
        return;
    }
    ck_assert_int_eq(chmod(path, groups[_i].mode), 0);
    names.keeps_owner = true;
    pipe_result r = go("path: all.raw");
    ck_assert_msg(r.outcome == GP_DONE, "%s", io_error(&r));
    ck_assert_int_eq(stat(path, &st), 0);
    ck_assert_uint_eq(st.st_mode & 07777, groups[_i].is);
}

/* ---- a disk that is full --------------------------------------------- */

static const struct { const char *write, *left; size_t room; int error, frames; } full[] = {
    { "path: out/%d.raw", "", 50, ENOSPC, 2 },
    { "path: out/%d.raw, workers: 3", "", 0, ENOSPC, 0 },
    { "path: out/%d.npy", "", 0, EDQUOT, 0 },
    { "path: out/%d.raw", "", 70, EIO, 3 },
    { "path: out/%d.raw", "", 70, EROFS, 3 },
    { "path: out/%d.raw", "", 70, EMFILE, 3 },
    { "path: out/%d.raw", "", 70, ENFILE, 3 },
    { "path: out/%d.npy", "", 0, ENOMEM, 0 },
    { "path: out/all.raw", "out/all.raw.partial", 50, ENOSPC, 1 },
    { "path: out/all.raw, live: true", "out/all.raw", 50, ENOSPC, 1 },
    { "path: out/%d.raw, rotate_frames: 1", "", 50, ENOSPC, 2 },
    { "path: out/%d.raw, rotate_frames: 2", "out/0.raw", 50, ENOSPC, 1 },
    { "path: out/%d.raw, rotate_frames: 2", "", 0, EDQUOT, 0 },
    { "path: out/all.raw, append: true", "out/all.raw", 50, ENOSPC, 1 },
};

/* It is no property of a frame: the run fails, also where a frame that fails is dropped. */
TEST_EACH(full_disk, full)
{
    io_count_npy("in.npy", U8(5, 20), 0);
    names.full = full[_i].error, names.room = full[_i].room;
    pipe_result r = io_go(format("on_error: drop\nstages:\n  - {use: read, path: in.npy}\n"
                               "  - {use: write, %s}\n", full[_i].write));
    names.full = 0;
    bool is_short = full[_i].error == EMFILE || full[_i].error == ENFILE || full[_i].error == ENOMEM;
    ck_assert_int_eq(r.outcome, GP_ERROR);
    ck_assert_int_eq(gp_errs_exit(&r.errs), is_short ? 4 : 1);
    ck_assert_msg(strstr(io_error(&r), strerror(full[_i].error)) != NULL, "%s", io_error(&r));
    ck_assert_int_eq(io_files("out"), full[_i].frames);
    size_t n;
    OWNED char *left = *full[_i].left ? pipe_read(io_dir, full[_i].left, &n) : NULL;
    if (left)
        ck_assert_uint_eq(n % 20, 0);          /* whole frames */
    ck_assert_int_eq(!left, !*full[_i].left);
}

/* Another error is its frame's alone. */
TEST(an_error_of_a_file)
{
    io_count_npy("in.npy", U8(5, 20), 0);
    names.full = EFBIG, names.room = 0;
    pipe_result r = io_go("on_error: drop\nstages:\n  - {use: read, path: in.npy}\n"
                          "  - {use: write, path: '%d.raw'}\n");
    names.full = 0;
    ck_assert_int_eq(r.outcome, GP_DONE);
    ck_assert_uint_eq(r.account[0].failed, 5);
}

TEST(standard_output)
{
    io_count_npy("in.npy", U8(5, 20), 0);
    io_fails("stages:\n  - {use: read, path: in.npy}\n"
             "  - {use: write, path: stdout, format: raw, durable: end}\n", 3,
             "'durable' has no effect on standard output");
}

TEST_SUITE(io_durable, io_set_up, NULL, 0)
