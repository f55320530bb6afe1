/* test_io_rotate.c - files that live on: one is followed by others (rotate_frames, rotate_time, rotate_size), the oldest
 * go (keep), and a file is added to (append). */
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include "base/clock.h"
#include "base/outfile.h"
#include "iotest.h"

Suite *suite_io_rotate(void);

#define IN "stages:\n  - {use: read, path: in.npy}\n"

static int named(const struct dirent *e)
{
    return *e->d_name != '.';
}

/* The files of a folder, by name, with their sizes: "a.raw:20 b.raw:3 ". */
static const char *list(const char *sub)
{
    static char text[4000];
    struct dirent **e;
    struct stat st;
    size_t used = 0;
    int n = scandir(io_at(sub), &e, named, alphasort);
    *text = 0;
    for (int i = 0; i < n; free(e[i++]))
        if (!stat(format("%s/%s/%s", io_dir, sub, e[i]->d_name), &st))
            used += (size_t)snprintf(text + used, sizeof text - used, "%s:%lld ", e[i]->d_name, (long long)st.st_size);
    if (n >= 0)
        free(e);
    return text;
}

/* ---- where a file ends ----------------------------------------------- */

/* Ten frames of 20 bytes, the last one of 5 (in.npy is cut by 4 rows); frame k has the time k / 4 s from 1000 s on, but
 * frame 5, which is of 1000 s. */
#define CUT "buffers: {read: {dtype: u8, shape: [4, 5]}}\nstages:\n  - {use: read, path: in.npy, out: read}\n"
#define TIMED "buffers: {x: {dtype: u8, shape: [4]}}\nstages:\n  - {use: lua, script: timed.lua, out: x}\n"

static const struct { const char *yaml, *write, *files; } ends[] = {
    { CUT, "path: 'out/%02d.raw', rotate_frames: 4", "00.raw:80 01.raw:80 02.raw:25 " },
    { CUT, "path: 'out/%02d.raw', rotate_frames: 4, start: 7", "07.raw:80 08.raw:80 09.raw:25 " },
    { CUT, "path: 'out/%02d.raw', rotate_frames: 5", "00.raw:100 01.raw:85 " },
    { CUT, "path: 'out/%02d.raw', rotate_frames: 10", "00.raw:185 " },
    { CUT, "path: 'out/%02d.raw', rotate_frames: 4, live: true", "00.raw:80 01.raw:80 02.raw:25 " },
    { CUT, "path: 'out/%02d.raw', rotate_frames: 4, durable: file", "00.raw:80 01.raw:80 02.raw:25 " },
    { CUT, "path: 'out/%02d.raw', rotate_frames: 0, rotate_size: 79", "00.raw:60 01.raw:60 02.raw:65 " },
    { CUT, "path: 'out/%02d.raw', rotate_size: 80", "00.raw:80 01.raw:80 02.raw:25 " },
    { CUT, "path: 'out/%02d.raw', rotate_size: 1", "00.raw:20 01.raw:20 02.raw:20 03.raw:20 04.raw:20 05.raw:20 06.raw:20 "
                                                   "07.raw:20 08.raw:20 09.raw:5 " },
    { CUT, "path: 'out/%02d.raw', rotate_size: 1KiB", "00.raw:185 " },
    { CUT, "path: 'out/%02d.raw', rotate_size: 80, rotate_frames: 3", "00.raw:60 01.raw:60 02.raw:60 03.raw:5 " },
    { CUT, "path: 'out/%02d.npy', rotate_size: 168", "00.npy:168 01.npy:168 02.npy:168 03.npy:168 04.npy:153 " },
    { CUT, "path: 'out/%02d.npy', rotate_frames: 4", "00.npy:208 01.npy:208 02.npy:153 " },
    { TIMED, "path: 'out/%d.raw', rotate_time: 1s", "0.raw:16 1.raw:16 2.raw:8 " },
    { TIMED, "path: 'out/%d.raw', rotate_time: 500ms", "0.raw:8 1.raw:8 2.raw:8 3.raw:8 4.raw:8 " },
    { TIMED, "path: 'out/%d.raw', rotate_time: 1h", "0.raw:40 " },
    { TIMED, "path: 'out/%d.raw', rotate_time: 1s, rotate_frames: 3", "0.raw:12 1.raw:4 2.raw:12 3.raw:4 4.raw:8 " },
    { TIMED, "path: 'out/%t.raw', rotate_time: 1s", "19700101T001640.000000000Z.raw:16 19700101T001641.250000000Z.raw:16 "
                                                    "19700101T001642.000000000Z.raw:8 " },
    { TIMED, "path: 'out/%%t-%t-%d.raw', rotate_frames: 8", "%t-19700101T001640.000000000Z-0.raw:32 "
                                                          "%t-19700101T001642.000000000Z-1.raw:8 " },
    { TIMED, "path: 'out/%t_%d.raw', start: 3, workers: 3", NULL },
};

