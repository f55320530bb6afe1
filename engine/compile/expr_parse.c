/* expr_parse.c - the text of an expression, or of a program, becomes a tree, see expr.h. Recursive descent.
 *
 * A program is what the kind `expr` computes for each element: it has the operators and functions of C, and lines.
 * A line ends where an operator could stand; within brackets, and after an operator, it goes on. */
#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <gpipe/stage.h>
#include "base/json.h"
#include "base/num.h"
#include "compile/expr.h"

enum { NAME = GP_EXPR_NAME, FEW = 16 };

struct parser {
    gp_arena *arena;
    const gp_node *scalar;
    const char *s;                     /* what is left to read */
    gp_errs *errs;
    gp_expr_node *node; int n, cap;
    int depth, rounding;               /* how deep, and how deep in ceil, floor */
    bool named;                        /* see gp_expr */
    bool program;                      /* not only a value */
    int brackets;                      /* of a program: how deep, in any */
};

/* ---- units ----------------------------------------------------------- */

static const gp_unit units[] = {
    { "ns", true, 1 }, { "us", true, 1000 }, { "ms", true, 1000000 },
    { "s", true, 1000000000 }, { "min", true, 60000000000 }, { "h", true, 3600000000000 },
    { "B", false, 1 }, { "KB", false, 1000 }, { "MB", false, 1000000 },
    { "GB", false, 1000000000 }, { "TB", false, 1000000000000 }, { "KiB", false, 1 << 10 },
    { "MiB", false, 1 << 20 }, { "GiB", false, 1 << 30 }, { "TiB", false, (int64_t)1 << 40 },
    { "Hz", false, 1 }, { "kHz", false, 1000 }, { "MHz", false, 1000000 },
    { "GHz", false, 1000000000 },
};
enum { NUNITS = sizeof units / sizeof *units };

/* ---- errors ---------------------------------------------------------- */

/* An error at `at`, `bytes` long. */
#define FAIL(p, at, bytes, ...)                                              \
    ((p)->errs && gp_fail((p)->errs, GP_E_SPEC, gp_node_part((p)->scalar,    \
                          (size_t)((at) - (p)->scalar->text), (bytes)), __VA_ARGS__))

/* Skips what is blank, and in a program comments; of lines, too, where `lines`. */
static char skip(struct parser *p, bool lines)
{
    for (;; p->s++) {
        if (p->program && *p->s == '#')
            p->s += strcspn(p->s, "\n");
        if (!*p->s || !strchr(lines ? " \t\n" : " \t", *p->s))
            return *p->s;
    }
}

static char peek(struct parser *p)
{
    return skip(p, !p->program || p->brackets);
}

/* Where a line cannot end. */
static char peek_on(struct parser *p)
{
    return skip(p, true);
}

static size_t name_len(const char *s)
{
    size_t n = 0;
    while (isalnum((unsigned char)s[n]) || s[n] == '_')
        n++;
    return n;
}

/* Is it a type of C or of gpipe? What a value becomes follows from where it is stored. */
static bool is_type(const char *name, size_t len)
{
    static const char *const of_c[] = { "float", "double", "int", "unsigned", "long", "short", "char", "bool" };
    char word[NAME] = "";
    if (len < NAME)
        memcpy(word, name, len);
    for (size_t i = 0; i < sizeof of_c / sizeof *of_c; i++)
        if (!strcmp(word, of_c[i]))
            return true;
    return gp_dtype_parse(word) != GP_NO_DTYPE;
}

static const char cast[] = "a value is cast where it is stored: declare the type of the output, buffers: {NAME: {dtype: f32}}, "
                           "or put {use: cast, dtype: f32} before or behind";

/* In a program: what an operator of another language is here; "" if it is none. */
static const char *operator_here(const struct parser *p)
{
    static const char *const word[][2] = {
        { "and", "; write '&&'" }, { "or", "; write '||'" }, { "if", "; write 'condition ? a : b'" },
    };
    char before = p->s > p->scalar->text ? p->s[-1] : 0;
    if (*p->s == '*' && before == '*')
        return "; a power is pow(a, b)";
    if (*p->s == '/' && before == '/')
        return "; write floor(a / b)";
    if (*p->s == '=')
        return "; to compare write '=='";
    for (size_t i = 0, n = name_len(p->s); i < sizeof word / sizeof *word; i++)
        if (strlen(word[i][0]) == n && !strncmp(p->s, word[i][0], n))
            return word[i][1];
    return "";
}

