/* test_code.c - what the kind `kernel` finds in the text of a source: whether a grid that is
 * left out can be told, and which variables a kernel may change. Nothing is compiled. */
#include <check.h>
#include <stdlib.h>
#include <string.h>
#include "lib/pipe.h"

Suite *suite_code(void);

static gp_registry *registry;
static const char *dir;
static gp_errs errs;

static void up(void)
{
    memset(&errs, 0, sizeof errs);
    registry = gp_registry_create();
    ck_assert(gp_register_builtin(registry, &errs));
    dir = pipe_dir();
    pipe_text(dir, "index.h",
              "#define ROW (blockIdx.y * blockDim.y + threadIdx.y)\n"
              "static __device__ int column(void) { return blockIdx.x * blockDim.x + threadIdx.x; }\n"
              "__device__ int shared_by_all;\n");
    pipe_text(dir, "again.h", "#include \"index.h\"\n#include \"again.h\"\n");
}

static void down(void)
{
    pipe_dir_remove(dir);
    gp_registry_destroy(registry);
}

static void compile(const char *source, const char *shape, const char *options, int cuda)
{
    char yaml[1000], file[600];
    gp_machine machine;
    gp_config config = { .registry = registry, .machine = &machine };
    snprintf(file, sizeof file, "%s/test.yaml", dir);
    snprintf(yaml, sizeof yaml, "buffers: {a: {dtype: f32, shape: %s}}\nstages:\n"
             "  - {use: generate, out: a, frames: 1}\n"
             "  - {use: kernel, source: k.cu, args: [in, out]%s}\n  - {use: discard}\n",
             shape, options);
    pipe_text(dir, "k.cu", source);
    memset(&errs, 0, sizeof errs);
    gp_machine_fixed(&machine, cuda);
    gp_pipeline *p = gp_compile(yaml, strlen(yaml), file, &config, &errs);
    if (p)
        gp_pipeline_destroy(p);
}

/* ---- grids ---------------------------------------------------------------- */

#define K "extern \"C\" __global__ void k(const float *in, float *out)"
#define X "int x = blockIdx.x * blockDim.x + threadIdx.x; "
#define Y "int y = blockIdx.y * blockDim.y + threadIdx.y; "
#define Z "int z = blockIdx.z * blockDim.z + threadIdx.z; "
#define IMAGE "[48, 64]"
#define COLORS "[48, 64, 3]"