static const char timed[] = "function produce(f, x)\n  if f.index == 10 then return false end\n"
                            "  f.time = f.index == 5 and 1000 or f.index == 4 and 1001.25 or 1000 + f.index / 4\n"
                            "  x:fill(f.index)\nend\n";

TEST_EACH(a_file_ends, ends)
{
    io_count_npy("in.npy", U8(37, 5), 0);
    pipe_text(io_dir, "timed.lua", timed);
    pipe_result r = io_go(format("%s  - {use: write, %s}\n", ends[_i].yaml, ends[_i].write));
    ck_assert_msg(r.outcome == GP_DONE && !r.errs.failed, "%s: %s", ends[_i].write, io_error(&r));
    if (ends[_i].files)
        ck_assert_str_eq(list("out"), ends[_i].files);
    else
        ck_assert_int_eq(io_files("out"), 10);         /* a file for each frame */
}

/* Frames that are read again from all files are those of one file, in every format of several frames. */
static const struct { const char *type, *file, *read; } formats[] = {
    { "{dtype: i16, shape: [3, 2]}", "raw, rotate_size: 100", "" },
    { "{dtype: i16, shape: [3, 2]}", "npy, rotate_size: 300", "" },
    { "{dtype: i16, shape: [3, 2]}", "npy, stack: true, rotate_frames: 7", "" },
    { "{dtype: i16, shape: [3, 2]}", "csv, rotate_size: 100", "" },
    { "{dtype: i16, shape: [3, 2]}", "tsv, rotate_size: 1", "" },
    { "{dtype: i16, shape: [3, 2]}", "csv, rotate_size: 100, columns: [a, b]", "" },
    { "{dtype: i16, shape: [3, 2]}", "jsonl, rotate_size: 101", "" },
    { "{dtype: i16, shape: [3, 2]}", "npz, rotate_frames: 7", "" },
    { "{dtype: i16, shape: [3, 2]}", "wav, rotate_frames: 7, sample_rate: 8000", "" },
    { "{dtype: i16, shape: [3, 2]}", "tiff, rotate_frames: 7", "" },
    { "{dtype: u8, shape: [6, 4]}", "y4m, rotate_size: 150, frame_rate: 25", "" },
};

TEST_EACH(what_files_hold, formats)
{
    const char *type = formats[_i].type, *file = formats[_i].file;
    char *pattern = format("out/*.%.*s", (int)strcspn(file, ","), file);
    io_runs(format("depth: 30\nbuffers: {x: %s, y: %s}\nstages:\n  - {use: generate, frames: 50, out: x}\n"
                   "  - {use: expr, expr: in + frame.index, out: y}\n  - {use: write, path: one.raw}\n"
                   "  - {use: write, in: y, path: 'out/%%03d.%s}\n",
                   type, type, format("%.*s'%s", (int)strcspn(file, ","), file, file + strcspn(file, ","))));
    ck_assert_int_ge(io_files("out"), 4);
    io_runs(format("buffers: {x: %s}\nstages:\n  - {use: read, path: '%s', out: x}\n  - {use: write, path: all.raw}\n", type,
                   pattern));
    size_t n;
    OWNED char *one = pipe_read(io_dir, "one.raw", &n);
    ck_assert_ptr_nonnull(one);
    io_holds("all.raw", one, n);
}

