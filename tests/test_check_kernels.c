/* test_check_kernels.c - `--check-kernels`: a kernel that leaves what it was given is an error that names the kernel,
 * the argument, the element, the frame and the line; one that does not gives the bytes that it gives without. */
#include "lib/pipe.h"

static const char *dir;

static float ramp(int64_t i)
{
    return (float)(i % 97);
}

/* Three frames of [15, 3], of which the last has 8 rows: 45 elements, and 24. */
enum { ROWS = 38, COLS = 3 };

static void setup(void)
{
    dir = pipe_dir();
    setenv("XDG_CACHE_HOME", dir, 1);
    pipe_npy(dir, "x.npy", ROWS, COLS, ramp);
    pipe_npy(dir, "w.npy", 4, 0, ramp);
    pipe_text(dir, "look.h", "static __device__ __noinline__ float look(const float *p, int i)\n{\n    return p[i];\n}\n");
    pipe_text(dir, "k.cu",
        "#include \"look.h\"\n"
        "extern \"C\" __global__ void k(const float *in, const float *w, float *out, int n,\n"
        "                              const gp_frame_info *frame)\n"
        "{\n"
        "    int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
        "    float v = i < n ? in[i] + w[i % 4] : 0;\n"
        "#ifdef BARRIER\n"
        "    __syncthreads();\n"
        "#endif\n"
        "    if (i < n && frame->index >= FROM) {\n"
        "        DO;\n"                                            /* line 11 */
        "    }\n"
        "    if (i < n) out[i] = v;\n"
        "}\n");
    pipe_text(dir, "wide.cu",
        "extern \"C\" __global__ void wide(const float *in, float *out, int n)\n"
        "{\n"
        "    int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
        "    if (i < n / 4) ((float4 *)out)[i] = ((const float4 *)in)[i];\n"
        "    else if (i < n / 4 + n % 4) out[n / 4 * 4 + i - n / 4] = in[n / 4 * 4 + i - n / 4 + PAST];\n"
        "}\n");
    pipe_text(dir, "keep.cu",
        "__device__ int calls, frames[1 << 16] = { 0, 5 };\n"
        "extern \"C\" __global__ void keep(const float *in, float *out, int n)\n"
        "{\n"
        "    for (int i = 0; i < n; i++) out[i] = in[i] + 100 * calls;\n"
        "    if (calls++ == AT) { DO; }\n"
        "}\n");
}

static pipe_result run_stage(const char *stage, bool check)
{
    char *yaml = format("pipeline: t\ndepth: 4\nbuffers: {x: {dtype: f32, shape: [15, 3]}%s}\nstages:\n"
             "  - {use: read, path: x.npy, out: x}\n"
             "  - %s\n"
             "  - {use: write, path: out.raw, in: y}\n", strstr(stage, "w: w") ? ", w: {const: w.npy}" : "", stage);
    return pipe_run(dir, yaml, "cpu", NULL, (gp_run_options){ .check_kernels = check });
}

#define K(from, what) "{name: mine, use: kernel, source: k.cu, in: {in: x, w: w}, out: {out: y}, " \
    "threads: in.size, args: [in, w, out, {i32: in.size}, frame], define: {FROM: " #from ", DO: \"" what "\"}}"
#define WAITS(from, what) "{name: mine, use: kernel, source: k.cu, in: {in: x, w: w}, out: {out: y}, " \
    "threads: in.size, args: [in, w, out, {i32: in.size}, frame], define: {BARRIER: 1, FROM: " #from ", DO: \"" what "\"}}"

#define KEEP(at, what) "{name: mine, use: kernel, source: keep.cu, args: [in, out, {i32: in.size}], " \
    "grid: 1, block: 1, serial: true, define: {AT: " #at ", DO: \"" what "\"}, out: y}"
#define WIDE(past) "{name: mine, use: kernel, source: wide.cu, args: [in, out, {i32: in.size}], " \
    "in: {in: x}, threads: out.size, define: {PAST: " #past "}, out: y}"