/* No `says`: there is a grid that is right. */
static const struct { const char *source, *shape, *options, *says; } grids[] = {
    { K " { " X "out[x] = 1; }", IMAGE, "", NULL },
    { K " { " X "out[x] = 1; }", COLORS, "", NULL },
    { K " { " X Y "out[y * 64 + x] = 1; }", IMAGE, "", NULL },
    { K " { " X Y "out[y * 64 + x] = 1; }", "[1, 1, 48, 64]", "", NULL },
    { K " { " X Y "out[y * 64 + x] = 1; }", COLORS, "", "uses x and y, and the frame has more axes" },
    { K " { " X Y Z "out[(z * 64 + y) * 3 + x] = 1; }", COLORS, "", NULL },
    { K " { " X Y Z "out[(z * 64 + y) * 3 + x] = 1; }", "[2, 48, 64, 3]", "",
      "uses x, y and z, and the frame has more axes" },
    /* a row for each block along y */
    { K " { " X "out[blockIdx.y * 64 + x] = 1; }", IMAGE, "", NULL },
    { K " { " X "out[blockIdx.y * 64 + x] = 1; }", IMAGE, ", block: [32, 8]",
      "a block of 8 threads along y, which kernel 'k' does not use" },
    { K " { " X "out[x] = 1; }", IMAGE, ", block: [32, 8]",
      "a block of 8 threads along y, which kernel 'k' does not use" },
    { K " { " X "out[threadIdx.y * 32 + x] = 1; }", IMAGE, "", "never uses blockIdx.y" },
    /* one block only, or one that cannot be told from a row */
    { K " { out[threadIdx.x] = 1; }", IMAGE, "", "never uses blockIdx.x" },
    { K " { out[threadIdx.x] = 1; }", "[200]", "", NULL },
    { K " { out[0] = 1; }", IMAGE, "", NULL },
    { K " { out[blockIdx.x * 64 + threadIdx.x] = 1; }", IMAGE, ", block: 64",
      "never asks for blockDim.x, so that a block may be a row" },
    { K " { out[blockIdx.x * 64 + threadIdx.x] = 1; }", "[3072]", ", block: 64", NULL },
    { K " { out[blockIdx.x * 64 + threadIdx.x] = 1; }", "[3072]", "",
      "never asks for blockDim.x, the size of its blocks" },
    /* what is not code does not count */
    { "// blockIdx.y\n/* threadIdx.y // */\n" K " { " X "out[x] = sizeof \"blockIdx.y \\\" threadIdx.y\"; }",
      IMAGE, "", NULL },
    { "const char *t = R\"a(threadIdx.y )\" \")a\";\n" K " { " X "out[x] = 1; }", IMAGE, "", NULL },
    /* another kernel or function of the file does not count, one that is reached does */
    { "extern \"C\" __global__ void other() { " X Y "}\n" K " { " X "out[x] = 1; }", COLORS, "", NULL },
    { "__device__ int row() { return blockIdx.y * blockDim.y + threadIdx.y; }\n"
      K " { " X "out[x] = 1; }", COLORS, "", NULL },
    { "__device__ int row() { return blockIdx.y * blockDim.y + threadIdx.y; }\n"
      "__device__ int at(int x) { return row() * 64 + x; }\n"
      K " { " X "out[at(x)] = 1; }", COLORS, "", "uses x and y, and the frame has more axes" },
    { "#define ROW blockIdx.y * blockDim.y + \\\n threadIdx.y\n" K " { " X "out[ROW * 64 + x] = 1; }",
      COLORS, "", "uses x and y, and the frame has more axes" },
    { "#include \"index.h\"\n" K " { out[ROW * 64 + column()] = 1; }", COLORS, "",
      "uses x and y, and the frame has more axes" },
    { "#include \"again.h\"\n" K " { out[column()] = 1; }", COLORS, "", NULL },
    { "struct at { int i; __device__ at() : i(blockIdx.y) {} };\n" K " { " X "at a; out[x] = a.i; }",
      COLORS, "", "uses x and y, and the frame has more axes" },
    { "namespace n { template <class T> struct s { static __device__ T row() { return blockIdx.y; } }; }\n"
      K " { " X "out[x] = n::s<int>::row(); }", COLORS, "", "uses x and y, and the frame has more axes" },
    { K " { " X "out[ROW + x] = 1; }", COLORS, ", define: {ROW: blockIdx.y}",
      "uses x and y, and the frame has more axes" },
    { "extern \"C\" {\n#if 1\n__global__ void k(const float *in, float *out)\n#else\n"
      "__global__ void k(float *in, float *out)\n#endif\n{ " X Y "out[y * 64 + x] = 1; }\n}\n", COLORS,
      "", "uses x and y, and the frame has more axes" },
    /* what cannot be told */
    { K " { uint3 t = threadIdx; " X "out[x] = t.y; }", IMAGE, "",
      "has 'threadIdx', which is used as a whole (" },
    { K " { dim3 t(threadIdx); " X "out[x] = t.y; }", "[3072]", "", NULL },
    { "#include <cooperative_groups.h>\n" K " { " X "out[x] = 1; }", IMAGE, "",
      "stands in a source that includes more than the C library: <cooperative_groups.h> (" },
    { "#include \"nowhere.h\"\n" K " { " X "out[x] = 1; }", IMAGE, "",
      "stands in a source that includes a file that is not there: \"nowhere.h\" (" },
    { "#define FILE \"index.h\"\n#include FILE\n" K " { " X "out[x] = 1; }", IMAGE, "",
      "stands in a source that includes a file by a macro: F (" },
    { "#include <math.h>\n#include <cstdint>\n" K " { " X "out[x] = 1; }", IMAGE, "", NULL },
    { "#define IDX(a) a ## Idx.y\n" K " { " X "out[x] = IDX(thread); }", IMAGE, "",
      "has '##', which puts words together (" },
    { K " { " X "int y; asm(\"mov.u32 %0, %ctaid.y;\" : \"=r\"(y)); out[x] = y; }", IMAGE, "",
      "which is an index in assembly (" },
    { "#if A\nvoid f() {\n#else\nvoid f(int) {\n#endif\n}\n" K " { " X "out[x] = 1; }", IMAGE, "",
      "stands in a source that has braces that depend on #if (" },
    { K " { " X "out[x] = 1; }\nvoid) (f {\n", IMAGE, "", "stands in a source that has braces that" },
    { K " { " X "out[x] = 1; }\nint v = f(", IMAGE, "", NULL },
    /* with a grid nothing is asked */
    { K " { uint3 t = threadIdx; out[t.x] = 1; }", IMAGE, ", grid: 12", NULL },
    { K " { " X Y "out[y * 64 + x] = 1; }", COLORS, ", grid: [2, 6]", NULL },
    /* a frame for each block along z */
    { "extern \"C\" __global__ void k(const float *in, size_t a, float *out, size_t b) { " X
      "out[blockIdx.z * b + x] = 1; }", COLORS, ", batched: true", NULL },
    { "extern \"C\" __global__ void k(const float *in, size_t a, float *out, size_t b) { " X Y
      "out[blockIdx.z * b + y * 64 + x] = 1; }", COLORS, ", batched: true",
      "blockIdx.z is the frame, so that there is no grid for three axes" },
};

