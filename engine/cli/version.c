/* version.c - the commit, the Lua and the back ends that this was built from; the Makefile passes them
 * to this file only, so that a commit makes nothing else anew. */
#include "cli/cli.h"

#ifndef GP_COMMIT
#define GP_COMMIT ""
#endif
#ifndef GP_LUA
#define GP_LUA "lua"
#endif
#ifndef GP_BACKENDS
#define GP_BACKENDS "cpu"
#endif

const char gp_commit[] = GP_COMMIT, gp_lua[] = GP_LUA, gp_built[] = GP_BACKENDS;

const char *gp_version_text(char buf[96])
{
    snprintf(buf, 96, *gp_commit ? "%s (commit %s)" : "%s", GP_VERSION, gp_commit);
    return buf;
}
