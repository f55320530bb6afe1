/* test_io_workers.c - sources and writers with several workers: what they make is what one makes, byte for byte, name
 * for name, and so are their ends, holes and errors. */
#include <dirent.h>
#include "iotest.h"

/* ---- what is read ---------------------------------------------------- */

/* Pictures p0 .. p6, of which c3 and d2 to d4 are broken, and t0 and t1 cut off; sizes s0 .. s3; arrays n0 .. n5 of 4, 1, 7, 0, 2, 5 rows, of
 * which m2 holds something else and m4 is gone; raw files r0 .. r4, of which r1 and r3 are empty. */
static void make_files(void)
{
    static const int rows[] = { 4, 1, 7, 0, 2, 5 };
    size_t bytes;
    io_runs("buffers: {x: {dtype: u8, shape: [6, 9]}}\nstages:\n  - {use: generate, frames: 7, pattern: noise, out: x}\n"
            "  - {use: write, path: 'p%d.png', in: x}\n  - {name: c, use: write, path: 'c%d.png', in: x}\n"
            "  - {name: d, use: write, path: 'd%d.png', in: x}\n");
    for (int i = 0; i < 4; i++)
        io_runs(format("buffers: {x: {dtype: u8, shape: [%d, %d]}}\nstages:\n  - {use: generate, frames: 1, out: x}\n"
                     "  - {use: write, path: 's%%d.png', start: %d}\n", 9 - i, 3 + i, i));
    OWNED char *png = pipe_read(io_dir, "p0.png", &bytes);
    pipe_file(io_dir, "t0.png", png, bytes - 20);
    pipe_file(io_dir, "t1.png", png, bytes - 20);
    pipe_text(io_dir, "c3.png", "no picture");
    for (int i = 2; i < 5; i++)
        pipe_text(io_dir, format("d%d.png", i), "no picture");
    for (int i = 0; i < 6; i++) {
        io_count_npy(format("n%d.npy", i), U8(rows[i], 10), 20 * i);
        if (i == 2)
            io_count_npy("m2.npy", (gp_type){ GP_U16, 2, { 3, 10 } }, 0);
        else if (i == 4)
            ck_assert_int_eq(symlink("gone", io_at("m4.npy")), 0);
        else
            io_count_npy(format("m%d.npy", i), U8(rows[i], 10), 20 * i);
    }
    for (int i = 0; i < 5; i++)
        io_count_raw(format("r%d.raw", i), i % 2 ? 0 : 33 + (size_t)i);
    io_count_npy("one.npy", U8(101, 3), 0);
    pipe_text(io_dir, "look.lua",              /* a frame is not older than the one before */
              "local last = 0\nfunction process(f, x, y)\n  if f.time < last then error('older') end\n"
              "  last = f.time\n  y:copy(x)\nend\n");
    pipe_text(io_dir, "slow.lua", "function process(f, x, y)\n"
              "  if f.index % 4 == 0 then y:copy(x) else y:fill(f.index) end\nend\n");
    pipe_text(io_dir, "lose.lua", "stateless = true\nfunction process(f, x, y)\n"
              "  if f.index % 7 == 3 then return 'drop' end\n  y:copy(x)\nend\n");
}

#define X(...) "buffers: {x: {dtype: u8, shape: " __VA_ARGS__ "}}\n"
#define LOOK "  - {use: lua, script: look.lua}\n"

