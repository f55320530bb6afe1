/* test_cc_errors.c - users' kernels that do not compile: what is said, and where. */
#include <sys/stat.h>
#include "device/backend.h"
#include "lib/attempt.h"
#include "suite.h"

#define K "extern \"C\" __global__ void k"

/* ---- what does not ------------------------------------------------------- */

enum { CPU = 1, CUDA = 2, BOTH = 3 };

static const struct { int on; const char *text, *params[8]; int line; const char *msg; } bad[] = {
    { CPU, "\n\n" K "(float a)\n{\n    float b = undeclared;\n}\n", { "float" }, 5, "'undeclared'" },
    { CUDA, "\n\n" K "(float a)\n{\n    float b = undeclared;\n}\n", { "float" }, 5,
      "identifier \"undeclared\" is undefined" },
    { BOTH, "\n" K "(const float *in, float *out,\n    int n)\n{}\n",
      { "const float *", "float *", "float" }, 3,
      "parameter 3 of 'k' is 'int n', but args passes 'float'; args asks for k(const float *, float *, float)" },
    { BOTH, "\n" K "(const float *in, float *out) {}\n", { "const float *", "float *", "int" }, 2,
      "'k' has 2 parameters, but args gives 3 values: k(const float *, float *, int)" },
    { BOTH, K "(int a, int b) {}\n", { "int" }, 1, "'k' has 2 parameters, but args gives 1 value: k(int)" },
    { BOTH, "\n" K "(int a, float2 b = { 1, 2 }, int c = (1, 2)) {}\n", { "int", "gp_c64" }, 2,
      "'k' has 3 parameters, but args gives 2 values, and a default argument is never used: k(int, gp_c64)" },
    { BOTH, "struct S { int m; };\n" K "(int a, int b = ((S *)0)->m, int c = 1 < 2, gp_c64 d = { 1, 2 }, int e = 3 > 2) {}\n",
      { "int" }, 2, "'k' has 5 parameters, but args gives 1 value, and a default argument is never used: k(int)" },
    { BOTH, "template <int, int> struct S { };\n" K "(int a, S<1, 2> *b, S<1, 2> c = S<1, 2>(), int d = 1) {}\n",
      { "int" }, 2, "'k' has 4 parameters, but args gives 1 value, and a default argument is never used: k(int)" },
    { BOTH, K "(int a = 1 > 2, int b = 2) {}\n", { "int", "float" }, 1,
      "parameter 2 of 'k' is 'int b', but args passes 'float'" },
    { BOTH, K "(int a, int b = 2) {}\n", { "int", "float" }, 1,
      "parameter 2 of 'k' is 'int b', but args passes 'float'" },
    { BOTH, K "(float *in, float *out) {}\n", { "const float *", "float *" }, 1,
      "parameter 1 of 'k' is 'float *in', but args passes 'const float *'" },
    { BOTH, K "(unsigned char *p) {}\n", { "signed char *" }, 1, "parameter 1 of 'k'" },
    { BOTH, "extern \"C\" __global__ void other() {}\n", { NULL }, 3, "no kernel 'k' in '" },
    { BOTH, "__global__ void k(float a) {}\n", { "float" }, 1, "extern \"C\" __global__ " },
    { CPU, K "(int *out)\n{\n    int v = *out;\n    *out = __shfl_down(v, 1);\n}\n",
      { "int *" }, 4, "'__shfl_down' needs a GPU: use a warp function whose name ends in _sync" },
    { CPU, K "(int *out)\n{\n    *out = __activemask();\n}\n", { "int *" }, 3, "'__activemask' needs a GPU" },
    { CPU, "#include \"none.h\"\n" K "() {}\n", { NULL }, 1, "none.h" },
    { CUDA, "#include \"none.h\"\n" K "() {}\n", { NULL }, 1, "none.h" },
    /* what a source defines does not blind the check of its parameters */
    { BOTH, "#define static_assert(...)\n" K "(int a) {}\n", { "float" }, 2,
      "parameter 1 of 'k' is 'int a', but args passes 'float'" },
    { BOTH, "#define float double\n" K "(float a) {}\n", { "float" }, 2,
      "parameter 1 of 'k' is 'float a', but args passes 'float'" },
    { BOTH, "#define decltype(...) void(int)\n" K "(float a) {}\n", { "int" }, 2,
      "parameter 1 of 'k' is 'float a', but args passes 'int'" },
    { BOTH, "#error Too many open files\n" K "() {}\n", { NULL }, 1, "Too many open files" },
};