START_TEST(tells_a_grid)
{
    for (int cuda = 0; cuda < 2; cuda++) {
        compile(grids[_i].source, grids[_i].shape, grids[_i].options, cuda);
        if (!grids[_i].says) {
            ck_assert_msg(!errs.failed, "%s: %s", grids[_i].source, errs.e[0].msg);
            continue;
        }
        ck_assert_msg(errs.failed, "it has a grid: %s", grids[_i].source);
        ck_assert_msg(strstr(errs.e[0].msg, grids[_i].says) != NULL, "%s: '%s' is not in '%s'",
                      grids[_i].source, grids[_i].says, errs.e[0].msg);
        ck_assert_int_eq(errs.e[0].at.line, 4);
    }
}
END_TEST

START_TEST(says_what_to_add)
{
    compile(K " { uint3 t = threadIdx; out[t.x] = 1; }", COLORS, "", 0);
    ck_assert_ptr_nonnull(strstr(errs.e[0].msg, "k.cu:1), so it is not known which grid it wants: "
        "set 'block' and 'grid'. A thread for each element is block: 256, grid: "
        "\"ceil(out.size / 256)\"; for each column and row, block: [32, 8], grid: "
        "[\"ceil(out.shape[2] / 32)\", \"ceil(out.shape[1] / 8)\"]"));
}
END_TEST

/* ---- variables -------------------------------------------------------------- */

#define V(declarations, body) declarations "\n" K "\n{ " X body " }\n"

