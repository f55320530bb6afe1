/* test_io_partial.c - what is kept of a joined file when its run fails, and what a run that is
 * stopped before its first frame leaves of the file that was there. */
#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>
#include "base/filetable.h"
#include "iotest.h"

static const struct {
    const char *write, *file;  /* its options; what is kept, NULL: nothing */
    size_t head, row;          /* bytes before the data; of a frame */
    int fails;                 /* the frame that does */
} kept[] = {
    { "path: out.npy", "out.npy.partial", 128, 12, 7 },
    { "path: out.raw", "out.raw.partial", 0, 12, 7 },
    { "path: out.npy, stack: true", "out.npy.partial", 128, 12, 7 },
    { "path: out.npy, durable: file", "out.npy.partial", 128, 12, 3 },
    { "path: new/er/out.npy, if_exists: error", "new/er/out.npy.partial", 128, 12, 3 },
    { "path: out.npy, live: true", NULL, 0, 0, 7 },
    { "path: 'out%d.npy'", NULL, 0, 0, 7 },
    { "path: out.npy", NULL, 0, 0, 0 },
};

static pipe_result fail_at(const char *write, int frame)
{
    char y[1600];
    TEXT(y, "function process(f, x, y)\n  if f.index == %d then error('as it should') end\n"
         "  y:copy(x)\nend\n", frame);
    pipe_text(io_dir, "fail.lua", y);
    io_count_npy("in.npy", U8(20, 3, 4), 0);
    return io_go(TEXT(y, "buffers: {x: {dtype: u8, shape: [3, 4]}}\nstages:\n"
                      "  - {use: read, path: in.npy, out: x}\n  - {use: lua, script: fail.lua}\n"
                      "  - {use: write, %s}\n", write));
}

/* All frames that came out are in it, whole; what had the name before is untouched. */
TEST_EACH(a_failed_run_keeps_what_it_wrote, kept)
{
    size_t n;
    if (strstr(kept[_i].write, "path: out.npy") && !strstr(kept[_i].write, "live"))
        pipe_text(io_dir, "out.npy", "of an earlier run");
    pipe_result r = fail_at(kept[_i].write, kept[_i].fails);
    ck_assert_int_eq(r.outcome, GP_ERROR);
    ck_assert_int_eq(gp_errs_exit(&r.errs), 1);
    ck_assert_uint_eq(r.account[0].out, (unsigned)kept[_i].fails);
    if (!access(io_at("out.npy"), F_OK) && !strstr(kept[_i].write, "live"))
        io_holds("out.npy", "of an earlier run", 17);
    if (!kept[_i].file) {
        ck_assert_int_eq(r.errs.n, 1);
        ck_assert(access(io_at("out.npy.partial"), F_OK));
        return;
    }
    char *say = format("is kept as '%s'", io_at(kept[_i].file));
    ck_assert_msg(r.errs.n == 2 && strstr(r.errs.e[1].msg, say), "%d: %s", r.errs.n, r.errs.e[r.errs.n - 1].msg);
    OWNED char *file = pipe_read(io_dir, kept[_i].file, &n);
    ck_assert_ptr_nonnull(file);
    ck_assert_uint_eq(n, kept[_i].head + kept[_i].row * (size_t)kept[_i].fails);
    for (size_t i = kept[_i].head; i < n; i++)
        ck_assert_int_eq((unsigned char)file[i], i - kept[_i].head);
    if (kept[_i].head)
        pipe_npy_type(io_dir, kept[_i].file);
}

/* A path may be longer than a message: it is told whole. */
TEST(a_long_path)
{
    char write[1200] = "path: ", file[PATH_MAX], told[PATH_MAX];
    while (strlen(write) < 1000)
        strcat(write, "a folder whose name is 40 bytes or so .../");
    strcat(write, "out.npy");
    pipe_result r = fail_at(write, 3);
    TEXT(file, "%s/%s.partial", io_dir, write + 6);
    ck_assert_int_eq(access(file, F_OK), 0);
    io_told(&r, told);
    ck_assert_str_eq(told, file);
}

