/* dl.c - see dl.h. */
#include <dlfcn.h>
#include <string.h>
#include "base/dl.h"

bool gp_dl_open(const char *const *library, const gp_dl_symbol *symbol, const char *what,
                const char *advice, gp_loc at, gp_errs *errs)
{
    void *dl = NULL;
    int i = 0;
    while (library[i] && !(dl = dlopen(library[i], RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE)))
        i++;
    const char *why = dl ? NULL : dlerror();
    if (!dl)
        return gp_fail(errs, GP_E_RESOURCE, at, "%s needs %s, which cannot be opened (%s); %s",
                       what, library[0], why ? why : "no reason is known", advice);
    for (; symbol->name; symbol++) {
        void *f = dlsym(dl, symbol->name);
        if (!f) {
            dlclose(dl);
            return gp_fail(errs, GP_E_RESOURCE, at, "%s needs '%s', which %s does not have; %s",
                           what, symbol->name, library[i], advice);
        }
        memcpy(symbol->to, &f, sizeof f);
    }
    return true;
}
