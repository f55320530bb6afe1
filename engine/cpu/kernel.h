/* kernel.h - CUDA kernels on a CPU: grids, and user sources (fiber.c, cc.c). */
#pragma once

#include <limits.h>
#include <stdatomic.h>
#include "base/embed.h"
#include "device/backend.h"
#include "device/cache.h"
#include "device/source.h"
#include <gpipe/gpipe.h>

/* What one OS thread needs to run grids: fibers for kernels that wait at
 * barriers, made at first need and kept; dynamic shared memory. Not thread-safe:
 * one per thread. */
typedef struct gp_cpu_runner gp_cpu_runner;
gp_cpu_runner *gp_cpu_runner_create(void);                 /* NULL: no memory */
void gp_cpu_runner_destroy(gp_cpu_runner *r);
/* In a handler: was it a fault just beyond the stack of the kernel's thread that runs? */
bool gp_cpu_runner_overflows(const gp_cpu_runner *r, const void *address);

/* Runs the whole grid on the calling thread, block after block. `args` as for
 * a CUDA launch. False when there is no memory for fibers, or threads wait for each other without end
 * (gp_cpu_runner_trouble). */
bool gp_cpu_grid(gp_cpu_runner *r, const gp_cpu_entry *k, gp_dim3 grid, gp_dim3 block,
                 size_t shared, void *const *args);

/* What threads of the last grid did that no GPU allows either; NULL: nothing. */
const char *gp_cpu_runner_trouble(const gp_cpu_runner *r);

/* The same for a grid whose threads may wait for each other, by grid.sync(). The kernel is in a
 * library of its own, as users' are. */
bool gp_cpu_cooperative(gp_cpu_runner *r, const gp_cpu_entry *k, gp_dim3 grid, gp_dim3 block,
                        size_t shared, void *const *args);
/* The most blocks that such a grid can have, where so many streams may run one each. */
unsigned gp_cpu_cooperative_max(int streams, gp_dim3 block);

/* To be gone to by a thread of a kernel, on its own stack, in place of what it was doing:
 * ends the grid, for which gp_cpu_grid() then returns false. */
_Noreturn void gp_cpu_abandon(gp_cpu_runner *r);

/* check.c: runs a grid of a user's kernel on copies of what it was given, beside memory that
 * cannot be touched. */
typedef struct gp_check gp_check;

/* For a launch with these arguments, as `r` has been told of what the stage was given.
 * NULL: no memory. `source` is borrowed. */
gp_check *gp_check_create(const gp_rec *r, const gp_cpu_entry *k, const gp_source *source,
                          void *const *args);
void gp_check_destroy(gp_check *c);
/* As gp_cpu_grid; false after an error. `args` are changed. */
bool gp_check_grid(gp_check *c, gp_cpu_runner *r, gp_dim3 grid, gp_dim3 block, size_t shared,
                   void **args, gp_errs *errs);

/* saved_variables.c: all that the library which `code` is in can write of its own, as it is now. NULL: no
 * memory. put_back makes it so again, on the thread that runs the kernel. */
typedef struct gp_cpu_saved gp_cpu_saved;
gp_cpu_saved *gp_cpu_keep(const void *code);
void gp_cpu_put_back(const gp_cpu_saved *k);
void gp_cpu_keep_no_more(gp_cpu_saved *k);

/* lines.c: the line of the user's files that `pc`, in the kernel's code, was made of. False:
 * that cannot be found out. Slow: compiles it again, with a table of lines. */
bool gp_cpu_line(const gp_source *source, const void *pc, char file[PATH_MAX], int *line);
/* cc.c: compiles a unit again, to the same code with a table of lines, to the file `to`; `dir`
 * is for what the compiler writes beside it. */
bool gp_cc_lines(const gp_unit *u, const char *dir, const char *to);

/* headers.c: writes the headers of the CUDA toolkit that gpipe has of its own to the folder `dir`,
 * where the compiler is to look first; what they are is part of the cache's key. */
bool gp_cc_headers_put(const gp_source *src, const char *dir, gp_errs *errs);
void gp_cc_headers_hash(gp_hash *h);

/* What gp_kernel_at_fault() says of a fault of this thread, as of initial values that a kernel's library computes
 * when it is loaded; NULL: nothing. cpu.c */
void gp_cpu_loads(const char *kernel);

/* Compiles a user's kernel with the system's C++ compiler ($CXX, c++, g++,
 * clang++), or finds it in the disk cache; loads it. `*dl` is for dlclose.
 * False after errors that name the user's file and line, or the stage when there
 * is no compiler; or with none, once `*cancel` (or NULL) is not 0. */
bool gp_cc_compile(const gp_source *src, const atomic_int *cancel, gp_cpu_entry *k, void **dl,
                   gp_errs *errs);

/* written_variables.c: false, with an error, if launches of the source overlap (gp_source.overlaps) and its library has
 * a variable that they could change. */
bool gp_source_writes_no_variable(const gp_source *src, const void *data, size_t bytes, gp_errs *errs);
