/* inputs.h - the files and folders that a run reads, and whether they have the bytes that it read. */
#pragma once

#include <stdatomic.h>
#include <sys/stat.h>
#include "base/table.h"
#include "base/why.h"
#include "device/cache.h"
#include "run/pipeline.h"

typedef struct gp_input {
    const char *path, *of;             /* of: "stage 'read'" */
    struct stat was;
    bool early, compared;              /* early: it is hashed before the run; compared: the record has it */
    gp_key sum, stamp;                 /* stamp: of a folder, before the run */
    char why[GP_WHY];                  /* "" once it is hashed */
} gp_input;

typedef struct gp_inputs {
    gp_arena *a;
    gp_table index;
    gp_input *v; int n, cap;
} gp_inputs;

/* Hashing goes on until this is set, or as long as the run is not to end. */
typedef struct gp_until { const atomic_bool *stop; int (*level)(void); } gp_until;

/* Adds what the pipeline reads to `all`, which has an arena alone. */
void gp_inputs_list(gp_inputs *all, const gp_pipeline *p);
/* By its name, or another name of the same file: the pipeline may name it without its folder. NULL: it is not read. */
gp_input *gp_inputs_find(const gp_inputs *all, const char *path);
/* Before a run: hashes what it may change itself, and notes what tells whether the rest changes. Beside it: the rest. */
void gp_inputs_hash_early(gp_inputs *all, const gp_until *);
void gp_inputs_hash_late(gp_inputs *all, const gp_until *);
void gp_input_hash(gp_input *in, const gp_until *);
/* Was it there, with bytes that can be had again? A file at standard input may be read from its middle. */
bool gp_input_is_kept(const gp_input *in);
/* After a run: why the bytes that it read have no hash; NULL: they have. */
const char *gp_input_lacks(const gp_input *in);