/* Holes are in no file, and no file is made where no frame comes. */
TEST(holes)
{
    io_count_npy("in.npy", U8(37, 5), 0);
    pipe_text(io_dir, "odd.lua", "function process(f, x, y)\n  if f.index % 2 == 1 or f.index < 4 then return 'drop' end\n"
              "  y:copy(x)\nend\n");
    pipe_text(io_dir, "none.lua", "function process(f, x, y)\n  return 'drop'\nend\n");
    io_done(CUT "  - {use: lua, script: odd.lua}\n  - {use: write, path: 'out/%d.raw', rotate_frames: 2}\n");
    ck_assert_str_eq(list("out"), "0.raw:40 1.raw:20 ");
    io_done(CUT "  - {use: lua, script: none.lua}\n  - {use: write, path: 'none/%d.raw', rotate_frames: 2}\n");
    ck_assert_str_eq(list("none"), "");
}

/* ---- what is there already -------------------------------------------- */

static const struct { const char *write, *error, *said, *files; } earlier[] = {
    { "if_exists: replace", NULL, "replaced 2 files, the first '", "0.raw:10 1.raw:10 2.raw:10 3.raw:3 7.raw:3 " },
    { "if_exists: next", NULL, "went on at number 8", "0.raw:3 2.raw:3 3.raw:3 7.raw:3 8.raw:10 9.raw:10 10.raw:10 " },
    { "if_exists: error", "'out/%d.raw' is there already with number 0", NULL, "0.raw:3 2.raw:3 3.raw:3 7.raw:3 " },
    { "if_exists: error, start: 1", "frame 2: 'out/2.raw' is there already", NULL, "0.raw:3 1.raw:10 2.raw:3 3.raw:3 7.raw:3 " },
    { "keep: 1", NULL, "replaced 2 files, the first '", "2.raw:10 3.raw:3 7.raw:3 " },
    { "keep: 1, start: 4", NULL, NULL, "0.raw:3 2.raw:3 3.raw:3 6.raw:10 7.raw:3 " },
    { "keep: 2, if_exists: next", NULL, "went on at number 8", "0.raw:3 2.raw:3 3.raw:3 7.raw:3 9.raw:10 10.raw:10 " },
    { "keep: 9", NULL, "replaced 2 files, the first '", "0.raw:10 1.raw:10 2.raw:10 3.raw:3 7.raw:3 " },
    { "keep: 2, live: true", NULL, "replaced 2 files, the first '", "1.raw:10 2.raw:10 3.raw:3 7.raw:3 " },
};

/* Numbers are sorted as text by list(). */
static bool same_files(const char *a, const char *b)
{
    size_t n = strlen(a);
    for (char *p = strtok(format("%s", b), " "); p; p = strtok(NULL, " "))
        if (!strstr(format(" %s", a), format(" %s ", p)))
            return false;
    return n == strlen(b);
}

TEST_EACH(files_of_an_earlier_run, earlier)
{
    io_count_npy("in.npy", U8(6, 5), 0);
    mkdir(io_at("out"), 0777);
    for (int i = 0; i < 8; i += i == 3 ? 4 : i ? 1 : 2)
        pipe_text(io_dir, format("out/%d.raw", i), "old");
    pipe_result r = io_go(format(IN "  - {use: write, path: 'out/%%d.raw', rotate_frames: 2, %s}\n", earlier[_i].write));
    const char *said = io_error(&r), *want = earlier[_i].error;
    ck_assert_msg(r.outcome == (want ? GP_ERROR : GP_DONE), "%s: %s", earlier[_i].write, said);
    if (want)
        ck_assert_msg(strstr(said, strrchr(format("%s", want), '/')) != NULL, "%s", said);
    if (earlier[_i].said)
        ck_assert_msg(strstr(said, earlier[_i].said) != NULL, "%s", said);
    ck_assert_msg(same_files(list("out"), earlier[_i].files), "%s: %s", earlier[_i].write, list("out"));
}