static const struct { const char *stage, *says; int line; } wrong[] = {
    { K(0, "v += in[i + 1]"), "reads in[45]; 'in' has 45 elements, in frame 0", 11 },
    { K(0, "v += in[i - 1]"), "reads in[-1]; 'in' has 45 elements, in frame 0", 11 },
    { K(0, "v += in[i + 16]"), "reads in[45]; 'in' has 45 elements, in frame 0", 11 },
    { K(0, "if (i == 44) v += in[100000]"), "reads in[100000]; 'in' has 45 elements, in frame 0", 11 },
    { K(0, "if (i == 44) v += in[i + 300000]"), "reads in[300044]; 'in' has 45 elements, in frame 0", 11 },
    { K(0, "if (i == 44) v += in[1 << 28]"), "reads in[268435456]; 'in' has 45 elements, in frame 0", 11 },
    { K(0, "if (i == 44) v += in[-300000]"), "reads in[-300000]; 'in' has 45 elements, in frame 0", 11 },
    { K(0, "if (i == 44) out[300000] = v"), "writes out[300000]; 'out' has 45 elements, in frame 0", 11 },
    { K(0, "if (i == 44) out[-300000] = v"), "writes out[-300000]; 'out' has 45 elements, in frame 0", 11 },
    { K(0, "if (i == 44) out[-(1 << 30)] = v"), "writes out[-1073741824]; 'out' has 45 elements, in frame 0", 11 },
    { K(0, "if (i == 44) v += *(volatile float *)4096"), "reads memory that is near none of its arguments, in frame 0", 11 },
    { K(0, "v += frame[1].index"), "reads byte 256 of frame; 'frame' has 256 bytes, in frame 0", 11 },
    { K(0, "v += frame[100].valid"), "reads byte 25608 of frame; 'frame' has 256 bytes, in frame 0", 11 },
    { K(0, "v += frame[-1].index"), "reads byte -256 of frame; 'frame' has 256 bytes, in frame 0", 11 },
    { K(0, "v += w[i]"), "reads w[4]; 'w' has 4 elements, in frame 0", 11 },
    { K(0, "if (i == 7) v += w[i - 10]"), "reads w[-3]; 'w' has 4 elements, in frame 0", 11 },
    { K(0, "out[i + 5] = v"), "writes out[45]; 'out' has 45 elements, in frame 0", 11 },
    { K(0, "out[i - 1] = v"), "writes out[-1]; 'out' has 45 elements, in frame 0", 11 },
    { K(0, "out[i - 300] = v"), "writes out[-300]; 'out' has 45 elements, in frame 0", 11 },
    { K(0, "((float *)in)[i] = v"), "writes in[0], which is not an output, in frame 0", 11 },
    { K(0, "((float *)w)[i] = v"), "writes w[0], which is not an output, in frame 0", 11 },
    { WAITS(0, "v += in[i + 1]"), "reads in[45]; 'in' has 45 elements, in frame 0", 11 },
    { WAITS(0, "out[i - 1] = v"), "writes out[-1]; 'out' has 45 elements, in frame 0", 11 },
    { K(1, "v += in[i + 1]"), "reads in[45]; 'in' has 45 elements, in frame 1", 11 },
    /* a partial frame has fewer, although its slot has room */
    { K(2, "v += in[i + 1]"), "reads in[24]; 'in' has 24 elements, in frame 2", 11 },
    { K(2, "out[i + 5] = v"), "writes out[24]; 'out' has 24 elements, in frame 2", 11 },
    /* in a header */
    { K(0, "v += look(in, i + 1)"), "reads in[45]; 'in' has 45 elements, in frame 0 (", 0 },
    /* a kernel that keeps something: both sides are seen, in each frame */
    { KEEP(0, "out[-1] = in[0]"), "writes out[-1]; 'out' has 45 elements, in frame 0", 5 },
    { KEEP(0, "out[0] += in[-1]"), "reads in[-1]; 'in' has 45 elements, in frame 0", 5 },
    { KEEP(0, "out[0] += in[n]"), "reads in[45]; 'in' has 45 elements, in frame 0", 5 },
    { KEEP(1, "out[-1] = in[0]"), "writes out[-1]; 'out' has 45 elements, in frame 1", 5 },
    { KEEP(1, "out[0] += in[n]"), "reads in[45]; 'in' has 45 elements, in frame 1", 5 },
    /* a kernel that moves vectors, where 16 bytes are more than are left of an argument */
    { WIDE(1), "reads beyond the end of in, which has 45 elements, in frame 0", 0 },
    { WIDE(3), "reads beyond the end of in, which has 45 elements, in frame 0", 0 },
    { WIDE(4), "reads in[48]; 'in' has 45 elements, in frame 0", 5 },
    { WIDE(-46), "reads in[-2]; 'in' has 45 elements, in frame 0", 5 },
};