static const struct { const char *what, *top, *source, *behind; uint64_t frames; } reads[] = {
    { "a glob of pictures", "", "read, path: 'p*.png'", LOOK, 7 },
    { "numbered pictures", "", "read, path: 'p%d.png'", LOOK, 7 },
    { "a picture again and again", "", "read, path: p3.png, loop: true, frames: 31", LOOK, 31 },
    { "pictures again and again", "", "read, path: 'p*.png', loop: true, frames: 31", LOOK, 31 },
    { "fewer frames than pictures", "", "read, path: 'p*.png', frames: 4", LOOK, 4 },
    { "pictures of several sizes", X("['<=9', '<=6']"), "read, path: 's*.png', loop: true, frames: 23", "", 23 },
    { "a .npy", "", "read, path: one.npy", LOOK, 101 },
    { "a .npy cut in pieces", X("[8, 3]"), "read, path: one.npy", LOOK, 13 },
    { "a .npy again and again", X("[8, 3]"), "read, path: one.npy, loop: true, frames: 50", LOOK, 50 },
    { "arrays of several lengths", X("[3, 10]"), "read, path: 'n*.npy'", LOOK, 9 },
    { "numbered arrays", X("[2, 10]"), "read, path: 'n%d.npy', loop: true, frames: 77", LOOK, 77 },
    { "arrays, each one frame", X("['<=9', 10]"), "read, path: 'n[0-2].npy'", "", 3 },
    { "a raw file", X("[1]"), "read, path: r2.raw", LOOK, 35 },
    { "raw files, two of them empty", X("[4, 2]"), "read, path: 'r*.raw', tail: ignore", LOOK, 14 },
    { "raw files, each one frame", X("['<=40']"), "read, path: 'r*.raw', loop: true, frames: 20", "", 20 },
    { "what is no data between", X("[5]"), "read, path: 'r[024].raw', offset: 3, skip: 2, tail: ignore, loop: true, frames: 40",
      LOOK, 40 },
    { "big numbers first", "buffers: {x: {dtype: u16, shape: [4]}}\n", "read, path: r0.raw, endian: big, tail: ignore", LOOK, 4 },
    { "at a pace", "", "read, path: 'p*.png', rate: 400", LOOK, 7 },
    { "a broken picture in the middle", "on_error: drop\n", "read, path: 'c*.png'", LOOK, 7 },
    { "broken pictures again and again", "on_error: drop\n", "read, path: 'd*.png', loop: true, frames: 40", LOOK, 40 },
    { "nothing but broken pictures", "on_error: drop\n", "read, path: 't*.png', loop: true", LOOK, 3 },
    { "a broken picture stops it", "", "read, path: 'c*.png'", "", 4 },
    { "arrays that are gone or others", "on_error: drop\n" X("[3, 10]"), "read, path: 'm*.npy'", LOOK, 7 },
    { "an array that is gone stops it", X("[3, 10]"), "read, path: 'm[!2].npy'", "", 4 },
    { "no pieces to be repeated", "on_error: drop\n" X("[4]"), "read, path: 'r[13].raw', loop: true", "", 1 },
    { "holes behind", "", "read, path: one.npy", "  - {use: lua, script: lose.lua, workers: 2}\n", 101 },
    { "a kernel behind", "", "read, path: 'p*.png', loop: true, frames: 40",
      "  - {use: cast, dtype: f32}\n  - {use: blur, sigma: 1}\n  - {use: cast, dtype: u8}\n", 40 },
    { "a ramp", X("[3]"), "generate, frames: 60", LOOK, 60 },
    { "a sine", "buffers: {x: {dtype: f32, shape: [9]}}\n", "generate, pattern: sine, frames: 33", LOOK, 33 },
    { "noise once", X("[30]"), "generate, pattern: noise, fill: once, frames: 33", LOOK, 33 },
    { "a ramp at a pace", X("[3]"), "generate, frames: 12, rate: 1000", LOOK, 12 },
};

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Everything that a run made: each file by its name, then its bytes. */
static void gather(const char *sub, char *all, size_t size)
{
    char *name[300];
    int n = 0;
    size_t at = 0, bytes;
    DIR *d = opendir(io_at(sub));
    for (struct dirent *e; d && (e = readdir(d));)
        if (*e->d_name != '.' && n < 300)
            name[n++] = strdup(e->d_name);
    ck_assert_int_lt(n, 300);
    if (d)
        closedir(d);
    qsort(name, (size_t)n, sizeof *name, by_name);
    memset(all, 0, size);
    for (int i = 0; i < n; i++) {
        char *data = pipe_read(io_dir, format("%s/%s", sub, name[i]), &bytes);
        ck_assert_uint_lt(at + bytes + 100, size);
        at += (size_t)sprintf(all + at, "[%s %zu]", name[i], bytes);
        memcpy(all + at, data, bytes);
        at += bytes;
        free(data), free(name[i]);
    }
}

typedef struct outcome { pipe_result r; char told[4000], made[60000]; } outcome;

static void go(int at, int workers, const char *depth, outcome *o)
{
    const char *name = strncmp(reads[at].source, "read", 4) ? "g" : "%n";
    const char *set[] = { depth, NULL };
    char *sub = format("out%d%s", workers, depth);
    char *y = format("%sstages:\n  - {use: %s, out: x, workers: %d}\n%s  - {use: write, path: '%s/%s-%%03d.npy', durable: none}\n",
         reads[at].top, reads[at].source, workers, reads[at].behind, sub, name);
    o->r = pipe_run(io_dir, y, "cpu", set, (gp_run_options){ .poison = true });
    ck_assert_msg(o->r.compiled, "%s: %s", reads[at].what, io_error(&o->r));
    *o->told = 0;
    for (int i = 0; i < o->r.errs.n; i++)
        strncat(o->told, o->r.errs.e[i].msg, 200), strcat(o->told, "\n");
    gather(sub, o->made, sizeof o->made);
}

