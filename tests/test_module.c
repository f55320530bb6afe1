/* test_module.c - kernels of other compilers, without a GPU: what is read of a PTX text, a cubin and a fatbin, and what
 * is made of that. More is in lib/module_cases.c. */
#include "base/module.h"
#include "lib/cases.h"
#include "lib/suite.h"

/* A cubin as far as it is looked at: a head, sections' heads, names, a symbol of section 2. */
enum { SECTIONS = 5, ELF = 64 + 64 * SECTIONS };
static void put(unsigned char *d, int at, size_t v, size_t bytes)
{
    memcpy(d + at, &v, bytes);
}

static size_t cubin(unsigned char *d, unsigned char abi, unsigned flags, const char *a, const char *b, const char *symbol)
{
    const char *name[SECTIONS + 1] = { "", a, b, ".symtab", ".shstrtab", symbol };
    size_t n = ELF, last = 64 + 64 * (SECTIONS - 1), table = last - 64;
    memset(d, 0, ELF);
    memcpy(d, "\177ELF\2\1\1", 7);
    d[8] = abi, d[18] = 190, d[40] = 64, d[58] = 64, d[60] = SECTIONS, d[62] = SECTIONS - 1;
    put(d, 48, flags, 4);
    unsigned char at = 0;
    for (int i = 0; i <= SECTIONS; i++) {
        at = (unsigned char)(n - ELF);
        if (i < SECTIONS)
            d[64 + 64 * i] = at;
        strcpy((char *)d + n, name[i]), n += strlen(name[i]) + 1;
    }
    put(d, (int)last + 24, ELF, 8), put(d, (int)last + 32, n - ELF, 8);
    d[table + 4] = 2, d[table + 40] = SECTIONS - 1, d[table + 32] = 24;
    put(d, (int)table + 24, n, 8);
    memset(d + n, 0, 25);
    d[n] = at, d[n + 4] = 1, d[n + 6] = 2;
    return n + 24;
}

static size_t fatbin(unsigned char *d, const void *part, size_t n, int kind, int arch, bool packed)
{
    unsigned head[4] = { 0xba55ed50, 16 << 16 | 1, (unsigned)(64 + n), 0 }, in[16] = { (unsigned)kind, 64, (unsigned)n };
    in[7] = (unsigned)arch, in[14] = packed ? 9999 : 0;
    memcpy(d, head, 16), memcpy(d + 16, in, 64), memcpy(d + 80, part, n);
    d[80 + n] = 0;
    return 80 + n;
}

static const char *why_of(const void *d, size_t n, const gp_source *src, gp_module *m)
{
    static char why[GP_WHY];
    strcpy(why, "fine");
    if (gp_module_read(m, d, n, src->entry, why))
        gp_module_allows(m, src, why);
    return why;
}

static const gp_source k = { .path = "k.cubin", .entry = "k", .overlaps = true, .at = { "p.yaml", 3, 5, 1 } };

static void says(const char *got, const char *want)
{
    ck_assert_msg(strstr(got, want) != NULL, "%s, not %s", got, want);
}

TEST(cubins)
{
    unsigned char d[1000], f[1200];
    char list[GP_WHY];
    gp_module m;
    gp_source taking_turns = k;
    taking_turns.overlaps = false;
    size_t n = cubin(d, 8, 0x6005a04, ".text.k", ".nv.info.k", "x");        /* CUDA 13 */
    ck_assert_str_eq(why_of(d, n, &k, &m), "fine");
    ck_assert(m.kernels == 1 && !strcmp(m.first, "k") && gp_module_fits(&m, 90, list) && !gp_module_fits(&m, 89, list)
              && !gp_module_fits(&m, 100, list));
    ck_assert_str_eq(list, "sm_90");
    n = cubin(d, 7, 0x500550, ".text.other", ".text.more", "x");            /* before */
    says(why_of(d, n, &k, &m), "no kernel 'k' in 'k.cubin', which has 'other', 'more'");
    ck_assert(gp_module_fits(&m, 86, list) && !gp_module_fits(&m, 75, list));
    n = cubin(d, 8, 0x5a04, ".text.k", ".nv.global.init", "_$_str_$_2");       /* of libdevice */
    ck_assert_str_eq(why_of(d, n, &k, &m), "fine");
    n = cubin(d, 8, 0x5a04, ".text.k", ".nv.global.init", "x");
    says(why_of(d, n, &k, &m), "has a variable 'x', which launches");
    d[64 + 64 * (SECTIONS - 2) + 4] = 1;       /* without symbols */
    says(why_of(d, n, &k, &m), "has a variable '?', which launches");
    d[64 + 64 * (SECTIONS - 2) + 4] = 2;
    ck_assert_str_eq(why_of(d, n, &taking_turns, &m), "fine");

    size_t nf = fatbin(f, d, n, 2, 90, false);
    says(why_of(f, nf, &k, &m), "has a variable 'x', which launches");
    nf = fatbin(f, d, n, 2, 80, true);
    says(why_of(f, nf, &k, &m), "'nvcc --no-compress'");
    ck_assert_str_eq(why_of(f, nf, &taking_turns, &m), "fine");
    ck_assert(gp_module_fits(&m, 89, list) && !gp_module_fits(&m, 90, list));

    for (size_t cut = 0; cut < n; cut++) {     /* whatever is missing, nothing beyond is read */
        unsigned char *part = malloc(cut + 1);
        memcpy(part, d, cut), part[cut] = 0;
        ck_assert_str_ne(why_of(part, cut, &taking_turns, &m), "fine");
        nf = fatbin(f, d, n, 2, 90, false);
        memcpy(part, f, cut);
        ck_assert_str_ne(why_of(part, cut, &taking_turns, &m), "fine");
        free(part);
    }
}