TEST_SOME(errors, 2 * (sizeof bad / sizeof *bad), 3, 1)
{
    size_t i = (size_t)_i / 2;
    bool cuda = _i % 2;
    if (!(bad[i].on & (cuda ? CUDA : CPU)) || (cuda && !attempt_nvrtc))
        return;
    attempt a = attempt_text(bad[i].text, bad[i].params, cuda);
    ck_assert(!a.ok);
    ck_assert_int_ge(a.errs.failed, 1);
    const gp_err *e = &a.errs.e[0];
    ck_assert_int_ne(e->code, GP_E_RESOURCE);          /* whatever its words are */
    ck_assert_msg(strstr(e->msg, bad[i].msg) != NULL, "case %zu: '%s' is not in '%s'", i, bad[i].msg, e->msg);
    if (!(cuda && strstr(e->msg, "C++ name")))
        ck_assert_msg(e->at.line == bad[i].line, "case %zu: line %d: %s", i, e->at.line, e->msg);
    for (int k = 0; k < a.errs.n; k++)
        ck_assert_ptr_null(strstr(a.errs.e[k].msg, "gpipe-check"));
}

/* Both places: in the source, and in the YAML that passes something else. */
static const struct { const char *text, *params[4], *msg; } both[] = {
    { K "(const float *in,\n int n) {}\n", { "const float *", "float" },
      "parameter 2 of 'k' is 'int n', but args passes 'float' (p.yaml:11:22); args asks for " },
    { K "(const float *in,\n int n) {}\n", { "const float *", "int", "float" },
      "'k' has 2 parameters, but args gives 3 values (p.yaml:12:23): k(" },
    { K "(const float *in,\n int n) {}\n", { "const float *" },
      "'k' has 2 parameters, but args gives 1 value (p.yaml:10:21): k(" },
};

TEST_LOOP(errors_of_args_name_both_places, 0, 3)
{
    const gp_loc at[] = { { "p.yaml", 10, 21, 2 }, { "p.yaml", 11, 22, 2 }, { "p.yaml", 12, 23, 2 } };
    cu_write("k.cu", both[_i].text);
    gp_source src = attempt_source("k", both[_i].params);
    src.param_at = at;
    for (int cuda = 0; cuda < 1 + attempt_nvrtc; cuda++) {
        attempt a = attempt_compile(&src, cuda);
        ck_assert(!a.ok);
        first_error_has(&a.errs, _i ? 1 : 2, both[_i].msg);
    }
}

TEST(error_in_an_include)
{
    cu_write("bad.h", "\n\nint x = nothing;\n");
    attempt a = attempt_text("\n#include \"bad.h\"\n" K "() {}\n", CU_PARAMS(NULL), false);
    ck_assert(!a.ok);
    first_error_has(&a.errs, 2, "bad.h', line 3: ");
}