static bool unexpected(struct parser *p, const char *wanted)
{
    char c = peek(p);
    if (c == '$' && p->s[1] == '{') {
        const char *from = p->s + 2;
        size_t n = strcspn(from, ":}");
        return FAIL(p, p->s, n + 3, "'${' is for text; in an expression write the bare name: "
                    "'%.*s'", (int)n, from);
    }
    if (c == '$' && name_len(p->s + 1))
        return FAIL(p, p->s, name_len(p->s + 1) + 1, "write the bare name: '%.*s'", (int)name_len(p->s + 1), p->s + 1);
    if (!c)
        return FAIL(p, p->s, 1, "expected %s at the end", wanted);
    if (c == '\n')
        return FAIL(p, p->s, 1, "expected %s at the end of the line", wanted);
    unsigned code;
    size_t n = gp_utf8(p->s, strlen(p->s), &code), len = n ? n : 1;
    if (p->program)
        return FAIL(p, p->s, len, "expected %s, not '%.*s'%s", wanted, (int)len, p->s, operator_here(p));
    bool list = c == ',' || (isdigit((unsigned char)c) && p->s > p->scalar->text && p->s[-1] == ' ');
    return FAIL(p, p->s, len, "expected %s, not '%.*s'%s", wanted, (int)len, p->s, list ? "; a list is written [1, 2]" : "");
}

static bool want(struct parser *p, char c, const char *as)
{
    if (peek(p) != c)
        return unexpected(p, as);
    p->s++;
    return true;
}

/* ---- nodes ----------------------------------------------------------- */

static gp_expr_node *put(struct parser *p, gp_expr_op op, const char *at, size_t len)
{
    gp_expr_node *n = GP_PUSH(p->arena, p->node, p->n, p->cap);
    *n = (gp_expr_node){ .op = op, .from = (size_t)(at - p->scalar->text), .len = len };
    return n;
}

static bool expression(struct parser *p);

/* The unit `name` of a number. */
static bool unit(struct parser *p, const char *name, size_t len, const gp_unit **out)
{
    char word[NAME] = "";
    if (len < NAME)
        memcpy(word, name, len);
    gp_near near = GP_NEAR(word);
    for (int i = 0; i < NUNITS; i++) {
        if (!strcmp(units[i].name, word)) {
            *out = &units[i];
            return p->named = true;
        }
        if (units[i].name[1] || !strcasecmp(units[i].name, word))      /* one letter is near to any other */
            gp_near_try(&near, units[i].name);
    }
    if (!strcmp(word, "f") || !strcmp(word, "F") || !strcasecmp(word, "u") || !strcasecmp(word, "l"))
        return FAIL(p, name, len, "numbers have no suffix '%s': leave it out", word);
    return FAIL(p, name, len, "no unit '%.*s'%s", (int)len, name, gp_near_text(&near));
}

static bool hexadecimal(struct parser *p)
{
    const char *from = p->s, *s = from + 2;
    gp_int128 i = 0;
    for (; isxdigit((unsigned char)*s); s++)
        if (gp_int_fits(i))
            i = 16 * i + (isdigit((unsigned char)*s) ? *s - '0' : tolower((unsigned char)*s) - 'a' + 10);
    size_t more = name_len(s), len = (size_t)(s - from);
    p->s = s + more;
    if (more || *s == '.')
        return FAIL(p, from, len + more, "a hexadecimal number has no fraction and no unit");
    if (!gp_int_fits(i))
        return FAIL(p, from, len, "the number does not fit in 64 bits");
    put(p, GP_EXPR_NUMBER, from, len)->value = (gp_num){ true, i, (double)i };
    return true;
}

/* Digits, with a fraction, an exponent and a unit if there are. A fraction of a
 * unit that is a whole number (1.5ms) is an integer. */