/* No `name`: frames may change nothing that others see. */
static const struct { const char *source, *name; int declared, changed; } variables[] = {
    { V("__device__ int calls;", "atomicAdd(&calls, 1);"), "calls", 1, 3 },
    { "__device__ int calls;\n#define KERNEL extern \"C\" __global__ void\n"
      "KERNEL k(const float *in, float *out) { calls++; }\n", "calls", 1, 3 },
    { V("__device__ int calls;", "calls = 1;"), "calls", 1, 3 },
    { V("__device__ int calls;", "out[x] = calls++;"), "calls", 1, 3 },
    { V("__device__ int calls;", "out[x] = --calls;"), "calls", 1, 3 },
    { V("static __device__ volatile float sum = 0;", "sum += in[x];"), "sum", 1, 3 },
    { V("__device__ unsigned hist[4][256];", "hist[x % 4][0] |= 1;"), "hist", 1, 3 },
    { V("__device__ unsigned hist[256];", "atomicAdd(hist + x, 1);"), "hist", 1, 3 },
    { V("__device__ unsigned hist[256];", "atomicAdd(&hist[x], 1);"), "hist", 1, 3 },
    { V("__device__ unsigned hist[256];", "*hist = 1;"), "hist", 1, 3 },
    { V("__device__ unsigned hist[256];", "*(hist + 3) = 1;"), "hist", 1, 3 },
    { V("__device__ unsigned hist[256];", "unsigned *h = hist; h[x] = 1;"), "hist", 1, 3 },
    { V("__device__ unsigned hist[256];", "((int *)hist)[x] = 1;"), "hist", 1, 3 },
    { V("__device__ unsigned hist[256];", "*(int *)&hist[x] = 1;"), "hist", 1, 3 },
    { V("__device__ int a, b[3], c;", "b[x] = a; c += 1;"), "b", 1, 3 },
    { V("__device__ struct { int n, m; } state;", "state.m = 1;"), "state", 1, 3 },
    { V("struct state { int n; };\n__device__ state s;", "s.n++;"), "s", 2, 4 },
    { V("struct state { int n; __device__ void add() { n++; } };\n__device__ state s;", "s.add();"), "s", 2, 4 },
    { V("__device__ int calls;\n__device__ void count(int &n) { n++; }", "count(calls);"), "calls", 1, 4 },
    { V("__device__ int calls;\n__device__ void count() { calls++; }", "count();"), "calls", 1, 2 },
    { V("__device__ int calls[4];\n__device__ void count(int *n) { *n = 1; }", "count(calls);"), "calls", 1, 4 },
    { V("__device__ int calls;\n__device__ int &get() { return calls; }", "get() = 1;"), "calls", 1, 2 },
    { V("__device__ int calls;", "int &n = calls; n = 1;"), "calls", 1, 3 },
    { V("__device__ int calls;", "int *n = &calls; *n = 1;"), "calls", 1, 3 },
    { V("__device__ int calls[3];", "for (auto &n : calls) n = 1;"), "calls", 1, 3 },
    { V("__device__ int calls;", "(calls) = 1;"), "calls", 1, 3 },
    { V("namespace n { __device__ int calls; }", "n::calls = 1;"), "calls", 1, 3 },
    { V("struct s { static int calls; };\n__device__ int s::calls;", "s::calls = 1;"), "calls", 1, 4 },
    { V("extern \"C\" { __device__ int calls; }", "calls = 1;"), "calls", 1, 3 },
    { V("__managed__ int calls;", "calls = 1;"), "calls", 1, 3 },
    { V("", "static int calls; out[x] = calls++;"), "calls", 3, 3 },
    { V("#define DEVICE __device__\nDEVICE float last;", "last = 1;"), "last", 2, 4 },
    { V("#define GLOBAL(t, n) __device__ t n\nGLOBAL(int, calls);", "calls = 1;"), "calls", 2, 4 },
    { V("__device__ int calls;\n#define COUNT calls", "COUNT = 1;"), "calls", 1, 4 },
    { V("__device__ int calls[4];\n#define COUNT(i) calls[i]", "COUNT(x) = 1;"), "calls", 1, 4 },
    { V("__device__ int calls;\n#define ADD(v) atomicAdd(&(v), 1)", "ADD(calls);"), "calls", 1, 4 },
    { V("__device__ int calls;\n#define BUMP() (calls += 1)", "BUMP();"), "calls", 1, 2 },
    { V("__device__ int calls;\n#define BUMP() \\\r\n (calls += 1)", "BUMP();"), "calls", 1, 3 },
    { V("__device__ int calls;\n#define BUMP() \\ \t\n (calls += 1)", "BUMP();"), "calls", 1, 3 },
    { V("__device__ int calls;\n#define A calls\n#define B A\n#define C B\n#define D C\n#define E D\n"
        "#define F E\n#define G F\n#define H G\n#define I H\n#define J I", "J = 1;"), "calls", 1, 13 },
    { V("__device__ int n_a;\n#define N(w) n_ ## w", "N(a) = 1;"), "n_a", 1, 2 },
    { V("__device__ int calls;", "asm(\"st.global.u32 [%0], 1;\" :: \"l\"(&calls));"), "calls", 1, 3 },
    { V("__device__ int calls;", "asm(\"mov.u32 %0, 1;\" : \"=r\"(calls));"), "calls", 1, 3 },
    { V("#include \"index.h\"", "shared_by_all = 1;"), "shared_by_all", 3, 3 },
    { V("__device__ int calls;", "auto f = [&] { calls++; }; f();"), "calls", 1, 3 },
    { V("__device__ int calls;\nauto f = [](int n) { calls = n; };", "f(1);"), "calls", 1, 2 },
    { V("__device__ int calls;", "{ int calls = 1; out[x] = calls; } calls = 2;"), "calls", 1, 3 },
    { V("__device__ int n;", "for (int n = 0; n < 3; n++) out[x] += n; n = 2;"), "n", 1, 3 },
    { V("__device__ float *const p = 0;\n__device__ int t[3];", "t[x] = p != 0;"), "t", 2, 4 },

    { V("__device__ float table[4] = { 1, 2, 3, 4 };", "out[x] = table[x % 4];"), NULL, 0, 0 },
    { V("__device__ const float table[4] = { 1, 2, 3, 4 };", "const float *t = table; out[x] = t[x % 4];"), NULL, 0, 0 },
    { V("__constant__ float table[4] = { 1, 2, 3, 4 };", "auto t = table; out[x] = t[x % 4];"), NULL, 0, 0 },
    { V("__device__ constexpr float table[4] = { 1, 2, 3, 4 };", "auto t = &table[1]; out[x] = t[0];"), NULL, 0, 0 },
    { V("__device__ float table[4] = { 1, 2, 3, 4 };", "const float *t = table; out[x] = t[x % 4];"), NULL, 0, 0 },
    { V("__device__ float table[4];", "out[x] = __ldg(&table[x % 4]);"), NULL, 0, 0 },
    { V("__device__ float table[4];\n__device__ float look(const float *t, int i) { return t[i]; }",
        "out[x] = look(table, x);"), NULL, 0, 0 },
    { V("__device__ float gain = 2;", "out[x] = gain * in[x] + sqrtf(gain) + max(gain, 1.f);"), NULL, 0, 0 },
    { V("__device__ float gain = 2;", "out[x] = gain == 2 ? gain : -gain;"), NULL, 0, 0 },
    { V("__device__ int mask = 2;", "out[x] = (x) & mask; out[x] += x & mask;"), NULL, 0, 0 },
    { V("__device__ struct { int n, m; } state = { 1, 2 };", "out[x] = state.m + state.n;"), NULL, 0, 0 },
    { V("", "__shared__ float tile[32]; tile[x] = 1; static __shared__ int n; n = 1;"), NULL, 0, 0 },
    { V("", "extern __shared__ float tile[]; tile[x] = 1;"), NULL, 0, 0 },
    { V("", "static const float w[2] = { 1, 2 }; out[x] = w[x % 2];"), NULL, 0, 0 },
    { V("__device__ int calls;\n__global__ void other() { calls = 1; }", "out[x] = calls;"), NULL, 0, 0 },
    { V("__device__ int calls;\n__device__ void unused() { calls = 1; }", "out[x] = calls;"), NULL, 0, 0 },
    { V("__device__ int sum;\n__device__ float f(float sum) { sum += 1; return sum; }", "out[x] = f(sum);"), NULL, 0, 0 },
    { V("__device__ int sum;", "float sum = 0; sum += in[x]; out[x] = sum;"), NULL, 0, 0 },
    { V("__device__ int i;", "for (int i = 0; i < 3; i++) out[x] += i;"), NULL, 0, 0 },
    { V("struct p { int n; };\n__device__ int n;", "p a; a.n = 1; p *b = &a; b->n = n;"), NULL, 0, 0 },
    { V("enum { N = 3 };\n__device__ int f(int);\ntypedef int number;\nusing other = int;", "out[x] = N;"), NULL, 0, 0 },
    { V("// __device__ int calls;\nstatic __device__ float twice(float v) { float r = v; r *= 2; return r; }",
        "out[x] = twice(in[x]);"), NULL, 0, 0 },
    { V("__device__ float table[2];\n#define LOOK(t, i) ((t)[i])", "out[x] = table[x % 2];"), NULL, 0, 0 },
};

