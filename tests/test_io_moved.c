/* test_io_moved.c - a file or folder that somebody removes, renames or replaces while a run
 * writes there: the run fails, and says where what it wrote is. */
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include "base/outfile.h"
#include "iotest.h"

static void move(const char *from, const char *to)
{
    ck_assert_int_eq(rename(io_at(from), io_at(to)), 0);
}

static void remove_it(const char *now)
{
    ck_assert_int_eq(unlink(io_at(now)), 0);
}

static void rename_it(const char *now)
{
    move(now, "out/other.npy");
}

static void truncate_it(const char *now)
{
    ck_assert_int_eq(truncate(io_at(now), 0), 0);
}

static void cut_it(const char *now)
{
    ck_assert_int_eq(truncate(io_at(now), 130), 0);
}

static void move_and_link_it(const char *now)
{
    rename_it(now);
    ck_assert_int_eq(symlink("other.npy", io_at(now)), 0);
}

static void replace_it(const char *now)
{
    pipe_text(io_dir, "theirs", "theirs");
    move("theirs", now);
}

static void move_folder(const char *now)
{
    move("out", "away");
}

/* The name is there again, with another folder and file behind it. */
static void put_another_folder(const char *now)
{
    move_folder(now);
    ck_assert_int_eq(mkdir(io_at("out"), 0777), 0);
    pipe_text(io_dir, "out/all.npy", "theirs");
}

/* In the folder is a file of an earlier run. */
static void move_folder_with_a_file(const char *now)
{
    pipe_text(io_dir, "out/all.npy", "theirs");
    move_folder(now);
}

/* `says` goes on after the file's name, NULL: the run does not fail; `is`: where its data are in
 * the end, which it tells, NULL: nowhere; `theirs`: what stays as somebody put it there; so many `files` are in the folder it is in
 * when the run is over. */
static const struct {
    const char *options;
    void (*happens)(const char *now);
    const char *says, *is, *theirs, *folder;
    int files;
} moves[] = {
    { "live: true", remove_it, "all.npy' was removed or replaced while it was written", NULL, NULL, "out", 0 },
    { "live: true", replace_it, "all.npy' was removed or replaced while it was written", NULL,
      "out/all.npy", "out", 1 },
    { "live: true", rename_it, "all.npy' was moved while it was written", "out/other.npy", NULL, "out", 1 },
    { "live: true, durable: file", move_folder,
      "all.npy' was moved while it was written", "away/all.npy", NULL, "away", 1 },
    { "live: true", put_another_folder,
      "all.npy' was moved while it was written", "away/all.npy", "out/all.npy",
      "away", 1 },
    { "live: true", truncate_it, "all.npy' was truncated while it was written", NULL, NULL, "out", 1 },
    { "live: true, stack: true, durable: file", cut_it, "all.npy' was truncated while it was written", NULL, NULL,
      "out", 1 },
    { "live: true", move_and_link_it, NULL, "out/other.npy", NULL, "out", 2 },
    { "durable: end", remove_it, "all.npy' cannot be written: somebody else removed its temporary file",
      NULL, NULL, "out", 0 },
    { "durable: end", move_folder, "all.npy' cannot be written: its folder was moved",
      "away/all.npy.partial", NULL, "away", 1 },
    { "durable: file", put_another_folder, "all.npy' cannot be written: its folder was moved",
      "away/all.npy.partial", "out/all.npy", "away", 1 },
    { "if_exists: error", move_folder_with_a_file, "all.npy' cannot be written: its folder was moved",
      "away/all.npy.partial", "away/all.npy", "away", 2 },
};

/* Once some frames are written. */
static void happens(gp_pipeline *p, void *arg)
{
    int i = *(int *)arg;
    char name[NAME_MAX + 1], now[NAME_MAX + 10] = "out/all.npy";
    struct stat st = { 0 };
    gp_temporary_name(name, "all.npy", getpid(), 0);
    if (!strstr(moves[i].options, "live"))
        TEXT(now, "out/%s", name);
    while (stat(io_at(now), &st) || st.st_size < 128 + 4 * 16)
        nap();
    moves[i].happens(now);
    gp_cancel(p, 1);
}

