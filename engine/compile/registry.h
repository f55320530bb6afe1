/* registry.h - where the kinds of a registry come from, for what loads plug-ins (api/plugin.c) and for messages. */
#pragma once

#include "gpipe/gpipe.h"

/* A plug-in that was loaded; the registry's, with its strings. */
typedef struct gp_plugged {
    gp_plugin_info info;
    const char *begin, *end;   /* where it lies in memory */
    struct gp_plugged *next;
    char text[];
} gp_plugged;

/* All that were loaded, the newest first. */
const gp_plugged *gp_registry_plugged(const gp_registry *r);
/* Adds the kinds of a plug-in, whose strings are copied: all, or after an error none. */
bool gp_registry_plug(gp_registry *r, const gp_plugin *p, const char *file, const char *begin, const char *end,
                      gp_errs *errs);
/* Notes the file of a plug-in that is being opened, or NULL, for gp_plugin_opening(). */
void gp_registry_opening(gp_registry *r, const char *file);
/* Notes a folder that plug-ins were looked for in, or one that could not be loaded, for who misses a kind. */
void gp_registry_looked(gp_registry *r, const char *folder);
void gp_registry_failed(gp_registry *r, const char *file);
/* Adds an error: there is no kind of that name, and which one was meant, or what became of plug-ins. Returns false. */
bool gp_registry_lacks(const gp_registry *r, const char *name, gp_code code, gp_loc at, gp_errs *errs);
/* "a.so could not be loaded; plug-ins were looked for in x, y", malloc'd; NULL: neither was, or there is no memory.
 * `near`: the name that was meant is known, and the folders do not matter unless one failed. */
char *gp_registry_missing(const gp_registry *r, bool near);