/* Of what earlier runs kept stay what is longest, and the last. `kept`: the name of what this run keeps. */
static const struct { int bytes[3]; const char *kept; } again[] = {
    { { 100 }, "out.npy.partial" }, { { 164 }, "out.npy.partial" }, { { 165 }, "out.npy.partial.2" },
    { { 0, 165 }, "out.npy.partial" }, { { 165, 100 }, "out.npy.partial.2" }, { { 165, 165 }, "out.npy.partial.2" },
    { { 100, 165, 9 }, "out.npy.partial" }, { { 165, 165, 9 }, "out.npy.partial.2" },
};

TEST_EACH(what_was_kept, again)
{
    static const char *const names[] = { "out.npy.partial", "out.npy.partial.2", "out.npy.partial.3" };
    static const char of_before[165];
    for (int i = 0; i < 3; i++)
        if (again[_i].bytes[i])
            pipe_file(io_dir, names[i], of_before, (size_t)again[_i].bytes[i]);
    pipe_result r = fail_at("path: out.npy", 3);       /* 164 bytes */
    char *say = format("is kept as '%s'", io_at(again[_i].kept));
    ck_assert_msg(r.errs.n == 2 && strstr(r.errs.e[1].msg, say), "%s", r.errs.e[r.errs.n - 1].msg);
    io_counts(again[_i].kept, U8(9, 4), 0);
    for (int i = 0; i < 3; i++)
        if (again[_i].bytes[i] && strcmp(again[_i].kept, names[i]) != 0)
            io_holds(names[i], of_before, (size_t)again[_i].bytes[i]);
}

/* Nor do files of runs that fail pile up. */
TEST(two_at_most)
{
    for (int i = 0; i < 9; i++) {
        fail_at("path: kept/out.npy", i == 4 ? 4 : 3);
        ck_assert_int_eq(io_files("kept"), i < 5 ? 1 : 2);
    }
    io_counts("kept/out.npy.partial", U8(12, 4), 0);
    io_counts("kept/out.npy.partial.2", U8(9, 4), 0);
}

/* A link is not followed, a folder no hindrance, and a name may be as long as one can be. */
TEST(whatever_has_the_name)
{
    char long_name[NAME_MAX + 1];
    pipe_text(io_dir, "theirs", "theirs");
    ck_assert_int_eq(symlink("theirs", io_at("out.npy.partial")), 0);
    ck_assert_int_eq(mkdir(io_at("out.npy.partial.2"), 0777), 0);
    fail_at("path: out.npy", 3);
    io_holds("theirs", "theirs", 6);
    io_counts("out.npy.partial.3", U8(9, 4), 0);

    memset(long_name, 'x', NAME_MAX), strcpy(long_name + NAME_MAX - 4, ".raw");
    pipe_result r = fail_at(format("path: %s", long_name), 3);
    ck_assert_msg(r.errs.n == 2 && strstr(r.errs.e[1].msg, "xxxx.partial'"), "%s", r.errs.e[r.errs.n - 1].msg);
}

/* A run that comes to a good end says what is left of others, and leaves it. */
static const struct { const char *there[3], *write, *says; } left[] = {
    { { "out.npy.partial" }, "path: out.npy", "out.npy.partial', which a run that failed kept, is still there" },
    { { "out.npy.partial", "out.npy.partial.2" }, "path: out.npy",
      "out.npy.partial', which a run that failed kept, is still there, and 1 more" },
    { { "out.npy.partial.2" }, "path: out.npy", "out.npy.partial.2', which a run that failed kept, is still there" },
    { { "out.npy.partial.10", "out.npy.partial.9" }, "path: out.npy",
      "out.npy.partial.9', which a run that failed kept, is still there, and 1 more" },
    { { "out.npy.partial.1", "out.npy.partial.03", "out.npy.partial.2x" }, "path: out.npy", NULL },
    { { "out.npy.partial.", "out.npy.partial.-2", "an-out.npy.partial" }, "path: out.npy", NULL },
    { { "out.npy.partial" }, "path: out.npy, live: true", "out.npy.partial', which a run that failed" },
    { { "out.npy.partial" }, "path: 'out%d.npy'", NULL }, { { "ut.npy.partial" }, "path: out.npy", NULL },
};