/* A file that somebody has changed, or put there, is not this run's any more: frame 4 waits until file
 * 0 is there. */
static const struct { const char *lua, *files; bool said; } changed[] = {
    { "local f = io.open('%s', 'a') f:write('more') f:close()", "0.raw:9 6.raw:5 7.raw:5 8.raw:5 9.raw:5 ", true },
    { "os.remove('%s')", "6.raw:5 7.raw:5 8.raw:5 9.raw:5 ", false },
    { "os.rename('%s', '%s.mine')", "0.raw.mine:5 6.raw:5 7.raw:5 8.raw:5 9.raw:5 ", false },
    { "os.rename('%s', '%s.mine') local f = io.open('%s', 'w') f:write('other') f:close()",
      "0.raw.mine:5 0.raw:5 6.raw:5 7.raw:5 8.raw:5 9.raw:5 ", true },
};

TEST_EACH(keep_removes_its_own_alone, changed)
{
    io_count_npy("in.npy", U8(10, 5), 0);
    char *path = format("%s/out/0.raw", io_dir);
    char *does = format(changed[_i].lua, path, path, path);
    pipe_text(io_dir, "change.lua", format("function process(f, x, y)\n  y:copy(x)\n  if f.index ~= 4 then return end\n"
              "  local till = os.time() + 60\n  while os.time() < till do\n    local f = io.open('%s')\n"
              "    if f then f:close() break end\n  end\n  %s\nend\n", path, does));
    pipe_result r = io_done("depth: 2\n" IN "  - {use: lua, script: change.lua}\n"
                          "  - {use: write, path: 'out/%d.raw', rotate_frames: 1, keep: 4}\n");
    ck_assert_msg(same_files(list("out"), changed[_i].files), "%s", list("out"));
    ck_assert_int_eq(r.errs.n && strstr(r.errs.e[0].msg, "stays, which 'keep' would remove"), changed[_i].said);
}

/* ---- a run that is killed --------------------------------------------- */

/* Files that have their names are whole, and hold what those of a run that comes to its end do. It is killed once it has
 * begun file `_i`, at a time that the machine chooses. */
TEST_LOOP(killed, 0, 10)
{
    enum { FRAMES = 40 };
    unsigned char want[3 * 5];
    io_count_npy("in.npy", U8(FRAMES, 5), 0);
    pid_t pid = fork();
    if (!pid) {
        io_go("depth: 2\nstages:\n  - {use: read, path: in.npy, loop: true, rate: 2000}\n"
              "  - {use: write, path: 'out/%d.raw', rotate_frames: 3}\n");
        _exit(0);
    }
    int64_t till = gp_now_ns() + 60000000000;
    while (access(io_at(format("out/%d.raw", 4 * _i)), F_OK) && gp_now_ns() < till)
        usleep(500);
    kill(pid, SIGKILL);
    ck_assert_int_eq(waitpid(pid, NULL, 0), pid);
    int n = 0;
    for (; !access(io_at(format("out/%d.raw", n)), F_OK); n++) {
        for (int i = 0; i < 15; i++)
            want[i] = (unsigned char)((3 * n + i / 5) % FRAMES * 5 + i % 5);
        io_holds(format("out/%d.raw", n), want, 15);
    }
    ck_assert_int_ge(n, 4 * _i + 1);
    io_runs(IN "  - {use: write, path: 'out/%d.raw', rotate_frames: 3, if_exists: next}\n");
    ck_assert_int_eq(io_files("out"), n + 14);         /* nothing is left of what was killed */
}

/* ---- adding ----------------------------------------------------------- */

#define X "buffers: {x: {dtype: u8, shape: [2, 5]}}\nstages:\n  - {use: read, path: in.npy, out: x}\n"