#define HEAD "// made\n.version 8.0\n.target sm_80 /* , */, debug\n.address_size 64\n"
#define ENTRY ".visible .entry\n\tk (.param .u64 .ptr .global .align 4 a)\n{ ret; }\n"
static const struct { const char *text, *says; int fits, not; } ptx[] = {
    { HEAD ENTRY, "fine", 120, 75 }, { HEAD "/* .global .u32 x; */" ENTRY, "fine", 80, 75 },
    { HEAD ".global .align 1 .b8 _$_str[11] = {95, 95};\n.visible .global .align 1 .b8 $str[2];" ENTRY, "fine", 90, 75 },
    { HEAD ".global .b8 $str[ 2 ] , x;" ENTRY, "has a variable '$str'", 90, 75 },
    { HEAD ".global .align 4 .u32 x;\n" ENTRY, "has a variable 'x', which launches", 90, 75 },
    { HEAD ".visible .entry k() { .global .u32 x; ret; }", "has a variable 'x', which launches", 90, 75 },
    { HEAD ".visible .entry k() { mov.u32 %r1,%envreg2; ret; }", "set 'cooperative: true'", 90, 75 },
    { HEAD ".visible .entry k2() { ret; }", "no kernel 'k' in 'k.cubin', which has 'k2'", 80, 75 },
    { HEAD ".visible .func k() { ret; }", "which has none", 80, 75 },
    { ".version 8.0\n.target sm_90a\n" ENTRY, "fine", 90, 100 }, { ".version 8.8\n.target sm_100f\n" ENTRY, "fine", 103, 120 },
    { ".target sm_80\n.version 8.0\n" ENTRY, "is none of PTX", 0, 80 }, { ".version 8.0\n" ENTRY, "is none of PTX", 0, 80 },
};

TEST_LOOP(texts, 0, sizeof ptx / sizeof *ptx)
{
    gp_module m;
    char list[GP_WHY];
    says(why_of(ptx[_i].text, strlen(ptx[_i].text), &k, &m), ptx[_i].says);
    ck_assert(!ptx[_i].fits || gp_module_fits(&m, ptx[_i].fits, list));
    ck_assert(!gp_module_fits(&m, ptx[_i].not, list));
}

TEST(parameters)
{
    static const char *const param[] = { "const float *", "int", "double", "unsigned char" };
    static const gp_loc at[] = { { "p.yaml", 1, 1, 0 }, { "p.yaml", 2, 1, 0 }, { "p.yaml", 3, 1, 0 }, { "p.yaml", 4, 1, 0 } };
    gp_source src = k;
    gp_errs errs = { .n = 0 };
    src.param = param, src.nparam = 4, src.param_at = at;
    ck_assert(gp_module_takes(&src, (size_t[]){ 8, 4, 8, 1 }, 4, &errs) && !errs.n);
    ck_assert(!gp_module_takes(&src, (size_t[]){ 8, 4, 4, 1 }, 4, &errs) && errs.e[0].at.line == 3);
    says(errs.e[0].msg, "kernel 'k' of 'k.cubin' has 4 parameters of 8, 4, 4, 1 bytes, but args gives 4 values of 8, 4, 8, 1");
    ck_assert(!gp_module_takes(&src, (size_t[]){ 8, 4, 8 }, 3, &errs) && errs.e[1].at.line == 4);
    ck_assert(!gp_module_takes(&src, (size_t[]){ 8, 4, 8, 1, 8 }, 5, &errs) && errs.e[2].at.line == 3);
    src.nparam = 0;
    ck_assert(!gp_module_takes(&src, (size_t[]){ 4 }, 1, &errs) && gp_module_takes(&src, NULL, 0, &errs));
}

TEST(what_the_driver_says)
{
    gp_errs errs = { .n = 0 };
    gp_module_errors(&k, "ptxas info : 1\nptxas application ptx input, line 12; error   : Unknown symbol 'x'\n"
                     "ptxas application ptx input, line 13; fatal   : Parsing error near 'y': syntax error\nptxas fatal : no\n", &errs);
    ck_assert_str_eq(errs.e[0].msg, "Unknown symbol 'x'");
    ck_assert(errs.e[0].at.line == 12 && !strcmp(errs.e[0].at.file, "k.cubin"));
    ck_assert_str_eq(errs.e[1].msg, "Parsing error near 'y': syntax error");
    ck_assert_int_eq(errs.n, 2);
    gp_module_errors(&k, "", &errs);
    says(errs.e[errs.n - 1].msg, "the driver cannot compile 'k.cubin': it does not say why");
}

/* Without a reference the CPU says how to give it one. */
TEST(needs_a_gpu)
{
    const char *dir = pipe_dir();
    pipe_text(dir, "k.ptx", ".version 8.0\n.target sm_80\n" ENTRY);
    pipe_result r = pipe_run(dir, "buffers: {x: {dtype: f32, shape: [4]}}\nstages:\n  - {use: generate, out: x, frames: 1}\n"
                             "  - {name: k, use: kernel, source: k.ptx, threads: 1, args: [out]}\n  - {use: discard}\n", "cpu",
                             NULL, (gp_run_options){ 0 });
    pipe_ends(&r, "k.ptx' is for NVIDIA GPUs, and this is the CPU back end: run with 'device: cuda', or give the stage a reference");
    ck_assert_int_eq(r.errs.e[0].at.line, 4);
}

CASES_AND(module)