TEST_SOME(finds, sizeof wrong / sizeof *wrong, 5, 1)
{
    pipe_result r = run_stage(wrong[_i].stage, true);
    const char *kernel = strstr(wrong[_i].stage, "keep.cu") ? "keep" : strstr(wrong[_i].stage, "wide.cu") ? "wide" : "k";
    ck_assert(r.compiled);
    ck_assert_int_eq(r.outcome, GP_ERROR);
    ck_assert_int_eq(r.errs.failed, 1);
    ck_assert_int_eq(gp_errs_exit(&r.errs), 1);
    char *says = format("kernel '%s' of stage 'mine' %s", kernel, wrong[_i].says);
    ck_assert_msg(!strncmp(r.errs.e[0].msg, says, strlen(says)), "%s\n%s", wrong[_i].stage, r.errs.e[0].msg);
    ck_assert_int_eq(r.errs.e[0].at.line, wrong[_i].line);
    ck_assert_uint_eq(r.account[0].in, r.account[0].out + r.account[0].cancelled);
    if (strstr(wrong[_i].stage, "look("))
        ck_assert_ptr_nonnull(strstr(r.errs.e[0].msg, "look.h:3)"));
}

/* The compiler that is asked for lines, and what it starts, are a group of processes of their own,
 * which does not outlive this one; what they write is in a folder that is removed. */
TEST(compiles_for_lines_in_a_group_and_a_folder_of_its_own)
{
    char *name = format("%s/said", dir), folder[600];
    char *script = format("#!/bin/sh\ncase \"$*\" in *-g1*) read -r pid name state parent group rest "
                        "</proc/self/stat; echo $group $TMPDIR >'%s';; esac\nexec c++ \"$@\"\n", name);
    pipe_text(dir, "cxx", script);
    setenv("CXX", format("sh %s/cxx", dir), 1);
    pipe_result r = run_stage(wrong[0].stage, true);
    unsetenv("CXX");
    ck_assert_int_eq(r.errs.e[0].at.line, wrong[0].line);
    FILE *f = fopen(name, "r");
    int group = 0;
    ck_assert_ptr_nonnull(f);
    ck_assert_int_eq(fscanf(f, "%d %599s", &group, folder), 2);
    fclose(f);
    ck_assert_int_ne(group, getpgrp());
    ck_assert_ptr_nonnull(strstr(folder, "/.cc.gpipe-"));
    ck_assert_int_ne(access(folder, F_OK), 0);
}

static const char *const right[] = {
    K(0, "v += in[i] + w[3]"), WAITS(0, "out[i] = v"),
    WIDE(0), KEEP(100, ""), KEEP(1, "out[3] = calls + frames[1]++"),
    "{use: fir, taps: [1, 2, 4], out: y}",
};

TEST_EACH(leaves_alone, right)
{
    size_t n[2];
    char *out[2];
    for (int check = 0; check < 2; check++) {
        pipe_result r = run_stage(right[_i], check);
        ck_assert_msg(r.outcome == GP_DONE, "%s", pipe_said(&r.errs));
        out[check] = pipe_read(dir, "out.raw", &n[check]);
        ck_assert_uint_eq(n[check], ROWS * COLS * sizeof(float));
    }
    ck_assert(!memcmp(out[0], out[1], n[0]));
    free(out[0]), free(out[1]);
}

/* A kernel in a loop fails in each iteration, and that is told once. */
TEST(in_a_loop)
{
    pipe_result r = run_stage("{use: loop, in: {x: x}, out: {y: y}, times: 9, carry: {x: y}, stages: [" WIDE(1) "]}",
                              true);
    pipe_ends(&r, "kernel 'wide' of stage 'mine' reads ");
    ck_assert_int_eq(r.errs.failed, 1);
}

TEST_SUITE(check_kernels, setup, NULL, 0)