#define NAMES ", columns: [a, b, c, d, e]"

/* What is there ("N": a .npy of N rows of five; else the text), and what is said where that cannot be added to. */
static const struct { const char *file, *there, *error; size_t bytes; } adds[] = {
    { "raw", NULL, NULL, 20 },
    { "raw", "", NULL, 20 },
    { "raw", "01234", NULL, 25 },
    { "raw", "0123", "cannot be added to: it has 4 bytes, which are no whole rows of 5", 0 },
    { "raw, live: true", "01234", NULL, 25 },
    { "raw, durable: file", "01234", NULL, 25 },
    { "npy", NULL, NULL, 148 },
    { "npy", "0", NULL, 148 },
    { "npy", "3", NULL, 163 },
    { "npy, stack: true", "3", "cannot be added to: it holds u8 [3, 5], and with the frames it would be u8 [3, 2, 5]", 0 },
    { "npy", "", "is not a .npy file", 0 },
    { "npy", "1,2,3,4,5\n", "is not a .npy file", 0 },
    { "csv", NULL, NULL, 50 },
    { "csv", "", NULL, 50 },
    { "csv", "1,2,3,4,5\n", NULL, 60 },
    { "csv", "a,b,c,d,e\n1,2,3,4,5\n", NULL, 70 },
    { "csv", "1,2,3,4\n", "cannot be added to: its rows have 4 numbers, those of the frames 5", 0 },
    { "csv", "1,2,3,4,5", "cannot be added to: its last line does not end", 0 },
    { "csv", "1,2,3,4,5\n\n", NULL, 61 },
    { "csv", "1,2,3,4,5\n# so far\n", NULL, 69 },
    { "csv", "1;2;3;4;5\n", "cannot be added to: its last line has no 5 numbers with ',' between them", 0 },
    { "csv", "1,2,3,4,5\n1,2\n", "cannot be added to: its last line has no 5 numbers with ',' between them", 0 },
    { "tsv", "1 2 3 4 5\n", "cannot be added to: its last line has no 5 numbers with '\\t' between them", 0 },
    { "tsv", "1\t2\t3\t4\t5\n", NULL, 60 },
    { "jsonl", "[1, 2, 3, 4, 5]\n", NULL, 90 },
    { "csv" NAMES, NULL, NULL, 60 },
    { "csv" NAMES, "", NULL, 60 },
    { "csv" NAMES, "a,b,c,d,e\n", NULL, 60 },
    { "csv" NAMES, "a,b,c,d,e\n1,2,3,4,5\n", NULL, 70 },
    { "csv" NAMES, "1,2,3,4,5\n", "cannot be added to: its first line is not 'a,b,c,d,e', as 'columns' says", 0 },
    { "csv" NAMES, "a,b,c,d,e\r\n", "as 'columns' says: a carriage return is at its end", 0 },
    { "csv" NAMES, "\xef\xbb\xbf""a,b,c,d,e\n", "as 'columns' says: a byte order mark is before it", 0 },
    { "csv" NAMES, "a,b,c,d", "cannot be added to: its first line is not 'a,b,c,d,e', as 'columns' says", 0 },
    { "csv" NAMES, "a,b,c,d,e\n1,2,3,4,5", "cannot be added to: its last line does not end", 0 },
    { "csv" NAMES, "a,b,c,d,e\n1,2,3,4,\"5\n", "cannot be added to: its last line does not end", 0 },
    { "jsonl", "7\n", "cannot be added to: its rows have 1 numbers, those of the frames 5", 0 },
};

