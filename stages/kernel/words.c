/* words.c - what one token is: the words and operators of C++ that several files look for. */
#include <string.h>
#include "code.h"

/* Types of numbers that an index fits into. */
static const char *const integers[] = { "int", "unsigned", "long", "size_t", "uint", "ulong", "int32_t", "uint32_t",
                                        "int64_t", "uint64_t", "ptrdiff_t", NULL };
/* With those, the types that hold a value. */
static const char *const values[] = { "float", "double", "char", "short", "signed", "bool", "half", "int8_t", "uint8_t",
                                      "int16_t", "uint16_t", "float2", "float3", "float4", "int2", "int3", "int4",
                                      "dim3", NULL };
static const char *const types[] = { "void", "const", "volatile", "auto", "struct", "typename", NULL };
static const char *const assignments[] = { "=", "+=", "-=", "*=", "/=", "%=", "&=", "|=", "^=", "<<=", ">>=",
                                           "++", "--", NULL };
static const char *const branches[] = { "if", "return", "goto", "switch", "while", "do", "case", "break", "continue",
                                        "?", NULL };
static const char *const assembly[] = { "asm", "__asm__", "__asm", NULL };

bool gp_tok_is(const gp_tok *t, const char *text)
{
    return t->kind && (int)strlen(text) == t->len && memcmp(t->p, text, (size_t)t->len) == 0;
}

bool gp_tok_among(const gp_tok *t, const char *const *words)
{
    for (; *words; words++)
        if (gp_tok_is(t, *words))
            return true;
    return false;
}

bool gp_tok_is_integer(const gp_tok *t)
{
    return gp_tok_among(t, integers);
}

bool gp_tok_is_value(const gp_tok *t)
{
    return gp_tok_is_integer(t) || gp_tok_among(t, values);
}

bool gp_tok_is_type(const gp_tok *t)
{
    return t->kind == GP_TOK_WORD && (gp_tok_is_value(t) || gp_tok_among(t, types)
                                      || (t->len > 2 && !memcmp(t->p + t->len - 2, "_t", 2)));
}

bool gp_tok_assigns(const gp_tok *t)
{
    return gp_tok_among(t, assignments);
}

bool gp_tok_branches(const gp_tok *t)
{
    return gp_tok_among(t, branches);
}

bool gp_tok_is_asm(const gp_tok *t)
{
    return gp_tok_among(t, assembly);
}
