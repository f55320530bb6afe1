/* test_code.c - what the kind `kernel` finds in the text of a source: whether a grid that is
 * left out can be told. Nothing is compiled. Its variables are in test_code_state.c. */
#include <check.h>
#include <stdlib.h>
#include <string.h>
#include "lib/coderig.h"

Suite *suite_code(void);

static void up(void)
{
    code_up();
    pipe_text(code_dir, "index.h",
              "#define ROW (blockIdx.y * blockDim.y + threadIdx.y)\n"
              "static __device__ int column(void) { return blockIdx.x * blockDim.x + threadIdx.x; }\n");
    pipe_text(code_dir, "h.h", "static __device__ int ix() { return blockIdx.x * blockDim.x + threadIdx.x; }\n"
              "static __device__ int iy() { return blockIdx.y * blockDim.y + threadIdx.y; }\n");
    pipe_text(code_dir, "twice.h", "static __device__ float twice(float x) { return 2 * x; }\n");
    pipe_text(code_dir, "again.h", "#include \"index.h\"\n#include \"again.h\"\n");
}

static void compile(const char *source, const char *shape, const char *options, bool cuda)
{
    char text[200];
    snprintf(text, sizeof text, "args: [in, out]%s", options);
    code_compile(source, shape, text, cuda);
}

/* ---- grids ---------------------------------------------------------------- */

#define K "extern \"C\" __global__ void k(const float *in, float *out)"
#define X "int x = blockIdx.x * blockDim.x + threadIdx.x; "
#define Y "int y = blockIdx.y * blockDim.y + threadIdx.y; "
#define Z "int z = blockIdx.z * blockDim.z + threadIdx.z; "
#define B "extern \"C\" __global__ void k(const float *in, size_t a, float *out, size_t b) "
#define IMAGE "[48, 64]"
#define COLORS "[48, 64, 3]"
#define FORM "which is not in the plain form blockIdx.x * blockDim.x + threadIdx.x, best as int x = ..., nor in "
#define OUTSIDE "has 'blockIdx', which stands outside of the kernel's own text ("
#define MACRO "has 'blockIdx', which stands in a macro ("
#define ENTRY "kernel 'k' is not plainly declared in '"

