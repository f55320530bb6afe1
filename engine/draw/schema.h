/* schema.h - what a pipeline file may say, for editors. */
#ifndef GP_SCHEMA_H
#define GP_SCHEMA_H

#include <stdio.h>
#include "gpipe/gpipe.h"

/* Writes a JSON Schema (draft 7) of pipeline files: the keys, and the options of all kinds. */
void gp_schema_write(FILE *f, const gp_registry *registry);

/* Option i of a kind, NULL behind the last. The last of a source is `shard`, a key of stages that is for sources alone. */
const gp_opt *gp_schema_option(const gp_kind *k, int i);

#endif