TEST_SOME(several_make_what_one_makes, sizeof reads / sizeof *reads, 3, 1)
{
    static const struct { int workers; const char *depth; } how[] = {
        { 2, "depth=3" }, { 5, "depth=8" }, { 5, "depth=2" }, { 3, "depth=1" },
    };
    static outcome one, more;
    make_files();
    go(_i, 1, "depth=4", &one);
    ck_assert_msg(one.r.account[0].in == reads[_i].frames, "%s: %llu frames: %s", reads[_i].what,
                  (unsigned long long)one.r.account[0].in, one.told);
    ck_assert(*one.made || !one.r.account[0].out);
    for (size_t k = 0; k < sizeof how / sizeof *how; k++) {
        go(_i, how[k].workers, how[k].depth, &more);
        const gp_account *a = &one.r.account[0], *b = &more.r.account[0];
        ck_assert_msg(one.r.outcome == more.r.outcome && !strcmp(one.told, more.told), "%s, %d workers:\n%snot\n%s",
                      reads[_i].what, how[k].workers, more.told, one.told);
        ck_assert_msg(one.r.outcome == GP_ERROR || (a->in == b->in && a->out == b->out && a->dropped == b->dropped),
                      "%s, %d workers: %llu frames", reads[_i].what, how[k].workers, (unsigned long long)b->in);
        ck_assert_msg(one.r.outcome == GP_ERROR || !memcmp(one.made, more.made, sizeof one.made), "%s, %d workers",
                      reads[_i].what, how[k].workers);
    }
}

/* ---- what is written ------------------------------------------------- */

#define SOME "stages:\n  - {use: read, path: 'p*.png', loop: true, frames: 25, out: x}\n"
/* Each fourth takes long to encode. */
#define ONE "stages:\n  - {use: read, path: q.png, loop: true, frames: 25, out: x}\n  - {use: lua, script: slow.lua}\n"
#define LOSE "  - {use: lua, script: lose.lua}\n"

static const struct { const char *what, *yaml; int files; } writes[] = {
    { "numbered pictures", SOME "  - {use: write, path: '%s/%%03d.png'", 25 },
    { "with holes", SOME LOSE "  - {use: write, path: '%s/%%03d.png', start: 7", 21 },
    { "numbers and names", SOME "  - {use: write, path: '%s/%%n-%%03d.png', compression: 0", 25 },
    { "names, with holes", "stages:\n  - {use: read, path: 'p*.png'}\n" LOSE "  - {use: write, path: '%s/%%n.png'", 6 },
    { "names, with holes", "stages:\n  - {use: read, path: 'p*.png'}\n" LOSE "  - {use: write, path: '%s/%%n.npy'", 6 },
    { "names", "stages:\n  - {use: read, path: 'p*.png'}\n  - {use: write, path: '%s/%%n.png'", 7 },
    { "one name for several", ONE "  - {use: write, path: '%s/%%n.png', compression: 9", 1 },
    { "one name for several, left out", "on_error: drop\n" ONE "  - {use: write, path: '%s/%%n.png', compression: 9", 1 },
    { "arrays of one name", "on_error: drop\n" ONE "  - {use: write, path: '%s/%%n.npy'", 1 },
    { "numbered arrays", SOME "  - {use: write, path: '%s/%%03d.npy'", 25 },
};

TEST_SOME(several_write_what_one_writes, sizeof writes / sizeof *writes, 3, 1)
{
    static const char *const workers[] = { "1", "2", "5", "auto" };
    static char made[2][200000], told[2][12000];
    make_files();
    io_runs(X("[300, 400]") "stages:\n  - {use: generate, frames: 1, pattern: noise, out: x}\n  - {use: write, path: q.png}\n");
    for (int k = 0; k < 4; k++) {
        char y[900], stage[500], sub[20], *list = told[k > 0];
        TEXT(stage, writes[_i].yaml, TEXT(sub, "w%s", workers[k]));
        TEXT(y, "%s, workers: %s, durable: none}\n", stage, workers[k]);
        pipe_result r = pipe_run(io_dir, y, "cpu", (const char *[]){ "depth=8", NULL }, (gp_run_options){ .poison = true });
        ck_assert_msg(r.compiled, "%s: %s", writes[_i].what, io_error(&r));
        *list = 0;
        for (int i = 0; i < r.errs.n; i++) {       /* up to the name of the folder, and from there on */
            char folder[24], *at = strstr(r.errs.e[i].msg, TEXT(folder, "/%s/", sub));
            sprintf(list + strlen(list), "%.*s%s;", at ? (int)(at - r.errs.e[i].msg) : 0, r.errs.e[i].msg,
                    at ? at + strlen(folder) - 1 : r.errs.e[i].msg);
        }
        gather(sub, made[k > 0], sizeof made[0]);
        ck_assert_int_eq(io_files(sub), writes[_i].files);
        size_t same = 0;
        while (k && told[0][same] && told[0][same] == told[1][same])
            same++;
        ck_assert_msg(!k || !strcmp(told[0], told[1]), "%s, workers %s, from byte %zu on:\n%.300s\nnot\n%.300s", writes[_i].what,
                      workers[k], same, told[1] + same, told[0] + same);
        ck_assert_msg(!k || !memcmp(made[0], made[1], sizeof made[0]), "%s, workers %s", writes[_i].what, workers[k]);
    }
}