/* No `says`: there is a grid that is right. */
static const struct { const char *source, *shape, *options, *says; } grids[] = {
    { K " { " X "out[x] = 1; }", IMAGE, "", NULL },
    { K " { " X "out[x] = 1; }", COLORS, "", NULL },
    { K " { " X Y "out[y * 64 + x] = 1; }", IMAGE, "", NULL },
    { K " { " X Y "out[y * 64 + x] = 1; }", IMAGE, ", block: [16, 16]", NULL },
    { K " { " X Y Z "out[(z * 64 + y) * 3 + x] = 1; }", COLORS, "", NULL },
    /* a frame that has other axes than the kernel */
    { K " { " X Y "out[y * 64 + x] = 1; }", "[1, 1, 48, 64]", "", "uses x and y, and 'out' has 4 axes" },
    { K " { " X Y "out[y * 64 + x] = 1; }", "[1, 100, 3]", "", "uses x and y, and 'out' has 3 axes" },
    { K " { " X Y "out[y * 64 + x] = 1; }", COLORS, "", "uses x and y, and 'out' has 3 axes" },
    { K " { " X Y "out[y * 64 + x] = 1; }", "[3072]", "", "uses x and y, and 'out' has 1 axis" },
    { K " { " X Y Z "out[(z * 64 + y) * 3 + x] = 1; }", "[2, 48, 64, 3]", "",
      "uses x, y and z, and 'out' has 4 axes" },
    /* the form, in other words */
    { K " { out[blockIdx.x * blockDim.x + threadIdx.x] = 1; }", IMAGE, "", NULL },
    { K " { int i = threadIdx.x + blockDim.x * blockIdx.x; out[i] = in[i]; }", IMAGE, "", NULL },
    { K " { size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x; out[i] = 1; }", IMAGE, "", NULL },
    { K " { size_t i = ((size_t)(blockIdx.x) * (int)blockDim.x) + (threadIdx.x); out[i] = 1; }", IMAGE, "", NULL },
    { K " { auto i = size_t(blockIdx.x) * blockDim.x + threadIdx.x; out[i] = 1; }", IMAGE, "", NULL },
    { K " { int i = (int)(blockIdx.x * blockDim.x + threadIdx.x); out[i] = 1; }", IMAGE, "", NULL },
    { K " { int i = 2 * (blockIdx.x * blockDim.x + threadIdx.x); out[i] = 1; }", IMAGE, "", NULL },
    { K " { for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < 9; i += gridDim.x * blockDim.x) out[i] = 1; }",
      IMAGE, "", NULL },
    { K " { for (int y = blockIdx.y * blockDim.y + threadIdx.y; y < 48; y += blockDim.y * gridDim.y)\n"
      "for (int x = blockIdx.x * blockDim.x + threadIdx.x; x < 64; x += gridDim.x * blockDim.x) out[y] = x; }",
      IMAGE, "", NULL },
    { K " { for (int y = blockIdx.y * blockDim.y + threadIdx.y; y < 48; y += blockDim.y * gridDim.y) {\n"
      "for (int x = blockIdx.x * blockDim.x + threadIdx.x; x < 64; x += gridDim.x * blockDim.x) out[y] = x; } }",
      IMAGE, "", NULL },
    { K " { const int col = blockIdx.x * blockDim.x + threadIdx.x, row = blockIdx.y * blockDim.y + threadIdx.y; "
      "out[row * 64 + col] = 1; }", IMAGE, "", NULL },
    { "extern \"C\" {\n" "__global__ void __launch_bounds__(256) k(const float *in, float *out) { " X "out[x] = 1; }\n}\n",
      IMAGE, "", NULL },
    { "#include \"twice.h\"\n#include <math.h>\n#include <cstdint>\n" K " { " X "out[x] = twice(in[x]); }", IMAGE, "", NULL },
    { K ";\n" K " {\n#ifdef FAST\nout[0] = 1;\n#endif\n" X "out[x] = 1; }", IMAGE, "", NULL },
    { K " { size_t i = static_cast<size_t>(blockIdx.x) * blockDim.x + threadIdx.x; out[i] = 1; }", IMAGE, "", NULL },
    { K " { unsigned i = (uint)blockIdx.x * blockDim.x + threadIdx.x; out[i] = 1; }", IMAGE, "", NULL },
    { K " { if (blockIdx.x * blockDim.x + threadIdx.x < 9) out[(blockIdx.x * blockDim.x + threadIdx.x) + 1] = 1; }",
      IMAGE, "", NULL },
    /* what looks like it */
    { K " { int i = (blockIdx.x * blockDim.x + threadIdx.x) / 32; out[i] = 1; }", IMAGE, "", FORM },
    { K " { int i = (blockIdx.x * blockDim.x + threadIdx.x) >> 5; out[i] = 1; }", IMAGE, "", FORM },
    { K " { int i = f(blockIdx.x * blockDim.x + threadIdx.x); out[i] = 1; }", IMAGE, "", FORM },
    { K " { int i = f(1, blockIdx.x * blockDim.x + threadIdx.x); out[i] = 1; }", IMAGE, "", FORM },
    { K " { int i = in[0] ? (blockIdx.x * blockDim.x + threadIdx.x) : 0; out[i] = 1; }", IMAGE, "", FORM },
    { K " { int i = 9; i /= (blockIdx.x * blockDim.x + threadIdx.x) + 1; out[i] = 1; }", IMAGE, "", FORM },
    { K " { out[__cudaGet_blockIdx().x] = 1; }", IMAGE, "", "which may have an index of its own (" },
    { "#define FLAT if (in[0]) return;\n" K " { " X "FLAT " Y "out[y * 64 + x] = 1; }", IMAGE, "",
      "is a macro between the indices" },
    { K " { int i = 2 * blockIdx.x * blockDim.x + threadIdx.x; out[i] = 1; }", IMAGE, "", FORM },
    { K " { int i = blockIdx.x * blockDim.x + threadIdx.x * 2; out[i] = 1; }", IMAGE, "", FORM },
    { K " { int i = blockIdx.x * blockDim.y + threadIdx.x; out[i] = 1; }", IMAGE, "", FORM },
    { K " { int i = blockIdx.x * blockDim.x + threadIdx.y; out[i] = 1; }", IMAGE, "", FORM },
    { K " { int i = blockIdx.x * (blockDim.x + threadIdx.x); out[i] = 1; }", IMAGE, "", FORM },
    { K " { int i = 9 - blockIdx.x * blockDim.x + threadIdx.x; out[i] = 1; }", IMAGE, "", FORM },
    { K " { int i = blockIdx.x * blockDim.x + threadIdx.x >> 2; out[i] = 1; }", IMAGE, "", FORM },
    { K " { int i = (char)blockIdx.x * blockDim.x + threadIdx.x; out[i] = 1; }", IMAGE, "", FORM },
    { K " { int i = f(blockIdx.x) * blockDim.x + threadIdx.x; out[i] = 1; }", IMAGE, "", FORM },
    { K " { out[gridDim.x * blockDim.x] = 1; }", IMAGE, "", "a step along an axis that it has no index of" },
    { K " { " X "out[blockIdx.y * 64 + x] = 1; }", IMAGE, "", FORM },
    { K " { out[blockIdx.x * 64 + threadIdx.x] = 1; }", IMAGE, ", block: 64", FORM },
    { K " { out[blockIdx.x * 64 + threadIdx.x] = 1; }", "[3072]", ", block: 64", FORM },
    { K " { out[threadIdx.x] = 1; }", "[200]", "", FORM },
    { K " { out[blockIdx.x] = 1; }", "[200]", "", FORM },
    { K " { uint3 t = threadIdx; " X "out[x] = t.y; }", IMAGE, "", FORM },
    { K " { dim3 t(threadIdx); " X "out[x] = t.y; }", "[3072]", "", FORM },
    { "#define x y\n" K " { int i = blockIdx.x * blockDim.x + threadIdx.x; out[i] = 1; }", IMAGE, "", FORM },
    { K " { int i = blockIdx.x * blockDim.x + threadIdx.x; out[i] = 1; }", IMAGE, ", define: {x: y}", FORM },
    { "#define int char\n" K " { int i = (int)blockIdx.x * blockDim.x + threadIdx.x; out[i] = 1; }", IMAGE, "", FORM },
    /* several axes, of which some threads may use fewer */
    { K " { " Y "out[y] = 1; }", IMAGE, "", "is of an axis beyond one that is not used: use .x first, then .y (" },
    { K " { " X "if (in[0]) return; " Y "out[y * 64 + x] = 1; }", IMAGE, "", "has 'if', which stands between the indices, where it may keep threads from an axis: compute all of them first (" },
    { K " { " X "if (in[0]) { " Y "out[y * 64 + x] = 1; } }", IMAGE, "", "which is not where all threads come (" },
    { K " { if (in[0]) for (int y = blockIdx.y * blockDim.y + threadIdx.y; y < 9; ) { } " X "out[x] = 1; }", IMAGE, "",
      "which is not where all threads come (" },
    { K " { int i = blockIdx.x * blockDim.x + threadIdx.x, j = blockIdx.y * blockDim.y + threadIdx.y; out[i + j] = 1; }",
      IMAGE, "", "has 'i', which is computed from .x and not called x or col, so that it may not go along the last axis (" },
    { K " { " X Y "out[x] = 1; }", IMAGE, "", "has 'y', which is an index that is not used (" },
    { K " { " X "out[x] = 1; }", IMAGE, ", block: [32, 8]",
      "a block of 8 threads along y, which kernel 'k' does not use" },
    /* one thread */
    { K " { out[0] = 1; }", IMAGE, "", NULL },
    { K " { out[0] = 1; }", IMAGE, ", block: 64", "uses no index, so that all threads of a block would do the same" },
    /* what is not code does not count */
    { "// blockIdx.y\n/* threadIdx.y // */\n" K " { " X "out[x] = sizeof \"blockIdx.y \\\" threadIdx.y\"; }",
      IMAGE, "", NULL },
    { "const char *t = R\"a(threadIdx.y )\" \")a\";\n" K " { " X "out[x] = 1; }", IMAGE, "", NULL },
    /* another kernel of the file does not count, a function does */
    { "extern \"C\" __global__ void other() { " X Y "}\n" K " { " X "out[x] = 1; }", COLORS, "", NULL },
    { "extern \"C\" __global__ void other() { " X Y "}\n" K " { " X "other(); out[x] = 1; }", COLORS, "",
      "has 'other', which is another kernel (" },
    { "__device__ int row() { return blockIdx.y * blockDim.y + threadIdx.y; }\n"
      K " { " X "out[x] = 1; }", COLORS, "", OUTSIDE },
    { "#define ROW blockIdx.y * blockDim.y + \\\n threadIdx.y\n" K " { " X "out[ROW * 64 + x] = 1; }", COLORS, "", MACRO },
    { "#include \"index.h\"\n" K " { out[ROW * 64 + column()] = 1; }", COLORS, "", OUTSIDE },
    { "#include \"again.h\"\n" K " { out[column()] = 1; }", COLORS, "", OUTSIDE },
    { K " { " X "out[ROW + x] = 1; }", COLORS, ", define: {ROW: blockIdx.y}", MACRO },
    { "extern \"C\" {\n#if 1\n__global__ void k(const float *in, float *out)\n#else\n"
      "__global__ void k(float *in, float *out)\n#endif\n{ " X Y "out[y * 64 + x] = 1; }\n}\n", COLORS,
      "", "k.cu:5): write extern \"C\" __global__ void k(...) { ... } once, in no #if and by no macro, and close all brackets; or" },
    { K " { " X "out[x] = 1; }\nnamespace n { " K " { } }\n", COLORS, "", ENTRY },
    { "__global__ void k(const float *in, float *out) { " X "out[x] = 1; }\n", COLORS, "",
      "kernel 'k' is not extern \"C\" (" },
    { "#define k l\n" K " { " X "out[x] = 1; }\n", COLORS, "", ENTRY },
    /* what cannot be read */
    { "#include <cooperative_groups.h>\n" K " { " X "out[x] = 1; }", IMAGE, "",
      "stands in a source that includes more than the C library: <cooperative_groups.h> (" },
    { "#include \"nowhere.h\"\n" K " { " X "out[x] = 1; }", IMAGE, "",
      "stands in a source that includes a file that is not there: \"nowhere.h\" (" },
    { K " { \n#include \"twice.h\"\n" X "out[x] = 1; }", IMAGE, "", "includes a file within brackets: \"twice.h\" (" },
    { K " { " X "int y; asm(\"mov.u32 %0, %ctaid.y;\" : \"=r\"(y)); out[x] = y; }", IMAGE, "",
      "has 'asm', which may have an index of its own (" },
    { K " { " X "out[x] = __nvvm_read_ptx_sreg_tid_y(); }", IMAGE, "", "which may have an index of its own (" },
    { K " { " X "out[x] = __shfl_down_sync(~0u, in[x], 1); }", IMAGE, "",
      "has '__shfl_down_sync', which is of a warp, whose threads may share the work of one element (" },
    { K " { " X "if (x % warpSize == 0) out[x / warpSize] = 1; }", IMAGE, "", "has 'warpSize', which is of a warp" },
    { "#if A\nvoid f() {\n#else\nvoid f(int) {\n#endif\n}\n" K " { " X "out[x] = 1; }", IMAGE, "",
      "stands in a source that has brackets that depend on #if: else (" },
    { "#import \"h.h\"\n" K " { " X "out[x] = 1; }", IMAGE, "", "has a directive that is not known: import (" },
    { "// \\\nint y;\n" K " { " X "out[x] = 1; }", IMAGE, "", "has a comment that a backslash takes to the next line (" },
    /* with a grid nothing is asked */
    { K " { uint3 t = threadIdx; out[t.x] = 1; }", IMAGE, ", grid: 12", NULL },
    { K " { " X Y "out[y * 64 + x] = 1; }", COLORS, ", block: [32, 8], grid: [2, 6]", NULL },
    /* a frame for each block along z */
    { B "{ " X "out[blockIdx.z * b + x] = 1; }", COLORS, ", batched: true", NULL },
    { B "{ " X Y "out[blockIdx.z * b + y * 64 + x] = 1; }", IMAGE, ", batched: true", NULL },
    { B "{ " X "out[blockIdx.z * b + x] = 1; }", COLORS, "", FORM },
    { B "{ " X Y "out[blockIdx.z * b + y * 64 + x] = 1; }", COLORS, ", batched: true",
      "blockIdx.z is the frame, so that there is no grid for three axes" },
};