static bool number(struct parser *p)
{
    const char *from = p->s, *s = from;
    const gp_unit *u = NULL;
    gp_int128 digits = 0, scale = 1, i;
    bool exact = true, is_float = false;
    for (; isdigit((unsigned char)*s) || (*s == '.' && !is_float); s++) {
        if (*s == '.') {
            is_float = true;
            continue;
        }
        if (__builtin_mul_overflow(digits, 10, &digits)
            || __builtin_add_overflow(digits, *s - '0', &digits)
            || (is_float && __builtin_mul_overflow(scale, 10, &scale)))
            exact = false;
    }
    if ((*s == 'e' || *s == 'E')
        && isdigit((unsigned char)s[1 + (s[1] == '-' || s[1] == '+')])) {
        for (s += 2; isdigit((unsigned char)*s); s++)
            ;
        is_float = true, exact = false;
    }
    size_t unit_len = name_len(s), len = (size_t)(s - from);
    p->s = s + unit_len;
    if (unit_len && !unit(p, s, unit_len, &u))
        return false;
    gp_int128 factor = u ? u->factor : 1;
    gp_expr_node *n = put(p, GP_EXPR_NUMBER, from, len + unit_len);
    n->unit = u;
    if (exact && (!is_float || u) && !__builtin_mul_overflow(digits, factor, &i)
        && i % scale == 0 && gp_int_fits(i / scale)) {
        n->value = (gp_num){ true, i / scale, (double)(i / scale) };
        return true;
    }
    n->value.f = strtod(from, NULL) * (double)factor;
    if (!is_float)
        return FAIL(p, from, len, "the number does not fit in 64 bits");
    return isfinite(n->value.f) || FAIL(p, from, len, "the number is too large");
}

/* `args`: how many it takes; 0: any number, of which the operator takes two. */
static const struct function { const char *name; gp_expr_op op; int args; bool program; } functions[] = {
    { "ceil", GP_EXPR_CEIL, 1, false }, { "floor", GP_EXPR_FLOOR, 1, false },
    { "min", GP_EXPR_MIN, 0, false }, { "max", GP_EXPR_MAX, 0, false },
    { "abs", GP_EXPR_ABS, 1, true }, { "round", GP_EXPR_ROUND, 1, true }, { "sqrt", GP_EXPR_SQRT, 1, true },
    { "rsqrt", GP_EXPR_RSQRT, 1, true }, { "exp", GP_EXPR_EXP, 1, true }, { "log", GP_EXPR_LOG, 1, true },
    { "log2", GP_EXPR_LOG2, 1, true }, { "log10", GP_EXPR_LOG10, 1, true }, { "sin", GP_EXPR_SIN, 1, true },
    { "cos", GP_EXPR_COS, 1, true }, { "tan", GP_EXPR_TAN, 1, true }, { "isnan", GP_EXPR_ISNAN, 1, true },
    { "pow", GP_EXPR_POW, 2, true }, { "atan2", GP_EXPR_ATAN2, 2, true }, { "hypot", GP_EXPR_HYPOT, 2, true },
    { "re", GP_EXPR_RE, 1, true }, { "im", GP_EXPR_IM, 1, true }, { "conj", GP_EXPR_CONJ, 1, true },
    { "arg", GP_EXPR_ARG, 1, true }, { "complex", GP_EXPR_COMPLEX, 2, true },
    { "select", GP_EXPR_SELECT, 3, true }, { "clamp", GP_EXPR_MIN, 3, true },
};
enum { NFUNCTIONS = sizeof functions / sizeof *functions };

/* The arguments of a function, behind its '('; `clamp` is min(max(a, lo), hi). */
static bool arguments(struct parser *p, const struct function *f, const char *at, size_t len)
{
    bool clamp = f->op == GP_EXPR_MIN && f->args;
    int n = 0;
    do {
        p->s += n > 0;
        if (!expression(p))
            return false;
        n++;
        if (!f->args && n > 1)
            put(p, f->op, at, len);
        if (clamp && n == 2)
            put(p, GP_EXPR_MAX, at, len);
    } while (peek(p) == ',' && f->args != 1);
    if (f->args > 1 && *p->s == ')' && n != f->args)
        return FAIL(p, at, len, "'%s' takes %d arguments, not %d", f->name, f->args, n);
    if (f->args)
        put(p, f->op, at, len);
    return want(p, ')', f->args == 1 ? "')'" : "',' or ')'");
}