TEST_EACH(a_file_is_added_to, adds)
{
    size_t n = 0, is = 0;
    io_count_npy("in.npy", U8(4, 5), 0);
    char *name = format("a.%.*s", (int)strcspn(adds[_i].file, ","), adds[_i].file);
    const char *there = adds[_i].there;
    if (there && strlen(there) == 1)
        io_count_npy(name, U8(*there - '0', 5), 100);
    else if (there)
        pipe_text(io_dir, name, there);
    OWNED char *was = there ? pipe_read(io_dir, name, &n) : NULL;
    pipe_result r = io_go(format(X "  - {use: write, path: a.%s, append: true}\n", adds[_i].file));
    ck_assert_msg(r.outcome == (adds[_i].error ? GP_ERROR : GP_DONE), "%s", io_error(&r));
    if (adds[_i].error) {
        ck_assert_msg(strstr(io_error(&r), adds[_i].error) != NULL, "%s", io_error(&r));
        ck_assert_int_ge(r.errs.e[0].at.line, 4);
        io_holds(name, was, n);
        return;
    }
    ck_assert_int_eq(r.errs.n, 0);
    OWNED char *now = pipe_read_all(io_dir, name, adds[_i].bytes);
    bool npy = !strncmp(adds[_i].file, "npy", 3);
    if (n && !npy)
        ck_assert_mem_eq(now, was, n);
    io_runs(format("buffers: {x: {dtype: u8, shape: [1, 5]}}\nstages:\n  - {use: read, path: %s, out: x}\n"
                 "  - {use: write, path: all.raw}\n", name));
    OWNED char *all = pipe_read(io_dir, "all.raw", &is);
    ck_assert_uint_ge(is, 20);
    for (unsigned i = 0; i < 20; i++)
        ck_assert_int_eq(all[is - 20 + i], (int)i);
    for (size_t i = 0; npy && i < is - 20; i++)
        ck_assert_int_eq((unsigned char)all[i], (int)(100 + i));
}

/* Three runs, one of which fails at its third frame: all that was written before is there. */
TEST(added_by_runs)
{
    io_count_npy("in.npy", U8(4, 5), 0);
    pipe_text(io_dir, "fail.lua", "function process(f, x, y)\n  if f.index == 2 then error('as it should') end\n  y:copy(x)\nend\n");
    for (int i = 0; i < 3; i++) {
        pipe_result r = io_go(format("depth: 1\nbuffers: {x: {dtype: u8, shape: [1, 5]}}\nstages:\n"
                                     "  - {use: read, path: in.npy, out: x}\n%s"
                                     "  - {use: write, path: a.npy, append: true}\n", i == 1 ? "  - {use: lua, script: fail.lua}\n" : ""));
        ck_assert_int_eq(r.outcome, i == 1 ? GP_ERROR : GP_DONE);
    }
    OWNED char *is = pipe_read_all(io_dir, "a.npy", 128 + 20 + 10 + 20);
    ck_assert_ptr_nonnull(memmem(is, 128, "(10, 5)", 7));
    ck_assert_int_eq(io_files(""), 3);
}

/* Another run has the file. */
TEST(two_runs_add)
{
    io_count_npy("in.npy", U8(4, 5), 0);
    pipe_text(io_dir, "a.raw", "01234");
    int fd = open(io_at("a.raw"), O_RDWR);
    ck_assert(gp_hold_temporary(fd));
    io_fails(X "  - {use: write, path: a.raw, append: true}\n", 1, "a.raw' cannot be written: another run is writing it");
    close(fd);
    io_holds("a.raw", "01234", 5);
}

/* What is read is not added to, and no two stages add to one file. */
TEST(added_to_what_is_in_use)
{
    io_count_npy("in.npy", U8(4, 5), 0);
    pipe_text(io_dir, "a.raw", "01234");
    ck_assert_int_eq(link(io_at("a.raw"), io_at("b.raw")), 0);
    ck_assert_int_eq(link(io_at("in.npy"), io_at("c.npy")), 0);
    io_fails(X "  - {use: write, path: c.npy, append: true}\n", 1, "c.npy' is read by stage 'read'");
    io_fails(X "  - {name: w, use: write, path: a.raw, append: true}\n  - {use: write, in: x, path: b.raw, append: true}\n", 1,
             "is written by stage");
    io_holds("a.raw", "01234", 5);
}

TEST_SUITE(io_rotate, io_set_up, NULL, 60)