/* Ways to have another index than it seems. */
#define S "(const float *in, float *out, int w, int h)\n"
#define G "extern \"C\" __global__ void k" S
#define XY "int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;"
#define P "if (x < w && y < h) out[y * w + x] = in[y * w + x] + 1;"
#define I "int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < w * h) out[i] = in[i] + 1;"

static const struct { const char *source, *says; } disguised[] = {
    { G "{" XY P "}", NULL },
    { "#define KERNEL extern \"C\" __global__ void\nKERNEL k" S "{" XY P "}",
      ENTRY },
    { "#define KERNEL(n) extern \"C\" __global__ void n\nKERNEL(k)" S "{" XY P "}",
      ENTRY },
    { "#define GLOBAL __global__\nextern \"C\" GLOBAL void k" S "{" XY P "}",
      ENTRY },
    { "extern \"C\" __attribute__((global)) void k" S "{" XY P "}",
      ENTRY },
    { G ";\nvoid k" S "{" XY P "}",
      ENTRY },
    { "#define IMPL k\nextern \"C\" __global__ void IMPL" S "{" XY P "}",
      ENTRY },
    { "template <int N> __device__ __forceinline__ void body" S "{" XY P "}\n" G "{ body<1>(in, out, w, h); }",
      OUTSIDE },
    { "struct Idx { int x, y; __device__ Idx() : x(blockIdx.x * blockDim.x + threadIdx.x), y(blockIdx.y "
      "* blockDim.y + threadIdx.y) {} };\n" G "{ Idx i; int x = i.x, y = i.y; " P "}",
      OUTSIDE },
    { G
      "{ const uint3 &b = blockIdx; int x = b.x * blockDim.x + threadIdx.x, y = b.y * blockDim.y + "
      "threadIdx.y;" P "}",
      FORM },
    { "#define AX(a) (blockIdx.a * blockDim.a + threadIdx.a)\n" G "{ int x = AX(x), y = AX(y); " P "}",
      MACRO },
    { "#define CAT(a,b) a##b\n" G
      "{ int x = CAT(block,Idx).x * CAT(block,Dim).x + CAT(thread,Idx).x, y = CAT(block,Idx).y * "
      "CAT(block,Dim).y + CAT(thread,Idx).y; " P "}",
      "has '##', which puts words together (" },
    { "#define B blockIdx\n#define D blockDim\n#define T threadIdx\n" G
      "{ int x = B.x * D.x + T.x, y = B.y * D.y + T.y;" P "}",
      MACRO },
    { G
      "{ int x = blockIdx . x * blockDim /* c */ . x + threadIdx.x, y = blockIdx\\\n.y * blockDim.y + "
      "threadIdx.y;" P "}",
      "stands in a source that has a word that a backslash takes to the next line (" },
    { G "{ int x = blockIdx.x * blockDim.x + threadIdx.x, y = block\\\nIdx.y * blockDim.y + threadIdx.y;" P
      "}",
      "stands in a source that has a word that a backslash takes to the next line (" },
    { "#include \"h.h\"\n" G "{ int x = ix(), y = iy(); " P "}",
      OUTSIDE },
    { "#define H \"h.h\"\n#include H\n" G "{ int x = ix(), y = iy(); " P "}",
      "stands in a source that includes a file by a macro: H (" },
    { "#include <h.h>\n" G "{ int x = ix(), y = iy(); " P "}",
      "stands in a source that includes a file that is not looked at; \"...\" is, <...> not: <h.h" },
    { "#if __has_include(\"h.h\")\n#include \"h.h\"\n#endif\n" G "{ int x = ix(), y = iy(); " P "}",
      OUTSIDE },
    { G "<%" XY P "%>", "stands in a source that has a bracket that is spelled with two characters (" },
    { G
      "{ auto id = [](auto b, auto d, auto t) { return b * d + t; }; int x = id(blockIdx.x, blockDim.x, "
      "threadIdx.x), y = id(blockIdx.y, blockDim.y, threadIdx.y); " P "}",
      FORM },
    { G
      "{ int x = blockIdx.x * blockDim.x + threadIdx.x; if (x >= w) return; for (int y = 0; y < h; y++) "
      "out[y * w + x] = in[y * w + x] + 1; }",
      NULL },
    { G
      "{ int y = blockIdx.x * blockDim.x + threadIdx.x; if (y >= h) return; for (int x = 0; x < w; x++) "
      "out[y * w + x] = in[y * w + x] + 1; }",
      NULL },
    { G
      "{ int y = blockIdx.x; if (y >= h) return; for (int x = threadIdx.x; x < w; x += blockDim.x) "
      "out[y * w + x] = in[y * w + x] + 1; }",
      FORM },
    { G "{ int y = blockIdx.x * blockDim.x + threadIdx.x, x = blockIdx.y * blockDim.y + threadIdx.y; " P "}",
      "has 'y', which is computed from .x and not called x or col, so that it may not go along the last axis (" },
    { G
      "{ int i = 4 * (blockIdx.x * blockDim.x + threadIdx.x); for (int j = i; j < i + 4 && j < w * h; "
      "j++) out[j] = in[j] + 1; }",
      NULL },
    { G "{ " I " }", NULL },
    { G
      "{ int i = blockIdx.x * blockDim.x + threadIdx.x; (void)blockIdx.y; if (i < w * h) out[i] = in[i] "
      "+ 1; }",
      FORM },
    { G "{ int x = blockIdx.x * blockDim.x + threadIdx.x; int y = blockIdx.y; " P " }",
      FORM },
    { G
      "{ for (int y = blockIdx.y; y < h; y += gridDim.y) for (int x = blockIdx.x * blockDim.x + "
      "threadIdx.x; x < w; x += gridDim.x * blockDim.x) out[y * w + x] = in[y * w + x] + 1; }",
      FORM },
    { "#define T 16\n" G
      "{ __shared__ float s[T][T]; int x = blockIdx.x * T + threadIdx.x, y = blockIdx.y * T + "
      "threadIdx.y; if (x < w && y < h) s[threadIdx.y][threadIdx.x] = in[y * w + x]; __syncthreads(); "
      "if (x < w && y < h) out[y * w + x] = s[threadIdx.y][threadIdx.x] + 1; }",
      FORM },
    { "#define T 16\n" G "{ int x = blockIdx.x * T + threadIdx.x % T, y = blockIdx.y * T + threadIdx.x / T; "
      P "}",
      FORM },
    { G "{ __shared__ float t[8][33]; " XY
      " if (x < w && y < h) t[threadIdx.y][threadIdx.x] = in[y * w + x]; __syncthreads(); if (x < w && "
      "y < h) out[y * w + x] = t[threadIdx.y][threadIdx.x] + 1; }",
      FORM },
    { G
      "{ int x = blockIdx.x * 256 + threadIdx.x; int q = blockDim.x; if (x < w * h) out[x] = in[x] + (q "
      "== 256); }",
      FORM },
    { G
      "{ int i = 2 * (blockIdx.x * blockDim.x + threadIdx.x) + (threadIdx.y & 0); for (int j = i; j < i "
      "+ 2 && j < w*h; j++) out[j] = in[j] + 1; }",
      FORM },
    { "struct Q { int x; }; __device__ int get(uint3 b, int a) { return a ? b.y : b.x; }\n" G
      "{ int x = get(blockIdx, 0) * blockDim.x + threadIdx.x, y = get(blockIdx, 1) * blockDim.y + "
      "threadIdx.y; " P "}",
      FORM },
    { G
      "{ decltype(blockIdx) b = blockIdx; int x = b.x * blockDim.x + threadIdx.x, y = b.y * blockDim.y "
      "+ threadIdx.y; " P "}",
      FORM },
    { "#ifdef TWO_D\n#define IX\n#endif\n" G "{\n#ifdef TWO_D\n" XY P "\n#else\n" I "\n#endif\n}",
      "has 'blockIdx', which stands in a part that #if chooses (" },
    { G "{\n#if 0\n" XY P "\n#else\n" I "\n#endif\n}",
      "has 'blockIdx', which stands in a part that #if chooses (" },
    { "#define MODE 1\n" G "{ if (MODE == 2) {" XY P "} else {" I "} }",
      "has 'blockIdx', which is there twice, so that some threads may use fewer axes (" },
    { "struct Where { static __device__ int x() { return blockIdx.x * blockDim.x + threadIdx.x; } "
      "static __device__ int y() { return blockIdx.y * blockDim.y + threadIdx.y; } };\n" G
      "{ int i = Where::x(); if (i < w * h) out[i] = in[i] + 1; }",
      OUTSIDE },
    { "__device__ int index(int) { return blockIdx.x * blockDim.x + threadIdx.x; }\n__device__ int "
      "index(int, int) { return blockIdx.y * blockDim.y + threadIdx.y; }\n" G
      "{ int i = index(0); if (i < w * h) out[i] = in[i] + 1; }",
      OUTSIDE },
    { G "{ assert(blockIdx.y == 0 && threadIdx.y == 0);" I "}",
      FORM },
    { G "{ if (blockIdx.x + blockIdx.y + blockIdx.z == 0 && threadIdx.x + threadIdx.y == 0) { /* once */ }" I
      "}",
      FORM },
    { "template <int A> __device__ int at();\ntemplate <> __device__ int at<0>() { return blockIdx.x * "
      "blockDim.x + threadIdx.x; }\ntemplate <> __device__ int at<1>() { return blockIdx.y * blockDim.y "
      "+ threadIdx.y; }\n" G "{ int i = at<0>(); if (i < w * h) out[i] = in[i] + 1; }",
      OUTSIDE },
    { "#define KERNEL extern \"C\" __global__ void\nKERNEL k" S "{" XY P "}",
      ENTRY },
    { G
      "{ int y = blockIdx.x; if (y < h) for (int x = threadIdx.x; x < w; x += blockDim.x) out[y * w + "
      "x] = in[y * w + x]; }",
      FORM },
};

