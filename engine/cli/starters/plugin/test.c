/* test.c - gives frames to each kind of NAME.so alone, and looks at what it makes. */
#include <gpipe/gpipe.h>
#include <string.h>

static gp_registry *kinds;
static gp_errs errs;
static int failed;

/* The stage with these options makes `n` frames of these numbers of `in` (NULL: it is a source), or, with `why`, says
 * that it cannot. */
static void expect(const char *kind, const char *options, const gp_frames *in, const float *want, int64_t n,
                   const char *why)
{
    gp_frames out = { .n = 0 };
    errs.n = errs.failed = 0;
    bool ok = gp_try_stage(kinds, kind, options, in, in ? 1 : 0, &out, 1, &errs);
    if (why)
        ok = !ok && strstr(errs.e[0].msg, why);
    else
        ok = ok && out.n == n && !memcmp(out.data, want, gp_bytes(&out.type) * (size_t)n);
    printf("%s: %s {%s}%s%s\n", ok ? "ok" : "FAILED", kind, options, errs.n ? ": " : "", errs.n ? errs.e[0].msg : "");
    failed += !ok;
    gp_frames_free(&out);
}

/* What travels with frames: their times, their numbers by these keys, and how many rows they have. */
static void expect_along(gp_frames in)
{
    static const char *const keys[] = { "gain" };
    int64_t times[] = { 1000, 2000 };
    gp_type each[] = { in.type, { GP_F32, 1, { 2 } } };
    gp_frames out = { .keys = keys, .nkeys = 1 };
    errs.n = errs.failed = 0;
    in.time_ns = times, in.each = each;
    bool ok = gp_try_stage(kinds, "NAME_gain", "gain: 3", &in, 1, &out, 1, &errs) && out.n == 2 && out.number[1] == 1
        && out.time_ns[1] == 2000 && out.meta[1] == 3 && out.each[1].dim[0] == 2;
    printf("%s: NAME_gain, what travels along: %s\n", ok ? "ok" : "FAILED", errs.n ? errs.e[0].msg : "no error");
    failed += !ok;
    gp_frames_free(&out);
}

int main(void)
{
    float ramp[] = { 0, 1, 2, 1, 2, 3 }, tripled[] = { 0, 3, 6, 3, 6, 9 };
    gp_frames frames = { .type = { GP_F32, 1, { 3 } }, .n = 2, .data = ramp };
    kinds = gp_registry_create();
    if (!kinds || !gp_register_builtin(kinds, &errs) || !gp_plugin_load(kinds, "./NAME.so", &errs)) {
        fprintf(stderr, "FAILED: %s\n", errs.n ? errs.e[0].msg : "out of memory");
        return 1;
    }
    expect("NAME_ramp", "frames: 2, size: 3", NULL, ramp, 2, NULL);
    expect("NAME_ramp", "size: 0", NULL, NULL, 0, "must be 1 to");
    expect("NAME_gain", "gain: 3", &frames, tripled, 2, NULL);
    expect("NAME_gain", "gian: 3", &frames, NULL, 0, "did you mean 'gain'");
    expect_along(frames);
    gp_registry_destroy(kinds);
    return failed != 0;
}