/* A text that stands in line 12 of a pipeline, from column 9 on, or in none. */
static const struct { int on; const char *text, *params[3]; int line, col; const char *msg; } texts[] = {
    { CPU, "\n" K "(float a)\n{\n    float b = undeclared;\n}\n", { "float" }, 15, 23, "'undeclared'" },
    { CUDA, "\n" K "(float a)\n{\n    float b = undeclared;\n}\n", { "float" }, 15, 0,
      "identifier \"undeclared\" is undefined" },
    { BOTH, K "(const float *in,\n    int n) {}\n", { "const float *", "float" }, 13, 13,
      "parameter 2 of 'k' is 'int n', but args passes 'float'" },
    { BOTH, "\n" K "(int a, int b) {}\n", { "int" }, 13, 37, "'k' has 2 parameters, but args gives 1 value" },
    { BOTH, "#define P int a, int b\n" K "(P) {}\n", { "int", "float" }, 12, 9,
      "parameter 2 of 'k' is not 'float', which args passes" },
    { BOTH, "#include \"bad.h\"\n" K "() {}\n", { NULL }, 12, 0, "bad.h', line 3: " },
    { BOTH, "\n#include \"/dev/zero\"\n" K "() {}\n", { NULL }, 13, 18, "is not a regular file" },
    { BOTH, K "() {}\n#error no good\n", { NULL }, 13, -1, "no good" },
    { CPU, "\n" K "(int *out)\n{\n    *out = __activemask();\n}\n", { "int *" }, 15, -1, "'__activemask' needs a GPU" },
    { BOTH, "extern \"C\" __global__ void other() {}\n", { NULL }, 3, 5,
      "no kernel 'k' in 'code'; set 'entry' to one of its kernels: 'other'" },
};

TEST_SOME(errors_in_a_text, 4 * (sizeof texts / sizeof *texts), 3, 1)
{
    size_t i = (size_t)_i / 4;
    bool cuda = _i % 2, placed = _i / 2 % 2;
    if (!(texts[i].on & (cuda ? CUDA : CPU)) || (cuda && !attempt_nvrtc))
        return;
    cu_write("bad.h", "\n\nint x = nothing;\n");
    gp_source src = attempt_source("k", texts[i].params);
    src.path = cu_path("p.yaml");
    src.text = texts[i].text;
    if (placed)
        src.line = 12, src.col = 9;
    attempt a = attempt_compile(&src, cuda);
    ck_assert(!a.ok);
    const gp_err *e = &a.errs.e[0];
    ck_assert_msg(strstr(e->msg, texts[i].msg) != NULL, "'%s' is not in '%s'", texts[i].msg, e->msg);
    bool stage = !placed || texts[i].line == 3;
    ck_assert_str_eq(e->at.file, stage ? "test.yaml" : src.path);
    ck_assert_int_eq(e->at.line, stage ? 3 : texts[i].line);
    if (stage || !(cuda || texts[i].col < 0))
        ck_assert_int_eq(e->at.col, stage ? 5 : texts[i].col);
}

/* Of one that stands in no file a message counts the lines. */
TEST(lines_of_a_text)
{
    gp_source src = attempt_source("k", CU_PARAMS("float"));
    src.text = K "(float a)\n{\n    float b = undeclared;\n}\n";
    for (int cuda = 0; cuda < 1 + attempt_nvrtc; cuda++) {
        attempt a = attempt_compile(&src, cuda);
        ck_assert(!a.ok);
        ck_assert_msg(!strncmp(a.errs.e[0].msg, "in 'code', line 3: ", 19), "%s", a.errs.e[0].msg);
    }
}

TEST(many_errors_are_counted)
{
    attempt a = attempt_text(K "()\n{\na;\nb;\nc;\nd;\ne;\nf;\ng;\n}\n", CU_PARAMS(NULL), false);
    ck_assert_int_eq(a.errs.n, 6);
    ck_assert_int_eq(a.errs.e[4].at.line, 7);
    ck_assert_str_eq(a.errs.e[5].msg, "the compiler found 2 more errors");
}

static const gp_kernel *compile_nothing(gp_dev *dev, const gp_source *src, gp_errs *errs)
{
    gp_fail(errs, GP_E_RESOURCE, (gp_loc){ 0 }, "no room");
    return NULL;
}

/* What a back end says of a kernel is at its stage unless it knows better. */
TEST(errors_have_a_place)
{
    static const gp_backend fails = { .compile = compile_nothing };
    gp_dev dev = { .backend = &fails };
    gp_source src = attempt_source("k", CU_PARAMS(NULL));
    gp_errs errs = { .n = 0 };
    ck_assert_ptr_null(gp_kernel_compile(&dev, &src, &errs));
    ck_assert_int_eq(errs.e[0].at.line, 3);
    gp_fail(&errs, GP_E_RESOURCE, (gp_loc){ 0 }, "elsewhere");
    ck_assert_ptr_null(errs.e[1].at.file);
}