TEST_EACH(what_was_kept_is_told, left)
{
    for (int i = 0; i < 3 && left[_i].there[i]; i++)
        pipe_text(io_dir, left[_i].there[i], "of an earlier run");
    io_count_npy("in.npy", U8(2, 3, 4), 0);
    pipe_result r = io_done(format("stages:\n  - {use: read, path: in.npy}\n  - {use: write, %s}\n", left[_i].write));
    ck_assert_int_eq(r.errs.n, left[_i].says != NULL);
    if (left[_i].says)
        ck_assert_msg(strstr(io_error(&r), left[_i].says) && r.errs.e[0].at.line == 3, "%s", io_error(&r));
    for (int i = 0; i < 3 && left[_i].there[i]; i++)
        io_holds(left[_i].there[i], "of an earlier run", 17);
}

/* A file that is read is not replaced: it is what somebody goes on from. */
TEST(not_over_an_input)
{
    pipe_text(io_dir, "fail.lua", "function process(f, x, y) if f.index == 2 then error('x') end y:copy(x) end\n");
    io_count_npy("out.npy.partial", U8(20, 3, 4), 0);
    size_t n, now;
    OWNED char *was = pipe_read(io_dir, "out.npy.partial", &n);
    pipe_result r = io_go(format("buffers: {x: {dtype: u8, shape: [3, 4]}}\nstages:\n"
                               "  - {use: read, path: out.npy.partial, format: npy, out: x}\n"
                               "  - {use: lua, script: fail.lua}\n  - {use: write, path: %s}\n", "out.npy"));
    ck_assert_int_eq(r.outcome, GP_ERROR);
    ck_assert_int_eq(r.errs.n, 2);
    OWNED char *is = pipe_read(io_dir, "out.npy.partial", &now);
    ck_assert(n == now && !memcmp(was, is, n));
    io_counts("out.npy.partial.2", U8(6, 4), 0);
    ck_assert_int_eq(io_files("."), 3);
}

/* Of a run whose threads do not come back: what is worth it is kept, the rest goes; of what has a
 * name already, or belongs to nobody, nothing does. So many names are taken before (-1: by what an
 * earlier run kept); so many bytes are whole, 0: all. */
static const struct { bool worth, published; int taken; const char *is; int whole; } given_up[] = {
    { true, false, 0, "out.raw.partial", 0 },     { true, false, -1, "out.raw.partial", 0 },
    { true, false, 1, "out.raw.partial.2", 0 },
    { true, false, 9, "out.raw.partial.10", 0 },  { true, false, 10, "out.raw.partial.11", 0 },
    { true, false, 99, "out.raw.partial.100", 0 }, { true, false, 100, "out.raw.partial.101", 0 },
    { false, false, 1, NULL, 0 },                 { true, true, 0, "out.raw", 0 },
    { true, false, 0, "out.raw.partial", 3 },  { true, true, 0, "out.raw", 3 },
};

TEST_EACH(what_is_given_up, given_up)
{
    char why[GP_WHY];
    gp_filetable *t = gp_filetable_new();
    gp_outfile f = { .by = gp_filetable_writer(t, "stage 'write'", (gp_loc){ 0 }, "out.raw") };
    int taken = given_up[_i].taken < 0 ? 0 : given_up[_i].taken;
    if (given_up[_i].taken < 0)
        pipe_text(io_dir, "out.raw.partial", "old");
    for (int i = 1; i <= taken; i++)
        ck_assert_int_eq(symlink("no", io_at(i == 1 ? "out.raw.partial" : format("out.raw.partial.%d", i))), 0);
    ck_assert_msg(gp_outfile_open(&f, io_at("out.raw"), why), "%s", why);
    ck_assert_int_eq(write(f.fd, "data", 4), 4);
    if (given_up[_i].whole)
        gp_outfile_whole(&f, (size_t)given_up[_i].whole);
    if (given_up[_i].worth)
        gp_outfile_worth(&f);
    ck_assert(!given_up[_i].published || gp_outfile_publish(&f, why));
    ck_assert(!gp_outfile_is_abandoned(&f));
    gp_filetable_abandon(t);
    gp_filetable_abandon(t);
    ck_assert(gp_outfile_is_abandoned(&f));
    ck_assert_int_eq(io_files("."), taken + (given_up[_i].is != NULL));
    if (given_up[_i].is)
        io_holds(given_up[_i].is, "data", given_up[_i].whole && !given_up[_i].published ? 3 : 4);
    ck_assert_str_eq(f.by->kept_path, given_up[_i].is && !given_up[_i].published ? io_at(given_up[_i].is) : "");
    gp_outfile_drop(&f);
    gp_filetable_free(t);
}

