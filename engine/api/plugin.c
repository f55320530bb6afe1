/* plugin.c - plug-ins: shared objects whose kinds are added to a registry.
 *
 * What a plug-in says of itself is read with care, since it may have been built with the headers of another gpipe:
 * first its ABI, then as much of gp_plugin as both know. */
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include "base/c_locale.h"
#include "base/path.h"
#include "base/why.h"
#include "compile/registry.h"

#define SYMBOL "gp_plugin_entry"

/* Why a plug-in is refused, with its file; `code` is GP_E_WARN where others go on without it. */
#define REFUSE(...) gp_fail(errs, code, (gp_loc){ 0 }, "plug-in " __VA_ARGS__)

/* ---- one ------------------------------------------------------------- */

/* The functions that plug-ins call are those of this library: where a program opened it for itself alone, as Python
 * does, they become visible to all that is opened later. */
static void show_own_symbols(void)
{
    Dl_info own;
    void *library = dladdr(SYMBOL, &own) ? dlopen(own.dli_fname, RTLD_NOW | RTLD_GLOBAL | RTLD_NOLOAD) : NULL;
    if (library)
        dlclose(library);
}

/* dlerror's text without the file's name before it. */
static const char *open_error(const char *file)
{
    const char *why = dlerror();
    size_t n = strlen(file);
    if (why && !strncmp(why, file, n) && !strncmp(why + n, ": ", 2))
        why += n + 2;
    return why ? why : "no reason is known";
}

static const char *advice(const char *why)
{
    return !strstr(why, "undefined symbol") ? ""
         : strstr(why, "symbol: gp_") ? "; it needs a newer gpipe, or a program that shows its functions (-rdynamic)"
         : "; link it with the library that has this symbol";
}

/* Where the object lies that has an address. */
typedef struct place { const char *at, *begin, *end; } place;

static int find_place(struct dl_phdr_info *object, size_t size, void *arg)
{
    place *p = arg;
    const char *begin = NULL, *end = NULL;
    for (int i = 0; i < object->dlpi_phnum; i++) {
        const ElfW(Phdr) *h = &object->dlpi_phdr[i];
        const char *at = (const char *)(uintptr_t)(object->dlpi_addr + h->p_vaddr);
        if (h->p_type != PT_LOAD)
            continue;
        begin = begin ? begin : at;            /* they are in the order of their addresses */
        end = at + h->p_memsz;
    }
    if (p->at < begin || p->at >= end)
        return 0;
    p->begin = begin, p->end = end;
    return 1;
}

/* A copy of what the plug-in shows, as large as ours. */
static bool read_entry(const gp_plugin *p, const char *file, gp_plugin *copy, gp_code code, gp_errs *errs)
{
    const unsigned char *bytes = (const unsigned char *)p;
    if (p->abi > GP_ABI)
        return REFUSE("'%s' was built for a newer gpipe: its ABI is %u, that of this gpipe %d", file, p->abi, GP_ABI);
    if (p->abi < GP_ABI || p->size < offsetof(gp_plugin, kinds) + sizeof p->kinds)
        return REFUSE("'%s' was built for another gpipe: its ABI is %u, that of this gpipe %d; build it again with the "
                      "headers of this gpipe", file, p->abi, GP_ABI);
    for (size_t i = sizeof *p; i < p->size; i++)
        if (bytes[i])
            return REFUSE("'%s' uses something that this gpipe does not have (byte %zu of %s); it needs a newer gpipe",
                          file, i, SYMBOL);
    *copy = (gp_plugin){ .abi = p->abi };
    memcpy(copy, p, p->size < sizeof *copy ? p->size : sizeof *copy);
    return (p->name && *p->name && p->version && p->kinds)
        || REFUSE("'%s': its %s lacks a name, a version or kinds", file, SYMBOL);
}

/* Another of the same name counts already. */
static const gp_plugged *find_named(const gp_registry *r, const char *name)
{
    const gp_plugged *p = gp_registry_plugged(r);
    while (p && strcmp(p->info.name, name))
        p = p->next;
    return p;
}

static bool same_folder(const char *a, const char *b)
{
    size_t n = gp_path_folder(a);
    return n == gp_path_folder(b) && !strncmp(a, b, n);
}

static bool add_opened(gp_registry *r, const gp_plugin *entry, const char *file, gp_code code, gp_errs *errs)
{
    gp_plugin p;
    if (gp_plugin_at(r, entry))
        return true;
    if (!read_entry(entry, file, &p, code, errs))
        return false;
    const gp_plugged *other = find_named(r, p.name);
    if (other && code == GP_E_WARN && !same_folder(other->info.file, file))
        return true;                           /* as in PATH, the first counts */
    if (other)
        return REFUSE("'%s' is named '%s', as %s is", file, p.name, other->info.file);
    place is = { .at = (const char *)entry };
    gp_errs why = { .n = 0 };
    dl_iterate_phdr(find_place, &is);
    if (gp_registry_plug(r, &p, file, is.begin, is.end, &why))
        return true;
    code = code == GP_E_USAGE ? why.e[0].code : code;          /* memory may be short */
    return REFUSE("'%s': %s", file, why.e[0].msg);
}

