/* test_verdict_json.c - a report with its verdict, as JSON. */
#include "base/yaml.h"
#include "verdictrig.h"

/* JSON is YAML, so the parser of pipelines reads it. "a.b.0.c" */
static const char *look_up(const gp_node *n, const char *path)
{
    char word[80];
    for (int used; n && sscanf(path, "%79[^.]%n", word, &used) == 1; path += *path == '.') {
        path += used;
        n = n->kind == GP_LIST ? n->item[atoi(word)] : gp_node_get(n, word);
    }
    return n ? n->text : "(none)";
}

TEST(says_it_as_json)
{
    static const char yaml[] = "pipeline: \"a \\\"b\\\" \\u00e4\\n\"\nlaunch: stream\n"
        "on_error: drop\ndepth: 4\nbatch: 2\n" G FREE "  - {use: scale, a: 2}\n" END;
    static const struct { const char *path, *is; } want[] = {
        { "gpipe", GP_VERSION }, { "commit", "null" }, { "date", "2026-01-02T03:04:05Z" },
        { "outcome", "drained" }, { "wall_s", "1" }, { "frames_per_s", "12" },
        { "pipeline.name", "a \"b\" \xc3\xa4\n" }, { "pipeline.device", "cuda:0" },
        { "pipeline.depth", "4" }, { "pipeline.streams", "auto" }, { "pipeline.batch", "2" },
        { "pipeline.launch", "stream" }, { "pipeline.sync", "auto" },
        { "pipeline.on_error", "drop" }, { "environment.cores", "8" },
        { "environment.cpu", "a \"chip\"" }, { "environment.gpu", "null" },
        { "cores.all", "16" }, { "cores.used", "0.5" }, { "cores.others", "2.5" },
        { "cores.quota", "null" },
        { "set.0", "vars.a=\"1\"" }, { "sources.0.name", "generate" }, { "sources.0.cancelled", "3" },
        { "stages.0.use", "generate" }, { "stages.1.busy", "0.97" }, { "stages.1.busy_s", "0.97" },
        { "stages.1.most_workers", "16" }, { "stages.1.frame_p50_us", "null" },
        { "segments.0.name", "scale" }, { "segments.0.stages.0", "scale" },
        { "segments.0.streams", "4" }, { "segments.0.batch", "2" },
        { "engines.0.name", "copy in" }, { "engines.0.busy", "0.2" }, { "engines.0.gb_s", "9" },
        { "engines.0.limit_gb_s", "50" }, { "engines.0.measured", "false" },
        { "engines.1.name", "compute" }, { "engines.1.busy", "null" },
        { "engines.1.gb_s", "null" }, { "engines.1.limit_gb_s", "null" },
        { "buffers.0.name", "g" }, { "buffers.0.from", "generate" }, { "buffers.0.to", "clean" },
        { "buffers.0.dtype", "f32" }, { "buffers.0.shape.0", "1024" }, { "overlap", "0.5" },
        { "latency_us.p50", "null" }, { "verdict.bound", "stage" }, { "verdict.name", "clean" },
        { "verdict.buffer", "null" }, { "verdict.edit.path", "stages.clean.workers" },
    };
    const verdict_case row = { "with GPU, not measured", G FREE "  - {use: scale, a: 2}\n" END,
      .cuda = true, .estimated = true, .actor = { { "clean", .busy = 97 } }, .engine = { { 20, 9 } },
      .bound = GP_BOUND_STAGE, .of = "clean", .text = "97 % busy, GPU idle ~80 %)",
      .path = "stages.clean.workers", .value = "3" };
    gp_errs *errs = GP_NEW(&verdict_arena, gp_errs, 1);
    gp_account account = { "generate", 15, 12, 0, 0, 3, .block = 1 };
    const char *const set = "vars.a=\"1\"";
    gp_report_about about = { .environment = { .cpu = "a \"chip\"", .date = "2026-01-02T03:04:05Z", .cores = 8 },
                              .outcome = GP_DRAINED, .account = &account, .naccounts = 1, .set = &set, .nset = 1 };
    char *text = NULL;
    size_t n = 0;
    gp_pipeline *p = verdict_compile(yaml, NULL, true, errs);
    gp_report *r = verdict_report(&row, gp_pipeline_plan(p));
    r->overlap = 0.5, r->cpu_ns = percent(50), r->others = 2.5;
    gp_verdict_find(r, p);
    FILE *f = open_memstream(&text, &n);
    gp_report_json(r, p, &about, f);
    fclose(f);
    const gp_node *root = gp_yaml_value(&verdict_arena, text, (gp_loc){ .file = "report" }, errs);
    ck_assert_msg(root != NULL, "%s\n%s", errs->e[0].msg, text);
    for (size_t i = 0; i < sizeof want / sizeof *want; i++)
        ck_assert_msg(!strcmp(look_up(root, want[i].path), want[i].is), "%s is %s\n%s",
                      want[i].path, look_up(root, want[i].path), text);
    free(text);
    gp_pipeline_destroy(p);
}

TEST_SUITE(verdict_json, verdict_up, verdict_down, 0)