/* A FIFO whose writer is silent gives no frame. `left`: what the file then has, NULL: there is none. */
static const struct { const char *write; bool there; const char *left, *says; } stopped[] = {
    { "path: out.raw", true, "of an earlier run", "out.raw' is left as it is: the run was stopped before its first frame" },
    { "path: out.npy", true, "of an earlier run", "out.npy' is left as it is: the run was stopped" },
    { "path: out.npy, stack: true, durable: file", true, "of an earlier run", "out.npy' is left as it is" },
    { "path: out.raw, live: true", true, "of an earlier run", "out.raw' is left as it is" },
    { "path: out.npy, live: true", true, "of an earlier run", "out.npy' is left as it is" },
    { "path: out.raw", false, NULL, "out.raw' is not made: the run was stopped before its first frame" },
    { "path: out.raw, live: true", false, "", NULL },
};

/* Once the source reads; it is told no end of the FIFO. */
static void stop(gp_pipeline *p, void *fifo)
{
    while (open(fifo, O_WRONLY | O_NONBLOCK) < 0)
        nap();
    gp_cancel(p, 1);
}

TEST_EACH(a_run_without_frames_that_is_stopped, stopped)
{
    char *path = io_at("fifo");
    const char *name = strstr(stopped[_i].write, ".npy") ? "out.npy" : "out.raw";
    if (stopped[_i].there)
        pipe_text(io_dir, name, "of an earlier run");
    ck_assert_int_eq(mkfifo(path, 0600), 0);
    char *y = format("buffers: {x: {dtype: u8, shape: [3, 4]}}\nstages:\n"
                     "  - {use: read, path: fifo, out: x}\n  - {use: write, %s}\n", stopped[_i].write);
    pipe_result r = pipe_run_with(io_dir, y, "cpu", NULL, (gp_run_options){ 0 }, stop, path);
    ck_assert_int_eq(r.outcome, GP_DRAINED);
    ck_assert_int_eq(r.errs.n, stopped[_i].says != NULL);
    if (stopped[_i].says)
        ck_assert_msg(strstr(io_error(&r), stopped[_i].says) != NULL, "%s", io_error(&r));
    if (stopped[_i].left)
        io_holds(name, stopped[_i].left, strlen(stopped[_i].left));
    ck_assert_int_eq(io_files("."), 1 + (stopped[_i].left != NULL));
}

/* Two that read one FIFO would each get a part of it. */
TEST(one_reader)
{
    char *path = io_at("fifo");
    ck_assert_int_eq(mkfifo(path, 0600), 0);
    int fd = open(path, O_RDWR);
    ck_assert_int_eq(write(fd, "0123456789ab", 12), 12);
    char *y = format("buffers: {x: {dtype: u8, shape: [3, 4]}, z: {like: x}}\nstages:\n"
                     "  - {use: read, path: fifo, out: x, frames: 1}\n  - {use: discard}\n"
                     "  - {use: read, path: fifo, out: z, frames: 1}\n  - {use: discard}\n");
    pipe_result r = pipe_run(io_dir, y, "cpu", NULL, (gp_run_options){ 0 });
    close(fd);
    ck_assert_int_eq(r.outcome, GP_ERROR);
    ck_assert_msg(strstr(io_error(&r), "another run or stage of gpipe reads this FIFO") != NULL, "%s", io_error(&r));
}

TEST_SUITE(io_partial, io_set_up, NULL, 0)
