/* reportrig.c - see reportrig.h. */
#include "reportrig.h"

const char *report_on;

static void look(gp_pipeline *p, void *arg)
{
    report_seen *s = arg;
    gp_errs errs = { .n = 0 };
    size_t n;
    s->report = gp_report_make(&s->arena, p, &errs);
    FILE *f = open_memstream(&s->trace, &n);
    s->made = gp_trace_json(p, 0, f, &errs);
    fclose(f);
}

report_seen report_run(const char *text, const char *script, gp_run_options options)
{
    report_seen s = { .report = NULL };
    const char *dir = pipe_dir();
    pipe_text(dir, "work.lua", script);
    pipe_result r = pipe_run_then(dir, text, report_on ? report_on : on, NULL, options, look, &s);
    ck_assert_msg(r.outcome == GP_DONE, "%s", pipe_said(&r.errs));
    ck_assert_ptr_nonnull(s.report);
    return s;
}

void report_done(report_seen *s)
{
    free(s->trace);
    gp_arena_free(&s->arena);
}

double line_member(const char *line, const char *key)
{
    char *text = format("\"%s\": ", key);
    const char *at = strstr(line, text);
    const char *end = strchr(line, '\n');
    ck_assert_msg(at && (!end || at < end), "no %s in: %.150s", key, line);
    return atof(at + strlen(text));
}

bool line_has(const char *line, const char *text)
{
    const char *at = strstr(line, text), *end = strchr(line, '\n');
    return at && (!end || at < end);
}