/* What other languages call it; "" if none does. */
static const char *spelled(const char *name)
{
    static const char *const other[][2] = {
        { "clip", "clamp(x, least, most)" }, { "where", "select(condition, a, b)" }, { "maximum", "max(a, b)" },
        { "minimum", "min(a, b)" }, { "power", "pow(a, b)" }, { "absolute", "abs(x)" }, { "arctan2", "atan2(y, x)" },
        { "angle", "arg(z)" }, { "real", "re(z)" }, { "imag", "im(z)" }, { "rint", "round(x)" },
        { "sum", "a stage of its own: {use: reduce, op: sum}" }, { "mean", "a stage of its own: {use: reduce, op: mean}" },
    };
    for (size_t i = 0; i < sizeof other / sizeof *other; i++)
        if (!strcmp(name, other[i][0]))
            return other[i][1];
    return "";
}

/* p->s is at the '('. */
static bool call(struct parser *p, const char *at, size_t len, const char *name)
{
    const struct function *f = functions, *end = functions + NFUNCTIONS;
    gp_near near = GP_NEAR(name);
    for (; f < end && (strcmp(f->name, name) || (f->program && !p->program)); f++)
        if (!f->program || p->program)
            gp_near_try(&near, f->name);
    const char *other = f == end && p->program ? spelled(name) : "";
    if (*other)
        return FAIL(p, at, len, "no function '%s'; here it is %s", name, other);
    if (f == end && p->program && is_type(name, len))
        return FAIL(p, at, len, "no function '%s'; %s", name, cast);
    if (f == end)
        return FAIL(p, at, len, "no function '%s'%s", name, gp_near_text(&near));
    bool rounds = f->args == 1 && !p->program;
    p->s++;
    p->rounding += rounds, p->brackets++;
    bool ok = arguments(p, f, at, len);
    p->rounding -= rounds, p->brackets--;
    return ok;
}

/* PORT.shape[k], PORT.size; p->s is at the '.'. */
static bool port(struct parser *p, const char *at, const char *name)
{
    int k = -1;
    const char *what = ++p->s;
    size_t what_len = name_len(what);
    bool index = what_len == 5 && !strncmp(what, "index", 5), time = what_len == 4 && !strncmp(what, "time", 4);
    p->s += what_len;
    if (p->program && !strcmp(name, "frame") && (index || time)) {
        put(p, GP_EXPR_FRAME, at, (size_t)(p->s - at))->axis = time;
        return true;
    }
    if (what_len == 5 && !strncmp(what, "shape", 5)) {
        if (!want(p, '[', "'[' and the number of an axis"))
            return false;
        if (!isdigit((unsigned char)peek(p)))
            return unexpected(p, "the number of an axis, counted from 0");
        char *end;
        unsigned long axis = strtoul(p->s, &end, 10);
        p->s = end;
        k = axis < 1000 ? (int)axis : 1000;
        if (!want(p, ']', "']'"))
            return false;
    } else if (what_len != 4 || strncmp(what, "size", 4)) {
        return FAIL(p, what, what_len, "a port has '%s.shape[k]' and '%s.size', no '%.*s'", name,
                    name, (int)what_len, what);
    }
    gp_expr_node *n = put(p, GP_EXPR_PORT, at, (size_t)(p->s - at));
    n->name = name, n->axis = k;
    return true;
}

/* NAME[index, ...]; p->s is at the '['. */
static bool elements(struct parser *p, const char *at, size_t len, const char *name)
{
    int n = 0;
    p->brackets++;
    do {
        p->s++;
        peek(p);
        const char *index = p->s;
        if (!expression(p))
            return false;
        size_t bytes = (size_t)(p->s - index);
        while (strchr(" \t\n", index[bytes - 1]))
            bytes--;
        put(p, GP_EXPR_INDEX, index, bytes);
        n++;
    } while (peek(p) == ',');
    if (!want(p, ']', "',' or ']'"))
        return false;
    p->brackets--;
    if (peek(p) == '[')
        return FAIL(p, p->s, 1, "the indices of '%s' stand in one pair of brackets: %s[i0, i1]", name, name);
    gp_expr_node *e = put(p, GP_EXPR_AT, at, len);
    e->name = name, e->axis = n;
    return true;
}

