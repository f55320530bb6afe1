/* record.h - what is needed to repeat a run, written as a section `recorded` of its file (gpipe run --record). */
#pragma once

#include "gpipe/gpipe.h"

typedef struct gp_record gp_record;

/* What a pipeline does not know of its run. */
typedef struct gp_record_of {
    const char *path;                  /* of the record, or NULL */
    const char *commit, *scripts;      /* of this build */
    int ranks;
    int (*level)(void);                /* how urgently the run is to end; 0: it is not */
} gp_record_of;

/* Of a file that has such a section: is what the run is about to read what that run read? An error says what is not;
 * what else differs, and may make other bytes, is a warning. */
bool gp_record_check(const gp_pipeline *p, const gp_record_of *of, gp_errs *errs);
/* Opens the file and looks at what the run reads, before it does. NULL after an error. `of` is borrowed. */
gp_record *gp_record_open(gp_pipeline *p, const gp_record_of *of, gp_errs *errs);
/* The file until it is whole, which is to be removed if the process ends at once; NULL: there is none. */
const char *gp_record_temporary(const gp_record *r);
/* After the run: writes the record, unless it never began; gp_record_drop is to follow. Accepts NULL as `r`. */
void gp_record_close(gp_record *r, gp_outcome outcome, gp_errs *errs);
/* Writes nothing; accepts NULL. */
void gp_record_drop(gp_record *r);