/* ---- stopped in the middle ------------------------------------------- */

static const char *const endless[] = {
    "read, path: 'p*.png', loop: true", "read, path: one.npy, loop: true", "read, path: 'p*.png', loop: true, rate: 500",
    "read, path: one.npy, loop: true, rate: 500", "generate, rate: 500", "generate",
};

/* The frames that came out are all from the first on, without a gap. */
TEST_SOME(stopped, sizeof endless / sizeof *endless, 3, 1)
{
    make_files();
    for (int level = 1; level <= 2; level++) {
        const char *top = *endless[_i] == 'g' ? X("[3]") : "";
        char *y = format("%sstages:\n  - {use: %s, out: x, workers: 5}\n  - {use: write, path: 'out%d/%%d.raw', durable: none}\n",
             top, endless[_i], level);
        pipe_result r = pipe_run_with(io_dir, y, "cpu", (const char *[]){ "depth=7", NULL }, (gp_run_options){ 0 },
                                      io_stop_soon, &level);
        ck_assert_msg(r.outcome == (level == 1 ? GP_DRAINED : GP_NOT_DRAINED) || (level == 2 && r.outcome == GP_DRAINED),
                      "%s: %d", endless[_i], (int)r.outcome);
        ck_assert_uint_ge(r.account[0].out, 10);
        ck_assert(level == 2 || r.account[0].in == r.account[0].out);
        ck_assert_int_eq(io_files(format("out%d", level)), (int)r.account[0].out);
        for (uint64_t i = 0; i < r.account[0].out; i++)
            ck_assert_int_eq(access(io_at(format("out%d/%d.raw", level, (int)i)), F_OK), 0);
    }
}

/* ---- a file that becomes shorter ------------------------------------- */

static void cut_in_half(gp_pipeline *p, void *arg)
{
    pipe_await_out(p, 5);
    ck_assert_int_eq(truncate(arg, 50), 0);
    pipe_text(io_dir, "cut", "");
}

/* While the script holds frame 20 back. Pieces that are gone cost a frame each, and those of the next file keep their
 * numbers. */
TEST_LOOP(shrinks, 0, 3)
{
    static const int workers[] = { 1, 2, 5 };
    char y[700];
    TEXT(y, "function process(f, x, y)\n    y:copy(x)\n    while f.index == 20 and not io.open('%s/cut') do end\nend\n",
         io_dir);
    pipe_text(io_dir, "hold.lua", y);
    io_count_raw("a0.raw", 200);
    io_count_raw("a1.raw", 30);
    TEXT(y, "on_error: drop\nbuffers: {x: {dtype: u8, shape: [1]}}\nstages:\n  - {use: read, path: 'a*.raw', workers: %d, "
         "out: x}\n  - {use: lua, script: hold.lua}\n  - {use: write, path: 'out/%%03d.raw'}\n", workers[_i]);
    pipe_result r = pipe_run_with(io_dir, y, "cpu", (const char *[]){ "depth=3", NULL }, (gp_run_options){ 0 }, cut_in_half,
                                  io_at("a0.raw"));
    ck_assert_int_eq(r.outcome, GP_DONE);
    ck_assert_uint_eq(r.account[0].in, 230);
    ck_assert_uint_eq(r.account[0].dropped + r.account[0].failed, 150);
    ck_assert_msg(strstr(io_error(&r), "frame 50: '") && strstr(io_error(&r), "became shorter"), "%s", io_error(&r));
    ck_assert_int_eq(io_files("out"), 80);
    io_holds("out/049.raw", "\x31", 1);
    io_holds("out/200.raw", "", 1);
    io_holds("out/229.raw", "\x1d", 1);
}

TEST_SUITE(io_workers, io_set_up, NULL, 0)
