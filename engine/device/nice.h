/* nice.h - the priority of a thread. */
#pragma once

#include "compile/ir.h"

/* The thread that calls it gets this priority, from what it was started with: `low` gives way to others on its core,
 * `high` goes before them. Once, as only some processes may raise it again. False: it may not have that; it is as it
 * was. */
bool gp_thread_nice(gp_priority p);