static bool load(gp_registry *r, const char *named, gp_code code, gp_errs *errs)
{
    char file[PATH_MAX];
    struct stat st;
    if (!realpath(named, file) || stat(file, &st))
        return REFUSE("'%s' cannot be opened: %s", named, gp_strerror(errno));
    if (!S_ISREG(st.st_mode))
        return REFUSE("'%s' is no file%s", named,
                      S_ISDIR(st.st_mode) ? ": folders of plug-ins are named in GPIPE_PLUGINS" : "");
    show_own_symbols();
    gp_registry_opening(r, file);              /* until what it runs by itself has been run */
    void *library = dlopen(file, RTLD_NOW | RTLD_LOCAL);
    const char *why = library ? NULL : open_error(file);
    const gp_plugin *entry = library ? dlsym(library, SYMBOL) : NULL;
    bool ok = !library ? REFUSE("'%s' cannot be opened: %s%s", named, why, advice(why))
            : entry ? add_opened(r, entry, file, code, errs)
            : REFUSE("'%s' is no plug-in of gpipe: it has no symbol '%s'", named, SYMBOL);
    if (library && (!entry || !gp_plugin_at(r, entry)))
        dlclose(library);
    gp_registry_opening(r, NULL);
    return ok;
}

bool gp_plugin_load(gp_registry *r, const char *file, gp_errs *errs)
{
    GP_C_LOCALE;
    return load(r, file, GP_E_USAGE, errs);
}

/* ---- all ------------------------------------------------------------- */

static void load_or_warn(gp_registry *r, const char *file, gp_errs *errs)
{
    if (!load(r, file, GP_E_WARN, errs))
        gp_registry_failed(r, file);
}

static int is_object(const struct dirent *e)
{
    size_t n = strlen(e->d_name);
    return n > 3 && !strcmp(e->d_name + n - 3, ".so");
}

static void load_folder(gp_registry *r, const char *folder, gp_errs *errs)
{
    struct dirent **found;
    char file[PATH_MAX];
    int n = scandir(folder, &found, is_object, alphasort);
    gp_registry_looked(r, folder);
    for (int i = 0; i < n; free(found[i++]))
        if (snprintf(file, sizeof file, "%s/%s", folder, found[i]->d_name) < (int)sizeof file)
            load_or_warn(r, file, errs);
    if (n >= 0)
        free(found);
    else if (errno != ENOENT && errno != ENOTDIR)
        gp_fail(errs, GP_E_WARN, (gp_loc){ 0 }, "plug-ins in '%s' cannot be looked for: %s", folder,
                gp_strerror(errno));
}

static void load_listed(gp_registry *r, const char *list, gp_errs *errs)
{
    char one[PATH_MAX];
    struct stat st;
    for (size_t n; *list; list += n + (list[n] == ':')) {
        n = strcspn(list, ":");
        if (!n || n >= sizeof one)
            continue;
        snprintf(one, sizeof one, "%.*s", (int)n, list);
        if (!stat(one, &st) && S_ISDIR(st.st_mode))
            load_folder(r, one, errs);
        else
            load_or_warn(r, one, errs);
    }
}

/* The PREFIX that this program, or the shared library, is installed under: what is above bin, lib, lib64 or lib/TRIPLET.
 * False: there is none, as for one that was built and not installed. */
static bool find_prefix(char prefix[PATH_MAX])
{
    Dl_info own;
    const char *file = dladdr(SYMBOL, &own) && strchr(own.dli_fname, '/') ? own.dli_fname : "/proc/self/exe";
    if (!realpath(file, prefix))
        return false;
    *strrchr(prefix, '/') = 0;
    char *last = strrchr(prefix, '/');
    if (last && !strcmp(last, "/bin"))
        return *last = 0, true;
    for (int up = 0; up < 2 && last && last > prefix; up++) {
        if (!strcmp(last, "/lib") || !strcmp(last, "/lib64"))
            return *last = 0, true;
        *last = 0, last = strrchr(prefix, '/');
    }
    return false;
}

void gp_plugins_find(gp_registry *r, gp_getenv get, const void *arg, gp_errs *errs)
{
    GP_C_LOCALE;
    const char *listed = get(arg, "GPIPE_PLUGINS"), *data = get(arg, "XDG_DATA_HOME"), *home = get(arg, "HOME");
    char prefix[PATH_MAX], folder[PATH_MAX + 32];
    if (listed)
        load_listed(r, listed, errs);
    bool given = data && *data == '/';         /* a relative one is to be ignored, the specification says */
    snprintf(folder, sizeof folder, "%s%s/gpipe/plugins", given ? data : home ? home : "",
             given ? "" : "/.local/share");
    if (given || (home && *home))
        load_folder(r, folder, errs);
    if (find_prefix(prefix)) {
        snprintf(folder, sizeof folder, "%s/lib/gpipe/plugins", prefix);
        load_folder(r, folder, errs);
    }
}
