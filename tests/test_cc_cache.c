/* test_cc_cache.c - which users' kernels are compiled only once, and which again. */
#include <sys/stat.h>
#include "suite.h"
#include "lib/attempt.h"
#if GP_CUDA
#include "cuda/nvrtc.h"
#endif

#define K "extern \"C\" __global__ void k"

/* A compiler that writes a line to a file each time it runs. */
static void counting_compiler_of(const char *cxx)
{
    cu_write("cxx", format("#!/bin/sh\necho run >>'%s'\nexec %s \"$@\"\n", cu_path("runs"), cxx));
    ck_assert_int_eq(chmod(cu_path("cxx"), 0755), 0);
    setenv("CXX", cu_path("cxx"), 1);
    unlink(cu_path("runs"));
}

static void counting_compiler(void)
{
    counting_compiler_of(getenv("CXX") ? getenv("CXX") : "c++");
}

static int runs(void)
{
    struct stat st;
    return stat(cu_path("runs"), &st) ? 0 : (int)(st.st_size / 4);
}

#define COMPILES(src, n)                                   \
    do {                                                   \
        attempt a_ = attempt_compile((src), false);         \
        cu_print(&a_.errs);                                \
        ck_assert(a_.ok);                                  \
        ck_assert_int_eq(runs(), (n));                     \
    } while (0)

TEST(compiles_once)
{
    counting_compiler();
    cu_write("sub.h", "#include \"subsub.h\"\n");
    cu_write("subsub.h", "enum { WIDTH = 3 };\n");
    const char *text = "#include \"sub.h\"\nextern __shared__ int s[];\n"
                       K "(int *out) { out[0] = WIDTH + R; s[0] = 0; }\n";
    const char *one[] = { "R=1" }, *two[] = { "R=2" };
    cu_write("k.cu", text);
    gp_source src = attempt_source("k", CU_PARAMS("int *"));
    src.define = one, src.ndefine = 1;
    COMPILES(&src, 1);
    COMPILES(&src, 1);
    src.define = two;                      /* a define, shared memory, options ... */
    COMPILES(&src, 2);
    src.shared = 100;
    COMPILES(&src, 3);
    cu_write("subsub.h", "enum { WIDTH = 4 };\n");     /* ... an include's include */
    COMPILES(&src, 4);
    COMPILES(&src, 4);
    setenv("CXX", format("%s -O1", cu_path("cxx")), 1);
    COMPILES(&src, 5);
    cu_write("subsub.h", "enum { WIDTH = 3 };\n");
    src.shared = 0, src.define = one;
    setenv("CXX", cu_path("cxx"), 1);
    COMPILES(&src, 5);                     /* as the first time */
}

#if GP_CUDA
static void *image_of(const gp_source *src, size_t *bytes)
{
    void *image;
    gp_errs errs = { 0 };
    bool ok = gp_nvrtc_compile(src, 90, NULL, &image, bytes, NULL, &errs);
    cu_print(&errs);
    ck_assert(ok);
    return image;
}

#endif

/* A text is kept as a file is: others of its place and entry are others. */
TEST(texts_are_kept)
{
    counting_compiler();
    cu_write("sub.h", "enum { WIDTH = 13 };\n");
    gp_source src = attempt_source("k", CU_PARAMS("int *"));
    src.path = cu_path("p.yaml");          /* which is not there */
    src.text = "#include \"sub.h\"\n" K "(int *out) { out[0] = WIDTH; }\n";
    src.line = 7, src.col = 5;
    COMPILES(&src, 1);
    COMPILES(&src, 1);
    const char *first = src.text;
    src.text = "#include \"sub.h\"\n" K "(int *out) { out[0] = WIDTH + 1; }\n";
    COMPILES(&src, 2);
    COMPILES(&src, 2);
    src.text = first;
    COMPILES(&src, 2);
    cu_write("sub.h", "enum { WIDTH = 14 };\n");
    COMPILES(&src, 3);
#if GP_CUDA
    void *image[3];
    size_t n[3];
    if (!attempt_nvrtc)
        return;
    for (int i = 0; i < 3; i++) {
        src.text = i == 1 ? K "(int *out) { out[0] = 5; }\n" : first;
        image[i] = image_of(&src, &n[i]);
    }
    ck_assert(n[0] == n[2] && !memcmp(image[0], image[2], n[0]));
    ck_assert(n[0] != n[1] || memcmp(image[0], image[1], n[0]));
    for (int i = 0; i < 3; i++)
        free(image[i]);
#endif
}

