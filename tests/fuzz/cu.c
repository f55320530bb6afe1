/* cu.c - a user's kernel: its text is scanned, what a compiler said of it becomes errors. No compiler runs.
 *
 * An input is the source, then sections that begin with a line "//== NAME": "log" is what the compiler wrote, any other
 * a file beside the source. */
#include "device/cache.h"
#include "device/source.h"
#include "fuzz.h"

enum { SECTIONS = 6 };
static const char begin[] = "//== ";

static struct section { char name[40]; char *text; size_t n; } section[SECTIONS];
static int nsections;

/* In place of the one that reads files (linked with --wrap): only sections are there. */
char *__wrap_gp_slurp(const char *path, size_t most, size_t *bytes, char err[GP_WHY]);
char *__wrap_gp_slurp(const char *path, size_t most, size_t *bytes, char err[GP_WHY])
{
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    for (int i = 0; i < nsections; i++) {
        if (strcmp(section[i].name, name))
            continue;
        char *text = malloc(section[i].n + 1);
        memcpy(text, section[i].text, section[i].n);
        text[section[i].n] = 0;
        *bytes = section[i].n;
        return text;
    }
    gp_why(err, "is not there");
    return NULL;
}

/* Cuts `text`, which ends with a NUL, into sections. */
static void cut(char *text, size_t n)
{
    char *p = text, *end = text + n;
    nsections = 0;
    for (const char *name = "k.cu"; nsections < SECTIONS;) {
        struct section *s = &section[nsections++];
        char *next = memmem(p, (size_t)(end - p), begin, sizeof begin - 1);
        size_t len = strcspn(name, "\n");
        snprintf(s->name, sizeof s->name, "%.*s", (int)(len < 39 ? len : 39), name);
        s->text = p, s->n = (size_t)((next ? next : end) - p);
        if (!next)
            break;
        name = next + sizeof begin - 1;
        p = next + sizeof begin - 1 + strcspn(name, "\n");
        p += *p == '\n';
    }
}

static void one(const char *data, size_t n)
{
    static const char *const param[] = { "const float *", "float *", "int" };
    static const char *const define[] = { "RADIUS=3", "NAME" };
    char *text = malloc(n + 1);
    memcpy(text, data, n);
    text[n] = 0;
    cut(text, n);
    for (int cpu = 0; cpu < 2; cpu++) {
        gp_source src = { .path = "/k.cu", .entry = "k", .param = param, .nparam = 3,
                          .define = define, .ndefine = 2, .at = { "p.yaml", 3, 5, 1 } };
        gp_unit u;
        gp_errs errs = { 0 };
        bool ok = gp_unit_make(&u, &src, cpu, &errs);
        MUST(ok == !errs.failed);
        if (ok) {
            MUST(strlen(u.code) == strlen(u.user));
            size_t len;
            char name[50];
            gp_plain_symbol(u.user, name, sizeof name);
            gp_source_is_early(u.user, "k");
            MUST(strlen(name) < sizeof name && !gp_source_changes(&src, name, &errs) && !gp_source_waits(&src, &errs));
            for (const char *p = u.code; (p = gp_find_word(u.code, p, "include")); p++) {
                const char *operand = gp_include_operand(u.user, u.code, p);
                MUST(!operand || (operand > u.user && operand <= u.user + strlen(u.user)));
            }
            char why[GP_WHY], *log = __wrap_gp_slurp("log", 0, &len, why);
            gp_unit_errors(&u, log ? log : "p.cu:1:1: error: gpipe-check 1\n", &errs);
            MUST(errs.failed > 0);
            fuzz_print_errs(&errs, u.user, strlen(u.user));
            free(log);
        }
        gp_unit_free(&u);
    }
    free(text);
}

const fuzz_harness fuzz_cu = { .name = "cu", .one = one };