START_TEST(finds_changes)
{
    for (int cuda = 0; cuda < 2; cuda++) {
        const char *source = variables[_i].source;
        char says[200], at[40];
        compile(source, "[64]", "", cuda);
        if (!variables[_i].name) {
            ck_assert_msg(!errs.failed, "%s: %s", source, errs.e[0].msg);
            continue;
        }
        snprintf(says, sizeof says, "kernel 'k' may change its variable '%s' (", variables[_i].name);
        ck_assert_msg(errs.failed && strstr(errs.e[0].msg, says) != NULL, "%s: '%s' is not in '%s'",
                      source, says, errs.failed ? errs.e[0].msg : "nothing");
        snprintf(at, sizeof at, ":%d, changed in ", variables[_i].declared);
        ck_assert_msg(strstr(errs.e[0].msg, at) != NULL, "%s: '%s' is not in '%s'", source, at,
                      errs.e[0].msg);
        snprintf(at, sizeof at, "line %d)", variables[_i].changed);
        ck_assert_msg(strstr(errs.e[0].msg, at) != NULL, "%s: '%s' is not in '%s'", source, at,
                      errs.e[0].msg);
        ck_assert_int_eq(errs.e[0].at.line, 4);
        compile(source, "[64]", ", serial: true", cuda);
        ck_assert_msg(!errs.failed, "%s: %s", source, errs.e[0].msg);
    }
}
END_TEST