START_TEST(tells_a_grid)
{
    for (int cuda = 0; cuda < 2; cuda++) {
        compile(grids[_i].source, grids[_i].shape, grids[_i].options, cuda);
        if (!grids[_i].says) {
            ck_assert_msg(!code_errs.failed, "%s: %s", grids[_i].source, code_errs.e[0].msg);
            continue;
        }
        ck_assert_msg(code_errs.failed, "it has a grid: %s", grids[_i].source);
        ck_assert_msg(strstr(code_errs.e[0].msg, grids[_i].says) != NULL, "%s: '%s' is not in '%s'",
                      grids[_i].source, grids[_i].says, code_errs.e[0].msg);
        ck_assert_int_eq(code_errs.e[0].at.line, 4);
    }
}
END_TEST

START_TEST(is_not_taken_in)
{
    code_compile(disguised[_i].source, "[64, 100]",
                 "args: [in, out, {i32: 'in.shape[1]'}, {i32: 'in.shape[0]'}]", false);
    const char *said = code_errs.failed ? code_errs.e[0].msg : "nothing", *says = disguised[_i].says;
    ck_assert_msg(code_errs.failed == (says != NULL), "%s: %s", disguised[_i].source, said);
    ck_assert_msg(!says || strstr(said, says) != NULL, "%s: '%s' is not in '%s'", disguised[_i].source,
                  says, said);
}
END_TEST

