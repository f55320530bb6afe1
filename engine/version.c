/* version.c - the commit this was built from; the Makefile passes it to this
 * file only, so that a commit makes nothing else anew. */
#include "cli.h"

#ifndef GP_COMMIT
#define GP_COMMIT ""
#endif

const char gp_commit[] = GP_COMMIT;
