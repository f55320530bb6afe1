/* schema.h - what a pipeline file may say, for editors. */
#ifndef GP_SCHEMA_H
#define GP_SCHEMA_H

#include <stdio.h>
#include "gpipe/gpipe.h"

/* Writes a JSON Schema (draft 7) of pipeline files: the keys, and the options of all kinds. */
void gp_schema_write(FILE *f, const gp_registry *registry);

#endif