/* Wherever the compiler finds a header, the kernel is compiled again once it has changed,
 * and only then; and when another file comes to lie where the compiler looks first. */
static const struct {
    const char *include, *variable, *value;    /* the source's line; FOLDER stands for the folder */
    const char *header, *shadow;               /* the file that it names; one that would hide it */
} found[] = {
    { "#include \"sub.h\"", NULL, NULL, "sub.h", NULL },
    { "#define HDR \"sub.h\"\n#include HDR", NULL, NULL, "sub.h", NULL },
    { "#inc\\\nlude \"sub.h\"", NULL, NULL, "sub.h", NULL },
    { "/* a */ # /* b */ include /* c */ \"sub.h\"", NULL, NULL, "sub.h", NULL },
    { "%:include \"sub.h\"", NULL, NULL, "sub.h", NULL },
    { "#include \"in c/$x#/a.h\"\n", NULL, NULL, "in c/$x#/a.h", NULL },
    { "#include <own.h>", "CXX", "CXX -IFOLDER/none -IFOLDER/one", "one/own.h", "none/own.h" },
    { "#include \"own.h\"", "CXX", "CXX -iquote FOLDER/one", "one/own.h", "own.h" },
    { "#include <own.h>", "CPATH", "FOLDER/none:FOLDER/one", "one/own.h", "none/own.h" },
    { "#include <own.h>", "CPLUS_INCLUDE_PATH", "FOLDER/none:FOLDER/one", "one/own.h", "none/own.h" },
    { "#include \"top.h\"", "CPATH", "FOLDER/one", "one/own.h", "own.h" },
    { "#include <math.h>\nenum { WIDTH = 3 };\n", "CXX", "CXX -IFOLDER/one", "unused.h", "one/math.h" },
};

/* `text` with FOLDER and CXX put in. */
static const char *filled(const char *text, char buf[1000])
{
    const char *folder = cu_path(""), *cxx = getenv("CXX");
    size_t n = 0;
    for (; *text && n < 900; text++)
        if (!strncmp(text, "FOLDER", 6))
            n += (size_t)snprintf(buf + n, 1000 - n, "%s", folder), text += 5;
        else if (!strncmp(text, "CXX", 3))
            n += (size_t)snprintf(buf + n, 1000 - n, "%s", cxx), text += 2;
        else
            buf[n++] = *text;
    buf[n] = '\0';
    return buf;
}

TEST_SOME(compiled_again_when_a_header_changes, sizeof found / sizeof *found, 4, 1)
{
    char value[1000];
    bool changes = strcmp(found[_i].header, "unused.h") != 0;
    counting_compiler();
    mkdir(cu_path("one"), 0755), mkdir(cu_path("none"), 0755);
    mkdir(cu_path("in c"), 0755), mkdir(cu_path("in c/$x#"), 0755);
    unlink(cu_path("own.h"));
    unlink(cu_path("none/own.h"));
    cu_write("top.h", "#include \"own.h\"\n");
    cu_write("k.cu", format("%s\n%s(int *out) { out[0] = WIDTH; /* %d */ }\n", found[_i].include, K, _i));
    cu_write(found[_i].header, "enum { WIDTH = 3 };\n");
    if (found[_i].variable)
        setenv(found[_i].variable, filled(found[_i].value, value), 1);
    gp_source src = attempt_source("k", CU_PARAMS("int *"));
    COMPILES(&src, 1);
    COMPILES(&src, 1);
    cu_write(found[_i].header, "enum { WIDTH = 4 };\n");
    COMPILES(&src, 1 + changes);
    COMPILES(&src, 1 + changes);
    if (found[_i].shadow) {
        cu_write(found[_i].shadow, changes ? "enum { WIDTH = 5 };\n" : "#include_next <math.h>\n");
        COMPILES(&src, 2 + changes);
        COMPILES(&src, 2 + changes);
    }
}

