/* new.c - gpipe new: a pipeline to start from.
 *
 * A file that exists is never written to. */
#include <errno.h>
#include <string.h>
#include "base/embed.h"
#include "base/why.h"
#include "cli/verb.h"

static const char folder[] = "engine/cli/starters/";

/* The name of a starter without folder and extension; false: the blob is something else. */
static bool name_of(const gp_blob *b, char name[32])
{
    if (strncmp(b->name, folder, sizeof folder - 1))
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
    gp_fail(errs, GP_E_USAGE, (gp_loc){ 0 }, "no example '%s'; there are %s", from, list);
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

/* The text, in which FILE stands for the file's name. */
static void put_text(FILE *to, const gp_blob *b, const char *file)
{
    const char *s = (const char *)b->data, *end = (const char *)b->end;
    for (const char *at; (at = strstr(s, " FILE")); s = at + 5)
        fprintf(to, "%.*s %s", (int)(at - s), s, file);
    fwrite(s, 1, (size_t)(end - s), to);
}

static int new(const gp_args *args, const gp_registry *registry, gp_errs *errs)
{
    (void)registry;
    char file[4096];
    if (!args->noperands) {
        print_list();
        return 0;
    }
    const char *name = args->operand[0], *slash = strrchr(name, '/'), *dot = strrchr(name, '.');
    if (!*name || (slash && !slash[1])) {
        gp_fail(errs, GP_E_USAGE, (gp_loc){ 0 }, "'%.300s' is not the name of a file: write gpipe new NAME", name);
        return gp_errs_exit(errs);
    }
    bool ends = dot && (!strcmp(dot, ".yaml") || !strcmp(dot, ".yml"));
    int n = snprintf(file, sizeof file, "%s%s", name, ends ? "" : ".yaml");
    const char *from = args->from ? args->from : like(file);
    const gp_blob *b = find(from, errs);
    if (!b)
        return gp_errs_exit(errs);
    FILE *f = n < (int)sizeof file ? fopen(file, "wx") : NULL;
    if (!f) {
        gp_fail(errs, GP_E_RUN, (gp_loc){ 0 }, "cannot make '%.300s': %s", file,
                n >= (int)sizeof file ? "its name is too long"
                : errno == EEXIST ? "it is there already; give another name" : gp_strerror(errno));
        return gp_errs_exit(errs);
    }
    put_text(f, b, file);
    bool whole = !ferror(f);
    if (fclose(f) || !whole) {
        gp_fail(errs, GP_E_RUN, (gp_loc){ 0 }, "cannot write '%.300s': %s", file, gp_strerror(errno));
        remove(file);
    } else {
        fprintf(stderr, "gpipe: made '%s' from example '%s'; try: gpipe run %s\n", file, from, file);
    }
    return gp_errs_exit(errs);
}

const gp_verb gp_verb_new = {
    .name = "new", .operand = "[NAME]", .max = 1, .place = 100,
    .help = "write a pipeline to start from, with comments, or list the examples",
    .more = "Writes NAME.yaml, which must not exist. It runs as it is, unless it reads pictures of\n"
            "yours.\n",
    .run = new,
    .options = (const gp_option[]){
        { "from", 0, "EXAMPLE", GP_TO_TEXT(from), "the example to start from; default first" },
        { 0 } },
};
