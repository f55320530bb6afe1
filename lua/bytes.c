/* bytes.c - text and packed records in u8 views: string, write, print, pack,
 * unpack; and values(), which turns elements into a Lua table.
 *
 * Places are elements, counted from 1, as in string.pack and string.unpack. */
#include <string.h>
#include "view.h"

static gp_lua_view *want_u8(lua_State *L, gp_lua_view *v, const char *what)
{
    if (v->type.dtype != GP_U8)
        gp_lua_fail(L, "'%s' is %s: %s works on u8", v->name, gp_dtype_name(v->type.dtype), what);
    return v;
}

/* v:string([first [, last]]): the bytes as a string. */
static int view_string(lua_State *L)
{
    gp_lua_view *v = want_u8(L, gp_lua_view_arg(L, 1), "string()");
    int64_t first = gp_lua_arg_int(L, 2, 1, 1, v->count + 1, "the first byte");
    int64_t last = gp_lua_arg_int(L, 3, v->count, first - 1, v->count, "the last byte");
    lua_pushlstring(L, (const char *)v->u8 + first - 1, (size_t)(last - first + 1));
    return 1;
}

static void want_room(lua_State *L, const gp_lua_view *v, int64_t at, int64_t bytes)
{
    if (bytes > v->count - at)
        gp_lua_fail(L, "%" PRId64 " bytes at %" PRId64 " are past the end of '%s', which has %"
                    PRId64, bytes, at + 1, v->name, v->count);
}

/* y:write(s, at): the string's bytes; returns the place after them. */
static int view_write(lua_State *L)
{
    gp_lua_view *y = want_u8(L, gp_lua_view_out(L, 1), "write()");
    size_t len;
    const char *s = luaL_checklstring(L, 2, &len);
    if (lua_isnoneornil(L, 3))
        gp_lua_fail(L, "write() takes a text and the place of its first byte: y:write(\"a\", 1); "
                    "y:print(...) appends a line");
    int64_t at = gp_lua_arg_int(L, 3, 1, 1, y->count + 1, "the place to write at") - 1;
    want_room(L, y, at, (int64_t)len);
    memcpy(y->u8 + at, s, len);
    gp_lua_pushint(L, at + (int64_t)len + 1);
    return 1;
}

static void append(lua_State *L, gp_lua_view *y, const char *s, size_t len)
{
    if ((int64_t)len > y->rows - y->printed)
        gp_lua_fail(L, "the text does not fit '%s', which has %" PRId64 " bytes: give that "
                    "buffer a larger shape in the pipeline", y->name, y->rows);
    memcpy(y->u8 + y->printed, s, len);
    y->printed += (int64_t)len;
}

/* y:print(...): appends a line, as print() would write it. The frame's valid
 * rows become the bytes printed. */
static int view_print(lua_State *L)
{
    gp_lua_view *y = want_u8(L, gp_lua_view_out(L, 1), "print()");
    int n = lua_gettop(L);
    if (y->type.ndim != 1 || y->root != y || y->now == &y->born)
        gp_lua_fail(L, "y:print() needs an output with one axis, and neither a slice nor another array");
    for (int i = 2; i <= n; i++) {
        size_t len;
        const char *s = luaL_tolstring(L, i, &len);
        if (i > 2)
            append(L, y, "\t", 1);
        append(L, y, s, len);
        lua_pop(L, 1);
    }
    append(L, y, "\n", 1);
    gp_lua_view_resize(y, y->printed);
    return 0;
}

/* v:values([t [, first [, last]]]): elements as t[1], t[2], ..., in a new table or
 * the one given; returns it. No loop in Lua is faster than one over it. */
static int view_values(lua_State *L)
{
    gp_lua_view *v = gp_lua_view_arg(L, 1);
    int64_t first = gp_lua_arg_int(L, 3, 1, 1, v->count + 1, "the first element");
    int64_t last = gp_lua_arg_int(L, 4, v->count, first - 1, v->count, "the last element");
    if (last - first >= INT32_MAX)
        gp_lua_fail(L, "a table holds no more than %d elements", INT32_MAX);
    if (v->type.dtype == GP_C64)
        gp_lua_fail(L, "'%s' is c64, an element is two numbers: use parts()", v->name);
    lua_settop(L, 2);
    if (lua_isnil(L, 2)) {
        lua_createtable(L, (int)(last - first + 1), 0);
        lua_replace(L, 2);
    }
    luaL_checktype(L, 2, LUA_TTABLE);
    for (int64_t i = first; i <= last; i++) {
        gp_lua_push_element(L, v, i - 1);
        lua_rawseti(L, 2, (int)(i - first + 1));
    }
    return 1;
}

/* ---- packed records -------------------------------------------------- */

struct field {
    enum { F_END, F_INT, F_UINT, F_FLOAT, F_PAD } kind;
    int size;
    bool big;
};