/* A header that was only asked for is found once it is there. */
static const struct { const char *define, *text; } askers[] = {
    { NULL, "#if __has_include(\"opt.h\")\n#include \"opt.h\"\n#else\nenum { WIDTH = 3 };\n#endif\n" },
    { NULL, "#if __has_\\\ninclude(\"opt.h\")\n#include \"opt.h\"\n#else\nenum { WIDTH = 3 };\n#endif\n" },
    { NULL, "#include \"asks.h\"\n" },
    { "ASKS=__has_include(\"opt.h\")", "#if ASKS\n#include \"opt.h\"\n#else\nenum { WIDTH = 3 };\n#endif\n" },
};

TEST_SOME(compiled_again_when_what_is_asked_for_appears, sizeof askers / sizeof *askers, 2, 1)
{
    counting_compiler();
    cu_write("asks.h", askers[0].text);
    unlink(cu_path("opt.h"));
    cu_write("k.cu", format("%s" K "(int *out) { out[0] = WIDTH; /* %d */ }\n", askers[_i].text, _i));
    gp_source src = attempt_source("k", CU_PARAMS("int *"));
    src.define = &askers[_i].define, src.ndefine = askers[_i].define != NULL;
    COMPILES(&src, 1);
    cu_write("opt.h", "enum { WIDTH = 4 };\n");
    COMPILES(&src, 2);
#if GP_CUDA
    if (!attempt_nvrtc)
        return;
    void *image[2];
    size_t n[2];
    for (int i = 0; i < 2; i++) {
        image[i] = image_of(&src, &n[i]);
        unlink(cu_path("opt.h"));
    }
    ck_assert(n[0] != n[1] || memcmp(image[0], image[1], n[0]) != 0);
    free(image[0]), free(image[1]);
#endif
}

enum { HEADERS = 24 };

static const char *header_path[HEADERS];

/* Each includes all, itself too, by two names. */
static void write_headers(int changed)
{
    static char text[HEADERS * 60];
    for (int i = 0; i < HEADERS; i++) {
        size_t n = (size_t)sprintf(text, "#pragma once\n// %d %d\n", i, i == changed);
        for (int k = 0; k < HEADERS; k++)
            n += (size_t)sprintf(text + n, "#include \"%sall%d.h\"\n", k % 2 ? "" : "sub/../", k);
        FILE *f = fopen(header_path[i], "w");
        ck_assert_ptr_nonnull(f);
        ck_assert_int_ge(fputs(text, f), 0);
        ck_assert_int_eq(fclose(f), 0);
    }
}

/* Each header counts; none that includes itself is gone through for ever. */
TEST(headers_may_include_each_other)
{
    counting_compiler();
    ck_assert_int_eq(mkdir(cu_path("sub"), 0755), 0);
    for (int i = 0; i < HEADERS; i++) {
        header_path[i] = cu_path(format("all%d.h", i));
    }
    cu_write("k.cu", "#include \"all0.h\"\n" K "() {}\n");
    gp_source src = attempt_source("k", CU_PARAMS(NULL));
    write_headers(-1);
    COMPILES(&src, 1);
    COMPILES(&src, 1);
    for (int i = 0; i < HEADERS; i += 7) {
        write_headers(i);
        COMPILES(&src, 2 + i / 7);
    }
    write_headers(-1);
    COMPILES(&src, 1 + (HEADERS + 6) / 7);         /* as the first time */
}

#if GP_CUDA
static const char *const included[] = {
    "#include \"own.h\"", "#include <own.h>", "#define HDR <own.h>\n#include HDR",
    "#include \"top.h\"", "#inc\\\nlude \"own.h\"",
};