/* Ports of other sizes, of which a thread may be for each element. */
static const struct { const char *in, *out, *body, *says; } sizes[] = {
    { "[100, 300]", "[256]", X "atomicAdd(&out[(int)in[x]], 1);",
      "has 'in' of 30000 elements and 'out' of 256, and may have a thread for each element of 'in', so" },
    { "[100, 300]", "[300, 100]", X Y "out[x * 100 + y] = in[y * 300 + x];",
      "has 'in' and 'out' of different shapes, and its x and y may be those of 'in', so" },
    { "[100, 300]", "[300, 100]", X Y "out[x * 100 + y] = in[y * 300 + x];",
      "\"ceil(out.shape[0] / 8)\"]; for 'in' write in instead of out" },
    { "[100, 300]", "[30000]", X "out[x] = in[x];", NULL },
    { "[16]", "[256]", X "out[x] = in[x / 16];", NULL },
    { "[8, 8]", "[16, 16]", X Y "out[y * 16 + x] = in[y / 2 * 8 + x / 2];", NULL },
};

START_TEST(compares_sizes)
{
    char text[400], shapes[200];
    snprintf(text, sizeof text, K " { %s }\n", sizes[_i].body);
    snprintf(shapes, sizeof shapes, "%s}, b: {dtype: f32, shape: %s", sizes[_i].in, sizes[_i].out);
    code_compile(text, shapes, "args: [in, out], out: b", false);
    ck_assert_msg(code_errs.failed == !!sizes[_i].says, "%s: %s", text,
                  code_errs.n ? code_errs.e[0].msg : "no error");
    ck_assert_msg(!sizes[_i].says || strstr(code_errs.e[0].msg, sizes[_i].says) != NULL, "%s",
                  code_errs.e[0].msg);
}
END_TEST

