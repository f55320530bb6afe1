/* filemeta.h - the numbers that travel with a frame (the pipeline's `metadata`), as files have them.
 *
 * A number is text: the fewest digits that are read back to the same bits. Errors are as in files.h. */
#pragma once

#include "base/path.h"
#include "gpipe/stage.h"

enum { GP_FILEMETA_NUMBER = 32, GP_FILEMETA_JSON = GP_META_KEYS * (GP_META_NAME + 6 + GP_FILEMETA_NUMBER) + 16 };

typedef struct gp_filemeta {
    int n;                             /* names that are asked for, or known; */
    const char *const *key;            /* as the pipeline lists them */
    unsigned has;                      /* a set of those that have a value */
    double value[GP_META_KEYS];         /* of all but `time`, */
    int64_t time_ns;                   /* ... which is the frame's, since 1970 */
} gp_filemeta;

/* The names that the pipeline lists, without a value yet; the values that frame f has; f gets the values. */
gp_filemeta gp_filemeta_none(const gp_call *c);
gp_filemeta gp_filemeta_of_frame(const gp_call *c, const gp_frame *f);
void gp_filemeta_to_frame(const gp_call *c, gp_frame *f, const gp_filemeta *s);

/* Notes a number, if it is asked for. */
void gp_filemeta_set(gp_filemeta *s, const char *key, double value);
/* Which of the names that is, -1: none of them. */
int gp_filemeta_find(const gp_filemeta *s, const char *key, size_t n);
/* Notes what a file says by text, of which it has `n` bytes: a number, else an error. */
bool gp_filemeta_parse(gp_filemeta *s, int i, const char *text, size_t n, char err[GP_WHY]);

/* The text of one that it has; its length. */
int gp_filemeta_format(const gp_filemeta *s, int i, char to[GP_FILEMETA_NUMBER]);
/* {"exposure": 0.02}, and so many blanks that the text and its NUL have a multiple of 8 bytes; its length. Without any
 * number 0, and nothing. */
size_t gp_filemeta_to_json(const gp_filemeta *s, char to[GP_FILEMETA_JSON]);
/* Notes the numbers of such an object, whatever else is in it; of a text that does not begin as one, nothing. One
 * that is torn is an error, if it names a number that is asked for. */
bool gp_filemeta_from_json(gp_filemeta *s, const char *text, char err[GP_WHY]);

/* text_file.c: a number and its length; of a text that is a finite number. */
int gp_text_spell(char to[GP_FILEMETA_NUMBER], double x);
bool gp_text_number(const char *text, double *x);