TEST_EACH(somebody_moves_it, moves)
{
    char real[600], told[PATH_MAX];
    int i = _i;
    char *y = format("buffers: {a: {dtype: u8, shape: [2, 8]}}\nstages:\n  - {use: generate, rate: 500, out: a}\n"
                     "  - {use: write, path: out/all.npy, %s}\n", moves[i].options);
    pipe_result r = pipe_run_with(io_dir, y, "cpu", NULL, (gp_run_options){ 0 }, happens, &i);
    ck_assert_msg(r.outcome == (moves[i].says ? GP_ERROR : GP_DRAINED), "%s", io_error(&r));
    ck_assert_int_eq(gp_errs_exit(&r.errs), moves[i].says != NULL);

    ck_assert_int_eq(r.errs.n ? r.errs.e[0].at.line : 4, 4);
    ck_assert_msg(!moves[i].says || strstr(io_error(&r), moves[i].says), "%s", io_error(&r));
    ck_assert_ptr_nonnull(realpath(io_dir, real));
    io_told(&r, told);
    ck_assert_str_eq(told, moves[i].says && moves[i].is ? format("%s/%s", real, moves[i].is) : "");

    if (moves[i].theirs)
        io_holds(moves[i].theirs, "theirs", 6);
    ck_assert_int_eq(io_files(moves[i].folder), moves[i].files);
    if (!moves[i].is)
        return;
    gp_type t = pipe_npy_type(io_dir, moves[i].is);
    ck_assert_uint_eq(gp_bytes(&t), 16 * r.account[0].out);
}

/* The same while the run goes on: it ends by itself. */
static const struct { const char *file; void (*happens)(const char *now); const char *says, *kept; } meanwhile[] = {
    { "all.npy", truncate_it, "' was truncated while it was written", NULL },
    { "all.raw", truncate_it, "' was truncated while it was written", NULL },
    { "all.raw", cut_it, "' was truncated while it was written", NULL },
    { "all.npy", remove_it, "' was removed or replaced while it was written", NULL },
    { "all.raw", replace_it, "' was removed or replaced while it was written", NULL },
    { "all.raw", rename_it, "' was moved while it was written", "out/other.npy" },
};

static void happens_meanwhile(gp_pipeline *p, void *arg)
{
    int i = *(int *)arg;
    struct stat st = { 0 };
    char *name = format("out/%s", meanwhile[i].file);
    while (stat(io_at(name), &st) || st.st_size < 128 + 4 * 16)
        nap();
    meanwhile[i].happens(name);
}

TEST_EACH(it_is_told_meanwhile, meanwhile)
{
    char real[600], told[PATH_MAX];
    int i = _i;
    char *y = format("buffers: {a: {dtype: u8, shape: [2, 8]}}\nstages:\n  - {use: generate, rate: 500, out: a}\n"
                     "  - {use: write, path: out/%s, live: true}\n", meanwhile[i].file);
    pipe_result r = pipe_run_with(io_dir, y, "cpu", NULL, (gp_run_options){ 0 }, happens_meanwhile, &i);
    ck_assert_int_eq(r.outcome, GP_ERROR);
    ck_assert_int_eq(gp_errs_exit(&r.errs), 1);
    ck_assert_int_eq(r.errs.e[0].at.line, 4);
    ck_assert_msg(strstr(io_error(&r), meanwhile[i].says) != NULL, "%s", io_error(&r));
    ck_assert_ptr_nonnull(realpath(io_dir, real));
    io_told(&r, told);
    ck_assert_str_eq(told, meanwhile[i].kept ? format("%s/%s", real, meanwhile[i].kept) : "");
    if (meanwhile[i].happens == replace_it)
        io_holds("out/all.raw", "theirs", 6);
}

/* Whoever truncates it at whatever moment, under its name or before it has one: a run that does not say so has written
 * all of it. Frames are larger than what a file system gives out at once. */
static const struct { const char *file, *options, *dtype; bool by_holes; } cuts[] = {
    { "all.npy", "live: true", "u8", false }, { "all.npy", "durable: end", "u8", false },
    { "all.raw", "durable: end", "u8", false }, { "all.y4m", "frame_rate: 25", "u8", false },
    { "all.csv", "durable: end", "u8", false }, { "all.wav", "sample_rate: 8000", "i16", true },
    { "all.tif", "durable: end", "u8", true }, { "all.npy", "workers: 2", "u8", true },
    { "all.raw", "workers: 4", "u8", true },
};

static void truncate_often(gp_pipeline *p, void *arg)
{
    struct stat st = { 0 };
    int i = *(int *)arg;
    char name[NAME_MAX + 1];
    gp_temporary_name(name, cuts[i].file, getpid(), 0);
    const char *all = io_at(strstr(cuts[i].options, "live") ? cuts[i].file : name);
    while (stat(all, &st) || st.st_size < 100 * 8192)
        ;
    ck_assert_int_eq(truncate(all, 8000), 0);
    gp_cancel(p, 1);
}