TEST(no_source)
{
    gp_source src = attempt_source("k", CU_PARAMS(NULL));
    src.path = cu_path("missing.cu");
    attempt a = attempt_compile(&src, false);
    ck_assert(!a.ok);
    first_error_has(&a.errs, 3, "missing.cu' cannot be read: No such file");
}

/* What has no end, or no contents, is an error, and nothing waits for it. */
static const struct { const char *path; bool fifo; off_t bytes; const char *msg; } odd[] = {
    { "/dev/zero", false, 0, "'/dev/zero' is not a regular file" },
    { "fifo.cu", true, 0, "fifo.cu' is not a regular file" },
    { "folder.cu", false, 0, "folder.cu' is not a regular file" },
    { "large.cu", false, (16 << 20) + 1, "large.cu' is larger than 16 MiB" },
    { "largest.cu", false, 16 << 20, "largest.cu' is not text" },
};

TEST_EACH(odd_sources, odd)
{
    gp_source src = attempt_source("k", CU_PARAMS(NULL));
    src.path = *odd[_i].path == '/' ? odd[_i].path : cu_path(odd[_i].path);
    if (odd[_i].bytes)
        cu_write(odd[_i].path, "");
    if (odd[_i].fifo)
        mkfifo(src.path, 0600);
    else if (odd[_i].bytes)
        ck_assert_int_eq(truncate(src.path, odd[_i].bytes), 0);
    else if (*odd[_i].path != '/')
        mkdir(src.path, 0700);
    for (int cuda = 0; cuda < 1 + attempt_nvrtc; cuda++) {
        attempt a = attempt_compile(&src, cuda);
        ck_assert(!a.ok);
        ck_assert_int_eq(a.errs.n, 1);
        first_error_has(&a.errs, 3, odd[_i].msg);
    }
}

static const char *const odd_headers[] = { "\"/dev/zero\"", "</dev/zero>", "\"fifo.h\"",
                                           "<fifo.h>", "\"../dev/zero\"" };

TEST_EACH(odd_headers_are_errors, odd_headers)
{
    mkfifo(cu_path("fifo.h"), 0600);
    char *text = format("// #include \"fifo.h\"\n#include %s\n" K "() {}\n", odd_headers[_i]);
    for (int cuda = 0; cuda < 1 + attempt_nvrtc; cuda++) {
        attempt a = attempt_text(text, CU_PARAMS(NULL), cuda);
        ck_assert(!a.ok);
        ck_assert_int_eq(a.errs.e[0].at.line, 2);
        if (_i < 4)
            ck_assert_ptr_nonnull(strstr(a.errs.e[0].msg, "' is not a regular file"));
    }
    unlink(cu_path("fifo.h"));
}

/* An endless header of a header: the compiler ends at a bound of memory, or takes it as empty, which is refused. */
TEST(endless_header)
{
    cu_write("endless.h", "#include \"/dev/zero\"\n");
    attempt a = attempt_text("#include \"endless.h\"\n" K "() {}\n", CU_PARAMS(NULL), false);
    ck_assert(!a.ok);
    ck_assert_int_ge(a.errs.n, 1);
}

TEST(missing_toolkit)
{
    for (int cuda = 0; cuda < 1 + attempt_nvrtc; cuda++) {
        attempt a = attempt_text("#include <cuda_absent.h>\n" K "() {}\n", CU_PARAMS(NULL), cuda);
        ck_assert(!a.ok);
        ck_assert_int_eq(a.errs.n, 1);
        first_error_has(&a.errs, 1, "cuda_absent.h");
        ck_assert_ptr_nonnull(strstr(a.errs.e[0].msg, "; it is of the CUDA toolkit: install it"));
    }
}