/* What the plan shows of a launch: as given, or as it was found out. */
static const struct { const char *body, *shape, *options, *want; } shown[] = {
    { X "out[x] = 1;", IMAGE, "", "a -> kernel, block 256, grid 12\n" },
    { X Y "out[y * 64 + x] = 1;", IMAGE, "", "a -> kernel, block [32, 8], grid [2, 6]\n" },
    { X Y "out[y * 64 + x] = 1;", IMAGE, ", block: [16, 4]", "a -> kernel, block [16, 4], grid [4, 12]\n" },
    { X Y Z "out[(z * 64 + y) * 3 + x] = 1;", COLORS, ", block: [3, 8]",
      "a -> kernel, block [3, 8], grid [1, 8, 48]\n" },
    { "out[0] = 1;", IMAGE, "", "a -> kernel, block 1, grid 1\n" },
    { "out[threadIdx.x] = 1;", IMAGE, ", grid: 'ceil(in.size / 1000)'", "a -> kernel, block 256, grid 4\n" },
    { "out[threadIdx.x] = 1;", IMAGE, ", block: [1, 1, 8], grid: [2, 1]",
      "a -> kernel, block [1, 1, 8], grid 2\n" },
};

START_TEST(plan_shows_block_and_grid)
{
    char text[400];
    snprintf(text, sizeof text, K " { %s }\n", shown[_i].body);
    for (int cuda = 0; cuda < 2; cuda++) {
        compile(text, shown[_i].shape, shown[_i].options, cuda);
        const char *want = shown[_i].want, *at = strstr(code_plan, "block "), *end = strchr(want, '\n');
        ck_assert_msg(at != NULL, "%s: %s%s", text, code_errs.n ? code_errs.e[0].msg : "", code_plan);
        while (at > code_plan && strncmp(at, "a -> ", 5))
            at--;
        ck_assert_msg(!strncmp(at, want, (size_t)(end - want)), "%s: not '%s' but %s", text, want, at);
    }
}
END_TEST