static bool name(struct parser *p)
{
    const char *at = p->s;
    size_t len = name_len(at);
    p->s += len;
    p->named = true;
    if (len >= NAME)
        return FAIL(p, at, len, "a name in an expression has at most %d letters", NAME - 1);
    const char *word = gp_strndup(p->arena, at, len);
    if (*p->s == '.')
        return port(p, at, word);
    if (peek(p) == '(')
        return call(p, at, len, word);
    if (p->program && *p->s == '[')
        return elements(p, at, len, word);
    put(p, GP_EXPR_VAR, at, len)->name = word;
    return true;
}

static bool too_deep(struct parser *p)
{
    if (p->depth > GP_EXPR_DEEPEST)
        return !FAIL(p, p->s, 1, "nested more than %d deep", GP_EXPR_DEEPEST);
    return p->program && p->n > GP_EXPR_MOST
        && !FAIL(p, p->s, 1, "more than %d numbers, names and operators", GP_EXPR_MOST);
}

static bool atom(struct parser *p)
{
    char c = peek_on(p);
    const char *at = p->s;
    if (too_deep(p))
        return false;
    p->depth++;
    bool ok;
    if (c == '-' || c == '+' || (p->program && (c == '~' || (c == '!' && at[1] != '=')))) {
        p->s++;
        ok = atom(p);
        if (ok && c != '+')
            put(p, c == '-' ? GP_EXPR_NEGATE : c == '!' ? GP_EXPR_NOT : GP_EXPR_INVERT, at, 1);
    } else if (c == '(') {
        p->s++, p->brackets++;
        ok = expression(p) && want(p, ')', "')'");
        p->brackets--;
        bool more = ok && p->program && is_type(at + 1, (size_t)(p->s - at) - 2)
            && (isalnum((unsigned char)peek(p)) || *p->s == '(');
        ok = ok && (!more || FAIL(p, at, (size_t)(p->s - at), "no cast here; %s", cast));
    } else if (c == '0' && (at[1] == 'x' || at[1] == 'X') && isxdigit((unsigned char)at[2])) {
        ok = hexadecimal(p);
    } else if (isdigit((unsigned char)c) || (c == '.' && isdigit((unsigned char)p->s[1]))) {
        ok = number(p);
    } else if (isalpha((unsigned char)c) || c == '_') {
        ok = name(p);
    } else {
        ok = unexpected(p, "a number or a name");
    }
    p->depth--;
    return ok;
}

/* Operators of two operands as in C, those that are longer first; a higher level binds more. */
enum { COMPARED = 6, ORDERED = 7, SUM = 9 };
static const struct operator { const char *sign; int level; gp_expr_op op; } operators[] = {
    { "||", 1, GP_EXPR_OR }, { "&&", 2, GP_EXPR_AND }, { "==", COMPARED, GP_EXPR_EQUAL },
    { "!=", COMPARED, GP_EXPR_NOT_EQUAL }, { "<=", ORDERED, GP_EXPR_LESS_EQUAL },
    { ">=", ORDERED, GP_EXPR_GREATER_EQUAL }, { "<<", 8, GP_EXPR_SHIFT_LEFT }, { ">>", 8, GP_EXPR_SHIFT_RIGHT },
    { "<", ORDERED, GP_EXPR_LESS }, { ">", ORDERED, GP_EXPR_GREATER }, { "|", 3, GP_EXPR_BIT_OR },
    { "^", 4, GP_EXPR_BIT_XOR }, { "&", 5, GP_EXPR_BIT_AND }, { "+", SUM, GP_EXPR_ADD },
    { "-", SUM, GP_EXPR_SUBTRACT }, { "*", SUM + 1, GP_EXPR_MULTIPLY }, { "/", SUM + 1, GP_EXPR_DIVIDE },
    { "%", SUM + 1, GP_EXPR_REMAINDER },
};
enum { NOPERATORS = sizeof operators / sizeof *operators };

/* The operator at p->s, of at least this level; NULL: there is none. */
static const struct operator *operator_at(struct parser *p, int level)
{
    peek(p);
    for (int i = 0; i < NOPERATORS; i++)
        if (!strncmp(p->s, operators[i].sign, strlen(operators[i].sign)))
            return operators[i].level >= level ? &operators[i] : NULL;
    return NULL;
}

