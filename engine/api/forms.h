/* forms.h - the forms that a pipeline was compiled through, for those who draw them. */
#pragma once

#include "compile/ir.h"
#include "gpipe/gpipe.h"

/* Borrowed from the pipeline. */
const gp_spec *gp_pipeline_spec(const gp_pipeline *p);
const gp_graph *gp_pipeline_graph(const gp_pipeline *p);
const gp_plan *gp_pipeline_plan(const gp_pipeline *p);

/* The arena of a pipeline goes, the errors stay, from `from` on: a place whose file's name is neither the caller's nor of
 * a file that the spec includes moves into the message. `spec` may be NULL. */
void gp_errs_free_places(gp_errs *errs, int from, const char *file, const gp_spec *spec, const gp_config *config);