/* The same for NVRTC: never an old image, and one that is kept. */
TEST_EACH(nvrtc_compiles_again_when_a_header_changes, included)
{
    if (!attempt_nvrtc)
        return;
    size_t n[3];
    char *text = format("rtc%d", _i);
    const char *cache = cu_path(text);
    setenv("XDG_CACHE_HOME", cache, 1);
    text = format("%s\n#include <math.h>\n%s(int *out) { out[0] = WIDTH; }\n", included[_i], K);
    cu_write("k.cu", text);
    cu_write("top.h", "#pragma once\n#include <own.h>\n");
    cu_write("own.h", "enum { WIDTH = 1234567 };\n");
    gp_source src = attempt_source("k", CU_PARAMS("int *"));
    void *a = image_of(&src, &n[0]);
    cu_write("own.h", "enum { WIDTH = 7654321 };\n");
    void *b = image_of(&src, &n[1]);
    ck_assert(n[0] != n[1] || memcmp(a, b, n[0]) != 0);
    free(b);
    cu_write("own.h", "enum { WIDTH = 1234567 };\n");
    b = image_of(&src, &n[2]);
    ck_assert(n[0] == n[2] && memcmp(a, b, n[0]) == 0);
    free(a), free(b);
    bool plain = _i != 2 && _i != 4;   /* what is not a plain directive is not kept */
    ck_assert_int_eq(system(format("test `find '%s' -name '*.cubin' | wc -l` = %d", cache, plain ? 2 : 0)), 0);
}
#endif

/* What the compiler takes from the environment, and the program behind a launcher. */
TEST_SOME(compiled_again_when_the_compiler_changes, 5, 2, 1)
{
    static const char *const variables[] = { "CPATH", "CPLUS_INCLUDE_PATH", "C_INCLUDE_PATH",
                                             "COMPILER_PATH", "SOURCE_DATE_EPOCH" };
    counting_compiler();
    cu_write("k.cu", K "(int *same) { *same = 1; }\n");
    gp_source src = attempt_source("k", CU_PARAMS("int *"));
    COMPILES(&src, 1);
    setenv(variables[_i], _i == 4 ? "1000000" : cu_path("nowhere"), 1);
    COMPILES(&src, 2);
    unsetenv(variables[_i]);
    COMPILES(&src, 2);
    char *cxx = format("env %s", cu_path("cxx"));
    setenv("CXX", cxx, 1);
    COMPILES(&src, 3);
    COMPILES(&src, 3);
    counting_compiler_of("c++ -DNEW");
    setenv("CXX", cxx, 1);
    COMPILES(&src, 1);                     /* counted from 0 */
}

TEST(damaged_entries_are_made_anew)
{
    counting_compiler();
    cu_write("k.cu", K "(int *damaged) { *damaged = 1; }\n");
    setenv("XDG_CACHE_HOME", cu_path("fresh"), 1);
    gp_source src = attempt_source("k", CU_PARAMS("int *"));
    COMPILES(&src, 1);
    char *command = format("for f in '%s'/gpipe/*.so; do "
                           "printf x | dd of=\"$f\" bs=1 seek=4000 conv=notrunc 2>/dev/null; done",
                           cu_path("fresh"));
    ck_assert_int_eq(system(command), 0);
    COMPILES(&src, 2);
    COMPILES(&src, 2);
}

TEST(works_without_a_cache)
{
    counting_compiler();
    cu_write("file", "");
    setenv("XDG_CACHE_HOME", cu_path("file"), 1);      /* no folder can be made in it */
    cu_write("k.cu", K "(int *a) { *a = 1; }\n");
    gp_source src = attempt_source("k", CU_PARAMS("int *"));
    COMPILES(&src, 1);
    COMPILES(&src, 2);
}

SUITE(cc_cache, tcase_add_unchecked_fixture(tc, attempt_setup, cu_close))