TEST_EACH(truncated_at_any_moment, cuts)
{
    int i = _i, folder = open(io_dir, O_RDONLY | O_CLOEXEC);
    bool shown = gp_shows_holes(folder);
    close(folder);
    if (cuts[i].by_holes && !shown) {
        printf("SKIPPED: the file system of TMPDIR does not tell what of %s was never written\n", cuts[i].file);
        return;
    }
    char *y = format("buffers: {a: {dtype: %s, shape: [96, 128]}}\nstages:\n  - {use: generate, out: a}\n"
                     "  - {use: write, path: %s, %s}\n", cuts[i].dtype, cuts[i].file, cuts[i].options);
    for (int n = 0; n < 10; n++) {
        pipe_result r = pipe_run_with(io_dir, y, "cpu", NULL, (gp_run_options){ 0 }, truncate_often, &i);
        ck_assert_msg(r.outcome == GP_ERROR, "%s is silent", cuts[i].file);
        ck_assert_msg(strstr(io_error(&r), "' was truncated while it was written") != NULL, "%s", io_error(&r));
    }
}

/* To a path that is longer than a message. */
static void moves_far(gp_pipeline *p, void *far)
{
    char *from = io_at("out.npy");
    while (access(from, F_OK))
        nap();
    for (char *end = far; (end = strchr(end + 1, '/')); *end = '/') {
        *end = 0;
        ck_assert(!mkdir(far, 0777) || errno == EEXIST);
    }
    ck_assert_int_eq(rename(from, far), 0);
    gp_cancel(p, 1);
}

TEST(a_long_path)
{
    char far[PATH_MAX], told[PATH_MAX];
    ck_assert_ptr_nonnull(realpath(io_dir, far));
    for (int i = 0; i < 25; i++)
        strcat(far, "/a folder whose name is 40 bytes or so ...");
    strcat(far, "/other.npy");
    pipe_result r = pipe_run_with(io_dir, "buffers: {a: {dtype: u8, shape: [2, 8]}}\nstages:\n"
                                  "  - {use: generate, rate: 500, out: a}\n"
                                  "  - {use: write, path: out.npy, live: true}\n", "cpu", NULL,
                                  (gp_run_options){ 0 }, moves_far, far);
    ck_assert_int_eq(r.outcome, GP_ERROR);
    io_told(&r, told);
    ck_assert_str_eq(told, far);
}

static void moves_numbers(gp_pipeline *p, void *arg)
{
    while (access(io_at("out/2.raw"), F_OK))
        nap();
    move_folder(NULL);
    gp_cancel(p, 1);
}

/* Every file that was written is there, and nothing else; a frame that was on its way may fail. */
TEST(a_folder_of_numbered_files_moves)
{
    pipe_result r = pipe_run_with(io_dir, "on_error: drop\nbuffers: {a: {dtype: u8, shape: [2, 8]}}\nstages:\n"
                                  "  - {use: generate, rate: 500, out: a}\n  - {use: write, path: 'out/%d.raw'}\n",
                                  "cpu", NULL, (gp_run_options){ 0 }, moves_numbers, NULL);
    ck_assert_int_eq(r.outcome, GP_DRAINED);
    ck_assert_uint_ge(r.account[0].out, 3);
    ck_assert_uint_eq((unsigned)io_files("out") + (unsigned)io_files("away"), r.account[0].out);
}

/* The run does not go on elsewhere: it ends by itself. `there`: so many files are in a new folder. */
static const struct { const char *options; void (*happens)(const char *now); int there; } numbers[] = {
    { "", move_folder, 0 },           { ", workers: 4", move_folder, 0 },
    { "", put_another_folder, 1 },    { ", workers: 4", put_another_folder, 1 },
    { ", if_exists: next", put_another_folder, 1 },
};

static void moves_while_it_runs(gp_pipeline *p, void *arg)
{
    while (access(io_at("out/2.raw"), F_OK))
        nap();
    numbers[*(int *)arg].happens(NULL);
}

TEST_EACH(numbered_files_stay_in_their_folder, numbers)
{
    int i = _i;
    pipe_result r = pipe_run_with(io_dir, format("buffers: {a: {dtype: u8, shape: [2, 8]}}\nstages:\n"
                                  "  - {use: generate, rate: 500, frames: 60000, out: a}\n"
                                  "  - {use: write, path: 'out/%%d.raw'%s}\n", numbers[i].options),
                                  "cpu", NULL, (gp_run_options){ 0 }, moves_while_it_runs, &i);
    ck_assert_int_eq(r.outcome, GP_ERROR);
    ck_assert_int_eq(gp_errs_exit(&r.errs), 1);
    ck_assert_msg(strstr(io_error(&r), ".raw' cannot be written: its folder was moved") != NULL, "%s", io_error(&r));
    ck_assert_int_eq(access(io_at("out"), F_OK) != 0, !numbers[i].there);
    ck_assert_int_eq(io_files("out"), numbers[i].there);
    ck_assert_uint_eq((unsigned)io_files("away"), r.account[0].out);
}

TEST_SUITE(io_moved, io_set_up, NULL, 0)
