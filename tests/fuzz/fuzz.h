/* fuzz.h - harnesses: each gives any bytes to one part of gpipe that reads what others wrote.
 *
 * A harness is one file with one constant. It opens no file that its input names, takes a bounded time and keeps
 * nothing from one input to the next. What must hold for all inputs is a MUST; the sanitizers add theirs. Two programs
 * have all harnesses: one with libFuzzer (`make fuzz`), and one that only replays tests/fuzz/corpus (`make check`). */
#pragma once

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include "compile/ir.h"

typedef size_t (*fuzz_mutator)(uint8_t *data, size_t n, size_t max);

typedef struct fuzz_harness {
    const char *name;
    void (*one)(const char *data, size_t n);
    /* Optional: changes an input of n bytes in place, to at most `max`, by what it knows of
     * its form and by `plain`, libFuzzer's own; the new size. */
    size_t (*mutate)(uint8_t *data, size_t n, size_t max, unsigned seed, fuzz_mutator plain);
} fuzz_harness;

extern const fuzz_harness fuzz_cu, fuzz_edit, fuzz_expr, fuzz_jpeg, fuzz_lua, fuzz_module, fuzz_npy, fuzz_npz, fuzz_onnx,
                          fuzz_png, fuzz_pnm, fuzz_report, fuzz_set, fuzz_text_rows, fuzz_tiff, fuzz_top, fuzz_wire, fuzz_y4m,
                          fuzz_yaml, fuzz_zarr;
extern const fuzz_harness *const fuzz_all[];       /* ends with NULL */
const fuzz_harness *fuzz_find(const char *name);   /* NULL: there is none */

/* Stops the program, saying what did not hold. */
#define MUST(x) ((x) ? (void)0 : fuzz_wrong(__FILE__, __LINE__, #x))
_Noreturn void fuzz_wrong(const char *file, int line, const char *what);

/* ---- compiling without a disk (world.c) -------------------------------- */

/* All kinds, and two for any types: 'give' (a source) and 'take' (a sink). */
const gp_registry *fuzz_registry(void);
/* 0: without a GPU; 1: with one. */
const gp_machine *fuzz_machine(int ngpus);

/* What the file of this name holds while one input runs; all others are made up from their names, see world.c. */
void fuzz_file(const char *name, const char *data, size_t n);

typedef struct fuzz_forms {
    gp_arena arena;
    gp_spec *spec;
    const gp_graph *graph;
    gp_plan *plan;             /* NULL after errors */
    gp_errs errs;
} fuzz_forms;

/* All passes. Checks the errors: there are some just where there is no plan, none is a
 * bug, and each has a text and a place. */
extern int fuzz_ranks;         /* ... by one of so many; 0: there is one */
void fuzz_compile(fuzz_forms *f, const char *text, size_t n, const char *const *set, int nset, int ngpus, bool lenient);
/* The first passes, as far as the graph, for a text that must be right. */
void fuzz_resolve(fuzz_forms *f, const char *text);
void fuzz_forms_free(fuzz_forms *f);
/* Prints every error of a text as the command would. */
void fuzz_print_errs(const gp_errs *errs, const char *text, size_t n);

/* What `write` writes to a stream, as text; free() it. */
char *fuzz_text(void (*write)(FILE *f, const void *arg), const void *arg, size_t *n);
