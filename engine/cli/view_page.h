/* view_page.h - the page of 'gpipe run --view', and what it asks for: served by metrics.c, which knows HTTP. */
#pragma once

#include "cli/live.h"

typedef struct gp_view_page gp_view_page;
gp_view_page *gp_view_page_new(void);      /* NULL: no memory */
void gp_view_page_free(gp_view_page *v);   /* accepts NULL */

/* What a browser asks for: `url`, and the values of its arguments, "" where there is none. `now`: what runs. */
typedef struct gp_view_ask { const gp_pipeline *now; const char *url, *buffer, *after; } gp_view_ask;
/* Writes it; returns the status: 200, 204 (no new frame), 404. *type: what it is. One thread. */
unsigned gp_view_page_get(gp_view_page *v, const gp_view_ask *ask, FILE *to, const char **type);
