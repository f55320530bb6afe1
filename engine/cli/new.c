/* new.c - gpipe new: a pipeline to start from, or a plug-in.
 *
 * A file that exists is never written to. */
#include <errno.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base/embed.h"
#include "base/why.h"
#include "cli/verb.h"

static const char folder[] = "engine/cli/starters/", plugin[] = "engine/cli/starters/plugin/";

/* The name of a starter without folder and extension; false: the blob is something else. */
static bool name_of(const gp_blob *b, char name[32])
{
    if (strncmp(b->name, folder, sizeof folder - 1) || !strncmp(b->name, plugin, sizeof plugin - 1))
        return false;
    const char *s = b->name + sizeof folder - 1;
    snprintf(name, 32, "%.*s", (int)strcspn(s, "."), s);
    return true;
}

static const gp_blob *find(const char *from, gp_errs *errs)
{
    static char list[256];
    char name[32];
    for (const gp_blob *b = gp_blobs; b->name; b++)
        if (name_of(b, name)) {
            if (!strcmp(name, from))
                return b;
            snprintf(list + strlen(list), sizeof list - strlen(list), "%s%s", *list ? ", " : "", name);
        }
    gp_usage(errs, "no example '%s'; there are %s", from, list);
    return NULL;
}

/* The example that a new file begins with where none is said: the one of its name, if there is one. */
static const char *like(const char *file)
{
    const char *slash = strrchr(file, '/'), *own = slash ? slash + 1 : file;
    static char name[32];
    for (const gp_blob *b = gp_blobs; b->name; b++)
        if (name_of(b, name) && strlen(name) == strcspn(own, ".") && !strncmp(name, own, strlen(name)))
            return name;
    return "first";
}

/* Each with its first line, which is a comment. */
static void print_list(void)
{
    char name[32];
    printf("gpipe new NAME --from EXAMPLE writes NAME.yaml; gpipe new EXAMPLE writes EXAMPLE.yaml; the examples are\n\n");
    for (const gp_blob *b = gp_blobs; b->name; b++)
        if (name_of(b, name))
            printf("  %-12s  %.*s\n", name, (int)strcspn((const char *)b->data + 2, "\n"), (const char *)b->data + 2);
}

/* The text, with `by` in the place of each `word`. */
static void put_text(FILE *to, const gp_blob *b, const char *word, const char *by)
{
    const char *s = (const char *)b->data, *end = (const char *)b->end;
    for (const char *at; (at = strstr(s, word)); s = at + strlen(word))
        fprintf(to, "%.*s%s", (int)(at - s), s, by);
    fwrite(s, 1, (size_t)(end - s), to);
}

static bool make(const char *file, const char *head, const gp_blob *b, const char *word, const char *by, gp_errs *errs)
{
    bool fits = strlen(file) < PATH_MAX;
    FILE *f = fits ? fopen(file, "wx") : NULL;
    if (!f)
        return gp_fail(errs, GP_E_RUN, (gp_loc){ 0 }, "cannot make '%.300s': %s", file, !fits ? "its name is too long"
                       : errno == EEXIST ? "it is there already; give another name" : gp_strerror(errno));
    fputs(head, f);
    put_text(f, b, word, by);
    bool whole = !ferror(f);
    if (!fclose(f) && whole)
        return true;
    gp_fail(errs, GP_E_RUN, (gp_loc){ 0 }, "cannot write '%.300s': %s", file, gp_strerror(errno));
    remove(file);
    return false;
}

/* A folder with the files of plugin/, in whose names and texts NAME is its name. */
static bool make_plugin(const char *path, gp_errs *errs)
{
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    static const char letters[] = "abcdefghijklmnopqrstuvwxyz_0123456789";
    char file[PATH_MAX + 64];
    if (!*name || *name < 'a' || *name > 'z' || name[strspn(name, letters)] || strlen(path) >= PATH_MAX)
        return gp_usage(errs, "'%.300s' is not the name of a plug-in: kinds begin with it, and it has lower-case "
                        "letters, digits and _ alone", name);
    if (mkdir(path, 0777))
        return gp_fail(errs, GP_E_RUN, (gp_loc){ 0 }, "cannot make '%.300s': %s", path,
                       errno == EEXIST ? "it is there already; give another name" : gp_strerror(errno));
    for (const gp_blob *b = gp_blobs; b->name; b++)
        if (!strncmp(b->name, plugin, sizeof plugin - 1)) {
            const char *own = b->name + sizeof plugin - 1;
            bool named = !strncmp(own, "NAME", 4);
            snprintf(file, sizeof file, "%s/%s%s", path, named ? name : "", named ? own + 4 : own);
            if (!make(file, "", b, "NAME", name, errs))
                return false;
        }
    fprintf(stderr, "gpipe: made the plug-in '%s'; try: make -C %s test run\n", path, path);
    return true;
}

/* Where there is a schema beside a pipeline, the line by which the YAML language server finds it; else "". */
static const char *schema_line(const char *file)
{
    static const char schema[] = "gpipe.schema.json";
    char path[PATH_MAX + sizeof schema];
    const char *slash = strrchr(file, '/');
    snprintf(path, sizeof path, "%.*s%s", slash ? (int)(slash + 1 - file) : 0, file, schema);
    return access(path, F_OK) ? "" : "# yaml-language-server: $schema=gpipe.schema.json\n";
}

static bool make_pipeline(const char *name, const char *from, gp_errs *errs)
{
    char file[PATH_MAX + 8], by[PATH_MAX + 8];
    const char *slash = strrchr(name, '/'), *dot = strrchr(name, '.');
    if (!*name || (slash && !slash[1]))
        return gp_usage(errs, "'%.300s' is not the name of a file: write gpipe new NAME", name);
    bool ends = dot && (!strcmp(dot, ".yaml") || !strcmp(dot, ".yml"));
    snprintf(file, sizeof file, "%s%s", name, ends ? "" : ".yaml");
    from = from ? from : like(file);
    const gp_blob *b = find(from, errs);
    snprintf(by, sizeof by, " %.*s", PATH_MAX, file);
    if (!b || !make(file, schema_line(file), b, " FILE", by, errs))
        return false;
    fprintf(stderr, "gpipe: made '%s' from example '%s'; try: gpipe run %s\n", file, from, file);
    return true;
}

static int new(const gp_args *args, const gp_registry *registry, gp_errs *errs)
{
    bool of_two = args->noperands == 2, is_plugin = args->noperands && !strcmp(args->operand[0], "plugin");
    if (!args->noperands)
        print_list();
    else if (of_two != is_plugin || (is_plugin && args->from))
        gp_usage(errs, "write gpipe new plugin NAME, or, for a pipeline, gpipe new NAME");
    else if (is_plugin)
        make_plugin(args->operand[1], errs);
    else
        make_pipeline(args->operand[0], args->from, errs);
    return gp_errs_exit(errs);
}

const gp_verb gp_verb_new = {
    .name = "new", .operand = "[NAME | plugin NAME]", .max = 2, .place = 100,
    .help = "write a pipeline to start from, or a plug-in, with comments, or list the examples",
    .more = "Writes NAME.yaml, which must not exist. It runs as it is, unless it reads pictures of\n"
            "yours. 'plugin NAME' writes a folder NAME with kinds of stages in C, a test of each, and a\n"
            "Makefile: see 'gpipe help plugins'.\n",
    .run = new,
    .options = (const gp_option[]){
        { "from", 0, "EXAMPLE", GP_TO_TEXT(from), "the example to start from; default first" },
        { 0 } },
};