START_TEST(says_what_to_add)
{
    compile(K " { uint3 t = threadIdx; out[t.x] = 1; }", COLORS, "", 0);
    ck_assert_ptr_nonnull(strstr(code_errs.e[0].msg, "k.cu:1), so it is not known which grid it wants: "
        "set 'block' and 'grid'. With a thread for each element of 'out' along x they are block: 256, grid: "
        "\"ceil(out.size / 256)\"; with .x along axis 1 and .y along axis 0, block: [32, 8], grid: "
        "[\"ceil(out.shape[1] / 32)\", \"ceil(out.shape[0] / 8)\"]"));
    compile(K " { uint3 t = threadIdx; out[t.x] = 1; }", "[3, 48, 64]", "", 0);
    ck_assert_ptr_nonnull(strstr(code_errs.e[0].msg, "; with .x along axis 2 and .y along axis 1, block: [32, 8], "
        "grid: [\"ceil(out.shape[2] / 32)\", \"ceil(out.shape[1] / 8)\"]"));
}
END_TEST

Suite *suite_code(void)
{
    Suite *s = suite_create("code");
    TCase *tc = tcase_create("text");
    tcase_add_checked_fixture(tc, up, code_down);
    tcase_add_loop_test(tc, tells_a_grid, 0, sizeof grids / sizeof *grids);
    tcase_add_loop_test(tc, is_not_taken_in, 0, sizeof disguised / sizeof *disguised);
    tcase_add_loop_test(tc, compares_sizes, 0, sizeof sizes / sizeof *sizes);
    tcase_add_loop_test(tc, plan_shows_block_and_grid, 0, sizeof shown / sizeof *shown);
    tcase_add_test(tc, says_what_to_add);
    suite_add_tcase(s, tc);
    return s;
}
