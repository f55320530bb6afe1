/* where.h - YAML text as a list of its words, for an editor: the text is just being typed, and need not be YAML yet.
 *
 * Indentation and brackets decide which map or list a word is in. A bracket or quote that is not closed ends where a
 * line stands no deeper than what it is in, so that it spoils one entry, and not what follows. */
#pragma once

#include <stdbool.h>
#include "base/arena.h"

/* A piece of the text, by its bytes. */
typedef struct gp_span { size_t at, len; } gp_span;

/* A map or a list. */
typedef struct gp_box {
    int parent;                /* 0: of the whole text; that one has -1 */
    gp_span key;               /* the key that it stands behind; none in a list */
    bool list, flow;           /* flow: in brackets */
    int indent;                /* else: the column, from 0, of its keys or dashes */
    int open;                  /* the entry that waits for its value, or -1 */
} gp_box;

/* A key with a value, or a value alone: an item of a list, or what may become a key. */
typedef struct gp_word {
    int box;
    gp_span key, value;        /* a key's len is 0: there is none; a value's: it is a map, a list or absent */
} gp_word;

typedef struct gp_where {
    const char *text;
    gp_box *box; int nboxes;
    gp_word *word; int nwords;
    int boxes_cap, words_cap;
} gp_where;

/* Memory is the arena's; the text is borrowed. */
void gp_where_scan(gp_arena *a, gp_where *w, const char *text, size_t len);
/* Is what stands there this word? */
bool gp_where_is(const gp_where *w, gp_span s, const char *word);
/* The value of a key of that box, len 0: none. */
gp_span gp_where_get(const gp_where *w, int box, const char *key);
/* The entry with a word that has the byte `at`; -1: none. */
int gp_where_at(const gp_where *w, size_t at);