/* ---- parameters --------------------------------------------------------------- */

#define P(list) "extern \"C\" __global__ void k(" list ") { }\n"

/* Of args [in, out], of f32. No `says`: they fit, or the text leaves it open. */
static const struct { const char *source, *says; } params[] = {
    { P("const float *in, float *out"), NULL },
    { P("float const *__restrict__ in, float *const __restrict__ out"), NULL },
    { P("const float *, float *"), NULL },
    { P("float *in, float *out"), "parameter 1 of 'k' is 'float *in', but args passes 'const float *' (" },
    { P("const float *in, const float *out"), "parameter 2 of 'k' is 'const float *out', but args passes 'float *' (" },
    { P("const float *in, double *out"), "parameter 2 of 'k' is 'double *out', but args passes 'float *' (" },
    { P("const float *in, unsigned long int out"), "parameter 2 of 'k' is 'unsigned long int out', but args" },
    { P("const float *in"), "'k' has 1 parameter, but args gives 2 values (" },
    { P("void"), "'k' has 0 parameters, but args gives 2 values (" },
    { P(""), "'k' has 0 parameters, but args gives 2 values (" },
    { P("const float *in, float *out, int n"), "'k' has 3 parameters, but args gives 2 values (" },
    { P("const real *in, float *out, long double x"), "'k' has 3 parameters, but args gives 2 values (" },
    /* left open */
    { "typedef float real;\n" P("const real *in, real *out"), NULL },
    { "typedef const float *size_t;\n" P("size_t in, float *out"), NULL },
    { "#define int32_t const float *\n" P("int32_t in, float *out"), NULL },
    { "#define ALL const float *in, float *out\n" P("ALL"), NULL },
    { "#define k(...) k(const float *in, float *out)\n" P("int n"), NULL },
    { P("const float *in,\n#if A\nint n\n#else\nfloat *out\n#endif\n"), NULL },
    { "#if A\n" P("int n") "#endif\n#ifndef A\nOTHER\n#endif\n", NULL },
    { P("int n") P("const float *in, float *out"), NULL },
    { P("const float in[], float out[]"), NULL },
    { P("const float *in, volatile float *out"), NULL },
    { P("const float *in, float *out, int n = 3"), NULL },
    { "#include \"nowhere.h\"\n" P("int n"), NULL },
    { P("long double, float *out"), NULL },
};

START_TEST(compares_parameters)
{
    compile(params[_i].source, "[64]", ", grid: 1, serial: true", 0);
    if (!params[_i].says) {
        ck_assert_msg(!errs.failed, "%s: %s", params[_i].source, errs.e[0].msg);
        return;
    }
    ck_assert_msg(errs.failed == 1 && strstr(errs.e[0].msg, params[_i].says) != NULL,
                  "%s: '%s' is not in '%s'", params[_i].source, params[_i].says,
                  errs.failed ? errs.e[0].msg : "nothing");
    ck_assert_int_eq(errs.e[0].at.line, 4);
    ck_assert_int_ge(errs.e[0].at.col, 37);        /* in `args` */
}
END_TEST

Suite *suite_code(void)
{
    Suite *s = suite_create("code");
    TCase *tc = tcase_create("text");
    tcase_add_checked_fixture(tc, up, down);
    tcase_add_loop_test(tc, tells_a_grid, 0, sizeof grids / sizeof *grids);
    tcase_add_test(tc, says_what_to_add);
    tcase_add_loop_test(tc, compares_parameters, 0, sizeof params / sizeof *params);
    tcase_add_loop_test(tc, finds_changes, 0, sizeof variables / sizeof *variables);
    suite_add_tcase(s, tc);
    return s;
}