/* The next field of a format: < > = b B h H i[n] I[n] l L j J f d n x, spaces. */
static struct field next_field(lua_State *L, const char **fmt, bool *big)
{
    for (;;) {
        char c = *(*fmt)++;
        struct field f = { F_INT, 1, *big };
        switch (c) {
        case '\0': f.kind = F_END; --*fmt; return f;
        case ' ': case '=': case '<': *big = c == ' ' ? *big : false; continue;
        case '>': *big = true; continue;
        case 'b': return f;
        case 'B': f.kind = F_UINT; return f;
        case 'h': f.size = 2; return f;
        case 'H': f.size = 2, f.kind = F_UINT; return f;
        case 'l': case 'j': f.size = 8; return f;
        case 'L': case 'J': f.size = 8, f.kind = F_UINT; return f;
        case 'f': f.size = 4, f.kind = F_FLOAT; return f;
        case 'd': case 'n': f.size = 8, f.kind = F_FLOAT; return f;
        case 'x': f.kind = F_PAD; return f;
        case 'i': case 'I':
            f.kind = c == 'i' ? F_INT : F_UINT, f.size = 4;
            if (**fmt >= '0' && **fmt <= '9')
                f.size = *(*fmt)++ - '0';
            if (f.size >= 1 && f.size <= 8 && !(**fmt >= '0' && **fmt <= '9'))
                return f;
            gp_lua_fail(L, "an integer in a format has 1 to 8 bytes");
        default:
            gp_lua_fail(L, "a format has no '%c': < > b B h H i4 I4 i8 I8 f d x", c);
        }
    }
}

static uint64_t load(const unsigned char *p, struct field f)
{
    uint64_t u = 0;
    for (int i = 0; i < f.size; i++)
        u = u << 8 | p[f.big ? i : f.size - 1 - i];
    return u;
}

static void store(unsigned char *p, struct field f, uint64_t u)
{
    for (int i = 0; i < f.size; i++, u >>= 8)
        p[f.big ? f.size - 1 - i : i] = (unsigned char)u;
}

static void push_field(lua_State *L, const unsigned char *p, struct field f)
{
    uint64_t u = load(p, f);
    if (f.kind == F_UINT) {
        gp_lua_pushuint(L, u);
    } else if (f.kind == F_INT) {
        int shift = 64 - 8 * f.size;
        gp_lua_pushint(L, (int64_t)(u << shift) >> shift);
    } else if (f.size == 4) {
        uint32_t bits = (uint32_t)u;
        float v;
        memcpy(&v, &bits, 4);
        lua_pushnumber(L, v);
    } else {
        double v;
        memcpy(&v, &u, 8);
        lua_pushnumber(L, v);
    }
}

static uint64_t field_bits(lua_State *L, int arg, struct field f)
{
    if (f.kind == F_FLOAT) {
        double d = luaL_checknumber(L, arg);
        float s = (float)d;
        uint32_t bits;
        uint64_t u;
        memcpy(&bits, &s, 4);
        memcpy(&u, &d, 8);
        return f.size == 4 ? bits : u;
    }
    int64_t i;
    uint64_t u;
    int bits = 8 * f.size;
    if (f.kind == F_UINT && gp_lua_touint(L, arg, &u) && u <= UINT64_MAX >> (64 - bits))
        return u;
    if (!gp_lua_toint(L, arg, &i))
        gp_lua_fail(L, "value %d is not a whole number that fits its field", arg - 3);
    bool fits = f.kind == F_INT && i >= INT64_MIN >> (64 - bits) && i <= INT64_MAX >> (64 - bits);
    if (!fits)
        gp_lua_fail(L, "%" PRId64 " does not fit its field of %d bytes", i, f.size);
    return (uint64_t)i;
}

/* y:pack(format, at, ...): stores the values from byte `at` on; returns the
 * place after them. */
static int view_pack(lua_State *L)
{
    gp_lua_view *y = want_u8(L, gp_lua_view_out(L, 1), "pack()");
    const char *fmt = luaL_checkstring(L, 2);
    int64_t at = gp_lua_arg_int(L, 3, 0, 1, y->count + 1, "the place to pack at") - 1;
    bool big = false;
    struct field f;
    for (int arg = 4; (f = next_field(L, &fmt, &big)).kind; at += f.size) {
        uint64_t bits = f.kind == F_PAD ? 0 : field_bits(L, arg++, f);
        want_room(L, y, at, f.size);
        store(y->u8 + at, f, bits);
    }
    gp_lua_pushint(L, at + 1);
    return 1;
}

/* v:unpack(format [, at]): the values, then the place after them. */
static int view_unpack(lua_State *L)
{
    gp_lua_view *v = want_u8(L, gp_lua_view_arg(L, 1), "unpack()");
    const char *fmt = luaL_checkstring(L, 2);
    int64_t at = gp_lua_arg_int(L, 3, 1, 1, v->count + 1, "the place to unpack at") - 1;
    bool big = false;
    struct field f;
    int n = 0;
    for (; (f = next_field(L, &fmt, &big)).kind; at += f.size) {
        want_room(L, v, at, f.size);
        if (f.kind == F_PAD)
            continue;
        luaL_checkstack(L, 2, "too many values");
        push_field(L, v->u8 + at, f);
        n++;
    }
    gp_lua_pushint(L, at + 1);
    return n + 1;
}

const luaL_Reg gp_lua_bytes[] = {
    { "string", view_string }, { "write", view_write }, { "print", view_print },
    { "values", view_values }, { "pack", view_pack }, { "unpack", view_unpack },
    {0}
};
