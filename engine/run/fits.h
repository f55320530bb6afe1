/* fits.h - what differs between two pipelines, and whether a run of one can go on under the plan of the other. */
#ifndef GP_FITS_H
#define GP_FITS_H

#include "run/pipeline.h"

/* Can a run of pipeline p go on with what one of `from` has come to? Notes in p which stages are then opened again.
 * False after an error at what differs. */
bool gp_paused_fits(gp_pipeline *p, const gp_pipeline *from, gp_errs *errs);

#endif
