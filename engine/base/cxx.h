/* cxx.h - C++ as text, without a compiler: comments, words, includes and declarations of kernels, as far as they are
 * plain. What is decided by these must not depend on their finding all. */
#pragma once

#include <ctype.h>
#include <stdbool.h>
#include <stddef.h>

/* A copy with comments, strings and characters blanked, and all newlines kept; malloc'd.
 * NULL: no memory. */
char *gp_code_blank(const char *text);

/* May `c` stand in an identifier? */
static inline bool gp_in_word(char c)
{
    return isalnum((unsigned char)c) || c == '_';
}

/* The next `word` of `text` at or after `p`, as a whole word; NULL: none. */
const char *gp_find_word(const char *text, const char *p, const char *word);

/* The operand of the directive whose word `include` is at `word` in `code`, the blanked `text`: where it begins in
 * `text`, with its quote or bracket. NULL: it is none that is written so. */
const char *gp_include_operand(const char *text, const char *code, const char *word);

/* The end of a bracket that opens at `p`; NULL when it does not close. */
const char *gp_closing(const char *p);

/* The name of the kernel that is declared after the `__global__` which ends at `p`, in blanked code: the last word
 * before a bracket that is no attribute. NULL: there is none. */
const char *gp_kernel_name(const char *p, size_t *len);

/* The name in a symbol that a C++ compiler made: count of _ZN3abc5countE, tv of _Z2tvI3FooE. Others stay as they are,
 * but for the number in count.0, of a function. */
void gp_plain_symbol(const char *symbol, char *name, size_t room);
