/* edit.c - an assignment, the first line, written into the text of a pipeline, the rest. What is written is what --set
 * makes of it, which gp_spec_edit checks; here: all but one piece of the text stays. */
#include "fuzz.h"

static void one(const char *data, size_t n)
{
    const char *end = memchr(data, '\n', n);
    if (!end || memchr(data, 0, (size_t)(end - data)))
        return;
    char *assignment = strndup(data, (size_t)(end - data));
    const char *text = end + 1;
    size_t len = n - (size_t)(text - data), m = 0;
    gp_arena a = { 0 };
    gp_errs errs = { 0 };
    jmp_buf oom;
    a.oom = &oom;
    if (!setjmp(oom)) {
        const char *is = gp_spec_edit(&a, text, len, "p.yaml", assignment, fuzz_registry(), &m, &errs);
        MUST((is == NULL) == (errs.failed > 0));
        size_t before = 0, behind = 0, least = len < m ? len : m;
        while (is && before < least && text[before] == is[before])
            before++;
        while (is && behind < least - before && text[len - 1 - behind] == is[m - 1 - behind])
            behind++;
        MUST(!is || !is[m]);
        MUST(!is || m - before - behind <= 8 * strlen(assignment) + 16);       /* quotes, braces, blanks in front */
        fuzz_print_errs(&errs, text, len);
    }
    gp_arena_free(&a);
    free(assignment);
}

const fuzz_harness fuzz_edit = { .name = "edit", .one = one };
