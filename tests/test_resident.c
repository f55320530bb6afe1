/* test_resident.c - the text of `launch: persistent`: NVRTC takes it with every built-in kernel, and with users'
 * sources that have several kernels, or the names of others. The kernels run in tests/gpu. Without NVRTC, or in a
 * build without CUDA, it says that it skips. */
#include "suite.h"
#include "base/embed.h"
#if GP_CUDA
#include "cuda/nvrtc.h"
#endif

#if GP_CUDA
static void takes(const gp_member *k, int n)
{
    void *image;
    size_t bytes;
    gp_errs errs = { .n = 0 };
    char *text = gp_resident_text(k, n, &errs);
    ck_assert_msg(text, "%s", errs.n ? errs.e[0].msg : "");
    bool ok = gp_nvrtc_compile_text(text, NULL, 0, 90, NULL, &image, &bytes, &errs);
    free(text), free(image);
    if (!ok && strstr(errs.e[0].msg, "install libnvrtc"))
        printf("**** SKIPPED: the text of resident kernels: %s ****\n", errs.e[0].msg);
    else
        ck_assert_msg(ok, "%s", errs.e[0].msg);
}

TEST(takes_every_built_in)
{
    /* Of each file a kernel; but for loop.cu and turn.cu, which no resident kernel has. */
    static const char *const kernel[][2] = {
        { "blur", "blur_x_f32" }, { "blur", "blur_y_f16" }, { "cast", "cast_u8_f64" }, { "color", "color_u8_u16" },
        { "copy", "copy_runs_1" }, { "copy", "copy_tile_1" }, { "copy", "copy_each_2" }, { "copy", "pad_8" },
        { "colormap", "colormap_u8" }, { "histogram", "histogram_f16" }, { "median", "median_f32" },
        { "morphology", "morphology_x_max_u8" }, { "normalize", "normalize_ends_f16" }, { "normalize", "normalize_lines_ends_u8" },
        { "cumsum", "cumsum_u8" }, { "softmax", "softmax_f16" }, { "fir", "fir_f32" }, { "gather", "gather_16_i32" },
        { "topk", "topk_f16" }, { "topk", "topk_f64" }, { "topk", "topk_i64" }, { "topk", "topk_merge_f32" }, { "channelize", "channelize_c64_f64" },
        { "gray", "gray_u8" }, { "label", "label_first_f16" }, { "label", "label_join" }, { "label", "label_before" },
        { "linear", "linear_f32_f16" }, { "linear", "linear_few_8_f16" }, { "linear", "linear_few_8_long_f16" }, { "linear", "linear_few_16_f16" },
        { "linear", "linear_few_wide_f16" }, { "mix", "mix_add_sum_f32" }, { "mix", "mix_make_mean_f16" },
        { "quantile", "quantile_short_f16" }, { "quantile", "quantile_count_i64" }, { "reduce", "reduce_tree_sum_f64" }, { "regroup", "regroup_16" },
        { "resize", "resize_weights_f64" }, { "resize", "resize_u8" }, { "resize", "resize_y_f16" }, { "resize", "resize_x_f64" },
        { "resize", "resize_nearest_2" }, { "scale", "scale_c64" }, { "slide", "taper_c64" }, { "iir", "iir_filter_f32_4" },
        { "resample", "resample_f64" }, { "power", "power_c64" }, { "correlate", "correlate_parts_c64" }, { "db", "db_f32" },
        { "conv2d", "conv2d_u8_f64" }, { "warp", "warp_cubic_u8" }, { "warp", "warp_nearest_f32" },
        { "statistics", "reduce_fold_argmax_u8" }, { "statistics", "reduce_lines_argmax_f16" }, { "statistics", "reduce_tree_std_f32" }, { "sobel", "sobel_i16" }, { "threshold", "threshold_i16" },
    };
    enum { KERNELS = sizeof kernel / sizeof *kernel };
    gp_member k[KERNELS];
    char file[KERNELS][40];
    for (int i = 0; i < KERNELS; i++) {
        snprintf(file[i], sizeof file[i], "kernels/%s.fatbin", kernel[i][0]);
        k[i] = (gp_member){ .name = kernel[i][1], .file = file[i] };
    }
    for (const gp_blob *b = gp_blobs; b->name; b++) {
        bool here = !strstr(b->name, ".fatbin") || !strcmp(b->name, "kernels/loop.fatbin")
                 || !strcmp(b->name, "kernels/border.fatbin")
                 || !strcmp(b->name, "kernels/turn.fatbin");
        for (int i = 0; i < KERNELS && !here; i++)
            here = !strcmp(file[i], b->name);
        ck_assert_msg(here, "no kernel of %s", b->name);
    }
    takes(k, KERNELS);
}

/* What one source has must not reach the next, and must be in one namespace for all of its kernels. */
TEST(takes_users_sources)
{
    static const char *const small[] = { "SIZE=1" }, *const large[] = { "SIZE=2", "LARGE" };
    static const char one[] =
        "#ifndef ONCE\n#define ONCE\nstruct pair { float a, b; };\n#endif\n#define KERNEL extern \"C\" __global__\n"
        "extern \"C\" { __device__ float twice(float x) { return 2 * x; } }\n"
        "// extern \"C\" in words\n"
        "KERNEL void a(float *o) { pair p = { twice(1), SIZE }; o[0] = p.a + p.b; }\n"
        "KERNEL void b(float *o) { pair p = { 1, 2 }; o[0] = p.b; }\n"
        "extern\n  \"C\" __global__ void never(float *o) { const char *s = \"extern \\\"C\\\"\"; o[0] = s[0]; }\n";
    static const char two[] =
        "struct pair { int a; };\n#define b (1 / 0 /\n#undef b\n"
        "extern \"C\" __device__ int twice(int x) { return 3 * x; }\n"
        "extern \"C\" __global__ void b(int *o) { pair p = { twice(1) }; o[0] = p.a; }\n"
        "extern \"C\" __global__ void never(float *o) { }\n#define a (\n";
    const gp_source s[] = {
        { .path = "p.yaml", .text = one, .entry = "a", .define = small, .ndefine = 1 },
        { .path = "p.yaml", .text = one, .entry = "b", .define = small, .ndefine = 1 },
        { .path = "p.yaml", .text = two, .entry = "b" },
        { .path = "p.yaml", .text = one, .entry = "a", .define = large, .ndefine = 2 },
        { .path = "q.yaml", .text = two, .entry = "never" },
    };
    gp_member k[sizeof s / sizeof *s];
    for (size_t i = 0; i < sizeof s / sizeof *s; i++)
        k[i] = (gp_member){ .source = &s[i] };
    takes(k, (int)(sizeof s / sizeof *s));
}
#endif

TEST_SUITE(resident, NULL, NULL, 240)
