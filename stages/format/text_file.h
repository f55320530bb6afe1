/* text_file.h - what the two halves of the format share: text_read.c and text_file.c (writing). Numbers as text:
 * CSV, TSV, and JSON lines, see rows_file.h. */
#pragma once

#include "rows_file.h"

bool gp_text_head(const gp_rows_head *h, const gp_rowsfile_how *how, gp_type *whole, char err[GP_WHY]);
gp_rows *gp_text_open(int fd, const gp_rowsfile_how *how, char err[GP_WHY]);
bool gp_text_read(gp_rows *f, void **own, int64_t first, int64_t n, void *to, char err[GP_WHY]);
void gp_text_leave(void *own);
void gp_text_close(gp_rows *f);
/* An element as CSV has it: the fewest digits that are read back to the same bits. Its length. */
int gp_text_element(char to[GP_FILEMETA_NUMBER], const void *from, gp_dtype t);