TEST(no_compiler)
{
    setenv("PATH", cu_path("empty"), 1);
    unsetenv("CXX");
    attempt a = attempt_text(K "() {}\n", CU_PARAMS(NULL), false);
    ck_assert(!a.ok);
    ck_assert_str_eq(a.errs.e[0].at.file, "test.yaml");
    ck_assert_ptr_nonnull(strstr(a.errs.e[0].msg, "no C++ compiler"));
    setenv("CXX", "no-such-compiler -O3", 1);
    a = attempt_text(K "() {}\n", CU_PARAMS(NULL), false);
    ck_assert(!a.ok);
    ck_assert_ptr_nonnull(strstr(a.errs.e[0].msg, "no compiler 'no-such-compiler -O3'"));
}

/* A compiler that was killed, or that has not what it needs, says nothing of the source. */
static const struct { const char *does, *says; } ends[] = {
    { "kill -9 $$", "the compiler 'CXX' was killed" },
    { "kill -11 $$", "the compiler 'CXX' was killed" },
    { "echo 'g++: fatal error: Killed signal terminated program cc1plus' >&2; exit 1",
      "the compiler 'CXX' gave up: g++: fatal error: Killed signal terminated program cc1plus" },
    { "printf '\ncc1plus: out of memory allocating 65536 bytes after a total of 9 bytes\n' >&2; exit 1",
      "the compiler 'CXX' gave up: cc1plus: out of memory allocating 65536 bytes" },
    { "echo '/tmp/x.s: Fatal error: cannot write: No space left on device' >&2; exit 1",
      "the compiler 'CXX' gave up: /tmp/x.s: Fatal error: cannot write: No space left on device" },
    { "echo 'k.cu:3:1: error: #error out of memory' >&2; exit 1", NULL },
};

TEST_EACH(a_compiler_that_ends, ends)
{
    char text[400], *at;
    snprintf(text, sizeof text, "#!/bin/sh\n%s\n", ends[_i].does);
    cu_write("ends", text);
    ck_assert_int_eq(chmod(cu_path("ends"), 0755), 0);
    setenv("CXX", cu_path("ends"), 1);
    snprintf(text, sizeof text, K "(int *out) { /* %d */ }\n", _i);
    attempt a = attempt_text(text, CU_PARAMS("int *"), false);
    ck_assert(!a.ok);
    ck_assert_int_eq(gp_errs_exit(&a.errs), ends[_i].says ? 4 : 3);
    if (!ends[_i].says)
        return;
    at = strstr(ends[_i].says, "CXX");
    char *says = format("%.*s%s%s", (int)(at - ends[_i].says), ends[_i].says, cu_path("ends"), at + 3);
    ck_assert_msg(!strncmp(a.errs.e[0].msg, says, strlen(says)), "%s", a.errs.e[0].msg);
    ck_assert_str_eq(a.errs.e[0].at.file, "test.yaml");
}

/* Where others can put a folder of theirs in the place of ours nothing is compiled. */
TEST(a_folder_that_others_may_change)
{
    static const struct { mode_t mode; bool ok; } cases[] = { { 0700, true }, { 01777, true }, { 0777, false },
                                                            { 0770, false }, { 01770, true } };
    ck_assert(!mkdir(cu_path("tmp"), 0700));
    setenv("TMPDIR", cu_path("tmp"), 1);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        ck_assert(!chmod(cu_path("tmp"), cases[i].mode));
        attempt a = attempt_text(format(K "(int *out) { /* tmp %zu */ }\n", i), CU_PARAMS("int *"), false);
        ck_assert_msg(a.ok == cases[i].ok, "%o: %s", (unsigned)cases[i].mode, a.errs.n ? a.errs.e[0].msg : "?");
        if (!a.ok) {
            ck_assert_int_eq(gp_errs_exit(&a.errs), 4);
            ck_assert_ptr_nonnull(strstr(a.errs.e[0].msg, "/tmp', where others may rename files; set TMPDIR"));
        }
    }
}

SUITE(cc_errors, tcase_add_unchecked_fixture(tc, attempt_setup, cu_close))
