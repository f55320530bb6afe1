/* plain.h - text that others wrote, on its way to a terminal or a log: file names, values and
 * lines of a pipeline, messages of compilers and scripts. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

/* Does the character do something to what shows it? Controls, and those that turn the
 * direction of text. */
bool gp_steers(unsigned code);

/* The Unicode name, in lower case, of a character that is not seen, as spaces of other kinds than that of a keyboard,
 * or with `seen` of one that looks like another: a dash, a quotation mark. NULL: it is none of these. */
const char *gp_odd_name(unsigned code, bool seen);

/* Writes the text with characters that steer or are not seen, and bytes that are not UTF-8, as \x1b or \u{202e}. Those
 * in `keep` stay. Returns how many characters that makes; `f` NULL: only that. */
int gp_put_plain(FILE *f, const char *s, size_t n, const char *keep);
/* The same of all that `print` writes; lines and tabs stay. False: out of memory. */
bool gp_print_plain(FILE *to, void (*print)(FILE *f, const void *arg), const void *arg);
