/* forms.h - the forms that a pipeline was compiled through, for those who draw them. */
#ifndef GP_FORMS_H
#define GP_FORMS_H

#include "compile/ir.h"

/* Borrowed from the pipeline. */
const gp_spec *gp_pipeline_spec(const gp_pipeline *p);
const gp_graph *gp_pipeline_graph(const gp_pipeline *p);
const gp_plan *gp_pipeline_plan(const gp_pipeline *p);

#endif