/* Operands with operators of at least this level between them. */
static bool binary(struct parser *p, int level)
{
    const struct operator *o;
    bool ordered = false;
    if (!atom(p))
        return false;
    while ((o = operator_at(p, level))) {
        const char *at = p->s;
        size_t len = strlen(o->sign);
        if (ordered && o->level == ORDERED)
            return FAIL(p, at, len, "compares what a comparison gave, 0 or 1: for 'a %s b %s c' write a %s b && b %s c",
                        o->sign, o->sign, o->sign, o->sign);
        ordered = o->level == ORDERED;
        p->s += len;
        if (!binary(p, o->level + 1))
            return false;
        put(p, o->op == GP_EXPR_DIVIDE && p->rounding ? GP_EXPR_QUOTIENT : o->op, at, len);
    }
    return true;
}

static bool expression(struct parser *p)
{
    if (!binary(p, p->program ? 1 : SUM))
        return false;
    if (!p->program || peek(p) != '?')
        return true;
    const char *at = p->s++;
    if (too_deep(p))
        return false;
    p->depth++, p->brackets++;
    bool ok = expression(p) && want(p, ':', "':'");
    p->brackets--;
    ok = ok && expression(p);
    p->depth--;
    if (ok)
        put(p, GP_EXPR_SELECT, at, 1);
    return ok;
}

/* ---- programs ---------------------------------------------------------- */

/* The length of the name at p->s, which is assigned to there; 0: nothing is. */
static size_t target(struct parser *p)
{
    size_t n = name_len(p->s);
    const char *s = p->s + n;
    s += strspn(s, " \t");
    return n && !isdigit((unsigned char)*p->s) && *s == '=' && s[1] != '=' ? n : 0;
}

static bool statement(struct parser *p, int before)
{
    const char *at = p->s;
    size_t len = target(p);
    if (!len && before)
        return FAIL(p, at, 1, "expected NAME = ..., as each of several lines has; a line goes on within brackets, or "
                    "after an operator");
    if (len >= NAME)
        return FAIL(p, at, len, "a name in an expression has at most %d letters", NAME - 1);
    if (len)
        p->s = strchr(p->s, '=') + 1;
    if (!expression(p))
        return false;
    if (len)
        put(p, GP_EXPR_ASSIGN, at, len)->name = gp_strndup(p->arena, at, len);
    char c = peek(p);
    return !c || c == '\n' || c == ';'
        || unexpected(p, len ? "an operator or the end of the line" : "an operator or the end");
}

static bool program(struct parser *p)
{
    bool more = true;
    for (int n = 0; more; n++) {
        while (peek_on(p) == ';')
            p->s++;
        more = *p->s || !n;
        if (more && n == 1 && p->node[p->n - 1].op != GP_EXPR_ASSIGN)
            return FAIL(p, p->scalar->text + strspn(p->scalar->text, " \t\n"), 1, "of several lines each is NAME = "
                        "...; a line goes on within brackets, or after an operator");
        if (more && !statement(p, n))
            return false;
    }
    return true;
}

/* ---- what is called ------------------------------------------------------ */

static const gp_expr *parse(struct parser *p)
{
    gp_expr_node few[FEW];             /* most have no more, and take no more memory */
    p->s = p->scalar->text, p->node = few, p->cap = FEW;
    if (p->program ? !program(p) : !expression(p) || (peek(p) && !unexpected(p, "an operator or the end")))
        return NULL;
    size_t bytes = sizeof *p->node * (size_t)p->n;
    gp_expr *e = gp_alloc(p->arena, sizeof *e + bytes);
    e->text = p->scalar->text, e->named = p->named, e->n = p->n;
    memcpy(e->node, p->node, bytes);
    return e;
}

const gp_expr *gp_expr_parse(gp_arena *a, const gp_node *scalar, gp_errs *errs)
{
    struct parser p = { .arena = a, .scalar = scalar, .errs = errs };
    return parse(&p);
}

const gp_expr *gp_expr_parse_program(gp_arena *a, const gp_node *scalar, gp_errs *errs)
{
    struct parser p = { .arena = a, .scalar = scalar, .errs = errs, .program = true };
    return parse(&p);
}

const gp_expr *gp_expr_keep(gp_arena *a, const gp_node *scalar)
{
    if (!gp_expr_kept(scalar))
        ((gp_node *)scalar)->expr = gp_expr_parse(a, scalar, NULL);
    return scalar->expr;
}
