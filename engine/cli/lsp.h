/* lsp.h - the parts of the language server: lsp.c has messages, documents and diagnostics, lsp_answer.c what is asked
 * about a place. */
#pragma once

#include "base/json.h"
#include "cli/cli.h"
#include "draw/names.h"

/* A document that an editor has open. */
typedef struct gp_doc {
    struct gp_doc *next;
    char *uri, *path;          /* path: for messages, and for the files that it names */
    char *text; size_t len;
    int64_t version;
    bool changed;              /* since it was checked */
    char *sound; size_t sound_len;     /* the last text that compiled; NULL: none */
    gp_arena arena;            /* of `names`: those of the last text that is a map */
    gp_names names;
} gp_doc;

typedef struct gp_lsp {
    const gp_args *args;
    const gp_registry *registry;
    gp_machine *machine;       /* made up: no device is looked for */
    gp_doc *docs;
    char *in; size_t n, cap;   /* what was read */
    jmp_buf *oom;              /* where to go without memory */
    bool ready, shut, ended;   /* initialize, shutdown, exit were there */
} gp_lsp;

/* Each writes the member "result"; `at` is a byte of the text. Memory is the arena's. */
void gp_lsp_hover(const gp_lsp *l, gp_json *j, gp_arena *a, const gp_doc *d, size_t at);
void gp_lsp_complete(const gp_lsp *l, gp_json *j, gp_arena *a, const gp_doc *d, size_t at);
void gp_lsp_define(const gp_lsp *l, gp_json *j, gp_arena *a, const gp_doc *d, size_t at);

/* Lines and UTF-16 units, as editors count. */
typedef struct gp_position { int64_t line, unit; } gp_position;
typedef struct gp_range { gp_position start, end; } gp_range;

/* lsp.c. Where `len` bytes of the text are. It reads all that is before them. */
gp_range gp_lsp_range(const gp_doc *d, size_t at, size_t len);
void gp_lsp_put_range(gp_json *j, gp_range range);
/* The byte of a place; *len: the bytes that it has there. */
size_t gp_lsp_place(const gp_doc *d, gp_loc at, size_t *len);
