/* test_code_slips.c - slips in the text of a source, which are told before what the kind `kernel` cannot read from
 * it. Nothing is compiled. */
#include <check.h>
#include <string.h>
#include "lib/coderig.h"

Suite *suite_code_slips(void);

#define K "extern \"C\" __global__ void k(const float *in, float *out)\n"
#define X "int x = blockIdx.x * blockDim.x + threadIdx.x;\n"

static const struct { const char *source; int line; const char *says; } slips[] = {
    /* brackets */
    { K "{\n" X "if (in[x]) {\nout[x] = 1;\n}\n", 2, "this '{' is never closed" },
    { K "{\n" X "out[x = 1;\n}\n", 4, "this '[' is never closed" },
    { K "{\n" X "if (x < 9\nout[x] = 1;\n}\n", 4, "this '(' is never closed" },
    { K "{\nint x = (blockIdx.x * blockDim.x + threadIdx.x;\nout[x] = 1;\n}\n", 3, "this '(' is never closed" },
    { K "{\n" X "out[f(x] = 1;\n}\n", 4, "this '(' is never closed" },
    { K "{\n" X "out[threadIdx.x)] = 1;\n}\n", 4, "nothing opens this ')'" },
    { K "{\n" X "out[x] = 1;\n}\n}\nextern \"C\" __global__ void k(float *) {}\n", 6, "nothing opens this '}'" },
    { K "{ for (int i = 0; i < 9; i++) { out[i] = threadIdx.x; }\n", 2, "this '{' is never closed" },
    { K X "out[x] = 1;\n", 1, "after 'k(...)' a '{' is missing" },
    { K X "out[x] = 1;\n}\n", 1, "after 'k(...)' a '{' is missing" },
    { "extern \"C\" __global__ void __launch_bounds__(64) k(float *out)\nout[0] = 1;\n}\n", 1,
      "after 'k(...)' a '{' is missing" },
    /* an index */
    { K "{\nint x = blockIdx.x * blockDim.x + threadIdx.x\nif (x < 9) out[x] = 1;\n}\n", 3,
      "after 'threadIdx.x' a ';' or an operator is missing" },
    { K "{\nint x = blockIdx.x * blockDim.x threadIdx.x;\nout[x] = 1;\n}\n", 3,
      "after 'blockDim.x' a ';' or an operator is missing" },
    { K "{\nint x = blockIdx.x * blockDim.x + ;\nout[x] = 1;\n}\n", 3, "after '+' a value is missing" },
    { K "{\nint x = blockIdx.x * ;\nout[x] = 1;\n}\n", 3, "after '*' a value is missing" },
    { K "{\nint x = blockIdx.x * blockDim + threadIdx.x;\nout[x] = 1;\n}\n", 3,
      "'blockDim' has the parts .x, .y and .z: write blockDim.x" },
    { K "{\nint x = blockIdx.x * blockDim.x + threadIdx;\nout[x] = 1;\n}\n", 3,
      "'threadIdx' has the parts .x, .y and .z: write threadIdx.x" },
    { K "{\nint x = blockIdx.x * blockdim.x + threadIdx.x;\nout[x] = 1;\n}\n", 3,
      "nothing declares 'blockdim'; CUDA has blockIdx, blockDim, threadIdx and gridDim" },
    /* what a compiler takes is no slip: it asks for a grid */
    { K "{\nuint3 t = threadIdx;\nout[t.x] = 1;\n}\n", 3, "has 'threadIdx', which is not in the plain form" },
    { K "{\ndim3 blocks(9);\nout[blocks.x + threadIdx.x] = 1;\n}\n", 4, "not in the plain form" },
    { K "{\ndim3 threadid = threadIdx;\nout[threadid.x] = 1;\n}\n", 3, "not in the plain form" },
    { K "{\nout[*(int *)in + (int *)0 - (int *)0 + threadIdx.x] = 1;\n}\n", 3, "not in the plain form" },
    { "#define PLUS +\n" K "{\nout[threadIdx.x PLUS 1] = 1;\n}\n", 4, "not in the plain form" },
    { "#define THREAD threadIdx\n" K "{\nout[THREAD.x + 1] = 1;\n}\n", 1, "stands in a macro" },
    { "__device__ int operator+(uint3 a, int b);\n" K "{\nout[threadIdx + 1] = 1;\n}\n", 4, "not in the plain form" },
    { "extern \"C\" __global__ __attribute__((used)) void k(const float *in, float *out)\n{ out[0] = 1; }\n", 0,
      "is not plainly declared" },
    { "extern \"C\" __global__ void __maxnreg__(64) k(const float *in, float *out)\n{ out[0] = 1; }\n", 0,
      "is not plainly declared" },
    { "#define BEGIN {\n#define END }\n" K "BEGIN out[threadIdx.x] = 1; END\n", 0, "is not plainly declared" },
    { K ";\n" K "{\nfor (int i = threadIdx.x; i < 9; i++) { auto f = [=]() { return i; }; out[i] = f(); }\n}\n", 5,
      "not in the plain form" },
};

/* Of a file the place is that of `source`, and the line stands in the message, unless that is 0. */
START_TEST(are_told_first)
{
    const gp_err *e = &code_errs.e[0];
    char place[40];
    code_compile(slips[_i].source, "[48, 64]", "args: [in, out]", false);
    ck_assert_msg(code_errs.failed == 1, "%s: %d errors: %s", slips[_i].source, code_errs.failed, e->msg);
    ck_assert_msg(strstr(e->msg, slips[_i].says) != NULL, "%s: '%s' is not in '%s'", slips[_i].source, slips[_i].says,
                  e->msg);
    snprintf(place, sizeof place, "k.cu:%d)", slips[_i].line);
    ck_assert_msg(!slips[_i].line || strstr(e->msg, place) != NULL, "%s: not at '%s': '%s'", slips[_i].source, place, e->msg);
    ck_assert_int_eq(e->at.line, 4);
}
END_TEST

Suite *suite_code_slips(void)
{
    Suite *s = suite_create("code_slips");
    TCase *tc = tcase_create("text");
    tcase_add_checked_fixture(tc, code_up, code_down);
    tcase_add_loop_test(tc, are_told_first, 0, sizeof slips / sizeof *slips);
    suite_add_tcase(s, tc);
    return s;
}
