/* wire.h - what wire.c, buffers.c and ports.c share. */
#pragma once

#include "compile/resolve.h"

/* buffers.c: reads `buffers:`; once stages have made theirs, `like`. */
void gp_read_buffers(gp_resolving *r, const gp_node *buffers);
void gp_follow_likes(gp_resolving *r);
/* The buffer of that name, or NULL. */
gp_rbuf *gp_find_buffer(gp_resolving *r, const char *name);
/* "; did you mean ...": of the buffers that have frames or are constant. */
const char *gp_near_buffer(const gp_resolving *r, gp_near *near);
/* Is it a name that a stage or buffer (`what`) may have? Else an error at `at`. */
bool gp_check_label(gp_resolving *r, const char *what, const char *name, gp_loc at);

/* ports.c: connects outputs, then inputs, of a stage. */
void gp_wire_out(gp_resolving *r, gp_rstage *st);
void gp_wire_in(gp_resolving *r, gp_rstage *st);
/* The fixed ports of a list; *star: any others may follow. */
int gp_count_ports(const gp_port *p, bool *star);
